//! State of a flow whose turns are ACKs ([`Scheme`](super::Scheme)).

use crate::flow::{law_state, Place};
use crate::frame::List;
use crate::packet::wire::Seq;
use crate::time::{Duration, Time};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// State of a flow whose turns are ACKs.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub struct Steps {
    place: Place,
    /// Queued ACKs, a [`List`].
    acks: [u32; 3],
    /// End of a segment on its way, and the time at which it was seen, in microseconds; 0 without one.
    probe_end: Seq,
    probe_us: u32,
    /// State by the event that gives turns: [`Counted`], [`Parted`] or [`Delayed`].
    own: [u64; 3],
}

/// State of a flow with turns by a clock or by departures.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
struct Counted {
    /// Packets of the flow's data, see [`Steps::packets`], and the queues that they are in.
    packets: u16,
    queues: u16,
    /// Count of departures at which its turn comes. With turns by departures of its own queue.
    due: u32,
    /// Packets that the last turn was for.
    expected: u32,
    /// Bytes of the last grant, and its time.
    granted: u32,
    granted_at: u64,
}

/// State of a flow with turns by the class's clock where flows have a guarantee.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
struct Parted {
    /// Turns that it has a right to, in units of `1 / TURN`; below 0 after an ACK that was worth several.
    credit: i64,
    others: [u64; 2],
}

/// State of a flow whose ACKs have a time each.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Delayed {
    /// Not 0 once `sent` is known.
    known: u32,
    /// Sequence number after the data that the sender has sent.
    sent: Seq,
    /// Time at which the last queued ACK leaves.
    pub(crate) last: u64,
    /// Time for which the flow has a timer.
    pub(crate) next: u64,
}

law_state!(pub Steps, steps, steps_mut);

impl Delayed {
    /// Notes data of the sender that ends at `end`.
    pub(super) fn note_sent(&mut self, end: Seq) {
        if self.known == 0 || end.is_after(self.sent) {
            (self.known, self.sent) = (1, end);
        }
    }

    /// Returns the bytes that the sender has sent and that are not acknowledged beyond `tx`.
    pub(super) fn outstanding(&self, tx: Seq) -> u32 {
        match self.known {
            0 => 0,
            _ => self.sent.beyond(tx),
        }
    }
}

/// A turn, in units of a flow's credit.
pub(crate) const TURN: u32 = 1 << 16;

impl Steps {
    /// Returns the state of a flow that begins.
    pub fn begin() -> Steps {
        Steps { place: Place::NONE, acks: List::new().to_raw(), probe_end: Seq(0), probe_us: 0, own: [0; 3] }
    }

    fn counted(&self) -> &Counted {
        zerocopy::transmute_ref!(&self.own)
    }

    fn counted_mut(&mut self) -> &mut Counted {
        zerocopy::transmute_mut!(&mut self.own)
    }

    /// Returns the state of a flow whose ACKs have a time each.
    pub(crate) fn delayed(&self) -> &Delayed {
        zerocopy::transmute_ref!(&self.own)
    }

    /// See [`Steps::delayed`].
    pub(crate) fn delayed_mut(&mut self) -> &mut Delayed {
        zerocopy::transmute_mut!(&mut self.own)
    }

    /// Gives the flow a part of a turn, of [`TURN`], unless it has a right to one already. Returns whether it
    /// had. With turns by the class's clock, whose flows have a guarantee.
    pub(crate) fn earn(&mut self, part: u32) -> bool {
        let own: &mut Parted = zerocopy::transmute_mut!(&mut self.own);
        let has = own.credit > 0;
        own.credit += if has { 0 } else { part.into() };
        has
    }

    /// Takes `turns` from those that [`Steps::earn`] has given.
    pub(crate) fn spend(&mut self, turns: u32) {
        let own: &mut Parted = zerocopy::transmute_mut!(&mut self.own);
        own.credit -= i64::from(turns) * i64::from(TURN);
    }

    /// Forgets the data that the flow has sent: it was lost with its queues.
    pub(crate) fn forget_data(&mut self) {
        self.set_packets(0, 0);
    }

    /// Returns the count of departures at which the flow's turn comes.
    pub(crate) fn due(&self) -> u32 {
        self.counted().due
    }

    /// See [`Steps::due`].
    pub(crate) fn set_due(&mut self, due: u32) {
        self.counted_mut().due = due;
    }

    /// Returns the queue of ACKs of a flow with [`flag::QUEUED`](crate::flow::flag::QUEUED). To be put back
    /// with [`Steps::set_acks`].
    pub(crate) fn acks(&self) -> List {
        List::from_raw(self.acks)
    }

    /// Puts back the queue of ACKs, see [`Steps::acks`].
    pub(crate) fn set_acks(&mut self, acks: &List) {
        self.acks = acks.to_raw();
    }

