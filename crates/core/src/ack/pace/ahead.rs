//! The account of bytes that are ahead of the rate, and how they are paid back.
//!
//! With [`Meter::Acked`](crate::ack::Meter::Acked) that is *debt*: bytes acknowledged without waiting for their
//! time. Half of what is earned repays it.
//!
//! With [`Meter::Received`](crate::ack::Meter::Received) it is what *arrived* beyond the rate since the flow has been
//! backlogged, the integral of arrivals less rate. A sender sends what it is acknowledged and what its window grows by, so
//! arrivals are the releases of a round trip ago and the growth. A share of what is ahead, as if all were to be paid within
//! three round trips, is taken off each release: an integral controller around a delay. Its characteristic
//! equation `s T + exp(-s τ) = 0` is stable for delays τ up to π/2 times the time constant T, and free of oscillation up
//! to 1/e of it; so a round trip may be several times what the handshake took. A window that grows at a
//! constant pace meets releases that are smaller by exactly that, slow start such that are half. Never less than half is
//! released, so a sender is slowed down and never starved; one that is limited by its window gets all.
//!
//! A sender that begins sends a window per round trip, at once. That is not ahead of the rate while a window is
//! less than the rate carries in a round trip, so until the flow has been backlogged for one so much is
//! allowed to come together.
//!
//! What was acknowledged early counts when the sender's answer arrives. While a loss is repaired nothing
//! arrives in sequence, and then all that came meanwhile at once: until that is settled the account may
//! fall behind as far as it will.
//!
//! Where no window bounds the sender, what was acknowledged early is debt with this meter too, and arrivals do not count until it is
//! repaid: an answer may come in so many ways that they cannot be told from others.

use super::{clamp, Pace, BOUNDED, RECEIVED, REPAYS};
use crate::rate::mul_div;
use crate::time::Duration;

/// Bytes of segmentation offload: what a sender sends at once at most.
const OFFLOAD: u64 = 1 << 16;

/// How late arrivals may be where hosts or the gateway were busy with something else.
const LATE: Duration = Duration::from_millis(50);

impl Pace {
    /// Is the account one of arrivals now, or else of debt?
    #[inline(always)]
    pub(super) fn counts_arrivals(&self) -> bool {
        self.is(RECEIVED) && (self.is(BOUNDED) || !self.is(REPAYS))
    }

    /// `bytes` arrived.
    pub(super) fn arrived(&mut self, bytes: u32) {
        if self.counts_arrivals() {
            self.ahead = self.ahead.saturating_add_unsigned(bytes);
        }
    }

    /// Bytes ahead of the rate.
    fn over(&self) -> u32 {
        self.ahead.max(0) as u32
    }

    /// `bytes` were acknowledged ahead of the rate.
    pub(super) fn owe(&mut self, bytes: u32) {
        if self.is(RECEIVED) && !self.is(REPAYS) {
            self.set(REPAYS, true);
            self.ahead = if self.is(BOUNDED) { self.ahead } else { self.ahead.max(0) };
        }
        if !self.counts_arrivals() {
            self.ahead = self.ahead.saturating_add_unsigned(bytes);
        }
    }

    /// `bytes` came and were acknowledged ahead of the rate while nothing was held, which says nothing of what came before.
    pub(super) fn owe_at_least(&mut self, bytes: u32) {
        self.owe(bytes);
        self.ahead = self.ahead.max(bytes.min(i32::MAX as u32) as i32);
    }

    /// The part of a period's `earned` that is not released.
    #[inline(always)]
    pub(super) fn pay(&mut self, earned: u32, rtt: Duration, mss: u16) -> u32 {
        if self.counts_arrivals() {
            self.hold_back(earned, rtt, mss)
        } else {
            self.repay(earned)
        }
    }

