//! Records of segments, for a congestion control that asks for them.

use super::scoreboard::{Piece, Witness};
use crate::cc::Delivered;
use std::collections::VecDeque;
use weir_core::time::{Duration, Time};

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
struct Flying {
    start: u64,
    /// Time since the segment before it left, at its last transmission.
    gap: Option<Duration>,
}

/// Segment records. See the [module documentation](self).
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Segments in flight, in stream order.
    flying: VecDeque<Flying>,
    /// Segments that the present ACK delivered.
    delivered: Vec<Delivered>,
}

impl Records {
    /// Records a piece that leaves, `gap` after the one before it.
    pub(super) fn leave(&mut self, piece: Piece, again: bool, gap: Option<Duration>) {
        if again {
            let flying = self.find(piece.start).and_then(|i| self.flying.get_mut(i));
            flying.into_iter().for_each(|segment| segment.gap = gap);
        } else {
            self.flying.push_back(Flying { start: piece.start, gap });
        }
    }

    /// Returns the segments that the present ACK delivered, in stream order.
    pub(super) fn delivered(&mut self) -> &[Delivered] {
        self.delivered.sort_unstable_by_key(|segment| segment.start);
        &self.delivered
    }

    /// Forgets the delivered segments after their report. `first` is the first piece that is not
    /// acknowledged, perhaps the rest of a segment.
    pub(super) fn forget(&mut self, first: Option<Piece>) {
        self.delivered.clear();
        let gone = first.map_or(Some(self.flying.len()), |piece| self.find(piece.start));
        self.flying.drain(..gone.unwrap_or(0));
    }

    /// Returns the index of the segment with this byte.
    fn find(&self, offset: u64) -> Option<usize> {
        self.flying.partition_point(|segment| segment.start <= offset).checked_sub(1)
    }
}

impl Witness for Records {
    fn delivered(&mut self, piece: Piece, left: Time, again: bool, sacked: bool) {
        let Some(&Flying { start, gap }) = self.find(piece.start).and_then(|i| self.flying.get(i)) else {
            return;
        };
        let len = (piece.start + u64::from(piece.len) - start) as u32;
        self.delivered.push(Delivered { start, len, left, gap, again, sacked });
    }
}

#[cfg(test)]
mod tests {
    use super::super::scoreboard::{Progress, Scoreboard, Sent};
    use super::*;

    /// Returns the starts and lengths of the segments that this ACK delivers.
    fn told(
        board: &mut Scoreboard,
        records: &mut Records,
        una: u64,
        blocks: &[(u64, u64)],
    ) -> Vec<(u64, u32)> {
        board.on_ack_before(records, una, blocks, Time::from_millis(100), &mut Progress::default());
        let told = records.delivered().iter().map(|s| (s.start, s.len)).collect();
        records.forget(board.first());
        told
    }

    #[test]
    fn segments_are_told_as_they_left_however_they_are_acknowledged() {
        let (mut board, mut records) = (Scoreboard::new(), Records::default());
        for start in (0..6000).step_by(1000) {
            board.sent_new(1000, Sent::default());
            records.leave(Piece { start, len: 1000 }, false, Some(Duration::from_nanos(start)));
        }
        // Half of the second is acknowledged with the first, and blocks arrive in any order.
        assert_eq!(told(&mut board, &mut records, 1500, &[]), [(0, 1000)]);
        assert_eq!(
            told(&mut board, &mut records, 1500, &[(5000, 6000), (3000, 4000)]),
            [(3000, 1000), (5000, 1000)]
        );
        assert_eq!(told(&mut board, &mut records, 1500, &[(3000, 4000)]), []);
        assert_eq!(records.flying.len(), 5);
        assert_eq!(told(&mut board, &mut records, 4000, &[]), [(1000, 1000), (2000, 1000)]);
        assert_eq!(told(&mut board, &mut records, 6000, &[]), [(4000, 1000)]);
        assert!(records.flying.is_empty());
    }
}
