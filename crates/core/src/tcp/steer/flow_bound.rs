//! The bound of a flow that has a rate of its own: no second has more than 1.15 times the rate and 64 kB.
//!
//! A flow in slow start sends each round trip's bytes at once. A virtual queue that is no longer than the law
//! allows would drop them, so a flow is held to the law as it is written: its bytes in the last second are
//! counted, in parts of a fourteenth of it.

use super::virtual_queue::VirtualQueue;
use crate::base::rate::Rate;
use crate::base::time::Duration;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Beyond the rate, in hundredths of it, and bytes beside that.
const BEYOND: u64 = 15;
const MORE: u64 = 64_000;
/// Parts that are counted. Any second lies in so many of them.
const PARTS: u32 = 15;
/// A part is 2^16 units of 2^20 ns, divided by this: 72.03 ms.
const OF_PART: u64 = 954;
/// Bytes that a part counts at most of packets that come as one.
const MOST: u64 = 1 << 30;

/// Bytes that have passed of a flow, by parts of the last second, and its virtual queue. They are two lines
/// of memory that hooks and gateway share.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct FlowBound {
    /// Bytes of each part, by its number modulo [`PARTS`].
    parts: [AtomicU32; PARTS as usize],
    /// Number of the newest part.
    newest: AtomicU32,
    queue: VirtualQueue,
}

const _: () = assert!(core::mem::size_of::<FlowBound>() == 128);

/// Terms of the bound that each flow of a class has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimit {
    /// The most that a flow may send.
    pub rate: Rate,
    /// Time at the rate that it may be ahead.
    pub ahead: Duration,
    /// Bytes that it may send at once beside that.
    pub burst: u32,
}

impl FlowLimit {
    /// Bytes that any second may have.
    pub fn most(&self) -> u64 {
        let second = self.rate.bytes_in(Duration::from_secs(1));
        second + second / 100 * BEYOND + MORE + self.rate.bytes_in(self.ahead) + u64::from(self.burst)
    }
}

fn part(now: u64) -> u32 {
    (((now >> 20) * OF_PART) >> 16) as u32
}

impl FlowBound {
    /// The record is another flow's, of which nothing has passed.
    pub fn begin(&self) {
        self.forget();
        self.queue.begin();
    }

    /// Nothing of the flow has passed in the last second.
    pub fn forget(&self) {
        self.parts.iter().for_each(|part| part.store(0, Relaxed));
    }

    /// The flow's virtual queue, and the account of its sender.
    pub fn queue(&self) -> &VirtualQueue {
        &self.queue
    }

    /// Begins a part if it is time. Returns the newest.
    fn newest(&self, now: u64) -> u32 {
        let (part, newest) = (part(now), self.newest.load(Relaxed));
        let over = part.wrapping_sub(newest);
        // On another processor it may be a moment later.
        if over == 0 || over > u32::MAX / 2 {
            return newest;
        }
        if self.newest.compare_exchange(newest, part, Relaxed, Relaxed).is_ok() {
            (0..over.min(PARTS)).for_each(|n| self.of(part.wrapping_sub(n)).store(0, Relaxed));
        }
        part
    }

    fn of(&self, part: u32) -> &AtomicU32 {
        &self.parts[(part % PARTS) as usize]
    }

    /// Returns whether so many bytes may pass, where any second may have `most`.
    pub(super) fn has_room(&self, most: u64, bytes: u64, now: u64) -> bool {
        self.newest(now);
        let passed: u64 = self.parts.iter().map(|part| u64::from(part.load(Relaxed))).sum();
        // However long it is, a packet passes that is alone.
        passed == 0 || passed + bytes <= most
    }

    /// Counts bytes that pass where there was room a moment ago.
    pub(super) fn charge(&self, bytes: u64) {
        self.of(self.newest.load(Relaxed)).fetch_add(bytes.min(MOST) as u32, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: FlowLimit = FlowLimit { rate: Rate::mbit(8), ahead: Duration::ZERO, burst: 0 };

    /// Times at which packets of 1,000 bytes pass, of those that come at these.
    fn passed(times: impl Iterator<Item = u64>) -> Vec<u64> {
        let flow = FlowBound::default();
        let passes = |&us: &u64| {
            let now = us * 1_000;
            let passes = flow.has_room(LIMIT.most(), 1_000, now);
            if passes {
                flow.charge(1_000);
            }
            passes
        };
        times.filter(passes).collect()
    }

    /// The most bytes in any second.
    fn most(passed: &[u64]) -> usize {
        let within = |(n, &from)| passed[n..].partition_point(|&us| us < from + 1_000_000);
        passed.iter().enumerate().map(within).max().unwrap_or(0) * 1_000
    }

    #[test]
    fn any_second_is_within_the_law() {
        // 1.15 times a megabyte, and 64 kB.
        assert_eq!(LIMIT.most(), 1_214_000);
        // Twenty times the rate, for ever, on and off each second, and on and off at other times.
        for (on, off) in
            [(1, 0), (1_000_000, 1_000_000), (300_000, 900_000), (72_000, 72_000), (50_000, 1_100_000)]
        {
            let all = passed((0..10_000_000).step_by(50).filter(|us| us % (on + off) < on));
            let most = most(&all);
            assert!((1_000_000..=1_214_000).contains(&most), "{on} {off}: {most}");
        }
    }

    #[test]
    fn what_keeps_to_its_rate_passes() {
        // All of a second at once, each second; 400 kB each 400 ms; evenly.
        for (each, gap) in [(1_000, 1_090_000), (400, 400_000), (1, 1_000)] {
            let times = || (0..10_000_000).step_by(gap).flat_map(|us| std::iter::repeat_n(us, each));
            assert_eq!(passed(times()).len(), times().count(), "{each}");
        }
    }

    #[test]
    fn a_packet_longer_than_the_law_passes_alone() {
        let flow = FlowBound::default();
        assert!(flow.has_room(1_000, 500_000, 0));
        flow.charge(500_000);
        assert!(!flow.has_room(1_000, 1, 1_000_000_000));
        assert!(flow.has_room(1_000, 1, 1_090_000_000));
    }
}
