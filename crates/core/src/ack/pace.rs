//! Release at a rate: when how many held bytes may be acknowledged (ACK shaper, figs 1 and 5).
//!
//! A flow is *backlogged* while it holds something; its releases are then exactly one period apart,
//! counted from its own due time, and each adds `rate × period` bytes of credit with the fraction of
//! a byte carried. While nothing is held credit grows up to one step only, so an idle flow
//! earns no burst. Bytes that had to be acknowledged early (duplicates, FIN) are *debt*, repaid with
//! half of what is earned, so that the ACK clock slows down and never falls silent.
//!
//! With [`Meter::Received`] it is what arrives from the receiver that is held at the rate. What came *ahead*
//! of the rate is the integral of arrivals less rate; a share of it, spread over three round trips, is taken off each
//! release. This is an integral controller around a delay of one round trip, stable up to a round trip of
//! π/2 times its time constant and without oscillation up to 1/e of it. A window that grows at a steady pace
//! is met by as much less, exactly; slow start by the half.

use super::{Meter, Period, RateRelease, SlowStart};
use crate::rate::{Earned, Rate};
use crate::time::{Duration, Time};

/// In the state: the step is halved, since the sender is in slow start.
const HALVED: u32 = 1 << 31;
/// In the state: [`Meter::Received`].
const RECEIVED: u32 = 1 << 30;
/// In the state, with `RECEIVED`: what was acknowledged early is being repaid.
const REPAYS: u32 = 1 << 29;
/// The rest of the state counts the release times since the detector's last step.
const COUNT: u32 = REPAYS - 1;
/// Without any progress the detector takes its next step when this could have been acknowledged at
/// the flow's rate: a receiver that merges segments (GRO) acknowledges up to as much at once.
const SILENCE: u64 = 1 << 16;

