//! Traces: recordings of a path in a file, to be repeated.
//!
//! A trace is read once and lives as long as the process. Links share it, and their configurations hold a
//! reference.

use crate::rate::Rate;
use crate::time::Duration;
use core::num::NonZeroU64;
use serde::{Deserialize, Deserializer};

/// Origin of a trace. The alias keeps `serde` from borrowing it from its input.
type Origin = &'static str;

/// Reads a part of a trace, which then lives as long as the process.
fn kept<'de, D: Deserializer<'de>, T: ?Sized + 'static>(input: D) -> Result<&'static T, D::Error>
where
    Box<T>: Deserialize<'de>,
{
    Box::deserialize(input).map(|read| &*Box::leak(read))
}

/// Frames that are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, Deserialize)]
pub struct LossTrace {
    /// Origin of the trace.
    #[serde(deserialize_with = "kept")]
    pub name: Origin,
    /// Lost frames, counted from 0, in order, all below `period`.
    #[serde(deserialize_with = "kept")]
    pub lost: &'static [u64],
    /// Number of frames after which the trace repeats. `None` if it does not.
    pub period: Option<NonZeroU64>,
}

/// A rate over time. It begins when the link does ([`Config::epoch`](super::Config::epoch)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, Deserialize)]
pub enum RateTrace {
    /// A rate that changes at some times.
    Rates(Rates),
    /// Times at which a number of bytes can leave at once.
    Opportunities(Opportunities),
}

/// A rate that changes at some times, and is constant between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, Deserialize)]
pub struct Rates {
    /// Origin of the trace.
    #[serde(deserialize_with = "kept")]
    pub name: Origin,
    /// Steps in order: a time and the rate from then on. The first is at zero. `None` is an outage.
    #[serde(deserialize_with = "kept")]
    pub steps: &'static [(Duration, Option<Rate>)],
    /// Time after which it repeats, later than the last step. `None` if the last rate stays.
    pub period: Option<Duration>,
}

/// Mahimahi's packet-delivery trace. Each opportunity lets [`Opportunities::BYTES`] leave, of one packet or
/// several, and the rest of a packet with the next one. An opportunity that finds nothing to send is lost
/// (Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015, §3; `link_queue.cc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, Deserialize)]
pub struct Opportunities {
    /// Origin of the trace.
    #[serde(deserialize_with = "kept")]
    pub name: Origin,
    /// Milliseconds since the beginning, in order, repeated for several at once. The last is above zero, and
    /// the trace repeats from it.
    #[serde(deserialize_with = "kept")]
    pub at_ms: &'static [u64],
}

impl Opportunities {
    /// Bytes of one opportunity: a packet of 1,500 bytes and the 4 bytes that a TUN device puts in front of
    /// it.
    pub const BYTES: u64 = 1504;
    /// [`Config::overhead`](super::Config::overhead) as mahimahi counts.
    pub const OVERHEAD: u16 = 4;

    /// Returns the bits, times 10^9, of this number of opportunities.
    fn bits(&self, opportunities: usize) -> u128 {
        opportunities as u128 * u128::from(8 * Opportunities::BYTES) * 1_000_000_000
    }

    /// See [`RateTrace::time_for`].
    fn time_for(&self, bytes: u64, from: Duration) -> Option<Duration> {
        let all = self.at_ms.len() as u64;
        let in_round = Duration::from_nanos(from.as_nanos() % self.period().as_nanos());
        let past = self.at_ms.partition_point(|&at| at <= in_round.as_nanos() / 1_000_000) as u64;
        let Some(more) = bytes.div_ceil(Opportunities::BYTES).checked_sub(1) else {
            return Some(Duration::ZERO);
        };
        let last = past + more;
        let at = Duration::from_millis(*self.at_ms.get((last % all.max(1)) as usize)?);
        Some((self.period().saturating_mul(last / all) + at).saturating_sub(in_round))
    }

    /// Returns the length of a round.
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.at_ms.last().copied().unwrap_or(1).max(1))
    }
}

