//! Release at a rate: the number of held bytes that may be acknowledged, and the times (ACK shaper, figs 1
//! and 5).
//!
//! A flow is *backlogged* while it holds bytes. Its releases are then exactly one period apart, counted from
//! its own due time. Each adds `rate × period` bytes of *credit*, with the fraction of a byte carried. While
//! nothing is held, credit grows to one step at most. An idle flow thus earns no burst, except with a
//! policer.
//!
//! Bytes that had to be acknowledged early (duplicates, FIN) are *debt*. Half of the earned bytes repay it,
//! so that the ACK clock slows down and never stops.

mod ahead;
mod detect;
mod free;
mod lag;
mod later;
#[cfg(test)]
mod tests;

use super::settings::{Meter, RateRelease, SlowStart};
use crate::flow::law_state;
use crate::rate::{Earned, Rate};
use crate::systems::Tick;
use crate::time::{Duration, Time};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bit of the state: the step is halved, since the sender is in slow start.
const HALVED: u32 = 1 << 31;
/// Bit of the state: [`Meter::Received`].
const RECEIVED: u32 = 1 << 30;
/// Bit of the state, with `RECEIVED`: bytes acknowledged early are being repaid.
const REPAYS: u32 = 1 << 29;
/// Bit of the state: the advertised window bounds how far the sender can be ahead.
const BOUNDED: u32 = 1 << 28;
/// Bit of the state: no release has been scheduled since `mark`.
const FREE: u32 = 1 << 27;
/// Remaining bits of the state: release times since the detector's last step.
const COUNT: u32 = FREE - 1;

/// Release state of one flow.
#[derive(Clone, Copy, Debug, Default, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub struct Pace {
    /// Time of the scheduled release. Without one: time up to which credit was earned.
    pub due: u64,
    /// Payload bits per second.
    rate_bps: u64,
    earned: Earned,
    /// Time since which a full step has been held without a break, or 0. With `FREE`: time since which no
    /// release is scheduled.
    mark: u64,
    /// Nanoseconds between releases.
    period: u32,
    /// Bytes that may be acknowledged now.
    credit: u32,
    /// Debt: bytes acknowledged ahead of the rate, never negative. With `RECEIVED`: bytes received ahead of
    /// the rate.
    ahead: i32,
    /// Smoothed progress, in thousandths of the bytes that the rate allows.
    smooth_milli: u32,
    /// Progress since the detector's last step; with `BOUNDED` see [`Pace::lag`].
    progress: u32,
    /// See [`HALVED`].
    state: u32,
}

law_state!(pub Pace, pace, pace_mut);

/// Reaction to an arriving acknowledgement when no release is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Release all held bytes at once.
    Release,
    /// Schedule the release for [`Pace::due`].
    Schedule,
}

impl Pace {
    /// Returns the state of a flow that starts at `now` with one step of credit. `rate` counts payload.
    /// `from_syn` tells that the flow is seen from its beginning, so that its sender is in slow start.
    pub fn new(policy: &RateRelease, rate: Rate, mss: u16, from_syn: bool, now: Time) -> Pace {
        let mut pace = Pace { due: now.as_nanos(), ..Pace::default() };
        pace.set_free(now);
        pace.set_rate(policy, rate, mss);
        pace.set(HALVED, from_syn && policy.is_gated());
        pace.credit = pace.cap(policy.depth());
        pace
    }

    /// Applies changed settings. Bytes ahead of the rate are forgotten if the new meter counts differently.
    /// The sender counts as bounded only as long as the window is sized.
    pub fn retune(&mut self, policy: &RateRelease, rate: Rate, mss: u16, sized: bool) {
        if self.is(RECEIVED) != (policy.meter == Meter::Received) {
            self.ahead = 0;
            self.set(REPAYS, false);
        }
        if self.is(BOUNDED) && !sized {
            self.set(BOUNDED, false);
            self.progress = 0;
        }
        if policy.slow_start == SlowStart::Ignore {
            self.set(HALVED, false);
        }
        self.set_rate(policy, rate, mss);
        self.credit = self.credit.min(self.cap(policy.depth()));
    }

    fn set_rate(&mut self, policy: &RateRelease, rate: Rate, mss: u16) {
        self.rate_bps = rate.bps();
        self.period = policy.period.at(rate, mss).as_nanos().min(u64::from(u32::MAX)) as u32;
        self.set(RECEIVED, policy.meter == Meter::Received);
    }

