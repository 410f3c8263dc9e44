//! Flows of a class that share its rate, in virtual time. 8 Mb/s: a byte takes a microsecond, a turn is two
//! segments of 1460 bytes, and two turns are the credit of an unused class.

use crate::support::uploads::*;
use crate::support::*;
use weir_core::ack::AckControl;
use weir_core::flow::flag;
use weir_core::gateway::{Config, Gateway, LAN};
use weir_core::rate::Rate;
use weir_core::steer::Tally;
use weir_core::time::{Duration, Time};

const TURN: u32 = 2_920;
/// The first window: four segments, since the rate takes longer for them than 4 ms.
const FIRST: u32 = 4 * 1_460;

fn us(n: u64) -> Time {
    Time::from_micros(n)
}

fn share(mbit: u64) -> Config {
    config(AckControl::ack_share(Rate::mbit(mbit)))
}

#[test]
fn releases_are_as_far_apart_as_the_rate_takes_for_them() {
    let mut u = Uploads::begun(share(8), 1, ms(20));
    // The first window was charged before it was sent.
    assert_eq!((u.permitted(), u.early(0)), (u64::from(FIRST), FIRST));
    // So 24,160 bytes have come unpermitted. A clock that was idle is 5,840 us behind: the next turn is
    // 18,320 us later.
    u.ack(ms(1_000), 0, 30_000);
    let sent = u.run(ms(1_040));
    let expect = |n: u64| (us(1_018_320 + 2_920 * n), 0, TURN * (n as u32 + 1));
    assert_eq!(sent, (0..8).map(expect).collect::<Vec<_>>());
    // What is left takes a shorter turn, and the next comes at its time.
    let sent = u.run(ms(1_100));
    assert_eq!(sent, [expect(8), expect(9), (us(1_018_320 + 29_200), 0, 30_000)]);
    assert_eq!(u.permitted(), 30_000 + u64::from(u.early(0)), "permitted = received + early");
    u.rig.finish();
}

#[test]
fn an_ack_leaves_at_once_while_the_clock_is_behind() {
    let mut u = Uploads::begun(share(8), 1, ms(20));
    // The clock is at 20 ms since the first window.
    u.ack(ms(100), 0, 1_460);
    u.ack(ms(101), 0, 2_920);
    assert_eq!(u.run(ms(200)), [(ms(100), 0, 1_460), (ms(101), 0, 2_920)]);
    // No more often than every 200 us.
    u.ack(us(300_000), 0, 4_000);
    u.ack(us(300_050), 0, 4_100);
    u.ack(us(300_100), 0, 4_200);
    assert_eq!(u.run(ms(400)), [(us(300_000), 0, 4_000), (us(300_200), 0, 4_200)]);
}

#[test]
fn flows_take_turns_and_a_fresh_one_goes_first() {
    let mut u = Uploads::begun(share(8), 3, ms(20));
    u.ack(ms(1_000), 0, 30_000);
    u.ack(ms(1_000), 1, 30_000);
    let sent = u.run(ms(1_100));
    // 48,320 bytes unpermitted; 5,840 us of credit: from 1,042,480 us on, until the windows have grown to
    // half of the rate's.
    let order: Vec<(Time, u16)> = sent.iter().map(|s| (s.0, s.1)).take(12).collect();
    let expect = |n: u64| (us(1_042_480 + 2_920 * n), (n % 2) as u16);
    assert_eq!(order, (0..12).map(expect).collect::<Vec<_>>());
    // A third flow: its 2,000 bytes were permitted with its first window, and that has cost it two turns. It
    // is fresh when it has earned them, after one round of the others at most.
    u.ack(ms(1_101), 2, 2_000);
    let sent = u.run(ms(1_120));
    let at = sent.iter().position(|s| s.1 == 2).unwrap();
    assert!(at <= 2, "{sent:?}");
    assert_eq!(sent[at].2, 2_000);
}

