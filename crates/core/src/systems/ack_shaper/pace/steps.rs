//! State of a flow whose turns are ACKs ([`Turns`](crate::ack::Turns)). It is kept in fields of [`Pace`] that
//! a flow with its own rate, or with turns of bytes, uses otherwise.

use super::Pace;
use crate::frame::List;
use crate::systems::class_rate::Turn;
use crate::time::{Duration, Time};

/// Most packets of data that are counted.
const MOST: u32 = 0xffff;

impl Pace {
    /// Returns the queue of ACKs of a flow with [`flag::QUEUED`](crate::flow::flag::QUEUED). To be put back
    /// with [`Pace::set_acks`].
    pub(crate) fn acks(&self) -> List {
        List::from_raw([self.mark as u32, (self.mark >> 32) as u32, self.period])
    }

    /// Puts back the queue of ACKs, see [`Pace::acks`].
    pub(crate) fn set_acks(&mut self, acks: &List) {
        let [first, last, len] = acks.to_raw();
        (self.mark, self.period) = (u64::from(last) << 32 | u64::from(first), len);
    }

    /// Returns the number of queued ACKs.
    #[inline]
    pub fn waiting_acks(&self) -> u32 {
        self.period
    }

    /// Returns the number of packets of the flow's data. With turns by departures these are the packets in
    /// the queue of its class. With turns by a clock they are the packets that arrived and have not been
    /// answered by a turn. `of` is the generation of the count, which changes with the queues: a count of
    /// another generation is 0.
    pub fn packets(&self, of: u16) -> u32 {
        if self.credit >> 16 == u32::from(of) {
            self.credit & MOST
        } else {
            0
        }
    }

    /// Sets the count of [`Pace::packets`].
    pub fn set_packets(&mut self, of: u16, packets: u32) {
        self.credit = u32::from(of) << 16 | packets.min(MOST);
    }

    /// Notes that the flow, which takes no turns now, was granted `bytes` at `now`. The fields of its place
    /// among the flows that take turns are free for this.
    pub fn note_step_grant(&mut self, bytes: u32, now: Time) {
        let at = now.as_nanos();
        self.set_turn(Turn {
            deficit: bytes as i32,
            next: at as u32,
            prev: (at >> 32) as u32,
            ..self.turn()
        });
    }

    /// Returns the bytes of the last grant, and its time.
    pub fn step_grant(&self) -> (u32, Time) {
        let turn = self.turn();
        (turn.deficit as u32, Time::from_nanos(u64::from(turn.prev) << 32 | u64::from(turn.next)))
    }

    /// Returns the end of a segment of data on its way, and the time at which it was seen. The time until its
    /// acknowledgement is the WAN's delay.
    pub fn probe(&self) -> Option<(u32, Time)> {
        let (end, us) = ((self.due >> 32) as u32, self.due as u32);
        (us != 0).then(|| (end, Time::from_micros(us.into())))
    }

    /// Sets the probe of [`Pace::probe`]. Times wrap after 71 minutes.
    pub fn set_probe(&mut self, end: u32, at: Time) {
        self.due = u64::from(end) << 32 | u64::from(micros(at));
    }

    /// Clears the probe: no segment on its way measures the delay.
    pub fn end_probe(&mut self) {
        self.due = 0;
    }

    /// Ends the probe, acknowledged at `now`, and returns the time it took.
    pub fn probed(&mut self, now: Time) -> Option<Duration> {
        let (_, at) = self.probe()?;
        self.end_probe();
        Some(Duration::from_micros(u64::from(micros(now).wrapping_sub(micros(at)))))
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
