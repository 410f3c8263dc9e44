//! Release at a rate: how many held bytes may be acknowledged, and when (ACK shaper, figs 1 and 5).
//!
//! A flow is *backlogged* while it holds something. Its releases are then exactly one period apart,
//! counted from its own due time, and each adds `rate × period` bytes of credit, with the fraction of
//! a byte carried. While nothing is held, credit grows up to one step only, so an idle flow
//! earns no burst, except with a policer. Bytes that had to be acknowledged early (duplicates, FIN) are *debt*. Half of
//! what is earned repays it, so that the ACK clock slows down and never stops.

mod ahead;
mod detect;
mod free;
mod lag;
mod later;
mod steps;
#[cfg(test)]
mod tests;
mod turn;

use super::{Meter, RateRelease, SlowStart};
use crate::rate::{Earned, Rate};
use crate::time::{Duration, Time};

/// In the state: the step is halved, since the sender is in slow start.
const HALVED: u32 = 1 << 31;
/// In the state: [`Meter::Received`].
const RECEIVED: u32 = 1 << 30;
/// In the state, with `RECEIVED`: what was acknowledged early is being repaid.
const REPAYS: u32 = 1 << 29;
/// In the state: the advertised window bounds what the sender can be ahead.
const BOUNDED: u32 = 1 << 28;
/// In the state: no release is scheduled, nor has been since `mark`.
const FREE: u32 = 1 << 27;
/// The rest of the state counts the release times since the detector's last step.
const COUNT: u32 = FREE - 1;

/// State of the release of one flow.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Pace {
    /// While a release is scheduled: when. Otherwise: the time up to which credit was earned.
    pub due: u64,
    /// Payload bits per second.
    rate_bps: u64,
    earned: Earned,
    /// Since when a full step has been held without a break; 0 for not at all. With `FREE`: since when no release is
    /// scheduled. Before the first acknowledgement: when a SYN passed.
    pub mark: u64,
    /// Nanoseconds between releases.
    period: u32,
    /// Bytes that may be acknowledged now. This and what follows is another's with the law *share*: see `turn`.
    credit: u32,
    /// Debt: bytes acknowledged ahead of the rate, never negative. With `RECEIVED`: bytes received ahead of it.
    ahead: i32,
    /// Smoothed progress, in thousandths of what the rate allows.
    smooth_milli: u32,
    /// Progress since the detector's last step; with `BOUNDED` see [`Pace::lag`].
    progress: u32,
    /// See [`HALVED`]. With the law *share*: since when the flow waits for its turn.
    state: u32,
}

/// What to do with an arriving acknowledgement when no release is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// All that is held may go at once.
    Release,
    /// The release is to be scheduled for [`Pace::due`].
    Schedule,
}

/// One release time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Bytes to acknowledge now.
    pub release: u32,
    /// The flow has just been found in slow start.
    pub entered_slow_start: bool,
}

impl Pace {
    /// A flow that starts at `now` with one step of credit. `rate` counts payload; `from_syn`
    /// tells a flow seen from its beginning, whose sender is in slow start.
    pub fn new(policy: &RateRelease, rate: Rate, mss: u16, from_syn: bool, now: Time) -> Pace {
        let mut pace = Pace { due: now.as_nanos(), ..Pace::default() };
        pace.set_free(now);
        pace.set_rate(policy, rate, mss);
        pace.set(HALVED, from_syn && policy.is_gated());
        pace.credit = pace.cap(policy.depth());
        pace
    }

    /// The settings have become these. What was ahead is forgotten where another meter counts it, and the sender counts as
    /// bounded only as long as the window is sized.
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

