//! Flows that have spilled: their packets wait here, and leave when it is their turn.

use super::{Gateway, Register};
use crate::classify::Direction;
use crate::flow::{ClassId, Key};
use crate::frame::{Charge, Frame, Waiting};
use crate::node::{Cx, Port, LAN, WAN};
use crate::packet::mark;
use crate::stats::DropReason;
use crate::steer::congestion::is_marked;
use crate::systems::QUEUED;
use crate::time::Time;
use crate::wire;

/// Bytes that a queue has room for at any rate: ten full packets.
const LEAST: u64 = 10 * 1_500;

/// Place of a packet that has spilled.
struct Place {
    /// Queue of its flow. `None`: there is no room for a further one.
    queue: Option<u32>,
    /// Place of the class that the queue is of.
    class: ClassId,
    /// Charge of the packet, as the class counts it.
    charge: Charge,
    /// Bytes from its IP header on.
    bytes: u64,
}

/// A packet has come whose flow has spilled: the hint of the frame is the number of its queue.
pub(super) fn on_spilled(gateway: &mut Gateway, cx: &mut Cx<'_>, from_lan: bool, frame: Frame) {
    let port = if from_lan { WAN } else { LAN };
    if frame.received < gateway.flows.spilled_from {
        gateway.flows.stats.ledger.drops.count(DropReason::Aqm);
        return cx.drop(frame, DropReason::Aqm);
    }
    let found = spilled(&mut gateway.flows, cx, from_lan, port, &frame);
    let Some(Place { queue, class: place, charge, bytes }) = found else {
        return gateway.outbox.push(cx, &mut gateway.flows.stats.ledger, port, cx.now, frame);
    };
    let Register { spills: Some(spills), classes, .. } = &mut gateway.flows else { return };
    let room = classes.share(place).map_or(0, |share| share.each().bytes_in(QUEUED)).max(LEAST);
    let has_room = |i: &u32| spills.bytes(*i) == 0 || spills.bytes(*i) + charge.bytes <= room;
    let Some(i) = queue.filter(has_room) else {
        let stats = &mut classes[place];
        stats.spill_dropped += u64::from(charge.packets);
        stats.spill_dropped_bytes += bytes;
        gateway.flows.stats.ledger.drops.count(DropReason::QueueFull);
        return cx.drop(frame, DropReason::QueueFull);
    };
    let stats = &mut classes[place];
    stats.spilled_packets += u64::from(charge.packets);
    stats.spilled_bytes += bytes;
    let frame = cx.frames.park(frame);
    spills.push(cx.frames, i, Waiting { frame, charge, since: cx.now });
    list_spilled(&mut gateway.flows, i, place, cx.now);
}

/// It is the turn of a queue of the class at this place. Returns whether a packet left.
pub(super) fn visit_spilled(gateway: &mut Gateway, cx: &mut Cx<'_>, i: u32, place: ClassId) -> bool {
    let Register { spills: Some(spills), classes, stats, .. } = &mut gateway.flows else { return false };
    let Some(share) = classes.share_mut(place) else { return false };
    share.note_active(cx.now);
    let quantum = share.law.turn();
    let Some(sent) = spills.take(cx.frames, i, &mut share.spilled, quantum) else {
        if !spills.is_listed(i) {
            classes.leave(place);
            gateway.flows.tree(place).settle(place, cx.now);
        }
        return false;
    };
    let bytes = sent.waiting.charge.bytes;
    let frame = cx.frames.unpark(sent.waiting.frame);
    let ecn = mark::field(cx.frames.bytes(&frame));
    if ecn != 0 {
        let wait = cx.now.since(sent.waiting.since).as_nanos();
        let time = share.each().time_for(bytes).as_nanos();
        if is_marked(ecn, wait, time, QUEUED.as_nanos() / 2, cx.now.as_nanos()) {
            mark::mark(cx.frames.bytes_mut(&frame));
            classes[place].spill_marked += u64::from(sent.waiting.charge.packets);
        }
    }
    gateway.outbox.push(cx, &mut stats.ledger, sent.port, cx.now, frame);
    let forgiven = gateway.flows.tree(place).charge(place, bytes, cx.now, cx.now);
    gateway.flows.classes[place].forgiven_bytes += forgiven;
    true
}

/// All packets that wait here leave, whatever their turns.
pub(super) fn flush_spilled(gateway: &mut Gateway, cx: &mut Cx<'_>) {
    let Register { spills: Some(spills), stats, .. } = &mut gateway.flows else { return };
    let outbox = &mut gateway.outbox;
    spills.drain(cx, |cx, port, frame| outbox.push(cx, &mut stats.ledger, port, cx.now, frame));
}

/// Packets went past the engine before `cx.now`. Those that wait here, or are on their way, have been
/// overtaken, and are dropped.
pub(super) fn resync_spilled(gateway: &mut Gateway, cx: &mut Cx<'_>) {
    gateway.flows.spilled_from = cx.now;
    let Register { spills: Some(spills), stats, .. } = &mut gateway.flows else { return };
    spills.drain(cx, |cx, _, frame| {
        stats.ledger.drops.count(DropReason::Aqm);
        cx.drop(frame, DropReason::Aqm);
    });
}

/// Packets that left up to `now` are with the kernel: hooks may let those behind them pass.
pub(super) fn settle_spilled(gateway: &mut Gateway, now: Time) {
    let Some(mut spills) = gateway.flows.spills.take() else { return };
    spills.close(gateway.flows.spill_counts(), now);
    gateway.flows.spills = Some(spills);
}

/// Returns the place of a packet that has spilled. `None`: no class has a rate for it any more, and it leaves
/// at once.
fn spilled(flows: &mut Register, cx: &Cx<'_>, from_lan: bool, port: Port, frame: &Frame) -> Option<Place> {
    let direction = if from_lan { Direction::Out } else { Direction::In };
    let head = cx.frames.bytes(frame);
    let packet = wire::other_packet(head, frame.len())?;
    let place = flows.controls(direction, &Key::of_packet(head, &packet))?;
    let counts = flows.classes.share(place)?.law.counts;
    let spills = flows.spills.as_mut()?;
    let Charge { packets, bytes } = Charge::of(frame, head, 0);
    let known = frame.hint != Frame::NO_HINT;
    let queue = known.then(|| spills.open(frame.hint, (place, port), packets, cx.now)).flatten();
    let charge = Charge { packets, bytes: counts.cost_of_packets(packets.into(), bytes) };
    let class = queue.map_or(place, |queue| spills.class(queue));
    Some(Place { queue, class, charge, bytes })
}

/// A queue of the class at this place, which has a packet, has turns.
fn list_spilled(flows: &mut Register, i: u32, place: ClassId, now: Time) {
    let Some(spills) = flows.spills.as_mut().filter(|spills| !spills.is_listed(i)) else { return };
    let Some(share) = flows.classes.share_mut(place) else { return };
    share.note_active(now);
    spills.list(i, &mut share.spilled);
    flows.classes.join(place);
    flows.tree(place).settle(place, now);
}
