//! Setup on the host: programs, their attachments, the interfaces that are followed, sockets.

use super::changes::{Change, Changes};
use super::senders::Senders;
use super::setup::{Attach, Setup, Steered, TakenAcks, FRAMES_STALE};
use super::sight::{self, Sight};
use super::state::Interface;
use super::state::{Directory, Lock};
use super::veth::{Internal, Told};
use super::watch::{Heard, Watched};
use crate::bpf::{role, Acks, All, Attached, Hooks, Leaving, Maps};
use crate::driver::{InterfaceState, InterfaceStates, Programs};
use crate::port::{Exit, ExitSockets, Packets};
use crate::sys::clock;
use crate::sys::link::{self, Event, HostInterface};
use crate::sys::packet::{Device, PacketSender};
use std::cell::RefCell;
use std::io;
use weir_core::combined::{LAN_WHOLE, WAN_WHOLE};
use weir_core::gateway::{LAN, WAN};
use weir_core::time::{Duration, Time};

/// Interval between looks at the programs and counts of the interfaces.
const EVERY: Duration = Duration::from_secs(1);

/// One interface of the instance.
#[derive(Debug)]
pub(super) struct Place {
    pub watched: Watched,
    pub ethernet: bool,
    pub attached: Option<Attached>,
}

impl Place {
    fn device(&self) -> Device {
        Device { ifindex: self.watched.index, ethernet: self.ethernet }
    }
}

/// Interfaces that this instance holds.
#[derive(Debug)]
pub(super) struct Locks {
    pub directory: Directory,
    /// Name of the instance: the numbers of its first interfaces.
    pub instance: String,
    pub held: Vec<Lock>,
}

impl Locks {
    /// Holds an interface that has come back as another one.
    fn hold(&mut self, interface: &Interface) -> io::Result<()> {
        if self.held.iter().all(|lock| lock.index != interface.index) {
            self.held.push(self.directory.try_lock(interface, &self.instance)?);
        }
        Ok(())
    }

    /// Returns whether other processes find all locks.
    pub fn are_there(&self) -> bool {
        self.held.iter().all(Lock::is_there)
    }

    /// Takes locks again whose files were removed, perhaps with their directory.
    pub fn take_again(&mut self, directory: Directory) -> io::Result<()> {
        self.directory = directory;
        let (directory, instance) = (&self.directory, &self.instance);
        let mut gone = self.held.iter_mut().filter(|lock| !lock.is_there());
        gone.try_for_each(|lock| lock.take_again(directory, instance))
    }

    /// Releases all interfaces but these and those in the name of the instance.
    fn keep(&mut self, indexes: &[u32]) {
        let own: Vec<u32> = self.instance.split('+').filter_map(|number| number.parse().ok()).collect();
        self.held.retain(|lock| indexes.contains(&lock.index) || own.contains(&lock.index));
    }
}

/// Device on which frames are sent that are to come in on the interface.
#[derive(Debug)]
pub(super) struct Home {
    pub index: u32,
    pub attached: Option<Attached>,
}

/// Everything that is set up. Dropping it detaches the programs.
#[derive(Debug)]
pub(super) struct Site {
    pub programs: Programs,
    pub interfaces: InterfaceStates,
    pub senders: Option<Senders>,
    pub changes: Changes,
    pub setup: Setup,
    /// Exits of engines that take ACKs. They outlive an engine, because closing them would take it tens of
    /// milliseconds (the kernel waits for all processors for each one).
    exits: RefCell<Vec<[Exit; 2]>>,
    exit_cookies: Vec<u64>,
    pub places: Vec<Place>,
    pub internal: Option<Internal>,
    pub home: Option<Home>,
    pub locks: Locks,
    sight: Sight,
    /// Time of the last look around.
    looked: Time,
    /// Last logged reason why programs could not be attached again.
    said: String,
}

/// Sockets of the engines of a process. The supervisor opens them, so the engine needs no privilege for it.
#[derive(Debug)]
pub(super) struct Sockets {
    pub inputs: Vec<Packets>,
    /// Exits of each engine.
    pub exits: Vec<[Exit; 2]>,
    pub cookies: Vec<u64>,
}

