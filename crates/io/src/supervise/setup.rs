//! The desired setup: interfaces, and the traffic that comes to user space.

use crate::bpf::AcksOptions;
use crate::port::PoolConfig;
use std::io;
use std::path::PathBuf;
use weir_core::time::Duration;

/// Position of Weir on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attach {
    /// On one interface, the one towards the WAN. Frames that come in on it come from the WAN, and frames
    /// that leave by it come from the LAN.
    Dev(String),
    /// Between two interfaces, which only Weir joins: a bump in the wire.
    Pair {
        /// Interface towards the LAN: port 0.
        lan: String,
        /// Interface towards the WAN: port 1.
        wan: String,
    },
}

impl Attach {
    /// Names of the interfaces.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Attach::Dev(dev) => vec![dev],
            Attach::Pair { lan, wan } => vec![lan, wan],
        }
    }
}

/// Traffic that comes to user space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steered {
    /// Only ACKs: data stays in the kernel.
    Acks(TakenAcks),
    /// All frames of a direction; between two interfaces, of both.
    All {
        /// True for frames that go out.
        out: bool,
        /// True for frames that come in.
        inward: bool,
    },
    /// ACKs, and all other frames of a direction, or those that [spill](TakenAcks::spill_out).
    Both {
        /// ACKs that are taken.
        acks: TakenAcks,
        /// True for all frames that go out.
        out: bool,
        /// True for all frames that come in.
        inward: bool,
    },
}

/// ACKs and handshakes that come to user space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenAcks {
    /// True if flows whose data goes out are shaped: their ACKs come in.
    pub out: bool,
    /// True if flows whose data comes in are shaped.
    pub inward: bool,
    /// True if the window in the SYN-ACK is sized, for flows whose data goes out.
    pub size_out: bool,
    /// True if the window in the SYN-ACK is sized, for flows whose data comes in.
    pub size_in: bool,
    /// True if of frames that go out only those are taken whose flows have spilled.
    pub spill_out: bool,
    /// True if of frames that come in only those are taken whose flows have spilled.
    pub spill_in: bool,
    /// True if everything passes as it came, and the engine only sees copies.
    pub observe: bool,
}

impl Steered {
    /// ACKs that are taken, if any are.
    pub const fn acks(&self) -> Option<TakenAcks> {
        match *self {
            Steered::Acks(acks) | Steered::Both { acks, .. } => Some(acks),
            Steered::All { .. } => None,
        }
    }

    /// Returns whether flows may spill.
    pub const fn spills(&self) -> bool {
        matches!(self.acks(), Some(TakenAcks { spill_out: true, .. } | TakenAcks { spill_in: true, .. }))
    }

    /// True for frames that go out and for frames that come in, if whole frames are taken.
    pub const fn frames(&self) -> Option<(bool, bool)> {
        match *self {
            Steered::All { out, inward } | Steered::Both { out, inward, .. } => Some((out, inward)),
            Steered::Acks(_) => None,
        }
    }
}

/// Setup of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Position on the host.
    pub attach: Attach,
    /// Traffic that comes to user space.
    pub steered: Steered,
    /// Time without a beat after which steered traffic bypasses the engine. Frames that wait in queues behind
    /// the control of ACKs do not bypass it before `FRAMES_STALE`.
    pub stale: Duration,
    /// Time without a beat after which the engine is killed and started again.
    pub hang: Duration,
    /// Number of engines, 1 to [`MOST_ENGINES`]. More than one only where nothing but ACKs is taken.
    pub engines: u32,
    /// Most flows of each engine that the kernel's programs know.
    pub flows: u32,
    /// Most classes of each engine whose traffic that ACKs cannot slow is counted.
    pub tallies: u32,
    /// Pool of each engine.
    pub pool: PoolConfig,
    /// Bytes of memory that all engines and their records take beside pools and the kernel's maps.
    pub node: u64,
    /// Longest wait for interfaces that do not exist yet; `None`: no wait.
    pub wait: Option<Duration>,
    /// True if a socket for requests to the running instance is opened.
    pub control: bool,
    /// Directory of root's for changes to the host and for locks.
    pub state: PathBuf,
}

/// Most engines of an instance: the list of sockets has room for theirs.
pub const MOST_ENGINES: u32 = 8;

/// Least and most flows that are remembered to pass: as many as may be controlled, in between.
const PASSING: [u32; 2] = [4_096, 65_536];

/// Default directory of the state.
pub const STATE: &str = "/run/weir";

/// Time without a beat after which whole frames bypass the engine. They overtake the frames that it has not
/// read, and an emulator does not emulate their path. So it may be late for longer on a busy machine.
pub const FRAMES_STALE: Duration = Duration::from_millis(200);

impl Setup {
    /// Returns the bytes of memory that are taken from the start on: by the maps of programs that take ACKs,
    /// and by engines.
    ///
    /// # Errors
    /// Fails if libbpf cannot read the programs.
    pub fn memory(&self) -> io::Result<u64> {
        let maps = self.steered.acks().map_or(Ok(0), |taken| self.acks(taken, true).memory())?;
        // A pool for frames grows as they come.
        let pool = if self.steered.frames().is_some() { 0 } else { self.pool.bytes() as u64 };
        Ok(maps + u64::from(self.engines) * pool + self.node)
    }

    /// Returns the options of the programs that take ACKs. `ethernet` says whether the interface has Ethernet
    /// headers.
    pub(super) fn acks(&self, taken: TakenAcks, ethernet: bool) -> AcksOptions {
        let flows = self.flows.saturating_mul(self.engines);
        AcksOptions {
            stale: self.stale,
            ethernet,
            shape_in: taken.out,
            shape_out: taken.inward,
            // The SYN-ACK comes the same way as the ACKs.
            size_in: taken.size_out,
            size_out: taken.size_in,
            spills: taken.spill_out || taken.spill_in,
            observe: taken.observe,
            tallies: self.tallies,
            engines: self.engines,
            passing: flows.clamp(PASSING[0], PASSING[1]),
            ..AcksOptions::new(self.flows)
        }
    }

    /// Creates a setup with defaults for everything else.
    pub fn new(attach: Attach, steered: Steered) -> Setup {
        Setup {
            attach,
            steered,
            stale: match steered {
                // Less than the shortest time-out of senders (Linux: 200 ms).
                Steered::Acks(_) | Steered::Both { .. } => Duration::from_millis(50),
                Steered::All { .. } => FRAMES_STALE,
            },
            hang: match steered {
                // By then everything has passed for 30 ms. Only the held ACKs remain to be sent.
                Steered::Acks(_) => Duration::from_millis(80),
                // What the engine holds would be lost without a substitute.
                Steered::All { .. } | Steered::Both { .. } => Duration::from_secs(2),
            },
            engines: 1,
            flows: 65_536,
            tallies: 1024,
            pool: match steered {
                Steered::Acks(_) => PoolConfig::ACKS,
                Steered::All { .. } | Steered::Both { .. } => PoolConfig::of_frames(16_384),
            },
            node: 0,
            wait: None,
            control: false,
            state: PathBuf::from(STATE),
        }
    }
}
