//! What the kernel's interface looks like in memory: ioctl numbers and argument structs of KFD and of the DRM render node.
//!
//! Knows: layouts and numbers, as kfd_ioctl.h, drm.h and amdgpu_drm.h define them. Must not know: who calls, or who
//! answers: the client of a real GPU and the virtual device's system-call side both use this and never see each other.
//!
//! A number is computed from direction, type, number and size of the argument, and compared with the header's value when
//! the crate is compiled, so a struct of a wrong size does not build.
pub mod drm;
pub mod kfd;

/// Who writes the argument of an ioctl (`_IOC_DIR`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The caller (`_IOW`).
    Write,
    /// The kernel (`_IOR`).
    Read,
    /// Both (`_IOWR`).
    ReadWrite,
}

/// `_IOC` of the kernel's generic encoding: size in bits 29:16, direction in 31:30, type in 15:8, number in 7:0.
#[must_use]
pub const fn request(direction: Direction, kind: u8, number: u8, size: usize) -> u32 {
    let direction = match direction {
        Direction::Write => 1,
        Direction::Read => 2,
        Direction::ReadWrite => 3,
    };
    assert!(size < 1 << 14, "an argument has 14 bits of size");
    direction << 30 | (size as u32) << 16 | (kind as u32) << 8 | number as u32
}

/// The type of an ioctl (`_IOC_TYPE`): `K` for KFD, `d` for DRM.
#[must_use]
pub const fn kind(request: u32) -> u8 {
    (request >> 8) as u8
}

/// The number of an ioctl (`_IOC_NR`).
#[must_use]
pub const fn number(request: u32) -> u8 {
    request as u8
}

/// Bytes of the argument (`_IOC_SIZE`).
#[must_use]
pub const fn size(request: u32) -> usize {
    (request >> 16 & 0x3fff) as usize
}

/// The argument of an ioctl: a struct of plain numbers.
pub trait Ioctl: Copy + Default {
    /// The request.
    const REQUEST: u32;
    /// Its name in the header.
    const NAME: &'static str;
}

/// Declares the ioctls of argument structs: direction, number, name and the header's value.
macro_rules! ioctls {
    ($kind:literal: $($argument:ident $direction:ident $number:literal $name:literal = $value:literal;)*) => {
        $(
            impl $crate::runtime::uapi::Ioctl for $argument {
                const REQUEST: u32 = $crate::runtime::uapi::request(
                    $crate::runtime::uapi::Direction::$direction,
                    $kind,
                    $number,
                    size_of::<$argument>(),
                );
                const NAME: &'static str = $name;
            }
            const _: () = assert!(<$argument as $crate::runtime::uapi::Ioctl>::REQUEST == $value);
        )*

        /// Every ioctl of this file: number and name.
        pub const IOCTLS: &[(u8, &str)] = &[$(($number, $name)),*];
    };
}
pub(crate) use ioctls;

/// The header's name of a request's number; `None` for one that is not listed here.
#[must_use]
pub fn name(request: u32) -> Option<&'static str> {
    let list = match kind(request) {
        b'K' => kfd::IOCTLS,
        b'd' => drm::IOCTLS,
        _ => return None,
    };
    list.iter()
        .find(|&&(listed, _)| listed == number(request))
        .map(|&(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_comes_apart_again() {
        let get_version = kfd::GetVersion::REQUEST;
        assert_eq!(get_version, 0x8008_4b01);
        assert_eq!(
            (kind(get_version), number(get_version), size(get_version)),
            (b'K', 1, 8)
        );
        assert_eq!(name(get_version), Some("AMDKFD_IOC_GET_VERSION"));
        assert_eq!(name(drm::Version::REQUEST), Some("DRM_IOCTL_VERSION"));
        assert_eq!(name(0x5401), None);
    }

    #[test]
    fn numbers_are_listed_once() {
        for list in [kfd::IOCTLS, drm::IOCTLS] {
            let mut numbers: Vec<u8> = list.iter().map(|&(number, _)| number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), list.len());
        }
    }
}