impl Site {
    /// Sets everything up, or leaves the host as it was.
    pub fn build(setup: &Setup, links: &[HostInterface], changes: Changes, locks: Locks) -> io::Result<Site> {
        let place = |link: &HostInterface| {
            let (watched, ethernet) = (Watched::new(link), link.ethernet);
            Place { watched, ethernet, attached: None }
        };
        let interfaces = InterfaceStates::new(links.iter().map(|link| link.name.clone()).collect())?;
        // Loading changes nothing on the host, so it comes first.
        let programs = load(setup, &links[0], None)?;
        let places = links.iter().map(place).collect();
        let mut site = Site { places, ..Site::of(programs, interfaces, setup, changes, locks) };
        let result = site.attach();
        if let Err(error) = result {
            site.tear_down();
            return Err(error);
        }
        site.settle_states();
        Ok(site)
    }

    /// Returns a site whose programs are attached nowhere.
    pub fn of(
        programs: Programs,
        interfaces: InterfaceStates,
        setup: &Setup,
        changes: Changes,
        locks: Locks,
    ) -> Site {
        Site {
            programs,
            interfaces,
            senders: None,
            changes,
            setup: setup.clone(),
            exits: RefCell::default(),
            exit_cookies: Vec::new(),
            places: Vec::new(),
            internal: None,
            home: None,
            locks,
            sight: Sight::default(),
            looked: Time::ZERO,
            said: String::new(),
        }
    }

    /// Tells engines the states of the interfaces.
    pub fn settle_states(&self) {
        for (i, place) in self.places.iter().enumerate() {
            self.interfaces.set(i, place.watched.state);
            if place.watched.state == InterfaceState::Down {
                tracing::warn!("interface {} is down: nothing is done until it is up", place.watched.name);
            }
        }
    }

    /// Makes the internal pair that frames are redirected to, if one is needed and missing.
    fn furnish(&mut self) -> io::Result<()> {
        if self.internal.is_some() {
            return Ok(());
        }
        if let (Some(all), Attach::Dev(dev)) = (self.programs.frames(), &self.setup.attach) {
            self.internal = Some(Internal::make(&mut self.changes, dev, self.places[0].watched.index, all)?);
            self.interfaces.set_internal(InterfaceState::Fine);
        }
        Ok(())
    }

    /// Redirects frames to the internal pair, or lets them pass if the pair does not work.
    fn redirect(&self) {
        let Some(all) = self.programs.frames() else { return };
        let sound = self.internal.as_ref().filter(|internal| internal.is_sound());
        let Some((internal, (out, inward))) = sound.zip(self.setup.steered.frames()) else {
            return all.redirect(0, 0);
        };
        let [egress, ingress] = internal.ends;
        all.redirect(if out { egress } else { 0 }, if inward { ingress } else { 0 });
    }

    /// Lets everything pass at once. Taken frames would not come back, and the number may belong to another
    /// interface in the namespace that one has moved to.
    fn shut(&self) {
        self.programs.set_gone(true);
        if let Some(all) = self.programs.frames() {
            all.redirect(0, 0);
        }
    }

    /// Opens the redirection for an engine that is about to start: taken frames come back again.
    pub fn open(&self) {
        self.redirect();
        self.programs.set_gone(false);
    }

