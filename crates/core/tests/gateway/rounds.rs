//! TCP rate control: flows of a class have turns at its rate, a queued ACK each, and windows for what the WAN
//! holds. 8 Mb/s of IP bytes: a turn takes what a full segment does, 1.5 ms.

use crate::support::uploads::*;
use crate::support::*;
use weir_core::ack::{AckControl, Counts, Release, CLASS_PRESETS};
use weir_core::flow::flag;
use weir_core::gateway::LAN;
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};
use weir_core::wire::Flags;

const MSS: u32 = 1_460;

fn us(n: u64) -> Time {
    Time::from_micros(n)
}

fn tcr(flows: u16) -> Uploads {
    Uploads::begun(config(AckControl::tcr(Rate::mbit(8))), flows, ms(20))
}

#[test]
fn flows_have_turns_at_the_rate_of_the_class() {
    let mut u = tcr(2);
    for n in 1..=3 {
        u.ack(us(1_000_000 + u64::from(n)), 0, n * MSS);
        u.ack(us(1_000_003 + u64::from(n)), 1, n * MSS);
    }
    let expect = |n: u32| (us(1_000_001 + 1_500 * u64::from(n)), (n % 2) as u16, (n / 2 + 1) * MSS);
    assert_eq!(u.run(ms(1_100)), (0..6).map(expect).collect::<Vec<_>>());
    u.rig.finish();
}

/// At 80 kb/s a turn takes 150 ms.
#[test]
fn a_turn_takes_its_time_however_low_the_rate_is() {
    let mut u = Uploads::begun(config(AckControl::tcr(Rate::from_bps(80_000).unwrap())), 1, ms(20));
    for n in 1..=4 {
        u.ack(ms(1_000), 0, n * MSS);
    }
    let expect = |n: u32| (ms(1_000 + 150 * u64::from(n - 1)), 0, n * MSS);
    assert_eq!(u.run(ms(2_000)), (1..=4).map(expect).collect::<Vec<_>>());
}

/// A class that has done nothing for a second has earned no burst.
#[test]
fn an_idle_class_earns_nothing() {
    let mut u = tcr(1);
    for n in 1..=3 {
        u.ack(ms(1_000), 0, n * MSS);
    }
    let expect = |n: u32| (us(1_000_000 + 1_500 * u64::from(n - 1)), 0, n * MSS);
    assert_eq!(u.run(ms(1_100)), (1..=3).map(expect).collect::<Vec<_>>());
}

/// 8 Mb/s are 973 kB/s of payload: 19,467 bytes in 20 ms, which are 14 segments.
#[test]
fn a_window_is_what_the_wan_holds() {
    let u = tcr(1);
    let r = u.record(0);
    assert_eq!(r.edge.since(r.tx), 14 * MSS);
}

/// The handshake took 20 ms. Data of which the acknowledgement takes 100 ms moves the average by an eighth of
/// the difference.
#[test]
fn the_delay_follows_what_data_takes() {
    let mut u = tcr(1);
    let data = u.sender(0).flags(Flags::ACK).payload(1_000);
    u.inject(ms(1_000), LAN, data);
    u.ack(ms(1_100), 0, 1_000);
    u.run(ms(1_101));
    assert!(u.record(0).rtt_ns.abs_diff(30_000_000) <= 1);
    // After a duplicate nothing is learnt from what was on its way (Karn).
    let data = u.sender(0).seq(u.record(0).tx).flags(Flags::ACK).payload(1_000);
    u.inject(ms(2_000), LAN, data);
    u.ack(ms(2_010), 0, 1_000);
    u.ack(ms(2_500), 0, 2_000);
    u.run(ms(2_501));
    assert!(u.record(0).rtt_ns.abs_diff(30_000_000) <= 1);
}

