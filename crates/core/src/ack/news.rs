//! News that an acknowledgement without payload brings its sender, whatever the policy. The segment is
//! compared with the record's numbers before the record learns from it.

use crate::flow::{flag, Record};
use crate::tcp::{Kind, ACE_MOST};
use crate::wire::{Flags, Tcp, TcpOptions};

/// News that an acknowledgement brings its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News {
    /// Main news.
    pub kind: Kind,
    /// ECE is set: data that it acknowledges was marked (RFC 3168). In an AccECN flow see `counter`.
    pub ece: bool,
    /// Advance of the AccECN counter since the last acknowledgement (RFC 9768). 0 in other flows.
    pub counter: u8,
}

impl News {
    /// Compares a segment with these headers with the record `r`.
    pub fn of(r: &Record, tcp: &Tcp, options: &TcpOptions) -> News {
        let counter = if r.has(flag::ACCECN) { tcp.flags.ace().wrapping_sub(r.ace) & ACE_MOST } else { 0 };
        News {
            kind: Kind::of((r.rx, r.window), (tcp.ack, tcp.window), &options.sack),
            ece: tcp.flags.contains(Flags::ECE),
            counter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Seq;
    use crate::wire::{self, build::SegmentBuilder};

    const RX: u32 = 0xffff_ff00; // numbers wrap
    const WINDOW: u16 = 400;

    /// Returns the news of an ACK for `n` bytes beyond `RX`, in a flow that has acknowledged `RX` and
    /// advertises `window`.
    fn news(window: u16, change: impl FnOnce(SegmentBuilder) -> SegmentBuilder) -> News {
        let mut r = Record::default();
        (r.rx, r.window) = (Seq(RX), window);
        news_of(&r, change)
    }

    fn news_of(r: &Record, change: impl FnOnce(SegmentBuilder) -> SegmentBuilder) -> News {
        let plain = SegmentBuilder::v4([10, 0, 0, 2], [10, 0, 0, 1]).ack(RX).flags(Flags::ACK).window(WINDOW);
        let bytes = change(plain).build();
        let packet = wire::packet(&bytes, bytes.len()).unwrap();
        let tcp = wire::tcp(&bytes, &packet).unwrap();
        News::of(r, &tcp, &wire::tcp_options(&bytes, &packet, &tcp).unwrap())
    }

    #[test]
    fn each_kind_is_told_from_the_others() {
        type Change = fn(SegmentBuilder) -> SegmentBuilder;
        let rows: [(u16, Change, Kind); 19] = [
            (WINDOW, |s| s, Kind::Duplicate),
            (WINDOW, |s| s.ack(RX.wrapping_add(1_460)), Kind::Progress),
            (WINDOW, |s| s.ack(RX.wrapping_add(1_460)).window(1), Kind::Progress),
            (WINDOW, |s| s.window(WINDOW - 1), Kind::Window),
            (WINDOW, |s| s.window(WINDOW + 1), Kind::Window),
            (WINDOW, |s| s.window(0), Kind::Closed),
            (WINDOW, |s| s.window(0).ack(RX.wrapping_add(1_460)), Kind::Closed),
            (0, |s| s.window(0), Kind::Closed),
            (0, |s| s, Kind::Opens),
            (0, |s| s.ack(RX.wrapping_add(1_460)), Kind::Opens),
            (WINDOW, |s| s.ack(RX.wrapping_sub(1)), Kind::Old),
            // The window of an old segment is outdated.
            (WINDOW, |s| s.ack(RX.wrapping_sub(1)).window(0), Kind::Old),
            (WINDOW, |s| s.sack(&[(RX.wrapping_add(1_460), RX.wrapping_add(2_920))]), Kind::Sack),
            // Data beyond a hole is reported, however late.
            (WINDOW, |s| s.ack(RX.wrapping_sub(9)).sack(&[(RX, RX.wrapping_add(1))]), Kind::Sack),
            // RFC 2883 §4.1: a first block at or below the acknowledgement reports a duplicate.
            (WINDOW, |s| s.sack(&[(RX.wrapping_sub(1_460), RX)]), Kind::Twice),
            (
                WINDOW,
                |s| s.ack(RX.wrapping_sub(9)).sack(&[(RX.wrapping_sub(99), RX.wrapping_sub(9))]),
                Kind::Twice,
            ),
            // §4.2: the second block tells of a hole.
            (
                WINDOW,
                |s| s.sack(&[(RX.wrapping_sub(1_460), RX), (RX.wrapping_add(1_460), RX.wrapping_add(2_920))]),
                Kind::Sack,
            ),
            // SACK blocks come before windows that close or open.
            (WINDOW, |s| s.window(0).sack(&[(RX.wrapping_sub(1_460), RX)]), Kind::Sack),
            (0, |s| s.sack(&[(RX.wrapping_sub(1_460), RX)]), Kind::Sack),
        ];
        for (n, (window, change, kind)) in rows.into_iter().enumerate() {
            assert_eq!(news(window, change).kind, kind, "row {n}");
        }
    }

    #[test]
    fn marks_are_told_beside() {
        let told = |n: News| (n.ece, n.counter);
        assert_eq!(told(news(WINDOW, |s| s)), (false, 0));
        assert_eq!(told(news(WINDOW, |s| s.flags(Flags(Flags::ACK.0 | Flags::ECE.0)))), (true, 0));
    }

    #[test]
    fn the_accecn_counter_is_three_bits_wide() {
        let mut r = Record::default();
        (r.rx, r.window, r.flags) = (Seq(RX), WINDOW, flag::ACCECN);
        // AE and ECE are 4 + 1.
        let flags = Flags(Flags::ACK.0 | Flags::AE.0 | Flags::ECE.0);
        for (before, moved) in [(5, 0), (4, 1), (0, 5), (6, 7), (7, 6)] {
            r.ace = before;
            assert_eq!(news_of(&r, |s| s.flags(flags)).counter, moved, "from {before}");
        }
    }
}
