//! Random segments through the programs and through [`weir_core::steer`]: answers, rewritten bytes,
//! slots and records must be the same after every one.

use super::random::Random;
use super::rig::*;
use crate::bpf::{Fate, Home, Hook, SEGMENT_HEAD};
use crate::sys::clock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use weir_core::flow::Key;
use weir_core::frame::Checksum;
use weir_core::gateway::Verdict;
use weir_core::steer::{slot_flag, ticks, Action, Numbers, Seen, Slot, Stamp, FIN, RST};
use weir_core::wire::build::{SegmentBuilder, Sum};
use weir_core::wire::Flags;
use weir_core::wire::Seq;

/// Number of the engine, of three, that has an address that no slot tells of.
const HOMES: [Home; 3] = [
    Home { address: A.to_ipv6_mapped().octets(), bits: 128, engine: 2 },
    Home { address: B.to_ipv6_mapped().octets(), bits: 104, engine: 1 },
    Home { address: A6.octets(), bits: 64, engine: 1 },
];
/// The engine that has flows of `B6` is told by no prefix.
const NOBODYS: usize = 0;

const FLOWS: u32 = 6;
/// First flow without a slot. The last one is known to pass.
const UNKNOWN: u32 = 4;
const PASSING: u32 = 5;
/// Size that an array map rounds a ring's size to.
const RING: usize = 4096;
/// A record with the ring's own header.
const RECORD: usize = 208 + 8;
const SEEDS: u64 = 60;
const STEPS: u32 = 400;

#[test]
fn the_programs_do_what_the_functions_do() {
    compare(1);
}

#[test]
fn so_do_those_for_several_engines() {
    compare(3);
}

fn compare(engines: u32) {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(crate::bpf::AcksOptions { engines, ring: RING as u32, ..options() });
    if let Some(homes) = rig.acks.homes().unwrap() {
        homes.replace(&HOMES).unwrap();
    }
    let mut seen = [0u64; COUNTS];
    for seed in 0..SEEDS {
        let mut model = Model::new(&rig, seed);
        for step in 0..STEPS {
            model.step(&mut rig, &mut seen, &format!("seed {seed} step {step}"));
        }
        (0..engines as usize).for_each(|number| drop(rig.records_of(number)));
    }
    println!(
        "taken, copied, set back, passed, stale, ring full, stamped, discarded, granted, RSTs, broken: {seen:?}"
    );
    assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
}

/// Number of the count of what was seen.
const TAKEN: usize = 0;
const COPIED: usize = 1;
const SET_BACK: usize = 2;
const PASSED: usize = 3;
const STALE: usize = 4;
const FULL: usize = 5;
const STAMPED: usize = 6;
const DISCARDED: usize = 7;
const GRANTED: usize = 8;
/// RSTs among those that were taken, or were to be.
const RESETS: usize = 9;
/// Segments with a wrong checksum, which change nothing.
const BROKEN: usize = 10;
const COUNTS: usize = 11;

fn place(slots: &[Slot], flow: u32) -> &Slot {
    &slots[flow as usize]
}

/// All but when the newest TSval came, which is a tick later here at times, and how often the slot was
/// opened.
fn words(slot: &Slot) -> (Numbers, [u32; 4]) {
    let load = |word: &AtomicU32| word.load(Relaxed);
    let others = [load(&slot.tag), load(&slot.flags), load(&slot.width), slot.doubts()];
    (Numbers { at: 0, turn: 0, ..slot.numbers() }, others)
}

/// Returns what the words do not tell: up to where segments may pass, and if one waits.
fn passage(slot: &Slot) -> (Option<u32>, bool) {
    (slot.granted().map(|to| to.0), slot.is_waited_for())
}

/// The gateway has all that was taken.
fn come(slot: &Slot) {
    while slot.is_waited_for() {
        slot.has_come();
    }
}

fn set_back(action: Action) -> Option<(u32, u16)> {
    match action {
        Action::SetBack { ack, window, .. } => Some((ack.0, window)),
        _ => None,
    }
}

/// Answers and slots by the functions.
struct Model {
    random: Random,
    /// Slots like those in the kernel.
    slots: Vec<Slot>,
    tags: u32,
    /// Records that are in each engine's ring, discarded ones too: they take as much room.
    rings: Vec<Vec<Option<Record>>>,
    /// Engines that are there.
    fresh: Vec<bool>,
}

/// A segment, and what a hook reads of it.
struct Case {
    flow: u32,
    segment: SegmentBuilder,
    seen: Seen,
    gso_size: u16,
    sum: Sum,
}