    /// The rate in payload bits per second; `None` before the first acknowledgement.
    pub fn rate(&self) -> Option<Rate> {
        Rate::from_bps(self.rate_bps)
    }
    /// Time between releases.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(u64::from(self.period))
    }
    /// Bytes acknowledged, or received, ahead of the rate and still to be repaid.
    pub fn debt(&self) -> u32 {
        (self.ahead.max(0) as u32).max(self.lag())
    }
    /// Is the step halved?
    pub fn in_slow_start(&self) -> bool {
        self.is(HALVED)
    }
    /// Bytes of a full step, at least 1.
    #[inline(always)]
    pub fn step(&self) -> u32 {
        self.rate().map_or(1, |r| clamp(r.bytes_in(self.period())).max(1))
    }

    /// The receiver acknowledged `bytes` more.
    pub fn progressed(&mut self, bytes: u32) {
        if !self.is(BOUNDED) {
            self.progress = self.progress.saturating_add(bytes);
        }
        self.arrived(bytes);
    }

    /// Something is held and no release is scheduled. Idle, the flow keeps `depth` bytes of credit, or a step if that is more.
    pub fn arrive(&mut self, now: Time, held: u32, depth: u32) -> Arrival {
        self.earn_idle(now, depth);
        if self.credit >= held {
            self.credit -= held;
            self.told(held, 0);
            return Arrival::Release;
        }
        // The next step is complete when the missing part has been earned; from there on releases
        // are one period apart. What a bucket has beyond a step goes with the first.
        let part = self.credit.min(self.cap(0));
        let missing = u64::from(self.cap(0) - part);
        let wait = self.earning().map_or(Duration::ZERO, |r| r.time_for(missing));
        self.due = now.as_nanos() + wait.as_nanos().min(u64::from(self.period));
        self.credit -= part;
        self.earned = Earned::new();
        // What came while nothing was held says nothing.
        if !self.is(BOUNDED) {
            (self.smooth_milli, self.progress) = (0, 0);
        }
        self.state &= !COUNT;
        self.end_free();
        Arrival::Schedule
    }

    /// The scheduled release time has come; `held` bytes wait. `mss` is what a full segment carries.
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

    /// Gives up release times further back than `catch_up`; returns how many.
    #[inline]
    pub fn skip_missed(&mut self, now: Time, catch_up: Duration) -> u64 {
        let late = now.as_nanos().saturating_sub(self.due);
        let too_late = late.saturating_sub(catch_up.as_nanos());
        if too_late == 0 {
            return 0;
        }
        // The next one may be as far off as a period, but not yet to come: it is carried out now.
        let period = u64::from(self.period).max(1);
        let missed = too_late.div_ceil(period).min(late / period);
        self.due += missed * u64::from(self.period);
        let forfeited = self.period().saturating_mul(missed);
        self.entitle(forfeited);
        self.told(0, self.rate().map_or(0, |r| clamp(r.bytes_in(forfeited))));
        missed
    }

    /// `bytes` are acknowledged without waiting for their time. Where no release is scheduled, what was earned up to
    /// `idle` counts first, `depth` as in [`Pace::arrive`].
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

    /// Up to `now` the rate was not asked: what passed counts nowhere, and the flow goes on as one that is idle and in no slow
    /// start, with `depth` as in [`Pace::arrive`].
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

    /// The next release time is a period from now: the right edge catches up.
    pub fn go_on(&mut self, now: Time) {
        self.end_free();
        self.due = now.as_nanos() + u64::from(self.period);
    }

    /// A release of `bytes` could not be carried out.
    pub fn refund(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes);
        self.told(0, bytes);
    }

    /// No release is scheduled any more; credit is earned from `now` on.
    pub fn stop(&mut self, now: Time) {
        // The last release was a period before the next.
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

    /// Most credit that an idle flow keeps: a step, or a bucket of `depth` if that is more.
    fn cap(&self, depth: u32) -> u32 {
        let step = if self.in_slow_start() { (self.step() / 2).max(1) } else { self.step() };
        step.max(depth)
    }

    fn earn_idle(&mut self, now: Time, depth: u32) {
        let earned = self.earn_since_due(now);
        self.keep(self.credit.saturating_add(earned), depth);
    }

    /// What becomes credit of what was earned up to `now` while no release was scheduled.
    fn earn_since_due(&mut self, now: Time) -> u32 {
        let elapsed = now.since(Time::from_nanos(self.due));
        self.due = self.due.max(now.as_nanos());
        let earned = self.earn(elapsed);
        self.told(0, earned);
        earned - self.pay_idle(earned, elapsed)
    }

    /// Of so much credit an idle flow keeps a step, or its bucket.
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

    /// Time in which a delayed ACK, for two segments, is earned; at least a period.
    fn beat(&self, mss: u16) -> Duration {
        let delayed_ack = self.rate().map_or(Duration::ZERO, |r| r.time_for(2 * u64::from(mss)));
        self.period().max(delayed_ack)
    }
}

fn clamp(bytes: u64) -> u32 {
    bytes.min(u64::from(u32::MAX)) as u32
}
