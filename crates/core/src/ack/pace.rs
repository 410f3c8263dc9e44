//! Release at a rate: when how many held bytes may be acknowledged (ACK shaper, figs 1 and 5).
//!
//! A flow is *backlogged* while it holds something; its releases are then exactly one period apart,
//! counted from its own due time, and each adds `rate × period` bytes of credit with the fraction of
//! a byte carried. While nothing is held credit grows up to one step only, so an idle flow
//! earns no burst. Bytes that had to be acknowledged early (duplicates, FIN) are *debt*, repaid with
//! half of what is earned, so that the ACK clock slows down and never falls silent.

mod ahead;
mod detect;
#[cfg(test)]
mod tests;

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

/// A flow that has not been backlogged for so many round trips is one whose rate does not bind: a sender in slow start
/// would have got from one segment to 64,000.
const FREE_ROUNDS: u64 = 16;
/// And for so long at least.
const FREE_LEAST: Duration = Duration::from_millis(2);

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
    /// Bytes that may be acknowledged now.
    credit: u32,
    /// Debt: bytes acknowledged ahead of the rate, never negative. With `RECEIVED`: bytes received ahead of it.
    ahead: i32,
    /// Smoothed progress, in thousandths of what the rate allows.
    smooth_milli: u32,
    /// Progress since the detector's last step; with `BOUNDED` see [`Pace::lag`].
    progress: u32,
    /// See [`HALVED`].
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
        pace.credit = pace.cap();
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
        self.credit = self.credit.min(self.cap());
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
    /// The advertised window bounds what the sender can be ahead: there is no slow start to look for.
    pub fn bounded(&mut self) {
        self.set(BOUNDED, true);
        self.set(HALVED, false);
    }
    /// Bytes of a full step, at least 1.
    pub fn step(&self) -> u32 {
        self.rate().map_or(1, |r| clamp(r.bytes_in(self.period())).max(1))
    }

    /// Bytes acknowledged ahead of the rate, by which the right edge lags behind: what a loss made known at once lets
    /// nothing be sent at once, where the window is sized.
    pub fn lag(&self) -> u32 {
        if self.is(BOUNDED) {
            (self.progress as i32).max(0) as u32
        } else {
            0
        }
    }

    /// So many bytes were acknowledged, and the rate allowed so many.
    fn told(&mut self, bytes: u32, entitled: u32) {
        if self.is(BOUNDED) {
            let lag = self.progress as i32;
            self.progress = lag.saturating_add_unsigned(bytes).saturating_sub_unsigned(entitled) as u32;
        }
    }

    /// While a loss is repaired nothing is acknowledged in sequence, and then a round trip's worth at once: so
    /// far the account may fall behind.
    fn limit_lag(&mut self, rtt: Duration) {
        if self.is(BOUNDED) && (self.progress as i32) < 0 {
            let round = self.rate().map_or(0, |r| r.bytes_in(rtt + self.period().saturating_mul(2)));
            let round = round.min(1 << 30) as i32;
            self.progress = (self.progress as i32).max(-round) as u32;
        }
    }

    /// The receiver acknowledged `bytes` more.
    pub fn progressed(&mut self, bytes: u32) {
        if !self.is(BOUNDED) {
            self.progress = self.progress.saturating_add(bytes);
        }
        self.arrived(bytes);
    }

    /// Something is held and no release is scheduled.
    pub fn arrive(&mut self, now: Time, held: u32) -> Arrival {
        self.earn_idle(now);
        if self.credit >= held {
            self.credit -= held;
            self.told(held, 0);
            return Arrival::Release;
        }
        // The next step is complete when the missing part has been earned; from there on releases
        // are one period apart.
        let missing = u64::from(self.cap() - self.credit.min(self.cap()));
        let wait = self.earning().map_or(Duration::ZERO, |r| r.time_for(missing));
        self.due = now.as_nanos() + wait.as_nanos().min(u64::from(self.period));
        self.credit = 0;
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
    pub fn tick(&mut self, policy: &RateRelease, rtt: Duration, mss: u16, held: u32) -> Tick {
        let at = self.due;
        let earned = self.earn(self.period());
        let caught_up = self.lag().min(earned);
        self.told(0, earned);
        self.limit_lag(rtt);
        let earned = earned - caught_up;
        let paid = self.pay(earned, rtt, mss);
        self.credit = self.credit.saturating_add(earned - paid);
        let entered_slow_start = self.detect(policy.slow_start, rtt, mss, at);
        let release = held.min(self.credit);
        self.credit -= release;
        self.told(release, 0);
        if release == held {
            self.credit = self.credit.min(self.cap());
        }
        self.note_held(held - release, at);
        self.due = at + u64::from(self.period);
        Tick { release, entered_slow_start }
    }

    /// Gives up release times further back than `catch_up`; returns how many.
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
    /// `idle` counts first.
    pub fn acknowledge_early(&mut self, bytes: u32, idle: Option<Time>, rtt: Duration) {
        if let Some(now) = idle {
            self.earn_idle(now);
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

    /// Bytes that may pass before the flow is looked at again: what has been earned up to [`Pace::due`]. None where the rate
    /// may bind: the flow has been backlogged lately, or something is to be repaid.
    pub fn free(&self, now: Time, rtt: Duration) -> u32 {
        let since = now.since(Time::from_nanos(self.mark));
        let long = since >= rtt.saturating_mul(FREE_ROUNDS).max(FREE_LEAST);
        if self.is(FREE) && long && !self.in_slow_start() && self.debt() == 0 {
            self.credit
        } else {
            0
        }
    }

    /// While no release is scheduled, `bytes` have passed since [`Pace::due`] as [`Pace::free`] had said: as if they had gone
    /// before anything more was earned. What is beyond the credit is owed.
    pub fn passed(&mut self, bytes: u32, now: Time, rtt: Duration) {
        let covered = self.credit.min(bytes);
        self.credit -= covered;
        self.told(covered, 0);
        self.earn_idle(now);
        if bytes > covered {
            self.acknowledge_early(bytes - covered, None, rtt);
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

    /// No release is scheduled from `now` on.
    fn set_free(&mut self, now: Time) {
        self.set(FREE, true);
        self.mark = now.as_nanos();
    }

    /// A release is scheduled.
    fn end_free(&mut self) {
        if self.is(FREE) {
            self.set(FREE, false);
            self.mark = 0;
        }
    }

    fn earning(&self) -> Option<Rate> {
        Rate::from_bps(if self.in_slow_start() { (self.rate_bps / 2).max(1) } else { self.rate_bps })
    }

    fn earn(&mut self, d: Duration) -> u32 {
        self.earning().map_or(0, |r| clamp(self.earned.earn(r, d)))
    }

    /// Most credit that an idle flow keeps.
    fn cap(&self) -> u32 {
        if self.in_slow_start() {
            (self.step() / 2).max(1)
        } else {
            self.step()
        }
    }

    fn earn_idle(&mut self, now: Time) {
        let elapsed = now.since(Time::from_nanos(self.due));
        self.due = self.due.max(now.as_nanos());
        let earned = self.earn(elapsed);
        self.told(0, earned);
        let paid = self.pay_idle(earned, elapsed);
        let credit = self.credit.saturating_add(earned - paid);
        self.credit = credit.min(self.cap());
        self.forfeit(credit - self.credit);
    }

    fn is(&self, flag: u32) -> bool {
        self.state & flag != 0
    }
    fn set(&mut self, flag: u32, on: bool) {
        self.state = if on { self.state | flag } else { self.state & !flag };
    }

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
