//! Flows that are not limited by their path: the first round of an application, idle times and time-outs.

use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const PACKET: u32 = 1448;
const RTT: u64 = 20 * MS;
/// Gap of the first chirps after a first round that told nothing: slow start's rate, twice the initial window
/// in a round trip (`chirp_first`).
const SLOW_START: u32 = (RTT / 20) as u32;

/// Sends packets, one every `apart`, each acknowledged after a round trip.
fn spaced(flow: &mut FlowStart, packets: u32, apart: u64) {
    let mut events: Vec<(u64, bool, u32)> = (1..=packets)
        .flat_map(|i| [(u64::from(i) * apart, false, i), (u64::from(i) * apart + RTT, true, i)])
        .collect();
    events.sort_unstable();
    let mut sent = 0;
    for (at, ack, i) in events {
        match ack {
            true => flow.acked(i * PACKET, at, sent - i, Seen::default()),
            false => (sent = i, flow.sent(i * PACKET, at)).1,
        }
    }
}

/// An application with a packet every 3 ms tells nothing about the path: ACKs come 3 ms apart, whatever its
/// room.
#[test]
fn gaps_of_an_application_are_not_those_of_the_path() {
    for rules in [Rules::ADAPTIVE, Rules::BRIEF] {
        let mut flow = FlowStart::new(RTT, rules);
        spaced(&mut flow, 10, 3 * MS);
        assert_eq!((flow.phase(), flow.report().gap), (Phase::Rounds, SLOW_START), "{rules:?}");
    }
    // As many packets at once, which leave the path 3 ms apart, tell its room.
    let mut flow = FlowStart::new(RTT, Rules::BRIEF);
    (1..=10).for_each(|i| flow.sent(i * PACKET, 0));
    (1..=10).for_each(|i| flow.acked(i * PACKET, RTT + 3 * MS * u64::from(i), 10 - i, Seen::default()));
    assert_eq!((flow.phase(), flow.report().gap), (Phase::Rounds, 3_000_000));
}

/// Each of nine requests is answered before the next: the tenth may still have the whole initial window (RFC
/// 6928).
#[test]
fn the_initial_window_is_whole_when_all_of_it_is_acknowledged() {
    for rules in [Rules::ADAPTIVE, Rules::BRIEF] {
        let mut flow = FlowStart::new(RTT, rules);
        for i in 1..=9 {
            let at = u64::from(i) * 100 * MS;
            flow.sent(i * PACKET, at);
            assert_eq!(flow.room(), 9);
            flow.acked(i * PACKET, at + RTT, 0, Seen::default());
            assert_eq!((flow.phase(), flow.room()), (Phase::First, 10));
        }
    }
}

/// A flow whose initial window was lost knows no gap when it begins again: it sends an initial window, not a
/// burst of chirps.
#[test]
fn it_begins_again_with_the_first_round_where_nothing_was_estimated() {
    let mut flow = FlowStart::new(RTT, Rules::BRIEF);
    (1..=10).for_each(|i| flow.sent(i * PACKET, 0));
    flow.stop();
    assert!(flow.restart(300 * MS));
    assert_eq!((flow.phase(), flow.room(), flow.gap()), (Phase::First, 10, 0));
    (11..=20).for_each(|i| flow.sent(i * PACKET, 400 * MS));
    (11..=20).for_each(|i| flow.acked(i * PACKET, 420 * MS + u64::from(i) * MS, 20 - i, Seen::default()));
    assert_eq!((flow.phase(), flow.report().gap), (Phase::Rounds, 1_000_000));
}

/// A host that cannot send single packets later than half a round trip cannot after an idle time either.
#[test]
fn rounds_stay_brief_after_an_idle_time() {
    for (rules, brief) in [(Rules::BRIEF, true), (Rules::ADAPTIVE, false)] {
        let mut flow = FlowStart::new(RTT, rules);
        (1..=10).for_each(|i| flow.sent(i * PACKET, 0));
        (1..=10).for_each(|i| flow.acked(i * PACKET, RTT + u64::from(i) * MS, 10 - i, Seen::default()));
        flow.stop();
        assert!(flow.restart(300 * MS));
        let half = flow.report().srtt / 2 / flow.report().gap;
        assert_eq!((flow.phase(), flow.room() <= half), (Phase::Rounds, brief), "{} {half}", flow.room());
    }
}

/// The handshake did not tell the round-trip time, and the first packet comes last: the ACK of all ten is the
/// only one.
#[test]
fn disorder_does_not_leave_the_round_trip_time_unknown() {
    let mut flow = FlowStart::new(0, Rules::BRIEF);
    (1..=10).for_each(|i| flow.sent(i * PACKET, 0));
    flow.acked(10 * PACKET, RTT, 0, Seen { disorder: true, ..Seen::default() });
    let report = flow.report();
    assert_eq!((report.phase(), report.rtt_min, report.gap), (Phase::Rounds, RTT as u32, SLOW_START));
}

proptest! {
    /// A packet may leave whenever none is in flight, for any pauses of an application, also longer than 2^32
    /// ns, after which times of 32 bits repeat. Fewer packets than half a path for a round trip may keep a
    /// flow from ever ending its start.
    #[test]
    fn something_may_always_leave(
        pauses in prop::collection::vec((0u64..20_000_000_000, 1u32..2000), 1..20),
        gap in 10_000u64..5_000_000,
        marked in any::<bool>(),
        rules in 0u32..2048,
    ) {
        let mut flow = FlowStart::new(RTT, Rules(rules));
        let (mut now, mut end) = (0u64, 0u32);
        for (pause, packets) in pauses {
            now += pause;
            flow.restart(pause);
            let mut left = packets;
            while left > 0 && !matches!(flow.phase(), Phase::Handover | Phase::Done) {
                prop_assert!(flow.room() > 0, "{:?}", flow.report());
                let (mut free, mut acks) = (now, vec![]);
                for _ in 0..flow.room().min(left) {
                    let behind = flow.gap();
                    end = end.wrapping_add(PACKET);
                    flow.sent(end, now);
                    free = free.max(now) + gap;
                    acks.push((end, free + RTT));
                    now += behind;
                }
                left -= acks.len() as u32;
                for (i, (end, at)) in acks.iter().enumerate() {
                    let in_flight = (acks.len() - 1 - i) as u32;
                    flow.acked(*end, *at, in_flight, Seen { marked, ..Seen::default() });
                }
                now = now.max(free + RTT);
            }
        }
        let report = flow.report();
        prop_assert!(report.gap == 0 || (1_000..=80_000_000).contains(&report.gap), "{:?}", report);
        prop_assert!(report.window == 0 || report.window >= 2, "{:?}", report);
    }
}
