//! Packets around TCP segments, and packets other than TCP.

use super::{open, Case};
use crate::script::{Script, Side, BACKLOG, MSS};
use weir_core::rig::TestFrame;
use weir_core::wire::build::{arp, SegmentBuilder, Sum};
use weir_core::wire::Flags;

const STRANGE: &str = "what is not understood passes at once as it came";
const SAME: &str = "ACKs that are made are packets like the receiver's";

pub(super) const CASES: &[Case] = &[
    Case::new("ipv6", SAME, "RFC 8200 §3", |s| v6(s, 0)),
    Case::new("vlan", SAME, "IEEE 802.1Q", |s| tagged(s, 1)),
    Case::new("vlan-in-vlan", SAME, "IEEE 802.1ad", |s| tagged(s, 2)),
    Case::new("ipv6-in-vlan", SAME, "RFC 8200 §3", |s| v6(s, 1)),
    Case::new("pppoe", SAME, "RFC 2516 §4", |s| session(s, false, 0)),
    Case::new("ipv6-in-pppoe", SAME, "RFC 2516 §4, RFC 5072", |s| session(s, true, 0)),
    Case::new("pppoe-in-vlan", SAME, "RFC 2516 §4, IEEE 802.1Q", |s| session(s, false, 1)),
    Case::new("ipv6-in-pppoe-in-vlan-in-vlan", SAME, "RFC 2516 §4, IEEE 802.1ad", |s| session(s, true, 2)),
    Case::new("ethernet-padding", "padding is no payload", "RFC 894", padded),
    Case::new("fragments", STRANGE, "RFC 791 §3.2", |s| fragments(s, false))
        .check(|t| t.untouched("strange")),
    Case::new("ipv6-fragments", STRANGE, "RFC 8200 §4.5", |s| fragments(s, true))
        .check(|t| t.untouched("strange")),
    Case::new("ipv4-options", STRANGE, "RFC 791 §3.1", ip_options).check(|t| t.untouched("strange")),
    Case::new(
        "ipv6-extension-headers",
        "headers between IPv6 and TCP change nothing",
        "RFC 8200 §4",
        extensions,
    ),
    Case::new("not-tcp", STRANGE, "RFC 768, RFC 792, RFC 826", not_tcp).check(|t| t.untouched("strange")),
    Case::new("truncated", STRANGE, "RFC 791 §3.1", truncated)
        .check(|t| t.untouched("strange"))
        .virtual_only(),
    Case::new(
        "wrong-checksum",
        "a wrong checksum stays wrong, and what is under it is not believed",
        "RFC 9293 §3.1",
        wrong_sum,
    )
    .check(|t| t.untouched("strange")),
    Case::new(
        "wrong-checksum-of-data",
        "data with a wrong checksum passes, and changes nothing",
        "RFC 9293 §3.1",
        wrong_data,
    )
    .check(|t| t.untouched("strange"))
    .whole_only(),
    Case::new(
        "partial-checksum",
        "a checksum that a device completes is completed or left to it",
        "RFC 9293 §3.1",
        partial_sum,
    )
    .virtual_only(),
];

fn v6(s: &mut Script, tags: usize) {
    (s.ends.v6, s.ends.tags) = (true, tags);
    open(s);
    s.backlog();
}

fn tagged(s: &mut Script, tags: usize) {
    s.ends.tags = tags;
    open(s);
    s.backlog();
}

/// A session of PPPoE behind tags. Each of the four bits that headers of ACKs have room for is set once.
fn session(s: &mut Script, v6: bool, tags: usize) {
    (s.ends.v6, s.ends.tags, s.ends.session) = (v6, tags, if v6 { 0xa00a } else { 0x5aa5 });
    open(s);
    s.backlog();
}

/// Frames padded with zeros to 60 bytes.
fn padded(s: &mut Script) {
    open(s);
    s.backlog().send(2 * BACKLOG);
    for n in 1..=50 {
        let segment = s.ack_for(BACKLOG + n * 2 * MSS).pad_to(60);
        s.wait_us(20).put(Side::Receiver, segment);
    }
}