/// Data beyond the right edge, or before what is acknowledged, is not its sender's. It measures nothing, and
/// the next segment of the sender does.
#[test]
fn the_delay_follows_no_forged_data() {
    let mut u = tcr(1);
    // The handshake's window is 64,000 bytes, of which the sender knows less.
    for (ms_at, ahead) in [(1_000, 64_001u32), (1_001, 1 << 30), (1_002, 2_000u32.wrapping_neg())] {
        let forged = u.data(0, ahead).flags(Flags::ACK).payload(1_000);
        u.inject(ms(ms_at), LAN, forged);
    }
    u.run(ms(1_010));
    assert_eq!(u.record(0).law.steps().probe(), None);
    send(&mut u, ms(1_020), 0, 0, 1_000);
    u.ack(ms(1_120), 0, 1_000);
    u.run(ms(1_121));
    assert!(u.record(0).rtt_ns.abs_diff(30_000_000) <= 1, "{}", u.record(0).rtt_ns);
}

/// Data that was never sent, far ahead but within the window, is acknowledged when the sender gets there. It
/// stops the measurement for four seconds at most, and tells no delay.
#[test]
fn a_segment_that_was_forged_within_the_window_measures_nothing() {
    let mut u = tcr(1);
    send(&mut u, ms(1_000), 0, 10_000, 1_000);
    u.ack(ms(4_900), 0, 1_000);
    u.run(ms(4_901));
    assert!(u.record(0).law.steps().probe().is_some());
    u.ack(ms(5_010), 0, 2_000);
    u.run(ms(5_011));
    assert_eq!(u.record(0).law.steps().probe(), None, "it was none of the sender's");
    send(&mut u, ms(5_020), 0, 0, 1_000);
    u.ack(ms(5_120), 0, 3_000);
    u.ack(ms(9_000), 0, 11_000);
    u.run(ms(9_001));
    assert!(u.record(0).rtt_ns.abs_diff(30_000_000) <= 1, "{}", u.record(0).rtt_ns);
}

/// Data that comes in has crossed the WAN before it is seen, so what it takes to its acknowledgement is the
/// LAN's delay.
#[test]
fn downloads_keep_the_delay_of_the_handshake() {
    let mut inward = config(AckControl::tcr(Rate::mbit(8)));
    inward.classes[0].direction = weir_core::gateway::Direction::In;
    assert!(
        !inward.classes[0].measures_delay()
            && config(AckControl::tcr(Rate::mbit(8))).classes[0].measures_delay()
    );
}

/// Three duplicates are three, and come behind what was acknowledged before, a turn each.
#[test]
fn duplicates_keep_their_place() {
    let mut u = tcr(1);
    u.ack(ms(1_000), 0, MSS);
    for _ in 0..4 {
        u.ack(us(1_000_100), 0, 2 * MSS);
    }
    let sent = u.run(ms(1_100));
    let numbers: Vec<u32> = sent.iter().map(|s| s.2).collect();
    assert_eq!(numbers, [MSS, 2 * MSS, 2 * MSS, 2 * MSS, 2 * MSS]);
    assert!(sent.windows(2).all(|w| w[1].0.since(w[0].0).as_nanos() == 1_500_000), "{sent:?}");
}

/// A connection that a FIN has passed is not paced: its sender sends no more.
#[test]
fn what_a_sender_that_has_ended_holds_goes_at_once() {
    let mut u = tcr(1);
    for n in 1..=4 {
        u.ack(ms(1_000), 0, n * MSS);
    }
    u.fin(ms(1_001), 0, 5 * MSS);
    u.ack(ms(1_002), 0, 5 * MSS);
    let sent = u.run(ms(1_002));
    assert_eq!(sent.last(), Some(&(ms(1_002), 0, 5 * MSS)));
    assert_eq!(sent.len(), 5);
}

/// Basic PostACK at a byte of payload a microsecond, and a WAN of 20 ms, which holds 20,000 bytes.
fn basic(flows: u16) -> Uploads {
    let preset = CLASS_PRESETS.iter().find(|preset| preset.name == "postack-basic").unwrap();
    let mut ack = (preset.policy)(Rate::mbit(8));
    if let Release::Share(law) = &mut ack.release {
        law.counts = Counts::Payload;
    }
    Uploads::begun(config(ack), flows, ms(20))
}

/// A flow sends `bytes` beyond the first `from`.
fn send(u: &mut Uploads, at: Time, f: u16, from: u32, bytes: usize) {
    let data = u.sender(f);
    let seq = u.record(f).tx.plus(from);
    u.inject(at, LAN, data.seq(seq).flags(Flags::ACK).payload(bytes));
}

