//! What is kept of a flow whose turns are of ACKs ([`Turns`](crate::ack::Turns)), in the fields of a [`Pace`] that a flow with a rate of
//! its own, or with turns of bytes, uses for those.

use super::Pace;
use crate::ack::Turn;
use crate::frame::List;
use crate::time::{Duration, Time};

/// Packets of data that are counted at most.
const MOST: u32 = 0xffff;

impl Pace {
    /// The ACKs that wait, of a flow with [`flag::QUEUED`](crate::flow::flag::QUEUED). To be put back with [`Pace::set_acks`].
    pub(crate) fn acks(&self) -> List {
        List::from_raw([self.mark as u32, (self.mark >> 32) as u32, self.period])
    }

    /// See [`Pace::acks`].
    pub(crate) fn set_acks(&mut self, acks: &List) {
        let [first, last, len] = acks.to_raw();
        (self.mark, self.period) = (u64::from(last) << 32 | u64::from(first), len);
    }

    /// How many ACKs wait.
    #[inline]
    pub fn waiting_acks(&self) -> u32 {
        self.period
    }

    /// Packets of the flow's data: those that wait in the queue of its class, with turns by departures; those that came and were not
    /// answered by a turn, with turns by a clock. They are as many as `of` counts, which is another one whenever the queues are.
    pub fn packets(&self, of: u16) -> u32 {
        if self.credit >> 16 == u32::from(of) {
            self.credit & MOST
        } else {
            0
        }
    }

    /// See [`Pace::packets`].
    pub fn set_packets(&mut self, of: u16, packets: u32) {
        self.credit = u32::from(of) << 16 | packets.min(MOST);
    }

    /// The flow, which takes no turns now, was granted so many bytes at `now`: kept where its place among those that do would be.
    pub fn note_step_grant(&mut self, bytes: u32, now: Time) {
        let at = now.as_nanos();
        self.set_turn(Turn {
            deficit: bytes as i32,
            next: at as u32,
            prev: (at >> 32) as u32,
            ..self.turn()
        });
    }

    /// The bytes of its last grant, and when that was made.
    pub fn step_grant(&self) -> (u32, Time) {
        let turn = self.turn();
        (turn.deficit as u32, Time::from_nanos(u64::from(turn.prev) << 32 | u64::from(turn.next)))
    }

    /// The end of a segment of data on its way, and when it was seen: the WAN's delay is what an acknowledgement of it takes from then on.
    pub fn probe(&self) -> Option<(u32, Time)> {
        let (end, us) = ((self.due >> 32) as u32, self.due as u32);
        (us != 0).then(|| (end, Time::from_micros(us.into())))
    }

    /// See [`Pace::probe`]. Times wrap after 71 minutes.
    pub fn set_probe(&mut self, end: u32, at: Time) {
        self.due = u64::from(end) << 32 | u64::from(micros(at));
    }

    /// No segment is on its way whose acknowledgement would tell the delay.
    pub fn end_probe(&mut self) {
        self.due = 0;
    }

    /// The probe was acknowledged `now`: how long that took.
    pub fn probed(&mut self, now: Time) -> Option<Duration> {
        let (_, at) = self.probe()?;
        self.end_probe();
        Some(Duration::from_micros(u64::from(micros(now).wrapping_sub(micros(at)))))
    }
}

/// The low 32 bits of the time in microseconds, never 0.
fn micros(t: Time) -> u32 {
    ((t.as_nanos() / 1_000) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_packets_and_probes_are_kept_apart() {
        let mut pace = Pace::default();
        pace.set_acks(&List::from_raw([7, 0xffff_fff0, 3]));
        pace.set_packets(9, 5);
        pace.set_probe(0xffff_0000, Time::from_micros(1_000));
        assert_eq!((pace.acks().to_raw(), pace.waiting_acks()), ([7, 0xffff_fff0, 3], 3));
        assert_eq!((pace.packets(9), pace.packets(10)), (5, 0), "of other queues");
        assert_eq!(pace.probe(), Some((0xffff_0000, Time::from_micros(1_000))));
        assert_eq!(pace.probed(Time::from_micros(51_000)), Some(Duration::from_millis(50)));
        assert_eq!((pace.probe(), pace.probed(Time::from_secs(1))), (None, None));
        pace.note_step_grant(1 << 30, Time::from_secs(5));
        assert_eq!(
            (pace.step_grant(), pace.packets(9), pace.waiting_acks()),
            ((1 << 30, Time::from_secs(5)), 5, 3)
        );
        pace.set_packets(9, 1 << 20);
        assert_eq!(pace.packets(9), 0xffff);
    }
}
