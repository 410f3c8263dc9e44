//! Counters of Accurate ECN (RFC 9768) for generated ACKs: those that came with held acknowledgement numbers.
//!
//! A generated ACK for `n` carries the counters of the newest received ACK at or below `n`. They are ones
//! that the receiver sent, are never ahead of the number, and never go back. The ring is small. When it is
//! full, two neighbours are merged and keep the newer counters, those that move the counter of packets least
//! first.

use super::ACE_MOST;
use crate::packet::wire::{EcnBytes, Seq};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Entries kept per flow.
const ENTRIES: usize = 6;

/// Counters of an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub struct Counters {
    /// Acknowledgement number.
    pub ack: Seq,
    /// Counter of packets, 0 to 7.
    pub ace: u32,
    /// Counters of bytes.
    pub bytes: EcnBytes,
}

/// A ring of held acknowledgement numbers with their counters, in ascending order, and the counters that the
/// sender knows. All zeros at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub struct Marks {
    held: [Counters; ENTRIES],
    told: Counters,
    len: u32,
    /// 1 once `told` is known.
    known: u32,
}

/// Flows whose marks come into memory together.
const TOGETHER: usize = 64;

/// Marks of flows by their numbers. Only those of AccECN flows, and of their neighbours, take memory: an
/// engine locks all that it has.
#[derive(Debug)]
pub struct MarksOfFlows {
    parts: Vec<Option<Box<[Marks]>>>,
}

impl MarksOfFlows {
    /// Marks of so many flows, of which none takes memory yet.
    pub fn new(flows: usize) -> MarksOfFlows {
        MarksOfFlows { parts: vec![None; flows.div_ceil(TOGETHER)] }
    }

    /// Returns the marks of a flow, which take memory from here on.
    pub fn of(&mut self, flow: usize) -> &mut Marks {
        let part = self.parts[flow / TOGETHER].get_or_insert_with(|| vec![Marks::NONE; TOGETHER].into());
        &mut part[flow % TOGETHER]
    }

    /// Returns the marks that are known of a flow.
    pub fn known(&self, flow: usize) -> &Marks {
        self.parts[flow / TOGETHER].as_ref().map_or(&Marks::NONE, |part| &part[flow % TOGETHER])
    }

    /// Forgets the marks of a flow.
    pub fn forget(&mut self, flow: usize) {
        if let Some(part) = &mut self.parts[flow / TOGETHER] {
            part[flow % TOGETHER] = Marks::NONE;
        }
    }
}

impl Marks {
    /// Nothing is known yet.
    pub const NONE: Marks = {
        let none = Counters { ack: Seq(0), ace: 0, bytes: EcnBytes::NONE };
        Marks { held: [none; ENTRIES], told: none, len: 0, known: 0 }
    };

    /// Notes the counters of an ACK that is held. Returns the counter of packets that the sender knows: this
    /// one, where none was known.
    pub fn came(&mut self, new: Counters) -> u8 {
        let n = self.len as usize;
        if self.known == 0 {
            self.left(new);
        } else if n > 0 && self.held[n - 1].ack == new.ack {
            self.held[n - 1] = new.over(&self.held[n - 1]);
        } else {
            if n == ENTRIES {
                self.thin(&new);
            }
            self.held[self.len as usize] = new;
            self.len += 1;
        }
        self.told.ace as u8
    }

    /// Notes that a segment has left with its own counters: those of earlier ones are history.
    pub fn left(&mut self, own: Counters) {
        self.release(own.ack);
        (self.told, self.known) = (own, 1);
    }

    /// Notes that the last ACK that came has left.
    pub fn all_left(&mut self) {
        if let Some(&last) = self.held[..self.len as usize].last() {
            self.left(last);
        }
    }

    /// Returns the counters that an ACK for `n` tells. `None` if nothing is known yet.
    pub fn up_to(&self, n: Seq) -> Option<Counters> {
        let below = self.held[..self.len as usize].iter().take_while(|c| !c.ack.is_after(n)).last();
        (self.known != 0).then(|| *below.unwrap_or(&self.told))
    }

    /// Notes that an ACK for `n` has told `these`.
    pub fn told(&mut self, n: Seq, these: Counters) {
        self.release(n);
        self.told = these;
    }

    /// Shows the counter of packets with the next ACK, whatever that acknowledges: it would go around
    /// otherwise.
    pub fn show(&mut self, ace: u8) {
        self.told.ace = ace.into();
        self.held.iter_mut().for_each(|c| c.ace = ace.into());
    }

    /// Returns whether the counter of packets of an ACK with these `bytes` has gone around since the last
    /// one, of which it says no more than that it moved by `ace`. More bytes were marked then than as many
    /// segments of `mss` bytes have (as Linux has it in `__tcp_accecn_process`).
    pub fn goes_around(&self, bytes: &EcnBytes, ace: u8, mss: u16) -> bool {
        let last = self.held[..self.len as usize].last().unwrap_or(&self.told);
        let marked = bytes.marked_since(&last.bytes).filter(|_| self.known != 0);
        marked.is_some_and(|marked| marked > u32::from(ace) * u32::from(mss))
    }