/// Returns what reaches the senders by then, to the microsecond: delays are measured in these.
fn held_until(u: &mut Uploads, until: u64) -> Vec<(Time, u16, u32)> {
    let sent = u.run(ms(until)).into_iter();
    sent.map(|(at, f, bytes)| (us(at.as_nanos() / 1_000), f, bytes)).collect()
}

/// Section 3.1 of the paper: (window − BDP / MSS) × MSS / BW. Of a window of 30,000 bytes 10,000 are not in
/// the WAN: 10 ms. Once 4,000 of them are acknowledged and no more is sent it is 6 ms.
#[test]
fn an_ack_is_held_for_what_a_queue_would_hold() {
    let mut u = basic(1);
    for n in 0..30 {
        send(&mut u, ms(1_000), 0, n * 1_000, 1_000);
    }
    u.ack(ms(1_020), 0, 1_000);
    u.ack(ms(1_021), 0, 4_000);
    assert_eq!(held_until(&mut u, 1_032), [(ms(1_030), 0, 1_000), (ms(1_031), 0, 4_000)]);
    u.ack(ms(1_040), 0, 10_000);
    assert_eq!(held_until(&mut u, 1_100), [(ms(1_046), 0, 10_000)]);
    u.rig.finish();
}

/// A window that the WAN holds leaves nothing to be queued.
#[test]
fn a_window_within_the_delay_of_the_wan_is_not_held() {
    let mut u = basic(1);
    for n in 0..20 {
        send(&mut u, ms(1_000), 0, n * 1_000, 1_000);
    }
    u.ack(ms(1_020), 0, 2_000);
    assert_eq!(held_until(&mut u, 1_100), [(ms(1_020), 0, 2_000)]);
    u.rig.finish();
}

/// ACKs keep their order: one that would be held for less leaves with the one before it.
#[test]
fn an_ack_leaves_no_earlier_than_those_before_it() {
    let mut u = basic(1);
    for n in 0..40 {
        send(&mut u, ms(1_000), 0, n * 1_000, 1_000);
    }
    u.ack(ms(1_020), 0, 1_000);
    u.ack(ms(1_039), 0, 2_000); // held until 1,059 ms
    assert_eq!(held_until(&mut u, 1_041), [(ms(1_040), 0, 1_000)]);
    u.ack(ms(1_042), 0, 38_000); // 39,000 bytes are outstanding: 19 ms
    assert_eq!(held_until(&mut u, 1_100), [(ms(1_059), 0, 2_000), (ms(1_061), 0, 38_000)]);
    u.rig.finish();
}

/// Two flows send windows of 30,000 bytes, which are acknowledged 20 ms later. Half of the rate carries one
/// in 60 ms, so the WAN holds 10,000 bytes of it, and the other 20,000 take 40 ms.
#[test]
fn a_flow_has_its_part_of_the_rate() {
    let mut u = basic(2);
    let (mut at, mut held) = (ms(1_000), 0.0);
    for round in 0..40 {
        for f in 0..2 {
            (0..30).for_each(|n| send(&mut u, at, f, n * 1_000, 1_000));
        }
        let came = at + Duration::from_millis(20);
        (0..2).for_each(|f| u.ack(came, f, (round + 1) * 30_000));
        let sent = u.run(at + Duration::from_millis(60));
        assert_eq!(sent.len(), 2, "{sent:?}");
        (at, held) = (sent[1].0, sent[1].0.since(came).as_nanos() as f64 / 1e6);
    }
    assert!((39.0..=40.1).contains(&held), "{held} ms");
}

/// The timer of ACKs that wait for their times ends with the connection.
#[test]
fn a_reset_leaves_no_timer_behind() {
    let mut u = basic(1);
    for n in 0..40 {
        send(&mut u, ms(1_000), 0, n * 1_000, 1_000);
    }
    u.ack(ms(1_020), 0, 1_000);
    u.run(ms(1_021));
    let reset = u.sender(0).seq(u.record(0).rx).flags(Flags::RST);
    u.inject(ms(1_022), LAN, reset);
    u.run(ms(20_000));
    assert!(u.node().flows.records().iter().all(|r| !r.has(flag::USED)), "it is forgotten");
    u.rig.finish();
}
