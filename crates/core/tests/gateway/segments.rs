//! Segment sizes, IP headers and handshakes out of the ordinary, packet by packet in virtual time.

use crate::support::*;
use weir_core::ack::{AckControl, Counts};
use weir_core::gateway::{PassReason, LAN, WAN};
use weir_core::rate::Rate;
use weir_core::time::Time;
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Flags;

const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);
const STEP: u32 = 12_500;

fn syn(w: &Net, mss: u16) -> SegmentBuilder {
    w.data_segment(0).seq(w.abs(0).wrapping_sub(1)).ack(0).flags(Flags::SYN).mss(mss).window_scale(7)
}

fn syn_ack(w: &Net, mss: u16) -> SegmentBuilder {
    w.ack_segment(0).seq(RECEIVER_ISN).flags(SYN_ACK).window(64_000).mss(mss).window_scale(7)
}

#[test]
fn segments_count_as_large_as_they_are() {
    // The smaller of both (RFC 9293 section 3.7.1): of 9,000 bytes of IP 8,960 are payload, of 1,500 1,460.
    for (ours, theirs, mss) in [(8_960, 8_960, 8_960u64), (8_960, 1_460, 1_460), (1_460, 8_960, 1_460)] {
        let mut w = Net::new(basic_with(|r| r.counts = Counts::Ip), None);
        let (s, a) = (syn(&w, ours), syn_ack(&w, theirs));
        w.inject_at(ms(0), LAN, s);
        w.inject_at(ms(20), WAN, a);
        for n in 0..40 {
            w.ack_at(ms(1_000 + n), 40_000 * (n as u32 + 1));
        }
        let sent = w.run(ms(2_000));
        let acks: Vec<_> = numbers(&sent).into_iter().filter(|n| n.0 >= ms(1_000)).collect();
        let (first, last) = (acks[0], acks[acks.len() - 1]);
        let measured = u64::from(last.1 - first.1) * 8 * 1_000_000_000 / last.0.since(first.0).as_nanos();
        let expect = 10_000_000 * mss / (mss + 40);
        assert!(measured.abs_diff(expect) <= 10, "{ours} and {theirs}: {measured}, not {expect}");
    }
}

#[test]
fn acks_with_ip_options_or_extension_headers_pass() {
    let router_alert: &dyn Fn(SegmentBuilder) -> SegmentBuilder = &|s| s.ip_options(&[148, 4, 0, 0]);
    let destination: &dyn Fn(SegmentBuilder) -> SegmentBuilder = &|s| s.extension(60, &[1, 4, 0, 0, 0, 0]);
    for (v6, change) in [(false, router_alert), (true, destination)] {
        let mut w = if v6 { Net::v6(basic(), 0) } else { Net::established(basic()) };
        w.ack_at(ms(1_000), 50_000);
        let odd = change(w.ack_segment(60_000));
        let before = odd.build();
        w.inject_at(ms(1_002), WAN, odd);
        w.ack_at(ms(1_003), 90_000);
        let sent = w.run(ms(1_013));
        // It passes as it came. What it told early is repaid.
        assert_eq!(
            numbers(&sent),
            [(ms(1_000), STEP), (ms(1_002), 60_000), (Time::from_micros(1_012_500), 60_000 + STEP / 2)]
        );
        assert_eq!(sent[1].bytes, before);
        let node = w.rig.node();
        assert_eq!(node.flows.stats().passed[PassReason::IpOptions as usize], 1);
        assert_eq!(node.flows.flows().next().unwrap().pass, None);
    }
}

#[test]
fn a_syn_repeated_after_the_syn_ack_keeps_what_was_learnt() {
    let mut w = Net::new(AckControl::ack_shaper(Rate::mbit(10)), None);
    let (s, a) = (syn(&w, 1_460), syn_ack(&w, 1_460));
    w.inject_at(ms(0), LAN, s.clone());
    w.inject_at(ms(20), WAN, a.clone());
    // The SYN-ACK was lost behind the gateway.
    w.inject_at(ms(1_000), LAN, s);
    w.inject_at(ms(1_020), WAN, a);
    w.ack_at(ms(1_100), 100);
    w.ack_at(ms(1_200), 30_000);
    let sent = w.run(ms(1_210));
    // 10 Mb/s x 40 ms = 50,000 bytes = 35 segments = 51,100: in the SYN-ACK as such, then in units of 128,
    // 399.2.
    let windows: Vec<u16> = sent.iter().filter(|s| s.port == LAN).map(|s| w.tcp(s).window).collect();
    assert_eq!(windows[..3], [51_100, 51_100, 400]);
    // A step of 2,920 bytes every 2.336 ms.
    let acks: Vec<_> = numbers(&sent).into_iter().filter(|n| n.0 >= ms(1_200)).collect();
    assert_eq!(acks[0], (ms(1_200), 100 + 2_920));
    assert_eq!(acks.len(), 5);
}
