//! Loaded programs, flows, and frames to run them on.

use crate::bpf::abi::{role, Budget};
use crate::bpf::acks::program;
use crate::bpf::{named, Acks, AcksOptions, Fate, Hook};
use crate::sys::clock;
pub use crate::sys::testing::privileged;
use libbpf_rs::ProgramInput;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_core::flow::Key;
use weir_core::gateway::Verdict;
use weir_core::steer::{slot_flag, ticks, Slot};
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::TCP;

pub const PASS: u32 = u32::MAX;
pub const REDIRECT: u32 = 7;

/// Addresses whose bytes look like an Ethernet type where a frame has one: test runs take the protocol of a
/// packet without Ethernet header from there.
pub const A: Ipv4Addr = Ipv4Addr::new(8, 0, 0, 1);
pub const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub const A6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x86dd, 0, 0, 0, 0, 1);
pub const B6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

/// The receiver of the data is at A, port 5001.
pub fn v4() -> SegmentBuilder {
    SegmentBuilder::v4(A, B).ports(5001, 80)
}
pub fn v6() -> SegmentBuilder {
    SegmentBuilder::v6(A6, B6).ports(5001, 80)
}
/// The flow of frames from `src` to `dst` with these VLAN identifiers.
pub fn flow_key(src: (IpAddr, u16), dst: (IpAddr, u16), vlan: u16, inner_vlan: u16) -> Key {
    Key::new(TCP, src.into(), dst.into()).tagged([vlan, inner_vlan])
}
pub fn key4(vlan: u16, inner: u16) -> Key {
    flow_key((IpAddr::from(A), 5001), (IpAddr::from(B), 80), vlan, inner)
}
pub fn key6(vlan: u16, inner: u16) -> Key {
    flow_key((IpAddr::from(A6), 5001), (IpAddr::from(B6), 80), vlan, inner)
}

/// Offsets in `struct __sk_buff`, and its length.
const GSO_SIZE: usize = 176;
const GSO_SEGS: usize = 164;
const CONTEXT: usize = 192;
/// Offset of `ingress_ifindex`, behind which `ifindex` is; and the number of the loopback interface, where
/// test runs are.
const INGRESS_IFINDEX: usize = 36;
const LOOPBACK: u32 = 1;

/// Offset of `cb[0]`, and what says there that a frame spills (`abi.h`).
const CB: usize = 48;
const SPILLED: u32 = 0x5745_0000;

/// A record of the ring, kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub hook: Hook,
    pub fate: Fate,
    pub len: usize,
    pub gso_size: u16,
    pub head: Vec<u8>,
}

pub struct Rig {
    pub acks: Acks,
    /// Programs with these maps that take every frame for one of a socket with [`role::RESTAMP`].
    pub own: Acks,
    /// Rings by engine.
    pub rings: Vec<crate::bpf::Segments>,
}

/// As many as anyone could ask for.
pub const PLENTY: Budget = Budget::new(1_000_000_000, 1_000_000_000);

pub fn options() -> AcksOptions {
    AcksOptions {
        ring: 1 << 16,
        takes: PLENTY,
        copies: PLENTY,
        syns: PLENTY,
        opens: PLENTY,
        ends: PLENTY,
        ..AcksOptions::new(8)
    }
}

impl Rig {
    pub fn new(options: AcksOptions) -> Rig {
        let acks = Acks::load(&options).unwrap();
        let own =
            Acks::load_with(&options, acks.assuming(&options, role::RESTAMP), Some(&acks.maps().unwrap()))
                .unwrap();
        let rings = (0..acks.engines()).map(|number| acks.segments_of(number).unwrap()).collect();
        let rig = Rig { acks, own, rings };
        rig.fresh(true);
        rig
    }

    /// All engines are there, or none.
    pub fn fresh(&self, fresh: bool) {
        (0..self.acks.engines()).for_each(|number| self.fresh_of(number, fresh));
    }

    /// An engine is there, or not.
    pub fn fresh_of(&self, number: usize, fresh: bool) {
        let beat = if fresh { clock::now() + Duration::from_secs(3600) } else { Time::ZERO };
        self.acks.hooks_of(number).beat(beat);
    }

    /// Returns the answer of a hook, and the frame afterwards.
    pub fn hook(&self, hook: Hook, frame: &[u8], gso_size: u16) -> (u32, Vec<u8>) {
        self.giant(hook, frame, gso_size, if gso_size > 0 { 2 } else { 0 })
    }

