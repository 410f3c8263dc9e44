//! The consuming side of the ring of segments (`kernel/bpf/ringbuf.c`).
//!
//! The data area is mapped twice in a row, so a record never wraps. A record starts with a length
//! whose top two bits say "still being written" and "discarded", is padded to eight bytes, and
//! becomes visible when the producer's index passes it.

use super::abi::{
    Metadata, SegmentHeader, SEGMENT_BYTES, SEGMENT_GSO, SEGMENT_HEAD, SEGMENT_MARK, SEGMENT_PRIORITY,
    SEGMENT_QUEUE, SEGMENT_SIZE,
};
use super::attach::Hook;
use crate::sys::mmap::Mapping;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use weir_core::time::{Duration, Time};

const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER: usize = 8;
/// Fates of their own in a record (`FATE_COUNTED`, `FATE_EARLIER`).
const COUNTED: u8 = 3;
const EARLIER: u8 = 4;

/// Fate of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The engine has it: it went no further.
    Taken,
    /// It passed as it came.
    Passed,
    /// It passed with its ACK field set back to what the sender may know.
    SetBack,
}

/// A segment that a hook shows or gives to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenSegment<'a> {
    /// Time at which the hook showed it.
    pub time: Time,
    /// Time at which the hook saw it. A SYN is kept until it is answered, so this is earlier than `time`.
    pub seen: Time,
    /// Length of the frame in bytes, from an Ethernet header on, with all tags. A giant one is as long as it
    /// is.
    pub len: usize,
    /// Hook that saw it.
    pub hook: Hook,
    /// Fate of the segment.
    pub fate: Fate,
    /// Payload of each of the segments that a giant one stands for; 0 for a single one.
    pub gso_size: u16,
    /// It was taken, and its flow's slot has counted it ([`weir_core::steer::Slot::take`]).
    pub counted: bool,
    /// First bytes as they came: all of them if it was taken, the headers otherwise.
    pub head: &'a [u8],
    /// Metadata, if it was taken and there is any.
    pub metadata: Option<Metadata>,
}

/// The mapped ring. One process consumes it at a time; the next goes on where it stopped.
#[derive(Debug)]
pub struct Segments {
    fd: OwnedFd,
    /// One page: the consumer's index.
    ours: Mapping,
    /// One page with the producer's index, then the data, twice.
    theirs: Mapping,
    page: usize,
    size: usize,
}

impl Segments {
    /// Maps the ring buffer `fd` of `size` bytes.
    pub(super) fn map(fd: BorrowedFd<'_>, size: usize) -> io::Result<Segments> {
        let page = rustix::param::page_size();
        let ours = Mapping::of_fd(fd.as_fd(), page, 0, true)?;
        let theirs = Mapping::of_fd(fd, page + 2 * size, page as u64, false)?;
        Ok(Segments { fd: fd.try_clone_to_owned()?, ours, theirs, page, size })
    }

    /// Returns whether there is nothing at all, not even a record that is still being written.
    pub fn is_empty(&self) -> bool {
        let produced = self.theirs.atomic_u64(0).load(Ordering::Acquire);
        self.ours.atomic_u64(0).load(Ordering::Relaxed) >= produced
    }

    /// Gives the oldest segments, at most `most`, to `each`, and says how many there were. Stops before one
    /// that is still being written.
    pub fn drain(&mut self, most: usize, mut each: impl FnMut(SeenSegment<'_>)) -> usize {
        let produced = self.theirs.atomic_u64(0).load(Ordering::Acquire);
        let mut at = self.ours.atomic_u64(0).load(Ordering::Relaxed);
        let mut count = 0;
        while count < most && at < produced {
            let place = self.page + (at as usize & (self.size - 1));
            let header = self.theirs.atomic_u32(place).load(Ordering::Acquire);
            if header & BUSY != 0 {
                break;
            }
            let len = (header & !DISCARDED) as usize;
            if header & DISCARDED == 0 && len == SEGMENT_SIZE {
                // SAFETY: the kernel writes a committed record again only after the consumer's index has
                // passed it, which happens below.
                let record = unsafe { self.theirs.bytes(place + HEADER, len) };
                each(segment(record));
                count += 1;
            }
            at += (len + HEADER).next_multiple_of(8) as u64;
            self.ours.atomic_u64(0).store(at, Ordering::Release);
        }
        count
    }
}

/// Panics if the record is shorter than [`SEGMENT_SIZE`].
fn segment(record: &[u8]) -> SeenSegment<'_> {
    let header: SegmentHeader = crate::sys::pod::read(record).expect("as long as a record");
    let head_len = usize::from(u16::from_ne_bytes(header.head_len)).min(SEGMENT_HEAD);
    let hook = if header.port == 0 { Hook::Egress } else { Hook::Ingress };
    let fate = match header.fate {
        0 | COUNTED => Fate::Taken,
        1 | EARLIER => Fate::Passed,
        _ => Fate::SetBack,
    };
    let counted = header.fate == COUNTED;
    let gso_size = u16::from_ne_bytes([record[SEGMENT_GSO], record[SEGMENT_GSO + 1]]);
    let head = &record[SEGMENT_BYTES..SEGMENT_BYTES + head_len];
    let metadata = if fate == Fate::Taken { metadata(record) } else { None };
    let (time, len) = (Time::from_nanos(header.time), header.len as usize);
    let seen = if header.fate == EARLIER {
        time.saturating_sub(Duration::from_micros(word(record, SEGMENT_MARK).into()))
    } else {
        time
    };
    SeenSegment { time, seen, len, hook, fate, gso_size, counted, head, metadata }
}

fn word(record: &[u8], at: usize) -> u32 {
    crate::sys::pod::read(&record[at..]).expect("as long as a record")
}

fn metadata(record: &[u8]) -> Option<Metadata> {
    let (mark, priority) = (word(record, SEGMENT_MARK), word(record, SEGMENT_PRIORITY));
    let queue = u16::from_ne_bytes([record[SEGMENT_QUEUE], record[SEGMENT_QUEUE + 1]]);
    let some = mark != 0 || priority != 0 || queue != 0;
    some.then_some(Metadata { number: 1, mark, priority, queue, ..Metadata::default() })
}

impl AsFd for Segments {
    /// Readable once a segment was submitted while the engine slept ([`super::Hooks::sleep`]).
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
