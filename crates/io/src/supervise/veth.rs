//! The internal pair of interfaces, to which all frames of one interface are redirected. A frame sent into
//! one end comes out of the other. A packet socket reads it there with its giant segments whole.

use super::changes::{Change, Changes};
use crate::bpf::{All, Attached, LeftLink};
use crate::sys::ethtool::Ethtool;
use crate::sys::inherit::Heir;
use crate::sys::link::{self, Event, HostInterface};
use crate::sys::packet::{Device, PacketSender};
use std::io;
use weir_core::time::{Duration, Time};

/// Segmentation of packets inside tunnels. Notes on it do not survive a packet socket, so the kernel segments
/// before.
const TUNNELS: [&str; 6] = [
    "tx-udp_tnl-segmentation",
    "tx-udp_tnl-csum-segmentation",
    "tx-gre-segmentation",
    "tx-gre-csum-segmentation",
    "tx-ipxip4-segmentation",
    "tx-ipxip6-segmentation",
];

/// Least time between repairs, so that a program that spoils the pair again and again does not keep the
/// supervisor busy.
const BETWEEN_REPAIRS: Duration = Duration::from_millis(100);

/// The pair.
#[derive(Debug)]
pub(super) struct Internal {
    /// Numbers of its ends. Frames seen at egress are sent into the first, frames seen at ingress into the
    /// second.
    pub ends: [u32; 2],
    /// True for each end if frames can pass it.
    sound: [bool; 2],
    repaired: Time,
    sinks: [Attached; 2],
    /// A socket on each end, as the engine has one: it is lost with the end, even if that comes back.
    sockets: Vec<PacketSender>,
}

fn sockets(ends: [u32; 2]) -> io::Result<Vec<PacketSender>> {
    let open = |ifindex| PacketSender::open(Device { ifindex, ethernet: true }, false);
    ends.into_iter().map(open).collect()
}

/// Change of the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// No change.
    Nothing,
    /// Frames do not get through, or not all of them.
    Broken,
    /// The pair is as it was made again.
    Sound,
    /// The pair is gone.
    Gone,
}

impl Internal {
    /// Makes the pair for the interface `dev` with this number.
    pub fn make(changes: &mut Changes, dev: &str, index: u32, all: &All) -> io::Result<Internal> {
        let names = names(index);
        changes.record(Change::Veth { name: names[0].clone(), ends: None })?;
        link::create_veth([&names[0], &names[1]])?;
        let [a, b] = [end(&names[0])?, end(&names[1])?];
        // No frame is for this host: frames end behind the sockets.
        let sinks = [all.attach_sink(a)?, all.attach_sink(b)?];
        for end in [a, b] {
            link::set_up(end, true)?;
        }
        // From here on the pair is known by its numbers, whatever its names are.
        changes.replace(Change::Veth { name: names[0].clone(), ends: Some([a, b]) })?;
        tracing::info!("{} and {} carry the frames of {dev} to the engine", names[0], names[1]);
        let (sound, sockets) = ([true; 2], sockets([a, b])?);
        Ok(Internal { ends: [a, b], sound, repaired: Time::ZERO, sinks, sockets })
    }

    /// Hands the pair over: its ends, and the programs on them.
    pub fn leave(&self, heir: &mut Heir) -> ([u32; 2], [Vec<LeftLink>; 2]) {
        let [a, b] = &self.sinks;
        (self.ends, [a.leave(heir), b.leave(heir)])
    }

    /// Adopts the pair of the program before.
    pub fn adopt((ends, [a, b]): &([u32; 2], [Vec<LeftLink>; 2])) -> io::Result<Internal> {
        let sinks = [Attached::adopt(a)?, Attached::adopt(b)?];
        let (sound, sockets) = ([true; 2], sockets(*ends)?);
        let mut pair = Internal { ends: *ends, sound, repaired: Time::ZERO, sinks, sockets };
        pair.look_at(&link::all()?);
        Ok(pair)
    }

    /// Programs on its ends.
    pub fn sinks(&self) -> &[Attached; 2] {
        &self.sinks
    }

    /// Removes the rest of the pair after one end was moved away or removed.
    pub fn remove(&self) {
        // An end that is gone needs no removal.
        self.ends.iter().for_each(|end| drop(link::delete(*end)));
    }

    /// Returns whether this is one of its ends, and not as it was made.
    pub fn is_spoilt(&self, link: &HostInterface) -> bool {
        self.ends.contains(&link.index) && !is_sound(link)
    }

    /// Returns whether an end was away. The engine's socket on it is useless then.
    pub fn was_away(&self) -> bool {
        !self.sockets.iter().all(PacketSender::is_bound)
    }

