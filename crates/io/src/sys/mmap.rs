//! Mapped memory with checked access: rings, maps and pools that the kernel or another process writes, too.

use super::pod::Pod;
use rustix::mm::{madvise, mmap, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A type in memory that other processes or the kernel write at any time.
///
/// # Safety
/// Every byte of it lies in an atomic integer, and any bit pattern is a value.
pub unsafe trait Shared: 'static {}

// SAFETY: atomic words without padding.
unsafe impl Shared for weir_core::steer::Slot {}
// SAFETY: atomic words without padding.
unsafe impl Shared for weir_core::steer::Tally {}
// SAFETY: atomic words without padding.
unsafe impl Shared for weir_core::steer::Bound {}
// SAFETY: atomic words without padding.
unsafe impl Shared for weir_core::steer::FlowBound {}
// SAFETY: atomic words without padding.
unsafe impl Shared for weir_core::quality::Sight {}
// SAFETY: atomic words without padding.
unsafe impl Shared for weir_core::steer::Spill {}

/// A mapping, unmapped when dropped. Other processes may write it at any time, so it is only read and written
/// as atomics or by value.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and access needs `&mut` or atomics.
unsafe impl Send for Mapping {}
// SAFETY: through a shared reference it is accessed as atomics, or read where there is no writer.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of a descriptor from `offset` on, shared with the kernel. A write to a read-only
    /// mapping would fault.
    pub fn of_fd(fd: BorrowedFd<'_>, len: usize, offset: u64, writable: bool) -> io::Result<Mapping> {
        let access = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a mapping at an address of the kernel's choice touches no existing memory.
        Mapping::new(unsafe { mmap(std::ptr::null_mut(), len, access, flags, fd, offset) }?, len)
    }

    /// Maps `len` bytes of a file in memory, which is shared with all processes that map it.
    pub fn of_memory(file: BorrowedFd<'_>, len: usize) -> io::Result<Mapping> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, file, 0) }?;
        Mapping::new(start, len).map(Mapping::in_large_pages)
    }

    /// Maps `len` zero bytes. If `shared`, children of this process see the same memory.
    pub fn anonymous(len: usize, shared: bool) -> io::Result<Mapping> {
        let flags = if shared { MapFlags::SHARED } else { MapFlags::PRIVATE };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, access, flags) }?;
        Mapping::new(start, len).map(Mapping::in_large_pages)
    }

    /// Flow records are read at random. With pages of 4 KiB every look-up would wait for the page table as
    /// well. A kernel without large pages only returns an error.
    fn in_large_pages(self) -> Mapping {
        // SAFETY: advice on a mapping of our own that changes no contents.
        let _ = unsafe { madvise(self.start.as_ptr().cast(), self.len, Advice::LinuxHugepage) };
        self
    }

    fn new(start: *mut c_void, len: usize) -> io::Result<Mapping> {
        let start = NonNull::new(start.cast()).expect("the kernel maps nothing at zero");
        Ok(Mapping { start, len })
    }

    /// Allocates all of the memory now, instead of page by page at first use. A kernel that cannot (before
    /// Linux 5.14) leaves it unallocated.
    pub fn populate(&self) {
        // SAFETY: advice on a mapping of our own that changes no contents.
        let _ = unsafe { madvise(self.start.as_ptr().cast(), self.len, Advice::LinuxPopulateWrite) };
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }
    /// True for a length of 0, which cannot be mapped.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address of a value of `size` bytes at `offset`. Panics if it is not inside or not aligned.
    fn at(&self, offset: usize, size: usize, align: usize) -> *mut u8 {
        assert!(offset.checked_add(size).is_some_and(|end| end <= self.len), "{offset} of {}", self.len);
        assert!(offset % align == 0, "{offset} is not aligned to {align}");
        // SAFETY: checked above to be inside the mapping.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// The 32-bit counter at `offset`.
    pub fn atomic_u32(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: inside the mapping and aligned (`at`; mappings start at a page), alive as long as `self`.
        // All access is atomic or by single loads and stores.
        unsafe { AtomicU32::from_ptr(self.at(offset, 4, 4).cast()) }
    }

    /// The 64-bit counter at `offset`.
    pub fn atomic_u64(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as for `atomic_u32`.
        unsafe { AtomicU64::from_ptr(self.at(offset, 8, 8).cast()) }
    }

    /// Reads the value at `offset`, which must have no writer now.
    pub fn get<T: Pod>(&self, offset: usize) -> T {
        // SAFETY: inside and aligned (`at`), any bit pattern is a value (`Pod`). Volatile, because the kernel
        // wrote it.
        unsafe { self.at(offset, size_of::<T>(), align_of::<T>()).cast::<T>().read_volatile() }
    }

    /// Writes the value at `offset`, which must have no reader now.
    pub fn set<T: Pod>(&mut self, offset: usize, value: T) {
        // SAFETY: as for `get`; `&mut self` excludes other users in this process.
        unsafe { self.at(offset, size_of::<T>(), align_of::<T>()).cast::<T>().write_volatile(value) }
    }

    /// Bytes from `offset` on.
    ///
    /// # Safety
    /// The bytes must have no writer while the result lives.
    pub unsafe fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        // SAFETY: inside the mapping (`at`), which lives as long as the borrow. The caller guarantees that
        // there is no writer.
        unsafe { std::slice::from_raw_parts(self.at(offset, len, 1), len) }
    }

    /// Gives the memory away for the life of the process. It has no other writer: it is private, or other
    /// processes only read copies of it ([`Mapping::get`]).
    pub fn leak<T: Pod>(self) -> &'static mut [T] {
        let all = ManuallyDrop::new(self);
        // SAFETY: never unmapped; the only reference, since `self` was owned.
        unsafe { all.all() }
    }

    /// All of the memory.
    ///
    /// # Safety
    /// It is never unmapped, and no other code of this process refers to it or uses it from now on.
    pub unsafe fn all<T: Pod>(&self) -> &'static mut [T] {
        let (start, count) = self.values();
        // SAFETY: valid for `count` values and aligned (`values`). The caller guarantees the rest. Any bit
        // pattern is a value.
        unsafe { std::slice::from_raw_parts_mut(start, count) }
    }

    /// The memory as values that all processes with the mapping read and write, for the life of the process.
    pub fn share<T: Shared>(self) -> &'static [T] {
        let (start, count) = ManuallyDrop::new(self).values();
        // SAFETY: valid for `count` values and aligned (`values`), never unmapped. The pointer is the
        // mapping's own, which may be written. Every byte of a value lies in an atomic (`Shared`), so it may
        // change behind a shared reference.
        unsafe { std::slice::from_raw_parts(start, count) }
    }

    /// Address of the values that fit, and their number.
    fn values<T>(&self) -> (*mut T, usize) {
        let count = self.len / size_of::<T>();
        let start = self.at(0, count * size_of::<T>(), 1).cast::<T>();
        assert!(start.is_aligned(), "a page is not aligned enough");
        (start, count)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping, and no reference outlives `self`.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    /// A mapping whose memory is the heap's, which Miri knows.
    fn of_heap(len: usize) -> ManuallyDrop<Mapping> {
        let memory: &'static mut [u64] = vec![0u64; 4 * len.div_ceil(32)].leak();
        let start = memory.as_mut_ptr();
        ManuallyDrop::new(Mapping { start: NonNull::new(start.cast()).unwrap(), len })
    }

    /// For Miri as well: what is shared is written through shared references, by several at once.
    #[test]
    fn shared_values_are_written_by_all() {
        let slack = align_of::<weir_core::steer::Slot>();
        let len = 4 * size_of::<weir_core::steer::Slot>();
        let mut mapping = ManuallyDrop::into_inner(of_heap(len + slack));
        let before = mapping.start.as_ptr().align_offset(slack);
        // SAFETY: `slack` bytes more than are used.
        mapping.start = unsafe { mapping.start.add(before) };
        mapping.len = len;
        let slots: &'static [weir_core::steer::Slot] = mapping.share();
        assert_eq!(slots.len(), 4);
        let open = |tag: u32| slots[1].open(tag, 0, 1, 1, 1, 9, 9, 5, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| (1..20).for_each(open));
            scope.spawn(|| (0..20).for_each(|_| slots[1].take()));
            scope.spawn(|| (0..20).for_each(|_| slots[2].has_come()));
        });
        open(20);
        assert_eq!(slots[1].tag.load(Ordering::Relaxed), 20);
    }

    #[test]
    fn access_by_value_and_as_atomics() {
        let mut map = Mapping::anonymous(4096, false).unwrap();
        map.set(8, 0x0102_0304_0506_0708u64);
        assert_eq!(map.atomic_u64(8).load(Ordering::Relaxed), map.get::<u64>(8));
        assert_eq!(map.get::<[u8; 2]>(8), [8, 7]);
        let all: &mut [u64] = map.leak();
        assert_eq!((all.len(), all[1]), (512, 0x0102_0304_0506_0708));
    }

    #[test]
    fn memory_is_there_once_it_is_populated() {
        let anonymous_kb = || {
            let status = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
        };
        let map = Mapping::anonymous(64 << 20, false).unwrap();
        let before = anonymous_kb();
        map.populate();
        // Other tests of this process allocate and free memory, too.
        let kernel = crate::sys::process::kernel().unwrap();
        assert!(kernel < (5, 14) || anonymous_kb() > before + (32 << 10));
    }

    #[test]
    #[should_panic(expected = "4093 of 4096")]
    fn access_outside_panics() {
        Mapping::anonymous(4096, false).unwrap().get::<[u8; 4]>(4093);
    }

    #[test]
    #[should_panic(expected = "not aligned")]
    fn unaligned_access_panics() {
        Mapping::anonymous(4096, false).unwrap().atomic_u32(2);
    }
}
