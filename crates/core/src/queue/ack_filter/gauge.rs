//! Use of the channel, and the filter's other measurements: the round-trip time and the segments per ACK.

use super::flows::Flow;
use super::{Measure, Params, Rule};
use crate::rate::{mul_div, Rate};
use crate::systems::ack_filter::{channel, part, Meter, ALL};
use crate::time::{Duration, Time};

/// Round-trip time until a handshake has shown one.
const ASSUMED: Duration = Duration::from_millis(200);
const LEAST: Duration = Duration::from_millis(10);
const MOST: Duration = Duration::from_secs(2);
/// Unit of the segments per ACK: 256ths. At first they are two (RFC 9293 §3.8.6.3).
const SEGMENT: u32 = 256;
/// Most segments per ACK that are counted.
const STRETCH: u32 = 8;
/// Conditions for the end of a flow. After a window of silence it is over if its FIN has arrived, or if it
/// uses less than a tenth of its share or a hundredth of the channel. After ten windows any flow is over.
const OF_ITS_SHARE: u64 = 10;
const OF_ALL: u64 = 100;
const WINDOWS: u64 = 10;

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Gauge {
    measure: Measure,
    /// Flag: a backlog of more than a round trip filters a flow as well.
    by_backlog: bool,
    on: u32,
    off: u32,
    /// Configured window.
    window: Option<Duration>,
    /// Shortest time of recent handshakes.
    rtt: Option<Duration>,
    segments: u32,
    channel: u64,
    /// Rate of all departures, and of departing ACKs.
    all: Meter,
    acks: Meter,
    /// Share of the time in which an ACK waits.
    present: Meter,
    /// Filtering of the ACKs of all flows.
    filtered: bool,
}