    /// Returns whether the pair is as it was made.
    pub fn is_sound(&self) -> bool {
        self.sound == [true; 2]
    }

    /// Follows an event.
    pub fn hear(&mut self, event: &Event) -> Told {
        match event {
            Event::Gone(index) if self.ends.contains(index) => Told::Gone,
            Event::Is(link) => self.look(link),
            _ => Told::Nothing,
        }
    }

    /// Like [`Internal::hear`], for a list of all interfaces.
    pub fn look_at(&mut self, all: &[HostInterface]) -> Told {
        if !self.ends.iter().all(|end| all.iter().any(|link| link.index == *end)) {
            return Told::Gone;
        }
        all.iter().map(|link| self.look(link)).fold(Told::Nothing, |told, next| match (told, next) {
            (Told::Broken, _) | (_, Told::Broken) => Told::Broken,
            (told, Told::Nothing) => told,
            (_, told) => told,
        })
    }

    fn look(&mut self, link: &HostInterface) -> Told {
        let Some(end) = self.ends.iter().position(|end| *end == link.index) else { return Told::Nothing };
        let before = self.is_sound();
        self.sound[end] = is_sound(link);
        match (before, self.is_sound()) {
            (true, false) => {
                tracing::warn!("somebody has changed the internal interface {}: it is put right", link.name);
                Told::Broken
            }
            (false, true) => Told::Sound,
            _ => Told::Nothing,
        }
    }

    /// Restores the pair, if it is not as it was made. Events report the success.
    pub fn repair(&mut self, now: Time) {
        if self.is_sound() || now.since(self.repaired) < BETWEEN_REPAIRS {
            return;
        }
        self.repaired = now;
        for end in self.ends {
            let put_right = link::release(end).and_then(|()| link::set_mtu(end, link::LONGEST));
            if let Err(error) = put_right.and_then(|()| link::set_up(end, true)) {
                tracing::debug!("the internal interface numbered {end}: {error}");
            }
        }
    }
}

/// Returns whether the longest frames pass this end.
fn is_sound(end: &HostInterface) -> bool {
    end.up && end.mtu >= link::LONGEST && end.master == 0
}

/// Names of the two ends, the same at every start. Names of interfaces may change; the number does not.
fn names(index: u32) -> [String; 2] {
    ["a", "b"].map(|end| format!("weir-{index:x}{end}"))
}

/// Prepares one end and returns its number.
fn end(name: &str) -> io::Result<u32> {
    let link = link::find(name)?.ok_or(io::ErrorKind::NotFound)?;
    // The end is a wire, not a host: it must send nothing itself.
    let quiet = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
    if let Err(error) = std::fs::write(&quiet, "1") {
        tracing::debug!("{quiet}: {error}");
    }
    let tool = Ethtool::open(name)?;
    for feature in tool.features()?.iter().filter(|f| f.on && TUNNELS.contains(&f.name.as_str())) {
        if let Err(error) = tool.set_feature(&feature.name, false) {
            tracing::debug!("{name}: {}: {error}", feature.name);
        }
    }
    Ok(link.index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_is_changed_breaks_the_pair_until_it_is_put_right() {
        let end = |index| HostInterface { index, up: true, mtu: link::LONGEST, ..HostInterface::default() };
        let (sound, repaired, sinks) = ([true; 2], Time::ZERO, [Attached::none(), Attached::none()]);
        let mut pair = Internal { ends: [4, 5], sound, repaired, sinks, sockets: Vec::new() };
        for broken in [
            HostInterface { up: false, ..end(4) },
            HostInterface { mtu: 600, ..end(5) },
            HostInterface { master: 9, ..end(4) },
        ] {
            let index = broken.index;
            assert_eq!(pair.hear(&Event::Is(broken.clone())), Told::Broken);
            assert_eq!(pair.hear(&Event::Is(broken.clone())), Told::Nothing);
            assert_eq!(pair.hear(&Event::Is(end(9))), Told::Nothing);
            assert_eq!(pair.hear(&Event::Is(end(index))), Told::Sound);
            assert_eq!(pair.look_at(&[broken, end(9 - index)]), Told::Broken);
            assert_eq!(pair.look_at(&[end(4), end(5)]), Told::Sound);
        }
        assert_eq!(pair.hear(&Event::Gone(5)), Told::Gone);
        assert_eq!(pair.look_at(&[end(4)]), Told::Gone);
    }

    #[test]
    fn names_fit_an_interface() {
        assert_eq!(names(u32::MAX), ["weir-ffffffffa", "weir-ffffffffb"]);
        assert!(names(u32::MAX)[0].len() < 16);
    }
}
