//! Congestion marks through the gateway, packet by packet in virtual time: RFC 3168, RFC 8257 and RFC 9768.

use crate::support::*;
use weir_core::gateway::WAN;
use weir_core::rig::Sent;
use weir_core::time::Time;
use weir_core::wire::Flags;

const STEP: u32 = 12_500;
const SEGMENT: u32 = 1_448;

fn ece(on: bool) -> Flags {
    Flags(Flags::ACK.0 | if on { Flags::ECE.0 } else { 0 })
}

fn us(n: u64) -> Time {
    Time::from_micros(n)
}

/// Bytes acknowledged with ECE, and in all.
fn marked(w: &Net, sent: &[Sent]) -> (u32, u32) {
    let mut last = 0;
    let mut sums = (0, 0);
    for s in sent {
        let bytes = w.rel(s) - last;
        last += bytes;
        sums.1 += bytes;
        sums.0 += if w.tcp(s).flags.contains(Flags::ECE) { bytes } else { 0 };
    }
    sums
}

#[test]
fn changes_of_ece_let_nothing_go_early() {
    let mut w = Net::established(basic());
    // 50 Mb/s for 230 ms, ECE changes every four ACKs.
    for n in 1..=1_000u32 {
        let segment = w.ack_segment(n * SEGMENT).flags(ece(n / 4 % 2 == 1));
        w.inject_at(us(1_000_000 + 230 * u64::from(n)), WAN, segment);
    }
    let sent = w.run(ms(1_230));
    // A step of credit, then one every 10 ms.
    let most = STEP * (1 + 23);
    assert!(numbers(&sent).last().unwrap().1 <= most, "{:?}", numbers(&sent).last());
    // The same share is marked in the end: half of it.
    let rest: Vec<Sent> = sent.into_iter().chain(w.run(ms(4_000))).collect();
    let (with, all) = marked(&w, &rest);
    assert_eq!(all, 1_000 * SEGMENT);
    assert!(with.abs_diff(500 * SEGMENT) <= STEP, "{with} of {all}");
    w.finish();
}

#[test]
fn the_share_of_marked_bytes_is_kept() {
    for one_in in [2u32, 3, 10, 50] {
        let mut w = Net::established(basic());
        for n in 1..=2_000u32 {
            let segment = w.ack_segment(n * SEGMENT).flags(ece(n % one_in == 0));
            w.inject_at(us(1_000_000 + 1_158 * u64::from(n)), WAN, segment); // the rate
        }
        let sent = w.run(ms(10_000));
        let (with, all) = marked(&w, &sent);
        assert_eq!(all, 2_000 * SEGMENT);
        assert!(with.abs_diff(all / one_in) <= STEP, "1 in {one_in}: {with} of {all}");
    }
}

#[test]
fn classic_ece_is_shown_with_the_next_release_and_while_it_lasts() {
    let mut w = Net::established(basic());
    w.ack_at(ms(1_000), 50_000);
    // From 50,000 to 90,000 the receiver repeats ECE, then it has seen CWR.
    for n in 1..=40u32 {
        let segment = w.ack_segment(50_000 + 2_000 * n).flags(ece(n <= 20));
        w.inject_at(us(1_005_000 + 100 * u64::from(n)), WAN, segment);
    }
    let sent = w.run(ms(2_000));
    let shown: Vec<_> = sent.iter().map(|s| (w.rel(s), w.tcp(s).flags.contains(Flags::ECE))).collect();
    // Marks go first: 40,000 bytes, in four steps of 12,500, and none beyond what the receiver said.
    assert_eq!(shown[0], (STEP, false));
    assert!(shown[1..5].iter().all(|s| s.1) && shown[5..].iter().all(|s| !s.1), "{shown:?}");
    w.finish();
}

fn ace(n: u32) -> Flags {
    let bit = |mask, flag: Flags| if n & mask != 0 { flag.0 } else { 0 };
    Flags(Flags::ACK.0 | bit(4, Flags::AE) | bit(2, Flags::CWR) | bit(1, Flags::ECE))
}

/// Marks that a sender counts: each ACK tells the last three bits.
fn counted(w: &Net, sent: &[Sent]) -> u32 {
    let read = |s: &Sent| {
        let f = w.tcp(s).flags;
        [Flags::AE, Flags::CWR, Flags::ECE].iter().fold(0, |n, &flag| n * 2 + u32::from(f.contains(flag)))
    };
    sent.iter().fold((0, 5), |(sum, last), s| (sum + (read(s) + 8 - last) % 8, read(s))).0
}

/// An AccECN flow whose window is known: 512,000 bytes.
fn accurate() -> Net {
    let mut w = Net::new(basic(), None);
    w.handshake_flags(
        Flags(Flags::SYN.0 | Flags::AE.0 | Flags::CWR.0 | Flags::ECE.0),
        Flags(Flags::SYN.0 | Flags::ACK.0 | Flags::CWR.0),
    );
    let update = w.ack_segment(0).flags(ace(5));
    w.inject_at(ms(400), WAN, update);
    w.run(ms(500));
    w
}

#[test]
fn an_accecn_counter_never_goes_around_unseen() {
    // Packets marked by the time of each ACK; RFC 9768 asks for one ACK in six marks at most.
    for marks in [&[0u32, 3, 8][..], &[0, 7, 13, 20], &[0, 1, 2, 3, 4, 5, 6, 7, 8], &[0, 3, 3, 9, 9, 12, 19]]
    {
        let mut w = accurate();
        for (n, count) in (0u32..).zip(marks) {
            let segment = w.ack_segment(20_000 + n * 8_000).flags(ace(5 + count));
            w.inject_at(us(1_000_000 + 100 * u64::from(n)), WAN, segment);
        }
        let sent = w.run(ms(3_000));
        assert_eq!(counted(&w, &sent), *marks.last().unwrap(), "{marks:?}");
        let acks: Vec<u32> = numbers(&sent).iter().map(|n| n.1).collect();
        assert!(acks.windows(2).all(|p| p[0] < p[1]), "no duplicates: {acks:?}");
    }
}

/// A sender takes the counter of more than seven packets for one that has gone around (RFC 9768 §3.2.2.5). A
/// step of 12,500 bytes is nearly nine.
#[test]
fn an_ack_made_in_an_accecn_flow_acknowledges_six_packets_at_most() {
    let mut w = accurate();
    let segment = w.ack_segment(100_000).flags(ace(5));
    w.inject_at(ms(1_000), WAN, segment);
    let sent = numbers(&w.run(ms(3_000)));
    let mut last = 0;
    for &(at, number) in &sent {
        let most = if last == 0 { 2 } else { 6 };
        assert!(number - last <= most * 1_460, "{sent:?}");
        let steps = 1 + at.since(ms(1_000)).as_nanos() / 10_000_000;
        assert!(u64::from(number) <= steps * u64::from(STEP), "{number} at {at:?}");
        last = number;
    }
    assert_eq!(last, 100_000);
    w.finish();
}