/// State of the release of one flow.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Pace {
    /// While a release is scheduled: when. Otherwise: the time up to which credit was earned.
    pub due: u64,
    /// Payload bits per second.
    rate_bps: u64,
    earned: Earned,
    /// Since when a full step has been held without a break; 0 for not at all. Before the first
    /// acknowledgement: when a SYN passed.
    pub mark: u64,
    /// Nanoseconds between releases.
    period: u32,
    /// Bytes that may be acknowledged now.
    credit: u32,
    /// Debt: bytes acknowledged ahead of the rate, never negative. With `RECEIVED`: bytes received ahead of it.
    ahead: i32,
    /// Smoothed progress, in thousandths of what the rate allows.
    smooth_milli: u32,
    /// Progress since the detector's last step.
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
        let gated = matches!(policy.slow_start, SlowStart::Detect { gated: true, .. });
        let period = period(policy.period, rate, mss).as_nanos().min(u64::from(u32::MAX)) as u32;
        let mut pace = Pace {
            due: now.as_nanos(),
            rate_bps: rate.bps(),
            period,
            state: if from_syn && gated { HALVED } else { 0 }
                | if policy.meter == Meter::Received { RECEIVED } else { 0 },
            ..Pace::default()
        };
        pace.credit = pace.cap();
        pace
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
        self.ahead.max(0) as u32
    }
    /// Is the step halved?
    pub fn in_slow_start(&self) -> bool {
        self.state & HALVED != 0
    }
    /// Bytes of a full step, at least 1.
    pub fn step(&self) -> u32 {
        self.rate().map_or(1, |r| clamp(r.bytes_in(self.period())).max(1))
    }

    /// The receiver acknowledged `bytes` more.
    pub fn progressed(&mut self, bytes: u32) {
        self.progress = self.progress.saturating_add(bytes);
        if self.is(RECEIVED) {
            self.ahead = self.ahead.saturating_add_unsigned(bytes);
        }
    }

    /// Something is held and no release is scheduled.
    pub fn arrive(&mut self, now: Time, held: u32) -> Arrival {
        if self.is(RECEIVED) {
            self.ahead = 0; // all that came before has been passed on
        }
        self.earn_idle(now);
        if self.credit >= held {
            self.credit -= held;
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
        (self.smooth_milli, self.progress) = (0, 0);
        self.state &= !COUNT;
        Arrival::Schedule
    }

    /// The scheduled release time has come; `held` bytes wait. `mss` is what a full segment carries.
    pub fn tick(&mut self, policy: &RateRelease, rtt: Duration, mss: u16, held: u32) -> Tick {
        let at = self.due;
        let earned = self.earn(self.period());
        let paid = if self.is(RECEIVED) { self.hold_back(earned, rtt, mss) } else { self.repay(earned) };
        self.credit = self.credit.saturating_add(earned - paid);
        let entered_slow_start = self.detect(policy.slow_start, rtt, mss, at);
        let release = held.min(self.credit);
        self.credit -= release;
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
        let missed = too_late.div_ceil(u64::from(self.period).max(1));
        self.due += missed * u64::from(self.period);
        if self.is(RECEIVED) {
            self.ahead = 0;
        }
        missed
    }

    /// `bytes` were acknowledged without waiting for their time.
    pub fn acknowledge_early(&mut self, bytes: u32) {
        let covered = self.credit.min(bytes);
        self.credit -= covered;
        if self.is(RECEIVED) {
            // What the sender makes of it will be counted when it arrives.
            self.state |= REPAYS;
        } else {
            self.ahead = self.ahead.saturating_add_unsigned(bytes - covered);
        }
        self.mark = 0;
    }

    /// A release of `bytes` could not be carried out.
    pub fn refund(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes);
    }

    /// No release is scheduled any more; credit is earned from `now` on.
    pub fn stop(&mut self, now: Time) {
        self.due = now.as_nanos();
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
        let paid = self.repay(earned);
        let credit = self.credit.saturating_add(earned - paid);
        self.credit = credit.min(self.cap());
        self.ahead -= self.debt().min(credit - self.credit) as i32;
    }

    /// The part of `earned` that repays debt.
    fn repay(&mut self, earned: u32) -> u32 {
        let paid = self.debt().min(earned / 2);
        self.ahead -= paid as i32;
        paid
    }

    /// The part of `earned` that is not released so that no more than the rate arrives.
    fn hold_back(&mut self, earned: u32, rtt: Duration, mss: u16) -> u32 {
        let full = if self.in_slow_start() { earned.saturating_mul(2) } else { earned };
        let slack = self.slack(mss);
        self.ahead = self.ahead.saturating_sub_unsigned(full).max(-slack);
        let horizon = (rtt + self.beat(mss).saturating_mul(2)).saturating_mul(3).as_nanos();
        let share = u64::from(self.debt()) * u64::from(self.period) / horizon.max(1);
        if share < u64::from(earned / 4) {
            self.state &= !REPAYS;
        }
        share.min(u64::from(earned / 2)) as u32
    }

    /// How far arrivals may fall behind the rate and still be made up for. They come in bursts: of a step, of
    /// the segments of a delayed ACK, of what segmentation offload sends at once (1 ms, up to 64 KiB).
    fn slack(&self, mss: u16) -> i32 {
        let offload = self.rate().map_or(0, |r| r.bytes_in(Duration::from_millis(1))).min(1 << 16) as u32;
        let burst = self.step().max(2 * u32::from(mss)).max(offload);
        i32::try_from(burst).unwrap_or(i32::MAX).saturating_mul(2)
    }

    /// Time in which a delayed ACK, for two segments, is earned; at least a period.
    fn beat(&self, mss: u16) -> Duration {
        let delayed_ack = self.rate().map_or(Duration::ZERO, |r| r.time_for(2 * u64::from(mss)));
        self.period().max(delayed_ack)
    }

    fn is(&self, flag: u32) -> bool {
        self.state & flag != 0
    }

    fn note_held(&mut self, held: u32, at: u64) {
        if held < self.step() {
            self.mark = 0;
        } else if self.mark == 0 {
            self.mark = at.max(1);
        }
    }

    /// The detector; true when slow start has just been found.
    fn detect(&mut self, slow_start: SlowStart, rtt: Duration, mss: u16, at: u64) -> bool {
        let SlowStart::Detect { enter_milli, exit_milli, gated } = slow_start else {
            return false;
        };
        let repays = if self.is(RECEIVED) { self.is(REPAYS) } else { self.ahead > 0 };
        if !self.smooth() || repays {
            return false; // recovery's bursts say nothing about slow start
        }
        if !self.in_slow_start() {
            let enter = self.smooth_milli > enter_milli;
            self.state |= if enter { HALVED } else { 0 };
            return enter;
        }
        let judged = !gated || (self.mark != 0 && at.saturating_sub(self.mark) >= self.settled(rtt, mss));
        if judged && self.smooth_milli < exit_milli {
            self.state &= !HALVED;
        }
        false
    }

    /// Adds the progress since the last step of the detector to the moving average; false if the step is
    /// still to come. Where less than a segment is released at a time (fig. 6) most release times see no
    /// progress: their share is in the next ratio, not a ratio of nothing each.
    fn smooth(&mut self) -> bool {
        self.state += 1;
        let periods = u64::from(self.state & COUNT);
        let expected = self.rate().map_or(0, |r| r.bytes_in(self.period().saturating_mul(periods))).max(1);
        if self.progress == 0 && expected < SILENCE {
            return false;
        }
        self.state &= !COUNT;
        let ratio = u64::from(core::mem::take(&mut self.progress)) * 1000 / expected;
        self.smooth_milli = ((u64::from(self.smooth_milli) * 7 + ratio * 3) / 10).min(1_000_000) as u32;
        true
    }

    /// How long a full step must have been held before the end of slow start is believed: the round trip and three
    /// steps of the detector.
    fn settled(&self, rtt: Duration, mss: u16) -> u64 {
        (rtt + self.beat(mss).saturating_mul(3)).as_nanos()
    }
}

