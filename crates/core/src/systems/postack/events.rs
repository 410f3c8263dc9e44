//! Events of a class's queue, told to the gateway that releases ACKs by them.

use crate::flow::FlowId;

/// A frame that has come to a class whose ACKs follow its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Came {
    /// The index of the class in the configuration.
    pub(crate) class: usize,
    /// Flow of the packet, or the reason why none is known. `None` if it was dropped.
    pub(crate) flow: Option<Result<FlowId, Alone>>,
    /// Frames of the flow that wait.
    pub(crate) frames: u32,
    /// Packets that it stands for.
    pub(crate) packets: u32,
    /// Bytes that wait in the queue, with it.
    pub(crate) bytes: u64,
}

/// The queue of a class after a packet has left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    /// Packets that have left.
    pub(crate) packets: u32,
    /// Bytes that wait still.
    pub(crate) bytes: u64,
    /// With a queue for each flow: the flow of the packet, and how many frames of it wait still.
    pub(crate) left: Option<(FlowId, u32)>,
    /// Packet that leaves next; `None` if the queue is empty.
    pub(crate) next: Option<Next>,
}

/// The frame that leaves next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    /// Flow of the packet, with a queue for each.
    pub(crate) flow: Option<FlowId>,
    /// Frames of the flow that wait, with this one.
    pub(crate) frames: u32,
    /// Packets that the frame stands for.
    pub(crate) packets: u32,
    /// Flows of which anything waits.
    pub(crate) flows: u32,
}

/// Reason why no ACK of a packet is controlled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alone {
    /// See [`ScheduledOnly::not_tcp`](crate::gateway::ScheduledOnly::not_tcp).
    NotTcp,
    /// See [`ScheduledOnly::untouched`](crate::gateway::ScheduledOnly::untouched).
    Untouched,
    /// See [`ScheduledOnly::no_acks`](crate::gateway::ScheduledOnly::no_acks).
    NoAcks,
}
