//! Marks of virtual queues: what tells the senders of ECN-capable packets that they are ahead of their share.
//!
//! A virtual queue delays nothing, and a packet that finds it full is dropped. So senders hear of congestion
//! before that, by Congestion Experienced in packets that pass (RFC 3168).
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

/// Returns whether the mark of a packet with this ECN field tells its sender anything, after another one at
/// `last`. It is noted then.
pub(super) fn is_news(ecn: u8, last: &AtomicU32, now: u64) -> bool {
    let now = (now >> 20) as u32;
    if ecn != ECT_0 {
        return true;
    }
    let news = now.wrapping_sub(last.load(Relaxed)) >= INTERVAL;
    if news {
        last.store(now, Relaxed);
    }
    news
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
        let last = AtomicU32::new(0);
        let times = [1_000, 1_050, 1_098, 1_101, 1_150, 1_199, 1_202];
        let news = |ecn| times.map(|ms| is_news(ecn, &last, ms * MS));
        assert_eq!(news(ECT_0), [true, false, false, true, false, false, true]);
        assert_eq!(news(ECT_1), [true; 7]);
    }

    #[test]
    fn others_are_marked_beyond_a_step_or_not_at_all() {
        assert_eq!([75 * MS, 75 * MS + 1].map(|wait| part(ECT_0, wait, 100_000)), [0.0, 1.0]);
        assert_eq!([0, 3].map(|ecn| part(ecn, 99 * MS, 100_000)), [0.0, 0.0]);
    }
}
