//! Senders that count bytes are distinguished from those that count ACKs.

use super::*;

/// The flow of port 1, whose handshake has taken 200 ms, at 400 ms.
fn begun(policy: Policy) -> Bench {
    let service = if policy == Policy::DelayedPerFlow { Service::RoundRobin } else { Service::Fifo };
    let mut b = Bench::new(params(policy, service), QueueLimit::Unlimited);
    b.push(&ack(1, 0).seq(0).flags(Flags::SYN).mss(1000).window_scale(7), ACK);
    b.pop();
    b.now = Time::from_millis(200);
    b.ack(1, 0);
    b.pop();
    b.now = Time::from_millis(400);
    b.out.clear();
    b
}

/// The sixth of the ten segments of RFC 6928 exceeds the flight of a sender that began with four and was sent
/// one ACK.
#[test]
fn of_a_sender_that_counts_bytes_one_ack_waits() {
    let mut b = begun(Policy::DelayedPerFlow);
    (1..=5).for_each(|n| assert_eq!(b.ack(1, n), None));
    assert_eq!((b.filter.backlog.packets(), b.filter.backlog.stats.filtered), (5, 0));
    (6..=10).for_each(|n| assert_eq!(b.ack(1, n), None));
    assert_eq!(b.rest(), [(1, 10)]);
    b.check();
    // A policy that looks at the channel alone ignores it.
    let mut b = begun(Policy::Delayed);
    (1..=10).for_each(|n| assert_eq!(b.ack(1, n), None));
    assert_eq!(b.rest().len(), 10);
}

/// §4.1 knows the flow's rate alone: neither such a sender, nor as many ACKs as a round trip carries (62 of
/// 40 bytes at 100 kb/s in 200 ms) are a reason.
#[test]
fn the_published_rule_looks_at_the_rate_alone() {
    let published = Params {
        rule: Rule::Published,
        on: 1_000_000,
        off: 1_000_000,
        ..params(Policy::DelayedPerFlow, Service::RoundRobin)
    };
    let wait = |params: Params| {
        let mut b = Bench::new(params, QueueLimit::Unlimited);
        (1..=300).for_each(|n| _ = b.ack(1, n));
        b.filter.backlog.packets()
    };
    assert_eq!(wait(published), 300);
    assert!(wait(params(Policy::DelayedPerFlow, Service::RoundRobin)) <= 63);
}

/// Windows of 4, 8 and 16 (RFC 5681 §3.1).
#[test]
fn of_a_sender_that_counts_acks_all_wait() {
    let mut b = begun(Policy::DelayedPerFlow);
    let mut n = 0;
    for round in 0..3u64 {
        b.serve(Time::from_millis(400 + 200 * round));
        for _ in 0..4 << round {
            n += 1;
            b.ack(1, n);
        }
    }
    b.serve(Time::from_secs(2));
    assert_eq!((b.out.len(), b.filter.backlog.stats.filtered), (28, 0));
    b.check();
}

/// The ACK that fills a hole acknowledges data that arrived earlier.
#[test]
fn nothing_is_concluded_after_a_loss() {
    let mut b = begun(Policy::DelayedPerFlow);
    b.ack(1, 1);
    b.ack(1, 1);
    (20..30).for_each(|n| assert_eq!(b.ack(1, n), None));
    assert_eq!(b.filter.backlog.stats.filtered, 0);
    b.check();
}

/// Bytes acknowledged by requests are acknowledged again by the next ACK, and may have arrived at any earlier
/// time.
#[test]
fn what_data_has_acknowledged_does_not_count() {
    let mut b = begun(Policy::DelayedPerFlow);
    b.ack(1, 1);
    b.data(1, 7);
    b.ack(1, 9);
    b.ack(1, 10);
    assert_eq!(b.filter.backlog.stats.filtered, 0);
    assert_eq!(b.rest(), [(1, 1), (1, 7), (1, 9), (1, 10)]);
    b.check();
}
