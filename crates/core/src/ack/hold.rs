//! Holding ACKs: what is kept of a delayed ACK, and which ACKs are not delayed.

use super::news::{Kind, News};
use super::window;
use crate::flow::{flag, Record};

/// What is kept of a delayed ACK. How it decides is a function here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Only the last ACK number received and the last one sent: constant memory per flow. So whatever tells more
    /// than progress leaves at once.
    Number,
    /// The ACKs themselves, first in, first out (PostACK section 3.2: the per-flow ACK queue). So duplicates keep their place, and
    /// the sender hears of a loss as late as behind a queue of data, and of a wider window. What opens or closes a window does not wait.
    Queue,
}

/// What becomes of an ACK without payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Held progress first, then the segment as it came.
    AfterFlush,
    /// The segment with its ACK field set back to what the sender knows.
    SetBack,
    /// The segment as it came: nothing is held.
    AsItCame,
    /// What it tells goes with what is held, in its place: at the rate.
    Keep,
    /// It is delayed.
    Hold,
    /// It waits itself.
    Queue,
    /// It says nothing that is not known.
    Absorb,
}

impl Hold {
    /// Is an ACK that tells nothing but progress no more than its number?
    pub const fn is_number(self) -> bool {
        matches!(self, Hold::Number)
    }

    /// What becomes of an ACK that tells `news` and advertises `window`; see [`window::field_for`] for `limit`, which counts
    /// for [`Kind::Window`] only. What would go at once may still have to keep its place, where too much is held before it.
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
        // Ahead of ACKs with smaller windows the edge would move left again behind it; one that is sized is written anew in each.
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

    /// A flow with `held` bytes whose receiver has advertised 100 units of 128 bytes, all of which the sender knows.
    fn flow(held: u32, flags: u32) -> Record {
        let mut r = Record { flags: flag::SYNCED | flags, ..Record::default() };
        (r.rx, r.tx, r.window, r.scale) = (5_000 + held, 5_000, 100, 7);
        r.right = r.rx + 100 * 128;
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
            // With something held its number would be ahead; the right edge moves from 17,800 to 30,600.
            (Kind::Window, 200, 2_920, SCALED, None, Fate::SetBack),
            // Without a scale any other field is another window, and a larger one a later edge.
            (Kind::Window, 200, 2_920, 0, None, Fate::SetBack),
            (Kind::Window, 99, 2_920, 0, None, Fate::Absorb),
            // Sized to 12,800 bytes the sender knows as much already, or less is to be had.
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
