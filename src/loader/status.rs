//! HSA status codes: number, name and meaning of every `hsa_status_t` value.
//!
//! Knows: hsa.h, hsa_ext_amd.h, hsa_ext_finalize.h and hsa_ext_image.h. Must not know: who returns which code when;
//! each layer's errors say that themselves. `info --explain` prints this table.

use std::fmt;

/// An `hsa_status_t`. An open value space: unknown numbers are kept and print as hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HsaStatus(pub u32);

/// One row: what a status means, what usually causes it, what to try.
#[derive(Clone, Copy, Debug)]
pub struct StatusInfo {
    /// The number.
    pub status: HsaStatus,
    /// The enumerator's name, `HSA_STATUS_` included.
    pub name: &'static str,
    /// What the code says, in one sentence.
    pub meaning: &'static str,
    /// What usually leads to it.
    pub causes: &'static str,
    /// What to try.
    pub advice: &'static str,
}

macro_rules! statuses {
    ($($value:literal $konst:ident $name:literal, $meaning:literal, $causes:literal, $advice:literal;)*) => {
        impl HsaStatus {
            $(#[doc = $meaning] pub const $konst: Self = Self($value);)*

            /// Every known status, by number.
            pub const ALL: &'static [StatusInfo] = &[$(StatusInfo {
                status: Self($value),
                name: concat!("HSA_STATUS_", $name),
                meaning: $meaning,
                causes: $causes,
                advice: $advice,
            }),*];
        }
    };
}