#[test]
fn what_tells_of_a_loss_goes_at_once_and_is_charged() {
    let mut u = Uploads::begun(share(8), 1, ms(20));
    u.ack(ms(1_000), 0, 30_000);
    let before = u.run(ms(1_019));
    assert_eq!(before, [(us(1_018_320), 0, TURN)]);
    let permitted = u.permitted();
    u.ack(ms(1_019), 0, 30_000); // a duplicate
    assert_eq!(u.run(ms(1_019)), [(ms(1_019), 0, 30_000), (ms(1_019), 0, 30_000)]);
    // The turn before has moved the right edge to 11,752: twice 2,920 beyond 5,840, in whole units of 128. It
    // goes no further than it must, one unit beyond what is acknowledged.
    assert_eq!(u.permitted() - permitted, 30_128 - 11_752);
    // The next turn is when that and the turn before have been sent: 1,018,320 + 2,920 + 18,376 us. But after
    // a loss a sender hears of two segments at once, which moves the edge by as much.
    u.ack(ms(1_020), 0, 40_000);
    let sent = u.run(ms(1_100));
    assert_eq!(sent[0], (ms(1_020), 0, 30_000 + TURN));
    assert_eq!(sent[1].0, us(1_018_320 + 2_920 + 18_376 + 2_920));
}

#[test]
fn a_fin_gives_back_what_can_no_longer_be_sent() {
    let mut u = Uploads::begun(share(8), 2, ms(20));
    // Of its first window the first flow sends a byte and its FIN.
    u.fin(ms(21), 0, 1);
    u.run(ms(22));
    assert_eq!((u.early(0), u.permitted()), (2, u64::from(FIRST) + 2));
    // Two first windows from 20 ms on would have made the clock 5,840 us ahead; what is given back makes it
    // be behind again.
    u.ack(ms(23), 1, TURN);
    assert_eq!(u.run(ms(30)), [(ms(23), 1, TURN)]);
    // What a sender that has ended holds goes at once, and costs nothing.
    let permitted = u.permitted();
    u.ack(ms(31), 0, 2);
    assert_eq!(u.run(ms(31)), [(ms(31), 0, 2)]);
    assert_eq!((u.permitted(), u.early(0)), (permitted, 0));
}

#[test]
fn windows_are_shares_of_the_rate_and_edges_never_move_back() {
    let mut u = Uploads::begun(share(8), 1, ms(20));
    u.ack(ms(1_000), 0, FIRST);
    let mut at = 0;
    let mut last = FIRST;
    for n in 1..200u32 {
        u.ack(ms(1_000 + 10 * u64::from(n)), 0, FIRST + n * 10_000);
    }
    u.rig.run_until(ms(3_200)).iter().filter(|s| s.port == LAN).for_each(|s| {
        let released = acked(s) - at;
        assert!(edge(s) >= last, "{} after {last}", edge(s));
        assert!(edge(s) < (last + 2 * released).max(acked(s) + TURN) + 128, "grows too fast");
        (at, last) = (acked(s), edge(s));
    });
    // 8 Mb/s for 20 ms and 15 ms are 35,000 bytes, in units of 128.
    assert!((35_000..35_128).contains(&(last - at)), "{}", last - at);
}

#[test]
fn nothing_is_made_up_for_that_a_blocked_port_did_not_take() {
    let mut u = Uploads::begun(share(8), 1, ms(20));
    u.ack(ms(1_000), 0, 30_000);
    u.rig.close(LAN, us(1_019_000), ms(2_000));
    let sent = u.run(ms(2_020));
    assert_eq!(sent[0], (us(1_018_320), 0, TURN));
    // Once it is open: the credit, two turns and the one that is due with them.
    let at_once = sent.iter().filter(|s| s.0 == ms(2_000)).count();
    assert_eq!(at_once, 3, "{sent:?}");
    assert_eq!(sent[4].0, us(2_002_920));
}

