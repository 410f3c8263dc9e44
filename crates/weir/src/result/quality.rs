//! Quality of TCP in reports: round-trip times of both sides, and scores of applications.

use serde::{Deserialize, Serialize};
use weir_core::gateway::Direction;
use weir_core::quality::{self, duration, score, FlowQuality, Measured, Quality, Rtt, Side, Sight, PROFILES};

/// Quantiles of round-trip times in microseconds. All are 0 without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// Samples of the last minutes; older ones count less.
    pub samples: u64,
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
}

/// Returns the sides of the WAN and of the LAN, of data in this direction.
fn sides(direction: Direction) -> [Side; 2] {
    match direction {
        Direction::In => [Side::Sender, Side::Receiver],
        Direction::Out => [Side::Receiver, Side::Sender],
    }
}

fn us(units: u32) -> u64 {
    duration(units).as_micros()
}

impl Latency {
    fn of(quality: &Quality, side: Side) -> Latency {
        let sketch = quality.side(side);
        let [p50, p90, p99] = sketch.quantiles([500_000, 900_000, 990_000]).map(us);
        Latency { samples: sketch.samples(), p50, p90, p99 }
    }

    /// Returns the times of the WAN's side, and of the LAN's, of data in this direction.
    pub fn of_sides(quality: &Quality, direction: Direction) -> (Latency, Latency) {
        let [wan, lan] = sides(direction).map(|side| Latency::of(quality, side));
        (wan, lan)
    }
}

/// Scores between 0 and 100 (Quality of Outcome, draft-ietf-ippm-qoo), by application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scores {
    /// Pages of the web.
    pub web: u8,
    /// Calls with picture.
    pub call: u8,
    /// Games.
    pub game: u8,
}

impl Scores {
    /// Returns the scores of a path with these times of both sides, which has lost this many of these
    /// packets. The quantiles of both sides are added: what the path has is no longer.
    pub fn of(wan: &Latency, lan: &Latency, lost: u64, packets: u64) -> Option<Scores> {
        if wan.samples == 0 || lan.samples == 0 {
            return None;
        }
        let sum = |a: u64, b: u64| (a + b).min(u32::MAX.into()) as u32;
        let latency_us = [sum(wan.p50, lan.p50), sum(wan.p99, lan.p99)];
        let loss_ppm = (lost.min(packets) * 1_000_000).checked_div(packets).unwrap_or(0) as u32;
        let measured = Measured { latency_us, loss_ppm };
        let [web, call, game] = PROFILES.map(|profile| score(&profile, &measured));
        Some(Scores { web, call, game })
    }
}

/// Round-trip times of a flow to one side, in microseconds; 0: none was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowRtt {
    /// The least.
    pub min: u64,
    /// The smoothed one (RFC 6298).
    pub smoothed: u64,
    /// The last.
    pub last: u64,
}

impl From<Rtt> for FlowRtt {
    fn from(rtt: Rtt) -> FlowRtt {
        FlowRtt { min: us(rtt.min), smoothed: us(rtt.smoothed), last: us(rtt.last) }
    }
}

/// Quality of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OfFlow {
    /// Round-trip times between here and the end on the side of the WAN.
    pub rtt_wan_us: FlowRtt,
    /// Round-trip times between here and the end on the side of the LAN.
    pub rtt_lan_us: FlowRtt,
    /// Packets that were sent again.
    pub retransmitted_packets: u64,
    /// Packets that others overtook before they came here.
    pub reordered_packets: u64,
    /// Time for which the ACK measured last was held, in microseconds.
    pub ack_held_us: u64,
    /// Times that the receiver closed its window.
    pub zero_windows: u64,
    /// Time from the SYN to the end of the handshake, in microseconds; 0: it was not seen.
    pub set_up_us: u64,
}

impl OfFlow {
    /// Returns the results of a flow of data in this direction.
    pub fn new(flow: &FlowQuality, sight: &Sight, direction: Direction) -> OfFlow {
        let [wan, lan] = sides(direction).map(|side| flow.rtt(side).into());
        OfFlow {
            rtt_wan_us: wan,
            rtt_lan_us: lan,
            retransmitted_packets: sight.repeated().into(),
            reordered_packets: sight.reordered().into(),
            ack_held_us: us(flow.held()),
            zero_windows: flow.zero_windows().into(),
            set_up_us: us(flow.set_up()),
        }
    }
}

/// Bytes of memory that the quality of a flow takes, and that of a customer: a class for each direction.
pub const BYTES: (usize, usize) = (quality::FLOW_BYTES, 2 * size_of::<Quality>());

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(p50_ms: u64, p99_ms: u64) -> Latency {
        Latency { samples: 9, p50: p50_ms * 1_000, p90: 0, p99: p99_ms * 1_000 }
    }

    #[test]
    fn scores_are_of_both_sides_together() {
        // A median of 95 ms is 65 of 120 ms behind the 30 of a game that is perfect, and of use up to 150.
        let scores = Scores::of(&latency(90, 100), &latency(5, 10), 0, 1_000).unwrap();
        assert_eq!(scores, Scores { web: 90, call: 100, game: 45 });
        // 25,500 of a million is half between 1,000 and 50,000.
        let lossy = Scores::of(&latency(10, 20), &latency(5, 10), 255, 10_000).unwrap();
        assert_eq!((lossy.web, lossy.call), (50, 50));
        assert_eq!(Scores::of(&latency(1, 1), &Latency::default(), 0, 9), None);
    }

    #[test]
    fn the_sides_of_an_upload_are_those_of_a_download_the_other_way() {
        let quality = FlowQuality::default();
        let found = OfFlow::new(&quality, &Sight::default(), Direction::Out);
        assert_eq!(found, OfFlow::default());
        assert_eq!(sides(Direction::In), [Side::Sender, Side::Receiver]);
        assert_eq!(sides(Direction::Out), [Side::Receiver, Side::Sender]);
    }
}
