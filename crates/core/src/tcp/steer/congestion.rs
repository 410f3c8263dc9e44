//! Signals of congestion to senders that are ahead of their share, before their virtual queues are full.
//!
//! In slow start a sender doubles what it sends each round trip, until something is lost or marked. A virtual
//! queue delays nothing: what passes until it is full waits at the next link, and more is under way by then.
//! So the first time that a flow is ahead by 10 ms, and by ten packets at least, one of its packets is
//! dropped, or marked if it is of ECT(0). A flow is told so once. Later it may use all of its queue.
//!
//! Senders of ECN-capable packets hear of congestion by Congestion Experienced in packets that pass (RFC
//! 3168), before any is dropped:
//!
//! - ECT(1), of senders of low latency, low loss and scalable throughput (L4S: RFC 9331): the more waits, the
//!   more packets are marked. RFC 9332 (Appendix A) has such a ramp from 0.8 to 1.2 ms, for a queue that
//!   spaces packets out. A virtual queue does not, and senders that pace send bursts all the same, so the
//!   ramp is from 2 to 12 ms. What takes longer than that by itself has one as long as that is.
//! - ECT(0): a packet beyond three quarters of the depth. Senders take a mark for a loss, and keep their
//!   share only where about as much stands for them as they give up. A queue that delays nothing is as long
//!   after the mark as before, until the sender has slowed down and some has been served. More marks
//!   meanwhile would tell it twice: there is one in 100 ms, as the interval of CoDel (RFC 8289). In a queue
//!   that delays, each packet is marked that has waited for half of the most.

use super::due::SPREAD;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Codepoints of the ECN field (RFC 3168 §5).
const ECT_1: u8 = 1;
const ECT_0: u8 = 2;
/// Time that waits where the ramp begins, and what is beyond that where it ends, in nanoseconds.
const RAMP: u64 = 2_000_000;
const OVER: u64 = 10_000_000;
/// Bits of the number that decides on a packet in the ramp.
const BITS: u32 = 16;
/// Time between two marks of ECT(0), in units of 2^20 ns: 100 ms.
const INTERVAL: u32 = 95;

/// Time that waits, in nanoseconds, and packets that do, when a sender is told for the first time.
const FIRST: u64 = 10_000_000;
const PACKETS: u64 = 10;

/// Time at which the sender of a flow was last told that it is ahead of its share, by its first drop or a
/// mark of ECT(0), in units of 2^20 ns; `NEW` or `READY`: it has not been told.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(super) struct Told(AtomicU32);

/// The flow's queue has not been empty since the flow got it.
const NEW: u32 = 0;
/// It has been empty.
const READY: u32 = 1;

impl Told {
    /// The queue is another flow's.
    pub(super) fn begin(&self) {
        self.0.store(NEW, Relaxed);
    }

    fn tell(&self, now: u64) {
        self.0.store(((now >> 20) as u32).max(READY + 1), Relaxed);
    }

    /// Returns the time that waits when the sender is told for the first time, by a packet that takes `time`,
    /// in a queue in which so much stood when the flow got it. `None`: it has been told.
    fn first(&self, time: u64, start: u64) -> Option<u64> {
        let first = FIRST.max(PACKETS * time);
        match self.0.load(Relaxed) {
            NEW => Some(start + first),
            READY => Some(first),
            _ => None,
        }
    }

    /// Returns whether a packet passes that finds so much waiting, and room or not. If it is to tell the
    /// sender for the first time, and cannot be marked, it does not.
    pub(super) fn lets(&self, ecn: u8, found: Found, has_room: bool, now: u64) -> bool {
        let Some(first) = self.first(found.time, found.start) else { return has_room };
        let lets = has_room && (ecn != 0 || found.wait <= first);
        if !lets {
            self.tell(now);
        } else if found.wait == 0 {
            self.0.store(READY, Relaxed);
        }
        lets
    }

    /// Packets that come as one, and take `time` together, find their flow's queue in the engine, to which so
    /// many packets went since it was empty. Returns whether they are dropped to tell the sender for the
    /// first time.
    pub(super) fn drops(&self, ecn: u8, spilled: u32, packets: u64, time: u64, now: u64) -> bool {
        let (is_first, spilled) = (self.0.load(Relaxed) <= READY, u64::from(spilled));
        let drops = ecn == 0 && is_first && spilled >= PACKETS && spilled * time > FIRST * packets;
        if drops {
            self.tell(now);
        }
        drops
    }

    /// Returns whether a packet with this ECN field is marked in a virtual queue of this depth. `due` is for
    /// [`is_marked`].
    pub(super) fn marks(&self, ecn: u8, found: Found, depth: u64, due: u64, now: u64) -> bool {
        let first = self.first(found.time, found.start);
        let classic = (depth / 4 * 3).min(first.unwrap_or(u64::MAX));
        if !is_marked(ecn, found.wait, found.time, classic, due) {
            return false;
        }
        if ecn != ECT_0 {
            return true;
        }
        let since = ((now >> 20) as u32).wrapping_sub(self.0.load(Relaxed));
        let news = first.is_some() || since >= INTERVAL;
        if news {
            self.tell(now);
        }
        news
    }
}

/// State of its flow's virtual queue that a packet finds, as times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Time until the queue is empty.
    pub(super) wait: u64,
    /// Time that the packet takes.
    pub(super) time: u64,
    /// Time that stood there when the flow got the queue.
    pub(super) start: u64,
}

