//! Fair share of a class: the rate at which each flow that ACKs do not slow is served.
//!
//! `T` flows are slowed by their ACKs and share what the others leave. The others have passed `U` of the
//! class's rate `R` while each of them might have had `f`: they are worth `U / f` flows that take all they
//! get. So the share of each is `R / (T + U / f)`, towards which `f` moves. At rest each flow of either kind
//! has the same, or less if it wants less. Where `T` is zero, `f` rises until the class is full.
//!
//! The hooks compute it, each 10 ms in which such traffic passes, from what the gateway has told them.
//!
//! # Newcomers
//!
//! In a fair class each flow that ACKs do not slow has a [queue](super::FlowQueues) of its own, from its
//! third packet on. A sender that chooses another port for each packet has no third packet of any flow. All
//! first packets share one queue. It is served at what the other flows leave where that is more than a 32nd
//! of the rate: a flood of new flows takes 3 % of the rate from the others, and datagrams of many flows may
//! have all of an idle class.
//!
//! A flow that gets a queue may send a burst. So that a sender gains nothing by many flows of a few packets
//! each, the bursts of new queues have a clock of their own, at the share, or at a 32nd of the rate if that
//! is more. Whoever comes sooner than the clock allows stays a newcomer for longer. A burst is two initial
//! windows, or half of a queue if that is less: a larger one would let in few flows, and short transfers
//! would wait for their turn to begin.

use super::due::{charge, fits, has_room, served, FRACTION};
use crate::base::rate::Rate;
use crate::base::smooth;
use crate::base::time::Duration;
use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Nanoseconds between two looks at what has passed.
const LOOK: u64 = 10_000_000;
/// Longest time that counts as one look, in nanoseconds.
const LONGEST: u64 = 1_000_000_000;
/// Time constants in nanoseconds: of the average of what passes, and of the share.
const PASSED: u64 = 40_000_000;
const SHARE: u64 = 50_000_000;
/// A second in nanoseconds.
const SECOND: u64 = 1_000_000_000;
/// The share is at least so small a part of the rate.
const LEAST: u64 = 4_096;
/// Newcomers have at least one of so many parts of the rate.
const NEW_PART: u64 = 32;
/// Most bytes that a new queue has room for: two initial windows (RFC 6928).
const BURST: u64 = 32_768;
/// Lead of the clock of new queues' bursts over the time, in nanoseconds.
const ENTRIES: u64 = 1_000_000_000;
/// One, in units of 2^-16.
const ONE: u64 = 1 << 16;
/// Unit of depths in nanoseconds: the deepest is 6.5 s.
const UNIT: u64 = 100_000;

/// Fair share of a class, and its terms. It is two lines of memory that hooks and gateway share; the second
/// is used where flows have virtual queues.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct FairShare {
    /// Nanoseconds per byte of the share in units of 2^-20; 0: it is not known. The hooks write it.
    per_byte: AtomicU64,
    /// Bytes of flows that ACKs do not slow, as the rate counts them.
    passed: AtomicU64,
    /// Time of the last look.
    looked: AtomicU64,
    /// `passed` at that time.
    before: AtomicU64,
    /// Bytes per second of such flows, on average.
    average: AtomicU64,
    /// The class's rate in bytes per second. The gateway writes it.
    rate: AtomicU64,
    /// Bytes that controlled senders sent beyond what they were permitted, among `passed`.
    beyond: AtomicU64,
    /// Average number of flows that wait for turns, in units of 2^-16. The gateway writes it.
    flows: AtomicU32,
    /// The most that a flow may have, in bytes per second; `u32::MAX`: no bound. The gateway writes it.
    most: AtomicU32,
    /// Time at which the newcomers' queue is empty, in nanoseconds of the hooks' clock.
    new_due: AtomicU64,
    /// Nanoseconds per byte at which it is served, in units of 2^-20.
    new_per_byte: AtomicU64,
    /// Bytes of newcomers, among `passed`.
    new_passed: AtomicU64,
    /// `new_passed` at the time of the last look.
    new_before: AtomicU64,
    /// Bytes per second of newcomers, on average.
    new_average: AtomicU64,
    /// Time at which the bursts of new queues are paid for.
    entry_due: AtomicU64,
    /// Part of a burst that a new queue costs, in units of 2^-16.
    entry_part: AtomicU32,
    /// Depth of each flow's queue in units of 100 us. The gateway writes it.
    depth: AtomicU16,
    /// Part of its queue beyond which a flow spills, in these units; 0: none does. The gateway writes it.
    spills: AtomicU16,
    /// Packets that passed and were marked.
    marked: AtomicU64,
}

