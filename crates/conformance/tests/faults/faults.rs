//! Faults of a middlebox, and the case that finds each.

use crate::node::{Fault, Given, Left, Memory};
use weir_core::frame::Checksum;
use weir_core::wire::{self, checksum, Flags, Seq};

const MSS: u32 = 1_400;

pub const FAULTS: &[(&str, Fault)] = &[
    ("backlog", |m, g| if pure(&g) && m.counted() > 30 { lost() } else { pass(g) }),
    ("one-stretch-ack", |m, g| if pure(&g) && m.counted() > 1 { lost() } else { pass(g) }),
    ("trickle", |_, g| if pure(&g) { acked(g, |n| n.wrapping_add(MSS)) } else { pass(g) }),
    ("acks-overtake", narrower),
    ("old-acks", narrower),
    ("sequence-wrap", |m, g| if pure(&g) && numerically_old(m, &g) { lost() } else { pass(g) }),
    ("data-on-acks", |_, g| if g.back && payload(&g) > 0 { lost() } else { pass(g) }),
    (
        "data-retransmitted-on-acks",
        |m, g| if g.back && payload(&g) > 0 && m.seen(&g) { lost() } else { pass(g) },
    ),
    ("silence", |_, g| if pure(&g) { twice(g, 10_000) } else { pass(g) }),
    ("three-duplicates", |m, g| if pure(&g) && m.repeats(&g) { lost() } else { pass(g) }),
    ("duplicates-amid-held", |m, g| if pure(&g) && m.repeats(&g) { late(g) } else { pass(g) }),
    ("sack", |_, g| if sack(&g) { without_options(g) } else { pass(g) }),
    ("sack-amid-held", |_, g| if sack(&g) { late(g) } else { pass(g) }),
    ("sack-with-progress", |m, g| if sack(&g) && m.counted() > 3 { lost() } else { pass(g) }),
    ("recovery", |_, g| if sack(&g) { lost() } else { pass(g) }),
    ("dsack", |_, g| if sack(&g) { acked(g, |n| n.wrapping_sub(2 * MSS)) } else { pass(g) }),
    ("dsack-beside-a-hole", |m, g| if sack(&g) && m.counted() > 1 { lost() } else { pass(g) }),
    ("window-update", |m, g| if pure(&g) && m.repeats(&g) { lost() } else { pass(g) }),
    ("window-not-read", halves_the_window),
    ("zero-window", |_, g| if pure(&g) && field(&g) == 0 { late(g) } else { pass(g) }),
    ("window-opens", |m, g| if pure(&g) && field(&g) == 100 && m.counted() == 1 { lost() } else { pass(g) }),
    ("zero-window-probes", |_, g| if !g.back && payload(&g) == 1 { lost() } else { pass(g) }),
    ("keepalive-of-sender", |m, g| if !g.back && m.seen(&g) { lost() } else { pass(g) }),
    ("keepalive-of-receiver", in_sequence),
    ("no-window-scale", |_, g| if pure(&g) { windowed(g, |w| w >> 7) } else { pass(g) }),
    ("one-side-scales", |_, g| if pure(&g) { windowed(g, |w| w + 5_000) } else { pass(g) }),
    ("largest-scale", |m, g| if pure(&g) && m.counted() > 10 { windowed(g, |w| w - 2) } else { pass(g) }),
    ("largest-scale-not-read", |_, g| if pure(&g) { windowed(g, |w| w + 1) } else { pass(g) }),
    ("mid-stream", |_, g| if pure(&g) { windowed(g, |w| w - w % 300 + 7) } else { pass(g) }),
    ("mid-stream-not-read", halves_the_window),
    ("handshake", |_, g| if syn(&g) { clamped(g) } else { pass(g) }),
    ("syn-retransmitted", |m, g| if syn(&g) && m.counted() > 2 { lost() } else { pass(g) }),
    ("simultaneous-open", |m, g| if syn(&g) && m.counted() == 2 { late(g) } else { pass(g) }),
    ("refused", |_, g| if flagged(&g, Flags::RST) { lost() } else { pass(g) }),
    ("fast-open", |_, g| if syn(&g) && payload(&g) > 0 { lost() } else { pass(g) }),
    ("fast-open-data-acknowledged", |_, g| {
        if syn(&g) && g.back {
            acked(g, |n| n.wrapping_sub(500))
        } else {
            pass(g)
        }
    }),
    ("syn-on-a-live-connection", |m, g| if syn(&g) && m.counted() > 2 { lost() } else { pass(g) }),
    ("port-reused", |_, g| if pure(&g) { vec![(40, g.bytes)] } else { pass(g) }),
    ("fin-of-receiver", |_, g| {
        if flagged(&g, Flags::FIN) {
            acked(g, |n| n.wrapping_sub(90 * MSS))
        } else {
            pass(g)
        }
    }),
    ("fin-with-data", |_, g| if flagged(&g, Flags::FIN) { cleared(g, Flags::FIN) } else { pass(g) }),
    ("fin-retransmitted", |m, g| if flagged(&g, Flags::FIN) && m.counted() > 1 { lost() } else { pass(g) }),
    ("fin-of-sender", |_, g| if flagged(&g, Flags::FIN) { late(g) } else { pass(g) }),
    ("half-closed", |m, g| if m.ended(&g) && pure(&g) { lost() } else { pass(g) }),
    ("simultaneous-close", |m, g| if flagged(&g, Flags::FIN) && m.counted() > 1 { lost() } else { pass(g) }),
    ("silence-after-close", |_, g| if pure(&g) { twice(g, 10_000) } else { pass(g) }),
    ("rst-of-receiver", |_, g| if pure(&g) { vec![(40, g.bytes)] } else { pass(g) }),
    ("rst-behind-what-is-held", |_, g| if pure(&g) { vec![(40, g.bytes)] } else { pass(g) }),
    ("loss-half-closed", |m, g| if m.ended(&g) && pure(&g) && m.repeats(&g) { lost() } else { pass(g) }),
    ("fin-of-sender-retransmitted", |m, g| if pure(&g) && m.repeats(&g) { lost() } else { pass(g) }),
    ("rst-of-sender", |_, g| if pure(&g) { delayed(windowed(g, |w| w - 1), 40) } else { pass(g) }),
    ("rst-refused", |m, g| if m.ended(&g) && pure(&g) { lost() } else { pass(g) }),
    ("urgent", |_, g| if flagged(&g, Flags::URG) { cleared(g, Flags::URG) } else { pass(g) }),
    ("ecn-negotiated", |_, g| if syn(&g) { cleared(g, Flags::ECE | Flags::CWR) } else { pass(g) }),
    ("ecn-echo", |_, g| if pure(&g) { cleared(g, Flags::ECE) } else { pass(g) }),
    ("ecn-cwr", |_, g| if payload(&g) > 0 { cleared(g, Flags::CWR) } else { pass(g) }),
    ("dctcp-share", latched),
    ("accecn-negotiated", |_, g| if syn(&g) { cleared(g, Flags::AE) } else { pass(g) }),
    ("accecn-counter", |m, g| if pure(&g) && m.counted() % 4 != 2 { lost() } else { pass(g) }),
    ("accecn-held", |m, g| if pure(&g) && options(&g) && m.counted() % 8 != 0 { lost() } else { pass(g) }),
    ("accecn-option", |_, g| if pure(&g) && options(&g) { without_options(g) } else { pass(g) }),
    ("timestamps", |_, g| if pure(&g) { acked(g, |n| n.wrapping_sub(4 * MSS)) } else { pass(g) }),
    ("paws", |_, g| if pure(&g) { vec![(30, g.bytes)] } else { pass(g) }),
    ("timestamps-wrap", |m, g| if pure(&g) && numerically_early(m, &g) { lost() } else { pass(g) }),
    ("timestamps-with-loss", |_, g| if pure(&g) && !sack(&g) { without_options(g) } else { pass(g) }),
    ("mptcp", |m, g| if pure(&g) && m.counted() % 2 == 0 { lost() } else { pass(g) }),
    ("tcp-ao", narrower),
    ("tcp-md5", narrower),
    ("unknown-option", |_, g| if pure(&g) && options(&g) { without_options(g) } else { pass(g) }),
    (
        "malformed-options",
        |_, g| if g.seg.as_ref().is_some_and(|s| s.options.is_none()) { lost() } else { pass(g) },
    ),
    ("ipv6", unsummed),
    ("vlan", |_, g| if pure(&g) { untagged(g) } else { pass(g) }),
    ("vlan-in-vlan", |_, g| if pure(&g) { untagged(g) } else { pass(g) }),
    ("ipv6-in-vlan", unsummed),
    ("pppoe", in_another_session),
    ("ipv6-in-pppoe", in_another_session),
    ("pppoe-in-vlan", in_another_session),
    ("ipv6-in-pppoe-in-vlan-in-vlan", in_another_session),
    ("ethernet-padding", |_, g| if pure(&g) && g.bytes.len() > 54 { lost() } else { pass(g) }),
    ("fragments", |_, g| if g.seg.is_none() { lost() } else { pass(g) }),
    ("ipv6-fragments", |_, g| if g.seg.is_none() { late(g) } else { pass(g) }),
    ("ipv4-options", |_, g| if pure(&g) && g.bytes[14] != 0x45 { windowed(g, |w| w - 1) } else { pass(g) }),
    ("ipv6-extension-headers", |m, g| {
        if pure(&g) && g.bytes[20] != 6 && m.counted() > 9 {
            lost()
        } else {
            pass(g)
        }
    }),
    ("not-tcp", |_, g| if g.seg.is_none() { lost() } else { pass(g) }),
    ("truncated", |_, g| if g.seg.is_none() { lost() } else { pass(g) }),
    ("wrong-checksum", repaired),
    ("wrong-checksum-of-data", repaired),
    ("partial-checksum", |_, g| if pure(&g) { acked(g, |n| n.wrapping_sub(1)) } else { pass(g) }),
    ("ack-beyond-the-window", believes_all),
    ("ack-out-of-sequence", believes_all),
    ("ack-without-the-flag", believes_all),
    ("wrong-checksum-far-ahead", repaired),
    ("timestamps-that-were-not-negotiated", stamped),
];

