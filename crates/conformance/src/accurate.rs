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

/// ECN field of a packet (RFC 3168 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codepoint {
    /// ECT(0).
    Ect0,
    /// CE: the packet is marked.
    Ce,
    /// ECT(1).
    Ect1,
}

/// Receiver of full segments.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Packets of each codepoint, up to and with each one that came.
    counted: Vec<[u32; 3]>,
    /// Bytes of each codepoint that had come before the first packet.
    before: [u32; 3],
}

impl Receiver {
    /// Receiver that has counted so many bytes with ECT(0), CE and ECT(1) before.
    pub fn after(before: [u32; 3]) -> Receiver {
        Receiver { counted: Vec::new(), before }
    }

    /// A packet comes.
    pub fn packet(&mut self, codepoint: Codepoint) {
        let mut counted = self.counted.last().copied().unwrap_or_default();
        counted[codepoint as usize] += 1;
        self.counted.push(counted);
    }

    /// Bytes that have come.
    pub fn bytes(&self) -> u32 {
        self.counted.len() as u32 * MSS
    }

    /// Marked packets that have come.
    pub fn marks(&self) -> u32 {
        self.counted.last().map_or(0, |counted| counted[1])
    }

    /// Bytes with ECT(0), CE and ECT(1) among the first so many bytes.
    fn counted_in(&self, bytes: u32) -> [u32; 3] {
        let last = (bytes / MSS).checked_sub(1).map(|last| self.counted[last as usize]);
        last.unwrap_or_default().map(|packets| packets * MSS)
    }

    /// Counters of the option after so many bytes.
    fn counters(&self, bytes: u32) -> [u32; 3] {
        let counted = self.counted_in(bytes);
        let field = |n: usize| FIRST.1[n].wrapping_add(self.before[n]).wrapping_add(counted[n]);
        core::array::from_fn(|n| field(n) % RANGE)
    }

    /// ACK of all that has come.
    pub fn bare_ack(&self, script: &Script) -> SegmentBuilder {
        let ace = Flags::of_ace((FIRST.0 + self.marks()) as u8);
        script.ack_for(self.bytes()).flags(Flags::ACK | ace)
    }

    /// ACK of all that has come, with the option in one order or the other.
    pub fn ack(&self, script: &Script, backwards: bool) -> SegmentBuilder {
        let mut counters = self.counters(self.bytes());
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

/// Counts of a sender by the arithmetic of RFC 9768 appendix A and by that of Linux 7
/// (`__tcp_accecn_process`, `tcp_accecn_process_option`).
#[derive(Clone, Debug, Default)]
pub struct Counts {
    bytes: u32,
    /// Marked packets, by appendix A.2 and by Linux.
    marks: [u32; 2],
    /// Bytes with ECT(0), CE and ECT(1), by appendix A.1.
    counted: [u32; 3],
    /// Fields of the last option that the appendix has read.
    last: [u32; 3],
    /// Bytes that the last segment with payload has told of.
    ahead: [u32; 3],
    /// Bytes with ECT(0), CE and ECT(1), as Linux has them.
    delivered: [u32; 3],
    /// Field to which Linux adds bytes of ACKs without an option.
    estimate: Option<usize>,
    /// Packets that an ACK acknowledges, averaged, in 64ths.
    average: u32,
}

impl Counts {
    /// Counts of the sender whose receiver has counted so many bytes with ECT(0), CE and ECT(1) before.
    pub fn after(before: [u32; 3]) -> Counts {
        let last = core::array::from_fn(|n| FIRST.1[n].wrapping_add(before[n]) % RANGE);
        Counts { last, delivered: before, ..Counts::default() }
    }

    /// A segment of the receiver comes, or is lost behind the middlebox. Returns an error if it tells of more
    /// bytes than the receiver had counted up to its acknowledgement, or than a segment with payload has told
    /// of: that keeps its counters where its acknowledgement is set back.
    pub fn take(&mut self, script: &Script, frame: &[u8], receiver: &Receiver, lost: bool) -> Verdict {
        let Some(seg) = Seg::of(frame) else { return Ok(()) };
        let bytes = seg.tcp.ack.0.wrapping_sub(script.ends.seq(0));
        if seg.has(Flags::SYN) || !seg.has(Flags::ACK) || bytes == 0 {
            return Ok(());
        }
        let option = counters(frame, &seg);
        if seg.tcp.payload_len > 0 {
            self.ahead = self.counts_with(option);
        }
        if lost {
            return Ok(());
        }
        self.hear(bytes, seg.tcp.flags.ace().into(), option);
        let most = receiver.counted_in(bytes);
        let most: [u32; 3] = core::array::from_fn(|field| most[field].max(self.ahead[field]));
        if (0..3).any(|field| self.counted[field] > most[field]) {
            return Err(format!("an ACK of {bytes} bytes tells of {:?} bytes, of {most:?}", self.counted));
        }
        Ok(())
    }

    /// Returns an error if the sender counts more marked packets than the receiver.
    pub fn have_no_more_marks(&self, receiver: &Receiver) -> Verdict {
        let said = receiver.marks();
        if self.marks.iter().any(|&marks| marks > said) {
            return Err(format!("a sender counts {:?} marked packets of {said}", self.marks));
        }
        Ok(())
    }

    /// Returns an error if the sender's count of marked packets is not the receiver's.
    pub fn have_all_marks(&self, receiver: &Receiver) -> Verdict {
        let said = receiver.marks();
        if self.marks != [said; 2] {
            return Err(format!("a sender counts {:?} marked packets of {said}", self.marks));
        }
        Ok(())
    }

    /// Returns an error if the sender's counts of bytes are not the receiver's.
    pub fn have_all_bytes(&self, receiver: &Receiver) -> Verdict {
        let said = receiver.counted_in(receiver.bytes());
        let linux: [u32; 3] =
            core::array::from_fn(|n| self.delivered[n].wrapping_sub(receiver.before[n]) % RANGE);
        if self.counted != said || linux != said.map(|bytes| bytes % RANGE) {
            return Err(format!("a sender counts {:?} and {linux:?} bytes of {said:?}", self.counted));
        }
        Ok(())
    }

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

    /// Returns the counts of bytes with this option (appendix A.1).
    fn counts_with(&self, option: Option<[Option<u32>; 3]>) -> [u32; 3] {
        let more = |field: usize, new: u32| new.wrapping_sub(self.last[field]) % RANGE;
        let option = option.unwrap_or_default();
        core::array::from_fn(|n| self.counted[n] + option[n].map_or(0, |new| more(n, new)))
    }

    fn appendix(&mut self, packets: u32, delta: u32, option: Option<[Option<u32>; 3]>) -> u32 {
        let before = self.counted[1];
        self.counted = self.counts_with(option);
        for (last, new) in self.last.iter_mut().zip(option.unwrap_or_default()) {
            *last = new.unwrap_or(*last);
        }
        let marked = option.and_then(|o| o[1]).map(|_| self.counted[1] - before);
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

/// Checks that the sender counts all marks and bytes of the receiver, and at no segment more than the
/// receiver had counted.
pub fn check<'a>(
    script: &Script,
    crossed: impl Iterator<Item = &'a Crossed>,
    receiver: &Receiver,
) -> Verdict {
    let mut counts = Counts::after(receiver.before);
    for crossed in crossed.filter(|crossed| crossed.to == Side::Sender) {
        counts.take(script, &crossed.bytes, receiver, false)?;
        counts.have_no_more_marks(receiver)?;
    }
    counts.have_all_marks(receiver)?;
    counts.have_all_bytes(receiver)
}