    /// As [`Rig::hook`], of a frame whose sender has counted so many segments.
    pub fn giant(&self, hook: Hook, frame: &[u8], gso_size: u16, gso_segs: u16) -> (u32, Vec<u8>) {
        run(&self.acks, program(hook), frame, [gso_size, gso_segs], 0)
    }

    /// As [`Rig::hook`], with the number of the queue to which the frame spills.
    pub fn spill(&self, hook: Hook, frame: &[u8]) -> (u32, Option<u16>) {
        let mut context = [0; CONTEXT];
        context[CB..CB + 4].copy_from_slice(&[0xaa; 4]);
        let mut after = context;
        let mut out = vec![0; 4096];
        let input = ProgramInput {
            data_in: Some(frame),
            data_out: Some(&mut out),
            context_in: Some(&mut context),
            context_out: Some(&mut after),
            ..ProgramInput::default()
        };
        let action = named(self.acks.object(), program(hook)).test_run(input).unwrap().return_value;
        let word = u32::from_ne_bytes(after[CB..CB + 4].try_into().unwrap());
        (action, (word >> 16 == SPILLED >> 16).then(|| word as u16 - 1))
    }

    /// As [`Rig::hook`] at egress, for a frame that came in on the same interface.
    pub fn hairpin(&self, frame: &[u8]) -> (u32, Vec<u8>) {
        run(&self.acks, program(Hook::Egress), frame, [0; 2], LOOPBACK)
    }

    /// Returns the answer to a frame that the engine sends, and the frame afterwards.
    pub fn send(&self, frame: &[u8]) -> (u32, Vec<u8>) {
        run(&self.own, "acks_egress", frame, [0; 2], 0)
    }

    /// All records of the first engine. What was taken has come, as far as its slots are concerned.
    pub fn records(&mut self) -> Vec<Record> {
        self.records_of(0)
    }

    /// As [`Rig::records`], of the engine with this number.
    pub fn records_of(&mut self, number: usize) -> Vec<Record> {
        let mut records = Vec::new();
        self.rings[number].drain(usize::MAX, |s| {
            records.push(Record {
                hook: s.hook,
                fate: s.fate,
                len: s.len,
                gso_size: s.gso_size,
                head: s.head.to_vec(),
            })
        });
        for slot in self.acks.slots_of(number) {
            while slot.is_waited_for() {
                slot.has_come();
            }
        }
        records
    }

    /// [Opens](begin) slot `slot` for a flow.
    pub fn control(&self, key: Key, slot: u32, flags: u32) -> &'static Slot {
        self.control_of(0, key, slot, flags)
    }

    /// As [`Rig::control`], of the engine with this number.
    pub fn control_of(&self, number: usize, key: Key, slot: u32, flags: u32) -> &'static Slot {
        let tag = slot + 1;
        let place = &self.acks.slots_of(number)[slot as usize];
        begin(place, tag, flags);
        self.acks.apply_of(number, &[Verdict::Shape { ack_key: key, slot, tag }]).unwrap();
        place
    }
}

/// Opens a slot for a flow: everything starts at 1000, the window is 100 with a shift of 2.
pub fn begin(slot: &Slot, tag: u32, flags: u32) {
    let flags = flags | 2 << slot_flag::SCALE_SHIFT;
    slot.open(tag, flags, 1000, 1000, 1000, 1400, 1400, 100, ticks(clock::now()));
}

fn run(acks: &Acks, program: &str, frame: &[u8], gso: [u16; 2], from: u32) -> (u32, Vec<u8>) {
    let mut out = vec![0; 4096];
    let mut context = [0; CONTEXT];
    for (at, value) in [GSO_SIZE, GSO_SEGS].into_iter().zip(gso) {
        context[at..at + 4].copy_from_slice(&u32::from(value).to_ne_bytes());
    }
    context[INGRESS_IFINDEX..INGRESS_IFINDEX + 4].copy_from_slice(&from.to_ne_bytes());
    let input = ProgramInput {
        data_in: Some(frame),
        data_out: Some(&mut out),
        context_in: Some(&mut context),
        ..ProgramInput::default()
    };
    let output = named(acks.object(), program).test_run(input).unwrap();
    (output.return_value, output.data.unwrap().to_vec())
}

/// Sum of a segment of TCP with its pseudo-header, which says nothing about the addresses since they do not
/// change: two frames that differ in numbers and checksum only are as right or as wrong as each other if this
/// is the same.
pub fn residue(frame: &[u8], l4: usize) -> u16 {
    let mut sum: u32 = 0;
    for pair in frame[l4..].chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // Zero has two forms.
    if sum == 0xffff {
        0
    } else {
        sum as u16
    }
}
