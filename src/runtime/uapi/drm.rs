//! The DRM render node: what libdrm asks of it. Follows the kernel's drm.h and amdgpu_drm.h.
use super::ioctls;

/// DRM_IOCTL_VERSION. Lengths are the buffers' going in and the strings' coming out.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Version {
    /// Major, 3 for amdgpu.
    pub major: i32,
    /// Minor.
    pub minor: i32,
    /// Patch level.
    pub patch: i32,
    /// Alignment.
    pub pad: u32,
    /// Bytes of the name.
    pub name_len: u64,
    /// Buffer.
    pub name: u64,
    /// Bytes of the date.
    pub date_len: u64,
    /// Buffer.
    pub date: u64,
    /// Bytes of the description.
    pub desc_len: u64,
    /// Buffer.
    pub desc: u64,
}

/// DRM_IOCTL_GET_CAP.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct GetCap {
    /// Which.
    pub capability: u64,
    /// Its value.
    pub value: u64,
}

/// DRM_IOCTL_AMDGPU_INFO.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct AmdgpuInfo {
    /// Buffer for the answer.
    pub return_pointer: u64,
    /// Its bytes.
    pub return_size: u32,
    /// `info_query`.
    pub query: u32,
    /// More of the question.
    pub parameters: [u32; 4],
}

/// `AMDGPU_INFO_*`.
pub mod info_query {
    /// Whether the GPU works: a u32.
    pub const ACCEL_WORKING: u32 = 0x00;
    /// Version of a firmware: 8 bytes.
    pub const FW_VERSION: u32 = 0x0e;
    /// Bytes of VRAM and GTT.
    pub const VRAM_GTT: u32 = 0x14;
    /// Registers.
    pub const READ_MMR_REG: u32 = 0x15;
    /// [`super::DeviceInfo`].
    pub const DEV_INFO: u32 = 0x16;
    /// Sizes and usage of the heaps.
    pub const MEMORY: u32 = 0x19;
}

/// The first 16 words of `drm_amdgpu_info_device`, whose later fields newer kernels add at the end; callers take what
/// there is.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct DeviceInfo {
    /// PCI device.
    pub device_id: u32,
    /// Revision of the chip.
    pub chip_rev: u32,
    /// Revision as libdrm's table of names counts.
    pub external_rev: u32,
    /// PCI revision.
    pub pci_rev: u32,
    /// `AMDGPU_FAMILY_*`.
    pub family: u32,
    /// Shader engines.
    pub num_shader_engines: u32,
    /// Shader arrays of an engine.
    pub num_shader_arrays_per_engine: u32,
    /// Ticks of the GPU's counter in a millisecond.
    pub gpu_counter_freq: u32,
    /// kHz.
    pub max_engine_clock: u64,
    /// kHz.
    pub max_memory_clock: u64,
    /// Compute units.
    pub cu_active_number: u32,
    /// Always-on mask.
    pub cu_ao_mask: u32,
    /// Active compute units by engine and array.
    pub cu_bitmap: [[u32; 4]; 4],
}

const _: () = {
    assert!(size_of::<DeviceInfo>() == 120);
    assert!(std::mem::offset_of!(DeviceInfo, max_engine_clock) == 32);
};

ioctls! { b'd':
    Version ReadWrite 0x00 "DRM_IOCTL_VERSION" = 0xc040_6400;
    GetCap ReadWrite 0x0c "DRM_IOCTL_GET_CAP" = 0xc010_640c;
    AmdgpuInfo Write 0x45 "DRM_IOCTL_AMDGPU_INFO" = 0x4020_6445;
}
