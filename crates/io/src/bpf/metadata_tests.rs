//! Mark, priority, queue mapping and departure time through user space and back, as a program behind ours
//! sees them.

use super::abi::role;
use super::acks_tests::rig;
use super::attach::{self, Attached, Hook};
use super::{map, named, open, Acks, Aligned, All, Metadata};
use crate::port::{Exit, ExitSockets, Input, Packets, ACK_CHUNK, CHUNK};
use crate::sys::clock;
use crate::sys::packet::{Device, PacketSender, Vnet};
use crate::sys::pod::bytes_of;
use crate::sys::testing::*;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use weir_core::frame::{Frame, Frames};
use weir_core::gateway::{Verdict, LAN};
use weir_core::stats::DropReason;
use weir_core::steer::slot_flag::SCALED;
use weir_core::time::Duration;
use weir_core::wire::build::Sum;

static PROBE: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/probe.bpf.o")));

const MARK: u32 = 6;
/// More than the 16 that need no privilege, as classes of HTB are.
const PRIORITY: u32 = 0x0001_0005;

/// Notes what passes a hook behind all programs that were there before.
struct Probe {
    seen: MapHandle,
    _object: libbpf_rs::Object,
    _attached: Attached,
}

impl Probe {
    fn on(ifindex: u32) -> Probe {
        let object = open("probe", &PROBE.0).unwrap().load().unwrap();
        let attach = |name, hook| attach::last(&named(&object, name), ifindex, hook).unwrap();
        let attached = attach("probe_ingress", Hook::Ingress).and(attach("probe_egress", Hook::Egress));
        Probe { seen: map(&object, "seen").unwrap(), _object: object, _attached: attached }
    }

    fn last(&self, hook: Hook) -> Metadata {
        let place = u32::from(hook == Hook::Ingress).to_ne_bytes();
        let value = self.seen.lookup(&place, MapFlags::ANY).unwrap().unwrap();
        crate::sys::pod::read(&value).unwrap()
    }

    /// The metadata of the next frame, after `before` others.
    fn next(&self, hook: Hook, before: u32) -> Metadata {
        eventually("a frame passes", || Some(self.last(hook)).filter(|seen| seen.number == before + 1))
    }
}

/// Somebody's socket, whose frames have mark and priority.
fn host(ifindex: u32) -> PacketSender {
    let sender = PacketSender::open(ethernet(ifindex), false).unwrap();
    sender.set(libc::SO_MARK, &MARK).unwrap();
    sender.set(libc::SO_PRIORITY, &PRIORITY).unwrap();
    sender.take_departures().unwrap();
    sender
}

/// Sends a frame that departs at `time`, or at once if that is 0.
fn send(sender: &mut PacketSender, frame: &[u8], time: u64) {
    let mut batch = sender.batch();
    if time != 0 {
        batch.departs(time);
    }
    batch.frame(frame);
    assert_eq!(batch.send().unwrap(), 1);
}

fn received(packets: &mut Packets, frames: &mut Frames) -> Frame {
    let mut inbox = Vec::new();
    eventually("a frame has come", || {
        packets.receive(frames, 1, clock::now(), &mut inbox).unwrap();
        inbox.pop().map(|(_, _, frame)| frame)
    })
}

fn sender(all: &All, device: Device, role: u32) -> PacketSender {
    let sender = PacketSender::open(device, true).unwrap();
    sender.take_departures().unwrap();
    all.hooks.register_sender(sender.cookie().unwrap(), role).unwrap();
    sender
}