impl Gauge {
    pub(super) fn new(params: &Params, rate: Rate) -> Gauge {
        let none = Meter::new(Time::ZERO);
        let Params { measure, on, off, window, .. } = *params;
        let (all, acks, present, filtered) = (none, none, none, false);
        let (rtt, segments, channel) = (None, 2 * SEGMENT, channel(rate));
        let by_backlog = params.rule == Rule::Adapted;
        Gauge { measure, by_backlog, on, off, window, rtt, segments, channel, all, acks, present, filtered }
    }

    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.channel = channel(rate);
    }

    pub(super) fn window(&self) -> Duration {
        self.window.unwrap_or(self.rtt())
    }

    /// Returns the round-trip time, by the handshakes seen.
    pub(super) fn rtt(&self) -> Duration {
        self.rtt.map_or(ASSUMED, |rtt| rtt.clamp(LEAST, MOST))
    }

    /// Notes a departing packet. For an ACK, `ack_since` is the time since which its place is taken.
    pub(super) fn note_left(&mut self, now: Time, bytes: u64, ack_since: Option<Time>) {
        let window = self.window();
        self.all.bytes(now, bytes, window);
        if let Some(since) = ack_since {
            self.acks.bytes(now, bytes, window);
            self.present.present(now, since, window);
        }
    }

    /// Notes the time of a handshake. A shorter time counts at once. A longer one raises the estimate by at
    /// most a 32nd.
    pub(super) fn note_handshake(&mut self, took: Duration) {
        let known = self.rtt.unwrap_or(took);
        self.rtt = Some(took.min(known + Duration::from_nanos(known.as_nanos() / 32)));
    }

    /// Notes that an ACK acknowledges `bytes` more, in segments of `mss`.
    pub(super) fn note_progress(&mut self, bytes: u32, mss: u16) {
        if let Some(segments) =
            bytes.min(STRETCH * u32::from(mss)).saturating_mul(SEGMENT).checked_div(mss.into())
        {
            self.segments = (15 * self.segments + segments) / 16;
        }
    }

    /// Returns whether the channel is used, so that the ACKs of all flows are filtered (§3).
    pub(super) fn is_used(&mut self, now: Time) -> bool {
        let window = self.window();
        let (used, of) = match self.measure {
            Measure::Rate => (self.acks.at(now, window), self.channel),
            Measure::Presence => (self.present.at(now, window), ALL),
        };
        self.filtered = used > part(of, self.bound(self.filtered));
        self.filtered
    }

    /// Returns whether the flow, one of `active`, uses its share of the channel, so that its ACKs are
    /// filtered (§4.1). It also does while more of its ACKs, of `bytes` bytes each, wait than its share
    /// carries in a round trip. No burst of slow start makes as many (§3).
    pub(super) fn uses_its_share(&self, flow: &mut Flow, active: u32, bytes: u64, now: Time) -> bool {
        let window = self.window();
        let bound = self.bound(flow.filtered);
        let (of, waits) = match self.measure {
            Measure::Rate => (self.channel, true),
            Measure::Presence => (self.all.at(now, window), self.present.at(now, window) > part(ALL, bound)),
        };
        let used = flow.ack_rate.at(now, window).saturating_mul(active.into());
        flow.filtered = waits && used > part(of, bound);
        let waiting = channel_bytes(u64::from(flow.acks).saturating_mul(bytes));
        flow.filtered
            || (self.by_backlog && waits && waiting.saturating_mul(active.into()) > self.in_a_round_trip(of))
    }

    fn bound(&self, filtered: bool) -> u32 {
        if filtered {
            self.off
        } else {
            self.on
        }
    }

    /// Returns whether an idle flow, one of `active`, is over.
    pub(super) fn is_over(&self, flow: &Flow, active: u32, now: Time) -> bool {
        let window = self.window();
        let rate = flow.rate.at(now, window);
        let little = rate.saturating_mul(OF_ITS_SHARE * u64::from(active)) < self.channel
            || rate.saturating_mul(OF_ALL) < self.channel;
        let silent = flow.rate.silent(now);
        silent >= window.saturating_mul(WINDOWS)
            || (silent >= window && (flow.ends || (self.measure == Measure::Rate && little)))
    }

    /// Returns the amount that a rate carries in a round trip.
    fn in_a_round_trip(&self, rate: u64) -> u64 {
        mul_div(rate, self.window().as_nanos(), 0, 1_000_000_000).0
    }

    /// Returns `μ_r T / (d + 1)`, for ACKs of `bytes` bytes (§2.2, equation 1). At least 1.
    pub(super) fn threshold(&self, bytes: u64) -> u64 {
        let in_flight = self.in_a_round_trip(self.channel);
        let each = channel_bytes(bytes) / u64::from(SEGMENT) * u64::from(self.segments + SEGMENT);
        (in_flight / each.max(1)).max(1)
    }
}

/// Returns bytes, or bytes a second, in the unit of the channel.
fn channel_bytes(bytes: u64) -> u64 {
    channel(Rate::from_bps(bytes.max(1).saturating_mul(8)).unwrap_or(Rate::mbit(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gauge(rate: Rate) -> Gauge {
        Gauge::new(&Params::default(), rate)
    }

    /// §2.4: 312.5 ACKs a second, 200 ms and one segment per ACK give 31.25. Equation 1 with two segments
    /// gives 20.83.
    #[test]
    fn the_threshold_of_equation_1() {
        let mut g = gauge(Rate::kbit(100));
        g.note_handshake(Duration::from_millis(200));
        assert_eq!(g.threshold(40), 20);
        (0..200).for_each(|_| g.note_progress(960, 960));
        assert_eq!(g.threshold(40), 31);
        assert_eq!(gauge(Rate::from_bps(1).unwrap()).threshold(1500), 1);
    }

    #[test]
    fn the_shortest_handshake_counts_and_longer_ones_slowly() {
        let mut g = gauge(Rate::kbit(100));
        assert_eq!(g.window(), Duration::from_millis(200));
        for (took, window) in [(80, 80_000), (40, 40_000), (400, 41_250), (41, 41_000)] {
            g.note_handshake(Duration::from_millis(took));
            assert_eq!(g.window(), Duration::from_micros(window));
        }
    }
}
