//! Slots and frames: what a hook reads of a segment, and what it writes.

use super::{ticks, Seen, Stamp};
use crate::base::time::Time;
use crate::packet::frame::{Frame, Frames};
use crate::packet::wire::{self, Packet, Seq, Tcp, TcpOptions, Timestamps};

impl Seen {
    /// Reads the headers of a segment that is seen at `now`.
    pub fn of(tcp: &Tcp, options: &TcpOptions, now: Time) -> Seen {
        Seen {
            flags: tcp.flags.0 as u8,
            seq: tcp.seq,
            ack: tcp.ack,
            window: tcp.window,
            payload: tcp.payload_len,
            ts: options.timestamps.map(|t| t.value),
            sack: !options.sack.is_empty(),
            plain: tcp.header_len == 20 || options.only_timestamps,
            at: ticks(now),
        }
    }
}

/// Writes the fields of [`Action::SetBack`](super::Action::SetBack).
pub fn set_back(frames: &mut Frames, frame: &Frame, packet: &Packet, ack: Seq, window: u16) {
    let bytes = frames.bytes_mut(frame);
    wire::set_ack(bytes, packet, ack, frame.checksum);
    wire::set_window(bytes, packet, window, frame.checksum);
}

/// Writes the fields of [`Stamp::Send`]; false if the frame is not to leave.
pub fn restamp(frames: &mut Frames, frame: &Frame, packet: &Packet, tcp: &Tcp, stamp: Stamp) -> bool {
    let Stamp::Send { seq, ts, window } = stamp else { return false };
    let (state, bytes) = (frame.checksum, frames.bytes_mut(frame));
    wire::set_seq(bytes, packet, seq, state);
    wire::set_window(bytes, packet, window, state);
    if let Some(Timestamps { echo, .. }) =
        wire::tcp_options(bytes, packet, tcp).ok().and_then(|o| o.timestamps)
    {
        wire::set_timestamps(bytes, packet, tcp, Timestamps { value: ts, echo }, state);
    }
    true
}
