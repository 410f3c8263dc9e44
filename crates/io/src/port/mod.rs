//! Ports: entries and exits of frames.
//!
//! - [`Input`]s fill the driver's inbox. They are the ring that tc programs copy segments into (`acks`
//!   steering), or packet sockets that receive whole frames, giant segments included (`all` steering).
//! - [`Exit`]s send frames, one for the LAN and one for the WAN. Each uses up to two packet sockets, which
//!   the programs in the kernel tell apart by their cookies.
//!
//! A frame that a socket receives stays where the kernel wrote it, and is sent from there. A giant segment
//! lies in several chunks. It is sent with the kernel's notes on segmentation and checksum, which are kept in
//! front of it, as are its mark, priority, queue mapping and departure time ([`Metadata`]).

mod exit;
mod input;
mod packets;
mod places;
mod split;

pub use exit::{Exit, ExitSockets, ExitStats, Stuck};
pub use input::Input;
pub use packets::{InputStats, Packets};

use crate::bpf::Metadata;
use crate::sys::packet::Vnet;

/// Bytes of a chunk: a frame of 1500 bytes and two VLAN tags, and the data kept in front of it.
pub const CHUNK: usize = 2048;
/// Bytes of a chunk where only ACKs are taken: the headers of a segment, or an ACK that is made.
pub const ACK_CHUNK: usize = 256;
const _: () = assert!(crate::bpf::SEGMENT_HEAD <= ACK_CHUNK && weir_core::gateway::MAX_ACK_LEN <= ACK_CHUNK);
/// Offset of a frame in its first chunk. In front of it are its metadata, room for a tag, and the kernel's
/// notes on segmentation and checksum.
const HEAD: usize = 40;
const _: () = assert!(Metadata::LEN + packets::TAG + Vnet::LEN <= HEAD);
/// Bytes in front of a frame with metadata that came by a ring: the metadata and empty notes.
const RING_HEAD: usize = Metadata::LEN + Vnet::LEN;
const _: () = assert!(crate::bpf::SEGMENT_HEAD + RING_HEAD <= ACK_CHUNK);

/// Size of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Chunks of the pool.
    pub chunks: usize,
    /// Bytes of each chunk: [`CHUNK`], or [`ACK_CHUNK`] where frames come only by a ring.
    pub chunk: usize,
    /// Chunks kept for frames that the node makes.
    pub reserve: usize,
}

impl PoolConfig {
    /// A pool for whole frames.
    pub const fn of_frames(chunks: usize) -> PoolConfig {
        PoolConfig { chunks, chunk: CHUNK, reserve: 0 }
    }

    /// A pool for headers of segments and for ACKs that are made: 4 MiB.
    pub const ACKS: PoolConfig = PoolConfig { chunks: 16_384, chunk: ACK_CHUNK, reserve: 2048 };

    /// Bytes of all chunks.
    pub const fn bytes(&self) -> usize {
        self.chunks * self.chunk
    }
}
