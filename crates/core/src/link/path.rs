//! Both directions of a path: what `weir wan` runs between two interfaces.

use super::{Config, Link};
use crate::frame::Frame;
use crate::node::{Cx, Node, Port, PortSet, Transmit};
use crate::stats::DropReason;
use crate::time::Time;

/// A [`Link`] each way between two ports. The directions share nothing: a closed port on one side does
/// not hold up the other.
#[derive(Debug)]
pub struct Path {
    out: Link,
    back: Link,
    /// `now` and `writable` of the last poll.
    polled: (Time, PortSet),
}

impl Path {
    /// The LAN side: frames that come in here travel out.
    pub const LAN: Port = Port(0);
    /// The WAN side: frames that come in here travel back.
    pub const WAN: Port = Port(1);

    /// A path with these two directions. Give them different seeds, or they lose alike.
    pub fn new(out: Config, back: Config) -> Path {
        Path { out: Link::new(out), back: Link::new(back), polled: (Time::ZERO, PortSet::ALL) }
    }
    /// The direction from [`Path::LAN`] to [`Path::WAN`].
    pub fn out(&self) -> &Link {
        &self.out
    }
    /// The direction from [`Path::WAN`] to [`Path::LAN`].
    pub fn back(&self) -> &Link {
        &self.back
    }
    /// Brings both directions up to `now`; see [`Link::advance`].
    pub fn advance(&mut self, now: Time) {
        self.out.advance(now);
        self.back.advance(now);
    }

    /// Does a frame due at `due` only wait for `port` to open?
    fn blocked(&self, port: Port, due: Time) -> bool {
        due <= self.polled.0 && !self.polled.1.contains(port)
    }
}

impl Node for Path {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        match port {
            Path::LAN => self.out.handle_frame(cx, Link::IN, frame),
            Path::WAN => self.back.handle_frame(cx, Link::IN, frame),
            _ => cx.drop(frame, DropReason::NotWired),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        self.polled = (cx.now, writable);
        self.advance(cx.now);
        let out = self.out.next_deadline().filter(|_| writable.contains(Path::WAN));
        let back = self.back.next_deadline().filter(|_| writable.contains(Path::LAN));
        let (at, frame, port) = match (out, back) {
            (None, None) => return None,
            (Some(o), b) if b.is_none_or(|b| o <= b) => self.out.take(cx.now).map(|(t, f)| (t, f, Path::WAN)),
            _ => self.back.take(cx.now).map(|(t, f)| (t, f, Path::LAN)),
        }?;
        Some(Transmit { port, at, frame })
    }

    /// The earliest of both directions; one that waits for its port to open does not hide the other.
    fn next_deadline(&self) -> Option<Time> {
        let out = self.out.next_deadline();
        let back = self.back.next_deadline();
        let open_out = out.filter(|&t| !self.blocked(Path::WAN, t));
        let open_back = back.filter(|&t| !self.blocked(Path::LAN, t));
        let first = open_out.into_iter().chain(open_back).min();
        first.or_else(|| out.into_iter().chain(back).min())
    }
}