/// Returns whether a packet with this ECN field is marked, in a queue where `wait` stands before it and it
/// takes `time` itself, all in nanoseconds. ECT(0) is marked beyond `classic`. `due` decides in the ramp: it
/// says when the queue is empty, and its last digits are as good as chance.
pub(crate) fn is_marked(ecn: u8, wait: u64, time: u64, classic: u64, due: u64) -> bool {
    match ecn {
        ECT_1 => {
            let from = time.max(RAMP);
            wait > from && (wait - from) << BITS > time.max(OVER) * (due.wrapping_mul(SPREAD) >> (64 - BITS))
        }
        ECT_0 => wait > classic.max(2 * time),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The part of packets that are marked, of which each finds this wait.
    fn part(ecn: u8, wait: u64, time: u64) -> f64 {
        let marked = (0..10_000).filter(|n| is_marked(ecn, wait, time, 75 * MS, MS + n * 12_345)).count();
        marked as f64 / 10_000.0
    }

    #[test]
    fn l4s_has_a_ramp() {
        for (wait, expected) in [(0, 0.0), (2, 0.0), (3, 0.1), (7, 0.5), (11, 0.9)] {
            let part = part(ECT_1, wait * MS, 100_000);
            assert!((part - expected).abs() < 0.02, "{wait}: {part}");
        }
        assert_eq!(part(ECT_1, 12 * MS + 1, 100_000), 1.0);
    }

    /// A packet of 20 ms is never marked for one that stands before it.
    #[test]
    fn at_low_rates_one_packet_may_wait() {
        assert_eq!(part(ECT_1, 20 * MS, 20 * MS), 0.0);
        assert!((part(ECT_1, 30 * MS, 20 * MS) - 0.5).abs() < 0.02);
        assert_eq!(part(ECT_1, 40 * MS + 1, 20 * MS), 1.0);
        assert_eq!(part(ECT_0, 80 * MS, 40 * MS), 0.0);
    }

    #[test]
    fn one_mark_in_an_interval_is_news() {
        let told = Told::default();
        let times = [1_000, 1_050, 1_098, 1_101, 1_150, 1_199, 1_202];
        let news = |ecn| times.map(|ms| told.marks(ecn, found(80 * MS, MS), 100 * MS, MS, ms * MS));
        assert_eq!(news(ECT_0), [true, false, false, true, false, false, true]);
        assert_eq!(news(ECT_1), [true; 7]);
    }

    /// In a queue that is half full when a flow gets it.
    fn found(wait: u64, time: u64) -> Found {
        Found { wait, time, start: 50 * MS }
    }

    /// Packets of 0.1 ms, each of which finds this wait, from 1 s on, one in a millisecond.
    fn passes<const N: usize>(told: &Told, ecn: u8, waits: [u64; N]) -> [bool; N] {
        let mut now = 1_000 * MS;
        waits.map(|wait| {
            now += MS;
            told.lets(ecn, found(wait * MS, MS / 10), true, now)
        })
    }

    #[test]
    fn a_sender_is_told_once_at_10_ms() {
        let told = Told::default();
        assert_eq!(passes(&told, 0, [0, 10, 11, 12, 99]), [true, true, false, true, true]);
        // It has not been empty yet.
        assert_eq!(passes(&Told::default(), 0, [50, 40, 60, 61, 99]), [true, true, true, false, true]);
        // It has lost one since there was no room.
        let told = Told::default();
        passes(&told, 0, [0, 5]);
        assert!(!told.lets(0, found(100 * MS, MS / 10), false, 1_100 * MS));
        assert_eq!(passes(&told, 0, [0, 11, 99]), [true; 3]);
        // Ten packets of 2 ms.
        let told = Told::default();
        let lets = [0, 11, 20, 21].map(|wait| told.lets(0, found(wait * MS, 2 * MS), true, 1_000 * MS));
        assert_eq!(lets, [true, true, true, false]);
    }

    #[test]
    fn a_packet_with_ecn_is_marked_at_10_ms() {
        let told = Told::default();
        assert_eq!(passes(&told, ECT_0, [0, 11]), [true, true]);
        let marks = |wait, ms| told.marks(ECT_0, found(wait * MS, MS / 10), 100 * MS, MS, ms * MS);
        assert_eq!(
            [(10, 1_010), (11, 1_011), (74, 2_000), (76, 2_001)].map(|(w, at)| marks(w, at)),
            [false, true, false, true]
        );
    }

    #[test]
    fn a_sender_is_told_once_what_spills() {
        let told = Told::default();
        let spill = |ecn, spilled| told.drops(ecn, spilled, 1, 2 * MS, 1_000 * MS);
        assert_eq!([9, 10, 11].map(|spilled| spill(0, spilled)), [false, true, false]);
        // 11 packets take 11 ms, or one of eleven; 9 of one that is one.
        let drops = |spilled, packets, time| Told::default().drops(0, spilled, packets, time, 1_000 * MS);
        assert_eq!([drops(10, 1, MS), drops(11, 1, MS), drops(11, 11, 11 * MS)], [false, true, true]);
        assert!(!Told::default().drops(ECT_0, 100, 1, MS, 1_000 * MS));
    }

    #[test]
    fn others_are_marked_beyond_a_step_or_not_at_all() {
        assert_eq!([75 * MS, 75 * MS + 1].map(|wait| part(ECT_0, wait, 100_000)), [0.0, 1.0]);
        assert_eq!([0, 3].map(|ecn| part(ecn, 99 * MS, 100_000)), [0.0, 0.0]);
    }
}