    /// Attaches the programs where they are not, and opens the supervisor's own senders.
    pub fn attach(&mut self) -> io::Result<()> {
        self.furnish()?;
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
            place.attached = Some(put(&self.programs, index, pair)?);
        }
        self.lead_home()?;
        if let Some(old) = self.senders.take() {
            old.close(self.programs.hooks());
        }
        let ((lan, wan), inward) = (self.devices(), self.inward());
        self.senders = Some(Senders::open(self.programs.hooks(), lan, wan, inward)?);
        if let Programs::Acks(_) = self.programs {
            self.open_exits(lan, wan)?;
        }
        Ok(())
    }

    /// Finds the device on which frames are sent that are to come in on the interface: the loopback
    /// interface, if it is up, carries them and takes a program.
    fn lead_home(&mut self) -> io::Result<()> {
        let [place] = self.places.as_slice() else { return Ok(()) };
        if self.home.is_some() {
            return Ok(());
        }
        let all = link::all()?;
        let Some(lo) = all.iter().find(|link| leads_home(link)) else { return Ok(()) };
        // Without such links (before Linux 6.6), frames take the egress of the interface itself.
        match self.programs.attach_return(lo.index, place.watched.index) {
            Ok(attached) => self.home = Some(Home { index: lo.index, attached: Some(attached) }),
            Err(error) => {
                tracing::debug!("frames that are to come in are sent on the interface itself: {error}")
            }
        }
        Ok(())
    }

    /// Role of the frames that are sent towards the LAN.
    fn inward(&self) -> u32 {
        match self.places.as_slice() {
            [_] => role::TO_INGRESS,
            _ => 0,
        }
    }

    fn open_exits(&mut self, lan: Device, wan: Device) -> io::Result<()> {
        self.forget(&self.exit_cookies);
        let mut open = Opener { hooks: self.programs.hooks(), cookies: Vec::new() };
        let mut exit = |device, role, metadata: io::Result<Leaving>| {
            let restamp = Some(open.sender(device, false, role | role::RESTAMP)?);
            let sockets = ExitSockets { plain: open.sender(device, false, role)?, restamp };
            io::Result::Ok(Exit::new(sockets, true).with_metadata(metadata?))
        };
        let metadata = |engine, number| self.programs.leaving(engine as usize, number);
        let exits = (0..self.setup.engines).map(|engine| {
            let own = role::ENGINE | engine << role::NUMBER;
            let lan = exit(lan, role::TO_INGRESS | own, metadata(engine, 0))?;
            Ok([lan, exit(wan, own, metadata(engine, 1))?])
        });
        let exits = exits.collect::<io::Result<_>>()?;
        self.exit_cookies = open.done();
        *self.exits.borrow_mut() = exits;
        Ok(())
    }

    /// Devices of the node's two ports.
    fn devices(&self) -> (Device, Device) {
        let device = |i: usize| self.places[i].device();
        let home = self.home.as_ref().map(|home| Device { ifindex: home.index, ethernet: true });
        (home.unwrap_or_else(|| device(0)), device(self.places.len() - 1))
    }

    /// Returns whether all interfaces exist with programs on them, and the internal ones, too.
    pub fn is_whole(&self) -> bool {
        let furnished = self.internal.is_some() || !self.needs_internal();
        furnished && self.places.iter().all(|place| place.attached.is_some())
    }

    /// Returns whether hooks see the frames that leave.
    pub fn is_judged(&self) -> bool {
        matches!(self.setup.attach, Attach::Dev(_))
    }

    /// Returns whether frames are redirected to an internal pair.
    fn needs_internal(&self) -> bool {
        self.programs.frames().is_some() && matches!(self.setup.attach, Attach::Dev(_))
    }

    /// Follows events of the interfaces. True if programs were attached again, so that old sockets are
    /// useless.
    pub fn follow(&mut self, events: &[Event]) -> io::Result<bool> {
        let watched = |index: u32| self.places.iter().any(|place| place.watched.index == index);
        if events.iter().any(|event| matches!(event, Event::Gone(index) if watched(*index))) {
            self.shut();
        }
        let mut back = false;
        for event in events {
            let all = if *event == Event::Missed { Some(link::all()?) } else { None };
            back |= self.follow_internal(event, all.as_deref()) | self.has_lost_home(event);
            back |= self.has_found_home(event)?;
            let mut lost = false;
            for (i, place) in self.places.iter_mut().enumerate() {
                let before = place.watched.index;
                let heard = match &all {
                    Some(all) => place.watched.look(all),
                    None => place.watched.hear(event),
                };
                if heard != Heard::Nothing {
                    self.interfaces.set(i, place.watched.state);
                }
                if place.watched.index != before {
                    // The links would stay on an interface that has moved to another network namespace.
                    place.attached = None;
                    lost = true;
                }
                back |= heard == Heard::Back;
            }
            if lost {
                self.sight.forget();
                self.shut();
                self.home = None;
            }
        }
        self.internal.iter_mut().for_each(|internal| internal.repair(clock::now()));
        back |= events.contains(&Event::Missed) && self.has_lost_sockets();
        Ok(back && self.places.iter().all(|place| place.watched.index != 0) && self.reattach())
    }

    /// Returns whether an interface was away and is back with its number, without an event that was heard.
    /// Sockets on it are useless then, and everything passes until there are others.
    fn has_lost_sockets(&mut self) -> bool {
        if self.places.iter().any(|place| place.watched.index == 0) {
            return false;
        }
        let inside = self.internal.as_ref().is_some_and(Internal::was_away);
        if inside {
            self.drop_internal();
        }
        let unbound = self.senders.as_ref().is_some_and(|senders| !senders.are_bound());
        let outside = unbound && self.are_listed();
        if outside {
            tracing::warn!("an interface was away unnoticed: its programs and sockets are made again");
            self.places.iter_mut().for_each(|place| place.attached = None);
            self.sight.forget();
            self.shut();
            self.home = None;
        }
        inside || outside
    }

    /// Returns whether the kernel lists all interfaces. One that is leaving is not listed, while the event
    /// that it is gone may be still to come.
    fn are_listed(&self) -> bool {
        let listed =
            |all: &[HostInterface], place: &Place| all.iter().any(|link| link.index == place.watched.index);
        link::all().is_ok_and(|all| self.places.iter().all(|place| listed(&all, place)))
    }

    /// Gives up the internal pair, which is made again.
    fn drop_internal(&mut self) {
        tracing::warn!("somebody has removed the internal interfaces: they are made again");
        self.interfaces.set_internal(InterfaceState::Gone);
        self.internal.iter().for_each(Internal::remove);
        self.internal = None;
        self.redirect();
    }

    /// Returns whether the device for frames that are to come in has become useless.
    fn has_lost_home(&mut self, event: &Event) -> bool {
        let lost = self.home.as_ref().is_some_and(|home| match event {
            Event::Is(link) => link.index == home.index && !leads_home(link),
            Event::Gone(index) => *index == home.index,
            Event::Missed => false,
        });
        if lost {
            let why = match event {
                Event::Is(link) if link.up => format!("takes packets of {} bytes at most", link.mtu),
                _ => "is down".into(),
            };
            tracing::warn!(
                "the loopback interface {why}: ACKs come in by the egress of the interface itself"
            );
            self.shut();
            self.home = None;
        }
        lost
    }

    /// Returns whether the device for frames that are to come in is there now, but was not before.
    fn has_found_home(&mut self, event: &Event) -> io::Result<bool> {
        let found = matches!(event, Event::Is(link) if leads_home(link));
        // It takes a program on the interface to lead there.
        if self.home.is_some() || !found || self.places.iter().any(|place| place.attached.is_none()) {
            return Ok(false);
        }
        self.lead_home()?;
        Ok(self.home.is_some())
    }

    /// Follows events of the internal pair. True if it has to be made again.
    fn follow_internal(&mut self, event: &Event, all: Option<&[HostInterface]>) -> bool {
        let Some(internal) = &mut self.internal else { return false };
        let told = match (all, event) {
            (Some(all), _) => internal.look_at(all),
            // The event may be older than the setup or repair of the pair.
            (None, Event::Is(link)) if internal.is_spoilt(link) => {
                link::all().map_or(Told::Broken, |all| internal.look_at(&all))
            }
            (None, event) => internal.hear(event),
        };
        match told {
            Told::Nothing => return false,
            Told::Broken => self.interfaces.set_internal(InterfaceState::Down),
            Told::Sound => self.interfaces.set_internal(InterfaceState::Fine),
            Told::Gone => {
                self.drop_internal();
                return true;
            }
        }
        self.redirect();
        false
    }

    /// Attaches to interfaces that are back. After a failure the caller tries again.
    pub fn reattach(&mut self) -> bool {
        if self.places.iter().any(|place| place.watched.index == 0) {
            return false;
        }
        let result = self.hold().and_then(|()| self.attach());
        let why = result.as_ref().err().map_or(String::new(), io::Error::to_string);
        if !why.is_empty() && why != self.said {
            tracing::error!("cannot attach again: {why}");
        }
        self.said = why;
        result.is_ok()
    }

    /// Holds the current interfaces. Those that were made again have other numbers.
    fn hold(&mut self) -> io::Result<()> {
        for place in &self.places {
            let Watched { name, index, .. } = &place.watched;
            self.locks.hold(&Interface { name: name.clone(), index: *index })?;
        }
        let indexes: Vec<u32> = self.places.iter().map(|place| place.watched.index).collect();
        self.locks.keep(&indexes);
        Ok(())
    }

    /// Looks once a second whether the programs are where they were put, and whether they see what the
    /// interface counts.
    pub fn look_around(&mut self, now: Time) {
        if now.since(self.looked) < EVERY {
            return;
        }
        self.looked = now;
        if self.has_lost_sockets() {
            return;
        }
        self.compare_counts();
        let pair = self.places.len() > 1;
        for place in &mut self.places {
            let (index, name) = (place.watched.index, &place.watched.name);
            if put_back(&mut place.attached, (index, name), || put(&self.programs, index, pair)) {
                self.sight.forget();
            }
        }
        if let Some(home) = &mut self.home {
            let wan = self.places[0].watched.index;
            let back = || self.programs.attach_return(home.index, wan);
            put_back(&mut home.attached, (home.index, "the loopback interface"), back);
        }
    }

    /// Compares the interface's counts with the hooks', where hooks see the frames that leave.
    fn compare_counts(&mut self) {
        if !self.is_judged() {
            return;
        }
        let [place] = self.places.as_slice() else { return };
        let counted = place.attached.as_ref().and_then(|_| sight::counted(&place.watched.name));
        if let Ok(hooks) = self.programs.counters() {
            self.sight.look(counted, &hooks, &self.interfaces);
        }
    }

    /// Opens the sockets of an engine that takes everything; `None` for one that takes ACKs.
    pub fn sockets(&self) -> io::Result<Option<Sockets>> {
        if let Programs::Acks(_) = self.programs {
            return Ok(None);
        }
        let (lan, wan) = self.devices();
        // Frames redirected to one end arrive at the other.
        let [from_lan, from_wan] = match &self.internal {
            Some(internal) => [internal.ends[1], internal.ends[0]],
            None => [0, self.places.len() - 1].map(|place| self.places[place].watched.index),
        };
        let promiscuous = self.internal.is_none();
        let acks = self.programs.acks().is_some();
        let [lan_port, wan_port] = if acks { [LAN_WHOLE, WAN_WHOLE] } else { [LAN, WAN] };
        let mut inputs = vec![
            Packets::open(lan_port, from_lan, promiscuous)?,
            Packets::open(wan_port, from_wan, promiscuous)?,
        ];
        // Packet sockets without an Ethernet header take no notes, and so no giant segments.
        if !self.places.iter().all(|place| place.ethernet) {
            inputs.iter_mut().for_each(Packets::split_always);
        }
        if let (Some(_), Some(all)) = (&self.internal, self.programs.frames()) {
            for input in &mut inputs {
                let taken = input.take_metadata(all.arriving()?);
                if self.setup.steered.spills() {
                    taken?;
                } else if let Err(error) = taken {
                    tracing::debug!("frames lose mark, priority and departure time: {error}");
                }
            }
        }
        let mut open = Opener { hooks: self.programs.hooks(), cookies: Vec::new() };
        let mut exit = |device: Device, role, number| {
            let plain = open.sender(device, device.ethernet, role)?;
            let restamp = acks.then(|| open.sender(device, false, role | role::RESTAMP)).transpose()?;
            let exit = Exit::new(ExitSockets { plain, restamp }, false);
            // A bump in the wire has no hooks where frames leave.
            if self.internal.is_none() {
                return Ok(exit);
            }
            io::Result::Ok(exit.with_metadata(self.programs.leaving(0, number)?))
        };
        let exits = vec![[exit(lan, self.inward() | role::ENGINE, 0)?, exit(wan, role::ENGINE, 1)?]];
        Ok(Some(Sockets { inputs, exits, cookies: open.done() }))
    }

    /// Takes the copies of the exits that all engines use, in a forked process.
    pub fn shared_sockets(&self) -> io::Result<Sockets> {
        let exits = self.exits.take();
        Ok(Sockets { inputs: Vec::new(), exits, cookies: Vec::new() })
    }

    /// Leaves the interfaces to the supervisor, in a forked process.
    pub fn leave_to_parent(&self) {
        self.locks.held.iter().for_each(Lock::leave_to_parent);
    }

    /// Removes closed sockets from the programs' list.
    pub fn forget(&self, cookies: &[u64]) {
        cookies.iter().for_each(|cookie| self.programs.hooks().forget_sender(*cookie));
    }

    /// Detaches the programs and undoes the changes.
    pub fn tear_down(&mut self) {
        self.programs.beat(Time::ZERO);
        self.places.iter_mut().for_each(|place| place.attached = None);
        self.home = None;
        self.internal = None;
        self.changes.undo().iter().for_each(|what| tracing::debug!("{what}"));
    }
}