/// Cases that are about a rate: a box without limits fails each of them.
pub const UNLIMITED: &[&str] = &[
    "behind-a-flood-of-syns",
    "one-unknown-option-mid-stream",
    "one-option-cut-short-mid-stream",
    "one-signature-mid-stream",
    "timestamps-twice-mid-stream",
    "one-ip-option-mid-stream",
    "odd-acks-ten-times-a-second",
    "odd-acks-alone",
    "more-than-the-rate",
    "ack-before-the-first",
    "false-fin",
];

fn pass(g: Given) -> Left {
    vec![(0, g.bytes)]
}
fn lost() -> Left {
    Vec::new()
}
/// 50 ms later.
fn late(g: Given) -> Left {
    vec![(50, g.bytes)]
}
fn delayed(left: Left, ms: u64) -> Left {
    left.into_iter().map(|(_, bytes)| (ms, bytes)).collect()
}
/// And once more this many milliseconds later.
fn twice(g: Given, ms: u64) -> Left {
    vec![(0, g.bytes.clone()), (ms, g.bytes)]
}

/// An acknowledgement of the receiver and nothing else.
fn pure(g: &Given) -> bool {
    g.back && g.seg.as_ref().is_some_and(|s| s.is_ack())
}
fn payload(g: &Given) -> u32 {
    g.seg.as_ref().map_or(0, |s| s.tcp.payload_len)
}
fn field(g: &Given) -> u16 {
    g.seg.as_ref().map_or(0, |s| s.tcp.window)
}
fn flagged(g: &Given, flags: Flags) -> bool {
    g.seg.as_ref().is_some_and(|s| s.has(flags))
}
fn syn(g: &Given) -> bool {
    flagged(g, Flags::SYN)
}
fn sack(g: &Given) -> bool {
    g.seg.as_ref().is_some_and(|s| !s.sack().is_empty())
}
fn options(g: &Given) -> bool {
    g.seg.as_ref().is_some_and(|s| s.tcp.header_len > 20)
}

