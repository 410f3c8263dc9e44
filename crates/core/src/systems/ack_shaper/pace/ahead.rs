//! Account of bytes ahead of the rate, and their repayment.
//!
//! With [`Meter::Acked`](crate::ack::Meter::Acked) the account is *debt*: bytes acknowledged without waiting
//! for their time. Half of the earned bytes repay it.
//!
//! With [`Meter::Received`](crate::ack::Meter::Received) the account is the integral of arrivals less the
//! rate since the flow became backlogged. A sender sends the bytes that are acknowledged and the growth of
//! its window. Arrivals are therefore the releases of one round trip ago plus that growth. Each release is
//! reduced by a share of the excess, as if all of it were to be paid within three round trips: an integral
//! controller around a delay. Its characteristic equation `s T + exp(-s τ) = 0` is stable for delays τ up to
//! π/2 times the time constant T, and free of oscillation up to 1/e of it. A round trip may thus be several
//! times that of the handshake.
//!
//! Releases are reduced by exactly the growth where a window grows at a constant pace, and halved in slow
//! start. At least half of the earned bytes is always released, so a sender is slowed down and never starved.
//! A sender that is limited by its window gets all of them.
//!
//! A starting sender sends its whole window at once, each round trip. That is not ahead of the rate while the
//! window is smaller than the rate times the round trip. A burst of that size is therefore allowed until the
//! flow has been backlogged for one round trip.
//!
//! Bytes acknowledged early count when the sender's answer arrives. While a loss is repaired nothing arrives
//! in sequence, and then everything at once. Until that is settled the account may fall behind without limit.
//!
//! Where no window bounds the sender, bytes acknowledged early are debt with this meter too. Arrivals do not
//! count until it is repaid: answers to early acknowledgements cannot be told from other arrivals.

use super::{clamp, Pace, BOUNDED, RECEIVED, REPAYS};
use crate::rate::mul_div;
use crate::time::Duration;

/// Largest burst of segmentation offload, in bytes.
const OFFLOAD: u64 = 1 << 16;

/// Longest delay of arrivals while hosts or the gateway were busy.
const LATE: Duration = Duration::from_millis(50);

impl Pace {
    /// Returns whether the account counts arrivals now. Otherwise it counts debt.
    #[inline(always)]
    pub(super) fn counts_arrivals(&self) -> bool {
        self.is(RECEIVED) && (self.is(BOUNDED) || !self.is(REPAYS))
    }

    /// Notes that `bytes` arrived.
    pub(super) fn arrived(&mut self, bytes: u32) {
        if self.counts_arrivals() {
            self.ahead = self.ahead.saturating_add_unsigned(bytes);
        }
    }

    /// Returns the bytes ahead of the rate.
    fn over(&self) -> u32 {
        self.ahead.max(0) as u32
    }

    /// Charges `bytes` that were acknowledged ahead of the rate.
    pub(super) fn owe(&mut self, bytes: u32) {
        if self.is(RECEIVED) && !self.is(REPAYS) {
            self.set(REPAYS, true);
            self.ahead = if self.is(BOUNDED) { self.ahead } else { self.ahead.max(0) };
        }
        if !self.counts_arrivals() {
            self.ahead = self.ahead.saturating_add_unsigned(bytes);
        }
    }

    /// Charges `bytes` that arrived and were acknowledged ahead of the rate while nothing was held. The
    /// account ends at `bytes` at least, since such bytes cannot be set off against earlier arrears.
    pub(super) fn owe_at_least(&mut self, bytes: u32) {
        self.owe(bytes);
        self.ahead = self.ahead.max(bytes.min(i32::MAX as u32) as i32);
    }

    /// Returns the part of a period's `earned` bytes that is not released.
    #[inline(always)]
    pub(super) fn pay(&mut self, earned: u32, rtt: Duration, mss: u16) -> u32 {
        if self.counts_arrivals() {
            self.hold_back(earned, rtt, mss)
        } else {
            self.repay(earned)
        }
    }

    /// Returns the part of `earned` that is not credited, after `elapsed` with nothing held.
    pub(super) fn pay_idle(&mut self, earned: u32, elapsed: Duration) -> u32 {
        if !self.counts_arrivals() {
            return self.repay(earned);
        }
        self.entitle(elapsed);
        if self.is(REPAYS) && self.ahead > 0 {
            return earned / 2;
        }
        // All arrivals have been passed on in time. Arrears stay: late data may still arrive.
        self.set(REPAYS, false);
        self.ahead = self.ahead.min(0);
        0
    }