statuses! {
    0x0 SUCCESS "SUCCESS", "the call succeeded", "", "";
    0x1 INFO_BREAK "INFO_BREAK", "a callback stopped an iteration early", "the callback returned it on purpose", "nothing; it is no error";
    0x28 ERROR_INVALID_MEMORY_POOL "ERROR_INVALID_MEMORY_POOL", "the memory pool handle is not valid", "a pool of another agent or a stale handle", "list the agent's pools with `rocr info`";
    0x29 ERROR_MEMORY_APERTURE_VIOLATION "ERROR_MEMORY_APERTURE_VIOLATION", "a flat access left the LDS or scratch aperture", "a wild generic pointer, an index beyond LDS or the private segment", "run with `--check memory`";
    0x2a ERROR_ILLEGAL_INSTRUCTION "ERROR_ILLEGAL_INSTRUCTION", "a wave met an instruction that the device does not have", "code for another processor, a jump into data, overwritten code", "compare the object's target with the device, look at the reported PC";
    0x2b ERROR_MEMORY_FAULT "ERROR_MEMORY_FAULT", "a wave accessed memory that is not mapped on its agent, or not with that permission", "an index out of bounds, freed or host-only memory, a null argument", "run with `--check memory`, which names the argument and the distance";
    0x2c CU_MASK_REDUCED "CU_MASK_REDUCED", "a compute unit mask was applied only in part", "HSA_CU_MASK restricts the queue further", "nothing; it is no error";
    0x2d ERROR_OUT_OF_REGISTERS "ERROR_OUT_OF_REGISTERS", "a workgroup needs more registers than a compute unit has", "many VGPRs a wave times many waves a workgroup", "launch a smaller workgroup or rebuild with a lower register limit";
    0x2e ERROR_RESOURCE_BUSY "ERROR_RESOURCE_BUSY", "the resource is in use by somebody else", "a profiler or debugger holds it", "try again when the other user has ended";
    0x1000 ERROR "ERROR", "an error without a code of its own", "preemption, a hardware halt, an uncorrectable memory error", "look at the kernel log";
    0x1001 ERROR_INVALID_ARGUMENT "ERROR_INVALID_ARGUMENT", "an argument is out of its range", "a null pointer, a size of 0, a queue size that is no power of two, a zero or too large workgroup", "check the value that the message names";
    0x1002 ERROR_INVALID_QUEUE_CREATION "ERROR_INVALID_QUEUE_CREATION", "the agent cannot create a queue of that type or size", "more packets than the agent's maximum, a type it does not have", "see queue limits in `rocr info`";
    0x1003 ERROR_INVALID_ALLOCATION "ERROR_INVALID_ALLOCATION", "the allocation can never succeed; at a dispatch, more LDS than the agent has", "static and dynamic LDS together over the limit", "use less LDS, or a device with more";
    0x1004 ERROR_INVALID_AGENT "ERROR_INVALID_AGENT", "the agent handle is not valid", "a stale handle, or an agent that ROCR_VISIBLE_DEVICES hides", "list the agents with `rocr info`";
    0x1005 ERROR_INVALID_REGION "ERROR_INVALID_REGION", "the memory region handle is not valid", "a stale handle", "list the agent's pools with `rocr info`";
    0x1006 ERROR_INVALID_SIGNAL "ERROR_INVALID_SIGNAL", "the signal handle is not valid", "a null or destroyed signal", "keep signals alive until their packets have completed";
    0x1007 ERROR_INVALID_QUEUE "ERROR_INVALID_QUEUE", "the queue handle is not valid", "a null or destroyed queue", "keep queues alive until their packets have completed";
    0x1008 ERROR_OUT_OF_RESOURCES "ERROR_OUT_OF_RESOURCES", "memory, events, threads, scratch or queues have run out, or the driver cannot be opened", "no permission on /dev/kfd or the render node, memory in use, too many events", "the message names the resource or the errno; check group membership first";
    0x1009 ERROR_INVALID_PACKET_FORMAT "ERROR_INVALID_PACKET_FORMAT", "a packet has an unknown type or malformed fields", "a header written before the body, reserved fields in use, a vendor packet that is not supported", "write the header last, with release ordering";
    0x100a ERROR_RESOURCE_FREE "ERROR_RESOURCE_FREE", "a resource could not be released", "it is still in use", "wait for its users first";
    0x100b ERROR_NOT_INITIALIZED "ERROR_NOT_INITIALIZED", "the runtime has not been initialised", "a call before hsa_init or after the last hsa_shut_down", "initialise the runtime";
    0x100c ERROR_REFCOUNT_OVERFLOW "ERROR_REFCOUNT_OVERFLOW", "a reference count is at its maximum", "hsa_init in a loop", "pair initialisations with shut-downs";
    0x100d ERROR_INCOMPATIBLE_ARGUMENTS "ERROR_INCOMPATIBLE_ARGUMENTS", "arguments contradict each other, such as a code object and an agent of different ISAs", "object and device differ in processor, xnack or sramecc; a dispatch with 0 or more than 3 dimensions", "see the verdict of `rocr load`; rebuild for the device or for a generic target";
    0x100e ERROR_INVALID_INDEX "ERROR_INVALID_INDEX", "an index is out of range", "", "check the value that the message names";
    0x100f ERROR_INVALID_ISA "ERROR_INVALID_ISA", "the ISA handle is not valid; at a dispatch, the kernel's registers do not fit", "many VGPRs a wave times many waves a workgroup", "launch a smaller workgroup or rebuild with a lower register limit";
    0x1010 ERROR_INVALID_CODE_OBJECT "ERROR_INVALID_CODE_OBJECT", "the code object is malformed or its version is not supported; at a dispatch, the kernel has no code", "a truncated or unlinked file, an unknown processor, a null kernel object", "see `rocr load --inspect`";
    0x1011 ERROR_INVALID_EXECUTABLE "ERROR_INVALID_EXECUTABLE", "the executable handle is not valid", "a destroyed executable", "keep executables alive while their kernels run";
    0x1012 ERROR_FROZEN_EXECUTABLE "ERROR_FROZEN_EXECUTABLE", "the executable is frozen and takes no more code or definitions", "loading after freezing", "load everything first";
    0x1013 ERROR_INVALID_SYMBOL_NAME "ERROR_INVALID_SYMBOL_NAME", "no symbol has that name", "a misspelt or demangled name, a kernel name without `.kd` where the symbol is asked for", "list the symbols with `rocr load --symbols`";
    0x1014 ERROR_VARIABLE_ALREADY_DEFINED "ERROR_VARIABLE_ALREADY_DEFINED", "a global symbol is defined twice", "two code objects in one executable define it, or it is also defined from outside", "rename one, or load them into two executables";
    0x1015 ERROR_VARIABLE_UNDEFINED "ERROR_VARIABLE_UNDEFINED", "a symbol that code refers to is defined nowhere", "an `extern` variable of the host, a missing code object", "define it with `--define SYM=VALUE`";
    0x1016 ERROR_EXCEPTION "ERROR_EXCEPTION", "a wave raised an exception", "s_trap 2 (abort, assert, llvm.trap), a math exception with traps enabled", "look at the device's output and the reported PC";
    0x1017 ERROR_INVALID_ISA_NAME "ERROR_INVALID_ISA_NAME", "the ISA name is not known", "a misspelt target, a feature that the processor does not have", "list the known targets with `rocr info --models`";
    0x1018 ERROR_INVALID_CODE_SYMBOL "ERROR_INVALID_CODE_SYMBOL", "the code symbol handle is not valid", "a stale handle", "look the symbol up again";
    0x1019 ERROR_INVALID_EXECUTABLE_SYMBOL "ERROR_INVALID_EXECUTABLE_SYMBOL", "the executable symbol handle is not valid", "a stale handle", "look the symbol up again";
    0x1020 ERROR_INVALID_FILE "ERROR_INVALID_FILE", "the file cannot be read", "a closed or write-only descriptor", "check path and permission";
    0x1021 ERROR_INVALID_CODE_OBJECT_READER "ERROR_INVALID_CODE_OBJECT_READER", "the code object reader handle is not valid", "a destroyed reader", "keep readers alive until the executable is destroyed";
    0x1022 ERROR_INVALID_CACHE "ERROR_INVALID_CACHE", "the cache handle is not valid", "a stale handle", "list the agent's caches again";
    0x1023 ERROR_INVALID_WAVEFRONT "ERROR_INVALID_WAVEFRONT", "the wavefront handle is not valid", "a stale handle", "list the ISA's wavefronts again";
    0x1024 ERROR_INVALID_SIGNAL_GROUP "ERROR_INVALID_SIGNAL_GROUP", "the signal group handle is not valid", "a destroyed group", "keep signal groups alive while they are waited on";
    0x1025 ERROR_INVALID_RUNTIME_STATE "ERROR_INVALID_RUNTIME_STATE", "the runtime is not in a state that allows the call", "a call from a callback that forbids it", "call it from elsewhere";
    0x1026 ERROR_FATAL "ERROR_FATAL", "the queue met an error that ends the process", "a hardware error without recovery", "look at the kernel log";
    0x2000 EXT_ERROR_INVALID_PROGRAM "EXT_ERROR_INVALID_PROGRAM", "the HSAIL program handle is not valid", "the finalizer extension is history", "use code objects";
    0x2001 EXT_ERROR_INVALID_MODULE "EXT_ERROR_INVALID_MODULE", "the HSAIL module is not valid", "the finalizer extension is history", "use code objects";
    0x2002 EXT_ERROR_INCOMPATIBLE_MODULE "EXT_ERROR_INCOMPATIBLE_MODULE", "the HSAIL module does not fit the program", "the finalizer extension is history", "use code objects";
    0x2003 EXT_ERROR_MODULE_ALREADY_INCLUDED "EXT_ERROR_MODULE_ALREADY_INCLUDED", "the HSAIL module is already in the program", "the finalizer extension is history", "use code objects";
    0x2004 EXT_ERROR_SYMBOL_MISMATCH "EXT_ERROR_SYMBOL_MISMATCH", "HSAIL modules declare a symbol differently", "the finalizer extension is history", "use code objects";
    0x2005 EXT_ERROR_FINALIZATION_FAILED "EXT_ERROR_FINALIZATION_FAILED", "HSAIL could not be finalised", "the finalizer extension is history", "use code objects";
    0x2006 EXT_ERROR_DIRECTIVE_MISMATCH "EXT_ERROR_DIRECTIVE_MISMATCH", "HSAIL control directives contradict each other", "the finalizer extension is history", "use code objects";
    0x3000 EXT_ERROR_IMAGE_FORMAT_UNSUPPORTED "EXT_ERROR_IMAGE_FORMAT_UNSUPPORTED", "the agent does not support the image format", "", "query the supported formats";
    0x3001 EXT_ERROR_IMAGE_SIZE_UNSUPPORTED "EXT_ERROR_IMAGE_SIZE_UNSUPPORTED", "the agent does not support images of that size", "", "query the size limits";
    0x3002 EXT_ERROR_IMAGE_PITCH_UNSUPPORTED "EXT_ERROR_IMAGE_PITCH_UNSUPPORTED", "the agent does not support that row or slice pitch", "", "let the runtime choose the pitch";
    0x3003 EXT_ERROR_SAMPLER_DESCRIPTOR_UNSUPPORTED "EXT_ERROR_SAMPLER_DESCRIPTOR_UNSUPPORTED", "the agent does not support the sampler", "", "query the supported samplers";
}