    /// Returns the number of queued ACKs.
    #[inline]
    pub fn waiting_acks(&self) -> u32 {
        self.acks[2]
    }

    /// Returns the number of packets of the flow's data. With turns by departures these are the packets in
    /// the queue of its class. With turns by a clock they are the packets that arrived and have not been
    /// answered by a turn. `of` is the generation of the count, which changes with the queues: a count of
    /// another generation is 0.
    pub fn packets(&self, of: u16) -> u32 {
        let counted = self.counted();
        if counted.queues == of {
            counted.packets.into()
        } else {
            0
        }
    }

    /// Counts packets of the flow's data that have come to its class's one queue.
    pub(super) fn count(&mut self, queues: u16, packets: u32) {
        self.set_packets(queues, self.packets(queues) + packets);
    }

    /// Skips a turn if more packets have come than the last one was for: it answers one of them.
    pub(super) fn skip(&mut self, queues: u16) -> bool {
        let skips = self.is_ahead(queues);
        if skips {
            self.set_packets(queues, self.packets(queues) - 1);
        }
        skips
    }

    /// Returns whether more packets have come than the last turn was for.
    pub(super) fn is_ahead(&self, queues: u16) -> bool {
        self.packets(queues) > self.counted().expected.max(1)
    }

    /// Notes a turn that has released ACKs for `used` packets. It answers those that the turn before was for.
    pub(super) fn answer(&mut self, queues: u16, used: u32) {
        let came = self.packets(queues).saturating_sub(self.counted().expected.max(1));
        self.set_packets(queues, came);
        self.counted_mut().expected = used;
    }

    /// Sets the count of [`Steps::packets`].
    pub fn set_packets(&mut self, of: u16, packets: u32) {
        let counted = self.counted_mut();
        (counted.queues, counted.packets) = (of, packets.min(u16::MAX.into()) as u16);
    }

    /// Notes that the flow was granted `bytes` at `now`.
    pub fn note_grant(&mut self, bytes: u32, now: Time) {
        let counted = self.counted_mut();
        (counted.granted, counted.granted_at) = (bytes, now.as_nanos());
    }

    /// Returns the bytes of the last grant, and its time.
    pub fn last_grant(&self) -> (u32, Time) {
        let counted = self.counted();
        (counted.granted, Time::from_nanos(counted.granted_at))
    }

    /// Returns the end of a segment of data on its way, if one measures the WAN's delay: that is the time
    /// until its acknowledgement.
    pub fn probe(&self) -> Option<Seq> {
        (self.probe_us != 0).then_some(self.probe_end)
    }

    /// Measures the delay by a segment that ends at `end` and was seen at `at`. Times wrap after 71 minutes.
    pub fn set_probe(&mut self, end: Seq, at: Time) {
        (self.probe_end, self.probe_us) = (end, micros(at));
    }

    /// Returns whether the probe has been on its way for longer than this. Its segment was lost, or none of
    /// the sender's.
    pub fn probe_is_older(&self, than: Duration, now: Time) -> bool {
        self.probe_us != 0 && Duration::from_micros(micros(now).wrapping_sub(self.probe_us).into()) > than
    }

    /// Clears the probe: no segment on its way measures the delay.
    pub fn end_probe(&mut self) {
        (self.probe_end, self.probe_us) = (Seq(0), 0);
    }

    /// Ends the probe, acknowledged at `now`, and returns the time it took.
    pub fn probed(&mut self, now: Time) -> Option<Duration> {
        let at = core::mem::take(&mut self.probe_us);
        (at != 0).then(|| Duration::from_micros(u64::from(micros(now).wrapping_sub(at))))
    }
}

/// Returns the low 32 bits of the time in microseconds, never 0.
fn micros(t: Time) -> u32 {
    ((t.as_nanos() / 1_000) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_other_queues_is_none() {
        let mut steps = Steps::begin();
        steps.set_packets(9, 5);
        assert_eq!((steps.packets(9), steps.packets(10)), (5, 0));
        steps.set_packets(9, 1 << 20);
        assert_eq!(steps.packets(9), 0xffff);
    }

    #[test]
    fn a_flow_with_half_turns_has_every_second_one() {
        let mut steps = Steps::begin();
        let had: Vec<bool> = (0..6)
            .map(|_| {
                let has = steps.earn(TURN / 2);
                if has {
                    steps.spend(1);
                }
                has
            })
            .collect();
        assert_eq!(had, [false, true, false, false, true, false]);
    }

    #[test]
    fn a_probe_measures_once() {
        let mut steps = Steps::begin();
        steps.set_probe(Seq(0xffff_0000), Time::from_micros(1_000));
        assert_eq!(steps.probe(), Some(Seq(0xffff_0000)));
        assert_eq!(steps.probed(Time::from_micros(51_000)), Some(Duration::from_millis(50)));
        assert_eq!((steps.probe(), steps.probed(Time::from_secs(1))), (None, None));
    }
}
