//! Processing of an ACK: cumulative acknowledgement and SACK blocks.

use super::ranges::Range;
use super::ring::{Id, InFlight, Key, LOST, NEVER, RESENT, RETRANSMITTED, SACKED};
use super::{Piece, Progress, Scoreboard};
use weir_core::time::Time;

/// Observer of the segments that an ACK delivers.
pub trait Witness {
    /// Returns whether the observer wants reports.
    fn watches(&self) -> bool {
        true
    }
    /// Reports a piece that has arrived, or its rest after a cumulative ACK within it. `left` is the time of
    /// its last transmission. `again` is true for a retransmission, and `sacked` if it was acknowledged by
    /// SACK.
    fn delivered(&mut self, piece: Piece, left: Time, again: bool, sacked: bool);
}

/// Observes nothing.
impl Witness for () {
    #[inline]
    fn watches(&self) -> bool {
        false
    }
    #[inline]
    fn delivered(&mut self, _: Piece, _: Time, _: bool, _: bool) {}
}

/// Segments that one ACK delivers, as they are found.
struct Delivery<'a, W> {
    witness: &'a mut W,
    progress: &'a mut Progress,
    /// First and last transmission of the segments never retransmitted, by cumulative ACK and by SACK.
    acked: Option<(Time, Time)>,
    sacked: Option<(Time, Time)>,
    /// Transmission key of the newest segment delivered.
    newest: Key,
}

impl<'a, W: Witness> Delivery<'a, W> {
    fn new(witness: &'a mut W, progress: &'a mut Progress) -> Delivery<'a, W> {
        Delivery { witness, progress, acked: None, sacked: None, newest: NEVER }
    }

    /// Takes a segment that was not yet known to have arrived.
    fn take(&mut self, seg: &InFlight, by_sack: bool, fack: u64) {
        let (key, again) = (seg.key(), seg.flags & RETRANSMITTED != 0);
        self.progress.sacked |= by_sack;
        self.witness.delivered(seg.piece(), seg.sent.at, again, by_sack);
        if self.newest < key {
            self.newest = key;
            self.progress.newest = Some((seg.sent, again));
        }
        let candidate = match (again, by_sack) {
            (false, _) => &mut self.progress.offer.fresh,
            (true, false) => &mut self.progress.offer.again,
            (true, true) => &mut self.progress.offer.again_sacked,
        };
        *candidate = (*candidate).max(key);
        if again {
            return;
        }
        let at = seg.sent.at;
        let times = if by_sack { &mut self.sacked } else { &mut self.acked };
        *times = Some(times.map_or((at, at), |(a, b)| (a.min(at), b.max(at))));
        self.progress.reordered |= seg.end() < fack;
    }

    /// Takes a run of segments that were never retransmitted, from `first` to `last` in the order in which
    /// they left. These are the first segments that this ACK delivers.
    #[inline]
    fn take_first_run(&mut self, first: &InFlight, last: &InFlight, fack: u64) {
        debug_assert_eq!((self.newest, self.acked), (NEVER, None), "others came first");
        self.newest = last.key();
        self.progress.newest = Some((last.sent, false));
        self.progress.offer.fresh = self.newest;
        self.acked = Some((first.sent.at, last.sent.at));
        self.progress.delivered += last.end() - first.start;
        self.progress.reordered |= first.end() < fack;
    }

    fn finish(self, now: Time) {
        let acked = self.acked.filter(|_| !self.progress.retransmitted);
        let times = acked.or(self.sacked);
        self.progress.fresh_since =
            [self.acked, self.sacked].into_iter().flatten().map(|(oldest, _)| oldest).min();
        self.progress.rtt = times.map(|(oldest, _)| now.since(oldest));
        self.progress.rtt_newest = times.map(|(_, newest)| now.since(newest));
    }
}

impl Scoreboard {
    /// Runs [`Scoreboard::on_ack_before`] without an observer.
    #[cfg(test)]
    pub fn on_ack(&mut self, una: u64, blocks: &[(u64, u64)], now: Time) -> Progress {
        let mut progress = Progress::default();
        self.on_ack_before(&mut (), una, blocks, now, &mut progress);
        progress
    }

    /// Processes a cumulative ACK up to `una`, and SACK blocks within `(una, nxt]`. The blocks may be in any
    /// order, overlapping or repeated, without D-SACK. Parts outside are ignored. Reports each delivered
    /// segment to `witness`. `progress` must be new.
    #[inline]
    pub fn on_ack_before(
        &mut self,
        witness: &mut impl Witness,
        una: u64,
        blocks: &[(u64, u64)],
        now: Time,
        progress: &mut Progress,
    ) {
        let mut delivery = Delivery::new(witness, progress);
        let una = una.min(self.nxt);
        if una > self.una {
            self.acknowledge(una, &mut delivery);
        }
        if !blocks.is_empty() {
            self.sack_all(blocks, &mut delivery);
        }
        self.fack = self.fack.max(self.high_sacked());
        self.seen_reordering |= delivery.progress.reordered;
        self.settle();
        delivery.finish(now);
    }