impl HsaStatus {
    /// The table's row; `None` for an unknown number.
    #[must_use]
    pub fn info(self) -> Option<&'static StatusInfo> {
        Self::ALL.iter().find(|info| info.status == self)
    }

    /// `HSA_STATUS_…`; `None` for an unknown number.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.info().map(|info| info.name)
    }

    /// The status of a name, in any case, with or without `HSA_STATUS_` and `ERROR_`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let bare = |name: &str| {
            let name = name.to_ascii_uppercase();
            let name = name
                .strip_prefix("HSA_STATUS_")
                .map_or(name.clone(), str::to_owned);
            name.strip_prefix("ERROR_")
                .map_or(name.clone(), str::to_owned)
        };
        let wanted = bare(name);
        Self::ALL
            .iter()
            .find(|info| bare(info.name) == wanted)
            .map(|info| info.status)
    }
}

impl fmt::Display for HsaStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({:#x})", self.0),
            None => write!(f, "unknown HSA status {:#x}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_sorted_and_has_hsa_numbers() {
        assert!(
            HsaStatus::ALL
                .windows(2)
                .all(|pair| pair[0].status < pair[1].status)
        );
        // hsa_ext_amd.h counts its codes in decimal: 40 to 46
        assert_eq!(HsaStatus::ERROR_INVALID_MEMORY_POOL.0, 40);
        assert_eq!(HsaStatus::ERROR_RESOURCE_BUSY.0, 46);
        // the one name out of order in hsa.h
        assert_eq!(HsaStatus::ERROR_INVALID_ISA_NAME.0, 0x1017);
        assert!((0x101a..0x1020).all(|hole| HsaStatus(hole).info().is_none()));
    }

    #[test]
    fn finds_by_any_spelling() {
        for name in [
            "HSA_STATUS_ERROR_MEMORY_FAULT",
            "error_memory_fault",
            "MEMORY_FAULT",
        ] {
            assert_eq!(HsaStatus::by_name(name), Some(HsaStatus(43)));
        }
        assert_eq!(HsaStatus::by_name("nonsense"), None);
        assert_eq!(
            HsaStatus(0x1010).to_string(),
            "HSA_STATUS_ERROR_INVALID_CODE_OBJECT (0x1010)"
        );
        assert_eq!(HsaStatus(0x1234).to_string(), "unknown HSA status 0x1234");
    }
}
