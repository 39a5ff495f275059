//! A code object with one kernel that ends at once, made for any target: what is measured is the way to it.
//!
//! Knows: the least that a code object needs (AMDGPUUsage, "Code Object", "Kernel Descriptor"). Must not know: queues.
use crate::loader::{TargetId, WaveSize};

/// Name of the kernel.
pub(super) const NAME: &str = "empty";

/// Offsets in the file, which are addresses in the object too: one segment holds everything.
const SYMBOLS: u64 = 0xc0;
const HASH: u64 = 0xf0;
const STRINGS: u64 = 0x108;
const DYNAMIC: u64 = 0x118;
const DESCRIPTOR: u64 = 0x180;
const CODE: u64 = 0x200;
const END: u64 = 0x300;

/// `s_endpgm`: SOPP opcode 1 up to GFX10, 48 from GFX11 on.
const S_ENDPGM_GFX6: u32 = 0xbf81_0000;
const S_ENDPGM_GFX11: u32 = 0xbfb0_0000;

/// A file in the making.
struct File(Vec<u8>);

impl File {
    fn put(&mut self, at: u64, bytes: &[u8]) {
        let at = at as usize;
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn u16(&mut self, at: u64, value: u16) {
        self.put(at, &value.to_le_bytes());
    }

    fn u32(&mut self, at: u64, value: u32) {
        self.put(at, &value.to_le_bytes());
    }

    fn u64(&mut self, at: u64, value: u64) {
        self.put(at, &value.to_le_bytes());
    }

    fn program_header(
        &mut self,
        index: u64,
        kind: u32,
        flags: u32,
        address: u64,
        size: u64,
        align: u64,
    ) {
        let at = 64 + 56 * index;
        self.u32(at, kind);
        self.u32(at + 4, flags);
        for (offset, value) in [
            (8, address),
            (16, address),
            (24, address),
            (32, size),
            (40, size),
            (48, align),
        ] {
            self.u64(at + offset, value);
        }
    }
}

/// The bytes of a V5 code object for a target, its features left open.
pub(super) fn code_object(target: &TargetId) -> Vec<u8> {
    let target = target.target;
    let mut file = File(vec![0; END as usize]);
    // ELF header: 64-bit, little-endian, OS ABI AMDGPU_HSA, ABI version of V5; ET_DYN, EM_AMDGPU.
    file.put(0, &[0x7f, b'E', b'L', b'F', 2, 1, 1, 64, 3]);
    file.u16(16, 3);
    file.u16(18, 224);
    file.u32(20, 1);
    file.u64(32, 64);
    let xnack = if target.supports_xnack { 0x100 } else { 0 };
    let sramecc = if target.supports_sramecc { 0x400 } else { 0 };
    file.u32(48, u32::from(target.mach) | xnack | sramecc);
    file.u16(52, 64);
    file.u16(54, 56);
    file.u16(56, 2);
    file.u16(58, 64);
    let (pt_load, pt_dynamic, read_execute, read) = (1, 2, 5, 4);
    file.program_header(0, pt_load, read_execute, 0, END, 0x1000);
    file.program_header(1, pt_dynamic, read, DYNAMIC, 6 * 16, 8);
    // Symbol 1: global object `empty.kd` of 64 bytes, in a section that is not there.
    let symbol = SYMBOLS + 24;
    file.u32(symbol, 1);
    file.put(symbol + 4, &[0x11, 3]);
    file.u16(symbol + 6, 1);
    file.u64(symbol + 8, DESCRIPTOR);
    file.u64(symbol + 16, 64);
    // Hash table: one bucket, two symbols, the bucket's chain is symbol 1 alone.
    for (index, word) in [1, 2, 1, 0, 0].into_iter().enumerate() {
        file.u32(HASH + 4 * index as u64, word);
    }
    file.put(STRINGS, format!("\0{NAME}.kd\0").as_bytes());
    // DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_NULL
    for (index, (tag, value)) in [
        (4, HASH),
        (5, STRINGS),
        (6, SYMBOLS),
        (10, NAME.len() as u64 + 5),
        (11, 24),
        (0, 0),
    ]
    .into_iter()
    .enumerate()
    {
        file.u64(DYNAMIC + 16 * index as u64, tag);
        file.u64(DYNAMIC + 16 * index as u64 + 8, value);
    }
    file.u64(DESCRIPTOR + 16, CODE - DESCRIPTOR);
    let wave32 = target.resources.default_wave_size == WaveSize::Wave32;
    // ENABLE_WAVEFRONT_SIZE32
    file.u16(DESCRIPTOR + 56, if wave32 { 1 << 10 } else { 0 });
    let s_endpgm = if target.family.is_gfx11_plus() {
        S_ENDPGM_GFX11
    } else {
        S_ENDPGM_GFX6
    };
    for at in (CODE..END).step_by(4) {
        file.u32(at, s_endpgm);
    }
    file.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::CodeObject;
    use crate::loader::target::TARGETS;

    #[test]
    fn every_concrete_target_gets_a_kernel_that_loads() {
        for target in TARGETS.iter().filter(|target| target.generic.is_none()) {
            let id = TargetId::any(target);
            let object =
                CodeObject::parse(code_object(&id)).unwrap_or_else(|error| panic!("{id}: {error}"));
            assert_eq!(object.target_id, id);
            assert_eq!(object.kernels.len(), 1, "{id}");
            let kernel = &object.kernels[0];
            assert_eq!(
                (
                    kernel.name.as_str(),
                    kernel.kernarg_size(),
                    kernel.entry_vaddr
                ),
                (NAME, 0, CODE)
            );
            assert_eq!(kernel.wave_size, target.resources.default_wave_size, "{id}");
        }
    }
}