const _: () = assert!(core::mem::size_of::<FairShare>() == 128);

/// Rate at which the virtual queue of a flow is served, as nanoseconds per byte in units of 2^-20.
#[derive(Clone, Copy, Debug)]
pub(super) enum Service {
    /// The fair share of the class.
    Share(u64),
    /// The rate that each flow has. Newcomers cost nobody anything.
    Each(u64),
}

impl Service {
    /// Nanoseconds that this many bytes take.
    pub(super) fn time(self, bytes: u64) -> u64 {
        let (Service::Share(per_byte) | Service::Each(per_byte)) = self;
        served(bytes, per_byte)
    }
}

/// Nanoseconds per byte at so many bytes per second, in units of 2^-20.
fn per_byte_at(bytes: u64) -> u64 {
    ((SECOND << FRACTION) / bytes.max(1)).max(1)
}

impl FairShare {
    /// The class has this rate now, and on average so many flows wait for turns, in units of 2^-16.
    pub fn tell(&self, rate: Rate, flows: u64) {
        self.rate.store((rate.bps() / 8).max(1), Relaxed);
        self.flows.store(flows.min(u64::from(u32::MAX)) as u32, Relaxed);
    }

    /// Each flow may have `most` at most, and the queues of flows have this depth. A flow spills with more
    /// than `spills` in its queue.
    pub(super) fn set(&self, most: Option<Rate>, depth: Duration, spills: Option<Duration>) {
        let most = most.map_or(u64::MAX, |most| (most.bps() / 8).max(1));
        let units = |time: Duration| (time.as_nanos() / UNIT).min(u64::from(u16::MAX)) as u16;
        self.most.store(most.min(u64::from(u32::MAX)) as u32, Relaxed);
        self.depth.store(units(depth), Relaxed);
        self.spills.store(spills.map_or(0, units), Relaxed);
    }

    /// Depth of each flow's queue in nanoseconds.
    pub(super) fn depth(&self) -> u64 {
        UNIT * u64::from(self.depth.load(Relaxed))
    }

    /// Returns whether flows spill.
    pub(super) fn spills(&self) -> bool {
        self.spills.load(Relaxed) != 0
    }

    /// Part of a queue's depth that is filled before its flow spills, if it does, in nanoseconds.
    fn ahead(&self) -> u64 {
        match self.spills.load(Relaxed) {
            0 => self.depth(),
            units => UNIT * u64::from(units),
        }
    }

    /// Returns whether what takes so long does not spill from the queue of a flow that is empty at `due`.
    pub(super) fn has_room_ahead(&self, due: &AtomicU64, time: u64, now: u64) -> bool {
        fits(due, self.ahead(), time, now)
    }

    /// Returns whether there is room in the queue of a flow that is empty at `due` for what takes so long.
    pub(super) fn has_room(&self, due: &AtomicU64, time: u64, now: u64) -> bool {
        fits(due, self.depth(), time, now)
    }

    /// Returns whether there is room for bytes of a newcomer.
    pub(super) fn has_room_for_new(&self, bytes: u64, now: u64) -> bool {
        has_room(&self.new_due, self.new_per_byte.load(Relaxed), 4, bytes, now)
    }

    /// Charges the newcomers' queue with bytes that passed.
    pub(super) fn charge_new(&self, bytes: u64, now: u64) {
        charge(&self.new_due, served(bytes, self.new_per_byte.load(Relaxed)), now);
        self.new_passed.fetch_add(bytes, Relaxed);
    }

