//! Which paths show the device, and where they lead instead.
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libc::c_char;
use rocr::runtime::emulated::kernel::{DeviceFile, FIRST_RENDER_MINOR, VirtualKernel};

use crate::device;

/// Variable that names the folder of the written files.
const TREE: &str = "ROCR_VIRTUAL_TREE";

/// Prefixes of paths that lead to the written files.
const PREFIXES: [&[u8]; 8] = [
    b"/sys/devices/virtual/kfd",
    b"/sys/class/kfd",
    b"/sys/module/amdgpu",
    b"/sys/dev/char/226:",
    b"/sys/class/drm",
    b"/dev/dri",
    b"/dev/kfd",
    b"/proc/modules",
];

/// What a path means.
pub(crate) enum Target {
    /// Nothing of ours.
    Other,
    /// A device file, and the file that stands for it where it is not opened.
    Device(DeviceFile, CString),
    /// A written file.
    File(CString),
}

/// What `path` means. Cheap for paths that are not ours, and without allocation.
///
/// # Safety
/// `path` is null or a C string.
pub(crate) unsafe fn target(path: *const c_char) -> Target {
    if path.is_null() {
        return Target::Other;
    }
    // SAFETY: as the caller promised.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    let ours = PREFIXES.iter().any(|prefix| {
        path.strip_prefix(*prefix)
            .is_some_and(|rest| prefix.ends_with(b":") || matches!(rest.first(), None | Some(b'/')))
    });
    if !ours {
        return Target::Other;
    }
    let Some(root) = root() else {
        return Target::Other;
    };
    let mut bytes = root.as_os_str().as_bytes().to_vec();
    bytes.extend_from_slice(path);
    let Ok(written) = CString::new(bytes) else {
        return Target::Other;
    };
    let device = match path {
        b"/dev/kfd" => Some(DeviceFile::Kfd),
        _ => path
            .strip_prefix(b"/dev/dri/renderD")
            .and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u32>().ok())
            .and_then(|minor| minor.checked_sub(FIRST_RENDER_MINOR))
            .map(|number| DeviceFile::Render(number as usize)),
    };
    match device {
        // One that is not there leads to a file that is not there.
        Some(DeviceFile::Render(number)) if number >= device::models().len() => {
            Target::File(written)
        }
        Some(device) => Target::Device(device, written),
        None => Target::File(written),
    }
}

/// The folder of the written files: that of `rocr run`, or one of this process.
fn root() -> Option<&'static Path> {
    static ROOT: OnceLock<Option<PathBuf>> = OnceLock::new();
    ROOT.get_or_init(|| {
        if let Some(given) = std::env::var_os(TREE).filter(|given| !given.is_empty()) {
            return Some(PathBuf::from(given));
        }
        own_tree()
    })
    .as_deref()
}

/// Writes the files to a folder of this process, which is removed when it ends.
fn own_tree() -> Option<PathBuf> {
    let places = [std::env::temp_dir(), PathBuf::from("/dev/shm")];
    let folder = places.into_iter().find_map(|place| {
        let mut template = place.join("rocr-run-XXXXXX").into_os_string().into_vec();
        template.push(0);
        // SAFETY: a C string that ends with six X, which is changed in place.
        let made = unsafe { libc::mkdtemp(template.as_mut_ptr().cast()) };
        template.pop();
        (!made.is_null()).then(|| PathBuf::from(OsStr::from_bytes(&template)))
    })?;
    if VirtualKernel::write_tree(device::models(), &folder).is_err() {
        let _partly = std::fs::remove_dir_all(&folder);
        return None;
    }
    OWN.get_or_init(|| (std::process::id(), folder.clone()));
    // SAFETY: the function takes no arguments and may be called at any time.
    unsafe { libc::atexit(remove_own_tree) };
    Some(folder)
}

/// Who wrote a folder, and where.
static OWN: OnceLock<(u32, PathBuf)> = OnceLock::new();

extern "C" fn remove_own_tree() {
    if let Some((process, folder)) = OWN.get()
        && *process == std::process::id()
    {
        let _inside = crate::Inside::enter();
        // What cannot be removed stays.
        let _removed = std::fs::remove_dir_all(folder);
    }
}
