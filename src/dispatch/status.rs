//! HSA status codes and what they mean.
//!
//! Knows: hsa.h, hsa_ext_amd.h, hsa_ext_finalize.h and hsa_ext_image.h numbers. Must not know: who returns them when.
use std::fmt;

/// `hsa_status_t`; unknown values are kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HsaStatus(pub u32);

macro_rules! statuses {
    ($($name:ident = $code:literal, $text:literal, $meaning:literal;)*) => {
        impl HsaStatus {
            $(#[doc = $meaning] pub const $name: Self = Self($code);)*
            /// Every status that a header names, with the name and a short meaning, in the order of the numbers.
            pub const ALL: &'static [(Self, &'static str, &'static str)] = &[
                $((Self::$name, $text, $meaning),)*
            ];
        }
    };
}

statuses! {
    SUCCESS = 0x0, "HSA_STATUS_SUCCESS", "the call succeeded";
    INFO_BREAK = 0x1, "HSA_STATUS_INFO_BREAK", "a callback asked to stop the iteration";
    INVALID_MEMORY_POOL = 40, "HSA_STATUS_ERROR_INVALID_MEMORY_POOL", "the memory pool is not valid";
    MEMORY_APERTURE_VIOLATION = 41, "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION", "a flat access left the aperture it fell into";
    ILLEGAL_INSTRUCTION = 42, "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION", "a wave met an instruction that does not exist on the agent";
    MEMORY_FAULT = 43, "HSA_STATUS_ERROR_MEMORY_FAULT", "a wave accessed memory that is not mapped on the agent for that access";
    CU_MASK_REDUCED = 44, "HSA_STATUS_CU_MASK_REDUCED", "the compute unit mask took effect with fewer units than asked for";
    OUT_OF_REGISTERS = 45, "HSA_STATUS_ERROR_OUT_OF_REGISTERS", "the kernel needs more registers than the agent has for a workgroup of that size";
    RESOURCE_BUSY = 46, "HSA_STATUS_ERROR_RESOURCE_BUSY", "another user holds the resource";
    ERROR = 0x1000, "HSA_STATUS_ERROR", "an unspecified error";
    INVALID_ARGUMENT = 0x1001, "HSA_STATUS_ERROR_INVALID_ARGUMENT", "an argument is outside its range";
    INVALID_QUEUE_CREATION = 0x1002, "HSA_STATUS_ERROR_INVALID_QUEUE_CREATION", "the agent does not support queues of that type or size";
    INVALID_ALLOCATION = 0x1003, "HSA_STATUS_ERROR_INVALID_ALLOCATION", "the allocation is not possible, at a dispatch: the group segment is too large";
    INVALID_AGENT = 0x1004, "HSA_STATUS_ERROR_INVALID_AGENT", "the agent is not valid";
    INVALID_REGION = 0x1005, "HSA_STATUS_ERROR_INVALID_REGION", "the memory region is not valid";
    INVALID_SIGNAL = 0x1006, "HSA_STATUS_ERROR_INVALID_SIGNAL", "the signal is not valid";
    INVALID_QUEUE = 0x1007, "HSA_STATUS_ERROR_INVALID_QUEUE", "the queue is not valid";
    OUT_OF_RESOURCES = 0x1008, "HSA_STATUS_ERROR_OUT_OF_RESOURCES", "memory, scratch, events or threads are used up, or the driver cannot be opened";
    INVALID_PACKET_FORMAT = 0x1009, "HSA_STATUS_ERROR_INVALID_PACKET_FORMAT", "an AQL packet is malformed or of a type that the queue does not process";
    RESOURCE_FREE = 0x100A, "HSA_STATUS_ERROR_RESOURCE_FREE", "the resource could not be released";
    NOT_INITIALIZED = 0x100B, "HSA_STATUS_ERROR_NOT_INITIALIZED", "the runtime is not initialised";
    REFCOUNT_OVERFLOW = 0x100C, "HSA_STATUS_ERROR_REFCOUNT_OVERFLOW", "the runtime was initialised too often";
    INCOMPATIBLE_ARGUMENTS = 0x100D, "HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS", "arguments do not go together: code for another ISA, or a dispatch with invalid dimensions";
    INVALID_INDEX = 0x100E, "HSA_STATUS_ERROR_INVALID_INDEX", "the index is out of range";
    INVALID_ISA = 0x100F, "HSA_STATUS_ERROR_INVALID_ISA", "the ISA is not valid, at a dispatch: the registers do not fit";
    INVALID_CODE_OBJECT = 0x1010, "HSA_STATUS_ERROR_INVALID_CODE_OBJECT", "the code object is not valid, at a dispatch: the kernel object is";
    INVALID_EXECUTABLE = 0x1011, "HSA_STATUS_ERROR_INVALID_EXECUTABLE", "the executable is not valid";
    FROZEN_EXECUTABLE = 0x1012, "HSA_STATUS_ERROR_FROZEN_EXECUTABLE", "the executable is frozen";
    INVALID_SYMBOL_NAME = 0x1013, "HSA_STATUS_ERROR_INVALID_SYMBOL_NAME", "there is no symbol of that name";
    VARIABLE_ALREADY_DEFINED = 0x1014, "HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED", "the variable is defined already";
    VARIABLE_UNDEFINED = 0x1015, "HSA_STATUS_ERROR_VARIABLE_UNDEFINED", "a symbol that the code needs is defined nowhere";
    EXCEPTION = 0x1016, "HSA_STATUS_ERROR_EXCEPTION", "a wave trapped, aborted or raised a math exception";
    INVALID_ISA_NAME = 0x1017, "HSA_STATUS_ERROR_INVALID_ISA_NAME", "the ISA name is not known";
    INVALID_CODE_SYMBOL = 0x1018, "HSA_STATUS_ERROR_INVALID_CODE_SYMBOL", "the code object symbol is not valid";
    INVALID_EXECUTABLE_SYMBOL = 0x1019, "HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL", "the executable symbol is not valid";
    INVALID_FILE = 0x1020, "HSA_STATUS_ERROR_INVALID_FILE", "the file descriptor is not valid";
    INVALID_CODE_OBJECT_READER = 0x1021, "HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER", "the code object reader is not valid";
    INVALID_CACHE = 0x1022, "HSA_STATUS_ERROR_INVALID_CACHE", "the cache is not valid";
    INVALID_WAVEFRONT = 0x1023, "HSA_STATUS_ERROR_INVALID_WAVEFRONT", "the wavefront is not valid";
    INVALID_SIGNAL_GROUP = 0x1024, "HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP", "the signal group is not valid";
    INVALID_RUNTIME_STATE = 0x1025, "HSA_STATUS_ERROR_INVALID_RUNTIME_STATE", "the runtime is not in the state that the call needs";
    FATAL = 0x1026, "HSA_STATUS_ERROR_FATAL", "the queue met an error that it cannot recover from";
    EXT_INVALID_PROGRAM = 0x2000, "HSA_EXT_STATUS_ERROR_INVALID_PROGRAM", "the HSAIL program is not valid";
    EXT_INVALID_MODULE = 0x2001, "HSA_EXT_STATUS_ERROR_INVALID_MODULE", "the HSAIL module is not valid";
    EXT_INCOMPATIBLE_MODULE = 0x2002, "HSA_EXT_STATUS_ERROR_INCOMPATIBLE_MODULE", "the HSAIL module does not fit the program";
    EXT_MODULE_ALREADY_INCLUDED = 0x2003, "HSA_EXT_STATUS_ERROR_MODULE_ALREADY_INCLUDED", "the HSAIL module is part of the program already";
    EXT_SYMBOL_MISMATCH = 0x2004, "HSA_EXT_STATUS_ERROR_SYMBOL_MISMATCH", "declaration and definition of a symbol differ";
    EXT_FINALIZATION_FAILED = 0x2005, "HSA_EXT_STATUS_ERROR_FINALIZATION_FAILED", "the finalizer failed";
    EXT_DIRECTIVE_MISMATCH = 0x2006, "HSA_EXT_STATUS_ERROR_DIRECTIVE_MISMATCH", "control directives clash";
    EXT_IMAGE_FORMAT_UNSUPPORTED = 0x3000, "HSA_EXT_STATUS_ERROR_IMAGE_FORMAT_UNSUPPORTED", "the image format is not supported";
    EXT_IMAGE_SIZE_UNSUPPORTED = 0x3001, "HSA_EXT_STATUS_ERROR_IMAGE_SIZE_UNSUPPORTED", "the image size is not supported";
    EXT_IMAGE_PITCH_UNSUPPORTED = 0x3002, "HSA_EXT_STATUS_ERROR_IMAGE_PITCH_UNSUPPORTED", "the image pitch is not supported";
    EXT_SAMPLER_DESCRIPTOR_UNSUPPORTED = 0x3003, "HSA_EXT_STATUS_ERROR_SAMPLER_DESCRIPTOR_UNSUPPORTED", "the sampler is not supported";
}

impl HsaStatus {
    /// The header's name, when a header has one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.entry().map(|&(_, name, _)| name)
    }

    /// What it means, in short.
    #[must_use]
    pub fn meaning(self) -> Option<&'static str> {
        self.entry().map(|&(_, _, meaning)| meaning)
    }

    fn entry(self) -> Option<&'static (Self, &'static str, &'static str)> {
        Self::ALL.iter().find(|(status, ..)| *status == self)
    }
}

impl fmt::Display for HsaStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({:#x})", self.0),
            None => write!(f, "hsa_status_t {:#x}", self.0),
        }
    }
}

impl fmt::Debug for HsaStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_has_no_repeats() {
        assert!(HsaStatus::ALL.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(
            HsaStatus(0x2b).name(),
            Some("HSA_STATUS_ERROR_MEMORY_FAULT")
        );
        assert_eq!(
            HsaStatus(0x101a).name(),
            None,
            "the numbering has a hole there"
        );
        assert_eq!(
            HsaStatus(0x1016).to_string(),
            "HSA_STATUS_ERROR_EXCEPTION (0x1016)"
        );
    }
}
