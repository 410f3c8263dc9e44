//! From names of interfaces to programs attached to them, or to everything that is in the way.

use super::changes::Changes;
use super::check::{self, Problems};
use super::site::Site;
use super::state::Directory;
use crate::port::PoolConfig;
use crate::sys::clock;
use crate::sys::epoll::Waiter;
use crate::sys::link::{self, Link, Monitor};
use crate::sys::process::Signals;
use std::io;
use std::os::fd::AsFd;
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
    Acks {
        /// Flows whose data goes out are shaped: their ACKs come in.
        out: bool,
        /// Flows whose data comes in are shaped.
        inward: bool,
        /// The window in the SYN-ACK of a flow whose data goes out is sized.
        size_out: bool,
        /// The window in the SYN-ACK of a flow whose data comes in is sized.
        size_in: bool,
    },
    /// All frames of a direction; between two interfaces, of both.
    All {
        /// Of frames that go out.
        out: bool,
        /// Of frames that come in.
        inward: bool,
    },
}

/// What to set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Where.
    pub attach: Attach,
    /// What comes to user space.
    pub steered: Steered,
    /// Frames pass the engine by after so long without a beat.
    pub stale: Duration,
    /// The engine is killed and started again after so long without one.
    pub hang: Duration,
    /// Flows that the kernel's programs know at most.
    pub flows: u32,
    /// The pool.
    pub pool: PoolConfig,
    /// Engines started per minute at most, after the first.
    pub restarts_per_minute: u32,
    /// How long to wait for interfaces that are not there yet; `None`: not at all.
    pub wait: Option<Duration>,
    /// Where changes to the host are remembered, and locks are: a directory of root's.
    pub state: PathBuf,
}

/// Where state is kept unless told otherwise.
pub const STATE: &str = "/run/weir";

impl Setup {
    /// Steering with defaults for the rest.
    pub fn new(attach: Attach, steered: Steered) -> Setup {
        Setup {
            attach,
            steered,
            stale: match steered {
                Steered::Acks { .. } => Duration::from_millis(50),
                // What passes by an emulator is not emulated: one that runs ahead of nobody may be late on a busy machine.
                Steered::All { .. } => Duration::from_millis(200),
            },
            hang: match steered {
                // By then everything has passed for 30 ms: what is left is to send what was held.
                Steered::Acks { .. } => Duration::from_millis(80),
                // What it holds would be lost, and nobody stands in for it.
                Steered::All { .. } => Duration::from_secs(2),
            },
            flows: 65_536,
            pool: PoolConfig::default(),
            restarts_per_minute: 20,
            wait: None,
            state: PathBuf::from(STATE),
        }
    }

    /// Everything that would keep these interfaces from being set up now. Changes nothing.
    pub fn check(&self) -> Result<(), Problems> {
        self.find().map(drop)
    }

    /// The interfaces, if nothing is in the way.
    fn find(&self) -> Result<Vec<Link>, Problems> {
        let mut problems = check::host((self.pool.chunks * crate::port::CHUNK) as u64);
        problems.extend(self.contradictions());
        match check::interfaces(&self.attach.names(), &link::all()?) {
            Ok(links) => {
                let ethernet_only = self.attach.names().len() > 1;
                problems.extend(links.iter().filter_map(|link| check::interface(link, ethernet_only)));
                if problems.is_empty() {
                    return Ok(links);
                }
            }
            Err(more) => problems.extend(more),
        }
        Err(Problems(problems))
    }

    fn contradictions(&self) -> Option<String> {
        match (&self.attach, self.steered) {
            (Attach::Pair { .. }, Steered::Acks { .. }) => {
                Some("ACKs are taken on one interface, the one towards the WAN: two are named".to_owned())
            }
            (_, Steered::Acks { out: false, inward: false, .. }) => {
                Some("no class controls ACKs: there is nothing to take".to_owned())
            }
            (Attach::Dev(_), Steered::All { out: false, inward: false }) => {
                Some("neither direction is to be taken: there is nothing to do".to_owned())
            }
            _ => None,
        }
    }

    /// Waits until the interfaces are there, or as long as is permitted.
    fn wait(&self, signals: &Signals) -> Result<(), Problems> {
        let Some(wait) = self.wait else { return Ok(()) };
        let monitor = Monitor::new()?;
        let mut waiter = Waiter::new()?;
        waiter.add(monitor.as_fd(), 0)?;
        waiter.add(signals.as_fd(), 1)?;
        let (until, mut ready, mut said) = (clock::now() + wait, Vec::new(), false);
        loop {
            let all = link::all()?;
            let missing = |name: &&str| !all.iter().any(|link| link.name == **name);
            let missing: Vec<&str> = self.attach.names().into_iter().filter(missing).collect();
            if missing.is_empty() || clock::now() >= until {
                return Ok(());
            }
            if !std::mem::replace(&mut said, true) {
                tracing::info!("waiting for {} for {wait} at most", missing.join(" and "));
            }
            waiter.wait(until, &mut ready)?;
            monitor.events()?;
            if signals.ends() {
                return Err(Problems(vec!["told to stop while waiting for interfaces".to_owned()]));
            }
        }
    }

    /// Sets everything up, or leaves the host as it was.
    pub(super) fn apply(&self, signals: &Signals) -> Result<Site, Problems> {
        self.wait(signals)?;
        let mut links = self.find()?;
        let directory = Directory::open(&self.state)?;
        let names = self.attach.names();
        let locks = names.iter().map(|name| directory.lock(name)).collect::<io::Result<Vec<_>>>()?;
        let mut changes = Changes::open(directory, &names.join("+"), &names)?;
        if !changes.is_empty() {
            tracing::warn!("the last run was killed: undoing what it had changed");
            changes.undo().iter().for_each(|what| tracing::info!("{what}"));
            links = self.find()?;
        }
        Site::build(self, &links, changes, locks).map_err(Problems::from)
    }
}
