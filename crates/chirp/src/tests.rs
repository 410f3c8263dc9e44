//! The core on paths that are arithmetic: a queue in front of a rate, a delay, a receiver that acknowledges
//! every n-th packet.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

#[path = "brief_tests.rs"]
mod brief;

const MS: u64 = 1_000_000;
const PACKET: u32 = 1448;

#[derive(Clone, Copy)]
struct Path {
    /// Time that a packet takes at the bottleneck.
    gap: u64,
    rtt: u64,
    /// Packets per ACK after the first sixteen.
    per_ack: u32,
    /// Interval between lost packets, which are repaired at once; 0 for none.
    lost: u32,
    first: u32,
    /// True if the handshake told the round-trip time.
    told: bool,
}

const fn path(gap: u64, rtt: u64) -> Path {
    Path { gap, rtt, per_ack: 1, lost: 0, first: 0, told: true }
}

struct Run {
    flow: FlowStart,
    /// Most packets that waited, including the one being sent, from the second round on.
    peak: u64,
    /// Time at which the window was known; 0 if it never was.
    known: u64,
    packets: u32,
}

/// Sends without end until the window is known, or until `until`.
fn run(path: Path, rules: Rules, until: u64) -> Run {
    let rtt = if path.told { path.rtt } else { 0 };
    let mut run = Run { flow: FlowStart::new(rtt, rules), peak: 0, known: 0, packets: 0 };
    let (mut now, mut due, mut free, mut una) = (0, 0, 0, path.first);
    let (mut nxt, mut waiting) = (path.first, 0);
    let mut acks = VecDeque::new();
    while now < until {
        let flow = &mut run.flow;
        let in_flight = nxt.wrapping_sub(una) / PACKET;
        let may = match flow.phase() {
            Phase::First | Phase::Rounds => flow.room() > 0,
            _ => in_flight < flow.report().window,
        };
        if flow.phase() == Phase::Done {
            break;
        }
        let ack = acks.front().map_or(u64::MAX, |&(at, _, _)| at);
        if may && due <= ack {
            now = due.max(now);
            due = now + flow.gap();
            nxt = nxt.wrapping_add(PACKET);
            flow.sent(nxt, now);
            run.packets += 1;
            free = free.max(now) + path.gap;
            if flow.phase() != Phase::First {
                run.peak = run.peak.max((free - now).div_ceil(path.gap));
            }
            waiting += 1;
            let lost = path.lost > 0 && run.packets % path.lost == 0;
            if lost || run.packets <= 16 || waiting >= path.per_ack {
                waiting = 0;
                acks.push_back((free + path.rtt, nxt, lost));
            }
            continue;
        }
        let Some((at, number, lost)) = acks.pop_front() else {
            // The receiver's timer.
            now = now.max(due) + 40 * MS;
            acks.push_back((now, nxt, false));
            waiting = 0;
            continue;
        };
        now = at.max(now);
        due = due.max(now);
        una = number;
        let in_flight = nxt.wrapping_sub(una) / PACKET;
        if lost && !flow.lost(in_flight) {
            break;
        }
        flow.acked(una, now, in_flight, Seen { disorder: lost, marked: false });
        if run.known == 0 && matches!(flow.phase(), Phase::Handover) {
            run.known = now;
        }
    }
    run
}

/// A queue of 10 ms stands on a path of 20 ms while the window is sent. The window gives back a third and is
/// reviewed again, four times with marks and once without.
#[test]
fn a_window_gives_back_its_part_of_a_queue_that_stands() {
    let path = path(100_000, 20 * MS);
    for (rules, marked, times) in
        [(Rules::ADAPTIVE, true, 4), (Rules::ADAPTIVE, false, 1), (Rules::UNMARKED, true, 0)]
    {
        let known = run(path, rules, 10_000 * MS).known;
        let Run { mut flow, mut packets, .. } = run(path, rules, known);
        assert_eq!((flow.phase(), flow.report().rtt_min), (Phase::Handover, 20_000_000));
        let mut windows = vec![flow.report().window];
        let mut now = 10_000 * MS;
        for _ in 0..6 {
            packets += 1;
            flow.sent(packets * PACKET, now);
            now += 30 * MS;
            flow.acked(packets * PACKET, now, 0, Seen { marked, disorder: false });
            windows.push(flow.report().window);
        }
        assert_eq!(flow.phase(), Phase::Done);
        windows.dedup();
        assert_eq!(windows.len(), times + 1, "{windows:?}");
        assert!(windows.windows(2).all(|w| w[1] == w[0] * 2 / 3), "{windows:?}");
    }
}

