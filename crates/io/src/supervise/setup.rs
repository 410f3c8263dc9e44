//! The setup that is wanted: interfaces, and which of their traffic comes to user space.

use crate::port::PoolConfig;
use std::path::PathBuf;
use weir_core::time::Duration;

/// Where Weir is put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attach {
    /// On one interface, the one towards the WAN: what comes in on it comes from the WAN, what leaves by it comes
    /// from the LAN.
    Dev(String),
    /// Between two interfaces, which only Weir joins: a bump in the wire.
    Pair {
        /// Towards the LAN: port 0.
        lan: String,
        /// Towards the WAN: port 1.
        wan: String,
    },
}

impl Attach {
    /// The names of the interfaces.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Attach::Dev(dev) => vec![dev],
            Attach::Pair { lan, wan } => vec![lan, wan],
        }
    }
}

/// What comes to user space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steered {
    /// ACKs alone: data stays in the kernel.
    Acks(TakenAcks),
    /// All frames of a direction; between two interfaces, of both.
    All {
        /// Of frames that go out.
        out: bool,
        /// Of frames that come in.
        inward: bool,
    },
    /// ACKs, and of what is not taken all frames of a direction.
    Both {
        /// Of ACKs.
        acks: TakenAcks,
        /// All frames that go out.
        out: bool,
        /// All frames that come in.
        inward: bool,
    },
}

/// What comes to user space of ACKs and handshakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenAcks {
    /// Flows whose data goes out are shaped: their ACKs come in.
    pub out: bool,
    /// Flows whose data comes in are shaped.
    pub inward: bool,
    /// The window in the SYN-ACK of a flow whose data goes out is sized.
    pub size_out: bool,
    /// The window in the SYN-ACK of a flow whose data comes in is sized.
    pub size_in: bool,
}

impl Steered {
    /// What is taken of ACKs, if it is.
    pub const fn acks(&self) -> Option<TakenAcks> {
        match *self {
            Steered::Acks(acks) | Steered::Both { acks, .. } => Some(acks),
            Steered::All { .. } => None,
        }
    }

    /// Whether all frames that go out and that come in are taken, if any are.
    pub const fn frames(&self) -> Option<(bool, bool)> {
        match *self {
            Steered::All { out, inward } | Steered::Both { out, inward, .. } => Some((out, inward)),
            Steered::Acks(_) => None,
        }
    }
}

/// What to set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Where.
    pub attach: Attach,
    /// What comes to user space.
    pub steered: Steered,
    /// What is steered passes the engine by after so long without a beat; frames that are to wait in queues behind the control of ACKs not
    /// before [`FRAMES_STALE`].
    pub stale: Duration,
    /// The engine is killed and started again after so long without one.
    pub hang: Duration,
    /// Engines, 1 to [`MOST_ENGINES`]: more than one only where nothing but ACKs is taken.
    pub engines: u32,
    /// Flows of each engine that the kernel's programs know at most.
    pub flows: u32,
    /// Classes of each engine of which they count what ACKs cannot slow, at most.
    pub tallies: u32,
    /// The pool of each engine.
    pub pool: PoolConfig,
    /// How long to wait for interfaces that are not there yet; `None`: not at all.
    pub wait: Option<Duration>,
    /// Is there a socket on which a running instance can be asked and told?
    pub control: bool,
    /// Where changes to the host are remembered, and locks are: a directory of root's.
    pub state: PathBuf,
}

/// Most engines of an instance: the list of sockets has room for theirs.
pub const MOST_ENGINES: u32 = 8;

/// Where state is kept unless told otherwise.
pub const STATE: &str = "/run/weir";

/// Whole frames pass the engine by after so long without a beat: they overtake those that it has not read, and what passes by an emulator
/// is not emulated, so it may be late for longer on a busy machine.
pub const FRAMES_STALE: Duration = Duration::from_millis(200);

impl Setup {
    /// Steering with defaults for the rest.
    pub fn new(attach: Attach, steered: Steered) -> Setup {
        Setup {
            attach,
            steered,
            stale: match steered {
                // Less than senders wait before they send again (Linux: 200 ms at least).
                Steered::Acks(_) | Steered::Both { .. } => Duration::from_millis(50),
                Steered::All { .. } => FRAMES_STALE,
            },
            hang: match steered {
                // By then everything has passed for 30 ms: what is left is to send what was held.
                Steered::Acks(_) => Duration::from_millis(80),
                // What it holds would be lost, and nobody stands in for it.
                Steered::All { .. } | Steered::Both { .. } => Duration::from_secs(2),
            },
            engines: 1,
            flows: 65_536,
            tallies: 1024,
            pool: match steered {
                Steered::Acks(_) => PoolConfig::ACKS,
                Steered::All { .. } | Steered::Both { .. } => PoolConfig::of_frames(16_384),
            },
            wait: None,
            control: false,
            state: PathBuf::from(STATE),
        }
    }
}
