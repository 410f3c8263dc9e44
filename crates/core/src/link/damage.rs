//! Frames that come out twice, and frames that come out broken. Both happen behind the rate, as a frame
//! enters the propagation line, and use neither queue nor rate.
//!
//! A broken frame has one flipped bit, somewhere in the bytes that its transport checksum covers (the
//! checksum itself too). A frame without such a checksum has it somewhere behind the Ethernet header.
//! Verification of the checksum detects it, as on a real path: one bit always changes a ones' complement sum.
//! A checksum that is still to be completed is completed before, since a later completion would hide the
//! error. In virtual time the payload is only a length. The frame is then marked as invalid, whether the bit
//! is present or not.

use super::TRILLION;
use crate::frame::{link_header, Checksum, Frame, Frames};
use crate::node::Cx;
use crate::rng::Rng;
use crate::wire::{self, checksum};
use core::ops::Range;

/// Frames that come out twice, or broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Damage {
    /// Probability that a frame comes out twice, in units of 10^-12, for each frame independently.
    pub duplicate: u64,
    /// Probability that a frame comes out with a flipped bit, likewise. A duplicate has a draw of its own.
    pub corrupt: u64,
}

impl Damage {
    /// No damage.
    pub const NONE: Damage = Damage { duplicate: 0, corrupt: 0 };
}

/// Run-time state and counters of [`Damage`].
#[derive(Debug)]
pub(super) struct Damages {
    damage: Damage,
    twice: Rng,
    broken: Rng,
    pub(super) duplicated: u64,
    pub(super) corrupted: u64,
}

impl Damages {
    /// Returns `None` if no frame is ever damaged.
    pub(super) fn new(damage: Damage, seed: u64) -> Option<Box<Damages>> {
        (damage != Damage::NONE).then(|| Box::new(Damages::after((0, 0), damage, seed)))
    }

    /// Returns the state with these counters of frames that came out twice, and broken.
    pub(super) fn after(counted: (u64, u64), damage: Damage, seed: u64) -> Damages {
        let (duplicated, corrupted) = counted;
        let (twice, broken) = (Rng::new(seed ^ 0x6475_706c_6963), Rng::new(seed ^ 0x0063_6f72_7275_7074));
        Damages { damage, twice, broken, duplicated, corrupted }
    }

    /// Returns a copy of the frame, if it comes out twice. Without a free chunk it does not, and the pool
    /// counts that.
    pub(super) fn duplicate(&mut self, cx: &mut Cx<'_>, frame: &Frame) -> Option<Frame> {
        if self.twice.below(TRILLION) >= self.damage.duplicate {
            return None;
        }
        let copy = cx.frames.copy(frame)?;
        self.duplicated += 1;
        Some(copy)
    }

    /// Flips a bit of the frame, if it comes out broken.
    pub(super) fn corrupt(&mut self, frames: &mut Frames, frame: &mut Frame) {
        if self.broken.below(TRILLION) < self.damage.corrupt && flip(frames, frame, &mut self.broken) {
            self.corrupted += 1;
        }
    }
}

/// Flips a bit. Returns false, with nothing changed, for a frame of only a header, and for a giant whose
/// packets get their checksums only when it is split. None of these would be wrong.
fn flip(frames: &mut Frames, frame: &mut Frame, rng: &mut Rng) -> bool {
    let covered = covered(frames.bytes(frame), frame.len());
    if covered.is_empty() || (frame.checksum == Checksum::Partial && frame.gso_size != 0) {
        return false;
    }
    if frame.checksum == Checksum::Partial {
        checksum::complete_frame(frames, frame);
    }
    let at = covered.start + rng.below(covered.len() as u64) as usize;
    let bit = 1 << rng.below(8);
    if let Some(byte) = frames.byte_mut(frame, at) {
        *byte ^= bit;
    }
    frame.checksum = Checksum::Invalid;
    true
}

/// Returns the bytes that the transport checksum covers, or all bytes behind the Ethernet header. For UDP the
/// checksum field is left out, where zero would mean that there is none.
fn covered(head: &[u8], len: usize) -> Range<usize> {
    let behind_ethernet = link_header(head).1.min(len)..len;
    let Ok(packet) = wire::any_packet(head, len) else { return behind_ethernet };
    let (l4, end) = (packet.l4 as usize, packet.end as usize);
    match packet.protocol {
        wire::TCP => l4..end,
        wire::UDP if end > l4 + UDP_HEADER => l4 + UDP_HEADER..end,
        wire::UDP => l4..end.min(l4 + UDP_CHECKSUM),
        _ => behind_ethernet,
    }
}