/// Least MTU of the loopback interface for frames that are to come in: that of IPv6 (RFC 8200 §5). ACKs,
/// SYNs and SYN-ACKs are all shorter.
const LEAST_MTU: u32 = 1280;

/// Returns whether frames that are to come in can be sent on this device.
fn leads_home(link: &HostInterface) -> bool {
    link.loopback && link.up && link.mtu >= LEAST_MTU
}

/// Attaches the programs to an interface, which may be one of a pair.
fn put(programs: &Programs, index: u32, pair: bool) -> io::Result<Attached> {
    match programs {
        Programs::All(all) if pair => all.attach_drop(index),
        programs => programs.attach(index),
    }
}

/// Attaches programs again that somebody has taken off the interface with this number and name. True if there
/// were some.
fn put_back(
    attached: &mut Option<Attached>,
    (index, name): (u32, &str),
    again: impl FnOnce() -> io::Result<Attached>,
) -> bool {
    if attached.as_ref().is_none_or(Attached::is_on) || !link::exists(index) {
        return false;
    }
    // The others come off, too: together they are attached in their order.
    *attached = None;
    match again() {
        Ok(new) => {
            *attached = Some(new);
            tracing::warn!("somebody has taken the programs off {name}: they are attached again");
        }
        Err(error) => tracing::warn!("somebody has taken the programs off {name}: {error}"),
    }
    true
}

