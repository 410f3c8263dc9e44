//! Memory that outlives the engine: flow records that the supervisor can still read when the engine has died
//! or hangs. It outlives the supervisor's program, too, if another one is executed in the same process.

use crate::sys::mmap::Mapping;
use crate::sys::pod::Pod;
use rustix::fs::{fstat, ftruncate, memfd_create, MemfdFlags};
use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;

/// A file in memory with records.
#[derive(Debug)]
pub(super) struct Store {
    /// Name, the same in every version of Weir.
    pub name: String,
    pub file: OwnedFd,
}

impl Store {
    /// Makes one of `len` zero bytes.
    pub fn new(name: &str, len: usize) -> io::Result<Store> {
        let file = memfd_create(name, MemfdFlags::CLOEXEC)?;
        ftruncate(&file, len as u64)?;
        Ok(Store { name: name.to_owned(), file })
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> io::Result<usize> {
        Ok(fstat(&self.file)?.st_size as usize)
    }
}

/// An array of `T` that this process and the children it forks share.
///
/// Each process may take it once, as the only reference of that process. The engine takes it when it starts;
/// the supervisor reads copies of its contents. [`Pod`] ensures that all contents are valid values, both
/// those that a dying engine left and those that a hanging engine may still change.
pub struct Records<T: 'static> {
    /// Never unmapped: a process that takes it has it for good.
    memory: ManuallyDrop<Mapping>,
    is_taken: Cell<bool>,
    of: PhantomData<T>,
}

impl<T: Pod> Records<T> {
    /// Allocates `count` records of zero bytes. Called before the engine is forked.
    pub fn alloc(count: usize) -> io::Result<Records<T>> {
        Records::of(&Store::new("records", Records::<T>::bytes(count))?)
    }

    /// Returns the length of `count` records.
    pub(super) fn bytes(count: usize) -> usize {
        (count * size_of::<T>()).max(1)
    }

    /// Maps the records in a file. Called before the engine is forked.
    pub(super) fn of(store: &Store) -> io::Result<Records<T>> {
        const { assert!(size_of::<T>() % 8 == 0, "records are cleared by words") };
        let memory = ManuallyDrop::new(Mapping::of_memory(store.file.as_fd(), store.len()?)?);
        Ok(Records { memory, is_taken: Cell::new(false), of: PhantomData })
    }

    /// Returns the number of records.
    pub fn count(&self) -> usize {
        self.memory.len() / size_of::<T>()
    }

    /// Takes the records, for the engine. `None` if this process has taken them before; a forked child has
    /// not.
    pub fn take(&self) -> Option<&'static mut [T]> {
        if self.is_taken.replace(true) {
            return None;
        }
        // SAFETY: never unmapped; taken once, and copied only before.
        Some(unsafe { self.memory.all() })
    }

    /// Sets all records to zero bytes, while no engine runs. Does nothing if this process has taken them.
    pub fn clear(&self) {
        let words = (0..self.memory.len() / 8).map(|word| self.memory.atomic_u64(word * 8));
        if !self.is_taken.get() {
            words.for_each(|word| word.store(0, Relaxed));
        }
    }

    /// Copies record number `i`, for the supervisor. Panics if this process has taken the records, or if
    /// there is no record of that number.
    pub fn copy(&self, i: usize) -> T {
        assert!(!self.is_taken.get(), "the records are with the supervisor");
        // Another process may be writing. Any bytes are a valid value (`Pod`).
        self.memory.get(i * size_of::<T>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_once() {
        let records = Records::<u64>::alloc(3).unwrap();
        assert_eq!(records.copy(2), 0);
        records.memory.atomic_u64(16).store(7, Relaxed);
        assert_eq!(records.copy(2), 7);
        records.clear();
        assert_eq!((records.copy(2), records.count()), (0, 3));
        let memory = records.take().unwrap();
        assert_eq!(memory.len(), 3);
        assert!(records.take().is_none());
    }
}
