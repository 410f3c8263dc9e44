//! Frames from a driver's node on their way to the exits.

use super::{Egress, Lateness};
use crate::port::{Exit, ExitStats};
use crate::sys::clock;
use weir_core::frame::Frames;
use weir_core::gateway::{LAN, WAN};
use weir_core::node::{Port, PortSet, Transmit};
use weir_core::stats::DropReason;
use weir_core::time::Time;

/// Frames handed over before the kernel is asked to send.
const FLUSH: usize = 64;

/// The exits, by port: LAN, WAN.
pub(super) struct Out {
    exits: [Exit; 2],
    unflushed: usize,
    lateness: Lateness,
}

impl Out {
    pub(super) fn new(exits: [Exit; 2]) -> Out {
        Out { exits, unflushed: 0, lateness: Lateness::default() }
    }

    /// Sends the frames handed over. Returns the time of the next attempt if some have to wait.
    pub(super) fn flush(&mut self, frames: &mut Frames, now: Time) -> Option<Time> {
        self.unflushed = 0;
        self.exits.iter_mut().filter_map(|exit| exit.flush(frames, now)).min()
    }

    /// Lets all ports send, whatever is known of their ways.
    pub(super) fn release(&mut self, frames: &mut Frames) {
        self.exits.iter_mut().for_each(|exit| exit.hold(frames, false));
    }

    /// The exit of a port. Panics if there is none.
    pub(super) fn exit(&self, port: Port) -> &Exit {
        &self.exits[port.0 as usize]
    }

    /// The exit of a port, for changes. Panics if there is none.
    pub(super) fn exit_mut(&mut self, port: Port) -> &mut Exit {
        &mut self.exits[port.0 as usize]
    }

    /// Frames handed over that no device has taken yet.
    pub(super) fn waiting(&self) -> usize {
        self.exits.iter().map(Exit::waiting).sum()
    }

    /// Lateness of frames when they were handed over.
    pub(super) fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    pub(super) fn stats(&self) -> [ExitStats; 2] {
        [self.exits[0].stats(), self.exits[1].stats()]
    }
}

impl Egress for Out {
    fn writable(&mut self) -> PortSet {
        let mut set = PortSet::NONE;
        for (exit, port) in self.exits.iter().zip([LAN, WAN]) {
            if exit.takes() {
                set = set.with(port);
            }
        }
        set
    }

    fn send(&mut self, frames: &mut Frames, transmit: Transmit) {
        let Some(exit) = self.exits.get_mut(transmit.port.0 as usize) else {
            return frames.drop(transmit.frame, DropReason::NotWired);
        };
        let now = clock::now();
        self.lateness.add(now.since(transmit.at));
        exit.push(frames, transmit.frame);
        self.unflushed += 1;
        if self.unflushed == FLUSH {
            self.flush(frames, now);
        }
    }
}
