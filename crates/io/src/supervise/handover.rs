//! The state that one program leaves to the next one in the same process: what each descriptor is.

use crate::bpf::{LeftLink, LeftMaps};
use crate::supervise::setup::Setup;
use crate::sys::inherit::adopt;
use rustix::fs::{memfd_create, MemfdFlags};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::fs::FileExt;

/// Format of the state. A program that reads another one refuses to take over.
pub(super) const FORMAT: u32 = 1;
/// Number of the layout of maps and records: programs with the same one read each other's.
pub const LAYOUT: &str = env!("WEIR_LAYOUT");
/// Version of this program.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Variable with the number of the state's descriptor.
pub(super) const VARIABLE: &str = "WEIR_HANDOVER";

/// The part that every format has.
#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
}

/// The state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Handover {
    pub format: u32,
    pub layout: String,
    pub version: String,
    /// True if the next program only checks whether it could take over. The descriptors are then not its own.
    pub rehearsal: bool,
    /// Running configuration, in the form of the operator.
    pub operator: String,
    pub sizes: Sizes,
    pub site: LeftSite,
    pub instance: String,
    pub locks: Vec<LeftLock>,
    pub listener: Option<RawFd>,
    /// Client that asked for the upgrade, and the others.
    pub asker: Option<RawFd>,
    pub clients: Vec<LeftClient>,
    pub engine: Option<LeftProcess>,
    pub dying: Vec<LeftProcess>,
    pub stores: Vec<LeftStore>,
    /// Number of engines that were replaced, and the time at which the gateway was set up, in nanoseconds.
    pub count: u32,
    pub began: u64,
}

/// Sizes of the maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sizes {
    pub engines: u32,
    pub flows: u32,
    pub tallies: u32,
}

impl Sizes {
    pub fn of(setup: &Setup) -> Sizes {
        Sizes { engines: setup.engines, flows: setup.flows, tallies: setup.tallies }
    }

    pub fn lay_over(self, setup: &Setup) -> Setup {
        let Sizes { engines, flows, tallies } = self;
        Setup { engines, flows, tallies, ..setup.clone() }
    }
}

/// Interfaces, programs and their maps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LeftSite {
    pub places: Vec<LeftPlace>,
    /// Number of the interface on which frames are sent that come in, and the program there.
    pub home: Option<(u32, Vec<LeftLink>)>,
    /// Ends of the internal pair, and the programs on them.
    pub internal: Option<([u32; 2], [Vec<LeftLink>; 2])>,
    /// Maps of the programs that take ACKs, and of those that take frames.
    pub acks: Option<LeftMaps>,
    pub frames: Option<LeftMaps>,
    /// Sockets that send: their cookies and roles.
    pub senders: Vec<(u64, u32)>,
}

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LeftPlace {
    /// Configured name.
    pub wanted: String,
    pub index: u32,
    pub attached: Vec<LeftLink>,
}

/// A lock on an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LeftLock {
    pub name: String,
    pub index: u32,
    pub fd: RawFd,
}

/// A client, and what it has sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LeftClient {
    pub fd: RawFd,
    pub asked: Vec<u8>,
}

/// An engine and the stream on which it reports its failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LeftProcess {
    pub pid: i32,
    pub words: RawFd,
}

/// Memory that outlives engines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LeftStore {
    pub name: String,
    pub fd: RawFd,
}

impl Handover {
    /// Writes the state to a file in memory.
    pub fn write(&self) -> io::Result<OwnedFd> {
        let mut file = File::from(memfd_create("weir-handover", MemfdFlags::CLOEXEC)?);
        file.write_all(&serde_json::to_vec(self)?)?;
        Ok(file.into())
    }

    /// Reads the state that the descriptor with this number has.
    fn read(number: &str) -> io::Result<Handover> {
        let wrong =
            |why: String| io::Error::new(io::ErrorKind::InvalidData, format!("{VARIABLE}={number}: {why}"));
        let file = number.parse().map_err(io::Error::other).and_then(adopt).map(File::from);
        let file = file.map_err(|error| wrong(error.to_string()))?;
        let mut text = vec![0; file.metadata()?.len() as usize];
        file.read_exact_at(&mut text, 0)?;
        let head: Head = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if head.format != FORMAT {
            return Err(wrong(format!(
                "the running version hands over in format {}, and this one ({VERSION}) reads format {FORMAT}: \
                 a restart is needed",
                head.format
            )));
        }
        serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))
    }
}

/// State that the program before left in this process.
#[derive(Debug)]
pub struct Inherited(pub(super) Handover);

impl Inherited {
    /// Takes the state, if there is one. An error tells why it cannot be read.
    pub fn take() -> io::Result<Option<Inherited>> {
        let Some(number) = std::env::var_os(VARIABLE) else { return Ok(None) };
        Handover::read(&number.to_string_lossy()).map(|handover| Some(Inherited(handover)))
    }

    /// Running configuration, in the form of [`Operator::state`](crate::supervise::Operator::state).
    pub fn operator(&self) -> &str {
        &self.0.operator
    }

    /// Returns whether this process only checks if it could take over.
    pub fn is_rehearsal(&self) -> bool {
        self.0.rehearsal
    }

    /// Returns whether records of flows and counters can be read.
    pub fn is_same_layout(&self) -> bool {
        self.0.layout == LAYOUT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::IntoRawFd;

    #[test]
    fn the_state_is_read_as_it_was_written() {
        let place = LeftPlace { wanted: "wan0".into(), index: 7, attached: Vec::new() };
        let site = LeftSite { places: vec![place], senders: vec![(u64::MAX, 1)], ..LeftSite::default() };
        let written = Handover { format: FORMAT, layout: LAYOUT.into(), site, ..Handover::default() };
        let number = written.write().unwrap().into_raw_fd();
        assert_eq!(Handover::read(&number.to_string()).unwrap(), written);
    }

    #[test]
    fn another_format_and_what_is_no_state_are_refused() {
        let refused = |text: &[u8]| {
            let mut file = File::from(memfd_create("test", MemfdFlags::CLOEXEC).unwrap());
            file.write_all(text).unwrap();
            Handover::read(&OwnedFd::from(file).into_raw_fd().to_string()).unwrap_err().to_string()
        };
        assert!(refused(br#"{"format":2,"more":[]}"#).contains("hands over in format 2"));
        assert!(refused(b"").contains("WEIR_HANDOVER="));
        assert!(Handover::read("x").is_err() && Handover::read("-1").is_err());
    }
}
