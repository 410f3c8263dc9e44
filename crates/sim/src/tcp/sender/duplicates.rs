//! Duplicate ACKs without SACK: the deliveries and losses that they reveal.
//!
//! A duplicate ACK says that some segment above the first has arrived. It counts as delivered then, and not
//! again when the cumulative ACK covers it, as in Linux (`tcp_add_reno_sack`, `tcp_remove_reno_sacks`). The
//! users of delivery counts (delivery rate, PRR, growth of the window) depend on this.

use super::scoreboard::Progress;
use super::Sender;
use crate::cc::Phase;
use crate::tcp::config::Recovery;

/// Number of duplicate ACKs that mean a loss (RFC 5681 §3.2).
pub(super) const DUP_THRESH: u32 = 3;
/// Number of duplicate ACKs that each let a new segment leave without meaning a loss (RFC 3042).
const LIMITED_TRANSMIT: u32 = 2;

impl Sender {
    /// Counts deliveries without SACK. `repeated` is true for a duplicate ACK.
    #[inline(never)]
    pub(super) fn count_deliveries(&mut self, p: &mut Progress, repeated: bool) {
        if p.acked > 0 {
            self.count_covered(p);
        } else if repeated && self.counts_duplicates() {
            p.delivered = self.room_for_told().min(self.window.mss.into());
            self.losses_mut().told += p.delivered;
        }
    }

    /// Takes off the deliveries that duplicate ACKs have already counted, except the segment that was
    /// missing. Counts beyond the outstanding data were wrong: the path had duplicated a segment or an ACK.
    fn count_covered(&mut self, p: &mut Progress) {
        let told = self.losses().told;
        if told == 0 {
            return;
        }
        let missing = p.delivered.min(self.window.mss.into());
        let mut again = told.min(p.delivered - missing);
        if self.recovery != Recovery::Linux {
            let excess = (self.board.una() + told).saturating_sub(self.board.nxt());
            again = again.max(excess.min(p.delivered));
        }
        p.delivered -= again;
        self.losses_mut().told -= again;
    }

    /// Returns the bytes above the first segment that no duplicate ACK has counted.
    fn room_for_told(&self) -> u64 {
        let first = self.board.first().map_or(0, |piece| u64::from(piece.len));
        (self.board.nxt() - self.board.una()).saturating_sub(first + self.losses().told)
    }

    /// Returns whether a duplicate ACK counts now. After a time-out it may be for a needless retransmission,
    /// unless new data has left since.
    /// While Linux waits for an ACK above the recovery point, it may be for a segment that an earlier
    /// recovery sent twice.
    fn counts_duplicates(&self) -> bool {
        match self.phase {
            Phase::Open | Phase::Reducing => true,
            Phase::Recovery => !self.waits_above(),
            Phase::Loss => !self.recovery.remembers() || self.sent_above(),
        }
    }

    /// Returns whether Linux has sent new data since a time-out ([`super::frto`]).
    fn sent_above(&self) -> bool {
        self.recovery == Recovery::Linux && self.board.nxt() > self.losses().recover
    }

    /// Returns whether Linux has everything below the recovery point, but stays in recovery until data above
    /// it is acknowledged (`tcp_is_non_sack_preventing_reopen`).
    pub(super) fn waits_above(&self) -> bool {
        self.recovery == Recovery::Linux && self.board.una() == self.losses().recover
    }

    /// Finds losses: three duplicate ACKs mean a loss, and so does a partial ACK during recovery (RFC 5681
    /// §3.2, RFC 6582 §3.2). Returns the bytes newly lost.
    #[inline(never)]
    pub(super) fn find_by_duplicates(&mut self, p: &Progress, repeated: bool) -> u64 {
        if p.acked > 0 {
            return self.find_by_advance();
        }
        if !repeated || !self.counts_duplicates() {
            return 0;
        }
        let duplicates = self.board.duplicates() + 1;
        let may = self.may_repair();
        let counts = self.phase == Phase::Recovery || may || self.phase == Phase::Loss;
        if counts || duplicates <= LIMITED_TRANSMIT {
            self.board.set_duplicates(duplicates);
        }
        match duplicates == DUP_THRESH && may {
            true if self.recovery.remembers() => self.board.mark_first_lost(),
            true => self.board.lose_first(),
            false => 0,
        }
    }

    /// Finds losses when the cumulative ACK has advanced.
    fn find_by_advance(&mut self) -> u64 {
        if self.phase != Phase::Recovery {
            self.forget_duplicates();
            return 0;
        }
        let partial = matches!(self.recovery, Recovery::NewReno | Recovery::Linux) && !self.waits_above();
        if !partial {
            return 0;
        }
        // With PRR, the window decides when it leaves.
        self.fast |= self.recovery == Recovery::NewReno;
        self.board.mark_first_lost()
    }

    /// Returns whether duplicate ACKs may begin a recovery. With a memory of the recovery point they may do
    /// so only if the cumulative ACK covers more (RFC 6582 §3.2 step 2): otherwise they may be for segments
    /// that an earlier recovery sent twice.
    fn may_repair(&self) -> bool {
        let recover = self.losses().recover;
        match self.phase {
            Phase::Open | Phase::Reducing => {
                !self.recovery.remembers() || recover == 0 || self.board.una() > recover
            }
            Phase::Recovery => false,
            Phase::Loss => !self.recovery.remembers(),
        }
    }

    /// Restarts the count of duplicate ACKs. Linux also forgets the deliveries that they counted
    /// (`tcp_reset_reno_sack`).
    pub(super) fn forget_duplicates(&mut self) {
        self.board.set_duplicates(0);
        if self.recovery == Recovery::Linux && self.losses().told > 0 {
            self.losses_mut().told = 0;
        }
    }

    /// Returns the most bytes of an ACK that may grow the window, with the phase `before` the ACK. During
    /// repair without SACK this is one segment, since the covered data may have arrived long ago (RFC 3465
    /// §2.3). RFC 6582 §3.2 step 3 has nothing grow at the end of a recovery.
    pub(super) fn growth_limit(&self, before: Phase) -> u64 {
        let limited = before.repairs() && !(self.recovery.uses_sack() || self.recovery.is_linux());
        if limited {
            u64::from(self.window.mss)
        } else {
            u64::MAX
        }
    }
}
