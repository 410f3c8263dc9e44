//! Preparation: from names of interfaces to programs attached to them, or to a list of all problems.

use super::changes::Changes;
use super::check::{self, Problems};
use super::control::Listener;
use super::setup::{Attach, Setup, Steered, TakenAcks, FRAMES_STALE};
use super::site::{Locks, Site};
use super::state::{in_use, Directory, Interface, Lock, PATIENCE};
use crate::bpf;
use crate::sys::clock;
use crate::sys::epoll::Waiter;
use crate::sys::link::{self, HostInterface, Monitor};
use crate::sys::memory;
use crate::sys::process::{self, Signals};
use std::io;
use std::os::fd::AsFd;

impl Setup {
    /// Returns all reasons why these interfaces cannot be set up now. Changes nothing.
    pub fn check(&self) -> Result<(), Problems> {
        self.find().map(drop)
    }

    /// Foreign programs on the interfaces, in words. They see the frames that Weir's programs let pass.
    pub fn others(&self) -> Vec<String> {
        let all = link::all().unwrap_or_default();
        let names = self.attach.names();
        let links = all.iter().filter(|link| names.contains(&link.name.as_str()));
        let of_link = |link: &HostInterface| {
            let mut words = Vec::new();
            for (hook, number, name) in bpf::programs_of_others(link.index) {
                let hook = if hook == bpf::Hook::Ingress { "ingress" } else { "egress" };
                words.push(format!("{} has a program of others at {hook}: {name} ({number})", link.name));
            }
            if link.xdp != 0 {
                words.push(format!(
                    "{} has an XDP program ({}): frames that it drops or redirects are not seen",
                    link.name, link.xdp
                ));
            }
            words
        };
        links.flat_map(of_link).collect()
    }

    /// Finds the interfaces, if there are no problems.
    fn find(&self) -> Result<Vec<HostInterface>, Problems> {
        let mut problems = check::host(self.pool.bytes() as u64 * u64::from(self.engines));
        problems.extend(check::files(process::raise_file_limit(), self.engines));
        let flows = self.flows.saturating_mul(self.engines);
        problems.extend(check::room(memory::limit(), self.memory().unwrap_or(0), flows));
        problems.extend(self.contradictions());
        problems.extend(check::marks(self.steered.spills(), process::kernel()));
        let all = link::all()?;
        if self.steered.frames().is_some() {
            problems.extend(check::long_segments(&all));
        }
        match check::interfaces(&self.attach.names(), &all) {
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
            (Attach::Pair { .. }, Steered::Acks(_) | Steered::Both { .. }) => {
                Some("ACKs are taken on one interface, the one towards the WAN: two are named".to_owned())
            }
            (_, Steered::All { .. } | Steered::Both { .. }) if self.engines > 1 => {
                Some("whole frames come to one engine: there cannot be several".to_owned())
            }
            (_, Steered::Acks(TakenAcks { out: false, inward: false, .. })) => {
                Some("no class controls ACKs: there is nothing to take".to_owned())
            }
            (Attach::Dev(_), Steered::All { out: false, inward: false }) => {
                Some("neither direction is to be taken: there is nothing to do".to_owned())
            }
            _ => None,
        }
    }

    /// Opens the socket of an instance, if it is to have one.
    pub(super) fn listener(&self, instance: &str) -> io::Result<Option<Listener>> {
        let open = || Listener::open(Directory::open(&self.state)?, instance);
        self.control.then(open).transpose()
    }

    /// Waits until the interfaces exist, or as long as permitted.
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
            if signals.heard().ends {
                return Err(Problems(vec!["told to stop while waiting for interfaces".to_owned()]));
            }
        }
    }

    /// Sets everything up, or leaves the host as it was.
    pub(super) fn apply(&self, signals: &Signals) -> Result<Site, Problems> {
        self.wait(signals)?;
        let mut links = self.find()?;
        let directory = Directory::open(&self.state)?;
        let interface = |link: &HostInterface| Interface { name: link.name.clone(), index: link.index };
        let interfaces: Vec<Interface> = links.iter().map(interface).collect();
        let instance = interfaces.iter().map(|i| i.index.to_string()).collect::<Vec<_>>().join("+");
        let lock = |interface| directory.lock(interface, &instance);
        let locks = interfaces.iter().map(lock).collect::<io::Result<Vec<_>>>()?;
        interfaces.iter().try_for_each(nobody_beats)?;
        let mut changes = Changes::open(directory.again()?, &instance, &interfaces)?;
        let left = left_behind(&directory, &interfaces)?;
        if !changes.is_empty() || !left.is_empty() {
            tracing::warn!("the last run was killed: undoing what it had changed");
            let undone = left.into_iter().flat_map(|(mut changes, _locks)| changes.undo());
            changes.undo().into_iter().chain(undone).for_each(|what| tracing::info!("{what}"));
            links = self.find()?;
        }
        Site::build(self, &links, changes, Locks { directory, instance, held: locks }).map_err(Problems::from)
    }
}

/// Fails if programs of a living engine are on the interface, although its lock is free: an instance with
/// another directory, as in a container, or whose lock was removed.
fn nobody_beats(interface: &Interface) -> io::Result<()> {
    let until = clock::now() + PATIENCE;
    loop {
        let now = clock::now();
        match bpf::last_beat_on(interface.index) {
            Some(beat) if now.since(beat) > FRAMES_STALE => return Ok(()),
            None => return Ok(()),
            // It may be about to end.
            Some(_) if now < until => std::thread::sleep(std::time::Duration::from_millis(10)),
            Some(_) => return Err(in_use(&interface.name)),
        }
    }
}

/// Changes that dead instances left behind on interfaces that were made again since, with the same names and
/// other numbers. The locks keep other instances away from them.
fn left_behind(directory: &Directory, interfaces: &[Interface]) -> io::Result<Vec<(Changes, Vec<Lock>)>> {
    let mut left = Vec::new();
    for instance in directory.names()? {
        let changes = Changes::open(directory.again()?, &instance, &[])?;
        let theirs = changes.interfaces();
        let made_again = theirs
            .iter()
            .any(|old| interfaces.iter().any(|new| new.name == old.name && new.index != old.index));
        let locks = theirs
            .iter()
            .map(|interface| directory.try_lock(interface, &instance))
            .collect::<io::Result<Vec<_>>>();
        if let (true, Ok(locks)) = (made_again, locks) {
            left.push((changes, locks));
        }
    }
    Ok(left)
}