impl Memory {
    /// Counts the questions, from 1 on.
    fn counted(&mut self) -> u32 {
        self.count += 1;
        self.count
    }
    /// Returns whether it repeats the previous acknowledgement.
    fn repeats(&mut self, g: &Given) -> bool {
        let ack = g.seg.as_ref().map(|s| s.tcp.ack.0);
        std::mem::replace(&mut self.ack, ack) == ack
    }
    /// Returns whether it begins before the end of an earlier one.
    fn seen(&mut self, g: &Given) -> bool {
        let Some(seg) = &g.seg else { return false };
        let behind = self.seq.is_some_and(|seq| (seq.wrapping_sub(seg.tcp.seq.0) as i32) > 0);
        if !behind {
            self.seq = Some(seg.end());
        }
        behind
    }
    /// Returns whether the receiver has ended.
    fn ended(&mut self, g: &Given) -> bool {
        self.flag |= g.back && flagged(g, Flags::FIN | Flags::RST);
        self.flag
    }
}

/// The number of an ACK's session of PPPoE (RFC 2516 §4), behind up to two tags, has another last bit.
fn in_another_session(_: &mut Memory, mut given: Given) -> Left {
    let session = [12, 16, 20].into_iter().find(|&at| given.bytes[at..at + 2] == [0x88, 0x64]);
    if let Some(at) = session.filter(|_| pure(&given)) {
        given.bytes[at + 5] ^= 1;
    }
    pass(given)
}

