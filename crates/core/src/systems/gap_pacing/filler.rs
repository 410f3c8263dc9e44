//! Frames that fill gaps. No host takes them for traffic, and no bridge forwards them.

use super::size::{AROUND_FRAME, LEAST_ON_WIRE};
use crate::frame::{Frame, Frames};
use crate::time::Time;
use core::ops::RangeInclusive;

/// Last bytes of the reserved addresses 01-80-C2-00-00-0x (IEEE 802.1Q-2022 Table 8-1) that no protocol uses.
/// Bridges do not forward frames to any of the sixteen, and no host listens to these.
pub const RESERVED: [u8; 6] = [0x05, 0x06, 0x09, 0x0a, 0x0c, 0x0f];
/// The first five bytes of those addresses.
const LINK_LOCAL: [u8; 5] = [0x01, 0x80, 0xc2, 0x00, 0x00];
/// MAC control (IEEE 802.3 Annex 31A), with the address, the opcode and the time of a PAUSE that stops no
/// sender (Annex 31B).
const MAC_CONTROL: [u8; 2] = [0x88, 0x08];
const PAUSE_ADDRESS: u8 = 0x01;
const PAUSE_FOR_NOTHING: [u8; 4] = [0, 1, 0, 0];
/// IEEE Std 802 local experimental ether type 1.
const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];
/// Length of addresses, ether type, and the fields of a PAUSE behind them.
const HEAD: usize = 18;
/// Shortest frame without FCS.
const LEAST_FRAME: usize = 60;

/// Kind of frame that fills gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Filler {
    /// IEEE 802.3x PAUSE frames with a time of 0. Some NICs drop those that the host sends.
    #[default]
    Pause,
    /// Frames of the local experimental ether type to 01-80-C2-00-00-0x. This is the last byte, one of
    /// [`RESERVED`].
    Reserved(u8),
}

impl Filler {
    /// Returns a new frame that takes `wire` bytes on the wire, at least 84. Its payload after the first
    /// bytes is zeros if `whole`, and absent otherwise. It is absent in virtual time, where one frame may
    /// also stand for a run of fillers and be longer than any. `None` when the pool has no chunk.
    pub fn make(
        self,
        frames: &mut Frames,
        source: [u8; 6],
        wire: u64,
        whole: bool,
        at: Time,
    ) -> Option<Frame> {
        let len = (wire.saturating_sub(AROUND_FRAME) as usize).max(LEAST_FRAME);
        let head = self.head(source);
        if !whole {
            return frames.make_head(&head, len, at);
        }
        let frame = frames.make(len, at)?;
        let bytes = frames.bytes_mut(&frame);
        bytes.fill(0);
        bytes[..HEAD].copy_from_slice(&head);
        Some(frame)
    }

    fn head(self, source: [u8; 6]) -> [u8; HEAD] {
        let (last, ether_type, behind) = match self {
            Filler::Pause => (PAUSE_ADDRESS, MAC_CONTROL, PAUSE_FOR_NOTHING),
            Filler::Reserved(last) => (last, EXPERIMENTAL, [0; 4]),
        };
        let mut head = [0; HEAD];
        head[..5].copy_from_slice(&LINK_LOCAL);
        head[5] = last;
        head[6..12].copy_from_slice(&source);
        head[12..14].copy_from_slice(&ether_type);
        head[14..].copy_from_slice(&behind);
        head
    }

    /// Returns whether bridges discard the frame with these first bytes, since it goes to a reserved address.
    pub fn is_discarded(head: &[u8]) -> bool {
        head.starts_with(&LINK_LOCAL) && head.get(5).is_some_and(|last| *last < 0x10)
    }

    /// Returns the bytes that a frame of this length takes on the wire.
    pub fn on_wire(len: usize) -> u64 {
        (len as u64 + AROUND_FRAME).max(LEAST_ON_WIRE)
    }
}

