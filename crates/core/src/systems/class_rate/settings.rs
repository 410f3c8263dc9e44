//! The laws by which all flows of a class are acknowledged together, in turns. No rate is set for a flow.
//! Shares are max–min, because a flow that holds nothing takes no turn. This file has the laws' settings and
//! their state of a flow. The class's clock and its lists belong to the gateway (`gateway/flows`).
//!
//! The laws differ in the content of a turn ([`Turns`]): *share* has turns of bytes at the class's rate, the
//! [schemes](Scheme) of the PostACK paper have turns of an ACK.

use super::Turn;
use crate::flow::LawState;
use crate::packet::{Counts, Segments};
use crate::rate::Rate;
use crate::steer::FlowLimit;
use crate::systems::postack::{Driver, Rules, Scheme, Steps};
use crate::systems::{Law, Unresponsive};
use crate::time::{Duration, Time};

/// Release of all flows of a class at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ShareRelease {
    /// The rate of all flows together.
    pub rate: Rate,
    /// Bytes that the rate counts.
    pub counts: Counts,
    /// Treatment of traffic that ACKs cannot slow.
    pub unresponsive: Unresponsive,
    /// Maximum rate of a flow, even when the other flows use less.
    pub flow_max: Option<Rate>,
    /// Guarantee of a flow, if the class can give each flow as much when it begins.
    pub flow_min: Option<Rate>,
    /// Content of a turn, and the event that gives it.
    pub turns: Turns,
}

/// Content of a flow's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Turns {
    /// Bytes, as the class's clock allows: the law *share*.
    Bytes,
    /// An ACK, by a scheme. An ACK for several segments counts as one turn each.
    Acks(Scheme),
}

/// Payload bytes of a full segment, in estimates for all flows of a class.
const SEGMENT: u64 = 1460;
/// Longest turn, in segments: a giant segment.
const MOST_SEGMENTS: u64 = 44;
/// A turn in time.
const TURN: Duration = Duration::from_micros(200);
/// Least credit of a class while none of its flows holds anything.
const CREDIT: Duration = Duration::from_millis(1);
/// Most bytes that a sender is assumed to send before its first acknowledgement, in segments (RFC 6928).
const INITIAL_WINDOW: u32 = 10;

/// Shortest retransmission time-out of common senders. Every flow has a turn within it.
const SHORTEST_RTO: Duration = Duration::from_millis(200);

impl ShareRelease {
    /// Returns the law at `rate`, which counts payload.
    pub const fn new(rate: Rate) -> ShareRelease {
        ShareRelease {
            rate,
            counts: Counts::Payload,
            unresponsive: Unresponsive::Bound,
            flow_max: None,
            flow_min: None,
            turns: Turns::Bytes,
        }
    }

    /// Returns whether turns are of ACKs.
    pub const fn is_of_acks(&self) -> bool {
        matches!(self.turns, Turns::Acks(_))
    }

