//! The new program's side of an upgrade: it adopts what the one before has set up.

use super::{Predecessor, BOUNDED};
use crate::bpf::{Attached, Maps};
use crate::driver::InterfaceStates;
use crate::supervise::changes::Changes;
use crate::supervise::check::Problems;
use crate::supervise::control::Control;
use crate::supervise::handover::{Handover, Inherited, LeftPlace, LeftProcess, LeftSite, VERSION};
use crate::supervise::process::Process;
use crate::supervise::records::{Records, Store};
use crate::supervise::setup::Setup;
use crate::supervise::site::{load, Home, Locks, OldMaps, Place, Site};
use crate::supervise::state::{Directory, Interface};
use crate::supervise::veth::Internal;
use crate::supervise::watch::Watched;
use crate::supervise::{give_up_privileges, Supervisor};
use crate::sys::clock;
use crate::sys::inherit::{adopt, Heir};
use crate::sys::link::{self, HostInterface, Monitor};
use crate::sys::pod::Pod;
use crate::sys::process::Signals;
use std::io;
use weir_core::time::Time;

impl Supervisor {
    /// Takes over from the program that this process executed before. A failure leaves the host as the end of
    /// a killed supervisor does.
    pub fn adopt(setup: &Setup, inherited: Inherited) -> Result<Supervisor, Problems> {
        let (same, left) = (inherited.is_same_layout(), inherited.0);
        let (signals, monitor) = (Signals::new()?, Monitor::new()?);
        let setup = if same { left.sizes.lay_over(setup) } else { setup.clone() };
        let engine = left.engine.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData));
        let engine = Process::adopt(engine?)?;
        let dying = left.dying.iter().copied().map(Process::adopt).collect::<io::Result<Vec<_>>>()?;
        let stores =
            left.stores.iter().map(|left| Ok(Store { name: left.name.clone(), file: adopt(left.fd)? }));
        let stores = stores.collect::<io::Result<Vec<_>>>()?;
        let site = Site::adopt(&setup, &left, same)?;
        let listener = || Directory::open(&setup.state);
        let control = Control::adopt(&left, listener()?, words(&setup, &left, same))?;
        give_up_privileges()?;
        tracing::info!("took over from version {}", left.version);
        Ok(Supervisor {
            stores: Vec::new(),
            old_stores: if same { stores } else { Vec::new() },
            predecessor: Some(Predecessor { process: Some(engine), senders: left.site.senders, same }),
            count: left.count + 1,
            began: Time::from_nanos(left.began),
            dying,
            ..Supervisor::of(site, signals, monitor, control)
        })
    }

    /// Returns memory for at least `count` records that outlive engines. `name` is the same in every version.
    /// After an upgrade they are those of before, if their layout is the same.
    pub fn records<T: Pod>(&mut self, name: &str, count: usize) -> io::Result<Records<T>> {
        let wanted = Records::<T>::bytes(count);
        let fits = |store: &Store| {
            let len = store.len().unwrap_or(0);
            store.name == name && len >= wanted && (len % size_of::<T>() == 0 || len == wanted)
        };
        let old = self.old_stores.iter().position(fits).map(|at| self.old_stores.swap_remove(at));
        let store = old.map_or_else(|| Store::new(name, wanted), Ok)?;
        let records = Records::of(&store);
        self.stores.push(store);
        records
    }

    /// Ends the engine of the program before, if the next one is to take over its flows or its frames.
    pub(in crate::supervise) fn begin_succession(&mut self) -> io::Result<()> {
        let frames = self.site.programs.frames().is_some();
        let Some(before) = &mut self.predecessor else { return Ok(()) };
        self.old_stores.clear();
        if before.same {
            // Loading took seconds, in which the hooks have seen no supervisor.
            let now = clock::now();
            self.site.programs.watched(now);
            self.site.programs.keep_bounds(now + BOUNDED);
            self.site.exchange()?;
        }
        if let Some(process) = before.process.take_if(|_| before.same || frames) {
            process.kill()?;
            self.owed = before.same;
            self.dying.push(process);
        }
        if before.same {
            before.senders.iter().for_each(|(cookie, _)| self.site.programs.hooks().forget_sender(*cookie));
            self.predecessor = None;
        }
        self.site.interfaces.set_apart(self.predecessor.is_some());
        Ok(())
    }

    /// Lets an engine with other records take over, now that it beats.
    pub(in crate::supervise) fn finish_succession(&mut self) -> io::Result<()> {
        let Some(Predecessor { process, senders, .. }) = self.predecessor.take() else { return Ok(()) };
        let hooks = self.site.programs.hooks();
        // What the old engine sends at its end is its own.
        senders.iter().try_for_each(|(cookie, role)| hooks.register_sender(*cookie, *role))?;
        self.site.programs.begin_after_others(clock::now());
        self.site.exchange()?;
        self.site.interfaces.set_apart(false);
        if let Some(process) = process {
            process.retire();
            self.dying.push(process);
        }
        Ok(())
    }
}

