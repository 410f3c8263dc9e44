//! Refusals of connections by [admission](super::admission), and what follows connections for it.

use super::way::Way;
use super::Sharing;
use crate::classify::spec::Refusal;
use crate::frame::{Charge, Checksum, Frame, Waiting};
use crate::node::Cx;
use crate::stats::DropReason;
use crate::time::Time;
use crate::track::Key;
use crate::wire::{self, Flags, Tcp};

impl Sharing {
    /// Returns how to refuse a frame of the class at this place. `None` if it is admitted.
    pub(super) fn refusal(
        &mut self,
        cx: &Cx<'_>,
        way: usize,
        place: Option<usize>,
        frame: &Frame,
    ) -> Option<Refusal> {
        let way = &mut self.ways[way];
        let (admission, tree) = way.admission.as_mut().zip(way.tree.as_ref())?;
        admission.refusal(tree, place?, (cx.frames.bytes(frame), frame.len()), cx.now)
    }

    /// Refuses a frame that would open a connection.
    pub(super) fn refuse(&mut self, cx: &mut Cx<'_>, way: usize, mut frame: Frame, refusal: Refusal) {
        let out = match refusal {
            Refusal::Drop => None,
            Refusal::Reset => reset(cx, &mut frame).map(|goes_on| if goes_on { way } else { 1 - way }),
        };
        let Some(out) = out else {
            self.ledger.drops.count(DropReason::Refused);
            return cx.drop(frame, DropReason::Refused);
        };
        let charge = Charge::of(&frame, cx.frames.bytes(&frame), self.overhead);
        let waiting = Waiting { frame: cx.frames.park(frame), charge, since: cx.now };
        self.ways[out].push_ready(cx.frames, waiting);
    }
}

impl Way {
    /// Handles a segment of the opposite direction that belongs to a connection with this key. A SYN has this
    /// `scale`.
    pub(super) fn is_answered(&mut self, key: &Key, tcp: &Tcp, scale: Option<Option<u8>>, now: Time) {
        if let (Some(admission), Some(tree)) = (&mut self.admission, &self.tree) {
            admission.is_answered(tree, key, tcp, scale, now);
        }
    }
}

/// Turns a SYN into a RST. Returns true if the RST goes on in the same direction, false if it goes back, and
/// `None` if the frame is no readable SYN.
fn reset(cx: &mut Cx<'_>, frame: &mut Frame) -> Option<bool> {
    let bytes = cx.frames.bytes_mut(frame);
    let packet = wire::packet(bytes, frame.len()).ok()?;
    let tcp = wire::tcp(bytes, &packet).ok()?;
    if !wire::refuse_syn(bytes, &packet, &tcp) {
        return None;
    }
    (frame.checksum, frame.gso_size) = (Checksum::Valid, 0);
    Some(tcp.flags.contains(Flags::ACK))
}
