//! Accurate ECN (RFC 9768): the counters that a receiver sends, and what senders make of them.

use crate::script::{Script, Side, MSS};
use crate::seg::Seg;
use crate::trace::Crossed;
use crate::Verdict;
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Flags;

/// Range of the option's counters.
const RANGE: u32 = 1 << 24;
/// First values of ACE and of the option's counters, for ECT(0), CE and ECT(1) (RFC 9768 §3.2.1).
const FIRST: (u32, [u32; 3]) = (5, [1, 0, 1]);
/// Kinds of the option: with ECT(0) first, and with ECT(1) first.
const KINDS: [u8; 2] = [172, 174];
/// Packets that fit the counter of three bits.
const MASK: u32 = 7;

/// Receiver of full segments with ECT(0), some of which are marked.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Packets up to each one that were marked.
    marked: Vec<u32>,
}

impl Receiver {
    /// A packet comes.
    pub fn packet(&mut self, marked: bool) {
        let before = self.marks();
        self.marked.push(before + u32::from(marked));
    }

    /// Bytes that have come.
    pub fn bytes(&self) -> u32 {
        self.marked.len() as u32 * MSS
    }

    /// Marked packets that have come.
    pub fn marks(&self) -> u32 {
        self.marked.last().copied().unwrap_or(0)
    }

    /// Marks among the first so many bytes.
    fn marks_in(&self, bytes: u32) -> u32 {
        (bytes / MSS).checked_sub(1).map_or(0, |last| self.marked[last as usize])
    }

    fn counters(&self, marks: u32, packets: u32) -> [u32; 3] {
        let bytes = [(packets - marks).wrapping_mul(MSS), marks.wrapping_mul(MSS), 0];
        core::array::from_fn(|n| FIRST.1[n].wrapping_add(bytes[n]) % RANGE)
    }

    /// ACK of all that has come.
    pub fn bare_ack(&self, script: &Script) -> SegmentBuilder {
        let ace = Flags::of_ace((FIRST.0 + self.marks()) as u8);
        script.ack_for(self.bytes()).flags(Flags::ACK | ace)
    }

    /// ACK of all that has come, with the option in one order or the other.
    pub fn ack(&self, script: &Script, backwards: bool) -> SegmentBuilder {
        let mut counters = self.counters(self.marks(), self.marked.len() as u32);
        if backwards {
            counters.reverse();
        }
        let data: Vec<u8> = counters.iter().flat_map(|n| n.to_be_bytes()[1..].to_vec()).collect();
        self.bare_ack(script).raw_options(&[1]).option(KINDS[usize::from(backwards)], &data)
    }
}

/// Returns the counters of the option of a segment in this frame, for ECT(0), CE and ECT(1).
pub(crate) fn counters(frame: &[u8], seg: &Seg) -> Option<[Option<u32>; 3]> {
    let header = usize::from(seg.packet.l4);
    let mut list = &frame[header + 20..header + usize::from(seg.tcp.header_len)];
    while let [kind, rest @ ..] = list {
        match kind {
            0 => return None,
            1 => list = rest,
            _ => {
                let (option, behind) = list.split_at(usize::from(*rest.first()?));
                if KINDS.contains(kind) {
                    let mut found = [None; 3];
                    for (field, b) in found.iter_mut().zip(option[2..].chunks_exact(3)) {
                        *field = Some(u32::from_be_bytes([0, b[0], b[1], b[2]]));
                    }
                    if *kind == KINDS[1] {
                        found.reverse();
                    }
                    return Some(found);
                }
                list = behind;
            }
        }
    }
    None
}

/// Counts of a sender by the arithmetic of RFC 9768 appendix A.2, and by that of Linux 7
/// (`__tcp_accecn_process`, `tcp_accecn_process_option`).
#[derive(Clone, Debug, Default)]
pub struct Counts {
    bytes: u32,
    /// Marked packets, by the appendix and by Linux.
    pub marks: [u32; 2],
    /// Bytes that came with ECT(0), CE and ECT(1), as Linux and the appendix have them.
    delivered: [u32; 3],
    marked: u32,
    /// Field to which Linux adds bytes of ACKs without an option.
    estimate: Option<usize>,
    /// Packets that an ACK acknowledges, averaged, in 64ths.
    average: u32,
}

impl Counts {
    /// An ACK of so many bytes comes.
    fn hear(&mut self, bytes: u32, ace: u32, option: Option<[Option<u32>; 3]>) {
        let packets = (bytes / MSS).saturating_sub(self.bytes / MSS);
        if packets == 0 {
            return; // Linux reads no counter of an ACK that acknowledges no packet
        }
        let newly = (bytes / MSS - self.bytes / MSS) * MSS;
        self.bytes = bytes;
        let delta = |marks: u32| (ace + 8 - (FIRST.0 + marks) % 8) % 8;
        let deltas = self.marks.map(delta);
        self.marks[0] += self.appendix(packets, deltas[0], option);
        self.marks[1] += self.linux(packets, newly, deltas[1], option);
    }