/// Words for the client that asked for the upgrade.
fn words(setup: &Setup, left: &Handover, same: bool) -> String {
    let kept = if same {
        "flows and counters go on"
    } else {
        "flows and counters begin anew, because this version has others"
    };
    format!("{}: version {VERSION} runs, {} before; {kept}", setup.attach.names().join(" and "), left.version)
}

impl Site {
    /// Hands over what is attached.
    pub(super) fn leave(&self, heir: &mut Heir) -> LeftSite {
        let place = |place: &Place| LeftPlace {
            wanted: place.watched.wanted.clone(),
            index: place.watched.index,
            attached: place.attached.as_ref().map_or(Vec::new(), |attached| attached.leave(heir)),
        };
        let places = self.places.iter().map(place).collect();
        let home =
            self.home.as_ref().and_then(|home| Some((home.index, home.attached.as_ref()?.leave(heir))));
        let internal = self.internal.as_ref().map(|internal| internal.leave(heir));
        let acks = self.programs.acks().map(|acks| acks.leave(heir));
        let frames = self.programs.frames().map(|all| all.leave(heir));
        let senders = self.programs.hooks().senders();
        LeftSite { places, home, internal, acks, frames, senders }
    }

    /// Adopts what is attached, with programs of its own that are not attached yet.
    fn adopt(setup: &Setup, left: &Handover, same: bool) -> io::Result<Site> {
        let links = links(&left.site)?;
        let site = &left.site;
        let maps = OldMaps {
            acks: site.acks.as_ref().map(Maps::adopt).transpose()?,
            frames: site.frames.as_ref().map(Maps::adopt).transpose()?,
        };
        let directory = Directory::open(&setup.state)?;
        let held = left.locks.iter().map(|lock| directory.adopt(lock)).collect::<io::Result<Vec<_>>>()?;
        let interface = |link: &HostInterface| Interface { name: link.name.clone(), index: link.index };
        let interfaces: Vec<Interface> = links.iter().map(interface).collect();
        let changes = Changes::open(directory.again()?, &left.instance, &interfaces)?;
        let place = |(link, left): (&HostInterface, &LeftPlace)| {
            let mut watched = Watched::new(link);
            watched.wanted = left.wanted.clone();
            let attached = Some(Attached::adopt(&left.attached)?);
            Ok(Place { watched, ethernet: link.ethernet, attached })
        };
        let places = links.iter().zip(&site.places).map(place).collect::<io::Result<Vec<_>>>()?;
        let home = site.home.as_ref().map(|(index, left)| {
            Ok::<_, io::Error>(Home { index: *index, attached: Some(Attached::adopt(left)?) })
        });
        let internal = site.internal.as_ref().map(Internal::adopt).transpose()?;
        let locks = Locks { directory, instance: left.instance.clone(), held };
        let states = InterfaceStates::new(links.iter().map(|link| link.name.clone()).collect())?;
        let programs = load(setup, &links[0], same.then_some(&maps))?;
        let mut adopted = Site::of(programs, states, setup, changes, locks);
        (adopted.places, adopted.home, adopted.internal) = (places, home.transpose()?, internal);
        adopted.settle_states();
        adopted.attach()?;
        Ok(adopted)
    }

    /// Replaces the attached programs by its own.
    fn exchange(&mut self) -> io::Result<()> {
        let wan = self.places.first().map(|place| place.watched.index);
        for attached in self.places.iter().filter_map(|place| place.attached.as_ref()) {
            self.programs.replace(attached, None)?;
        }
        if let Some(attached) = self.home.as_ref().and_then(|home| home.attached.as_ref()) {
            self.programs.replace(attached, wan)?;
        }
        let sinks = self.internal.iter().flat_map(Internal::sinks);
        sinks.into_iter().try_for_each(|sink| self.programs.replace(sink, None))
    }
}

/// Finds the interfaces by their numbers. They may have other names now.
fn links(left: &LeftSite) -> io::Result<Vec<HostInterface>> {
    let all = link::all()?;
    let find = |place: &LeftPlace| {
        let found = all.iter().find(|link| link.index == place.index).cloned();
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{} is gone", place.wanted)))
    };
    let links = left.places.iter().map(find).collect::<io::Result<Vec<_>>>()?;
    if links.is_empty() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(links)
}

impl Process {
    /// Hands over the process.
    pub(in crate::supervise) fn leave(&self, heir: &mut Heir) -> LeftProcess {
        LeftProcess { pid: self.pid(), words: heir.gets(self.words()) }
    }
}