fn clamp(bytes: u64) -> u32 {
    bytes.min(u64::from(u32::MAX)) as u32
}

fn period(period: Period, rate: Rate, mss: u16) -> Duration {
    match period {
        Period::Fixed(d) => d,
        Period::Auto { min, max } => {
            let segment = rate.time_for(u64::from(mss));
            segment.saturating_mul(2).clamp(min, max.max(min)).max(segment)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::{AckControl, Release};
    use proptest::prelude::*;

    fn policy(period: Period, slow_start: SlowStart) -> RateRelease {
        let Release::Rate(r) = AckControl::ack_shaper(Rate::mbit(10)).release;
        RateRelease { period, slow_start, ..r }
    }

    #[test]
    fn automatic_period_is_two_segments_within_its_bounds() {
        let auto = Period::Auto { min: Duration::from_micros(50), max: Duration::from_millis(10) };
        // 2 × 1448 bytes at 10 Mb/s: 2.3168 ms.
        assert_eq!(period(auto, Rate::mbit(10), 1448), Duration::from_nanos(2_316_800));
        // At 10 Gb/s two segments take 2.3 us: the shortest period.
        assert_eq!(period(auto, Rate::mbit(10_000), 1448), Duration::from_micros(50));
        // At 100 kb/s 10 ms would be 125 bytes: one segment, 115.84 ms.
        assert_eq!(period(auto, Rate::kbit(100), 1448), Duration::from_micros(115_840));
    }

    #[test]
    fn the_papers_timer() {
        // fig. 12: 10 Mb/s, 10 ms: 12,500 bytes every 10 ms.
        let p = policy(Period::Fixed(Duration::from_millis(10)), SlowStart::Ignore);
        let mut pace = Pace::new(&p, Rate::mbit(10), 1448, true, Time::ZERO);
        assert_eq!(pace.arrive(Time::ZERO, 100_000), Arrival::Schedule);
        assert_eq!(pace.due, 0); // the step of credit was there from the start
        for n in 1..=5u64 {
            assert_eq!(pace.tick(&p, Duration::ZERO, 1448, 100_000).release, 12_500);
            assert_eq!(pace.due, n * 10_000_000);
        }
        // The last bytes go at the first release time.
        assert_eq!(pace.tick(&p, Duration::ZERO, 1448, 300).release, 300);
    }

    #[test]
    fn steps_below_a_segment() {
        // fig. 6: 5 Gb/s with a timer of 2 us: 1,250 bytes, less than a packet.
        let p = policy(Period::Fixed(Duration::from_micros(2)), SlowStart::Ignore);
        let mut pace = Pace::new(&p, Rate::mbit(5000), 1448, false, Time::ZERO);
        pace.arrive(Time::ZERO, 10_000);
        assert_eq!(pace.tick(&p, Duration::ZERO, 1448, 10_000).release, 1_250);
    }

    #[test]
    fn an_idle_flow_earns_one_step() {
        let p = policy(Period::Fixed(Duration::from_millis(10)), SlowStart::Ignore);
        let mut pace = Pace::new(&p, Rate::mbit(10), 1448, false, Time::ZERO);
        let hour = Time::from_secs(3600);
        assert_eq!(pace.arrive(hour, 12_501), Arrival::Schedule);
        let mut again = Pace::new(&p, Rate::mbit(10), 1448, false, Time::ZERO);
        assert_eq!(again.arrive(hour, 12_500), Arrival::Release);
        // 5 ms later half a step is there: 6,250 bytes, the rest 5 ms later still.
        assert_eq!(again.arrive(Time::from_nanos(hour.as_nanos() + 5_000_000), 6_251), Arrival::Schedule);
        assert_eq!(again.due, hour.as_nanos() + 10_000_000);
    }

    #[test]
    fn debt_halves_the_steps_and_ends() {
        let p = policy(Period::Fixed(Duration::from_millis(10)), SlowStart::Ignore);
        let mut pace = Pace::new(&p, Rate::mbit(10), 1448, false, Time::ZERO);
        pace.acknowledge_early(12_500 + 20_000); // one step was covered
        assert_eq!(pace.debt(), 20_000);
        pace.arrive(Time::ZERO, 1_000_000);
        let steps: Vec<u32> =
            (0..5).map(|_| pace.tick(&p, Duration::ZERO, 1448, 1_000_000).release).collect();
        // 6,250 a step pays 20,000 in 3 steps and 1,250 of the fourth.
        assert_eq!(steps, [6_250, 6_250, 6_250, 11_250, 12_500]);
    }

    #[test]
    fn an_hour_asleep_costs_all_but_the_catch_up() {
        let p = policy(Period::Fixed(Duration::from_millis(10)), SlowStart::Ignore);
        let mut pace = Pace::new(&p, Rate::mbit(10), 1448, false, Time::ZERO);
        pace.arrive(Time::ZERO, 1_000_000);
        let missed = pace.skip_missed(Time::from_secs(1), Duration::from_millis(100));
        assert_eq!((missed, pace.due), (90, 900_000_000));
    }

    /// A fluid sender in slow start: `factor` bytes per acknowledged byte, arriving one round trip later.
    fn drive(
        mut pace: Pace,
        p: &RateRelease,
        rtt_periods: usize,
        factor: impl Fn(usize) -> u32,
    ) -> Vec<bool> {
        let rtt = pace.period().saturating_mul(rtt_periods as u64);
        let mut pipe = std::collections::VecDeque::from(vec![0u32; rtt_periods]);
        pipe[0] = 10_000;
        let (mut held, mut halved) = (10_000u32, Vec::new());
        pace.arrive(Time::ZERO, held);
        for n in 0..400 {
            let tick = pace.tick(p, rtt, 1448, held);
            held -= tick.release;
            pipe.push_back(tick.release * factor(n));
            let arrived = pipe.pop_front().unwrap_or(0);
            pace.progressed(arrived);
            held += arrived;
            halved.push(pace.in_slow_start());
        }
        halved
    }

    #[test]
    fn slow_start_ends_once_and_late_enough() {
        let p = policy(Period::Fixed(Duration::from_millis(10)), SlowStart::DETECT);
        let pace = Pace::new(&p, Rate::mbit(10), 1448, true, Time::ZERO);
        let halved = drive(pace, &p, 20, |n| if n < 150 { 2 } else { 1 });
        let changes = halved.windows(2).filter(|w| w[0] != w[1]).count();
        assert_eq!(changes, 1, "one transition");
        let exit = halved.iter().position(|h| !h).unwrap();
        // Not before the sender left slow start, and at most one RTT + 3 periods after its
        // single-rate ACKs came back (20 periods of path).
        assert!((150 + 20..=150 + 20 + 23).contains(&exit), "{exit}");
    }

    #[test]
    fn slow_start_of_a_flow_taken_up_in_midstream_is_found() {
        let p = policy(Period::Fixed(Duration::from_millis(10)), SlowStart::DETECT);
        let pace = Pace::new(&p, Rate::mbit(10), 1448, false, Time::ZERO);
        let halved = drive(pace, &p, 4, |_| 2);
        assert!(!halved[0] && halved[399]);
    }

    #[test]
    fn what_came_below_the_rate_is_no_slow_start() {
        let p = policy(Period::Fixed(Duration::from_millis(10)), SlowStart::DETECT);
        let mut pace = Pace::new(&p, Rate::mbit(10), 1448, false, Time::ZERO);
        // Half the rate for a second, all of it let through; then more than a step.
        for n in 1..=100 {
            pace.progressed(6_250);
            assert_eq!(pace.arrive(Time::from_millis(10 * n), 6_250), Arrival::Release);
        }
        pace.progressed(20_000);
        assert_eq!(pace.arrive(Time::from_millis(1_001), 20_000), Arrival::Schedule);
        let tick = pace.tick(&p, Duration::ZERO, 1448, 20_000);
        assert!(!tick.entered_slow_start && !pace.in_slow_start());
    }

    /// 1 us at 5 Gb/s: 625 bytes. A segment every 2.3 periods is the rate; a silent period between two of them is no
    /// end of anything, 64 KiB of silence is.
    #[test]
    fn release_times_without_progress_wait_for_it() {
        let p = policy(Period::Fixed(Duration::from_micros(1)), SlowStart::DETECT);
        let mut pace = Pace::new(&p, Rate::mbit(5_000), 1448, true, Time::ZERO);
        pace.arrive(Time::ZERO, 1 << 20);
        let mut silent = 0;
        for n in 1u32..=10_000 {
            if n * 625 / 1448 > (n - 1) * 625 / 1448 {
                pace.progressed(1448);
            }
            pace.tick(&p, Duration::from_micros(100), 1448, 1 << 20);
            assert!(pace.in_slow_start(), "after {n} us");
        }
        while pace.in_slow_start() {
            pace.tick(&p, Duration::from_micros(100), 1448, 1 << 20);
            silent += 1;
        }
        // 65,536 / 625 = 104.9: one step of the detector after 105 periods brings 1.0 to 0.7.
        assert!((104..=106).contains(&silent), "{silent}");
    }

    proptest! {
        /// Acknowledged bytes of a backlogged flow differ from rate × time by less than a step.
        #[test]
        fn exact_over_any_time(bps in 8_000u64..100_000_000_000, period_us in 10u64..100_000, ticks in 1usize..300) {
            let rate = Rate::from_bps(bps).unwrap();
            let p = policy(Period::Fixed(Duration::from_micros(period_us)), SlowStart::Ignore);
            let mut pace = Pace::new(&p, rate, 1448, false, Time::ZERO);
            prop_assert!(pace.arrive(Time::ZERO, u32::MAX) == Arrival::Schedule);
            let start = pace.due;
            let mut sum = 0u128;
            for _ in 0..ticks {
                sum += u128::from(pace.tick(&p, Duration::ZERO, 1448, u32::MAX).release);
                let fluid = u128::from(pace.due - start) * u128::from(bps) / 8_000_000_000;
                prop_assert!(sum.abs_diff(fluid) <= u128::from(pace.step()));
            }
        }
    }
}
