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

    /// Returns the mean rate, over a round of a trace that repeats, otherwise up to the last step. At least a
    /// bit per second.
    pub fn mean(&self) -> Rate {
        let (bits, time) = match self {
            RateTrace::Rates(rates) => rates.total(),
            RateTrace::Opportunities(o) => {
                (o.at_ms.len() as u128 * u128::from(8 * Opportunities::BYTES) * 1_000_000_000, o.period())
            }
        };
        let bps = bits / u128::from(time.as_nanos().max(1));
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX)).unwrap_or(Rate::kbit(1))
    }
}

impl Rates {
    /// Returns the bits × 10^9 of a round, and its length.
    fn total(&self) -> (u128, Duration) {
        let bps = |rate: Option<Rate>| rate.map_or(0, Rate::bps);
        let last = self.steps.last().copied().unwrap_or_default();
        let (end, tail) = match self.period {
            Some(period) => (period, u128::from((period - last.0).as_nanos()) * u128::from(bps(last.1))),
            None if self.steps.len() > 1 => (last.0, 0),
            // One constant rate.
            None => (Duration::from_secs(1), u128::from(bps(last.1)) * 1_000_000_000),
        };
        let steps = self.steps.windows(2).map(|two| {
            let [(from, rate), (until, _)] = [two[0], two[1]];
            u128::from((until - from).as_nanos()) * u128::from(bps(rate))
        });
        (steps.sum::<u128>() + tail, end)
    }
}
