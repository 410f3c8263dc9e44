//! TCP rate control: flows of a class have turns at its rate, a queued ACK each, and windows for what the WAN
//! holds. 8 Mb/s of IP bytes: a turn takes what a full segment does, 1.5 ms.

use crate::support::uploads::*;
use crate::support::*;
use weir_core::ack::AckControl;
use weir_core::gateway::LAN;
use weir_core::rate::Rate;
use weir_core::time::Time;
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
    assert_eq!(r.edge.wrapping_sub(r.tx), 14 * MSS);
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

/// Of a connection that a FIN has passed of nothing is to be paced: its sender sends no more.
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
