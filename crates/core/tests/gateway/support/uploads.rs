//! Uploads of several flows through a gateway on its own, in virtual time.

use weir_core::flow::{flag, Record};
use weir_core::gateway::{Config, Gateway, LAN, WAN};
use weir_core::rig::{Rig, Sent, TestFrame};
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Seq;
use weir_core::wire::{self, Flags};

pub const ISN: u32 = 0xffff_e000;
const FIN: Flags = Flags(Flags::FIN.0 | Flags::ACK.0);

/// Uploads of any number of flows, by the sender's port.
pub struct Uploads {
    pub rig: Rig<Gateway>,
}

impl Uploads {
    pub fn new(gateway: Gateway) -> Uploads {
        Uploads { rig: Rig::new(gateway) }
    }

    /// As many flows whose handshakes took 20 ms and ended at `at`, one after the other by a microsecond.
    pub fn begun(config: Config, flows: u16, at: Time) -> Uploads {
        Uploads::begun_with(config, &vec![1_460; usize::from(flows)], at)
    }

    /// As [`Uploads::begun`], of a flow for each MSS that both of its SYNs tell.
    pub fn begun_with(config: Config, mss: &[u16], at: Time) -> Uploads {
        let flows = mss.len() as u16;
        let mut u = Uploads::new(Gateway::new(config));
        let start = at.saturating_sub(Duration::from_millis(20));
        for (f, &mss) in (0..).zip(mss) {
            let syn = u.sender(f).seq(ISN).ack(0).flags(Flags::SYN).mss(mss).window_scale(7);
            u.inject(start + Duration::from_micros(u64::from(f)), LAN, syn);
        }
        for (f, &mss) in (0..).zip(mss) {
            let answer =
                u.receiver(f).seq(0).ack(ISN.wrapping_add(1)).flags(Flags(Flags::SYN.0 | Flags::ACK.0));
            let at = at + Duration::from_micros(u64::from(f));
            u.inject(at, WAN, answer.mss(mss).window_scale(7).window(64_000));
        }
        u.run(at + Duration::from_micros(u64::from(flows)));
        u
    }

    /// Flow `f` opens at `at`, and is answered at `answered`.
    pub fn open(&mut self, at: Time, answered: Time, f: u16) {
        let syn = self.sender(f).seq(ISN).ack(0).flags(Flags::SYN).mss(1460).window_scale(7);
        self.inject(at, LAN, syn);
        let answer =
            self.receiver(f).seq(0).ack(ISN.wrapping_add(1)).flags(Flags(Flags::SYN.0 | Flags::ACK.0));
        self.inject(answered, WAN, answer.mss(1460).window_scale(7).window(64_000));
    }

    pub fn sender(&self, f: u16) -> SegmentBuilder {
        SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 1, 1])
            .ports(1_000 + f, 5_001)
            .seq(ISN.wrapping_add(1))
            .ack(1)
    }

    pub fn receiver(&self, f: u16) -> SegmentBuilder {
        SegmentBuilder::v4([10, 0, 1, 1], [10, 0, 0, 1]).ports(5_001, 1_000 + f).seq(1).window(4_000)
    }

    /// A segment of the sender of flow `f` behind this many bytes.
    pub fn data(&self, f: u16, bytes: u32) -> SegmentBuilder {
        self.sender(f).seq(ISN.wrapping_add(1).wrapping_add(bytes))
    }

    pub fn inject(&mut self, at: Time, port: weir_core::node::Port, segment: SegmentBuilder) {
        self.rig.at(at).inject(port, TestFrame::bytes(&segment.build()));
    }

    /// The receiver of flow `f` has got this many bytes.
    pub fn ack(&mut self, at: Time, f: u16, bytes: u32) {
        let segment = self.receiver(f).ack(ISN.wrapping_add(1).wrapping_add(bytes)).flags(Flags::ACK);
        self.inject(at, WAN, segment);
    }

    /// The receiver of flow `f`, who has got `all` bytes, has got these twice.
    pub fn twice(&mut self, at: Time, f: u16, bytes: std::ops::Range<u32>, all: u32) {
        let number = |bytes: u32| ISN.wrapping_add(1).wrapping_add(bytes);
        let block = [(number(bytes.start), number(bytes.end))];
        let segment = self.receiver(f).ack(number(all)).flags(Flags::ACK).sack(&block);
        self.inject(at, WAN, segment);
    }

    /// Injects an ACK like [`Uploads::ack`], with an unknown option.
    pub fn odd_ack(&mut self, at: Time, f: u16, bytes: u32) {
        let segment = self.receiver(f).ack(ISN.wrapping_add(1).wrapping_add(bytes)).flags(Flags::ACK);
        self.inject(at, WAN, segment.raw_options(&[253, 4, 0, 1]));
    }

    pub fn fin(&mut self, at: Time, f: u16, after: u32) {
        let segment = self.sender(f).seq(ISN.wrapping_add(1).wrapping_add(after)).flags(FIN);
        self.inject(at, LAN, segment);
    }

    /// Returns the ACKs that reach the senders: when, whose, and up to where each acknowledges.
    pub fn run(&mut self, until: Time) -> Vec<(Time, u16, u32)> {
        let sent = self.rig.run_until(until);
        let to_sender = |s: &&Sent| s.port == LAN;
        sent.iter().filter(to_sender).map(|s| (s.at, tcp(s).dst_port - 1_000, acked(s))).collect()
    }

    pub fn node(&self) -> &Gateway {
        self.rig.node()
    }

    /// Returns the record of flow `f`.
    pub fn record(&self, f: u16) -> &Record {
        let of = |r: &&Record| r.has(flag::USED) && r.key.src_port == 1_000 + f;
        self.node().flows.records().iter().find(of).unwrap()
    }

    /// Bytes that flow `f` was permitted and that were not received.
    pub fn early(&self, f: u16) -> u32 {
        self.record(f).law.turn().early
    }

    pub fn permitted(&self) -> u64 {
        self.node().flows.class_stats().map(|c| c.permitted_bytes).sum()
    }
}

pub fn tcp(s: &Sent) -> wire::Tcp {
    wire::tcp(&s.bytes, &wire::packet(&s.bytes, s.len).unwrap()).unwrap()
}

pub fn acked(s: &Sent) -> u32 {
    tcp(s).ack.since(Seq(ISN.wrapping_add(1)))
}

/// Returns the right edge up to which a sender may send.
pub fn edge(s: &Sent) -> u32 {
    acked(s) + (u32::from(tcp(s).window) << 7)
}