impl RateTrace {
    /// Returns the origin of the trace.
    pub fn name(&self) -> &'static str {
        match self {
            RateTrace::Rates(rates) => rates.name,
            RateTrace::Opportunities(opportunities) => opportunities.name,
        }
    }

    /// Returns the mean rate in a run of this length, or 1 kbit/s where nothing can leave. For a trace that
    /// repeats, it is that of a round. For any other in a run without an end, it is that up to the last step.
    pub fn mean(&self, run: Option<Duration>) -> Rate {
        let time = match self {
            RateTrace::Rates(Rates { period: Some(period), .. }) => *period,
            RateTrace::Rates(rates) => run.unwrap_or_else(|| rates.last_step()),
            RateTrace::Opportunities(opportunities) => opportunities.period(),
        };
        // A single step is at zero, and its rate that of any time.
        let time = if time == Duration::ZERO { Duration::from_secs(1) } else { time };
        let bits = match self {
            RateTrace::Rates(rates) => rates.bits(time),
            RateTrace::Opportunities(o) => o.bits(o.at_ms.len()),
        };
        let bps = bits / u128::from(time.as_nanos());
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX)).unwrap_or(Rate::kbit(1))
    }

    /// Returns the bits, times 10^9, that can leave in the first `time`.
    pub fn offered(&self, time: Duration) -> u128 {
        let period = match self {
            RateTrace::Rates(rates) => rates.period.unwrap_or(Duration::MAX),
            RateTrace::Opportunities(opportunities) => opportunities.period(),
        };
        let rounds = time.as_nanos() / period.as_nanos().max(1);
        let rest = Duration::from_nanos(time.as_nanos() % period.as_nanos().max(1));
        let (round, rest) = match self {
            RateTrace::Rates(rates) => (rates.bits(period), rates.bits(rest)),
            RateTrace::Opportunities(o) => {
                let by = rest.as_nanos() / 1_000_000;
                (o.bits(o.at_ms.len()), o.bits(o.at_ms.partition_point(|&at| at <= by)))
            }
        };
        u128::from(rounds) * round + rest
    }

    /// Returns the time in which `bytes` can leave, beginning `from` after the trace did. `None` for never.
    pub fn time_for(&self, bytes: u64, from: Duration) -> Option<Duration> {
        match self {
            RateTrace::Rates(rates) => rates.time_for(bytes, from),
            RateTrace::Opportunities(o) => o.time_for(bytes, from),
        }
    }
}

impl Rates {
    /// Returns the bits, times 10^9, that can leave in the first `time` of a round.
    fn bits(&self, time: Duration) -> u128 {
        let next = self.steps.iter().skip(1).map(|(at, _)| *at).chain([time]);
        let step = |((from, rate), until): (&(Duration, Option<Rate>), Duration)| {
            u128::from(until.min(time).saturating_sub(*from).as_nanos())
                * u128::from(rate.map_or(0, Rate::bps))
        };
        self.steps.iter().zip(next).map(step).sum()
    }

    /// See [`RateTrace::time_for`].
    fn time_for(&self, bytes: u64, from: Duration) -> Option<Duration> {
        let mut bits = u128::from(bytes) * 8 * 1_000_000_000;
        let in_round = |period: Duration| Duration::from_nanos(from.as_nanos() % period.as_nanos());
        let (mut at, mut took) = (self.period.map_or(from, in_round), Duration::ZERO);
        let mut step = self.steps.partition_point(|(begin, _)| *begin <= at).checked_sub(1)?;
        let mut walked = 0;
        loop {
            let bps = u128::from(self.steps[step].1.map_or(0, Rate::bps));
            let end = self.steps.get(step + 1).map(|(next, _)| *next).or(self.period);
            let room = end.map_or(u128::MAX, |end| u128::from(end.saturating_sub(at).as_nanos()) * bps);
            if bps > 0 && bits <= room || bits == 0 {
                let rest = u64::try_from(bits.div_ceil(bps.max(1))).ok()?;
                return Some(took + Duration::from_nanos(rest));
            }
            // An outage that never ends has no end here.
            let end = end?;
            (bits, took) = (bits - room, took + end.saturating_sub(at));
            walked += 1;
            if walked == self.steps.len() {
                // Few queues take longer than a round, so only these sum one.
                let (period, round) = (self.period?, self.bits(self.period?));
                let rounds = bits.saturating_sub(1).checked_div(round)?;
                bits -= rounds * round;
                took = took + period.saturating_mul(u64::try_from(rounds).ok()?);
            }
            let next = step + 1;
            (step, at) = if next < self.steps.len() { (next, end) } else { (0, Duration::ZERO) };
        }
    }

    fn last_step(&self) -> Duration {
        self.steps.last().map_or(Duration::ZERO, |(at, _)| *at)
    }
}
