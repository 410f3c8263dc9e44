//! Arrival of a segment on an open connection: its data, and its acknowledgement in stream offsets.

use super::{wire_seq, Connection, Delivered, State, TIME_WAIT};
use crate::tcp::receiver::Receiver;
use crate::tcp::segment::Segment;
use crate::tcp::sender::Arrived;
use weir_core::time::{Duration, Time};
use weir_core::wire::{Flags, Seq};

/// SACK blocks in stream offsets.
#[derive(Clone, Copy, Default)]
struct Blocks {
    all: [(u64, u64); 4],
    count: usize,
    /// First block, if it reported a range that arrived twice (RFC 2883).
    duplicate: Option<(u64, u64)>,
}

impl Connection {
    /// Handles a segment of an open connection.
    #[inline(always)]
    pub(super) fn exchange(&mut self, s: &Segment, now: Time) -> Delivered {
        let Some(rx) = &mut self.rx else { return Delivered::default() };
        let mut delivered = Delivered::default();
        if s.payload > 0 || s.has(Flags::FIN) {
            let before = rx.finished();
            let accepted = rx.on_segment(&self.config, s, now);
            delivered.finished = accepted.finished && !before;
            delivered.bytes = accepted.advanced - u64::from(delivered.finished);
        } else {
            rx.note_timestamp(s);
            if s.seq.wrapping_add(1) == rx.ack() {
                // A window probe or a keep-alive.
                rx.acknowledge();
            }
        }
        if s.has(Flags::ACK) {
            delivered.rtt = self.on_ack(s, now);
        }
        self.close_if_done(now);
        delivered
    }

    #[inline(always)]
    fn on_ack(&mut self, s: &Segment, now: Time) -> Option<Duration> {
        let una = self.tx.board.una();
        if self.tx.is_idle() && s.ack == wire_seq(self.iss, una) && s.sack.is_empty() {
            // This end only receives: its peer's segments acknowledge nothing new.
            self.tx.edge = una + (u64::from(s.window) << self.shifts.1);
            return None;
        }
        self.on_news(s, una, now)
    }

    /// Handles an ACK that may bring news to the sender. `una` is SND.UNA.
    #[inline(never)]
    fn on_news(&mut self, s: &Segment, una: u64, now: Time) -> Option<Duration> {
        let nxt = self.tx.board.nxt();
        let ack = self.offset(s.ack, una).filter(|a| (una..=nxt).contains(a))?;
        let told = (!s.sack.is_empty()).then(|| self.blocks(s, una, ack));
        let arrived = Arrived {
            una: ack,
            edge: ack + (u64::from(s.window) << self.shifts.1),
            blocks: told.as_ref().map_or(&[], |blocks| &blocks.all[..blocks.count]),
            duplicate: told.as_ref().and_then(|blocks| blocks.duplicate),
            ece: s.has(Flags::ECE),
            pure: s.payload == 0 && !s.has(Flags::FIN),
            echoed: s.timestamps.map(|t| self.latest(t.echo)),
            echo_age: s.timestamps.map(|t| self.age(now, t.echo)),
        };
        self.tx.on_ack(&arrived, now)
    }

    /// Returns the stream offset of one of our sequence numbers, near `una`; `None` if it is before the
    /// stream.
    #[inline]
    fn offset(&self, seq: u32, una: u64) -> Option<u64> {
        let distance = seq.wrapping_sub(wire_seq(self.iss, una)) as i32;
        una.checked_add_signed(i64::from(distance))
    }

    /// Returns the SACK blocks of a segment that acknowledges up to `ack`, as far as they lie in the data in
    /// flight.
    #[inline(never)]
    fn blocks(&self, s: &Segment, una: u64, ack: u64) -> Blocks {
        let offset = |seq: Seq| self.offset(seq.0, una);
        let mut blocks = Blocks::default();
        for (i, &(left, right)) in s.sack.as_slice().iter().enumerate() {
            let (Some(left), Some(right)) = (offset(left), offset(right)) else { continue };
            let inside = |outer: Option<&(Seq, Seq)>| {
                outer.is_some_and(|&(l, r)| offset(l) <= Some(left) && offset(r) >= Some(right))
            };
            // RFC 2883 §4: below the ACK, or within the second block.
            if i == 0 && (right <= ack || inside(s.sack.as_slice().get(1))) {
                blocks.duplicate = Some((left, right)).filter(|_| left < right);
            } else if left < right && right <= self.tx.board.nxt() && right > ack {
                blocks.all[blocks.count] = (left.max(ack), right);
                blocks.count += 1;
            }
        }
        blocks
    }

    fn close_if_done(&mut self, now: Time) {
        let finished = self.rx.as_ref().is_some_and(Receiver::finished);
        if self.state == State::Established && finished && self.tx.fin_acked() {
            if self.life.closed_first {
                self.state = State::TimeWait;
                self.life.at = now + TIME_WAIT;
            } else {
                self.state = State::Closed;
            }
        }
    }
}
