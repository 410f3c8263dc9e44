//! Step marking at the queue's threshold.

use super::*;

/// 1,500 bytes of IPv4 with this ECN field.
fn ecn(field: u8) -> TestFrame {
    let (head, len) = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).tos(field).payload(1460).build_head();
    TestFrame::bytes(&head).long(len)
}

fn marked(sent: &[Sent]) -> Vec<bool> {
    sent.iter().map(|s| s.bytes[15] & 3 == 3).collect()
}

/// DCTCP, §3.1: a packet is marked if it finds more than K in the queue.
#[test]
fn packets_that_find_more_than_the_threshold_waiting_are_marked() {
    // 3,000 bytes either way, 10 Mb/s × 2.4 ms.
    let bdp = QueueLimit::Bdp { rtt: Duration::from_micros(2400) };
    for mark in [QueueLimit::Packets(2), QueueLimit::Bytes(3000), bdp] {
        let mut r = rig(Config { mark: Some(mark), queue: QueueLimit::Packets(5), ..ten_mbit() });
        // One is served. The next find 0, 1, 2, 3 and 4 waiting. The last is dropped, not marked.
        for _ in 0..7 {
            r.inject(Link::IN, ecn(0b10));
        }
        // At 1.2 ms one has left the queue and 4 wait. Until 4.8 ms it is 3. From 6 ms on it is 2, that one
        // included.
        r.at(us(1200)).inject(Link::IN, ecn(0b01));
        r.at(ns(4_799_999)).inject(Link::IN, ecn(0b10)).at(us(6000)).inject(Link::IN, ecn(0b10));
        let sent = r.run_until(Time::from_secs(1));
        let expected = [false, false, false, false, true, true, true, true, false];
        assert_eq!(marked(&sent), expected, "{mark:?}");
        assert_eq!(r.node().stats().marks, 4);
        r.finish();
    }
}

#[test]
fn only_ecn_capable_packets_are_marked() {
    let mut r = rig(Config { mark: Some(QueueLimit::Packets(0)), ..ten_mbit() });
    // The second finds one being served and none waiting.
    for field in [0b10, 0b10, 0b00, 0b01, 0b11, 0b10] {
        r.inject(Link::IN, ecn(field));
    }
    let fields: Vec<u8> = r.run_until(Time::from_secs(1)).iter().map(|s| s.bytes[15] & 3).collect();
    assert_eq!(fields, [0b10, 0b10, 0b00, 0b11, 0b11, 0b11]);
    // The fifth came with the mark, and counts as in Linux's `INET_ECN_set_ce`.
    assert_eq!(r.node().stats().marks, 3);
}
