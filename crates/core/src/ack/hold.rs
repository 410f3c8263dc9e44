//! Holding ACKs: the state kept of a delayed ACK, and the ACKs that are not delayed.

use super::news::News;
use super::window;
use crate::flow::{flag, Record};
use crate::tcp::Kind;

/// State kept of a delayed ACK, and the rules for delaying one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Hold {
    /// Only the last ACK number received and the last one sent: constant memory per flow. An ACK that tells
    /// more than progress therefore leaves at once.
    Number,
    /// The ACKs themselves, first in, first out (PostACK section 3.2: the per-flow ACK queue). Duplicates and
    /// wider windows keep their place, so the sender hears of a loss as late as behind a queue of data. An
    /// ACK that opens or closes the window does not wait.
    Queue,
}

/// Treatment of an ACK without payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Sends held progress first, then the segment unchanged.
    AfterFlush,
    /// Sends the segment with its ACK field set back to the number that the sender knows.
    SetBack,
    /// Sends the segment unchanged: nothing is held.
    AsItCame,
    /// Keeps its news with the held ACKs, in order, to leave at the rate.
    Keep,
    /// Delays it: only the number is kept.
    Hold,
    /// Delays it: the segment itself is queued.
    Queue,
    /// Absorbs it: its news is known already.
    Absorb,
}

impl Hold {
    /// Returns whether a pure progress ACK is kept as its number only.
    pub const fn is_number(self) -> bool {
        matches!(self, Hold::Number)
    }

    /// Returns the treatment of an ACK that tells `news` and advertises `window`. `limit` bounds the window
    /// as in [`window::field_for`], and matters for [`Kind::Window`] only. An ACK that would leave at once
    /// may still have to keep its place, where too much is held before it.
    pub fn fate(self, news: &News, r: &Record, window: u16, limit: Option<u32>) -> Fate {
        match self {
            Hold::Number => number(news, r, window, limit),
            Hold::Queue => queue(news, r, window, limit),
        }
    }
}

fn queue(news: &News, r: &Record, window: u16, limit: Option<u32>) -> Fate {
    let waits = r.holds();
    match news.kind {
        Kind::Progress => Fate::Queue,
        Kind::Sack | Kind::Twice | Kind::Duplicate if waits => Fate::Queue,
        // Sent ahead of ACKs with smaller windows, it would make the right edge move left again. Where
        // windows are sized, each ACK's field is rewritten anyway.
        Kind::Window if waits && (limit.is_none() || !r.has(flag::SCALE_KNOWN)) => Fate::Queue,
        _ => number(news, r, window, limit),
    }
}

fn number(news: &News, r: &Record, window: u16, limit: Option<u32>) -> Fate {
    let held = r.held() > 0;
    match news.kind {
        Kind::Sack | Kind::Twice | Kind::Closed | Kind::Opens => Fate::AfterFlush,
        Kind::Old => Fate::Absorb,
        Kind::Progress => Fate::Hold,
        Kind::Duplicate if held => Fate::AfterFlush,
        Kind::Duplicate => Fate::AsItCame,
        Kind::Window if !held && limit.is_none() => Fate::AsItCame,
        Kind::Window if window::is_news(r, window, limit) => Fate::SetBack,
        Kind::Window => Fate::Absorb,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Seq;

    /// A flow with `held` bytes. Its receiver has advertised 100 units of 128 bytes, and the sender knows all
    /// of them.
    fn flow(held: u32, flags: u32) -> Record {
        let mut r = Record { flags: flag::SYNCED | flags, ..Record::default() };
        (r.rx, r.tx, r.window, r.scale) = (Seq(5_000 + held), Seq(5_000), 100, 7);
        r.right = r.rx.plus(100 * 128);
        r.edge = r.right;
        r
    }

    #[test]
    fn a_queue_keeps_the_place_of_whatever_tells_of_a_loss() {
        let fate = |kind, held| {
            let r = flow(held, flag::SCALE_KNOWN | flag::EDGE_KNOWN);
            Hold::Queue.fate(&News { kind, ece: false, counter: 0 }, &r, 100, None)
        };
        for kind in [Kind::Sack, Kind::Twice, Kind::Duplicate] {
            assert_eq!(fate(kind, 2_920), Fate::Queue, "{kind:?}");
        }
        assert_eq!((fate(Kind::Progress, 0), fate(Kind::Progress, 2_920)), (Fate::Queue, Fate::Queue));
        assert_eq!((fate(Kind::Sack, 0), fate(Kind::Duplicate, 0)), (Fate::AfterFlush, Fate::AsItCame));
        assert_eq!((fate(Kind::Window, 2_920), fate(Kind::Window, 0)), (Fate::Queue, Fate::AsItCame));
        // RFC 9293 section 3.8.6: a closed window and its opening are never late.
        assert_eq!(
            (fate(Kind::Closed, 2_920), fate(Kind::Opens, 2_920)),
            (Fate::AfterFlush, Fate::AfterFlush)
        );
    }

    #[test]
    fn a_number_keeps_progress_and_nothing_else() {
        const SCALED: u32 = flag::SCALE_KNOWN | flag::EDGE_KNOWN;
        let limit = Some(12_800);
        let rows = [
            // Kind, window field, held, flags, limit: fate.
            (Kind::Progress, 100, 0, SCALED, None, Fate::Hold),
            (Kind::Progress, 100, 2_920, SCALED, None, Fate::Hold),
            (Kind::Progress, 99, 2_920, SCALED, None, Fate::Hold),
            (Kind::Progress, 99, 2_920, 0, None, Fate::Hold),
            (Kind::Progress, 99, 0, 0, None, Fate::Hold),
            (Kind::Sack, 100, 2_920, SCALED, None, Fate::AfterFlush),
            (Kind::Twice, 100, 2_920, SCALED, None, Fate::AfterFlush),
            (Kind::Closed, 0, 2_920, SCALED, limit, Fate::AfterFlush),
            (Kind::Opens, 1, 0, SCALED, limit, Fate::AfterFlush),
            (Kind::Old, 100, 2_920, SCALED, None, Fate::Absorb),
            (Kind::Duplicate, 100, 0, SCALED, None, Fate::AsItCame),
            (Kind::Duplicate, 100, 2_920, SCALED, None, Fate::AfterFlush),
            (Kind::Window, 200, 0, SCALED, None, Fate::AsItCame),
            // The segment's own number would be ahead of the held ones. The right edge moves from 17,800 to
            // 30,600.
            (Kind::Window, 200, 2_920, SCALED, None, Fate::SetBack),
            // Without a scale, any other field is another window and a larger field a later edge.
            (Kind::Window, 200, 2_920, 0, None, Fate::SetBack),
            (Kind::Window, 99, 2_920, 0, None, Fate::Absorb),
            // Sized to 12,800 bytes: the sender knows as much already, or the receiver offers less.
            (Kind::Window, 200, 0, SCALED, limit, Fate::Absorb),
            (Kind::Window, 99, 2_920, SCALED, None, Fate::Absorb),
        ];
        for (kind, window, held, flags, limit, fate) in rows {
            let r = flow(held, flags);
            let news = News { kind, ece: false, counter: 0 };
            let got = Hold::Number.fate(&news, &r, window, limit);
            assert_eq!(got, fate, "{kind:?}, window {window}, {held} held, {flags:x}, {limit:?}");
        }
    }
}