#[test]
fn frames_keep_their_metadata_through_user_space() {
    in_namespace(|| {
        let (near, _far) = pair("wbpf0", "wbpf1");
        let (out, inward) = pair("wbpf2", "wbpf3");
        let all = All::load(Duration::from_millis(50), true).unwrap();
        let _attached =
            (all.attach(near).unwrap(), all.attach_sink(out).unwrap(), all.attach_sink(inward).unwrap());
        let (probe, mut host) = (Probe::on(near), host(near));
        let mut frames = Frames::new(4096, CHUNK, 0);
        let mut packets = Packets::open(LAN, inward, false).unwrap();
        packets.take_metadata(all.arriving().unwrap()).unwrap();
        let frame = rig::v4().payload(50).build();
        // Past the engine nothing changes.
        send(&mut host, &frame, 0);
        let plain = probe.next(Hook::Egress, 0);
        assert_eq!((plain.mark, plain.priority, plain.queue), (MARK, PRIORITY, 0));
        all.redirect(out, inward);
        all.hooks.beat(clock::now() + Duration::from_secs(60));
        for (exit, (role, hook)) in
            [(0, Hook::Egress), (role::TO_INGRESS, Hook::Ingress)].into_iter().enumerate()
        {
            let sockets = ExitSockets { plain: sender(&all, ethernet(near), role), restamp: None };
            let mut exit = Exit::new(sockets, true).with_metadata(all.leaving(exit).unwrap());
            let before = probe.last(hook).number;
            let soon = (clock::now() + Duration::from_secs(5)).as_nanos();
            // Times that have passed, and those of other clocks, are none.
            let times = [(0, 0), (1, 0), (soon, soon), (soon + (60 << 30), 0)];
            for ((time, kept), before) in times.into_iter().zip(before..) {
                send(&mut host, &frame, time);
                let frame = received(&mut packets, &mut frames);
                assert!(if kept == 0 {
                    frame.received <= clock::now()
                } else {
                    frame.received.as_nanos() == kept
                });
                let headroom = frames.headroom_mut(&frame);
                let metadata = Metadata::of(headroom).expect("metadata");
                assert_eq!((metadata.mark, metadata.priority, metadata.departure), (MARK, PRIORITY, kept));
                headroom[..Metadata::LEN].copy_from_slice(bytes_of(&Metadata { queue: 3, ..metadata }));
                exit.push(&mut frames, frame);
                assert_eq!(exit.flush(&mut frames, clock::now()), None);
                let seen = probe.next(hook, before);
                assert_eq!((seen.mark, seen.priority, seen.queue), (MARK, PRIORITY, 3), "{hook:?}");
                assert!(hook == Hook::Ingress || seen.departure == kept, "{seen:?}");
            }
            // A frame without any gets none of another's.
            let bare = frames.receive_copy(&frame, frame.len(), clock::now()).unwrap();
            exit.push(&mut frames, bare);
            assert_eq!(exit.flush(&mut frames, clock::now()), None);
            let seen = probe.next(hook, before + 4);
            assert_eq!((seen.mark, seen.priority, seen.queue), (0, 0, 0), "{hook:?}");
        }
        // A stranger's frame without metadata needs no record.
        send(&mut PacketSender::open(ethernet(near), false).unwrap(), &frame, 0);
        let frame = received(&mut packets, &mut frames);
        assert_eq!(Metadata::of(frames.headroom(&frame)), None);
        frames.consumed(frame);
    });
}

