//! Ports: where frames come in and go out.
//!
//! - [`Input`]s fill the driver's inbox: the ring that tc programs copy segments into (`acks` steering),
//!   or packet sockets that receive whole frames, giant segments included (`all` steering).
//! - [`Exit`]s send: one for the LAN and one for the WAN, each over up to two packet sockets, which the programs
//!   in the kernel tell apart by their cookies.
//!
//! A frame that is received by a socket lies where the kernel wrote it until it is sent from there. A giant
//! segment lies in several chunks, and is sent with the notes on segmentation and checksum that it came with, which
//! are kept in front of it. So are its mark, priority, queue mapping and departure time ([`Metadata`]).

mod exit;
mod input;
mod packets;
mod split;

pub use exit::{Exit, ExitSockets, ExitStats, Stuck};
pub use input::Input;
pub use packets::{InputStats, Packets};

use crate::bpf::Metadata;
use crate::sys::packet::Vnet;

/// Bytes of a chunk: a frame of 1500 bytes and two VLAN tags, and what is kept in front of it.
pub const CHUNK: usize = 2048;
/// Bytes of a chunk where ACKs alone are taken: the headers of a segment, or an ACK that is made.
pub const ACK_CHUNK: usize = 256;
const _: () = assert!(crate::bpf::SEGMENT_HEAD <= ACK_CHUNK && weir_core::gateway::MAX_ACK_LEN <= ACK_CHUNK);
/// Where a frame begins in its first chunk. In front of it are its metadata, room for a tag, and the kernel's
/// notes on segmentation and checksum.
const HEAD: usize = 40;
const _: () = assert!(Metadata::LEN + packets::TAG + Vnet::LEN <= HEAD);
/// What is in front of a frame that came by a ring, if it has metadata: these, and empty notes.
const RING_HEAD: usize = Metadata::LEN + Vnet::LEN;
const _: () = assert!(crate::bpf::SEGMENT_HEAD + RING_HEAD <= ACK_CHUNK);

/// Size of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Chunks of the pool.
    pub chunks: usize,
    /// Bytes of each: [`CHUNK`], or [`ACK_CHUNK`] where frames come by a ring alone.
    pub chunk: usize,
    /// Chunks kept for frames that the node makes.
    pub reserve: usize,
}

impl PoolConfig {
    /// For whole frames.
    pub const fn of_frames(chunks: usize) -> PoolConfig {
        PoolConfig { chunks, chunk: CHUNK, reserve: 0 }
    }

    /// For headers of segments, and ACKs that are made: 4 MiB.
    pub const ACKS: PoolConfig = PoolConfig { chunks: 16_384, chunk: ACK_CHUNK, reserve: 2048 };

    /// Bytes of all chunks.
    pub const fn bytes(&self) -> usize {
        self.chunks * self.chunk
    }
}
