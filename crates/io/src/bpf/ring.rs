//! The consuming side of a BPF ring buffer (`kernel/bpf/ringbuf.c`).
//!
//! The data area is mapped twice in a row, so a record never wraps. A record starts with a length
//! whose top two bits say "still being written" and "discarded", is padded to eight bytes, and
//! becomes visible when the producer's index passes it.

use super::abi::Observation;
use crate::sys::mmap::Mapping;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER: usize = 8;

/// A mapped ring of observations.
#[derive(Debug)]
pub(crate) struct ObservationRing {
    /// One page: the consumer's index.
    ours: Mapping,
    /// One page with the producer's index, then the data, twice.
    theirs: Mapping,
    page: usize,
    size: usize,
}

impl ObservationRing {
    /// Maps the ring buffer `fd` of `size` bytes.
    pub fn map(fd: BorrowedFd<'_>, size: usize) -> io::Result<ObservationRing> {
        // SAFETY: a number of the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let ours = Mapping::of_fd(fd.as_fd(), page, 0, true)?;
        let theirs = Mapping::of_fd(fd, page + 2 * size, page as i64, false)?;
        Ok(ObservationRing { ours, theirs, page, size })
    }

    /// The oldest record. `None` if there is none or it is still being written.
    pub fn pop(&mut self) -> Option<Observation> {
        loop {
            let at = self.ours.atomic_u64(0).load(Ordering::Relaxed);
            if at >= self.theirs.atomic_u64(0).load(Ordering::Acquire) {
                return None;
            }
            let place = self.page + (at as usize & (self.size - 1));
            let header = self.theirs.atomic_u32(place).load(Ordering::Acquire);
            if header & BUSY != 0 {
                return None;
            }
            let len = (header & !DISCARDED) as usize;
            let whole = header & DISCARDED == 0 && len == size_of::<Observation>();
            let record = whole.then(|| self.theirs.get(place + HEADER));
            let next = at + (len + HEADER).next_multiple_of(8) as u64;
            self.ours.atomic_u64(0).store(next, Ordering::Release);
            if record.is_some() {
                return record;
            }
        }
    }
}