    fn appendix(&mut self, packets: u32, delta: u32, option: Option<[Option<u32>; 3]>) -> u32 {
        let marked = option.and_then(|o| o[1]).map(|new| {
            let more = new.wrapping_sub(self.marked) % RANGE;
            self.marked = new;
            more
        });
        match (safe(packets, delta), marked) {
            (safer, Some(marked)) if safer > delta && marked / safer < MSS / 2 => delta,
            (safer, _) => safer,
        }
    }

    fn linux(&mut self, packets: u32, newly: u32, delta: u32, option: Option<[Option<u32>; 3]>) -> u32 {
        let before = self.delivered[1];
        let valid = self.deltas(newly, option);
        self.average = match self.average {
            0 => packets << 6,
            average => ((average << 6) - average + (packets << 6)) >> 6,
        };
        let (safer, marked) = (safe(packets, delta), self.delivered[1].wrapping_sub(before));
        if packets <= MASK || valid && marked == 0 {
            return delta;
        }
        if !valid {
            return if self.average > 4 << 6 { delta } else { safer };
        }
        if packets >= 16 {
            let estimate = (u64::from(marked) * u64::from(packets)).div_ceil(newly.into()) as u32;
            return if newly <= marked { safer } else { safer.min(delta + (estimate & !MASK)) };
        }
        if marked <= delta * MSS && marked < safer * MSS / 2 {
            delta
        } else {
            safer
        }
    }

    /// Reads the option. Returns whether the counters of bytes count.
    fn deltas(&mut self, newly: u32, option: Option<[Option<u32>; 3]>) -> bool {
        let estimate = self.estimate;
        let Some(option) = option else {
            if let Some(field) = estimate {
                self.delivered[field] = self.delivered[field].wrapping_add(newly);
            }
            return estimate.is_some();
        };
        let (mut sound, mut changed) = (true, false);
        for field in [2, 1, 0] {
            let Some(new) = option[field] else { continue };
            let more =
                (new.wrapping_sub(FIRST.1[field]).wrapping_sub(self.delivered[field]) << 8) as i32 >> 8;
            self.delivered[field] = self.delivered[field].wrapping_add_signed(more);
            sound &= more >= 0;
            if more != 0 && Some(field) != estimate {
                sound &= !changed;
                self.estimate = if changed { self.estimate } else { Some(field) };
                changed = true;
            }
        }
        if !sound {
            self.estimate = None;
        }
        sound && estimate.is_some()
    }
}

/// Most marks among these packets that move a counter of three bits by `delta`.
fn safe(packets: u32, delta: u32) -> u32 {
    if packets <= MASK {
        delta
    } else {
        packets - (packets + 8 - delta) % 8
    }
}

/// Checks that the sender counts all marks of the receiver, at each ACK no more than were among what the
/// receiver had acknowledged by then, and that ACKs that a middlebox has made tell counters of bytes that the
/// receiver had sent with that number or a lower one.
pub fn check<'a>(
    script: &Script,
    crossed: impl Iterator<Item = &'a Crossed>,
    receiver: &Receiver,
) -> Verdict {
    let mut counts = Counts::default();
    let reach = crossed.filter(|crossed| crossed.to == Side::Sender);
    for (frame, seg) in reach.filter_map(|crossed| Some((&crossed.bytes, Seg::of(&crossed.bytes)?))) {
        let bytes = seg.tcp.ack.0.wrapping_sub(script.ends.seq(0));
        if !seg.is_ack() || bytes == 0 {
            continue;
        }
        let option = counters(frame, &seg);
        counts.hear(bytes, seg.tcp.flags.ace().into(), option);
        if let Some([Some(other), Some(marked), _]) = option {
            let (marks, packets) = (receiver.marks_in(bytes), bytes / MSS);
            let most = receiver.counters(marks, packets);
            let ahead = |new: u32, most: u32| ((new.wrapping_sub(most) << 8) as i32 >> 8) > 0;
            if ahead(other, most[0]) || ahead(marked, most[1]) {
                return Err(format!("an ACK of {bytes} bytes tells counters of later ones"));
            }
        }
    }
    let said = receiver.marks();
    if counts.marks != [said; 2] {
        return Err(format!("a sender counts {:?} marked packets of {said}", counts.marks));
    }
    Ok(())
}
