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
}

impl Path {
    /// The LAN side: frames that come in here travel out.
    pub const LAN: Port = Port(0);
    /// The WAN side: frames that come in here travel back.
    pub const WAN: Port = Port(1);

    /// A path with these two directions. Give them different seeds, or they lose alike.
    pub fn new(out: Config, back: Config) -> Path {
        Path { out: Link::new(out), back: Link::new(back) }
    }
    /// The direction from [`Path::LAN`] to [`Path::WAN`].
    pub fn out(&self) -> &Link {
        &self.out
    }
    /// The direction from [`Path::WAN`] to [`Path::LAN`].
    pub fn back(&self) -> &Link {
        &self.back
    }
    /// Brings both directions up to `cx.now`; see [`Link::advance`].
    pub fn advance(&mut self, cx: &mut Cx<'_>) {
        self.out.advance(cx);
        self.back.advance(cx);
    }

    /// When the next frame leaves each way, if that port is writable: towards the WAN, and the LAN.
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