    /// Returns the scheme by which turns are of ACKs.
    pub(crate) fn scheme(&self) -> Option<&'static dyn Rules> {
        match self.turns {
            Turns::Acks(scheme) => Some(scheme.rules()),
            Turns::Bytes => None,
        }
    }

    /// Returns the event that gives turns of ACKs.
    pub(crate) fn driver(&self) -> Option<Driver> {
        self.scheme().map(Rules::driver)
    }

    /// Returns whether ACKs leave one after the other at the rate. Where each has a time of its own, what
    /// comes together leaves together, and only an average keeps to the rate.
    pub fn paces(&self) -> bool {
        self.driver() != Some(Driver::Delay)
    }

    /// Returns whether data of its flows is looked at that does not wait in a queue.
    pub fn watches_data(&self) -> bool {
        self.scheme().is_some_and(Rules::watches_data)
    }

    /// Returns whether data that comes to the class's queue, and leaves it, is told of.
    pub fn follows_data(&self) -> bool {
        self.scheme().is_some_and(Rules::follows_data)
    }

    /// Returns the window of a flow with this payload rate, for turns of ACKs: the segments that its round
    /// trip takes (PostACK paper, equation 4), at least one.
    pub fn window_of_segments(&self, payload: Rate, rtt: Duration, mss: u16) -> u32 {
        let mss = u64::from(mss.max(1));
        let segments = payload.bytes_in(rtt).div_ceil(mss).max(1);
        (segments * mss).min(1 << 30) as u32
    }

    /// Returns the number of turns that an ACK for `bytes` counts as.
    pub fn turns_for(bytes: u32, mss: u16) -> u32 {
        bytes.div_ceil(u32::from(mss.max(1))).max(1)
    }

    /// Returns the bytes of a turn: 200 us at the rate, from 2 to 44 segments of 1460 bytes.
    pub fn quantum(&self) -> u32 {
        self.rate.bytes_in(TURN).clamp(2 * SEGMENT, MOST_SEGMENTS * SEGMENT) as u32
    }

    /// Returns the most credit of a class, as time: two turns, or a millisecond if that is more. Turns of
    /// ACKs give none: a timer that fired with nothing to release does not fire again for it.
    pub fn credit(&self) -> Duration {
        if self.is_of_acks() {
            return Duration::ZERO;
        }
        self.rate.time_for(2 * u64::from(self.quantum())).max(CREDIT)
    }

    /// Returns the rate that TCP keeps of `rate` beside unresponsive traffic: a tenth, or a turn of two
    /// segments per flow and time-out, up to a half. Unresponsive traffic is bounded at the rest while flows
    /// compete for it.
    pub fn floor(rate: Rate, flows: u64) -> Rate {
        let turn = 8 * 2 * SEGMENT * 1_000_000_000 / SHORTEST_RTO.as_nanos();
        let bps = flows.saturating_mul(turn).clamp(rate.bps() / 10, rate.bps() / 2);
        Rate::from_bps(bps).unwrap_or(rate)
    }

    /// Clamps `share` to the maximum rate of a flow.
    pub fn of_flow(&self, share: Rate) -> Rate {
        self.flow_max.map_or(share, |most| most.min(share))
    }

    /// Returns the cost of `bytes` of payload, in the bytes that the rate counts.
    pub fn cost(&self, segments: &Segments, bytes: u32) -> u64 {
        let (bytes, payload) = (u64::from(bytes), u64::from(segments.payload.max(1)));
        match self.counts {
            Counts::Payload => bytes,
            counts => (bytes * segments.whole(counts) + payload / 2) / payload,
        }
    }

    /// Returns the rate as hooks serve it, where they may serve `most`.
    pub(crate) fn rate_of_hooks(&self, most: Rate) -> Rate {
        self.counts.served_by_hooks(self.rate.min(most))
    }

    /// Returns about the bytes of a flow's turn: [`ShareRelease::quantum`], or less where flows have a
    /// maximum rate.
    pub fn turn(&self) -> u32 {
        match self.flow_max {
            Some(most) => self.quantum().min(ShareRelease::new(most).quantum()),
            None => self.quantum(),
        }
    }

    /// Returns the payload rate that `rate` allows flows of these segments.
    pub fn payload(&self, rate: Rate, segments: &Segments) -> Rate {
        match self.counts {
            Counts::Payload => rate,
            counts => segments.payload_rate(rate, counts),
        }
    }

    /// Returns the first window of a flow: four segments, or 4 ms at the rate.
    pub fn first_window(&self, mss: u32) -> u32 {
        let bytes = self.of_flow(self.rate).bytes_in(Duration::from_millis(4)).min(1 << 30) as u32;
        bytes.max(4 * mss)
    }

    /// Returns the bytes that a sender may send of a first window of `window` bytes.
    pub fn initial(&self, window: u32, mss: u16) -> u32 {
        window.min(INITIAL_WINDOW * u32::from(mss))
    }

    /// Returns the window of a flow with this share of the rate, as payload: the share over its round trip,
    /// and the bytes that may wait here, which are `standing` or two turns. At least two segments.
    pub fn window(&self, share: Rate, rtt: Duration, standing: Duration, mss: u32) -> u32 {
        let waits = share.bytes_in(standing).max(2 * u64::from(self.quantum()));
        let bytes = share.bytes_in(rtt).saturating_add(waits).min(1 << 30) as u32;
        bytes.max(2 * mss)
    }
}

