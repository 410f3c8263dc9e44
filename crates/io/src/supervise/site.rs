//! What is set up on the host: programs, their attachments, the interfaces that are followed, sockets.

use super::changes::{Change, Changes, Interface};
use super::senders::Senders;
use super::setup::{Attach, Setup, Steered};
use super::state::Lock;
use super::veth::Internal;
use super::watch::{Heard, State, Status, Watched};
use crate::bpf::{role, Acks, AcksOptions, All, Attached};
use crate::driver::Programs;
use crate::port::{Exit, Input, Packets, Ways};
use crate::sys::link::{self, Event, Link};
use crate::sys::packet::{Device, Sender};
use std::io;
use weir_core::gateway::{LAN, WAN};

/// One interface.
#[derive(Debug)]
struct Place {
    watched: Watched,
    ethernet: bool,
    attached: Option<Attached>,
}

impl Place {
    fn device(&self) -> Device {
        Device { ifindex: self.watched.index, ethernet: self.ethernet }
    }
}

/// Everything that is set up. Dropping it takes the programs off.
#[derive(Debug)]
pub(super) struct Site {
    pub programs: Programs,
    pub status: Status,
    pub senders: Option<Senders>,
    pub changes: Changes,
    pub setup: Setup,
    places: Vec<Place>,
    internal: Option<Internal>,
    locks: Vec<Lock>,
}

/// The sockets of one engine. The supervisor opens them, so that the engine needs no privilege for it.
#[derive(Debug)]
pub(super) struct Sockets {
    pub inputs: Vec<Packets>,
    pub exits: [Exit; 2],
    pub cookies: Vec<u64>,
}

impl Site {
    /// Sets everything up, or leaves the host as it was.
    pub fn build(setup: &Setup, links: &[Link], changes: Changes, locks: Vec<Lock>) -> io::Result<Site> {
        let place = |link: &Link| {
            let (watched, ethernet) = (Watched::new(link), link.ethernet);
            Place { watched, ethernet, attached: None }
        };
        let status = Status::new(links.iter().map(|link| link.name.clone()).collect())?;
        let mut site = Site {
            // Loading changes nothing on the host, so it comes first.
            programs: load(setup, &links[0])?,
            status,
            senders: None,
            changes,
            setup: setup.clone(),
            places: links.iter().map(place).collect(),
            internal: None,
            locks,
        };
        let result = site.furnish().and_then(|()| site.attach());
        if let Err(error) = result {
            site.tear_down();
            return Err(error);
        }
        for (i, place) in site.places.iter().enumerate() {
            site.status.set(i, place.watched.state);
            if place.watched.state == State::Down {
                tracing::warn!("interface {} is down: nothing is done until it is up", place.watched.name);
            }
        }
        Ok(site)
    }

    /// Makes the internal pair that frames are redirected to, where one is needed.
    fn furnish(&mut self) -> io::Result<()> {
        if let (Programs::All(all), Attach::Dev(dev)) = (&self.programs, &self.setup.attach) {
            let internal = Internal::make(&mut self.changes, dev, all)?;
            if let Steered::All { out, inward } = self.setup.steered {
                let [egress, ingress] = internal.ends;
                all.redirect(if out { egress } else { 0 }, if inward { ingress } else { 0 });
            }
            self.internal = Some(internal);
        }
        Ok(())
    }

    /// Attaches the programs where they are not, and opens the supervisor's own ways out.
    pub fn attach(&mut self) -> io::Result<()> {
        let pair = self.places.len() > 1;
        for place in &mut self.places {
            if place.attached.is_some() {
                continue;
            }
            let index = place.watched.index;
            // Linux 6.6 has tcx links, which come off by themselves.
            if crate::sys::process::kernel() < Some((6, 6)) {
                let interface = Interface { name: place.watched.name.clone(), index };
                self.changes.record(Change::Filters { interface })?;
            }
            place.attached = Some(match &self.programs {
                Programs::All(all) if pair => all.attach_drop(index)?,
                programs => programs.attach(index)?,
            });
        }
        if let Some(old) = self.senders.take() {
            old.close(self.programs.hooks());
        }
        let (lan, wan) = self.devices();
        self.senders = Some(Senders::open(self.programs.hooks(), lan, wan)?);
        Ok(())
    }

    /// The devices behind the node's two ports.
    fn devices(&self) -> (Device, Device) {
        let device = |i: usize| self.places[i].device();
        (device(0), device(self.places.len() - 1))
    }

    /// Are all interfaces there, with programs on them?
    pub fn is_whole(&self) -> bool {
        self.places.iter().all(|place| place.attached.is_some())
    }

