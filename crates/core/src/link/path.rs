//! Both directions of a path, as `weir wan` runs them between two interfaces.

use super::{Config, Link};
use crate::frame::Frame;
use crate::node::{Cx, Node, Port, PortSet, Transmit};
use crate::stats::DropReason;
use crate::time::Time;

/// A [`Link`] each way between two ports. The directions share nothing: a closed port on one side does not
/// hold up the other.
#[derive(Debug)]
pub struct Path {
    out: Link,
    back: Link,
}

impl Path {
    /// LAN side: frames that enter here travel out.
    pub const LAN: Port = Port(0);
    /// WAN side: frames that enter here travel back.
    pub const WAN: Port = Port(1);

    /// Returns a path with these two directions. Give them different seeds, or they lose alike.
    pub fn new(out: Config, back: Config) -> Path {
        Path { out: Link::changeable(out), back: Link::changeable(back) }
    }

    /// Changes both directions from `cx.now` on, in all that is not [fixed](Config::fixed). Ask for the
    /// deadline again afterwards.
    pub fn change(&mut self, cx: &mut Cx<'_>, out: Config, back: Config) {
        self.out.change(cx, out);
        self.back.change(cx, back);
    }

    /// Returns the direction from [`Path::LAN`] to [`Path::WAN`].
    pub fn out(&self) -> &Link {
        &self.out
    }
    /// Returns the direction from [`Path::WAN`] to [`Path::LAN`].
    pub fn back(&self) -> &Link {
        &self.back
    }
    /// Advances both directions to `cx.now`, see [`Link::advance`].
    pub fn advance(&mut self, cx: &mut Cx<'_>) {
        self.out.advance(cx);
        self.back.advance(cx);
    }

    /// Returns the times at which the next frame leaves towards the WAN and towards the LAN, if that port is
    /// writable.
    fn due(&self, writable: PortSet) -> (Option<Time>, Option<Time>) {
        let open = |link: &Link, port| link.next_deadline(PortSet::ALL).filter(|_| writable.contains(port));
        (open(&self.out, Path::WAN), open(&self.back, Path::LAN))
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
        self.advance(cx);
        let (out, back) = self.due(writable);
        let (at, frame, port) = match (out, back) {
            (None, None) => return None,
            (Some(o), b) if b.is_none_or(|b| o <= b) => self.out.take(cx).map(|(t, f)| (t, f, Path::WAN)),
            _ => self.back.take(cx).map(|(t, f)| (t, f, Path::LAN)),
        }?;
        Some(Transmit { port, at, frame })
    }

    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        let (out, back) = self.due(writable);
        out.into_iter().chain(back).min()
    }
}
