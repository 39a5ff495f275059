//! The code objects that ROCr has loaded in this process, as it tells debuggers: a list of load addresses and URIs.
//!
//! Knows: `_amdgpu_r_debug`, whose layout is the dynamic linker's `r_debug` and `link_map` (AMDGPUUsage, "Code Object Loader";
//! URIs: "Loaded Code Object Path Uniform Resource Identifier"). Must not know: what is wanted of the code.
//!
//! Another thread may change the list meanwhile, so everything is read through `/proc/self/mem`, where a pointer that leads
//! nowhere is an error and no crash.
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, PoisonError};

use rocr::loader::{Bytes, CodeObject};

/// Objects of a list that is longer are not looked at.
const MOST_OBJECTS: usize = 1 << 14;
/// Longer names are none.
const MOST_NAME_BYTES: usize = 4096;
/// Larger objects are none.
const MOST_BYTES: u64 = 1 << 32;

/// Fields of `r_debug` and `link_map`, in bytes.
mod layout {
    pub(super) const R_MAP: u64 = 8;
    pub(super) const L_ADDR: u64 = 0;
    pub(super) const L_NAME: u64 = 8;
    pub(super) const L_NEXT: u64 = 24;
}

/// A code object where it was loaded.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    /// Address in the process less address in the object.
    bias: u64,
    uri: String,
    pub(crate) object: Arc<CodeObject>,
}

impl Loaded {
    /// The object's own address of a place in the process, if it lies in one of its segments.
    pub(crate) fn vaddr(&self, address: u64) -> Option<u64> {
        let vaddr = address.checked_sub(self.bias)?;
        self.object
            .segments
            .iter()
            .any(|segment| {
                vaddr >= segment.vaddr && vaddr - segment.vaddr < segment.mem_size.max(1)
            })
            .then_some(vaddr)
    }
}

/// Objects that were parsed before, and are still in the list.
static PARSED: Mutex<Vec<Loaded>> = Mutex::new(Vec::new());

/// The object that holds an address.
pub(crate) fn at(address: u64) -> Option<(Loaded, u64)> {
    let find = |list: &[Loaded]| {
        list.iter()
            .find_map(|loaded| Some((loaded.clone(), loaded.vaddr(address)?)))
    };
    let list = read();
    find(&list)
}

/// The list as it is now.
fn read() -> Vec<Loaded> {
    let mut parsed = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    let now = entries().unwrap_or_default();
    let mut list = Vec::new();
    for (bias, uri) in now {
        let known = parsed
            .iter()
            .find(|loaded| loaded.bias == bias && loaded.uri == uri);
        let loaded = match known {
            Some(loaded) => Some(loaded.clone()),
            None => parse(&uri).map(|object| Loaded { bias, uri, object }),
        };
        list.extend(loaded);
    }
    parsed.clone_from(&list);
    list
}

/// Load address and URI of each entry.
fn entries() -> Option<Vec<(u64, String)>> {
    // SAFETY: the name is a C string; nothing is called.
    let debug = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_amdgpu_r_debug".as_ptr()) };
    let debug = if debug.is_null() {
        crate::hsa::symbol(c"_amdgpu_r_debug")
    } else {
        debug
    };
    if debug.is_null() {
        return None;
    }
    let memory = File::open("/proc/self/mem").ok()?;
    let word = |address: u64| {
        let mut bytes = [0; 8];
        memory.read_exact_at(&mut bytes, address).ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    let mut list = Vec::new();
    let mut entry = word(debug.expose_provenance() as u64 + layout::R_MAP)?;
    while entry != 0 && list.len() < MOST_OBJECTS {
        let bias = word(entry + layout::L_ADDR)?;
        list.push((bias, text(&memory, word(entry + layout::L_NAME)?)?));
        entry = word(entry + layout::L_NEXT)?;
    }
    Some(list)
}

/// A C string of the process.
fn text(memory: &File, address: u64) -> Option<String> {
    let mut bytes = Vec::new();
    let mut piece = [0; 64];
    while bytes.len() < MOST_NAME_BYTES {
        let read = memory
            .read_at(&mut piece, address + bytes.len() as u64)
            .ok()
            .filter(|&read| read > 0)?;
        let piece = piece.get(..read)?;
        if let Some(end) = piece.iter().position(|&byte| byte == 0) {
            bytes.extend_from_slice(piece.get(..end)?);
            return String::from_utf8(bytes).ok();
        }
        bytes.extend_from_slice(piece);
    }
    None
}

/// The code object behind a URI: `file://PATH#offset=N&size=N` or `memory://PROCESS#offset=N&size=N`.
fn parse(uri: &str) -> Option<Arc<CodeObject>> {
    let (place, fragment) = uri.split_once('#').unwrap_or((uri, ""));
    let number = |name: &str| {
        let value = fragment
            .split('&')
            .find_map(|part| part.strip_prefix(name)?.strip_prefix('='))?;
        match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => value.parse().ok(),
        }
    };
    let path = match place.split_once("://")? {
        ("file", path) => decode(path)?,
        ("memory", process) if process.parse() == Ok(std::process::id()) => {
            String::from("/proc/self/mem")
        }
        _ => return None,
    };
    let file = File::open(&path).ok()?;
    let offset = number("offset").unwrap_or(0);
    let size = match number("size") {
        Some(size) => size,
        None => file.metadata().ok()?.len().checked_sub(offset)?,
    };
    if size > MOST_BYTES {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(Arc::new(CodeObject::parse(Bytes::from(bytes)).ok()?))
}

/// A path without its percent signs.
fn decode(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}