/// Opener of senders that the programs know. The programs forget the senders of an opener that is dropped
/// before it is done, because their list has room for few.
struct Opener<'a> {
    hooks: &'a Hooks,
    cookies: Vec<u64>,
}

impl Drop for Opener<'_> {
    fn drop(&mut self) {
        self.cookies.iter().for_each(|cookie| self.hooks.forget_sender(*cookie));
    }
}

impl Opener<'_> {
    /// Cookies of the senders, which stay known.
    fn done(mut self) -> Vec<u64> {
        std::mem::take(&mut self.cookies)
    }

    fn sender(&mut self, device: Device, vnet: bool, role: u32) -> io::Result<PacketSender> {
        let sender = PacketSender::open(device, vnet)?;
        sender.take_departures()?;
        let cookie = sender.cookie()?;
        self.hooks.register_sender(cookie, role)?;
        self.cookies.push(cookie);
        Ok(sender)
    }
}

/// Maps of the programs before.
#[derive(Debug)]
pub(super) struct OldMaps {
    pub acks: Option<Maps>,
    pub frames: Option<Maps>,
}

/// Loads the programs, on the maps of others with the same setup if there are some.
pub(super) fn load(setup: &Setup, link: &HostInterface, old: Option<&OldMaps>) -> io::Result<Programs> {
    let old_acks = old.and_then(|old| old.acks.as_ref());
    let old_frames = old.and_then(|old| old.frames.as_ref());
    let acks = |taken: TakenAcks| Acks::load_on(&setup.acks(taken, link.ethernet), old_acks).map(Box::new);
    match setup.steered {
        Steered::All { .. } => {
            All::load_behind(None, [false; 2], setup.stale, link.ethernet, old_frames).map(Programs::All)
        }
        Steered::Acks(taken) => acks(taken).map(Programs::Acks),
        Steered::Both { acks: taken, .. } => {
            let acks = acks(taken)?;
            let (spilled, stale) = ([taken.spill_out, taken.spill_in], setup.stale.max(FRAMES_STALE));
            let all = All::load_behind(Some(&acks), spilled, stale, link.ethernet, old_frames)?;
            Ok(Programs::Both(acks, all))
        }
    }
}