#[test]
fn the_next_engine_goes_on_with_what_is_held() {
    let mut w = Net::with_config(share(8), None);
    w.handshake();
    w.ack_at(ms(1_000), 30_000);
    w.run(ms(1_019));
    let (records, slots) = w.shared();
    let mut next = Net::with_shared(share(8), records, slots);
    assert!(next.rig.node().flows.records()[0].has(flag::LISTED | flag::SHARED));
    let sent = next.run(ms(1_100));
    assert_eq!(next.rel(sent.last().unwrap()), 30_000);
    // At the rate again: at most two turns and one at once.
    let numbers = numbers(&sent);
    assert!(numbers.len() >= 9 && numbers[3].0 > numbers[2].0, "{numbers:?}");
}

#[test]
fn a_rate_changes_while_it_runs() {
    let mut u = Uploads::begun(share(8), 1, ms(20));
    u.ack(ms(1_000), 0, 30_000);
    u.run(ms(1_020));
    u.rig.node_mut().flows.reconfigure(share(4)).unwrap();
    let sent = u.run(ms(1_033));
    // The turn that was due stays so; the next are 5,840 us apart.
    assert_eq!(sent.iter().map(|s| s.0).collect::<Vec<_>>(), [us(1_021_240), us(1_027_080), us(1_032_920)]);
    // To a rate for each flow, and back.
    u.rig.node_mut().flows.reconfigure(config(AckControl::ack_shaper(Rate::mbit(8)))).unwrap();
    u.run(ms(1_040));
    assert!(!u.node().flows.records()[0].has(flag::SHARED));
    u.rig.node_mut().flows.reconfigure(share(8)).unwrap();
    let sent = u.run(ms(1_200));
    assert!(u.node().flows.records()[0].has(flag::SHARED));
    assert_eq!(sent.last().unwrap().2, 30_000);
    u.rig.finish();
}

#[test]
fn a_window_that_shrinks_permits_nothing() {
    let mut u = Uploads::begun(share(8), 2, ms(20));
    // Alone it has a window of 35,000 bytes, beside another one of half of that.
    let mut got = [0u32; 2];
    for n in 0..300u64 {
        let at = ms(1_000 + 10 * n);
        let both = n >= 200;
        let flows = if both { 2 } else { 1 };
        for (f, got) in (0..).zip(got.iter_mut().take(flows)) {
            *got += if both { 5_000 } else { 10_000 };
            u.ack(at, f, *got);
        }
        u.run(at + ms(9).since(Time::ZERO));
        let r = u.record(0);
        let open = r.edge.since(r.rx);
        assert!(u.early(0) <= open, "{n}: permitted {} beyond what is received, {open} open", u.early(0));
    }
    let r = u.record(0);
    let window = r.edge.since(r.tx);
    assert!((17_500..22_000).contains(&window), "{window}");
    // What was permitted is what was received and what may be sent still.
    let early = u64::from(u.early(0)) + u64::from(u.early(1));
    assert_eq!(u.permitted(), u64::from(got[0]) + u64::from(got[1]) + early);
}

/// While a flow has waited for its turn for 10 ms, another one begins with a segment: the flow that came
/// first goes first.
#[test]
fn a_flow_that_begins_waits_behind_those_that_have_waited_long() {
    for (at, window) in [(1_005, FIRST), (1_012, 1_460)] {
        let mut u = Uploads::begun(share(8), 1, ms(20));
        // As above, its next turn is at 1,018,320 us.
        u.ack(ms(1_000), 0, 30_000);
        u.open(ms(990), ms(at), 1);
        u.rig.run_until(ms(at));
        let r = u.record(1);
        assert_eq!(r.edge.since(r.tx), window, "at {at} ms");
        // It waits for a turn for the rest, and gets that before the first one has its fourth.
        u.ack(ms(1_014), 1, 1_460);
        let sent = u.run(ms(1_060));
        let of = |flow| sent.iter().filter(move |s| s.1 == flow).map(|s| s.0);
        assert!(of(1).next() < of(0).nth(3), "{sent:?}");
    }
}