impl Model {
    fn new(rig: &Rig, seed: u64) -> Model {
        let mut slots = Vec::new();
        slots.resize_with(FLOWS as usize, Slot::default);
        let random = Random(seed.wrapping_mul(0x0123_4567_89ab_cdef));
        let (rings, fresh) = (vec![Vec::new(); rig.acks.engines()], vec![true; rig.acks.engines()]);
        let mut model = Model { random, slots, tags: 1 + seed as u32 * 100_000, rings, fresh };
        rig.fresh(true);
        for flow in 0..UNKNOWN {
            model.open(rig, flow);
        }
        let (unknown, known) = (key(UNKNOWN), key(PASSING));
        let forget = Verdict::Forget { ack_key: unknown, slot: 0, tag: 0 };
        rig.acks.apply(&[forget]).unwrap();
        // What comes in of it is one engine's, and what goes out another one's: only the latter knows that it
        // passes.
        let tells = model.home(PASSING, Hook::Egress);
        rig.acks.apply_of(tells, &[Verdict::Pass { ack_key: known }]).unwrap();
        model
    }

    /// The engine that has a flow without a slot, by the address on the LAN's side.
    fn home(&self, flow: u32, hook: Hook) -> usize {
        let four = matches!(flow, 0 | 2 | UNKNOWN);
        match (four, hook) {
            _ if self.fresh.len() == 1 => 0,
            (true, Hook::Egress) => 2,
            (true, Hook::Ingress) | (false, Hook::Egress) => 1,
            (false, Hook::Ingress) => NOBODYS,
        }
    }

    /// The engine that opens a flow's slot.
    fn owner(&self, flow: u32) -> usize {
        flow as usize % self.fresh.len()
    }

    /// The engine that a segment comes to.
    fn engine(&self, flow: u32, hook: Hook) -> usize {
        match place(&self.slots, flow).tag.load(Relaxed) {
            0 => self.home(flow, hook),
            _ => self.owner(flow),
        }
    }