    fn acknowledge(&mut self, una: u64, delivery: &mut Delivery<'_, impl Witness>) {
        delivery.progress.acked = una - self.una;
        let first = self.ring.first_id();
        if !delivery.witness.watches() {
            if let Some((first, last)) = self.ring.pop_run(una) {
                delivery.take_first_run(first, last, self.fack);
            }
        }
        if self.ring.front().is_some_and(|s| s.start < una) {
            self.acknowledge_singly(una, delivery);
        }
        let whole = self.ring.first_id() - first;
        self.una = una;
        self.ranges.advance(una, self.ring.first_id());
        self.duplicates =
            self.duplicates.saturating_sub(whole.saturating_sub(1).min(u64::from(u32::MAX)) as u32);
    }

    /// Acknowledges segments one by one. Some of them were SACKed, marked lost or retransmitted, or the
    /// cumulative ACK ends within one.
    #[inline(never)]
    fn acknowledge_singly(&mut self, una: u64, delivery: &mut Delivery<'_, impl Witness>) {
        while let Some(seg) = self.ring.front().filter(|s| s.end() <= una).copied() {
            self.uncount(seg.flags, u64::from(seg.len));
            if seg.flags & SACKED == 0 {
                delivery.progress.delivered += u64::from(seg.len);
                delivery.take(&seg, false, self.fack);
            } else {
                self.sacked_segments -= 1;
            }
            delivery.progress.retransmitted |= seg.flags & RETRANSMITTED != 0;
            self.ring.pop();
        }
        if self.ring.front().is_some_and(|s| s.start < una) {
            self.cut_first(una, delivery);
        }
    }

    /// Cuts the first segment, in which the cumulative ACK ends. Its rest keeps its state.
    fn cut_first(&mut self, una: u64, delivery: &mut Delivery<'_, impl Witness>) {
        let seg = self.ring.get_mut(self.ring.first_id());
        let cut = una - seg.start;
        (seg.start, seg.len) = (una, seg.len - cut as u32);
        let flags = seg.flags;
        self.uncount(flags, cut);
        delivery.progress.delivered += if flags & SACKED == 0 { cut } else { 0 };
        delivery.progress.retransmitted |= flags & RETRANSMITTED != 0;
    }

    /// Takes bytes of a segment with these flags off the counts.
    fn uncount(&mut self, flags: u8, bytes: u64) {
        let counted = |mask: u8, value: u8| if flags & mask == value { bytes } else { 0 };
        self.sacked -= counted(SACKED, SACKED);
        self.lost -= counted(LOST, LOST);
        self.resent -= counted(RESENT, RESENT);
        self.pending -= counted(LOST | RESENT, LOST);
    }

    #[inline(never)]
    fn sack_all(&mut self, blocks: &[(u64, u64)], delivery: &mut Delivery<'_, impl Witness>) {
        for &(start, end) in blocks {
            self.sack(start.max(self.una), end.min(self.nxt), delivery);
        }
    }

    /// Marks the part of `start..end` that is not SACKed yet, gap by gap.
    fn sack(&mut self, start: u64, end: u64, delivery: &mut Delivery<'_, impl Witness>) {
        let mut i = self.ranges.above(start);
        let mut at = start;
        while at < end {
            let next = self.ranges.get(i).copied();
            if let Some(r) = next.filter(|r| r.start <= at) {
                (at, i) = (at.max(r.end), i + 1);
                continue;
            }
            let gap_end = next.map_or(end, |r| r.start.min(end));
            let before = i.checked_sub(1).and_then(|i| self.ranges.get(i)).filter(|r| r.end == at);
            let first = before.map_or_else(|| self.ring.at_or_above(at, self.smss), |r| r.after);
            if let Some(new) = self.sack_gap(first, gap_end, delivery) {
                i = self.ranges.insert(i, new);
            }
            at = gap_end;
        }
    }

    /// Marks segments from `first` on that end by `end`.
    fn sack_gap(&mut self, first: Id, end: u64, delivery: &mut Delivery<'_, impl Witness>) -> Option<Range> {
        let mut id = first;
        let mut range = None;
        while self.ring.holds(id) && self.ring.get(id).end() <= end {
            self.ring.unlink(id);
            let seg = *self.ring.get(id);
            let len = u64::from(seg.len);
            self.uncount(seg.flags, len);
            self.sacked += len;
            self.sacked_segments += 1;
            delivery.progress.delivered += len;
            delivery.take(&seg, true, self.fack);
            self.ring.get_mut(id).flags = SACKED | seg.flags & RETRANSMITTED;
            id += 1;
            let start = range.map_or(seg.start, |r: Range| r.start);
            range = Some(Range { start, end: seg.end(), first, after: id });
        }
        range
    }
}
