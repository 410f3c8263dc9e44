//! Reports of segments that arrived twice (DSACK, RFC 2883), and the conclusions from them.
//!
//! A path that duplicates frames causes such reports as well as a needless retransmission does. So the range
//! counts, not the presence of a report. It undoes a reduction only with the ranges of all retransmissions
//! (RFC 3708 §3). It answers a tail loss probe only with the probe's own range (RFC 8985 §7.4). As in Linux
//! (`tcp_dsack_seen`), reports no longer count once more segments were reported than retransmitted. The
//! reordering window grows only if reordering was seen.

use super::scoreboard::Piece;
use super::{Arrived, Sender};
use std::collections::BTreeMap;

/// A range of the stream.
pub(super) type Range = (u64, u64);

/// State before a reduction, to which the window may have to return.
#[derive(Clone, Debug)]
pub(super) struct Undo {
    pub(super) cwnd: u64,
    pub(super) ssthresh: u64,
    /// Retransmitted segments not reported since, by their start: length and number of retransmissions.
    unreported: BTreeMap<u64, (u32, u32)>,
}

impl Undo {
    /// Creates the state with no retransmission.
    pub(super) fn new(cwnd: u64, ssthresh: u64) -> Undo {
        Undo { cwnd, ssthresh, unreported: BTreeMap::new() }
    }

    /// Records a retransmitted segment.
    pub(super) fn note(&mut self, piece: Piece) {
        let (len, times) = self.unreported.entry(piece.start).or_insert((piece.len, 0));
        (*len, *times) = (piece.len, *times + 1);
    }

    /// Handles the report of a range: strikes out one transmission of each segment in it. Returns whether all
    /// have been reported now.
    pub(super) fn report(&mut self, (left, right): Range) -> bool {
        let within =
            |(&start, &(len, _)): (&u64, &(u32, u32))| (start + u64::from(len) <= right).then_some(start);
        let starts: Vec<u64> = self.unreported.range(left..right).filter_map(within).collect();
        for start in &starts {
            if let Some((_, times)) = self.unreported.get_mut(start).filter(|(_, times)| *times > 1) {
                *times -= 1;
            } else {
                self.unreported.remove(start);
            }
        }
        !starts.is_empty() && self.unreported.is_empty()
    }
}

impl Sender {
    /// Returns the range that an ACK reports, if it may belong to a retransmitted segment.
    pub(super) fn credible_report(&mut self, a: &Arrived) -> Option<Range> {
        let (left, right) = a.duplicate?;
        let segments = (right - left).div_ceil(u64::from(self.window.mss));
        let losses = self.losses_mut();
        losses.reported += segments;
        (losses.reported <= losses.retransmits).then_some((left, right))
    }

    /// Returns whether the report is of the tail loss probe, as sent by the timer and not by RACK.
    pub(super) fn reports_probe(&self, report: Range) -> bool {
        self.timers.probe.is_some_and(|probe| probe.retransmitted && probe.end == report.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::by_name;
    use crate::tcp::TcpConfig;
    use weir_core::time::{Duration, Time};

    fn piece(start: u64) -> Piece {
        Piece { start, len: 1000 }
    }

    /// RFC 3708 §3: every retransmission must be reported, each as often as it was sent.
    #[test]
    fn all_retransmissions_are_to_be_reported() {
        let mut undo = Undo::new(1, 1);
        assert!(!undo.report((0, 1000)));
        for start in [0, 3000, 3000, 5000] {
            undo.note(piece(start));
        }
        assert!(!undo.report((0, 1000)));
        // None of these ranges was retransmitted: the path duplicated them.
        for other in [0, 1000, 2000, 4000] {
            assert!(!undo.report((other, other + 1000)));
        }
        assert!(!undo.report((3000, 4000)));
        // Half of a segment does not count.
        assert!(!undo.report((5000, 5500)));
        assert!(!undo.report((5000, 6000)));
        assert!(undo.report((3000, 4000)));
        assert!(!undo.report((3000, 4000)));
    }

    /// Creates a sender whose last segment, of five, was retransmitted by a tail loss probe, with two more
    /// behind it. Then the report of `duplicate` arrives.
    fn after_probe(duplicate: Range) -> Sender {
        let config = TcpConfig::new(by_name("reno").expect("reno"));
        let mut s = Sender::new(&config, 1000, 0);
        let leave = |s: &mut Sender, now| while s.transmit(&config, now).is_some() {};
        let ack = |una| Arrived { una, edge: 1 << 20, pure: true, ..Arrived::default() };
        s.edge = 1 << 20;
        s.rtt.sample(Duration::from_millis(100));
        s.write(5000, false);
        leave(&mut s, Time::ZERO);
        s.on_ack(&ack(4000), Time::from_millis(100));
        let now = s.timers.next();
        s.on_timers(now);
        leave(&mut s, now);
        assert_eq!(s.repairs(), (1, 0));
        s.write(7000, false);
        leave(&mut s, now);
        s.on_ack(&Arrived { duplicate: Some(duplicate), ..ack(6000) }, now + Duration::from_millis(100));
        s
    }

    /// RFC 8985 §7.4: a DSACK "matching TLP.end_seq" says that nothing was lost. Any other says nothing about
    /// the probe.
    #[test]
    fn only_its_own_range_answers_a_probe() {
        assert_eq!(after_probe((4000, 5000)).window().ssthresh, u64::MAX);
        assert!(after_probe((1000, 2000)).window().ssthresh < u64::MAX);
    }

    /// In Linux the reordering window grows if reordering was seen, for reports of retransmitted segments,
    /// but not of a probe.
    #[test]
    fn reports_beyond_what_was_sent_again_are_not_believed() {
        let mut s = after_probe((4000, 5000));
        let report = |s: &mut Sender| {
            s.credible_report(&Arrived { duplicate: Some((5000, 6000)), ..Arrived::default() })
        };
        // One was retransmitted, and one has been reported.
        assert_eq!(report(&mut s), None);
        s.losses_mut().retransmits = 3;
        assert_eq!(report(&mut s), Some((5000, 6000)));
        assert_eq!(report(&mut s), None);
    }
}
