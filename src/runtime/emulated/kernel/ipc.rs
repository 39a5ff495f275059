//! Memory that another process has exported: libhsakmt's IPC handles.
//!
//! Knows: what a handle holds and how it is followed. Must not know: who passes it on. The ioctls are those of AMD's driver
//! package (numbers 0x80 and 0x81), which libhsakmt 5 uses; the kernel's own driver has dma-buf instead.
//!
//! A process that exports keeps a table in a memfd: a record for each exported buffer says which of its descriptors has the
//! bytes, and where. A handle names process, descriptor of the table, record, and a stamp that the record must have. Whoever
//! imports opens both through `/proc`, which the host allows to processes of the same user.
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{VirtualKernel, errno};
use crate::runtime::driver::{GpuId, MemoryHandle};
use crate::runtime::emulated::files::sparse_file;
use crate::runtime::uapi::kfd as abi;

/// Records of a table.
const RECORDS: u32 = 1 << 14;
const RECORD_BYTES: usize = 40;
const TABLE_BYTES: u64 = RECORDS as u64 * RECORD_BYTES as u64;

/// An exported buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Record {
    /// Tells it from others that were there; 0: none is.
    stamp: u64,
    descriptor: u32,
    flags: u32,
    offset: u64,
    size_bytes: u64,
    gpu: u64,
}

impl Record {
    fn words(self) -> [u64; RECORD_BYTES / 8] {
        let both = u64::from(self.descriptor) | u64::from(self.flags) << 32;
        [self.stamp, both, self.offset, self.size_bytes, self.gpu]
    }

    fn of(words: [u64; RECORD_BYTES / 8]) -> Self {
        Self {
            stamp: words[0],
            descriptor: words[1] as u32,
            flags: (words[1] >> 32) as u32,
            offset: words[2],
            size_bytes: words[3],
            gpu: words[4],
        }
    }
}

#[derive(Debug, Default)]
struct Table {
    file: Option<OwnedFd>,
    /// Records by the memory that they are of.
    used: BTreeMap<MemoryHandle, u32>,
    stamps: u64,
}

/// What the process has exported.
#[derive(Debug, Default)]
pub(super) struct Exports {
    table: Mutex<Table>,
}

fn put(file: &OwnedFd, number: u32, record: Record) -> Result<(), Errno> {
    let bytes: Vec<u8> = record
        .words()
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let at = u64::from(number) * RECORD_BYTES as u64;
    match rustix::io::pwrite(file, &bytes, at)? {
        RECORD_BYTES => Ok(()),
        _ => Err(Errno::IO),
    }
}

/// Opens a descriptor of a process anew.
fn descriptor_of(process: u32, descriptor: u32) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/{process}/fd/{descriptor}");
    // A process that is gone, or a descriptor that never was.
    rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|_| Errno::INVAL)
}

impl VirtualKernel {
    pub(super) fn ipc_export(&self, args: &mut abi::IpcExportHandle) -> Result<(), Errno> {
        let handle = MemoryHandle(args.handle);
        let (agent, offset, size_bytes) = self.device.memory.in_file(handle).ok_or(Errno::INVAL)?;
        let files = self.device.memory.files().ok_or(Errno::INVAL)?;
        let file = files.render.get(agent).ok_or(Errno::INVAL)?;
        let gpu = self.device.gpus.get(agent).ok_or(Errno::INVAL)?.id;
        let mut table = self
            .exports
            .table
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if table.file.is_none() {
            table.file = Some(sparse_file("rocr-ipc", TABLE_BYTES)?);
        }
        let number = match table.used.get(&handle) {
            Some(&number) => number,
            None => {
                let taken: std::collections::BTreeSet<u32> = table.used.values().copied().collect();
                let free = (0..RECORDS).find(|number| !taken.contains(number));
                free.ok_or(Errno::NOMEM)?
            }
        };
        table.used.insert(handle, number);
        table.stamps += 1;
        let stamp = table.stamps << 32 | u64::from(std::process::id()).max(1);
        let Some(file_of_table) = &table.file else {
            return Err(Errno::NOMEM);
        };
        put(
            file_of_table,
            number,
            Record {
                stamp,
                descriptor: file.fd().as_raw_fd() as u32,
                flags: args.flags,
                offset,
                size_bytes,
                gpu: u64::from(gpu.0),
            },
        )?;
        args.share_handle = [
            std::process::id(),
            file_of_table.as_raw_fd() as u32 | number << 16,
            stamp as u32,
            (stamp >> 32) as u32,
        ];
        Ok(())
    }

    pub(super) fn ipc_import(&self, args: &mut abi::IpcImportHandle) -> Result<(), Errno> {
        let [process, table, low, high] = args.share_handle;
        let stamp = u64::from(low) | u64::from(high) << 32;
        let (descriptor, number) = (table & 0xffff, table >> 16);
        if stamp == 0 || number >= RECORDS {
            return Err(Errno::INVAL);
        }
        let table = descriptor_of(process, descriptor)?;
        let mut bytes = [0; RECORD_BYTES];
        let at = u64::from(number) * RECORD_BYTES as u64;
        if rustix::io::pread(&table, &mut bytes, at)? != RECORD_BYTES {
            return Err(Errno::INVAL);
        }
        let mut words = [0; RECORD_BYTES / 8];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().map_err(|_| Errno::INVAL)?);
        }
        let record = Record::of(words);
        if record.stamp != stamp || record.gpu != u64::from(args.gpu_id) {
            return Err(Errno::INVAL);
        }
        let file = descriptor_of(process, record.descriptor)?;
        let memory = self
            .device
            .memory
            .import(
                GpuId(args.gpu_id),
                args.va_addr,
                file,
                record.offset,
                record.size_bytes,
            )
            .map_err(errno)?;
        args.handle = memory.handle.0;
        args.mmap_offset = memory.mmap_offset;
        args.flags = record.flags;
        Ok(())
    }

    /// The memory is about to be freed: its handle leads nowhere any more.
    pub(super) fn ipc_freeing(&self, handle: MemoryHandle) {
        let mut table = self
            .exports
            .table
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = table.used.remove(&handle)
            && let Some(file) = &table.file
        {
            // A record that cannot be written is one that nobody can read either.
            let _cleared = put(file, number, Record::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_from_its_words() {
        let record = Record {
            stamp: 1 << 40 | 7,
            descriptor: 480,
            flags: 0xf000_0001,
            offset: 1 << 41,
            size_bytes: 12 << 12,
            gpu: 0x1001,
        };
        assert_eq!(Record::of(record.words()), record);
    }
}
