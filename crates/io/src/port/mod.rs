//! Ports: network interfaces that frames enter and leave by, over AF_XDP.
//!
//! All ports of an engine share one UMEM, which is the pool of the core: a frame that comes in on
//! one port goes out on another without being copied. A port that is only transmitted on (the data
//! port of ACK steering) has no XDP program and no receive ring: attaching one would turn the
//! peer's segmentation offload off on virtual devices.
//!
//! Every receive queue of a device has a socket; frames go out on the first queue, which keeps
//! their order.

mod pool;
mod queue;
pub mod ring;

pub use pool::{open, Opened, PoolConfig, PortSpec};

use crate::sys::link;
use crate::sys::xsk::Losses;
use queue::{Kick, Queue};
use std::io;
use std::os::fd::BorrowedFd;
use weir_core::frame::{Checksum, Frame, Frames};
use weir_core::stats::DropReason;
use weir_core::time::Time;

/// Bytes that the kernel keeps free in front of a frame (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;

/// Ethernet header and two VLAN tags.
const LINK_HEADERS: usize = 14 + 8;

/// Longest frame that fits a chunk.
pub const fn max_frame(chunk_size: usize) -> usize {
    chunk_size - HEADROOM
}

/// Size of chunks that frames of this MTU fit into, `None` if they fit none.
pub const fn chunk_size(mtu: usize) -> Option<usize> {
    match mtu + LINK_HEADERS {
        len if len <= max_frame(2048) => Some(2048),
        len if len <= max_frame(4096) => Some(4096),
        _ => None,
    }
}

/// What went through a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Frames received.
    pub received: u64,
    /// Bytes of them.
    pub received_bytes: u64,
    /// Of them, frames without a stamp of the XDP program: stamped when they were read.
    pub unstamped: u64,
    /// Frames handed to the device.
    pub sent: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
    /// Checksums computed in full before a frame left.
    pub completed_checksums: u64,
    /// System calls to send.
    pub kicks: u64,
    /// Frames that the kernel could not deliver to the sockets.
    pub lost: Losses,
}

/// An interface, opened.
#[derive(Debug)]
pub struct Port {
    name: String,
    ifindex: u32,
    queues: Vec<Queue>,
    chunk_size: usize,
    max_len: usize,
    copies: bool,
    down: bool,
    stats: PortStats,
}

impl Port {
    /// Name of the interface.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Does the interface refuse frames now?
    pub fn is_down(&self) -> bool {
        self.down
    }
    /// Descriptors that are readable when frames have arrived.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.queues.iter().filter(|q| q.receives()).map(Queue::descriptor)
    }

    /// What went through so far.
    pub fn stats(&self) -> PortStats {
        let mut stats = self.stats;
        for queue in &self.queues {
            let lost = queue.losses();
            stats.lost.dropped += lost.dropped;
            stats.lost.ring_full += lost.ring_full;
            stats.lost.fill_empty += lost.fill_empty;
            stats.lost.invalid += lost.invalid;
        }
        stats
    }

    /// Takes at most `limit` frames of every queue, and gives the kernel new chunks to receive
    /// into. Frames without a stamp get `now`.
    pub fn receive(&mut self, frames: &mut Frames, limit: usize, now: Time, out: &mut Vec<Frame>) {
        for queue in self.queues.iter_mut().filter(|q| q.receives()) {
            let before = out.len();
            self.stats.unstamped += queue.receive(frames, limit, now, out);
            for frame in &out[before..] {
                self.stats.received += 1;
                self.stats.received_bytes += frame.len() as u64;
            }
            queue.refill(frames);
        }
    }

    /// Frames that can be handed to [`Port::transmit`] now. A port that is down takes any number:
    /// it drops them.
    pub fn room(&mut self) -> usize {
        if self.down {
            return usize::MAX;
        }
        self.queues[0].room()
    }

    /// Hands a frame to the device; it leaves with the next [`Port::flush`]. The caller has seen
    /// [`Port::room`].
    pub fn transmit(&mut self, frames: &mut Frames, frame: Frame) {
        if self.down {
            return frames.drop(frame, DropReason::PortDown);
        }
        // A frame whose payload is elsewhere cannot leave by a real port.
        if frame.len() > self.max_len || frame.len() != frame.head_len() {
            return frames.drop(frame, DropReason::TooLong);
        }
        if frame.checksum == Checksum::Partial {
            let len = frame.len();
            let done = weir_core::wire::checksum::complete(frames.bytes_mut(&frame), len);
            self.stats.completed_checksums += u64::from(done);
        }
        let addr = (frame.chunk() as usize * self.chunk_size + frame.offset()) as u64;
        if !self.queues[0].push(addr, frame.len() as u32) {
            return frames.drop(frame, DropReason::QueueFull);
        }
        self.stats.sent += 1;
        self.stats.sent_bytes += frame.len() as u64;
    }

    /// Has the device send what was handed over, and takes back the chunks it has sent. What a
    /// device that went down has not sent is dropped. True if the device is full and some wait.
    ///
    /// Fails only if the interface is gone.
    pub fn flush(&mut self, frames: &mut Frames) -> io::Result<bool> {
        self.queues[0].reclaim(frames);
        if self.down || !self.queues[0].has_pending() {
            return Ok(false);
        }
        let kick = self.queues[0].kick(frames, &mut self.stats.kicks);
        self.after(kick, frames)?;
        Ok(kick == Kick::Later && self.queues[0].has_pending())
    }

    /// Looks whether an interface that was down is up again, and whether it still exists. Called
    /// every now and then.
    pub fn check(&mut self, frames: &mut Frames) -> io::Result<()> {
        if !self.down {
            return Ok(());
        }
        let kick = self.queues[0].probe();
        if kick == Kick::Done {
            tracing::info!(port = self.name, "the interface is up again");
            self.down = false;
        }
        self.after(kick, frames)
    }

    /// The socket reports an error: find out whether the interface is gone.
    pub fn failed(&mut self, frames: &mut Frames) -> io::Result<()> {
        self.after(Kick::Down, frames)
    }

    fn after(&mut self, kick: Kick, frames: &mut Frames) -> io::Result<()> {
        if kick != Kick::Down {
            return Ok(());
        }
        if !link::exists(self.ifindex) {
            let message = format!("interface {} has been removed", self.name);
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        if !self.down {
            tracing::warn!(port = self.name, "the interface is down: frames for it are dropped");
            self.down = true;
        }
        if self.copies {
            let unsent = self.queues[0].take_back(frames, self.chunk_size);
            self.stats.sent -= unsent.0;
            self.stats.sent_bytes -= unsent.1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_fit_the_mtu() {
        assert_eq!(chunk_size(1500), Some(2048));
        assert_eq!(chunk_size(1770), Some(2048));
        assert_eq!(chunk_size(1771), Some(4096));
        assert_eq!(chunk_size(9000), None);
    }
}
