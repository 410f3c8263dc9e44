//! A cable.

use std::collections::VecDeque;
use weir_core::frame::Frame;
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::time::Time;

/// A node that passes every frame at once as it came: the reference for middleboxes.
#[derive(Debug, Default)]
pub struct Wire {
    waiting: VecDeque<(Time, Port, Frame)>,
}

impl Node for Wire {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.waiting.push_back((cx.now, Port(1 - port.0.min(1)), frame));
    }

    fn poll_transmit(&mut self, _: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        let first = self.waiting.iter().position(|w| writable.contains(w.1))?;
        let (at, port, frame) = self.waiting.remove(first)?;
        Some(Transmit { port, at, frame })
    }

    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        self.waiting.iter().find(|w| writable.contains(w.1)).map(|w| w.0)
    }
}