    /// Time that stands in the queue of a flow when it gets one: all but half of its depth, or but a burst if
    /// that is less.
    pub(super) fn start(&self, service: Service) -> u64 {
        self.ahead() - self.burst(service)
    }

    /// Room in the queue of a flow when it gets one.
    fn burst(&self, service: Service) -> u64 {
        let half = self.ahead() / 2;
        match service.time(BURST) {
            0 => half,
            burst => burst.min(half),
        }
    }

    /// Returns the time at which the queue of a flow is empty that gets one at `now`. `None` if too many have
    /// got one lately.
    pub(super) fn enter(&self, service: Service, now: u64) -> Option<u64> {
        let burst = self.burst(service);
        if let Service::Share(_) = service {
            if self.entry_due.load(Relaxed) > now + ENTRIES {
                return None;
            }
            charge(&self.entry_due, (burst >> 16) * u64::from(self.entry_part.load(Relaxed)), now);
        }
        Some(now + self.ahead() - burst)
    }

    /// The share as it was found last.
    pub(super) fn shared(&self) -> Service {
        Service::Share(self.per_byte.load(Relaxed))
    }

    /// The rate that each flow has at most. A rate of 34 Gbit/s or more is no bound.
    pub(super) fn each(&self) -> Service {
        match self.most.load(Relaxed) {
            u32::MAX => Service::Each(0),
            most => Service::Each(per_byte_at(most.into())),
        }
    }

    /// Counts bytes that passed and that ACKs did not slow.
    pub(super) fn count(&self, bytes: u64) {
        self.passed.fetch_add(bytes, Relaxed);
    }

    /// Counts packets that passed and were marked.
    pub(super) fn count_marked(&self, packets: u64) {
        self.marked.fetch_add(packets, Relaxed);
    }

    /// Returns these packets.
    pub(super) fn marked(&self) -> u64 {
        self.marked.load(Relaxed)
    }

    /// Counts bytes that passed, and that their controlled sender was not permitted.
    pub(super) fn count_beyond(&self, bytes: u64) {
        self.beyond.fetch_add(bytes, Relaxed);
    }

    /// Returns these bytes.
    pub(super) fn beyond(&self) -> u64 {
        self.beyond.load(Relaxed)
    }

    /// Returns nanoseconds per byte of the share at `now`, in units of 2^-20. `has_tcp`: flows that wait for
    /// turns were seen lately.
    pub(super) fn per_byte(&self, has_tcp: bool, now: u64) -> u64 {
        let looked = self.looked.load(Relaxed);
        let elapsed = now.saturating_sub(looked);
        if elapsed < LOOK || self.looked.compare_exchange(looked, now, Relaxed, Relaxed).is_err() {
            return self.per_byte.load(Relaxed);
        }
        self.look(has_tcp, elapsed.min(LONGEST))
    }

    /// Moves the share towards what the flows have of the rate, `elapsed` after the last look.
    fn look(&self, has_tcp: bool, elapsed: u64) -> u64 {
        let passed = self.passed.load(Relaxed);
        let bytes = passed.wrapping_sub(self.before.load(Relaxed)).min(1 << 33);
        self.before.store(passed, Relaxed);
        let average = follow(self.average.load(Relaxed), bytes * SECOND / elapsed, PASSED, elapsed);
        self.average.store(average, Relaxed);
        let rate = self.rate.load(Relaxed);
        let old = self.per_byte.load(Relaxed);
        let share = (SECOND << FRACTION).checked_div(old).map_or(rate, |share| share.min(rate)).max(1);
        let flows = if has_tcp { u64::from(self.flows.load(Relaxed)) } else { 0 };
        let new = self.look_at_new(elapsed);
        let others = flows + (average.saturating_sub(new) << 16) / share;
        // The flow that asks is worth one at least.
        let worth = flows + ((average << 16) / share).max(ONE);
        let most = match self.most.load(Relaxed) {
            u32::MAX | 0 => rate,
            most => u64::from(most),
        };
        let target = ((rate << 16) / worth).min(most).max(rate / LEAST);
        let share = if old == 0 { target } else { follow(share, target, SHARE, elapsed) };
        let per_byte = per_byte_at(share);
        self.per_byte.store(per_byte, Relaxed);
        self.serve_new(share, rate, others);
        per_byte
    }

