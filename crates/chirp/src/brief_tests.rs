//! Rounds that are brief, as the kernel's, and the window at their end.

use super::*;

#[test]
fn brief_rounds_find_the_gap_as_well() {
    let run = run(path(121_120, 20 * MS), Rules::BRIEF, 1000 * MS);
    let report = run.flow.report();
    assert!(report.window.abs_diff(168) < 17, "{report:?}");
    assert!(run.known < 5 * 20 * MS && run.peak <= 10, "{} {}", run.known, run.peak);
}

/// ĝ is 1 ms. A host sends the first chirp at gaps of 3 ms and a little less, on a path that delays none of
/// its packets. The path has room for 2.6 ms, which is no news.
#[test]
fn a_chirp_that_its_host_stretched_tells_nothing_without_delay() {
    let after = |rules| {
        let mut flow = FlowStart::new(20 * MS, rules);
        (1..=10).for_each(|i| flow.sent(i * PACKET, 0));
        for i in 1..=10 {
            flow.acked(i * PACKET, (20 + u64::from(i)) * MS, 10 - i, Seen::default());
        }
        let left = |i: u32| (30 + 3 * u64::from(i)) * MS - u64::from(i * i) * MS / 20;
        (1..=10).for_each(|i| flow.sent((10 + i) * PACKET, left(i)));
        (1..=5).for_each(|i| flow.acked((10 + i) * PACKET, left(i) + 20 * MS, 10 - i, Seen::default()));
        (flow.report().gap, flow.report().unusable)
    };
    assert_eq!(after(Rules::BRIEF), (1_000_000, 1));
    assert!(after(Rules::ADAPTIVE).0 > 1_500_000);
}

/// Windows of a handover on a path of 200 packets after rounds of `rules`. Each is acknowledged a round trip
/// and `over` later.
fn handover(rules: Rules, used: bool, marked: bool, over: u64) -> Vec<u32> {
    let path = path(100_000, 20 * MS);
    let known = run(path, rules, 10_000 * MS).known;
    let Run { mut flow, mut packets, .. } = run(path, rules, known);
    let (mut windows, mut now) = (vec![flow.report().window], 10_000 * MS);
    while flow.phase() == Phase::Handover {
        packets += 1;
        flow.sent(packets * PACKET, now);
        now += 20 * MS + over;
        let in_flight = if used { flow.report().window } else { 0 };
        flow.acked(packets * PACKET, now, in_flight, Seen { marked, disorder: false });
        windows.push(flow.report().window);
    }
    windows
}

/// A lone flow of brief rounds has the path, 20 ms in gaps of 100 us, when slow start would have it, and
/// stays there.
#[test]
fn the_window_of_brief_rounds_is_the_path_s_where_slow_start_would_have_it_as_soon() {
    for (used, over) in [(true, 0), (false, 0), (true, 500_000)] {
        let windows = handover(Rules::BRIEF, used, false, over);
        assert!(windows.iter().all(|w| (198..=202).contains(w)), "{windows:?}");
    }
    // 2 ms of queue and marks: 202 × 20 / (20 + 2) = 183, and so on while both last, each time after the
    // packets under the new window are acknowledged. At the end it is no less than a push of three.
    let marked = handover(Rules::BRIEF, true, true, 2 * MS);
    assert!((181..=186).contains(&marked[1]) && marked.windows(2).all(|w| w[1] <= w[0]), "{marked:?}");
    assert!(
        marked[2] == marked[1] && (164..=170).contains(&marked[3]) && marked[4] == marked[3],
        "{marked:?}"
    );
    assert!(marked.len() <= 32, "{marked:?}");
}

/// On a path of 500 packets the window of brief rounds begins smaller, and each ACK adds its part of what it
/// lacks. A mark restores the window under which the marked packet left. A round trip without further marks
/// and without a queue then adds a 32nd of the rest of the path, or a 64th of the path.
#[test]
fn the_window_of_brief_rounds_grows_by_what_it_lacks_until_a_mark_tells_otherwise() {
    let path = path(100_000, 50 * MS);
    let known = run(path, Rules::BRIEF, 10_000 * MS).known;
    let Run { mut flow, packets, .. } = run(path, Rules::BRIEF, known);
    let first = flow.report().window;
    // A brief round has at most half of the path's packets, and the next one goes at most half of the
    // remaining way.
    assert!(flow.phase() == Phase::Handover && first <= 250 + (502 - 250) / 2, "{first}");
    let at = |i: u32| 10_000 * MS + u64::from(i) * 300_000;
    let mut grown = f64::from(first);
    (1..=first + 1).for_each(|i| flow.sent((packets + i) * PACKET, at(i)));
    for i in 1..=first {
        flow.acked((packets + i) * PACKET, at(i) + 50 * MS, first, Seen::default());
        grown += (502.0 - grown) / grown;
    }
    assert!((f64::from(flow.report().window) - grown).abs() < 3.0, "{} {grown}", flow.report().window);
    let seen = Seen { marked: true, disorder: false };
    flow.acked((packets + first + 1) * PACKET, at(first + 1) + 50 * MS, first, seen);
    let more = ((500 - first) / 32).max(500 / 64);
    assert!(flow.report().window.abs_diff(first + more) <= 1, "{} {first} {more}", flow.report().window);
}

