//! Traces: what a path did once, recorded in a file, to be repeated.
//!
//! A trace is read once and lives as long as the process. Links share it, and their configurations hold a reference.

use crate::rate::Rate;
use crate::time::Duration;
use core::num::NonZeroU64;

/// Which frames are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossTrace {
    /// Where it is from.
    pub name: &'static str,
    /// The frames that are lost, counted from 0, in order, all below `period`.
    pub lost: &'static [u64],
    /// After so many frames the trace begins anew; `None` if it never does.
    pub period: Option<NonZeroU64>,
}

/// What a rate did over time. It begins when the link does ([`Config::epoch`](super::Config::epoch)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateTrace {
    /// A rate that changes at some times.
    Rates(Rates),
    /// Times at which so many bytes can leave at once.
    Opportunities(Opportunities),
}

/// A rate that changes at some times; between them it is constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Where it is from.
    pub name: &'static str,
    /// From when on which rate, in order, the first from zero on; `None` is an outage.
    pub steps: &'static [(Duration, Option<Rate>)],
    /// When it begins anew, later than the last step; `None` if the last rate stays.
    pub period: Option<Duration>,
}

/// Mahimahi's packet-delivery trace: each opportunity lets [`Opportunities::BYTES`] leave, of one packet or several, and the
/// rest of a packet with the next one. What finds nothing to send is lost (Netravali et al., "Mahimahi: Accurate
/// Record-and-Replay for HTTP", USENIX ATC 2015, §3; `link_queue.cc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opportunities {
    /// Where it is from.
    pub name: &'static str,
    /// Milliseconds since the beginning, in order; several may be alike. The last is above zero, and then the trace
    /// begins anew.
    pub at_ms: &'static [u64],
}

impl Opportunities {
    /// What one opportunity carries: a packet of 1,500 bytes and the 4 bytes that a TUN device puts in front of it.
    pub const BYTES: u64 = 1504;
    /// [`Config::overhead`](super::Config::overhead) that counts as mahimahi does.
    pub const OVERHEAD: u16 = 4;

    /// How long it lasts.
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.at_ms.last().copied().unwrap_or(1).max(1))
    }
}

impl RateTrace {
    /// Where it is from.
    pub fn name(&self) -> &'static str {
        match self {
            RateTrace::Rates(rates) => rates.name,
            RateTrace::Opportunities(opportunities) => opportunities.name,
        }
    }

    /// The rate on average: over a round of a trace that repeats, otherwise up to the last step; at least a bit per second.
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
    /// Bits × 10^9 of a round, and how long that is.
    fn total(&self) -> (u128, Duration) {
        let bps = |rate: Option<Rate>| rate.map_or(0, Rate::bps);
        let last = self.steps.last().copied().unwrap_or_default();
        let (end, tail) = match self.period {
            Some(period) => (period, u128::from((period - last.0).as_nanos()) * u128::from(bps(last.1))),
            None if self.steps.len() > 1 => (last.0, 0),
            // One rate for ever.
            None => (Duration::from_secs(1), u128::from(bps(last.1)) * 1_000_000_000),
        };
        let steps = self.steps.windows(2).map(|two| {
            let [(from, rate), (until, _)] = [two[0], two[1]];
            u128::from((until - from).as_nanos()) * u128::from(bps(rate))
        });
        (steps.sum::<u128>() + tail, end)
    }
}