    /// The flow's slot in the kernel.
    fn theirs<'a>(&self, rig: &'a Rig, flow: u32) -> &'a Slot {
        place(rig.acks.slots_of(self.owner(flow)), flow)
    }

    /// A use of a flow's slot, here and in the kernel.
    fn open(&mut self, rig: &Rig, flow: u32) {
        self.tags += 1;
        let random = &mut self.random;
        let kinds = [
            slot_flag::SCALED,
            0,
            slot_flag::SCALED | slot_flag::SIZED,
            slot_flag::SCALED | slot_flag::TIMESTAMPS,
        ];
        let scale = random.pick(&[0, 0, 2, 7, 14, 200]);
        let flags = kinds[flow as usize] | scale << slot_flag::SCALE_SHIFT;
        let [tx, nxt, ts] = [0; 3].map(|_: u32| random.next() as u32);
        let edge = tx.wrapping_add(random.below(1 << 20) as u32);
        let sent = edge.wrapping_sub(random.pick(&[0, 0, 1, 5000]));
        let window = random.pick(&[0, 1, 100, 65_535]);
        let tag = self.tags;
        let width = random.pick(&[0, 1, 3_000, 70_000]);
        for slot in [place(&self.slots, flow), self.theirs(rig, flow)] {
            slot.open(tag, flags, tx, nxt, ts, edge, sent, window, ticks(clock::now()));
            slot.width.store(width, Relaxed);
        }
        rig.acks
            .apply_of(self.owner(flow), &[Verdict::Shape { ack_key: key(flow), slot: flow, tag }])
            .unwrap();
    }

    fn step(&mut self, rig: &mut Rig, counts: &mut [u64; COUNTS], what: &str) {
        let number = self.random.below(self.fresh.len() as u64) as usize;
        if self.random.percent(if self.fresh[number] { 2 } else { 20 }) {
            self.fresh[number] = !self.fresh[number];
            rig.fresh_of(number, self.fresh[number]);
        }
        if self.random.percent(1) {
            let flow = self.random.below(u64::from(UNKNOWN)) as u32;
            if self.random.percent(50) {
                self.open(rig, flow);
            } else {
                // Its entry is left behind.
                place(&self.slots, flow).close();
                self.theirs(rig, flow).close();
            }
        }
        if self.random.percent(10) {
            let flow = self.random.below(u64::from(UNKNOWN)) as u32;
            self.grant(rig, flow);
        }
        let case = self.case();
        if self.random.percent(20) {
            self.stamp(rig, counts, &case, what);
        } else {
            self.segment(rig, counts, &case, what);
        }
        for flow in 0..FLOWS {
            let (ours, theirs) = (place(&self.slots, flow), self.theirs(rig, flow));
            assert_eq!(words(theirs), words(ours), "{what}, slot {flow} after {:?}", case.seen);
            let [ours, theirs] = [ours, theirs].map(passage);
            assert_eq!(theirs, ours, "{what}, slot {flow} after {:?}", case.seen);
        }
        // Often enough that a ring is full at times only.
        if self.random.percent(if self.rings.len() == 1 { 5 } else { 3 }) {
            for (number, ring) in self.rings.iter_mut().enumerate() {
                let expected: Vec<Record> = ring.drain(..).flatten().collect();
                assert_eq!(rig.records_of(number), expected, "{what}, engine {number}");
            }
            self.slots.iter().filter(|slot| slot.is_waited_for()).for_each(come);
            (0..UNKNOWN).for_each(|flow| self.grant(rig, flow));
        }
    }

    /// Some segments of a flow may pass, unless one waits; or none any more.
    fn grant(&mut self, rig: &Rig, flow: u32) {
        let (ends, more) = (self.random.percent(10), self.random.pick(&[0, 1, 1000, 5000, 100_000, 100_000]));
        let slots = [place(&self.slots, flow), self.theirs(rig, flow)];
        if ends {
            return slots.iter().for_each(|slot| slot.revoke());
        }
        let [ours, theirs] = slots.map(|slot| slot.grant(slot.tx().plus(more)));
        assert_eq!(theirs, ours);
    }

    /// Returns whether another record finds room (`__bpf_ringbuf_reserve()`).
    fn room(&self, number: usize) -> bool {
        (self.rings[number].len() + 1) * RECORD < RING
    }

    /// A number near one that matters, or anywhere.
    fn near(&mut self, to: u32, steps: &[i64]) -> u32 {
        match self.random.below(20) {
            0 => self.random.next() as u32,
            _ => to.wrapping_add(self.random.pick(steps) as u32),
        }
    }

    fn case(&mut self) -> Case {
        let flow = self.random.below(u64::from(FLOWS)) as u32;
        let Numbers { tx, nxt, ts, edge, .. } = place(&self.slots, flow).numbers();
        let base = self.random.pick(&[tx, tx, edge]);
        let far = [
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, -1, 100, 1448, -1448, 65_536, 65_537, -131_072, -131_073,
            -4_194_304, -4_194_305,
        ];
        let near = [
            0,
            0,
            0,
            1,
            100,
            1000,
            -1,
            4,
            1448,
            3000,
            70_000,
            -1448,
            -65_535,
            -65_536,
            1 << 30,
            (1 << 30) + 1,
        ];
        // Nothing but progress.
        let plain = self.random.percent(10);
        let (seq, ack) = if plain {
            (nxt, tx.plus(self.random.pick(&[1, 1448, 2896])))
        } else {
            (Seq(self.near(nxt.0, &far)), Seq(self.near(base.0, &near)))
        };
        let window = self.random.pick(&[u16::from(plain), 1, 100, 100, 101, 4000, 65_535]);
        let reset = !plain && self.random.percent(12);
        let giant = !reset && self.random.percent(10);
        let payload = match self.random.below(10) {
            _ if reset => 0,
            _ if giant => 2000 + self.random.below(900) as usize,
            0..=4 => 0,
            _ => 1 + self.random.below(1448) as usize,
        };
        let mut flags = Flags::ACK;
        for (flag, percent) in
            [(Flags::PSH, 30), (Flags::FIN, 5), (Flags::URG, 2), (Flags::ECE, 10), (Flags::CWR, 5)]
        {
            if self.random.percent(percent) && !plain {
                flags |= flag;
            }
        }
        if reset {
            flags |= Flags::RST;
        }
        if self.random.percent(2) {
            flags = flags.without(Flags::ACK);
        }
        let sum =
            if self.random.percent(12) { Sum::Wrong } else { self.random.pick(&[Sum::Valid, Sum::Partial]) };
        let at = ticks(clock::now());
        let mut seen =
            Seen { flags: flags.0 as u8, seq, ack, window, payload: payload as u32, at, ..Seen::default() };
        let segment =
            base_of(flow).seq(seq).ack(ack).window(window).flags(flags).payload(payload).checksum(sum);
        let segment = if plain { segment } else { self.options(segment, ts, &mut seen) };
        seen.plain = is_plain(&segment.build());
        Case { flow, segment, seen, gso_size: if giant { 1000 } else { 0 }, sum }
    }

    /// Options in all places that they may have.
    fn options(&mut self, mut segment: SegmentBuilder, newest: u32, seen: &mut Seen) -> SegmentBuilder {
        let stamp =
            self.near(newest, &[0, 0, 1, -1, 1000, 1 << 20, i64::from(i32::MAX), i64::from(i32::MIN)]);
        let data = [stamp.to_be_bytes(), 7u32.to_be_bytes()].concat();
        match self.random.below(10) {
            0 => return segment,
            // Nothing after the end counts, nor what is cut short.
            1 => return segment.raw_options(&[0, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 5]),
            2 => return segment.raw_options(&[1, 253, 9, 8]),
            3 => return segment.raw_options(&[1, 1, 1, 8]),
            4 => return segment.raw_options(&[8, 9, 1, 2, 3, 4, 5, 6, 7, 1]),
            _ => {}
        }
        if self.random.percent(20) {
            let blocks = self.random.below(3) as usize;
            segment = segment.sack(&[(1, 2), (3, 4)][..blocks]);
            seen.sack = blocks > 0;
        }
        for _ in 0..self.random.pick(&[0, 0, 1, 2, 2, 2, 3]) {
            segment = segment.raw_options(&[1]);
        }
        seen.ts = Some(stamp);
        segment = segment.option(8, &data);
        if self.random.percent(10) {
            segment = segment.raw_options(&[1, 254, 4, 9]);
        }
        segment
    }

    /// A segment of others.
    fn segment(&mut self, rig: &Rig, counts: &mut [u64; COUNTS], case: &Case, what: &str) {
        let hook = self.random.pick(&[Hook::Ingress, Hook::Egress]);
        let frame = case.segment.build();
        let (answer, after) = rig.hook(hook, &frame, case.gso_size);
        let (taken, to) = self.expect(counts, case, hook, &frame);
        assert_eq!(answer, if taken { REDIRECT } else { PASS }, "{what}: {:?}", case.seen);
        let expected = match to {
            Some((ack, window)) => case.segment.clone().ack(ack).window(window),
            None => case.segment.clone(),
        };
        same(&frame, &after, expected.build(), case, what);
    }

    /// Returns whether it is taken, and the numbers that it is set back to.
    fn expect(
        &mut self,
        counts: &mut [u64; COUNTS],
        case: &Case,
        hook: Hook,
        frame: &[u8],
    ) -> (bool, Option<(u32, u16)>) {
        let number = self.engine(case.flow, hook);
        let (seen, room) = (&case.seen, self.room(number));
        let passes = self.home(PASSING, Hook::Egress) == number;
        let slot = place(&self.slots, case.flow);
        let controlled = slot.tag.load(Relaxed) != 0;
        let resets = seen.flags & RST != 0;
        // Giant segments are not summed.
        let broken = case.gso_size == 0 && is_broken(frame);
        let bypass = || (!broken || !slot.passes_on(seen)).then(|| set_back(slot.bypass(seen))).flatten();
        let ignored = match case.flow {
            _ if seen.flags & (RST | FIN) != 0 => broken,
            _ if !self.fresh[number] => false,
            _ if controlled => broken && slot.wants_sum(seen),
            PASSING if passes => false,
            _ => broken,
        };
        if ignored {
            counts[BROKEN] += 1;
            return (false, None);
        }
        if !self.fresh[number] {
            counts[STALE] += 1;
            return (false, if controlled && !resets { bypass() } else { None });
        }
        let (granted, tx) = (slot.granted().is_some(), slot.tx());
        let action = match case.flow {
            _ if resets && controlled && slot.takes_reset(seen.seq) => {
                counts[RESETS] += 1;
                Action::Take
            }
            _ if resets => Action::Copy,
            _ if controlled => slot.segment(seen),
            PASSING if passes && seen.flags & 1 == 0 => Action::Pass,
            PASSING if passes => Action::Copy,
            _ if seen.payload == 0 && seen.flags & 0x11 == 0x10 => Action::Take,
            _ => Action::Copy,
        };
        let fate = match action {
            Action::Take => Some(Fate::Taken),
            Action::Copy => Some(Fate::Passed),
            Action::SetBack { report: true, .. } => Some(Fate::SetBack),
            _ => None,
        };
        if fate.is_some() && !room {
            counts[FULL] += 1;
            let passes = controlled && !resets && action != Action::Copy;
            return (false, if passes { bypass() } else { None });
        }
        self.rings[number].extend(fate.map(|fate| {
            let head = frame[..frame.len().min(SEGMENT_HEAD)].to_vec();
            Some(Record { hook, fate, len: frame.len(), gso_size: case.gso_size, head })
        }));
        if action == Action::Take && controlled {
            slot.take();
        }
        // Without a grant what has only progress to tell is taken, or set back.
        let passed = slot.tx() != tx && fate.is_none();
        counts[GRANTED] += u64::from(granted && passed);
        match action {
            Action::Take => counts[TAKEN] += 1,
            Action::Copy => counts[COPIED] += 1,
            Action::Pass => counts[PASSED] += 1,
            Action::SetBack { .. } => counts[SET_BACK] += 1,
        }
        (action == Action::Take, set_back(action))
    }

    /// An ACK that the engine sends: the segment without payload.
    fn stamp(&mut self, rig: &Rig, counts: &mut [u64; COUNTS], case: &Case, what: &str) {
        let flags = Flags(u16::from(case.seen.flags)).without(Flags::FIN | Flags::RST);
        let segment = case.segment.clone().payload(0).flags(flags);
        let frame = segment.build();
        let (answer, after) = rig.send(&frame);
        let slot = place(&self.slots, case.flow);
        let stamp = match slot.tag.load(Relaxed) {
            0 => None,
            _ => Some(slot.stamp(case.seen.ack, case.seen.window)),
        };
        let expected = match stamp {
            None => segment.build(),
            Some(Stamp::Discard) => {
                counts[DISCARDED] += 1;
                assert_eq!(answer, REDIRECT, "{what}");
                return;
            }
            Some(Stamp::Send { seq, ts, window }) => {
                counts[STAMPED] += 1;
                restamped(segment.seq(seq).window(window).build(), case, ts)
            }
        };
        assert_eq!(answer, PASS, "{what}");
        same(&frame, &after, expected, case, what);
    }
}

