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

fn path(out: Config) -> Rig<Path> {
    Rig::new(Path::new(out, Config::default()))
}

/// Changes what goes out from now on.
fn change(r: &mut Rig<Path>, out: Config) {
    r.with_cx(|path, cx| path.change(cx, out, Config::default()));
}

#[test]
fn frames_on_the_line_have_a_new_delay_and_stay_in_order() {
    let line = |delay| Config { delay: Duration::from_millis(delay), ..Config::default() };
    let mut r = path(line(20));
    r.inject(Path::LAN, packet(1, 1500));
    r.at(us(8_000)).inject(Path::LAN, packet(2, 1500));
    r.run_until(us(10_000));
    // Left are 10 and 18 ms of 20. With 5 ms less there are 5 and 13; with 15 less, nothing and 3.
    change(&mut r, line(15));
    assert!(r.run_until(us(11_000)).is_empty());
    change(&mut r, line(5));
    r.at(us(11_000)).inject(Path::LAN, packet(3, 1500));
    assert_eq!(stamps(&r.run_until(us(99_000))), [(us(11_000), 1), (us(13_000), 2), (us(16_000), 3)]);
    // Longer: 10 of 20 ms are left, and 30 more are added, which is no longer than the new delay.
    change(&mut r, line(20));
    r.at(us(100_000)).inject(Path::LAN, packet(4, 1500));
    r.run_until(us(110_000));
    change(&mut r, line(50));
    r.at(us(110_000)).inject(Path::LAN, packet(5, 1500));
    assert_eq!(stamps(&r.run_until(us(999_000))), [(us(150_000), 4), (us(160_000), 5)]);
    r.finish();
}

#[test]
fn jitter_that_ends_leaves_no_frame_behind_its_time() {
    let (delay, by) = (Duration::from_millis(10), Duration::from_millis(40));
    let jitter = |reorders| Jitter { by, law: Law::Uniform, reorders };
    let line = |jitter| Config { delay, jitter, ..Config::default() };
    for (before, after) in [(true, false), (false, true)] {
        let mut r = path(line(jitter(before)));
        for tag in 1..=20 {
            r.inject(Path::LAN, packet(tag, 1500));
        }
        r.run_until(us(1_000));
        change(&mut r, line(Jitter::NONE));
        r.at(us(1_000)).inject(Path::LAN, packet(21, 1500));
        // The 11th and later milliseconds are those of frames that enter later.
        let sent = r.run_until(us(11_000));
        assert_eq!((sent.len(), sent.last().map(|s| s.bytes[0])), (21, Some(21)));
        assert!(sent.iter().all(|s| s.at >= us(10_000)), "none is earlier than the delay");
        change(&mut r, line(jitter(after)));
        r.at(us(50_000)).inject(Path::LAN, packet(22, 1500));
        assert!(r.run_until(us(100_000))[0].at > us(60_000));
        r.finish();
    }
}

#[test]
fn a_rate_a_limit_and_a_loss_are_changed_while_frames_wait() {
    let mut r = path(ten_mbit());
    for tag in 1..=4 {
        r.inject(Path::LAN, packet(tag, 1500));
    }
    assert_eq!(stamps(&r.run_until(us(1_800))), [(us(1_200), 1)]);
    // The first is through, and half of the second; one waits at most from here on.
    let slow = Config { rate: Some(Rate::mbit(1)), queue: QueueLimit::Packets(2), ..Config::default() };
    change(&mut r, slow);
    r.at(us(1_800)).inject(Path::LAN, packet(5, 1500));
    let sent = stamps(&r.run_until(us(50_000)));
    assert_eq!(sent, [(us(7_800), 2), (us(19_800), 3), (us(31_800), 4)]);
    assert_eq!(r.node().out().stats().drops.get(DropReason::QueueFull), 1);
    change(&mut r, Config { loss: Loss::Periodic { n: 2.try_into().unwrap() }, ..slow });
    for at in [100, 200, 300, 400] {
        r.at(Time::from_millis(at)).inject(Path::LAN, packet(at as u8, 1500));
    }
    assert_eq!(r.run_until(us(900_000)).len(), 2);
    r.finish();
}

#[test]
fn what_a_running_link_cannot_become_has_a_name() {
    let now = ten_mbit();
    let (delay, loss) = (Duration::from_millis(9), Loss::permille(9));
    let free = Config { rate: Some(Rate::mbit(3)), delay, loss, overhead: 3, ..now };
    assert_eq!((now.fixed(&free), now.fixed(&Config { rate: None, ..now })), (None, Some("rate")));
    assert_eq!(Config::default().fixed(&now), None);
    let mark = Some(QueueLimit::Packets(3));
    for (next, key) in [
        (Config { burst: 9, ..now }, "burst"),
        (Config { timer: delay, ..now }, "timer"),
        (Config { mark, ..now }, "mark"),
    ] {
        assert_eq!(now.fixed(&next), Some(key));
    }
}