/// From the second round on, a queue of 5 ms stands in front of all packets. Without marks, flows that keep
/// it do not give way, and slow start goes on from the window of the round. With marks on all packets, the
/// path is shared with flows that heed them.
#[test]
fn a_queue_that_nobody_marks_leaves_the_rest_to_slow_start() {
    for (rules, marked, slow) in [
        (Rules::ADAPTIVE, false, true),
        (Rules::BRIEF, false, true),
        (Rules::ADAPTIVE, true, false),
        (Rules::BRIEF, true, false),
    ] {
        let mut flow = FlowStart::new(20 * MS, rules);
        let (mut end, mut now, mut sent) = (0, 0, 0);
        while matches!(flow.phase(), Phase::First | Phase::Rounds) && end < 300 {
            let first = end == 0;
            sent = flow.room().min(100);
            let left: Vec<u64> = (1..=sent)
                .map(|i| {
                    let at = now;
                    flow.sent((end + i) * PACKET, now);
                    now += flow.gap();
                    at
                })
                .collect();
            for (i, left) in (1..=sent).zip(left) {
                let delay = if first { u64::from(i) * 100_000 } else { 5 * MS };
                let seen = Seen { marked: marked && !first, disorder: false };
                flow.acked((end + i) * PACKET, left + 20 * MS + delay, sent - i, seen);
                now = now.max(left + 20 * MS + delay);
            }
            end += sent;
        }
        let report = flow.report();
        assert_eq!(flow.phase() == Phase::Done, slow, "{report:?}");
        assert!(!slow || (report.window >= sent / 2 && report.window <= sent.max(10)), "{sent} {report:?}");
    }
}

/// A server that has data for a client with Fast Open (RFC 7413 §4.2.2) sends before it knows the round-trip
/// time. The ACKs of its initial window tell it, with at most that window's own queue added. The rest is as
/// usual.
#[test]
fn without_a_handshake_the_first_acks_tell_the_round_trip_time() {
    let path = path(121_120, 20 * MS);
    let told = run(path, Rules::ADAPTIVE, 1000 * MS);
    let untold = run(Path { told: false, ..path }, Rules::ADAPTIVE, 1000 * MS);
    assert_eq!(told.flow.report().rtt_min, 20 * MS as u32);
    assert!((20 * MS as u32..=20_121_120).contains(&untold.flow.report().rtt_min));
    assert_eq!(untold.known, told.known);
    assert!(untold.packets.abs_diff(told.packets) <= 1);
    assert!(untold.peak <= told.peak + 1, "{} {}", untold.peak, told.peak);
}

#[test]
fn the_structure_fits() {
    assert!(unsafe { weir_chirp_size() } as usize <= WORDS * 8);
}

#[test]
fn the_first_chirp_has_the_gaps_of_the_paper() {
    // ACKs are 1 ms apart, so ĝ is 1 ms, and a quarter of it the doubt, so γ = 3/2 and the gain is 3. N = 5:
    // from γĝ by steps of 2(γ - 1)ĝ/3 to (2 - γ)ĝ, mean ĝ. The guard is ĝ plus an eighth and the doubt of the
    // chirp's 5ĝ.
    let mut flow = FlowStart::new(20 * MS, Rules::ADAPTIVE);
    for i in 1..=10 {
        assert_eq!((flow.room(), flow.gap()), (11 - i, 0));
        flow.sent(i * PACKET, 0);
    }
    assert_eq!(flow.room(), 0);
    for i in 1..=5 {
        assert_eq!(flow.phase(), Phase::First);
        flow.acked(i * PACKET, (20 + u64::from(i)) * MS, 10 - i, Seen::default());
    }
    assert_eq!((flow.phase(), flow.room(), flow.report().gap), (Phase::Rounds, 30, 1_000_000));
    let mut now = 25 * MS;
    let gaps: Vec<u64> = (11..16)
        .map(|i| {
            let gap = flow.gap();
            flow.sent(i * PACKET, now);
            now += gap;
            gap
        })
        .collect();
    assert_eq!(gaps, [1_500_000, 1_166_667, 833_334, 500_001, 1_000_000 + 5_000_000 * 3 / 8]);
    assert_eq!((flow.room(), flow.gap()), (25, 1_500_000));
}