impl Law for ShareRelease {
    fn name(&self) -> &'static str {
        self.scheme().map_or("share", Rules::name)
    }
    fn rate(&self) -> Rate {
        self.rate
    }
    fn counts(&self) -> Counts {
        self.counts
    }
    fn set_counts(&mut self, counts: Counts) {
        self.counts = counts;
    }
    fn flow_limit(&self, _ahead: Duration) -> Option<FlowLimit> {
        let most = self.flow_max.filter(|_| self.unresponsive != Unresponsive::Count);
        most.map(|rate| FlowLimit { rate, ahead: Duration::ZERO, burst: 0 })
    }
    fn set_unresponsive(&mut self, unresponsive: Unresponsive) {
        self.unresponsive = unresponsive;
    }
    /// No flow has a rate of its own.
    fn flow_rate(&self) -> Option<Rate> {
        None
    }
    fn begin(&self, _: &Segments, _from_syn: bool, now: Time) -> LawState {
        match self.is_of_acks() {
            true => Steps::begin().into(),
            false => Turn::begin(now).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Cells, LinkLayer};

    #[test]
    fn a_turn_is_200_us_of_the_rate_within_bounds() {
        // 1 Mb/s: 25 bytes; 200 Mb/s: 5,000; 10 Gb/s: 250,000.
        let turns = [1, 200, 10_000].map(|mbit| ShareRelease::new(Rate::mbit(mbit)).quantum());
        assert_eq!(turns, [2 * 1460, 5_000, 44 * 1460]);
        // 5,840 bytes at 1 Mb/s; 1 ms where two turns take less.
        assert_eq!(ShareRelease::new(Rate::mbit(1)).credit(), Duration::from_micros(46_720));
        assert_eq!(ShareRelease::new(Rate::mbit(200)).credit(), Duration::from_millis(1));
    }

    #[test]
    fn a_window_carries_the_share_for_a_round_trip_and_what_waits() {
        let law = ShareRelease::new(Rate::mbit(100));
        let window = |mbit, rtt, standing| {
            law.window(Rate::mbit(mbit), Duration::from_millis(rtt), Duration::from_millis(standing), 1460)
        };
        // 10 Mb/s are 1,250 bytes a millisecond; two turns are 5,840 bytes.
        assert_eq!(window(10, 20, 20), 50_000);
        assert_eq!(window(10, 20, 1), 25_000 + 5_840);
        assert_eq!(law.first_window(1460), 50_000);
        assert_eq!(ShareRelease::new(Rate::mbit(1)).first_window(1460), 5_840);
    }

    /// 100 kB/s over 50 ms are 5,000 bytes: four segments of 1,250, and four of 1,448.
    #[test]
    fn a_window_of_segments_is_the_round_trip_rounded_up() {
        let law = ShareRelease { turns: Turns::Acks(Scheme::Round), ..ShareRelease::new(Rate::mbit(1)) };
        let window = |kbit: u64, ms, mss| {
            let rate = Rate::from_bps(1_000 * kbit).unwrap();
            law.window_of_segments(rate, Duration::from_millis(ms), mss)
        };
        assert_eq!([window(800, 50, 1_250), window(800, 50, 1_448)], [5_000, 4 * 1_448]);
        assert_eq!(window(80, 1, 1_448), 1_448, "never less than one");
        assert_eq!([1, 1_448, 1_449, 0].map(|bytes| ShareRelease::turns_for(bytes, 1_448)), [1, 1, 2, 1]);
    }

    #[test]
    fn packets_cost_what_the_rate_counts_of_them() {
        let cost = |counts: Counts| counts.cost_of_packets(2, 3_000);
        let all = [Counts::Payload, Counts::Ip, Counts::Frame, Counts::Wire].map(cost);
        assert_eq!(all, [2_944, 3_000, 3_036, 3_076]);
        // PPPoE over ATM: 1540 bytes are 33 cells.
        assert_eq!(cost(Counts::Link(PPPOE)), 2 * 1_749);
    }

    const PPPOE: LinkLayer = LinkLayer { overhead: 40, mpu: 0, cells: Cells::Atm };

    /// 1448 bytes of payload are 1540 with all headers, or 33 cells of 48. With IPv6, 1480 are 1592, or 34.
    #[test]
    fn segments_cost_their_cells() {
        let law = ShareRelease { counts: Counts::Link(PPPOE), ..ShareRelease::new(Rate::mbit(8)) };
        let segments = Segments { payload: 1448, ipv6: false, tags: 1, pppoe: false, options: 12 };
        assert_eq!((law.cost(&segments, 1448), law.cost(&segments, 14_480)), (1_749, 17_490));
        assert_eq!(law.payload(Rate::from_bps(17_490_000).unwrap(), &segments).bps(), 14_480_000);
        let sixth = Segments { ipv6: true, payload: 1480, ..segments };
        assert_eq!(law.cost(&sixth, 1480), 34 * 53);
        let small = Segments { payload: 1, ..segments };
        assert_eq!(law.cost(&small, 10), 1_060, "53 bytes and 40 are two cells");
    }

    #[test]
    fn headers_cost_what_each_segment_has_of_them() {
        let segments = Segments { payload: 1448, ipv6: false, tags: 0, pppoe: false, options: 12 };
        let ip = ShareRelease { counts: Counts::Ip, ..ShareRelease::new(Rate::mbit(150)) };
        // 52 bytes for 1448.
        assert_eq!((ip.cost(&segments, 1448), ip.cost(&segments, 14_480)), (1_500, 15_000));
        assert_eq!(ip.payload(Rate::mbit(150), &segments), Rate::from_bps(144_800_000).unwrap());
        assert_eq!(ShareRelease::new(Rate::mbit(150)).cost(&segments, 1448), 1448);
    }
}
