//! News that keeps its place behind what is held, as it would in a queue.
//!
//! Whatever tells the sender more than progress leaves at once, after what is held. Two kinds of it do not:
//!
//! - *Data that arrived twice* ([`Kind::Twice`]) with nothing missing. A sender that hears nothing for two of
//!   its round trips sends its last segment again (a tail loss probe, RFC 8985 §7.3), and while ACKs are held
//!   it does so for no loss. Were all that is held to follow from that, the sender would hear of it within
//!   two round trips, and its next probe would come as soon. It needs the duplicate SACK no later than an
//!   acknowledgement beyond the probe, which without it means a loss (RFC 8985 §7.4.2), and no sooner than
//!   one of the probe itself: with a lower number the block would tell of a hole. So it goes with the first
//!   ACK that acknowledges the data that arrived twice.
//! - *A hole behind too much* ([`Kind::Sack`], [`Kind::Duplicate`]), of a flow whose window is not sized.
//!   Nothing else bounds what its sender may send of what goes early: at the path's rate it would meet the
//!   next loss, which would let it go on, and a receiver could say as often as it likes that something is
//!   missing, or a sender send something twice, to be let go. So the sender hears of the hole at its rate, as
//!   behind a queue, with the newest block; and at once, as others do, while what goes early is no more than
//!   its window would be, where that is to be sized and the handshake was not seen, and than its rate carries
//!   in [`AHEAD`] where it is kept.
//!
//! A window that is kept opens and closes at once too, by its right edge, but takes no more along than that.
//!
//! ACKs of what is held go on meanwhile, so no sender's retransmission timer (RFC 6298 §5.3) is nearer to
//! running out.

use super::{after, Gateway, Headers};
use crate::ack::{window, Fate, Kind, News, Window};
use crate::flow::{flag, Record};
use crate::frame::Frame;
use crate::node::Cx;
use crate::time::Duration;
use crate::wire::TcpOptions;

/// Duplicates that make a sender without SACK retransmit (RFC 5681 §3.2).
const DUPLICATES: u32 = 3;
/// Time of the rate that may go early of a flow whose window is kept, with what the flow still owes. What is
/// held for longer has had its sender's timer run out anyway: 1 s at first, and 2 s then (RFC 6298 §2).
const AHEAD: Duration = Duration::from_secs(2);

impl Gateway {
    /// Returns the fate of an ACK that would leave at once by its `fate`.
    pub(super) fn place(
        &self,
        i: u32,
        news: &News,
        fate: Fate,
        segment: &Headers,
        options: &TcpOptions,
    ) -> Fate {
        let (r, ack) = (&self.table[i], segment.tcp.ack);
        let newest = if after(ack, r.rx) { ack } else { r.rx };
        let early = newest.wrapping_sub(r.tx);
        // Nothing waits for a sender that has nothing more to send.
        if fate != Fate::AfterFlush || early == 0 || r.is_ending() || !self.is_engaged(i) {
            return fate;
        }
        match news.kind {
            Kind::Closed | Kind::Opens if r.has(flag::SCALE_KNOWN) && self.is_too_much(r, early) => {
                match window::is_news(r, segment.tcp.window, None) {
                    true => Fate::SetBack,
                    false => Fate::Hold,
                }
            }
            // A hole that is told with a window that closes or opens.
            Kind::Sack | Kind::Duplicate if r.has(flag::SCALE_KNOWN) && self.is_too_much(r, early) => {
                Fate::Keep
            }
            // What closes a window or opens it never waits.
            _ if segment.tcp.window == 0 || r.window == 0 => fate,
            Kind::Twice => match options.sack.only_twice(ack) {
                Some((_, right)) if !after(right, r.tx) => Fate::SetBack,
                // Its sender has sent the first segment that it has not heard of: its timer has run out.
                Some((left, _)) if !after(left, r.tx) && !self.is_too_much(r, early) => Fate::AfterFlush,
                _ => Fate::Keep,
            },
            Kind::Sack | Kind::Duplicate if self.is_too_much(r, early) => Fate::Keep,
            _ => fate,
        }
    }