    /// Drops the entries up to `n`.
    fn release(&mut self, n: Seq) {
        let held = self.len as usize;
        let gone = self.held[..held].iter().take_while(|c| !c.ack.is_after(n)).count();
        self.held.copy_within(gone..held, 0);
        self.len -= gone as u32;
    }

    /// Merges the two neighbours that differ least; `next` is about to follow.
    fn thin(&mut self, next: &Counters) {
        let begin = |i: usize| if i > 0 { &self.held[i - 1] } else { &self.told };
        let end = |i: usize| self.held.get(i + 1).unwrap_or(next);
        let moved = |i: usize| (end(i).ace.wrapping_sub(begin(i).ace)) & u32::from(ACE_MOST);
        let span = |i: usize| end(i).ack.since(self.held[i].ack);
        let i = (0..ENTRIES - 1).min_by_key(|&i| (moved(i), span(i))).unwrap_or(0);
        self.held[i + 1] = self.held[i + 1].over(&self.held[i]);
        self.held.copy_within(i + 1.., i);
        self.len -= 1;
    }
}

impl Counters {
    /// Returns these counters, with the bytes of older ones if they have none.
    fn over(self, older: &Counters) -> Counters {
        let bytes = if self.bytes.is_empty() { older.bytes } else { self.bytes };
        Counters { bytes, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zerocopy::FromZeros;

    const NONE: EcnBytes = EcnBytes::NONE;

    fn counters(ack: u32, ace: u32) -> Counters {
        Counters { ack: Seq(ack), ace, bytes: NONE }
    }

    fn told(marks: &Marks, n: u32) -> u32 {
        marks.up_to(Seq(n)).unwrap().ace
    }

    #[test]
    fn the_newest_ack_at_or_below() {
        let mut m = Marks::new_zeroed();
        assert_eq!(m.up_to(Seq(7)), None);
        assert_eq!(m.came(counters(1_000, 5)), 5, "nothing was known");
        assert_eq!(m.came(counters(2_000, 6)), 5);
        m.came(counters(3_000, 0));
        assert_eq!(
            [999, 1_000, 1_999, 2_000, 2_999, 3_000, 9_000].map(|n| told(&m, n)),
            [5, 5, 5, 6, 6, 0, 0]
        );
        // One that leaves with its own counters, though its number was set back.
        m.left(counters(2_500, 7));
        assert_eq!([1_000, 2_999, 3_000].map(|n| told(&m, n)), [7, 7, 0]);
        m.show(3);
        assert_eq!([1_000, 3_000].map(|n| told(&m, n)), [3, 3]);
        m.all_left();
        assert_eq!(m.up_to(Seq(0)), Some(counters(3_000, 3)));
    }

    proptest! {
        /// Told counters are never ahead and never go back; at the end they are the last.
        #[test]
        fn never_ahead_of_the_number(start in any::<u32>(),
                                     pushes in prop::collection::vec((1u32..5000, 0u32..3, 0u32..6000), 1..60)) {
            let mut m = Marks::new_zeroed();
            let (mut ack, mut out, mut count, mut sum) = (start, start, 5, 5);
            let mut truth = vec![(start, count)];
            m.came(counters(start, count));
            for (bytes, marks, release) in pushes {
                (ack, count) = (ack.wrapping_add(bytes), count + marks);
                m.came(counters(ack, count % 8));
                truth.push((ack, count));
                out = out.wrapping_add(release.min(ack.wrapping_sub(out)));
                let these = m.up_to(Seq(out)).unwrap();
                m.told(Seq(out), these);
                sum += (these.ace + 8 - sum % 8) % 8;
                let most = truth.iter().rev().find(|t| out.wrapping_sub(t.0) as i32 >= 0).unwrap().1;
                if count - sum < 8 {
                    prop_assert!(sum <= most, "{} of {} at {}", sum, most, out);
                }
                if out == ack {
                    prop_assert_eq!(these.ace, count % 8);
                }
            }
        }
    }

    /// Linux: `d_ceb > delta * mss_cache` (`__tcp_accecn_process`).
    #[test]
    fn more_marked_bytes_than_the_counter_tells() {
        let mut m = Marks::new_zeroed();
        let with = |ack, marked: u32| {
            let data = [&[0, 0, 1], &marked.to_be_bytes()[1..]].concat();
            Counters { bytes: EcnBytes::of_option(172, &data), ..counters(ack, 5) }
        };
        m.came(with(0, 0xff_fff0));
        let goes = |marked, ace| m.goes_around(&with(9, marked).bytes, ace, 1_000);
        assert_eq!([(2_984, 3), (2_985, 3), (1, 0)].map(|(n, ace)| goes(n, ace)), [false, true, true]);
        assert!(!m.goes_around(&NONE, 0, 1_000));
    }
}
