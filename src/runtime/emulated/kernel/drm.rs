//! The ioctls of a render node, as far as libdrm and libhsakmt ask. Follows drm_ioctl.c and amdgpu_kms.c.
use std::ffi::c_void;

use rustix::io::Errno;

use super::{VirtualKernel, store, with};
use crate::runtime::uapi::drm as abi;
use crate::runtime::uapi::{self, Ioctl};

const NAME: &[u8] = b"amdgpu";
const DATE: &[u8] = b"20150101";
const DESCRIPTION: &[u8] = b"AMD GPU";
/// amdgpu's version as DRM drivers count them.
const VERSION: (i32, i32, i32) = (3, 57, 0);
/// Longest answer of AMDGPU_INFO that is written: more is cleared no further.
const MOST_ANSWER_BYTES: u32 = 4096;

impl VirtualKernel {
    /// # Safety
    /// As [`VirtualKernel::ioctl`].
    pub(super) unsafe fn drm_ioctl(
        &self,
        number: usize,
        request: u32,
        argument: *mut c_void,
    ) -> Result<(), Errno> {
        const VERSION: u8 = uapi::number(abi::Version::REQUEST);
        const GET_CAP: u8 = uapi::number(abi::GetCap::REQUEST);
        const INFO: u8 = uapi::number(abi::AmdgpuInfo::REQUEST);
        // SAFETY: as the caller promised.
        unsafe {
            match uapi::number(request) {
                VERSION => with(request, argument, version),
                GET_CAP => with(request, argument, |args: &mut abi::GetCap| {
                    args.value = 0;
                    Ok(())
                }),
                INFO => with(request, argument, |args| self.info(number, args)),
                _ => Err(Errno::INVAL),
            }
        }
    }

    fn info(&self, number: usize, args: &mut abi::AmdgpuInfo) -> Result<(), Errno> {
        use abi::info_query;
        let gpu = self.device.gpus.get(number).ok_or(Errno::NODEV)?;
        let model = &gpu.device.model;
        let vram = model.memory_mib << 20;
        let free = self.device.memory.available(gpu.id).unwrap_or(0);
        let words: Vec<u32> = match args.query {
            info_query::ACCEL_WORKING => vec![1],
            info_query::FW_VERSION => vec![0, 0],
            // Registers of the display and tiling hardware, which there is none of.
            info_query::READ_MMR_REG => {
                vec![0; args.return_size.min(MOST_ANSWER_BYTES) as usize / 4]
            }
            info_query::VRAM_GTT => quads(&[vram, vram, vram]),
            // Total, usable, used and largest allocation of VRAM, of its visible part, and of GTT.
            info_query::MEMORY => {
                let heap = [vram, vram, vram - free, vram];
                quads(&[heap, heap, heap].concat())
            }
            info_query::DEV_INFO => self.device_info(number)?,
            _ => return Err(Errno::INVAL),
        };
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.resize(args.return_size.min(MOST_ANSWER_BYTES) as usize, 0);
        // SAFETY: the buffer has `return_size` bytes, as the caller of the ioctl promised.
        unsafe { store(args.return_pointer, &bytes) }
    }

    fn device_info(&self, number: usize) -> Result<Vec<u32>, Errno> {
        let device = self.device.gpus.get(number).ok_or(Errno::NODEV)?.device;
        let model = &device.model;
        let family = match device.target.target.version.major {
            9 => 141,
            10 => 143,
            11 => 145,
            _ => 152,
        };
        let per_array = model
            .compute_units
            .div_ceil(model.shader_engines * model.arrays_per_engine);
        let array = (1u64 << per_array.min(32)).wrapping_sub(1) as u32;
        let mut info = abi::DeviceInfo {
            device_id: model.device_id,
            pci_rev: device.pci_revision(),
            family,
            num_shader_engines: model.shader_engines,
            num_shader_arrays_per_engine: model.arrays_per_engine,
            gpu_counter_freq: 1_000_000,
            max_engine_clock: u64::from(model.clock_mhz) * 1000,
            max_memory_clock: u64::from(model.memory_clock_mhz) * 1000,
            cu_active_number: model.compute_units,
            ..abi::DeviceInfo::default()
        };
        for engine in info
            .cu_bitmap
            .iter_mut()
            .take(model.shader_engines as usize)
        {
            for bits in engine.iter_mut().take(model.arrays_per_engine as usize) {
                *bits = array;
            }
        }
        let halves = |quad: u64| [quad as u32, (quad >> 32) as u32];
        let mut words = vec![
            info.device_id,
            info.chip_rev,
            info.external_rev,
            info.pci_rev,
            info.family,
            info.num_shader_engines,
            info.num_shader_arrays_per_engine,
            info.gpu_counter_freq,
        ];
        words.extend(halves(info.max_engine_clock));
        words.extend(halves(info.max_memory_clock));
        words.extend([info.cu_active_number, info.cu_ao_mask]);
        words.extend(info.cu_bitmap.as_flattened());
        Ok(words)
    }
}

fn quads(values: &[u64]) -> Vec<u32> {
    values
        .iter()
        .flat_map(|&value| [value as u32, (value >> 32) as u32])
        .collect()
}

/// Strings go where there is room for them; their lengths are told in any case, and are never 0: libdrm would duplicate a
/// null pointer.
fn version(args: &mut abi::Version) -> Result<(), Errno> {
    (args.major, args.minor, args.patch) = VERSION;
    for (len, buffer, text) in [
        (&mut args.name_len, args.name, NAME),
        (&mut args.date_len, args.date, DATE),
        (&mut args.desc_len, args.desc, DESCRIPTION),
    ] {
        let room = usize::try_from(*len).unwrap_or(usize::MAX);
        if buffer != 0 {
            // SAFETY: the buffer has as many bytes, as the caller of the ioctl promised.
            unsafe { store(buffer, &text[..text.len().min(room)]) }?;
        }
        *len = text.len() as u64;
    }
    Ok(())
}