    /// Would the sender, whose window is not sized, be acknowledged too much ahead of its time with so many
    /// bytes?
    pub(super) fn is_too_much(&self, r: &Record, early: u32) -> bool {
        let shared = r.takes_turns();
        let most = match self.policy(r).window {
            // Once a segment has passed with the receiver's own window nothing is bounded by that which is
            // told here.
            Window::Size { .. } if r.has(flag::SCALE_KNOWN) && !shared && self.is_wide(r) => {
                r.law.pace().rate().map(|rate| rate.bytes_in(AHEAD))
            }
            Window::Size { .. } if r.has(flag::SCALE_KNOWN) => None,
            Window::Size { .. } if shared && self.classes.shares.is_early(r, early, self.now) => Some(0),
            Window::Size { .. } => self.window_limit(r).map(u64::from),
            Window::Keep if shared => None, // its data waits in its class's queue
            Window::Keep => r.law.pace().rate().map(|rate| rate.bytes_in(AHEAD)),
        };
        let before = r.kept().ahead();
        most.is_some_and(|most| u64::from(early) + u64::from(before) > most)
    }

    /// May the sender of a flow with a rate of its own send much more than its window is sized for?
    fn is_wide(&self, r: &Record) -> bool {
        let ahead = (r.edge.wrapping_sub(r.tx) as i32).max(0) as u32;
        let full = r.full_window(&self.policy(r).window, self.rtt(r));
        r.has(flag::EDGE_KNOWN) && full.is_some_and(|full| ahead > full.saturating_mul(2))
    }

    /// Keeps what the ACK tells with what is held, of which its own progress is part.
    pub(super) fn keep(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        segment: &Headers,
        options: &TcpOptions,
        frame: Frame,
    ) {
        let r = &mut self.table[i];
        r.note_news(segment.tcp.ack, options);
        r.held_acks += 1;
        // Where nothing is held back, the sender hears of a loss with all that was.
        self.schedule(cx, i, options, u32::MAX);
        self.absorb(cx, i, frame);
    }
}

impl Record {
    /// Notes that what an ACK for `ack` tells beyond progress is still to be told.
    fn note_news(&mut self, ack: u32, options: &TcpOptions) {
        if let Some(block) = options.sack.only_twice(ack) {
            if !self.has(flag::HOLE) {
                (self.block, self.flags) = (block, self.flags | flag::TWICE);
            }
        } else if ack != self.rx {
            // It was overtaken: newer ones tell as much.
        } else if let Some(block) = options.sack.beyond(ack) {
            (self.block, self.flags) = (block, self.flags & !flag::TWICE | flag::HOLE);
        } else if !self.has(flag::HOLE) {
            (self.block, self.flags) = ((self.rx, 1), self.flags & !flag::TWICE | flag::HOLE);
        } else if self.block.0 == self.rx {
            self.block.1 = (self.block.1 + 1).min(DUPLICATES);
        }
    }

    /// Is anything to be told beside progress?
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.flags & (flag::TWICE | flag::HOLE) != 0
    }

    /// The SACK block that an ACK for `to` is to carry.
    #[inline]
    pub(super) fn block_with(&self, to: u32) -> Option<(u32, u32)> {
        if !self.has_news() {
            return None;
        }
        let twice = self.has(flag::TWICE) && !after(self.block.1, to);
        let hole = self.has(flag::HOLE) && to == self.rx && self.block.0 != to;
        (twice || hole).then_some(self.block)
    }

    /// An ACK for `tx` has left with what was to go with it. Returns how many duplicates of it are to follow.
    #[inline]
    pub(super) fn told_news(&mut self) -> u32 {
        if self.flags & (flag::TWICE | flag::HOLE | flag::PEAK) == 0 {
            return 0;
        }
        self.news_left()
    }

    #[cold]
    fn news_left(&mut self) -> u32 {
        let all = self.tx == self.rx;
        let duplicates =
            if all && self.has(flag::HOLE) && self.block.0 == self.tx { self.block.1 } else { 0 };
        if self.has(flag::TWICE) && !after(self.block.1, self.tx) {
            self.flags &= !flag::TWICE;
        }
        if all {
            self.flags &= !(flag::HOLE | flag::PEAK);
        }
        duplicates
    }

    /// The receiver has got what was missing, or the first of it.
    #[inline]
    pub(super) fn hole_filled(&mut self) {
        self.flags &= !flag::HOLE;
    }

    /// Whatever was to be told is known, or nobody's business any more.
    pub(super) fn forget_news(&mut self) {
        self.flags &= !(flag::TWICE | flag::HOLE | flag::PEAK);
    }
}