/// Flows come and go, lose, end and are reset: nothing stalls, and whatever was permitted was received or is
/// known to be early.
#[test]
fn nothing_is_lost_of_flows_that_come_and_go() {
    for seed in 1..20 {
        let mut random = Random(seed);
        let flows = 1 + (random.next() % 12) as u16;
        let mut u = Uploads::begun(share(8), flows, ms(20));
        let mut received = vec![0u32; usize::from(flows)];
        let mut acked = vec![0u32; usize::from(flows)];
        let mut ended = vec![false; usize::from(flows)];
        let mut at = ms(50);
        for _ in 0..300 {
            at += Duration::from_micros(random.next() % 3_000);
            let f = (random.next() % u64::from(flows)) as u16;
            let n = usize::from(f);
            // A sender sends no more than what it was let.
            let more =
                (random.next() % 4_000).min(u64::from(FIRST + acked[n] - received[n].min(FIRST + acked[n])));
            match random.next() % 20 {
                0 if !ended[n] => {
                    ended[n] = true;
                    u.fin(at, f, received[n]);
                }
                1 | 2 => u.ack(at, f, received[n]),
                _ if !ended[n] => {
                    received[n] += more as u32;
                    u.ack(at, f, received[n]);
                }
                _ => {}
            }
            for (_, f, to) in u.run(at) {
                acked[usize::from(f)] = to;
            }
        }
        for (_, f, to) in u.run(at + Duration::from_secs(1)) {
            acked[usize::from(f)] = to;
        }
        assert_eq!(acked, received, "seed {seed}: something is held still");
        let early: u64 = (0..flows).map(|f| u64::from(u.early(f))).sum();
        // Of a flow that has ended, its FIN is early.
        let got: u64 = received.iter().map(|&b| u64::from(b)).sum();
        assert_eq!(u.permitted(), got + early, "seed {seed}");
        assert!(u.node().flows.records().iter().all(|r| !r.has(flag::LISTED)), "seed {seed}");
        assert_eq!(u.node().flows.class_stats().map(|c| c.held_bytes).sum::<u64>(), 0);
        u.rig.finish();
    }
}

/// A datagram of 1,000 bytes of payload in the direction of the flows' data is charged to their class: what
/// was counted before the gateway began is not.
#[test]
fn what_was_counted_before_is_not_charged() {
    let tallies: &'static [Tally] = Box::leak((0..4).map(|_| Tally::default()).collect());
    tallies[0].count(1_000, 1_028_000);
    let gateway = Gateway::hooked(share(8)).counted_in(tallies);
    assert_eq!((gateway.flows.others_of(0).packets, gateway.flows.exceeded(0, ms(1_000))), (1_000, 0));
    // 8 Mb/s carry 1 MB in a second, 2 ms are credit or more, and 100 ms may be ahead.
    tallies[0].count(2_000, 2_056_000);
    let beyond = gateway.flows.exceeded(0, ms(1_000));
    assert!((800_000..=900_000).contains(&beyond), "{beyond}");
}

/// A sender sends each of its segments twice, and the receiver says so: it takes the class's rate twice.
#[test]
fn data_that_is_sent_again_is_charged() {
    let mut u = Uploads::begun(share(8), 1, ms(20));
    let (mut sent, mut heard, mut may, mut at_one_second) = (0, 0, FIRST, 0);
    for t in 21..3_000 {
        let at = ms(t);
        while sent < may {
            let len = (may - sent).min(1_460);
            u.inject(at, LAN, u.data(0, sent).payload(len as usize));
            u.inject(at, LAN, u.data(0, sent).payload(len as usize));
            sent += len;
            u.ack(at, 0, sent);
        }
        // What it tells of is what the sender has heard of, which lets nothing else go.
        let acked = u.run(ms(t) + Duration::from_micros(900)).last().map_or(heard, |sent| sent.2);
        if acked > heard {
            u.twice(ms(t) + Duration::from_micros(950), 0, heard..acked, sent);
            (heard, may) = (acked, acked + 3 * TURN);
        }
        if t == 1_000 {
            at_one_second = sent;
        }
    }
    // Two seconds of a byte a microsecond, half of which are new.
    let new = sent - at_one_second;
    assert!((950_000..1_050_000).contains(&new), "{new}");
}