    /// Writes off the bytes ahead, which passed while this engine could not hold them back.
    pub(crate) fn forgive(&mut self) {
        self.set(REPAYS, false);
        self.ahead = self.ahead.min(0);
        if self.is(BOUNDED) {
            // A lag of the right edge is kept, since only this engine advertises the edge to the sender. It
            // is no more than what is late: what passed with the receiver's own window moved the edge.
            let late = self.rate().map_or(0, |rate| rate.bytes_in(LATE).min(1 << 30) as u32);
            self.progress = self.lag().min(late);
        }
    }

    /// Repays debt with credit that an idle flow cannot keep.
    pub(super) fn forfeit(&mut self, credit: u32) {
        if !self.counts_arrivals() {
            self.less(self.over().min(credit));
        }
    }

    /// Credits the arrivals that the rate allows over the time `d`.
    pub(super) fn entitle(&mut self, d: Duration) {
        if self.counts_arrivals() {
            let full = self.rate().map_or(0, |r| clamp(r.bytes_in(d)));
            self.ahead = self.ahead.saturating_sub_unsigned(full);
        }
    }

    /// Returns the part of `earned` that repays debt.
    fn repay(&mut self, earned: u32) -> u32 {
        let paid = self.over().min(earned / 2);
        self.less(paid);
        paid
    }

    /// Reduces the debt by `paid`.
    fn less(&mut self, paid: u32) {
        self.ahead -= paid as i32;
        if self.ahead <= 0 {
            self.set(REPAYS, false);
        }
    }

    /// Returns the part of `earned` that is held back so that arrivals do not exceed the rate.
    #[inline(always)]
    fn hold_back(&mut self, earned: u32, rtt: Duration, mss: u16) -> u32 {
        let full = if self.in_slow_start() { earned.saturating_mul(2) } else { earned };
        self.ahead = self.ahead.saturating_sub_unsigned(full);
        let share = if self.ahead > 0 { self.share(full, rtt, mss) } else { 0 };
        if share < u64::from(earned / 4) {
            self.set(REPAYS, false);
        }
        if !self.is(REPAYS) {
            self.limit_behind(rtt, mss);
        }
        share.min(u64::from(earned / 2)) as u32
    }

    /// Returns the share of the bytes ahead to pay in a period in which `full` bytes may arrive.
    fn share(&mut self, full: u32, rtt: Duration, mss: u16) -> u64 {
        // Release and arrival are noticed up to one beat late each.
        let horizon = (rtt + self.beat(mss).saturating_mul(2)).saturating_mul(3).as_nanos();
        if !self.is(REPAYS) {
            // At most half is held back. A larger excess arrived while the engine was stalled, and would take
            // far too long to repay.
            let (most, _) = mul_div(u64::from(full / 2), horizon, 0, u64::from(self.period.max(1)));
            self.ahead = self.ahead.min(i32::try_from(most).unwrap_or(i32::MAX));
        }
        u64::from(self.over()) * u64::from(self.period) / horizon.max(1)
    }

    /// Forgets arrears beyond what may be made up for.
    #[inline(always)]
    fn limit_behind(&mut self, rtt: Duration, mss: u16) {
        if self.ahead >= 0 {
            return;
        }
        let late = self.rate().map_or(0, |r| clamp(r.bytes_in(LATE)));
        if self.ahead.unsigned_abs() > late {
            self.forget_behind(rtt, mss, late);
        }
    }

    /// Forgets arrears beyond the allowed slack. `late` is the bytes that the rate carries in [`LATE`].
    #[cold]
    fn forget_behind(&mut self, rtt: Duration, mss: u16, late: u32) {
        let round = self.rate().map_or(0, |r| r.bytes_in(rtt)).min(i32::MAX as u64) as i32;
        let slack = i32::try_from(self.burst(mss).max(late)).unwrap_or(i32::MAX);
        self.ahead = self.ahead.max(-if self.backlogged_for(rtt) { slack } else { slack.max(round) });
    }

    /// Returns whether a full step has been held for a round trip. Before that, arrivals come in rounds: the
    /// bytes released in one round trip arrive together in the next.
    fn backlogged_for(&self, rtt: Duration) -> bool {
        self.mark != 0 && self.due.saturating_sub(self.mark) >= rtt.as_nanos()
    }

    /// Returns the bytes that may arrive in one burst, late enough for arrivals to fall behind the rate and
    /// be made up for. That is a step, the segments of a delayed ACK, or a burst of segmentation offload (1
    /// ms at most). Arrears beyond that and [`LATE`] are forgotten, and held back if the data arrives after
    /// all. A flow whose ACKs jitter by more therefore stays below its rate.
    fn burst(&self, mss: u16) -> u32 {
        let offload = self.rate().map_or(0, |r| r.bytes_in(Duration::from_millis(1))).min(OFFLOAD);
        2 * self.step().max(2 * u32::from(mss)).max(offload as u32)
    }
}
