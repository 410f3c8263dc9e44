//! From names of interfaces to programs attached to them, or to everything that is in the way.

use super::changes::{Change, Changes, Interface};
use super::check::{self, Problems};
use super::host::{self, Bridging};
use super::lock::{self, Lock};
use crate::bpf::{Attached, Observer, Shared, Steer, SteerOptions, Steering, XdpMode};
use crate::port::{self, PoolConfig};
use crate::sys::ethtool::Ethtool;
use crate::sys::link::{self, Link};
use crate::sys::packet::{Promiscuous, RawSender};
use crate::sys::{clock, process};
use std::io;
use std::path::PathBuf;
use weir_core::time::Duration;

/// What comes to user space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steered {
    /// All frames of both ports.
    Full,
    /// TCP frames that come in on these ports, where the ACKs of shaped flows come in; of the other
    /// port, copies of what opens and ends connections.
    Acks {
        /// On the LAN port.
        lan: bool,
        /// On the WAN port.
        wan: bool,
    },
}

/// Who joins the two interfaces for what Weir does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BridgeUse {
    /// A kernel bridge: the one they are in, or one made for the run.
    Kernel,
    /// Nobody: without the engine nothing passes. For emulators.
    None,
}

/// What to set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Interface towards the LAN: port 0.
    pub lan: String,
    /// Interface towards the WAN: port 1.
    pub wan: String,
    /// What comes to user space.
    pub steered: Steered,
    /// What happens to the rest.
    pub bridge: BridgeUse,
    /// Where XDP programs run; `None`: in the driver if it can.
    pub xdp: Option<XdpMode>,
    /// Frames pass the engine by after so long without a beat.
    pub stale: Duration,
    /// The engine is killed and started again after so long without one.
    pub hang: Duration,
    /// Flows whose verdict is remembered.
    pub verdicts: u32,
    /// The pool; its chunk size is set by the MTU.
    pub pool: PoolConfig,
    /// Engines started per minute at most, after the first.
    pub restarts_per_minute: u32,
    /// Where changes to the host are remembered.
    pub state: PathBuf,
}

impl Setup {
    /// Steering between two interfaces, with defaults for the rest.
    pub fn new(lan: &str, wan: &str, steered: Steered, bridge: BridgeUse) -> Setup {
        Setup {
            lan: lan.to_owned(),
            wan: wan.to_owned(),
            steered,
            bridge,
            xdp: None,
            stale: Duration::from_millis(50),
            hang: match bridge {
                BridgeUse::Kernel => Duration::from_millis(60),
                // What it holds would be lost, and nobody stands in for it.
                BridgeUse::None => Duration::from_secs(2),
            },
            verdicts: 65_536,
            pool: PoolConfig::default(),
            restarts_per_minute: 20,
            state: PathBuf::from("/run/weir"),
        }
    }

    /// Everything that would keep these interfaces from being set up now. Changes nothing.
    pub fn check(&self) -> Result<(), Problems> {
        let (lan, wan) = self.find()?;
        self.judge(&lan, &wan).map(drop)
    }

    fn is_full(&self) -> bool {
        self.steered == Steered::Full
    }

    /// Which ports have an XDP program.
    fn xdp_ports(&self) -> [bool; 2] {
        match self.steered {
            Steered::Full => [true, true],
            Steered::Acks { lan, wan } => [lan, wan],
        }
    }

    fn find(&self) -> Result<(Link, Link), Problems> {
        let pool = (self.pool.chunks * self.pool.chunk_size) as u64;
        let problems = check::host(pool);
        let links = match check::interfaces(&self.lan, &self.wan, &link::all()?) {
            Ok(links) if problems.is_empty() => return Ok(links),
            Ok(_) => Vec::new(),
            Err(more) => more,
        };
        Err(Problems([problems, links].concat()))
    }

    fn judge(&self, lan: &Link, wan: &Link) -> Result<Option<Bridging>, Problems> {
        let mut problems = Vec::new();
        for (link, steered) in [lan, wan].into_iter().zip(self.xdp_ports()) {
            problems.extend(check::interface(link, steered));
        }
        if lan.mtu != wan.mtu {
            tracing::warn!("the MTUs of {} and {} differ: {} and {}", lan.name, wan.name, lan.mtu, wan.mtu);
        }
        if self.xdp_ports() == [false, false] {
            problems.push("no class controls ACKs: there is nothing to take".to_owned());
        }
        let bridging = match self.bridge {
            BridgeUse::None => None,
            BridgeUse::Kernel => {
                let all = link::all()?;
                let addressed = |l: &Link| link::has_address(l.index).unwrap_or(false);
                match host::bridging(lan, wan, &all, addressed) {
                    Ok(bridging) => Some(bridging),
                    Err(more) => {
                        problems.extend(more);
                        None
                    }
                }
            }
        };
        if problems.is_empty() {
            Ok(bridging)
        } else {
            Err(Problems(problems))
        }
    }

    /// Sets everything up, or leaves the host as it was.
    pub(super) fn apply(&self) -> Result<Site, Problems> {
        let (mut lan, mut wan) = self.find()?;
        let locks = [lock::take(&lan.name, lan.index)?, lock::take(&wan.name, wan.index)?];
        let mut changes = Changes::open(&self.state, &self.lan, &self.wan)?;
        if !changes.is_empty() {
            tracing::warn!("the last run was killed: undoing what it had changed");
            changes.undo();
            (lan, wan) = self.find()?;
        }
        (lan, wan) = self.wait_for_old_program(lan, wan)?;
        let bridging = self.judge(&lan, &wan)?;
        match self.build(&mut changes, [&lan, &wan], bridging) {
            Ok(parts) => Ok(Site { parts, changes, _locks: locks }),
            Err(error) => {
                changes.undo();
                Err(error.into())
            }
        }
    }