    /// Returns the bytes per second of newcomers on average, `elapsed` after the last look.
    fn look_at_new(&self, elapsed: u64) -> u64 {
        let passed = self.new_passed.load(Relaxed);
        let bytes = passed.wrapping_sub(self.new_before.load(Relaxed)).min(1 << 33);
        self.new_before.store(passed, Relaxed);
        let average = follow(self.new_average.load(Relaxed), bytes * SECOND / elapsed, PASSED, elapsed);
        self.new_average.store(average, Relaxed);
        average
    }

    /// Newcomers have what flows worth `others`, in units of 2^-16, leave of a share, and no less than their
    /// part of the rate.
    fn serve_new(&self, share: u64, rate: u64, others: u64) {
        let left = (share * ONE.saturating_sub(others)) >> 16;
        self.new_per_byte.store(per_byte_at(left.max(rate / NEW_PART)), Relaxed);
        let part = NEW_PART * (share << 16) / rate.max(1);
        self.entry_part.store(part.min(ONE) as u32, Relaxed);
    }

    /// Returns the share in bits per second; 0 before it is known.
    pub fn bps(&self) -> u64 {
        (8 * (SECOND << FRACTION)).checked_div(self.per_byte.load(Relaxed)).unwrap_or(0)
    }
}

/// Moves an average, as the hooks do. They count in microseconds: a product fits 64 bits.
fn follow(value: u64, to: u64, time: u64, elapsed: u64) -> u64 {
    smooth::lag(value, to, elapsed / 1_000, time / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: Rate = Rate::mbit(8); // a megabyte per second
    const ONE: u64 = 1 << 16;

    /// The share after ten seconds in bytes per second, where `passes` says what passes in a millisecond at a
    /// share.
    fn settled(flows: u64, passes: impl Fn(u64) -> u64) -> u64 {
        let fair = FairShare::default();
        fair.tell(R, flows);
        for ms in 1_000..11_000 {
            fair.per_byte(true, ms * 1_000_000);
            fair.count(passes(fair.bps() / 8));
        }
        fair.bps() / 8
    }

    #[track_caller]
    fn assert_near(share: u64, expected: u64) {
        assert!(share.abs_diff(expected) <= expected / 50, "{share} and not {expected}");
    }

    #[test]
    fn each_flow_has_the_same() {
        // Greedy flows beside those that wait for turns: R / (T + M).
        for (waiting, greedy) in [(0, 1), (0, 4), (2, 3), (1, 40), (10, 40)] {
            let share = settled(waiting * ONE, |share| greedy * share / 1_000);
            assert_near(share, 1_000_000 / (waiting + greedy));
        }
        // One that wants 100 kB/s leaves the rest, and is worth a flow where it is alone.
        assert_near(settled(3 * ONE, |share| 100 + share / 1_000), 225_000);
        assert_near(settled(ONE, |_| 100), 500_000);
    }

    /// 10 MB/s for ten seconds and one ahead, in bursts of 32,768 bytes.
    #[test]
    fn a_share_carries_the_bursts_of_new_queues() {
        let fair = FairShare::default();
        fair.set(None, Duration::from_millis(100), None);
        fair.tell(Rate::mbit(80), 0);
        for ms in 1_000..2_000 {
            fair.per_byte(false, ms * 1_000_000);
        }
        let entered =
            (0..100_000).filter(|n| fair.enter(fair.shared(), 2_000_000_000 + n * 100_000).is_some()).count();
        assert!(entered.abs_diff(110_000_000 / 32_768) <= 33, "{entered}");
    }

    #[test]
    fn flows_that_wait_no_more_leave_the_rate() {
        let fair = FairShare::default();
        fair.tell(R, 9 * ONE);
        fair.per_byte(true, 1_000_000_000);
        assert_near(fair.bps() / 8, 100_000);
        for ms in 1_001..6_000 {
            fair.per_byte(false, ms * 1_000_000);
        }
        assert_near(fair.bps() / 8, 1_000_000);
    }
}
