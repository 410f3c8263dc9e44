//! Where frames come from.

use super::Packets;
use crate::bpf::{Fate, Ring};
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
    Ring(Ring),
    /// Whole frames.
    Packets(Packets),
}

impl Input {
    /// Puts what has come into `inbox`. Returns how much that was.
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
                // An interface that goes down or away says so once: whoever watches it knows more.
                if let Err(error) = packets.receive(frames, limit, now, inbox) {
                    tracing::debug!("receiving: {error}");
                }
            }
        }
        inbox.len() - before
    }
}

/// The node's port for a segment that came from `side` (0: LAN), by what became of it.
fn port(side: u8, fate: Fate) -> Port {
    let ports = match fate {
        Fate::Taken => [LAN, WAN],
        Fate::Passed => [LAN_TAP, WAN_TAP],
        Fate::SetBack => [LAN_SET_BACK, WAN_SET_BACK],
    };
    ports[usize::from(side != 0)]
}

fn take(ring: &mut Ring, frames: &mut Frames, inbox: &mut Vec<(Time, Port, Frame)>) {
    for _ in 0..RECORDS {
        // What finds no chunk stays in the ring: when that is full, segments pass.
        if frames.free_chunks() <= frames.reserve() {
            return;
        }
        let Some(segment) = ring.next() else { return };
        let at = Time::from_nanos(segment.time);
        let len = segment.len as usize;
        if let Some(mut frame) = frames.receive_copy(segment.head(), len, at) {
            frame.gso_size = segment.gso_size;
            inbox.push((at, port(segment.port, segment.fate()), frame));
        }
    }
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Input::Ring(ring) => ring.as_fd(),
            Input::Packets(packets) => packets.as_fd(),
        }
    }
}