/// Strange packets among held ACKs.
fn strangers(s: &mut Script, of: impl Fn(&Script) -> Vec<SegmentBuilder>) {
    open(s);
    s.backlog();
    for segment in of(s) {
        s.wait_us(500).forged().label("strange").put(Side::Receiver, segment);
    }
    s.wait_ms(5).ack(BACKLOG);
}

fn fragments(s: &mut Script, v6: bool) {
    s.ends.v6 = v6;
    strangers(s, |s| {
        let data = s.ack_for(BACKLOG).payload(800);
        vec![
            data.clone().fragment(0, true),
            data.clone().fragment(103, false),
            s.ack_for(BACKLOG).fragment(0, true),
        ]
    });
}

fn ip_options(s: &mut Script) {
    strangers(s, |s| {
        vec![s.ack_for(BACKLOG).ip_options(&[0x94, 4, 0, 0]), s.ack_for(BACKLOG).ip_options(&[1; 8])]
    });
}

/// Hop-by-hop and destination options on data and on ACKs.
fn extensions(s: &mut Script) {
    s.ends.v6 = true;
    open(s);
    s.send(2 * MSS).wait_ms(20).ack(2 * MSS).send(BACKLOG).wait_ms(20);
    for n in 2..=50 {
        let segment =
            s.ack_for(n * 2 * MSS).extension(0, &[1, 4, 0, 0, 0, 0]).extension(60, &[1, 4, 0, 0, 0, 0]);
        s.wait_us(20).put(Side::Receiver, segment);
    }
}

fn not_tcp(s: &mut Script) {
    open(s);
    s.backlog();
    let (from, to) = s.ends.v4();
    let udp = s.ends.receiver().udp().payload(100);
    let icmp = s.ends.receiver().protocol(1).payload(8);
    let tunnel = s.ends.receiver().protocol(50).payload(60);
    for segment in [udp, icmp, tunnel] {
        s.wait_us(500).label("strange").put(Side::Receiver, segment);
    }
    let mut request = arp(from, to);
    request[6..12].copy_from_slice(&s.ends.macs().0);
    s.wait_us(500).label("strange").frame(Side::Sender, request);
}

fn truncated(s: &mut Script) {
    open(s);
    s.backlog();
    let whole = s.ack_for(BACKLOG).payload(40).build();
    for len in [14, 20, 33, 40, 53, 60] {
        s.wait_us(500).forged().label("strange").frame(Side::Receiver, TestFrame::bytes(&whole[..len]));
    }
    // A data offset shorter than a header, and one longer than the segment.
    for offset in [0x10, 0xf0] {
        let mut bytes = s.ack_for(BACKLOG).build();
        bytes[14 + 20 + 12] = offset;
        s.wait_us(500).forged().label("strange").frame(Side::Receiver, bytes);
    }
    s.wait_ms(5).ack(BACKLOG);
}

/// Segments with a wrong checksum: an acknowledgement of more than was received, and a RST.
fn wrong_sum(s: &mut Script) {
    strangers(s, |s| {
        let ahead = s.ack_for(BACKLOG + 20 * MSS).checksum(Sum::Wrong);
        let reset = s.ack_for(BACKLOG).flags(Flags::RST).checksum(Sum::Wrong);
        vec![ahead, reset]
    });
}

fn wrong_data(s: &mut Script) {
    strangers(s, |s| vec![s.ack_for(BACKLOG + 20 * MSS).payload(100).checksum(Sum::Wrong)]);
}

fn partial_sum(s: &mut Script) {
    open(s);
    s.send(BACKLOG).wait_ms(20);
    for n in 1..=50 {
        let segment = s.ack_for(n * 2 * MSS).checksum(Sum::Partial);
        s.wait_us(20).put_partial(Side::Receiver, segment);
    }
    let data = s.ack_for(BACKLOG).payload(500).checksum(Sum::Partial);
    s.wait_ms(2).put_partial(Side::Receiver, data);
}