    /// The kernel takes the program of a run that was just killed off a little later; since the
    /// locks are free, an XDP program may be that.
    fn wait_for_old_program(&self, mut lan: Link, mut wan: Link) -> Result<(Link, Link), Problems> {
        let until = clock::now() + Duration::from_secs(1);
        let busy = |link: &Link, steered| link.xdp && steered;
        let [lan_steered, wan_steered] = self.xdp_ports();
        while (busy(&lan, lan_steered) || busy(&wan, wan_steered)) && clock::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(20));
            (lan, wan) = self.find()?;
        }
        Ok((lan, wan))
    }

    fn build(
        &self,
        changes: &mut Changes,
        links: [&Link; 2],
        bridging: Option<Bridging>,
    ) -> io::Result<Parts> {
        let mtu = links.map(|l| l.mtu as usize).into_iter().max().unwrap_or(0);
        let mut pool = self.pool;
        pool.chunk_size = port::chunk_size(mtu).ok_or(io::ErrorKind::Unsupported)?;
        let options = SteerOptions {
            steer: if self.is_full() { Steer::Full } else { Steer::Acks },
            stale: self.stale,
            max_len: port::max_frame(pool.chunk_size) as u32,
        };
        // Loading changes nothing on the host, so it comes first.
        let shared = Shared::new(self.verdicts)?;
        let mut places = Vec::new();
        for (link, xdp) in links.into_iter().zip(self.xdp_ports()) {
            places.push(Place::load(link, xdp, !xdp, &shared, options)?);
        }
        if bridging == Some(Bridging::Missing) {
            host::make_bridge(changes, links[0], links[1])?;
        }
        if bridging.is_some() {
            host::warn_of_filters();
        }
        for (place, link) in places.iter_mut().zip(links) {
            if place.steering.is_some() {
                host::offloads_off(changes, link, self.is_full())?;
            }
            place.attach(changes, link, self.xdp, self.is_full())?;
        }
        let senders =
            Senders { lan: RawSender::open(links[0].index)?, wan: RawSender::open(links[1].index)? };
        Ok(Parts { shared, places, pool, senders })
    }
}

/// Ways out past the engine, for the supervisor.
#[derive(Debug)]
pub struct Senders {
    /// Out of the LAN interface.
    pub lan: RawSender,
    /// Out of the WAN interface.
    pub wan: RawSender,
}

/// One interface, set up.
#[derive(Debug)]
pub(super) struct Place {
    pub name: String,
    pub ifindex: u32,
    pub mtu: u32,
    pub queues: u32,
    pub steering: Option<Steering>,
    pub observer: Option<Observer>,
    _attached: Vec<Attached>,
    _promiscuous: Option<Promiscuous>,
}

impl Place {
    fn load(
        link: &Link,
        xdp: bool,
        observe: bool,
        shared: &Shared,
        options: SteerOptions,
    ) -> io::Result<Place> {
        Ok(Place {
            name: link.name.clone(),
            ifindex: link.index,
            mtu: link.mtu,
            queues: Ethtool::open(&link.name)?.receive_queues(),
            steering: xdp.then(|| Steering::load(shared, options)).transpose()?,
            observer: observe.then(Observer::load).transpose()?,
            _attached: Vec::new(),
            _promiscuous: None,
        })
    }

    fn attach(
        &mut self,
        changes: &mut Changes,
        link: &Link,
        mode: Option<XdpMode>,
        full: bool,
    ) -> io::Result<()> {
        if let Some(steering) = &self.steering {
            self._attached.push(attach_xdp(steering, link, mode)?);
        }
        if let Some(observer) = &self.observer {
            // Linux 6.6 has tcx links, which come off by themselves.
            if process::kernel() < Some((6, 6)) {
                changes.record(Change::Observer { interface: Interface::from(link) })?;
            }
            self._attached.push(observer.attach(link.index)?);
        }
        // A bridge does this itself, but there may be none, or one that is taken away.
        self._promiscuous = full.then(|| Promiscuous::new(link.index)).transpose()?;
        Ok(())
    }
}

fn attach_xdp(steering: &Steering, link: &Link, mode: Option<XdpMode>) -> io::Result<Attached> {
    let name = &link.name;
    let refused = |mode: XdpMode, error: io::Error| {
        let message = format!("{name} takes no XDP program in {} mode: {error}", mode.name());
        io::Error::new(error.kind(), message)
    };
    if let Some(mode) = mode {
        let attached = steering.attach(link.index, mode).map_err(|e| refused(mode, e))?;
        tracing::info!("{name}: XDP in {} mode, as configured", mode.name());
        return Ok(attached);
    }
    let error = match steering.attach(link.index, XdpMode::Native) {
        Ok(attached) => {
            tracing::info!("{name}: XDP in native mode");
            return Ok(attached);
        }
        Err(error) => error,
    };
    let attached = steering.attach(link.index, XdpMode::Skb).map_err(|e| refused(XdpMode::Skb, e))?;
    tracing::info!("{name}: XDP in skb mode, since the driver refuses native mode: {error}");
    Ok(attached)
}

/// What an engine needs of the set-up.
#[derive(Debug)]
pub(super) struct Parts {
    pub shared: Shared,
    pub places: Vec<Place>,
    pub pool: PoolConfig,
    pub senders: Senders,
}

/// Everything that is set up. Dropping it takes the programs off.
#[derive(Debug)]
pub(super) struct Site {
    pub parts: Parts,
    pub changes: Changes,
    _locks: [Lock; 2],
}
