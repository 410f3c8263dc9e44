//! Generated ACKs: built from the flow's own record, never from a stored packet.

use crate::ack::window;
use crate::flow::{flag, Record, Template};
use crate::steer::slot_flag::SIZED;
use crate::steer::Slot;
use crate::tcp::Counters;
use crate::wire::{self, emit_ack, emit_known, AckFields, Flags, Packet, PlainAck, Seq, Timestamps, Vlan};
use core::sync::atomic::Ordering::Relaxed;

/// Bytes that hold any generated ACK: Ethernet with two tags, PPPoE, IPv6, TCP with timestamps, counters of
/// Accurate ECN and a SACK block.
pub const MAX_ACK_LEN: usize = wire::MAX_ACK_LEN;

const AD: u16 = 0x88a8;
const Q: u16 = 0x8100;

impl Template {
    /// The headers of a frame that the receiver sent: `bytes` as parsed into `p`. They hardly ever
    /// change, and a line of memory that is not written need not be written back.
    #[inline]
    pub fn learn(&mut self, bytes: &[u8], p: &Packet) {
        self.renew(
            Template {
                macs: wire::array(bytes, 0).unwrap_or_default(),
                tci: p.vlan.tci,
                tags: p.vlan.count
                    | u8::from(p.vlan.tpid[0] == AD) << 2
                    | u8::from(p.vlan.tpid[1] == AD) << 3,
                flow_label: p.flow_label,
                version: p.version,
                tos: p.tos,
                ttl: p.ttl,
            }
            .in_session(p.session(bytes)),
        );
    }

    /// As [`Template::learn`], of a pure ACK.
    #[inline]
    pub(super) fn learn_plain(&mut self, ack: &PlainAck) {
        self.renew(Template {
            macs: ack.macs,
            tci: [ack.tci.unwrap_or(0), 0],
            tags: u8::from(ack.tci.is_some()),
            flow_label: ack.flow_label,
            version: ack.version,
            tos: ack.tos,
            ttl: ack.ttl,
        });
    }

    #[inline]
    pub(in crate::gateway) fn renew(&mut self, seen: Template) {
        if *self != seen {
            *self = seen;
        }
    }

    #[inline]
    pub(in crate::gateway) fn vlan(&self) -> Vlan {
        if self.tags & 0x0f == 0 {
            return Vlan::NONE;
        }
        let tpid = |bit: u8, used: bool| match (used, self.tags & bit != 0) {
            (false, _) => 0,
            (true, true) => AD,
            (true, false) => Q,
        };
        let count = self.tags & 3;
        Vlan { count, tpid: [tpid(4, count > 0), tpid(8, count > 1)], tci: self.tci }
    }
}

/// An ACK's number, its window field, and whether it carries ECE where that is not a counter's.
pub(in crate::gateway) type Said = (Seq, u16, bool);

/// Writes the ACK that acknowledges `ack` and advertises `window`, with ECE, into `buf`; returns its length.
/// In an AccECN flow it has these counters instead, or the last counter that came.
#[inline(always)]
pub fn write_ack(
    r: &Record,
    slot: &Slot,
    (ack, window, ece): Said,
    counters: Option<&Counters>,
    buf: &mut [u8],
) -> usize {
    let (t, said) = (&r.template, (ack, window, ece));
    // Of most flows; where so much is known, all offsets are.
    if t.version == 4
        && t.tags == 0
        && t.session() == 0
        && r.has(flag::TIMESTAMPS)
        && !r.has_news()
        && counters.is_none()
    {
        return emit_known(buf, &fields(r, said, 4, (Vlan::NONE, 0), Some(timestamps(r, slot, ack))));
    }
    write_any(r, slot, said, counters, buf)
}

#[inline(never)]
fn write_any(r: &Record, slot: &Slot, said: Said, counters: Option<&Counters>, buf: &mut [u8]) -> usize {
    let timestamps = r.has(flag::TIMESTAMPS).then(|| timestamps(r, slot, said.0));
    let link = (r.template.vlan(), r.template.session());
    let plain = fields(r, said, r.template.version, link, timestamps);
    let plain = AckFields { sack: r.block_with(said.0), ..plain };
    match counters {
        Some(&Counters { ace, bytes, .. }) => {
            let flags = Flags::ACK.with(Flags::of_ace(ace as u8));
            emit_ack(buf, &AckFields { flags, ecn: Some(bytes), ..plain })
        }
        None => emit_ack(buf, &plain),
    }
}

#[inline]
pub(in crate::gateway) fn timestamps(r: &Record, slot: &Slot, ack: Seq) -> Timestamps {
    let echo = r.echoes.echo_for(ack).unwrap_or(r.echoes.any());
    Timestamps { value: slot.ts(), echo }
}

#[inline(always)]
pub(super) fn fields(
    r: &Record,
    (ack, window, ece): Said,
    version: u8,
    (vlan, session): (Vlan, u16),
    timestamps: Option<Timestamps>,
) -> AckFields {
    let t = &r.template;
    let flags = if r.has(flag::ACCECN) {
        Flags::ACK.with(Flags::of_ace(r.ace))
    } else if ece {
        Flags::ACK.with(Flags::ECE)
    } else {
        Flags::ACK
    };
    AckFields {
        macs: t.macs,
        vlan,
        session,
        version,
        src: r.key.dst,
        dst: r.key.src,
        tos: t.tos & !3, // pure ACKs are not ECN-capable (RFC 3168 §6.1.4)
        ttl: t.ttl,
        flow_label: t.label(),
        src_port: r.key.dst_port,
        dst_port: r.key.src_port,
        seq: r.seq,
        ack,
        flags,
        window,
        timestamps,
        ecn: None,
        sack: None,
    }
}

/// The ACK that passes on everything a flow holds, for a supervisor that finds record and slot after their
/// engine died; where the slot bounds the window no more, that tells the receiver's own. `None` when there is
/// nothing to be told or nothing may be sent in the flow's name. Sent by way of the hooks it is brought up to
/// date, or discarded if the sender knows more by then.
pub fn rescue_ack(r: &Record, slot: &Slot, buf: &mut [u8; MAX_ACK_LEN]) -> Option<usize> {
    let mut r = *r;
    let live = r.has(flag::USED | flag::SYNCED) && !r.has(flag::CLOSED) && r.template.version != 0;
    if !live || slot.tag.load(Relaxed) != r.tag {
        return None;
    }
    r.catch_up(slot);
    r.tx = slot.tx(); // what was made and did not leave is held
                      // And so is what was taken after the engine's last look, which waits in the ring.
    let (ack, tx) = (slot.ack(), r.tx);
    let newest = if ack.is_after(tx) { ack } else { tx };
    if newest.is_after(r.rx) {
        (r.rx, r.window) = (newest, slot.window());
    }
    let limit = Some(slot.width.load(Relaxed)).filter(|&bytes| bytes > 0);
    // Nothing else tells a sender that its window is no longer sized.
    let tells = limit.is_none() && r.window != 0 && slot.has(SIZED) && window::is_news(&r, r.window, None);
    if r.held() == 0 && !tells || r.held() > 1 << 30 {
        return None;
    }
    let window = window::field_for(&r, r.rx, limit);
    Some(write_ack(&r, slot, (r.rx, window, r.shows_ece()), None, buf))
}
