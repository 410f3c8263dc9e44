//! Accurate ECN (RFC 9768): marks that a sender counts from the ACKs that the filter leaves.

use super::*;
use crate::rng::Rng;

/// Payload of a packet.
const MSS: u32 = 1000;
/// Range of an option's counters.
const RANGE: u32 = 1 << 24;

/// A receiver that acknowledges every second packet.
#[derive(Default)]
struct Receiver {
    packets: u32,
    marks: u32,
    /// Marks up to each packet.
    at: Vec<u32>,
}

impl Receiver {
    fn packet(&mut self, marked: bool) {
        self.packets += 1;
        self.marks += u32::from(marked);
        self.at.push(self.marks);
    }

    /// Initial values: section 3.2.1. `short` leaves the last field out; `backwards` is the other order.
    fn ack(&self, short: bool, backwards: bool) -> SegmentBuilder {
        let bytes = |n: u32| (n % RANGE).to_be_bytes()[1..].to_vec();
        let (marked, other) = (self.marks.wrapping_mul(MSS), (self.packets - self.marks).wrapping_mul(MSS));
        let mut fields = [bytes(other.wrapping_add(1)), bytes(marked), bytes(1)];
        if backwards {
            fields.reverse();
        }
        let data = fields[..if short { 2 } else { 3 }].concat();
        let kind = if backwards { 174 } else { 172 };
        let flags = Flags::ACK | Flags::of_ace((5 + self.marks) as u8);
        ack(1, self.packets).flags(flags).option(kind, &data)
    }
}

/// Counts of a sender, by the arithmetic of appendix A.2.2 and by that of Linux (`__tcp_accecn_process`).
struct Counts {
    packets: u32,
    bytes: u32,
    marks: [u32; 2],
}

impl Counts {
    fn hear(&mut self, packets: u32, ace: u8, bytes: u32) {
        let newly = packets - self.packets;
        let marked = (bytes + RANGE - self.bytes) % RANGE;
        let delta = (u32::from(ace) + 8 - (5 + self.marks[0]) % 8) % 8;
        let found = [appendix, linux].map(|count| count(newly, delta, marked));
        self.marks.iter_mut().zip(found).for_each(|(all, more)| *all += more);
        (self.packets, self.bytes) = (packets, bytes);
    }
}

/// Most marks among these packets that move a counter of three bits by `delta`.
fn safe(newly: u32, delta: u32) -> u32 {
    if newly < 8 {
        delta
    } else {
        newly - (newly + 8 - delta) % 8
    }
}

fn appendix(newly: u32, delta: u32, marked: u32) -> u32 {
    let safer = safe(newly, delta);
    if safer > delta && marked / safer < MSS / 2 {
        delta
    } else {
        safer
    }
}

fn linux(newly: u32, delta: u32, marked: u32) -> u32 {
    let safer = safe(newly, delta);
    if newly < 8 || marked == 0 {
        return delta;
    }
    if newly >= 16 {
        let estimate = (marked * newly).div_ceil(newly * MSS);
        return if newly * MSS <= marked { safer } else { safer.min(delta + (estimate & !7)) };
    }
    if marked <= delta * MSS && marked < safer * MSS / 2 {
        delta
    } else {
        safer
    }
}

/// The next ACK that leaves: packets acknowledged, counter of packets, and of marked bytes.
fn leaves(b: &mut Bench) -> Option<(u32, u8, u32)> {
    let mut cx = Cx { now: b.now, frames: &mut b.frames };
    let Waiting { frame, .. } = b.filter.pop(&mut cx)?;
    let frame = b.frames.unpark(frame);
    let bytes = b.frames.bytes(&frame);
    let p = wire::packet(bytes, bytes.len()).unwrap();
    let tcp = wire::tcp(bytes, &p).unwrap();
    let option = &bytes[54..];
    // In either order it is the second field.
    let marked = u32::from_be_bytes([0, option[5], option[6], option[7]]);
    let heard = (tcp.ack.0 / MSS, tcp.flags.ace(), marked);
    b.frames.transmitted(frame);
    Some(heard)
}

/// Passes `packets` packets of which `permille` are marked, with one ACK leaving for each `thin` that come.
/// Every ACK tells its sender of all marks. Returns the number of ACKs that left.
fn passes(packets: u32, permille: u64, thin: u64, plain: bool) -> usize {
    let mut rng = Rng::new(permille + thin);
    let mut b = Bench::fifo(Policy::Classical);
    let (mut receiver, mut left) = (Receiver::default(), 0);
    let mut sender = Counts { packets: 0, bytes: 0, marks: [0; 2] };
    let mut hear = |receiver: &Receiver, (packets, ace, bytes)| {
        sender.hear(packets, ace, bytes);
        assert_eq!(sender.marks, [receiver.at[packets as usize - 1]; 2], "{permille}: at packet {packets}");
        left += 1;
    };
    for _ in 0..packets / 2 {
        (0..2).for_each(|_| receiver.packet(rng.below(1000) < permille));
        let (short, backwards) = (!plain && rng.below(2) == 0, !plain && rng.below(2) == 0);
        b.push(&receiver.ack(short, backwards), ACK);
        if rng.below(thin) == 0 {
            leaves(&mut b).into_iter().for_each(|heard| hear(&receiver, heard));
        }
    }
    while let Some(heard) = leaves(&mut b) {
        hear(&receiver, heard);
    }
    b.check();
    left
}

/// Without marks one ACK in twenty is left, with 1 % of marks as many; with 10 % an ACK tells of six at most.
/// `ACCECN_PACKETS=1000000` passes as many packets at each share of marks.
#[test]
#[allow(clippy::disallowed_methods)] // how long a test runs is nothing of the core's
fn a_sender_counts_the_marks_that_its_receiver_got() {
    let packets = std::env::var("ACCECN_PACKETS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let acks = packets as usize / 2;
    for (permille, most) in [(0, acks / 15), (10, acks / 15), (100, acks / 8), (1_000, acks)] {
        let left = passes(packets, permille, 20, true);
        assert!(left <= most, "{permille}: {left} of {acks}");
        passes(packets, permille, 20, false);
    }
}