/// Two tags and 1,500 bytes of IP pass an MTU of 1,500, as they do where the kernel forwards them
/// (`is_skb_forwardable()` does not count the outer tag), and so does a service tag. A packet socket sends
/// neither (`packet_snd()`).
#[test]
fn long_frames_keep_their_tags_through_user_space() {
    in_namespace(|| {
        let (near, far) = pair("wbpf0", "wbpf1");
        let (out, inward) = pair("wbpf2", "wbpf3");
        ["wbpf2", "wbpf3"].iter().for_each(|end| run(&format!("ip link set {end} mtu 65535")));
        let all = All::load(Duration::from_millis(50), true).unwrap();
        let _attached =
            (all.attach(near).unwrap(), all.attach_sink(out).unwrap(), all.attach_sink(inward).unwrap());
        let (mut here, mut there) = (Ear::on(near), Ear::on(far));
        let mut frames = Frames::new(4096, CHUNK, 0);
        let mut packets = Packets::open(LAN, inward, false).unwrap();
        packets.take_metadata(all.arriving().unwrap()).unwrap();
        all.redirect(out, inward);
        all.hooks.beat(clock::now() + Duration::from_secs(60));
        let mut host = PacketSender::open(ethernet(near), true).unwrap();
        for (number, role) in [0, role::TO_INGRESS].into_iter().enumerate() {
            let sockets = ExitSockets { plain: sender(&all, ethernet(near), role), restamp: None };
            let mut exit = Exit::new(sockets, true).with_metadata(all.leaving(number).unwrap());
            for (outer, packet) in [(0x88a8, 1_496), (0x8100, 1_500), (0x88a8, 1_500), (0x88a8, 60)] {
                let tagged = rig::v4().tag(outer, 0x6064).vlan(200).payload(packet - 40);
                let frame = tagged.checksum(Sum::Partial).build();
                let notes = Vnet { flags: 1, checksum_start: 42, checksum_offset: 16, ..Vnet::default() };
                // The host's own socket has to send it first.
                run("ip link set wbpf0 mtu 1508");
                let mut batch = host.batch();
                let notes = notes.bytes();
                batch.part(&notes);
                batch.frame(&frame);
                assert_eq!(batch.send().unwrap(), 1);
                let through = received(&mut packets, &mut frames);
                run("ip link set wbpf0 mtu 1500");
                exit.push(&mut frames, through);
                assert_eq!(exit.flush(&mut frames, clock::now()), None);
                let (seen, heard) = if role == 0 { &mut there } else { &mut here }.next();
                assert!(seen == frame, "{outer:x} {packet} {role}: {seen:x?}");
                assert_eq!(heard.vnet.bytes(), notes);
            }
            let stats = exit.stats();
            assert_eq!((stats.refused, stats.drops.total(), stats.sent), (0, 0, 4));
            // Only the first that is too long costs an attempt.
            assert_eq!(stats.calls, 5);
            // One that is too long without the tag, too, is lost, and counted.
            let long = frames.receive_copy(&[0x88; 1_600], 1_600, clock::now()).unwrap();
            exit.push(&mut frames, long);
            assert_eq!(exit.flush(&mut frames, clock::now()), None);
            let stats = exit.stats();
            assert_eq!((stats.refused, stats.drops.get(DropReason::TooLong), stats.sent), (1, 1, 4));
            assert_eq!(frames.drops().get(DropReason::TooLong), number as u64 + 1);
        }
    });
}

/// Without the hooks' records no tag is taken off.
#[test]
fn a_bump_in_the_wire_keeps_the_tags_of_what_it_sends() {
    in_namespace(|| {
        let (near, far) = pair("wbpf0", "wbpf1");
        let mut there = Ear::on(far);
        let mut frames = Frames::new(64, CHUNK, 0);
        let sockets = ExitSockets { plain: PacketSender::open(ethernet(near), true).unwrap(), restamp: None };
        let mut exit = Exit::new(sockets, true);
        let frame = |payload| rig::v4().tag(0x88a8, 100).vlan(200).payload(payload).build();
        for payload in [1_456, 20] {
            let bytes = frame(payload);
            let frame = frames.receive_copy_behind(&[0; 40], &bytes, bytes.len(), clock::now()).unwrap();
            exit.push(&mut frames, frame);
        }
        assert_eq!(exit.flush(&mut frames, clock::now()), None);
        assert!(there.next().0 == frame(20));
        assert_eq!(exit.stats().drops.get(DropReason::TooLong), 1);
    });
}