#[test]
fn bursts_of_the_published_first_round_are_half_a_round_trip_apart() {
    let mut flow = FlowStart::new(20 * MS, Rules::BURSTS);
    let gaps: Vec<u64> = (1..=10)
        .map(|i| {
            let gap = flow.gap();
            flow.sent(i * PACKET, 0);
            gap
        })
        .collect();
    assert_eq!(gaps, [0, 0, 0, 0, 10 * MS, 0, 0, 0, 0, 0]);
}

#[test]
fn a_lone_flow_finds_the_gap_of_its_link_and_fills_it() {
    for per_ack in [1, 2] {
        let run = run(Path { per_ack, ..path(121_120, 20 * MS) }, Rules::ADAPTIVE, 1000 * MS);
        let report = run.flow.report();
        assert!(report.gap.abs_diff(121_120) < 121_120 / 20, "{per_ack}: {report:?}");
        // (20 ms + 121 us) / 121 us = 166, and two more.
        assert!(report.window.abs_diff(168) < 10, "{per_ack}: {report:?}");
        assert!(report.unusable <= report.chirps / 4, "{report:?}");
    }
}

#[test]
fn it_is_there_before_slow_start_is() {
    // Slow start sends 10, 20, 40, 80, 160 packets: 160 of 166 in the fifth round, which is acknowledged
    // after five round trips.
    let known = |rtt, rules| run(path(121_120, rtt), rules, 2000 * MS).known;
    let lone = known(20 * MS, Rules::ADAPTIVE);
    assert!(lone > 0 && lone < 5 * 20 * MS, "{lone}");
    // On a path of 429 packets it has the window in the seventh: there is time to be careful.
    let (careful, hasty) = (known(52 * MS, Rules::ADAPTIVE), known(52 * MS, Rules::HASTY));
    assert!(0 < hasty && hasty < careful && careful < 7 * 52 * MS, "{hasty} {careful}");
}

#[test]
fn the_queue_in_packets_does_not_depend_on_the_rate() {
    let peaks: Vec<u64> = [1_211_200, 121_120, 12_112]
        .map(|gap| run(path(gap, 20 * MS), Rules::ADAPTIVE, 5000 * MS).peak)
        .into();
    // The second half of a chirp of 16 at γ = 2 queues 4 packets, and one is being sent.
    assert!(peaks.iter().all(|&peak| peak <= 8), "{peaks:?}");
}

#[test]
fn sequence_numbers_wrap() {
    let at = |first| run(Path { first, ..path(121_120, 20 * MS) }, Rules::ADAPTIVE, 1000 * MS).flow.report();
    assert_eq!(at(0), at(u32::MAX - 20 * PACKET));
}

#[test]
fn a_stray_loss_does_not_end_it_unless_it_is_told_to() {
    let lossy = Path { lost: 50, ..path(121_120, 20 * MS) };
    let (sturdy, fragile) = (run(lossy, Rules::ADAPTIVE, 1000 * MS), run(lossy, Rules::FRAGILE, 1000 * MS));
    assert_eq!(fragile.flow.report().losses, 1);
    assert!(sturdy.packets > fragile.packets, "{} {}", sturdy.packets, fragile.packets);
}

