//! Sources of frames.

use super::{InputStats, Packets, RING_HEAD};
use crate::bpf::{Fate, Hook, Metadata, Segments};
use crate::sys::pod::bytes_of;
use std::os::fd::{AsFd, BorrowedFd};
use weir_core::frame::{Frame, Frames};
use weir_core::gateway::{LAN, LAN_SET_BACK, LAN_TAP, WAN, WAN_SET_BACK, WAN_TAP};
use weir_core::node::Port;
use weir_core::time::Time;

/// Records taken from the ring in one round.
const RECORDS: usize = 1024;

/// A source of frames.
#[derive(Debug)]
pub enum Input {
    /// Segments that the programs of `acks` steering took or copied.
    Ring(Segments),
    /// Whole frames.
    Packets(Packets),
}

impl Input {
    /// Puts the frames that have come into `inbox`. Returns their number.
    pub fn receive(
        &mut self,
        frames: &mut Frames,
        limit: usize,
        now: Time,
        inbox: &mut Vec<(Time, Port, Frame)>,
    ) -> usize {
        let before = inbox.len();
        match self {
            Input::Ring(ring) => take(ring, frames, inbox),
            Input::Packets(packets) => {
                // An interface that goes down or away causes one error. The watch on interfaces reports it
                // better.
                if let Err(error) = packets.receive(frames, limit, now, inbox) {
                    tracing::debug!("receiving: {error}");
                }
            }
        }
        inbox.len() - before
    }

    /// Frames that have come for the node's `port` so far, if they come by a packet socket and none waits
    /// there.
    pub fn came(&self, port: Port) -> Option<u64> {
        match self {
            Input::Packets(packets) => packets.came(port),
            Input::Ring(_) => None,
        }
    }

    /// Sets whether giant segments come in as single packets or whole, from now on.
    pub fn set_split(&mut self, split: bool) {
        if let Input::Packets(packets) = self {
            packets.set_split(split);
        }
    }

    /// Counters of packet sockets; `None` for a ring.
    pub fn stats(&mut self) -> Option<InputStats> {
        match self {
            Input::Ring(_) => None,
            Input::Packets(packets) => Some(packets.stats()),
        }
    }
}

/// Returns the node's port for a segment. A segment that leaves by the interface came from the LAN.
fn port(hook: Hook, fate: Fate) -> Port {
    match (hook, fate) {
        (Hook::Egress, Fate::Taken) => LAN,
        (Hook::Egress, Fate::Passed) => LAN_TAP,
        (Hook::Egress, Fate::SetBack) => LAN_SET_BACK,
        (Hook::Ingress, Fate::Taken) => WAN,
        (Hook::Ingress, Fate::Passed) => WAN_TAP,
        (Hook::Ingress, Fate::SetBack) => WAN_SET_BACK,
    }
}

fn take(ring: &mut Segments, frames: &mut Frames, inbox: &mut Vec<(Time, Port, Frame)>) {
    // Segments without a free chunk stay in the ring. When it is full, segments pass.
    let most = RECORDS.min(frames.free_chunks().saturating_sub(frames.reserve()));
    ring.drain(most, |segment| {
        let frame = match &segment.metadata {
            None => frames.receive_copy(segment.head, segment.len, segment.seen),
            Some(metadata) => {
                let mut before = [0; RING_HEAD];
                before[..Metadata::LEN].copy_from_slice(bytes_of(metadata));
                frames.receive_copy_behind(&before, segment.head, segment.len, segment.seen)
            }
        };
        if let Some(mut frame) = frame {
            (frame.gso_size, frame.restamp) = (segment.gso_size, segment.counted);
            inbox.push((segment.time, port(segment.hook, segment.fate), frame));
        }
    });
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Input::Ring(ring) => ring.as_fd(),
            Input::Packets(packets) => packets.as_fd(),
        }
    }
}