    /// Follows what happened to the interfaces. True if programs were attached anew: sockets of before are of no use.
    pub fn follow(&mut self, events: &[Event]) -> io::Result<bool> {
        let mut back = false;
        for event in events {
            let all = if *event == Event::Missed { Some(link::all()?) } else { None };
            for (i, place) in self.places.iter_mut().enumerate() {
                let before = place.watched.index;
                let heard = match &all {
                    Some(all) => place.watched.look(all),
                    None => place.watched.hear(event),
                };
                if heard != Heard::Nothing {
                    self.status.set(i, place.watched.state);
                }
                if place.watched.index != before {
                    place.attached = None;
                }
                back |= heard == Heard::Back;
            }
        }
        Ok(back && self.places.iter().all(|place| place.watched.index != 0) && self.reattach())
    }

    /// Attaches to interfaces that are back. If that fails, whoever waits tries again.
    pub fn reattach(&mut self) -> bool {
        if self.places.iter().any(|place| place.watched.index == 0) {
            return false;
        }
        let result = self.attach();
        if let Err(error) = &result {
            tracing::error!("cannot attach again: {error}");
        }
        result.is_ok()
    }

    /// Opens the sockets of an engine.
    pub fn sockets(&self) -> io::Result<Sockets> {
        let (lan, wan) = self.devices();
        let mut cookies = Vec::new();
        let hooks = self.programs.hooks();
        let mut sender = |device: Device, vnet: bool, role: u32| {
            let sender = Sender::open(device, vnet)?;
            let cookie = sender.cookie()?;
            hooks.register_sender(cookie, role)?;
            cookies.push(cookie);
            io::Result::Ok(sender)
        };
        let inward = if self.places.len() == 1 { role::TO_INGRESS } else { 0 };
        let mut inputs = Vec::new();
        let exits = match (&self.programs, &self.internal) {
            (Programs::Acks(_), _) => {
                let mut ways = |device, role| {
                    let restamp = Some(sender(device, false, role | role::RESTAMP)?);
                    io::Result::Ok(Ways { plain: sender(device, false, role)?, restamp })
                };
                [Exit::new(ways(lan, inward)?, true), Exit::new(ways(wan, 0)?, true)]
            }
            (Programs::All(_), internal) => {
                // What is redirected to one end arrives at the other.
                let [from_lan, from_wan] = match internal {
                    Some(internal) => [internal.ends[1], internal.ends[0]],
                    None => [lan.ifindex, wan.ifindex],
                };
                inputs.push(Packets::open(LAN, from_lan, internal.is_none())?);
                inputs.push(Packets::open(WAN, from_wan, internal.is_none())?);
                // Packet sockets without an Ethernet header take no notes, and so no giant segments.
                if !(lan.ethernet && wan.ethernet) {
                    inputs.iter_mut().for_each(Packets::split);
                }
                let mut ways = |device: Device, role| {
                    let plain = sender(device, device.ethernet, role)?;
                    io::Result::Ok(Ways { plain, restamp: None })
                };
                [Exit::new(ways(lan, inward)?, false), Exit::new(ways(wan, 0)?, false)]
            }
        };
        Ok(Sockets { inputs, exits, cookies })
    }

    /// In a forked process: the interfaces are held by the supervisor alone.
    pub fn leave_to_parent(&self) {
        self.locks.iter().for_each(Lock::leave_to_parent);
    }

    /// Closes the list for sockets that are gone.
    pub fn forget(&self, cookies: &[u64]) {
        cookies.iter().for_each(|cookie| self.programs.hooks().forget_sender(*cookie));
    }

    /// Takes the programs off and undoes what was changed.
    pub fn tear_down(&mut self) {
        self.programs.hooks().beat(weir_core::time::Time::ZERO);
        self.places.iter_mut().for_each(|place| place.attached = None);
        self.internal = None;
        self.changes.undo().iter().for_each(|what| tracing::debug!("{what}"));
    }
}

fn load(setup: &Setup, link: &Link) -> io::Result<Programs> {
    match setup.steered {
        Steered::All { .. } => All::load(setup.stale, link.ethernet).map(Programs::All),
        Steered::Acks { out, inward, size_out, size_in } => {
            let options = AcksOptions {
                stale: setup.stale,
                ethernet: link.ethernet,
                shape_in: out,
                shape_out: inward,
                // The SYN-ACK comes the way of the ACKs.
                size_in: size_out,
                size_out: size_in,
                ..AcksOptions::new(setup.flows)
            };
            Acks::load(&options).map(Programs::Acks)
        }
    }
}

/// The way in of `acks` steering, opened by the engine that consumes it.
pub(super) fn ring(programs: &Programs) -> io::Result<Option<Input>> {
    match programs {
        Programs::Acks(acks) => Ok(Some(Input::Ring(acks.segments()?))),
        Programs::All(_) => Ok(None),
    }
}
