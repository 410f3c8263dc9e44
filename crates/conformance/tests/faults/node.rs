//! A node that does something to what passes.

use weir_conformance::Seg;
use weir_core::frame::Frame;
use weir_core::gateway::LAN;
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::time::{Duration, Time};

/// A frame on its way through.
pub struct Given {
    /// It comes from the data's receiver.
    pub back: bool,
    pub bytes: Vec<u8>,
    pub seg: Option<Seg>,
}

/// Memory of a fault.
#[derive(Default)]
pub struct Memory {
    pub count: u32,
    pub ack: Option<u32>,
    pub seq: Option<u32>,
    pub stamp: Option<u32>,
    pub flag: bool,
}

/// Frames that a frame becomes, each this many milliseconds later.
pub type Left = Vec<(u64, Vec<u8>)>;
pub type Fault = fn(&mut Memory, Given) -> Left;

/// Passes on what its fault makes of each frame.
pub struct Faulty {
    fault: Fault,
    memory: Memory,
    waiting: Vec<(Time, Port, Vec<u8>)>,
}

impl Faulty {
    pub fn new(fault: Fault) -> Faulty {
        Faulty { fault, memory: Memory::default(), waiting: Vec::new() }
    }
}

impl Node for Faulty {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        let bytes = cx.frames.bytes(&frame).to_vec();
        cx.frames.absorb(frame);
        let given = Given { back: port != LAN, seg: Seg::of(&bytes), bytes };
        for (ms, bytes) in (self.fault)(&mut self.memory, given) {
            let at = cx.now + Duration::from_millis(ms);
            let i = self.waiting.partition_point(|w| w.0 <= at);
            self.waiting.insert(i, (at, Port(1 - port.0), bytes));
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>, _: PortSet) -> Option<Transmit> {
        if self.waiting.first()?.0 > cx.now {
            return None;
        }
        let (at, port, bytes) = self.waiting.remove(0);
        let frame = cx.frames.make(bytes.len(), at).expect("a free chunk");
        cx.frames.bytes_mut(&frame).copy_from_slice(&bytes);
        Some(Transmit { port, at, frame })
    }

    fn next_deadline(&self, _: PortSet) -> Option<Time> {
        self.waiting.first().map(|w| w.0)
    }
}