    /// The part of `earned` that is not credited, after `elapsed` with nothing held.
    pub(super) fn pay_idle(&mut self, earned: u32, elapsed: Duration) -> u32 {
        if !self.counts_arrivals() {
            return self.repay(earned);
        }
        self.entitle(elapsed);
        if self.is(REPAYS) && self.ahead > 0 {
            return earned / 2;
        }
        // All that came has been passed on in its time; what might have come may still.
        self.set(REPAYS, false);
        self.ahead = self.ahead.min(0);
        0
    }

    /// What is ahead was not this engine's to hold back.
    pub(crate) fn forgive(&mut self) {
        self.set(REPAYS, false);
        self.ahead = self.ahead.min(0);
        if self.is(BOUNDED) {
            // A right edge that lags goes on: nobody else tells the sender of it.
            self.progress = self.lag();
        }
    }

    /// Credit that an idle flow cannot keep repays what is ahead.
    pub(super) fn forfeit(&mut self, credit: u32) {
        if !self.counts_arrivals() {
            self.less(self.over().min(credit));
        }
    }

    /// Time passed in which as much as the rate allows might have arrived.
    pub(super) fn entitle(&mut self, d: Duration) {
        if self.counts_arrivals() {
            let full = self.rate().map_or(0, |r| clamp(r.bytes_in(d)));
            self.ahead = self.ahead.saturating_sub_unsigned(full);
        }
    }

    /// The part of `earned` that repays debt.
    fn repay(&mut self, earned: u32) -> u32 {
        let paid = self.over().min(earned / 2);
        self.less(paid);
        paid
    }

    /// So much of the debt is repaid.
    fn less(&mut self, paid: u32) {
        self.ahead -= paid as i32;
        if self.ahead <= 0 {
            self.set(REPAYS, false);
        }
    }

    /// The part of `earned` that is not released so that no more than the rate arrives.
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

    /// The share of what is ahead that is paid in a period in which `full` may arrive.
    fn share(&mut self, full: u32, rtt: Duration, mss: u16) -> u64 {
        // Release and arrival are noticed up to a beat late each.
        let horizon = (rtt + self.beat(mss).saturating_mul(2)).saturating_mul(3).as_nanos();
        if !self.is(REPAYS) {
            // More than half is never held back. What is further ahead came while the engine was away, and would be
            // made up for longer than anyone remembers.
            let (most, _) = mul_div(u64::from(full / 2), horizon, 0, u64::from(self.period.max(1)));
            self.ahead = self.ahead.min(i32::try_from(most).unwrap_or(i32::MAX));
        }
        u64::from(self.over()) * u64::from(self.period) / horizon.max(1)
    }

    /// Arrivals that are further behind than is made up for are forgotten.
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

    /// What is further behind than what the rate carries in [`LATE`], which is `late`, is forgotten.
    #[cold]
    fn forget_behind(&mut self, rtt: Duration, mss: u16, late: u32) {
        let round = self.rate().map_or(0, |r| r.bytes_in(rtt)).min(i32::MAX as u64) as i32;
        let slack = i32::try_from(self.burst(mss).max(late)).unwrap_or(i32::MAX);
        self.ahead = self.ahead.max(-if self.backlogged_for(rtt) { slack } else { slack.max(round) });
    }

    /// Has a full step been held for a round trip? Before that arrivals come in rounds: what a sender was
    /// acknowledged arrives at once, and then nothing until a round trip later.
    fn backlogged_for(&self, rtt: Duration) -> bool {
        self.mark != 0 && self.due.saturating_sub(self.mark) >= rtt.as_nanos()
    }

    /// How many bytes may come at once, and so late that arrivals fall behind the rate for that long and are made up for: a
    /// step, the segments of a delayed ACK, or what segmentation offload sends at once (1 ms at most). What is forgotten
    /// beyond that and [`LATE`] is held back when it comes after all: a flow whose ACKs jitter by more stays below its
    /// rate.
    fn burst(&self, mss: u16) -> u32 {
        let offload = self.rate().map_or(0, |r| r.bytes_in(Duration::from_millis(1))).min(OFFLOAD);
        2 * self.step().max(2 * u32::from(mss)).max(offload as u32)
    }
}
