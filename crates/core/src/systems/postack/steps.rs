//! State of a flow whose turns are ACKs ([`Scheme`](super::Scheme)).

use crate::flow::{law_state, Place, Record};
use crate::frame::List;
use crate::time::{Duration, Time};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// State of a flow whose turns are ACKs.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub struct Steps {
    place: Place,
    /// Packets of the flow's data, see [`Steps::packets`], and the queues that they are in.
    packets: u16,
    queues: u16,
    /// Queued ACKs, a [`List`].
    acks: [u32; 3],
    /// Count of departures at which its turn comes. With turns by departures.
    pub due: u32,
    /// Packets that the last turn was for. With turns by packets.
    expected: u32,
    /// End of a segment on its way, and the time at which it was seen, in microseconds; 0 without one.
    probe_end: u32,
    probe_us: u32,
    /// Bytes of the last grant, and its time.
    granted: u32,
    granted_at: u64,
}

law_state!(pub Steps, steps, steps_mut);

impl Steps {
    /// Returns the state of a flow that begins.
    pub fn begin() -> Steps {
        Steps {
            place: Place::NONE,
            packets: 0,
            queues: 0,
            acks: List::new().to_raw(),
            due: 0,
            expected: 0,
            probe_end: 0,
            probe_us: 0,
            granted: 0,
            granted_at: 0,
        }
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
        if self.queues == of {
            self.packets.into()
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
        self.packets(queues) > self.expected.max(1)
    }

    /// Notes a turn that has released ACKs for `used` packets. It answers those that the turn before was for.
    pub(super) fn answer(&mut self, queues: u16, used: u32) {
        let came = self.packets(queues).saturating_sub(self.expected.max(1));
        self.set_packets(queues, came);
        self.expected = used;
    }

    /// Sets the count of [`Steps::packets`].
    pub fn set_packets(&mut self, of: u16, packets: u32) {
        (self.queues, self.packets) = (of, packets.min(u16::MAX.into()) as u16);
    }

    /// Notes that the flow was granted `bytes` at `now`.
    pub fn note_grant(&mut self, bytes: u32, now: Time) {
        (self.granted, self.granted_at) = (bytes, now.as_nanos());
    }

    /// Returns the bytes of the last grant, and its time.
    pub fn last_grant(&self) -> (u32, Time) {
        (self.granted, Time::from_nanos(self.granted_at))
    }

    /// Returns the end of a segment of data on its way, if one measures the WAN's delay: that is the time
    /// until its acknowledgement.
    pub fn probe(&self) -> Option<u32> {
        (self.probe_us != 0).then_some(self.probe_end)
    }

    /// Measures the delay by a segment that ends at `end` and was seen at `at`. Times wrap after 71 minutes.
    pub fn set_probe(&mut self, end: u32, at: Time) {
        (self.probe_end, self.probe_us) = (end, micros(at));
    }

    /// Clears the probe: no segment on its way measures the delay.
    pub fn end_probe(&mut self) {
        (self.probe_end, self.probe_us) = (0, 0);
    }

    /// Ends the probe, acknowledged at `now`, and returns the time it took.
    pub fn probed(&mut self, now: Time) -> Option<Duration> {
        let at = core::mem::take(&mut self.probe_us);
        (at != 0).then(|| Duration::from_micros(u64::from(micros(now).wrapping_sub(at))))
    }
}

impl Record {
    /// Returns whether anything is held: bytes, or queued ACKs.
    #[inline]
    pub fn holds(&self) -> bool {
        self.held() > 0 || self.queues_acks() && self.law.steps().waiting_acks() > 0
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
    fn a_probe_measures_once() {
        let mut steps = Steps::begin();
        steps.set_probe(0xffff_0000, Time::from_micros(1_000));
        assert_eq!(steps.probe(), Some(0xffff_0000));
        assert_eq!(steps.probed(Time::from_micros(51_000)), Some(Duration::from_millis(50)));
        assert_eq!((steps.probe(), steps.probed(Time::from_secs(1))), (None, None));
    }
}