const UDP_HEADER: usize = 8;
/// Offset of the checksum in a UDP header.
const UDP_CHECKSUM: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::time::Time;
    use crate::wire::build::{SegmentBuilder, Sum};
    use proptest::prelude::*;

    fn state(bytes: &[u8]) -> Checksum {
        let packet = wire::packet(bytes, bytes.len()).unwrap();
        checksum::verify(bytes, bytes.len(), &packet)
    }

    /// Flips a bit of a frame that lies in chunks of 2,048 bytes. Returns whether it did, the frame's bytes
    /// and its checksum state.
    fn flipped(bytes: &[u8], known: Checksum, seed: u64) -> (bool, Vec<u8>, Checksum) {
        let mut frames = Frames::new(4, 2048, 0);
        let mut frame = frames.receive_copy(bytes, bytes.len(), Time::ZERO).unwrap();
        frame.checksum = known;
        let done = flip(&mut frames, &mut frame, &mut Rng::new(seed));
        let after = (done, frames.bytes(&frame).to_vec(), frame.checksum);
        frames.transmitted(frame);
        after
    }

    proptest! {
        /// Complete or still partial: verification of the checksum detects the bit, also after completion
        /// where requested.
        #[test]
        fn one_bit_is_flipped_and_the_checksum_is_wrong(payload in 0usize..1400, partial: bool, v6: bool, udp: bool, seed: u64) {
            let segment = if v6 { SegmentBuilder::v6([0xfd; 16], [0xfe; 16]) } else { SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]) };
            let mut whole = segment.payload(payload).build();
            if udp {
                whole = datagram(&whole[..14 + if v6 { 40 } else { 20 }], v6, payload);
            }
            let mut given = whole.clone();
            if partial {
                // As on a virtual device: the pseudo-header's sum is in the field.
                let l4 = 14 + if v6 { 40 } else { 20 };
                let field = l4 + if udp { 6 } else { 16 };
                let length = (given.len() - l4) as u64;
                let addresses = if v6 { 22..54 } else { 26..34 };
                let pseudo = u64::from(checksum::sum(&given[addresses])) + length + if udp { 17 } else { 6 };
                let folded = (pseudo % 0xffff) as u16;
                given[field..field + 2].copy_from_slice(&folded.to_be_bytes());
                prop_assert_eq!(state(&given), Checksum::Partial);
            }
            let known = if partial { Checksum::Partial } else { Checksum::Unknown };
            let (done, after, checksum) = flipped(&given, known, seed);
            prop_assert!(done);
            prop_assert_eq!(checksum, Checksum::Invalid);
            prop_assert_eq!(state(&after), Checksum::Invalid);
            let bits: u32 = whole.iter().zip(&after).map(|(a, b)| (a ^ b).count_ones()).sum();
            prop_assert_eq!(bits, 1);
        }

        #[test]
        fn garbage_does_no_harm(bytes in prop::collection::vec(any::<u8>(), 1..120), partial: bool, seed: u64) {
            let known = if partial { Checksum::Partial } else { Checksum::Unknown };
            let (done, after, _) = flipped(&bytes, known, seed);
            prop_assert_eq!(after.len(), bytes.len());
            prop_assert_eq!(done, bytes.len() > 14 || done);
            prop_assert_eq!(after.get(..14.min(bytes.len())), bytes.get(..14.min(bytes.len())));
        }
    }

    /// A datagram with its checksum behind these headers of Ethernet and IP.
    fn datagram(headers: &[u8], v6: bool, payload: usize) -> Vec<u8> {
        let mut bytes = headers.to_vec();
        let length = 8 + payload as u16;
        if v6 {
            bytes[18..20].copy_from_slice(&length.to_be_bytes());
            bytes[20] = 17;
        } else {
            bytes[16..18].copy_from_slice(&(20 + length).to_be_bytes());
            bytes[23] = 17;
            bytes[24..26].fill(0);
            let sum = !checksum::sum(&bytes[14..34]);
            bytes[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        bytes.extend([0x13, 0x89, 0x13, 0x8a]);
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend((0..payload).map(|n| n as u8));
        let packet = wire::packet(&bytes, bytes.len()).unwrap();
        assert!(checksum::fill(&mut bytes, &packet));
        bytes
    }

    #[test]
    fn a_giant_that_is_still_to_be_cut_is_left_alone() {
        let giant =
            SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).payload(1900).checksum(Sum::Partial).build();
        let mut frames = Frames::new(1, 2048, 0);
        let mut frame = frames.receive_copy(&giant, giant.len(), Time::ZERO).unwrap();
        (frame.checksum, frame.gso_size) = (Checksum::Partial, 500);
        assert!(!flip(&mut frames, &mut frame, &mut Rng::new(1)));
        assert_eq!((frames.bytes(&frame), frame.checksum), (&giant[..], Checksum::Partial));
        frames.transmitted(frame);
    }

    /// In virtual time most bits are in an absent payload.
    #[test]
    fn a_frame_without_its_payload_is_marked() {
        let (head, len) = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).payload(1448).build_head();
        let mut frames = Frames::new(1, 2048, 0);
        let mut frame = frames.receive_copy(&head, len, Time::ZERO).unwrap();
        frame.checksum = Checksum::Valid;
        assert!(flip(&mut frames, &mut frame, &mut Rng::new(2)));
        assert_eq!((frames.bytes(&frame), frame.checksum), (&head[..], Checksum::Invalid));
        frames.transmitted(frame);
    }
}