    /// Returns the rate in payload bits per second. `None` before the first acknowledgement.
    pub fn rate(&self) -> Option<Rate> {
        Rate::from_bps(self.rate_bps)
    }
    /// Returns the time between releases.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(u64::from(self.period))
    }
    /// Returns the bytes acknowledged, or received, ahead of the rate and still to be repaid.
    pub fn debt(&self) -> u32 {
        (self.ahead.max(0) as u32).max(self.lag())
    }
    /// Returns whether the step is halved.
    pub fn in_slow_start(&self) -> bool {
        self.is(HALVED)
    }
    /// Returns the bytes of a full step, at least 1.
    #[inline(always)]
    pub fn step(&self) -> u32 {
        self.rate().map_or(1, |r| clamp(r.bytes_in(self.period())).max(1))
    }

    /// Notes that the receiver acknowledged `bytes` more.
    pub fn progressed(&mut self, bytes: u32) {
        if !self.is(BOUNDED) {
            self.progress = self.progress.saturating_add(bytes);
        }
        self.arrived(bytes);
    }

    /// Handles held bytes when no release is scheduled. An idle flow keeps `depth` bytes of credit, or a step
    /// if that is more.
    pub fn arrive(&mut self, now: Time, held: u32, depth: u32) -> Arrival {
        self.earn_idle(now, depth);
        if self.credit >= held {
            self.credit -= held;
            self.told(held, 0);
            return Arrival::Release;
        }
        // The next step is complete when its missing part has been earned. From there on releases are one
        // period apart. Credit of a bucket beyond a step is added to the first release.
        let part = self.credit.min(self.cap(0));
        let missing = u64::from(self.cap(0) - part);
        let wait = self.earning().map_or(Duration::ZERO, |r| r.time_for(missing));
        self.due = now.as_nanos() + wait.as_nanos().min(u64::from(self.period));
        self.credit -= part;
        self.earned = Earned::new();
        // Progress made while nothing was held says nothing about slow start.
        if !self.is(BOUNDED) {
            (self.smooth_milli, self.progress) = (0, 0);
        }
        self.state &= !COUNT;
        self.end_free();
        Arrival::Schedule
    }

    /// Carries out the scheduled release. `held` bytes wait. `mss` is the payload of a full segment.
    #[inline(always)]
    pub fn tick(&mut self, policy: &RateRelease, rtt: Duration, mss: u16, held: u32) -> Tick {
        let at = self.due;
        let earned = self.earn(self.period());
        let earned = earned - self.lag_less(earned, rtt);
        let paid = self.pay(earned, rtt, mss);
        let goes_on = paid > 0 && held > self.credit.saturating_add(earned);
        let later = if goes_on { self.later(policy, earned, paid, mss) } else { Duration::ZERO };
        let paid = if later > Duration::ZERO { 0 } else { paid };
        self.credit = self.credit.saturating_add(earned - paid);
        let entered_slow_start = self.detect(policy.slow_start, rtt, mss, at);
        let release = held.min(self.credit);
        self.credit -= release;
        self.told(release, 0);
        if release < held {
            self.note_held(held - release, at);
        } else {
            self.mark = 0;
            if self.credit > 0 {
                self.credit = self.credit.min(self.cap(policy.depth()));
            }
        }
        self.due = at + u64::from(self.period) + later.as_nanos();
        Tick { release, entered_slow_start }
    }

    /// Forfeits release times further back than `catch_up`. Returns their number.
    #[inline]
    pub fn skip_missed(&mut self, now: Time, catch_up: Duration) -> u64 {
        let late = now.as_nanos().saturating_sub(self.due);
        let too_late = late.saturating_sub(catch_up.as_nanos());
        if too_late == 0 {
            return 0;
        }
        // The next one may lie up to a period back but not ahead: it is carried out now.
        let period = u64::from(self.period).max(1);
        let missed = too_late.div_ceil(period).min(late / period);
        self.due += missed * u64::from(self.period);
        let forfeited = self.period().saturating_mul(missed);
        self.entitle(forfeited);
        self.told(0, self.rate().map_or(0, |r| clamp(r.bytes_in(forfeited))));
        missed
    }

    /// Charges `bytes` that are acknowledged without waiting for their time. `idle` is the time if no release
    /// is scheduled: credit earned up to then counts first, with `depth` as in [`Pace::arrive`].
    pub fn acknowledge_early(&mut self, bytes: u32, idle: Option<Time>, rtt: Duration, depth: u32) {
        if let Some(now) = idle {
            self.earn_idle(now, depth);
        }
        self.limit_lag(rtt);
        self.told(bytes, 0);
        let covered = self.credit.min(bytes);
        self.credit -= covered;
        self.owe(bytes - covered);
        if !self.is(FREE) {
            self.mark = 0;
        }
    }

    /// Restarts the account after a time in which the rate was not applied. Bytes that passed are not
    /// charged. The flow continues like an idle one outside slow start, with `depth` as in [`Pace::arrive`].
    pub fn begin_anew(&mut self, now: Time, depth: u32) {
        self.due = now.as_nanos();
        self.state &= !(COUNT | HALVED | REPAYS);
        self.credit = self.cap(depth);
        (self.earned, self.ahead) = (Earned::new(), 0);
        (self.smooth_milli, self.progress) = (0, 0);
        if !self.is(FREE) {
            self.set_free(now);
        }
    }

    /// Schedules the next release a period from now, for the right edge to catch up.
    pub fn go_on(&mut self, now: Time) {
        self.end_free();
        self.due = now.as_nanos() + u64::from(self.period);
    }

    /// Returns `bytes` of a release that could not be carried out.
    pub fn refund(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes);
        self.told(0, bytes);
    }

    /// Cancels the scheduled release. Credit is earned from `now` on.
    pub fn stop(&mut self, now: Time) {
        // The last release was one period before the next.
        let next = Time::from_nanos(self.due);
        let last = if next > now { next.saturating_sub(self.period()) } else { next };
        self.entitle(now.since(last));
        self.due = now.as_nanos();
        if !self.is(FREE) {
            self.set_free(now);
        }
    }

    fn earning(&self) -> Option<Rate> {
        Rate::from_bps(if self.in_slow_start() { (self.rate_bps / 2).max(1) } else { self.rate_bps })
    }

    #[inline(always)]
    fn earn(&mut self, d: Duration) -> u32 {
        self.earning().map_or(0, |r| clamp(self.earned.earn(r, d)))
    }

    /// Returns the most credit that an idle flow keeps: a step, or a bucket of `depth` if that is more.
    fn cap(&self, depth: u32) -> u32 {
        let step = if self.in_slow_start() { (self.step() / 2).max(1) } else { self.step() };
        step.max(depth)
    }

    fn earn_idle(&mut self, now: Time, depth: u32) {
        let earned = self.earn_since_due(now);
        self.keep(self.credit.saturating_add(earned), depth);
    }

    /// Returns the new credit from the bytes earned up to `now` while no release was scheduled.
    fn earn_since_due(&mut self, now: Time) -> u32 {
        let elapsed = now.since(Time::from_nanos(self.due));
        self.due = self.due.max(now.as_nanos());
        let earned = self.earn(elapsed);
        self.told(0, earned);
        earned - self.pay_idle(earned, elapsed)
    }

    /// Clamps an idle flow's credit to a step or its bucket.
    fn keep(&mut self, credit: u32, depth: u32) {
        self.credit = credit.min(self.cap(depth));
        self.forfeit(credit - self.credit);
    }

    fn is(&self, flag: u32) -> bool {
        self.state & flag != 0
    }
    fn set(&mut self, flag: u32, on: bool) {
        self.state = if on { self.state | flag } else { self.state & !flag };
    }

    #[inline(always)]
    fn note_held(&mut self, held: u32, at: u64) {
        if held < self.step() {
            self.mark = 0;
        } else if self.mark == 0 {
            self.mark = at.max(1);
        }
    }

    /// Returns the time in which two segments, the span of a delayed ACK, are earned. At least a period.
    fn beat(&self, mss: u16) -> Duration {
        let delayed_ack = self.rate().map_or(Duration::ZERO, |r| r.time_for(2 * u64::from(mss)));
        self.period().max(delayed_ack)
    }
}

fn clamp(bytes: u64) -> u32 {
    bytes.min(u64::from(u32::MAX)) as u32
}