/// With another header, whose checksum is right again.
fn changed(mut g: Given, change: impl FnOnce(&mut [u8], &wire::Packet, &wire::Tcp)) -> Left {
    let seg = g.seg.as_ref().unwrap();
    change(&mut g.bytes, &seg.packet, &seg.tcp);
    vec![(0, g.bytes)]
}
fn acked(g: Given, ack: impl FnOnce(u32) -> u32) -> Left {
    changed(g, |bytes, p, t| assert!(wire::set_ack(bytes, p, Seq(ack(t.ack.0)), Checksum::Valid)))
}
fn windowed(g: Given, window: impl FnOnce(u16) -> u16) -> Left {
    changed(g, |bytes, p, t| assert!(wire::set_window(bytes, p, window(t.window), Checksum::Valid)))
}
fn cleared(g: Given, flags: Flags) -> Left {
    changed(g, |bytes, p, t| {
        let at = p.l4 as usize + 12;
        let left = u16::from(t.header_len / 4) << 12 | t.flags.without(flags).0;
        bytes[at..at + 2].copy_from_slice(&left.to_be_bytes());
        assert!(checksum::fill(bytes, p));
    })
}
/// No-operations in place of its options.
fn without_options(g: Given) -> Left {
    changed(g, |bytes, p, t| {
        let from = p.l4 as usize;
        bytes[from + 20..from + usize::from(t.header_len)].fill(1);
        assert!(checksum::fill(bytes, p));
    })
}
/// With the timestamps that an earlier one had.
fn stamped(m: &mut Memory, mut g: Given) -> Left {
    if !pure(&g) || options(&g) || !m.flag {
        m.flag |= pure(&g) && options(&g);
        return pass(g);
    }
    let (ip, tcp) = (14, 34);
    g.bytes.splice(tcp + 20..tcp + 20, [1, 1, 8, 10, 0, 0, 3, 232, 0, 0, 0, 0]);
    g.bytes[tcp + 12] = 8 << 4;
    g.bytes[ip + 3] += 12;
    g.bytes[ip + 10..ip + 12].fill(0);
    let sum = !checksum::sum(&g.bytes[ip..tcp]);
    g.bytes[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
    let packet = wire::packet(&g.bytes, g.bytes.len()).expect("a packet");
    assert!(checksum::fill(&mut g.bytes, &packet));
    pass(g)
}
/// Another maximum segment size, the first option.
fn clamped(g: Given) -> Left {
    changed(g, |bytes, p, _| {
        bytes[p.l4 as usize + 23] ^= 1;
        assert!(checksum::fill(bytes, p));
    })
}
/// Without its outer VLAN tag.
fn untagged(mut g: Given) -> Left {
    g.bytes.drain(12..16);
    pass(g)
}

/// A window of one unit less.
fn narrower(_: &mut Memory, g: Given) -> Left {
    if pure(&g) {
        windowed(g, |w| w - 1)
    } else {
        pass(g)
    }
}

fn halves_the_window(m: &mut Memory, g: Given) -> Left {
    if pure(&g) && m.counted() > 10 {
        windowed(g, |w| w / 2)
    } else {
        pass(g)
    }
}

/// Compares numbers as if they did not wrap.
fn numerically_old(m: &mut Memory, g: &Given) -> bool {
    let ack = g.seg.as_ref().unwrap().tcp.ack.0;
    let old = m.ack.is_some_and(|before| ack < before);
    m.ack = m.ack.max(Some(ack));
    old
}

fn numerically_early(m: &mut Memory, g: &Given) -> bool {
    let value = g.seg.as_ref().unwrap().stamps().map(|s| s.0);
    let early = m.stamp.is_some() && value < m.stamp;
    m.stamp = m.stamp.max(value);
    early
}

/// Takes a keepalive for an ACK and gives it the number that comes next.
fn in_sequence(m: &mut Memory, g: Given) -> Left {
    if g.back && m.seen(&g) {
        return changed(g, |bytes, p, t| assert!(wire::set_seq(bytes, p, t.seq.plus(1), Checksum::Valid)));
    }
    pass(g)
}

/// Once marked, always marked.
fn latched(m: &mut Memory, g: Given) -> Left {
    if !pure(&g) {
        return pass(g);
    }
    m.flag |= flagged(&g, Flags::ECE);
    if !m.flag {
        return pass(g);
    }
    changed(g, |bytes, p, t| {
        let at = p.l4 as usize + 12;
        let left = u16::from(t.header_len / 4) << 12 | t.flags.with(Flags::ECE).0;
        bytes[at..at + 2].copy_from_slice(&left.to_be_bytes());
        assert!(checksum::fill(bytes, p));
    })
}

/// Writes an acknowledgement and leaves the checksum.
fn unsummed(m: &mut Memory, g: Given) -> Left {
    if !pure(&g) || m.counted() < 3 {
        return pass(g);
    }
    changed(g, |bytes, p, t| {
        let at = p.l4 as usize + 8;
        bytes[at..at + 4].copy_from_slice(&t.ack.0.wrapping_sub(1).to_be_bytes());
    })
}

/// Computes every checksum again.
fn repaired(_: &mut Memory, g: Given) -> Left {
    if g.seg.is_none() {
        return pass(g);
    }
    changed(g, |bytes, p, _| assert!(checksum::fill(bytes, p)))
}

/// Takes every acknowledgement for the receiver's.
fn believes_all(m: &mut Memory, g: Given) -> Left {
    let Some(seg) = g.seg.as_ref().filter(|s| g.back && !s.has(Flags::SYN)) else { return pass(g) };
    let ahead = m.ack.is_some_and(|ack| (ack.wrapping_sub(seg.tcp.ack.0) as i32) > 0);
    if !ahead {
        m.ack = Some(seg.tcp.ack.0);
        return pass(g);
    }
    let ack = m.ack.unwrap();
    acked(g, |_| ack)
}
