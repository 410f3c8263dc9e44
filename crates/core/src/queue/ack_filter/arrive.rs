//! Arrival of a packet: its flow, and what the filter learns from it.

use super::AckFilter;
use crate::flow::Key;
use crate::frame::{Frames, Waiting};
use crate::systems::ack_filter::redundant::{Ack, Told};
use crate::systems::ack_filter::Growth;
use crate::time::Time;
use crate::wire::{self, Flags, Packet};

impl AckFilter {
    /// Returns the flow of an arriving packet, and its contents if it is a pure ACK.
    pub(super) fn meet(&mut self, frames: &Frames, waiting: &Waiting, now: Time) -> (u32, Option<Ack>) {
        let active = self.flows.active();
        self.flows.expire(|flow| self.gauge.is_over(flow, active, now));
        let frame = frames.parked(&waiting.frame);
        let bytes = frames.bytes(frame);
        let Ok(packet) = wire::any_packet(bytes, frame.len()) else {
            return (self.flows.find(Key::default(), now), None);
        };
        let i = self.flows.find(Key::of_packet(bytes, &packet), now);
        if i == self.flows.rest() {
            return (i, None);
        }
        match Ack::read(bytes, frame.len(), &packet, frame.checksum) {
            Some(mut ack) => {
                self.learn(i, &mut ack, now);
                (i, Some(ack))
            }
            None => {
                self.flows.table[i as usize].growth.note_other();
                self.note_opening(i, bytes, &packet);
                (i, None)
            }
        }
    }

    fn learn(&mut self, i: u32, ack: &mut Ack, now: Time) {
        let flow = &mut self.flows.table[i as usize];
        if let Some(opened) = flow.opened.take() {
            self.gauge.note_handshake(now.since(opened));
        }
        let beyond = flow.seen.learn(ack, flow.mss);
        flow.growth.note_ack(ack, beyond, (flow.mss, self.gauge.rtt()), now);
        if beyond > 0 {
            self.gauge.note_progress(beyond, flow.mss);
        }
    }

    /// Restarts the flow at a SYN, and ends it at a FIN or a RST.
    fn note_opening(&mut self, i: u32, bytes: &[u8], packet: &Packet) {
        let Some(tcp) = wire::tcp(bytes, packet).ok().filter(|_| !packet.fragment) else { return };
        let flow = &mut self.flows.table[i as usize];
        flow.ends |= tcp.flags.contains(Flags::FIN);
        if !tcp.flags.intersects(Flags::SYN.with(Flags::RST)) {
            return;
        }
        flow.ends = tcp.flags.contains(Flags::RST);
        flow.seen.forget();
        (flow.told, flow.growth) = (Told::default(), Growth::default());
        if tcp.flags.contains(Flags::SYN) {
            let options = wire::tcp_options(bytes, packet, &tcp).unwrap_or_default();
            (flow.syn_waits, flow.opened) = (true, None);
            flow.mss = options.mss.unwrap_or(0);
            flow.seen.begin(options.window_scale);
            flow.growth = Growth::begin();
        }
    }
}