#[test]
fn marks_make_it_cautious() {
    let grows = |marked| {
        let mut flow = FlowStart::new(20 * MS, Rules::ADAPTIVE);
        (1..=10).for_each(|i| flow.sent(i * PACKET, 0));
        for i in 1..=10 {
            flow.acked(i * PACKET, 20 * MS + u64::from(i) * MS, 10 - i, Seen { marked, ..Seen::default() });
        }
        for i in 11..=30 {
            flow.sent(i * PACKET, u64::from(i) * 2 * MS);
        }
        for i in 11..=30 {
            flow.acked(
                i * PACKET,
                u64::from(i) * 2 * MS + 20 * MS,
                30 - i,
                Seen { marked, ..Seen::default() },
            );
        }
        flow.report()
    };
    assert!(grows(true).marked > 100, "{:?}", grows(true));
    assert_eq!(grows(false).marked, 0);
    assert!(grows(true).gain < grows(false).gain);
}

#[test]
fn it_begins_again_after_idleness_and_without_marks() {
    let again = |rules| {
        let mut flow = run(path(121_120, 20 * MS), rules, 1000 * MS).flow;
        flow.stop();
        let soon = flow.restart(100 * MS);
        (soon, flow.restart(300 * MS))
    };
    assert_eq!(again(Rules::ADAPTIVE), (false, true));
    assert_eq!(again(Rules::NO_RESTART), (false, false));

    // W = 100, a tenth marked: one round trip in 5 has marks, so 2 × 5 + 4 without are usual, and 15 are not.
    // Chirps do not begin where 5 packets wait, nor after a window has doubled by then.
    let quiet = |rules, window, rtt| {
        let mut flow = run(path(121_120, 20 * MS), rules, 1000 * MS).flow;
        flow.stop();
        let at = |i: u32, marked| Watched {
            una: 1000 + i * 1000,
            nxt: 2000 + i * 1000,
            window,
            share: 104,
            marked,
            rtt,
        };
        flow.watch(at(0, true));
        (1..100).find(|i| flow.watch(at(*i, false)))
    };
    assert_eq!(quiet(Rules::ADAPTIVE, 100, 20 * MS), Some(15));
    assert_eq!(quiet(Rules::ADAPTIVE, 100, 21 * MS), None);
    assert_eq!(quiet(Rules::ADAPTIVE, 7, 20 * MS), None);
    assert_eq!(quiet(Rules::ONCE, 100, 20 * MS), None);
}

/// Chirps of 16 packets with 8 packets per ACK give no estimate, and rounds that are spread are never back to
/// back. Then only the limit of 32 rounds of growth ends them.
#[test]
fn it_ends_where_no_chirp_gives_an_estimate() {
    let path = Path { per_ack: 8, ..path(1_096_124, 92_984_809) };
    let rules = [Rules::SPREAD, Rules::PLAIN, Rules::BURSTS, Rules::UNSTRETCHED, Rules::NO_RESTART];
    let rules = Rules(rules.iter().fold(0, |all, rule| all | rule.0));
    let report = run(path, rules, 10_000 * MS).flow.report();
    assert!(report.window > 0 && report.unusable > 100 && report.chirps < 5, "{report:?}");
}

proptest! {
    /// Gaps, rooms and windows stay within their bounds on any path, and the start of a flow with data ends.
    #[test]
    fn it_ends_on_any_path(
        gap in 1_000u64..20_000_000,
        rtt in 100_000u64..400_000_000,
        per_ack in 1u32..20,
        lost in prop_oneof![Just(0u32), 5u32..500],
        rules in 0u32..2048,
        first in any::<u32>(),
        told in any::<bool>(),
    ) {
        let path = Path { gap, rtt, per_ack, lost, first, told };
        let run = run(path, Rules(rules), 200_000 * MS);
        let report = run.flow.report();
        prop_assert!(matches!(run.flow.phase(), Phase::Handover | Phase::Done), "{:?}", report);
        prop_assert!((1_000..=80_000_000).contains(&report.gap) || report.gap == 0, "{:?}", report);
        prop_assert!(report.window >= 2, "{:?}", report);
        prop_assert!(report.gain >= 8 && report.gain <= 32, "{:?}", report);
    }
}
