//! A change of the rate while frames wait and are sent.

use super::*;

#[test]
fn what_is_left_of_a_frame_is_sent_at_the_new_rate() {
    let mut r = rig(ten_mbit());
    r.inject(Link::IN, packet(1, 1500)).inject(Link::IN, packet(2, 1500)).inject(Link::IN, packet(3, 1500));
    assert_eq!(r.run_until(us(600)).len(), 0);
    // Half of the first, 6,000 bits, is left: 6 ms at 1 Mb/s. The second takes 12 ms.
    r.with_cx(|link, cx| link.set_rate(cx, Rate::mbit(1)));
    assert_eq!(stamps(&r.run_until(us(12_600))), [(us(6600), 1)]);
    // Half of the second is left again, 60 us at 100 Mb/s; then 120 us.
    r.with_cx(|link, cx| link.set_rate(cx, Rate::mbit(100)));
    assert_eq!(stamps(&r.run_until(us(99_999))), [(us(12_660), 2), (us(12_780), 3)]);
    assert_eq!(r.node().stats().busy, us(12_780).since(Time::ZERO));
    assert_eq!(r.node().config().rate, Some(Rate::mbit(100)));
    r.finish();
}

#[test]
fn fractions_of_a_nanosecond_outlive_a_change_of_rate() {
    let mut r = rig(Config { rate: Some(Rate::mbit(7)), ..Config::default() });
    for tag in 1..=3 {
        r.inject(Link::IN, packet(tag, 1500));
    }
    r.run_until(us(1000));
    // 7,000 of 12,000 bits are gone. 5,000 at 3 Mb/s take 1,666,666 2/3 ns, and each of the others 4 ms.
    r.with_cx(|link, cx| link.set_rate(cx, Rate::mbit(3)));
    assert_eq!(stamps(&r.run_until(us(7000))), [(ns(2_666_666), 1), (ns(6_666_666), 2)]);
    // 333,333 1/3 ns at 3 Mb/s are 1,000 bits of the third. 11,000 at 9 Mb/s take 1,222,222 2/9 ns.
    r.with_cx(|link, cx| link.set_rate(cx, Rate::mbit(9)));
    assert_eq!(stamps(&r.run_until(us(9999))), [(ns(8_222_222), 3)]);
    r.finish();
}

#[test]
fn tokens_that_have_come_together_outlive_a_change_of_rate() {
    // A byte per microsecond. 1,000 of 1,500 bytes are collected 1 ms after the bucket was emptied.
    let rate = Some(Rate::mbit(8));
    let mut r = rig(Config { rate, burst: 1500, ..Config::default() });
    r.at(us(10_000)).inject(Link::IN, packet(1, 1500));
    assert_eq!(stamps(&r.run_until(us(11_000))), [(us(10_000), 1)]);
    // 250 more are collected each millisecond from there on, until the bucket is full after 2 ms.
    r.with_cx(|link, cx| link.set_rate(cx, Rate::mbit(2)));
    r.at(us(12_000)).inject(Link::IN, packet(2, 1250)).inject(Link::IN, packet(3, 50));
    r.at(us(30_000)).inject(Link::IN, packet(4, 1500)).inject(Link::IN, packet(5, 50));
    let sent = stamps(&r.run_until(us(40_000)));
    assert_eq!(sent, [(us(12_000), 2), (us(12_200), 3), (us(30_000), 4), (us(30_200), 5)]);
    // A full bucket is full at any rate.
    r.with_cx(|link, cx| link.set_rate(cx, Rate::mbit(16)));
    r.inject(Link::IN, packet(6, 1500)).inject(Link::IN, packet(7, 1000));
    assert_eq!(stamps(&r.run_until(us(50_000))), [(us(40_000), 6), (us(40_500), 7)]);
    r.finish();
}

#[test]
fn a_wire_becomes_a_link_with_a_rate() {
    let mut r = rig(Config { delay: Duration::from_millis(5), ..Config::default() });
    r.inject(Link::IN, packet(1, 1500));
    r.run_until(us(1000));
    r.with_cx(|link, cx| link.set_rate(cx, Rate::mbit(10)));
    r.inject(Link::IN, packet(2, 1500)).inject(Link::IN, packet(3, 1500));
    assert_eq!(stamps(&r.run_until(us(9999))), [(us(5000), 1), (us(7200), 2), (us(8400), 3)]);
    r.finish();
}