/// Returns the number of fillers for a hole of `hole` bytes if none is longer than `longest`.
pub(super) fn count(hole: u64, longest: u64) -> u64 {
    hole.div_ceil(longest)
}

/// Returns the end of filler `i` of `n` in a hole. Their lengths differ by at most one byte.
pub(super) fn end(hole: u64, n: u64, i: u64) -> u64 {
    (u128::from(hole) * u128::from(i) / u128::from(n)) as u64
}

/// Returns the number of fillers committed when `passed` bytes of a hole have passed, and the end of the
/// last. Later fillers can still be left out.
pub(super) fn committed(hole: u64, passed: u64, longest: u64) -> (u64, u64) {
    let n = count(hole, longest);
    let i = (u128::from(passed) * u128::from(n)).div_ceil(u128::from(hole)) as u64;
    // The quotient may be off by one, since ends are rounded down.
    let near: RangeInclusive<u64> = i.saturating_sub(1)..=n.min(i + 1);
    let i = near.into_iter().find(|&i| end(hole, n, i) >= passed).unwrap_or(n);
    (i, end(hole, n, i))
}

#[cfg(test)]
mod tests {
    use super::super::size::FULL_ON_WIRE;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_pause_is_as_the_standard_has_it() {
        let mut frames = Frames::new(2, 2048, 0);
        let frame = Filler::Pause.make(&mut frames, [2, 0, 0, 0, 0, 9], 84, true, Time::ZERO).unwrap();
        // Annex 31B: destination, source, type 88-08, opcode 00-01, pause_time 0, padded to 60 bytes.
        let mut expected = vec![1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 8, 0, 1, 0, 0];
        expected.resize(60, 0);
        assert_eq!(frames.bytes(&frame), expected);
        assert!(Filler::is_discarded(frames.bytes(&frame)) && Filler::on_wire(frame.len()) == 84);
        frames.absorb(frame);
        let frame = Filler::Reserved(0xf).make(&mut frames, [0; 6], 1538, true, Time::ZERO).unwrap();
        assert_eq!(
            (frame.len(), &frames.bytes(&frame)[5..14]),
            (1514, &[0xf, 0, 0, 0, 0, 0, 0, 0x88, 0xb5][..])
        );
        frames.absorb(frame);
    }

    #[test]
    fn bridges_discard_the_sixteen_reserved_addresses_and_no_other() {
        let to = |last| [1, 0x80, 0xc2, 0, 0, last, 0, 0];
        assert!((0..16).all(|last| Filler::is_discarded(&to(last))));
        assert!(!Filler::is_discarded(&to(16)) && !Filler::is_discarded(&to(0x21)));
        assert!(!Filler::is_discarded(&[0xff; 14]) && !Filler::is_discarded(&[1, 0x80]));
    }

    proptest! {
        /// Fillers fill a hole to the byte, and each is 84 to `longest` bytes long.
        #[test]
        fn a_hole_is_filled_to_the_byte(hole in 84u64..10_000_000, longest in 168u64..=FULL_ON_WIRE) {
            let n = count(hole, longest);
            let ends: Vec<u64> = (0..=n.min(2000)).map(|i| end(hole, n, i)).collect();
            prop_assert_eq!((ends[0], end(hole, n, n)), (0, hole));
            for pair in ends.windows(2) {
                prop_assert!((LEAST_ON_WIRE..=longest).contains(&(pair[1] - pair[0])), "{:?}", pair);
            }
        }

        #[test]
        fn a_filler_that_has_begun_is_sent(hole in 84u64..1_000_000, part in 0u64..=1_000_000, longest in 168u64..=FULL_ON_WIRE) {
            let passed = hole * part / 1_000_000;
            let (i, at) = committed(hole, passed, longest);
            let n = count(hole, longest);
            prop_assert!(at >= passed && at == end(hole, n, i));
            prop_assert!(i == 0 || end(hole, n, i - 1) < passed);
        }
    }
}
