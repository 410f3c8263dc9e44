//! Arithmetic of records in which traffic is charged by time (the generic cell rate algorithm, ITU-T I.371):
//! a record says when what it has let pass is paid for.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Fraction bits of nanoseconds per byte: 100 Gb/s are exact to a millionth.
pub(super) const FRACTION: u32 = 20;
/// Room of a class's virtual queue in bytes, and beside that as a part of what is served in a second.
pub(super) const ROOM: u64 = 64_000;
const ROOM_OF_SECOND: u64 = 20;
/// Odd number that spreads what differs in the last digits (Knuth, vol. 3, 6.4).
pub(super) const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Packets that fit any virtual queue of a flow.
const PACKETS: u64 = 4;

/// Nanoseconds that this many bytes take.
pub(super) const fn served(bytes: u64, per_byte: u64) -> u64 {
    bytes.wrapping_mul(per_byte) >> FRACTION
}

/// Moves a record by what takes so long.
pub(super) fn charge(due: &AtomicU64, time: u64, now: u64) {
    let old = due.load(Relaxed);
    // Who comes at the same moment on another processor has moved it to now or later.
    if due.compare_exchange(old, old.max(now) + time, Relaxed, Relaxed).is_err() {
        due.fetch_add(time, Relaxed);
    }
}

/// Returns whether there is room in a virtual queue of this depth, in nanoseconds, for what takes so long.
pub(super) fn fits(due: &AtomicU64, depth: u64, time: u64, now: u64) -> bool {
    let wait = due.load(Relaxed).saturating_sub(now);
    wait + time <= depth.max(PACKETS * time)
}

/// A time in units of 2^23 ns, which are 8.4 ms.
pub(super) const fn unit(now: u64) -> u32 {
    (now >> 23) as u32
}

/// Room of a class's virtual queue of this rate, in nanoseconds.
pub(super) fn room(per_byte: u64) -> u64 {
    served(ROOM, per_byte) + 1_000_000_000 / ROOM_OF_SECOND
}

/// Returns whether there is room for `bytes` in these `quarters` of the room of a class's queue of this rate.
pub(super) fn has_room(due: &AtomicU64, per_byte: u64, quarters: u64, bytes: u64, now: u64) -> bool {
    let wait = due.load(Relaxed).saturating_sub(now);
    // However long it is, a packet finds room where nothing waits.
    wait == 0 || wait + served(bytes, per_byte) <= room(per_byte) / 4 * quarters
}