/// A window as above, beside another flow that begins with as much as the path has. From its 6th ms on, ACKs
/// come at half of the path's rate, and the queue grows by the time that each takes longer. Once an eighth of
/// the window is delivered behind 3.125 ms of delay, a 16th of the round trip but 2 ms at most, the window is
/// what half of the path fills.
#[test]
fn a_window_that_meets_as_much_is_cut_to_its_share_within_the_round_trip() {
    let path = path(100_000, 50 * MS);
    let known = run(path, Rules::BRIEF, 10_000 * MS).known;
    let Run { mut flow, packets, .. } = run(path, Rules::BRIEF, known);
    let first = flow.report().window;
    let left = |i: u32| 10_000 * MS + u64::from(i) * 100_000;
    (1..=first).for_each(|i| flow.sent((packets + i) * PACKET, left(i)));
    let cut = (1..=first).find(|&i| {
        let delay = u64::from(i.saturating_sub(60)) * 100_000;
        flow.acked((packets + i) * PACKET, left(i) + 50 * MS + delay, first, Seen::default());
        flow.report().window < first
    });
    // 20 packets until the queue is seen, and an eighth of the window, which has grown by less than half
    // until then.
    let cut = cut.expect("it is cut");
    assert!((60 + 20 + first / 8..60 + 24 + first / 5).contains(&cut), "{cut} {first}");
    assert!(flow.report().window.abs_diff(250) <= 3, "{}", flow.report().window);
}

/// A receiver that takes 55 packets after 10 and 30, as Linux does before it has seen more, does not end the
/// rounds. One that stays at 55 does. The resulting window is not judged by rounds with room for more, until
/// it is used.
#[test]
fn a_receiver_that_takes_more_and_more_ends_neither_rounds_nor_the_handover() {
    let mut flow = FlowStart::new(50 * MS, Rules::BRIEF);
    let (mut end, mut now) = (0, 0);
    let mut round = |flow: &mut FlowStart, takes: u32| {
        let sent = flow.room().min(takes);
        let mut left = Vec::new();
        for i in 1..=sent {
            now += flow.gap();
            left.push(now);
            flow.sent(end + i * PACKET, now);
            if i == takes {
                flow.closed();
            }
        }
        let mut at = 0;
        for (i, left) in (1..=sent).zip(left) {
            at = (left + 50 * MS).max(at + 100_000);
            flow.acked(end + i * PACKET, at, sent - i, Seen::default());
        }
        (end, now) = (end + sent * PACKET, at);
        (sent, flow.phase())
    };
    assert_eq!(round(&mut flow, 55), (10, Phase::Rounds));
    let (second, _) = round(&mut flow, 55);
    assert!((20..=40).contains(&second), "{second}");
    assert_eq!(round(&mut flow, 55), (55, Phase::Rounds));
    assert_eq!(round(&mut flow, 55), (55, Phase::Handover));
    let window = flow.report().window;
    assert!((56..=110).contains(&window), "{window}");
    // 20 packets in flight for three round trips; each ACK has room for one more.
    for i in 1..=80 {
        let at = now + u64::from(i) * 2_500_000;
        if i > 20 {
            flow.acked(end + (i - 20) * PACKET, at, 19, Seen::default());
        }
        flow.sent(end + i * PACKET, at);
        flow.closed();
        assert_eq!(flow.phase(), Phase::Handover, "{i}");
    }
}

/// An application with two packets in a round trip keeps brief rounds from coming to an end. Slow start then
/// goes on with the window that it has anyway.
#[test]
fn brief_rounds_that_pause_twice_leave_the_rest_to_slow_start() {
    let after = |rules, rounds: u32| {
        let mut flow = FlowStart::new(20 * MS, rules);
        (1..=10).for_each(|i| flow.sent(i * PACKET, 0));
        (1..=10).for_each(|i| flow.acked(i * PACKET, (20 + u64::from(i)) * MS, 10 - i, Seen::default()));
        for round in 0..rounds {
            let (at, end) = ((50 + 50 * u64::from(round)) * MS, (10 + 2 * round) * PACKET);
            (1..=2).for_each(|i| flow.sent(end + i * PACKET, at + u64::from(i) * MS));
            (1..=2).for_each(|i| {
                flow.acked(end + i * PACKET, at + (20 + u64::from(i)) * MS, 2 - i, Seen::default())
            });
        }
        (flow.phase(), flow.report().window)
    };
    assert_eq!(after(Rules::BRIEF, 1), (Phase::Rounds, 0));
    assert_eq!(after(Rules::BRIEF, 2), (Phase::Done, 10));
    assert_eq!(after(Rules::ADAPTIVE, 6), (Phase::Rounds, 0));
}