/// An ACK that is made has what the receiver's own had, in both directions, and another flow's has nothing of
/// it.
#[test]
fn made_acks_have_the_metadata_of_those_that_were_taken() {
    in_namespace(|| {
        let (near, _far) = pair("wbpf0", "wbpf1");
        let acks = Acks::load(&rig::options()).unwrap();
        let _attached = acks.attach(near).unwrap();
        let probe = Probe::on(near);
        acks.hooks.beat(clock::now() + Duration::from_secs(60));
        let slot = &acks.slots()[5];
        rig::begin(slot, 1, SCALED);
        acks.apply(&[Verdict::Shape { ack_key: rig::key4(0, 0), slot: 5, tag: 1 }]).unwrap();
        let ack = |to: u32| rig::v4().seq(1000).ack(to).window(100).ts(1000, 7).build();
        let made = |role| {
            let sender = PacketSender::open(ethernet(near), false).unwrap();
            sender.take_departures().unwrap();
            acks.hooks.register_sender(sender.cookie().unwrap(), role | role::RESTAMP).unwrap();
            sender
        };
        let (mut out, mut inward) = (made(0), made(role::TO_INGRESS));
        let (mut stranger, mut host) = (PacketSender::open(ethernet(near), false).unwrap(), host(near));
        let mut place = 1000;
        for (marked, expected) in [(false, (0, 0)), (true, (MARK, PRIORITY)), (false, (0, 0))] {
            let taken = acks.counters().unwrap().taken;
            place += 100;
            send(if marked { &mut host } else { &mut stranger }, &ack(place), 0);
            assert_eq!(acks.counters().unwrap().taken, taken + 1);
            for (sender, hook) in [(&mut out, Hook::Egress), (&mut inward, Hook::Ingress)] {
                let before = probe.last(hook).number;
                send(sender, &ack(place), 0);
                let seen = probe.next(hook, before);
                assert_eq!((seen.mark, seen.priority), expected, "{hook:?}");
            }
        }
        // The slot's next flow begins without.
        send(&mut host, &ack(place + 100), 0);
        rig::begin(slot, 2, SCALED);
        acks.apply(&[Verdict::Shape { ack_key: rig::key4(0, 0), slot: 5, tag: 2 }]).unwrap();
        let before = probe.last(Hook::Egress).number;
        send(&mut out, &ack(1100), 0);
        let seen = probe.next(Hook::Egress, before);
        assert_eq!((seen.mark, seen.priority), (0, 0));
    });
}

/// A SYN-ACK and the ACKs of flows that are not known leave as they came, with what they came with.
#[test]
fn taken_segments_that_leave_as_they_came_keep_their_metadata() {
    in_namespace(|| {
        let (near, _far) = pair("wbpf0", "wbpf1");
        let acks = Acks::load(&rig::options()).unwrap();
        let _attached = acks.attach(near).unwrap();
        let probe = Probe::on(near);
        acks.hooks.beat(clock::now() + Duration::from_secs(60));
        let mut ring = Input::Ring(acks.segments().unwrap());
        let mut frames = Frames::new(64, ACK_CHUNK, 0);
        let open = |role: u32| {
            let sender = PacketSender::open(ethernet(near), false).unwrap();
            sender.take_departures().unwrap();
            acks.hooks.register_sender(sender.cookie().unwrap(), role).unwrap();
            sender
        };
        let mut host = host(near);
        for (number, (role, hook)) in
            [(0, Hook::Egress), (role::TO_INGRESS, Hook::Ingress)].into_iter().enumerate()
        {
            let sockets = ExitSockets { plain: open(role), restamp: Some(open(role | role::RESTAMP)) };
            let mut exit = Exit::new(sockets, true).with_metadata(acks.leaving(0, number).unwrap());
            for restamp in [false, true] {
                let mut inbox = Vec::new();
                let before = probe.last(hook).number;
                send(&mut host, &rig::v4().seq(1000).ack(1100).window(100).build(), 0);
                assert_eq!(ring.receive(&mut frames, 64, clock::now(), &mut inbox), 1);
                let (_, _, mut frame) = inbox.pop().unwrap();
                frame.restamp = restamp;
                exit.push(&mut frames, frame);
                assert_eq!(exit.flush(&mut frames, clock::now()), None);
                let seen = probe.next(hook, before);
                assert_eq!((seen.mark, seen.priority), (MARK, PRIORITY), "{hook:?} {restamp}");
            }
        }
    });
}
