//! How much of the channel is used, and what else the filter measures: the round-trip time and the segments that an ACK acknowledges.

use super::flows::Flow;
use super::meter::{channel, part, Meter, ALL};
use super::{Measure, Params};
use crate::rate::{mul_div, Rate};
use crate::time::{Duration, Time};

/// Round-trip time until a handshake has shown one.
const ASSUMED: Duration = Duration::from_millis(200);
const LEAST: Duration = Duration::from_millis(10);
const MOST: Duration = Duration::from_secs(2);
/// Segments that an ACK acknowledges are in 256ths; at first they are two (RFC 9293 §3.8.6.3).
const SEGMENT: u32 = 256;
/// Most segments that one ACK is taken to acknowledge.
const STRETCH: u32 = 8;
/// A flow that has been silent for a window is over when its FIN has come, or when it uses less than one in so many of its share, or of the channel; any
/// flow after so many windows.
const OF_ITS_SHARE: u64 = 10;
const OF_ALL: u64 = 100;
const WINDOWS: u64 = 10;

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Gauge {
    measure: Measure,
    on: u32,
    off: u32,
    /// As configured.
    window: Option<Duration>,
    /// As the last handshakes took, the shortest of them.
    rtt: Option<Duration>,
    segments: u32,
    channel: u64,
    /// What leaves, and the ACKs of it.
    all: Meter,
    acks: Meter,
    /// How much of the time an ACK waits.
    present: Meter,
    /// Are all flows' ACKs filtered?
    filtered: bool,
}

impl Gauge {
    pub(super) fn new(params: &Params, rate: Rate) -> Gauge {
        let none = Meter::new(Time::ZERO);
        let Params { measure, on, off, window, .. } = *params;
        let (all, acks, present, filtered) = (none, none, none, false);
        let (rtt, segments, channel) = (None, 2 * SEGMENT, channel(rate));
        Gauge { measure, on, off, window, rtt, segments, channel, all, acks, present, filtered }
    }

    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.channel = channel(rate);
    }

    pub(super) fn window(&self) -> Duration {
        self.window.unwrap_or(self.rtt())
    }

    /// The round-trip time, as far as handshakes have shown it.
    pub(super) fn rtt(&self) -> Duration {
        self.rtt.map_or(ASSUMED, |rtt| rtt.clamp(LEAST, MOST))
    }

    /// A packet leaves; of an ACK, since when its place was taken.
    pub(super) fn note_left(&mut self, now: Time, bytes: u64, ack_since: Option<Time>) {
        let window = self.window();
        self.all.bytes(now, bytes, window);
        if let Some(since) = ack_since {
            self.acks.bytes(now, bytes, window);
            self.present.present(now, since, window);
        }
    }

    /// A handshake took so long: less counts at once, more by a 32nd of what is known.
    pub(super) fn note_handshake(&mut self, took: Duration) {
        let known = self.rtt.unwrap_or(took);
        self.rtt = Some(took.min(known + Duration::from_nanos(known.as_nanos() / 32)));
    }

    /// An ACK acknowledges so many bytes more, of segments of this size.
    pub(super) fn note_progress(&mut self, bytes: u32, mss: u16) {
        if let Some(segments) =
            bytes.min(STRETCH * u32::from(mss)).saturating_mul(SEGMENT).checked_div(mss.into())
        {
            self.segments = (15 * self.segments + segments) / 16;
        }
    }

    /// Is the channel used, so that the ACKs of all flows are filtered (§3)?
    pub(super) fn is_used(&mut self, now: Time) -> bool {
        let window = self.window();
        let (used, of) = match self.measure {
            Measure::Rate => (self.acks.at(now, window), self.channel),
            Measure::Presence => (self.present.at(now, window), ALL),
        };
        self.filtered = used > part(of, self.bound(self.filtered));
        self.filtered
    }

    /// Does the flow, one of so many, use its share of the channel, so that its ACKs are filtered (§4.1)? So it does while more of its ACKs, of so
    /// many bytes each, wait than its share carries in a round trip: no burst of slow start makes as many (§3).
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
        flow.filtered || (waits && waiting.saturating_mul(active.into()) > self.in_a_round_trip(of))
    }

    fn bound(&self, filtered: bool) -> u32 {
        if filtered {
            self.off
        } else {
            self.on
        }
    }

    /// Does an idle flow, one of so many, no longer count?
    pub(super) fn is_over(&self, flow: &Flow, active: u32, now: Time) -> bool {
        let window = self.window();
        let rate = flow.rate.at(now, window);
        let little = rate.saturating_mul(OF_ITS_SHARE * u64::from(active)) < self.channel
            || rate.saturating_mul(OF_ALL) < self.channel;
        let silent = flow.rate.silent(now);
        silent >= window.saturating_mul(WINDOWS)
            || (silent >= window && (flow.ends || (self.measure == Measure::Rate && little)))
    }

    /// What a rate carries in a round trip.
    fn in_a_round_trip(&self, rate: u64) -> u64 {
        mul_div(rate, self.window().as_nanos(), 0, 1_000_000_000).0
    }

    /// `μ_r T / (d + 1)`, for ACKs of so many bytes (§2.2, equation 1); 1 at least.
    pub(super) fn threshold(&self, bytes: u64) -> u64 {
        let in_flight = self.in_a_round_trip(self.channel);
        let each = channel_bytes(bytes) / u64::from(SEGMENT) * u64::from(self.segments + SEGMENT);
        (in_flight / each.max(1)).max(1)
    }
}

/// So many bytes, or bytes a second, in the unit of the channel.
fn channel_bytes(bytes: u64) -> u64 {
    channel(Rate::from_bps(bytes.max(1).saturating_mul(8)).unwrap_or(Rate::mbit(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gauge(rate: Rate) -> Gauge {
        Gauge::new(&Params::default(), rate)
    }

    /// §2.4: 312.5 ACKs a second, 200 ms and one segment for each ACK are 31.25; equation 1 with two segments is 20.83.
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