/// Returns whether its checksum is neither right nor that of the pseudo-header alone.
fn is_broken(frame: &[u8]) -> bool {
    let packet = weir_core::wire::packet(frame, frame.len()).unwrap();
    weir_core::wire::checksum::verify(frame, frame.len(), &packet) == Checksum::Invalid
}

/// Returns whether it has no options, or timestamps after two NOPs (RFC 7323 appendix A).
fn is_plain(frame: &[u8]) -> bool {
    let tcp = &frame[l4(frame)..];
    let options = &tcp[20..usize::from(tcp[12] >> 4) * 4];
    options.is_empty() || options.len() == 12 && options.starts_with(&[1, 1, 8, 10])
}

/// The frame with another TSval where it has one.
fn restamped(mut frame: Vec<u8>, case: &Case, ts: u32) -> Vec<u8> {
    let Some(old) = case.seen.ts else { return frame };
    let option = [&[8, 10], &old.to_be_bytes()[..], &7u32.to_be_bytes()].concat();
    let start = l4(&frame) + 20;
    let at = frame[start..].windows(option.len()).position(|w| w == option).expect("it has the option");
    frame[start + at + 2..][..4].copy_from_slice(&ts.to_be_bytes());
    frame
}

/// The frame afterwards is the expected one, and its checksum as right or wrong as before.
fn same(before: &[u8], after: &[u8], mut expected: Vec<u8>, case: &Case, what: &str) {
    let l4 = l4(before);
    expected[l4 + 16..l4 + 18].copy_from_slice(&after[l4 + 16..l4 + 18]);
    // Not the payload of thousands of bytes, unless it is what differs.
    let head = before.len().min(128);
    assert_eq!(after[..head], expected[..head], "{what}: {:?}", case.seen);
    assert!(after == expected, "{what}: the payload of {:?}", case.seen);
    assert_eq!(residue(after, l4), residue(before, l4), "{what}: {:?} {:?}", case.sum, case.seen);
}

fn l4(frame: &[u8]) -> usize {
    usize::from(weir_core::wire::packet(frame, frame.len()).unwrap().l4)
}

fn base_of(flow: u32) -> SegmentBuilder {
    match flow {
        0 => v4(),
        1 => v6(),
        2 => v4().vlan(9).ip_options(&[1; 4]),
        3 => v6().ports(5002, 80).extension(60, &[0; 6]),
        UNKNOWN => v4().ports(7, 7),
        _ => v6().ports(7, 7),
    }
}

fn key(flow: u32) -> Key {
    match flow {
        0 => key4(0, 0),
        1 => key6(0, 0),
        3 => flow_key((A6.into(), 5002), (B6.into(), 80), 0, 0),
        2 => key4(9, 0),
        UNKNOWN => flow_key((A.into(), 7), (B.into(), 7), 0, 0),
        _ => flow_key((A6.into(), 7), (B6.into(), 7), 0, 0),
    }
}
