//! Results of one flow, in 32 bytes that belong to the gateway alone.

use super::sight::Answer;
use super::LONGEST;
use crate::base::smooth;
use zerocopy::FromZeros;

/// Side of a flow, as seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From here to the receiver of the data and back.
    Receiver,
    /// From here to the sender of the data and back.
    Sender,
}

/// Round-trip time of a side, in [`units`](super::units).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromZeros)]
pub struct Rtt {
    /// The least; 0: none was measured.
    pub min: u32,
    /// Average with the gain of a sender's (RFC 6298 section 2.3).
    pub smoothed: u32,
    /// The last.
    pub last: u32,
}

/// Unit of short times: 2^16 ns, of which 16 bits hold four seconds.
const SHORT: u32 = 6;

/// Results of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromZeros)]
#[repr(C)]
pub struct FlowQuality {
    sides: [Rtt; 2],
    held: u16,
    set_up: u16,
    zero_windows: u16,
    spare: u16,
}

impl Rtt {
    fn note(&mut self, time: u32) {
        let time = time.clamp(1, LONGEST);
        self.min = if self.min == 0 { time } else { self.min.min(time) };
        (self.smoothed, self.last) = (smooth::eighth(self.smoothed, time.into()), time);
    }
}

fn short(time: u32) -> u16 {
    (time >> SHORT).min(0xffff) as u16
}

impl FlowQuality {
    /// Round-trip time of a side.
    pub fn rtt(&self, side: Side) -> Rtt {
        self.sides[side as usize]
    }

    /// Time for which the ACK measured last was held, in [`units`](super::units).
    pub fn held(&self) -> u32 {
        u32::from(self.held) << SHORT
    }

    /// Time from the SYN to the end of the handshake, as far as it was seen, in [`units`](super::units); 0:
    /// it was not.
    pub fn set_up(&self) -> u32 {
        u32::from(self.set_up) << SHORT
    }

    /// Times that the receiver closed its window.
    pub fn zero_windows(&self) -> u16 {
        self.zero_windows
    }

    pub(crate) fn note_zero_window(&mut self) {
        self.zero_windows = self.zero_windows.saturating_add(1);
    }

    pub(crate) fn note_set_up(&mut self, time: u32) {
        self.set_up = short(time).max(1);
    }

    pub(crate) fn note(&mut self, side: Side, time: u32) {
        self.sides[side as usize].note(time);
    }

    pub(crate) fn note_answer(&mut self, answer: &Answer) {
        if let Some(held) = answer.held {
            self.held = short(held);
        }
        let sides = [(Side::Receiver, answer.receiver), (Side::Sender, answer.sender)];
        sides.into_iter().filter_map(|(side, time)| Some((side, time?))).for_each(|(s, t)| self.note(s, t));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_has_the_gain_of_a_senders() {
        let mut quality = FlowQuality::default();
        [80_000, 40_000, 48_000].into_iter().for_each(|time| quality.note(Side::Sender, time));
        // 80, then 7/8 of it and 1/8 of 40, then 7/8 of 75 and 1/8 of 48.
        assert_eq!(quality.rtt(Side::Sender), Rtt { min: 40_000, smoothed: 71_625, last: 48_000 });
        assert_eq!(quality.rtt(Side::Receiver), Rtt::default());
    }

    #[test]
    fn no_time_is_longer_than_four_seconds() {
        let mut quality = FlowQuality::default();
        quality.note(Side::Receiver, u32::MAX);
        quality.note_answer(&Answer { held: Some(u32::MAX), ..Answer::default() });
        quality.note_set_up(u32::MAX);
        let most = quality.rtt(Side::Receiver).last;
        assert_eq!((most, quality.held(), quality.set_up()), (LONGEST, 0xffff << 6, 0xffff << 6));
    }
}
