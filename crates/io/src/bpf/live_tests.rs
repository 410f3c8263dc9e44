//! The programs on real interfaces: whose frames are whose, tags that hardware took out, checksums left to
//! the device, devices without Ethernet header, redirection, and attaching without links.

use super::abi::role;
use super::acks_tests::rig::{self, Record};
use super::segments::SeenSegment;
use super::{named, *};
use crate::sys::clock;
use crate::sys::packet::{Device, PacketSender, Vnet};
use crate::sys::privileges::{capability, keep_only};
use crate::sys::testing::*;
use std::os::fd::{AsFd, AsRawFd};
use weir_core::flow::Key;
use weir_core::frame::Checksum;
use weir_core::gateway::Verdict;
use weir_core::steer::{slot_flag::SCALED, Slot};
use weir_core::time::Duration;
use weir_core::wire::build::{SegmentBuilder, Sum};
use weir_core::wire::Seq;

fn bare(ifindex: u32) -> Device {
    Device { ifindex, ethernet: false }
}

/// A giant segment of TCP whose checksum is left to the device; `network` is the length of the headers below
/// TCP.
fn giant(network: u16) -> Vnet {
    let gso_type = if network < 40 { 1 } else { 4 };
    let (start, header) = (14 + network, 14 + network + 32);
    Vnet { flags: 1, gso_type, header, gso_size: 1400, checksum_start: start, checksum_offset: 16 }
}

fn send(sender: &mut PacketSender, frame: &[u8]) {
    assert_eq!(sender.send(&[frame]).unwrap(), 1);
}

fn send_noted(sender: &mut PacketSender, frame: &[u8], vnet: Vnet) {
    let notes = vnet.bytes();
    let mut batch = sender.batch();
    batch.part(&notes);
    batch.frame(frame);
    assert_eq!(batch.send().unwrap(), 1);
}

fn registered(hooks: &Hooks, device: Device, role: u32) -> PacketSender {
    let sender = PacketSender::open(device, device.ethernet).unwrap();
    hooks.register_sender(sender.cookie().unwrap(), role).unwrap();
    sender
}

fn alive(hooks: &Hooks) {
    hooks.beat(clock::now() + Duration::from_secs(60));
}

/// The programs for ACKs on an interface.
struct Live {
    acks: Acks,
    segments: Segments,
    _attached: Attached,
}

impl Live {
    fn on(ifindex: u32, ethernet: bool) -> Live {
        let acks = Acks::load(&AcksOptions { ethernet, ..rig::options() }).unwrap();
        let attached = acks.attach(ifindex).unwrap();
        alive(&acks.hooks);
        Live { segments: acks.segments().unwrap(), acks, _attached: attached }
    }
    fn control(&self, key: Key) -> &'static Slot {
        let slot = &self.acks.slots()[0];
        rig::begin(slot, 1, SCALED);
        self.acks.apply(&[Verdict::Shape { ack_key: key, slot: 0, tag: 1 }]).unwrap();
        slot
    }
    fn record(&mut self) -> Record {
        let mut records = Vec::new();
        eventually("a record", || {
            self.segments.drain(usize::MAX, |s| {
                let SeenSegment { hook, fate, len, gso_size, head, .. } = s;
                records.push(Record { hook, fate, len, gso_size, head: head.to_vec() })
            });
            (!records.is_empty()).then_some(())
        });
        assert_eq!(records.len(), 1);
        records.remove(0)
    }
}

fn next(segment: SegmentBuilder) -> SegmentBuilder {
    segment.seq(1000).ack(1000).window(100).ts(1000, 7)
}

/// The kernel says what each map takes. What is not foreseen are mostly the values that each processor has of
/// its own.
#[test]
fn the_memory_of_the_maps_is_known_ahead() {
    in_namespace(|| {
        let options = rig::options();
        let acks = Acks::load(&options).unwrap();
        let of_map = |map: libbpf_rs::Map<'_>| {
            let info = format!("/proc/self/fdinfo/{}", map.as_fd().as_raw_fd());
            let info = std::fs::read_to_string(info).unwrap();
            let bytes = info.lines().find_map(|line| line.strip_prefix("memlock:")).unwrap();
            bytes.trim().parse::<u64>().unwrap()
        };
        let (taken, known) = (acks.object().maps().map(of_map).sum::<u64>(), options.memory().unwrap());
        assert!((known * 97 / 100..known * 110 / 100).contains(&taken), "{taken} bytes, {known} foreseen");
    });
}

#[test]
fn the_engines_frames_are_known_by_their_socket() {
    in_namespace(|| {
        let (near, far) = pair("wbpf0", "wbpf1");
        let mut live = Live::on(near, true);
        let slot = live.control(rig::key4(0, 0));
        let (mut here, mut there) = (Ear::on(near), Ear::on(far));
        let ack = next(rig::v4()).ack(1100).build();
        // Another packet socket's frame is like everyone's.
        send(&mut PacketSender::open(ethernet(near), true).unwrap(), &ack);
        let Record { hook, fate, head, .. } = live.record();
        assert_eq!((hook, fate, &head), (Hook::Egress, Fate::Taken, &ack));
        assert!(there.now().is_empty());
        // Brought up to date, and out.
        slot.assume(|n| n.nxt = Seq(5000));
        let expected = next(rig::v4()).ack(1100).seq(5000).build();
        send(&mut registered(&live.acks.hooks, ethernet(near), role::RESTAMP), &ack);
        assert_eq!(there.next().0, expected);
        // Left as it is.
        let mut plain = registered(&live.acks.hooks, ethernet(near), 0);
        send(&mut plain, &ack);
        assert_eq!(there.next().0, ack);
        // Too late: gone, and no engine is told.
        let late = next(rig::v4()).ack(1099).build();
        send(&mut registered(&live.acks.hooks, ethernet(near), role::RESTAMP), &late);
        // To where it would have come from: the hook at ingress lets it by.
        let both = role::RESTAMP | role::TO_INGRESS;
        send(&mut registered(&live.acks.hooks, ethernet(near), both), &ack);
        assert_eq!(here.next().0, expected);
        assert!(there.now().is_empty());
        let counters = live.acks.counters().unwrap();
        assert_eq!((counters.own, counters.stamped, counters.discarded, counters.taken), (1, 2, 1, 1));
        // No longer ours.
        live.acks.hooks.forget_sender(plain.cookie().unwrap());
        send(&mut plain, &ack);
        assert_eq!(live.record().fate, Fate::Taken);
    });
}

#[test]
fn tags_that_were_taken_out_are_seen() {
    in_namespace(|| {
        let (near, far) = pair("wbpf0", "wbpf1");
        let mut live = Live::on(near, true);
        // The kernel takes the outer tag out of whatever comes in.
        let mut sender = PacketSender::open(ethernet(far), true).unwrap();
        for (tags, key) in
            [(&[(0x8100, 0x6005)][..], rig::key4(5, 0)), (&[(0x88a8, 7), (0x8100, 9)], rig::key4(7, 9))]
        {
            let slot = live.control(key);
            let tagged = tags.iter().fold(next(rig::v4()), |s, &(kind, tci)| s.tag(kind, tci));
            let ack = tagged.clone().ack(1300).build();
            send(&mut sender, &ack);
            let expected =
                Record { hook: Hook::Ingress, fate: Fate::Taken, len: ack.len(), gso_size: 0, head: ack };
            assert_eq!(live.record(), expected);
            assert_eq!(slot.edge(), 1700);
            let data = tagged.ack(1100).payload(300).build();
            send(&mut sender, &data);
            let Record { fate, len, head, .. } = live.record();
            assert_eq!((fate, len, &head[..]), (Fate::SetBack, data.len(), &data[..SEGMENT_HEAD]));
        }
    });
}

#[test]
fn giant_segments_are_set_back_whatever_becomes_of_their_checksum() {
    in_namespace(|| {
        let (near, far) = pair("wbpf0", "wbpf1");
        let mut live = Live::on(near, true);
        let mut there = Ear::on(far);
        let mut sender = PacketSender::open(ethernet(near), true).unwrap();
        let kinds = [(rig::v4(), rig::key4(0, 0), giant(20)), (rig::v6(), rig::key6(0, 0), giant(40))];
        for (segment, key, notes) in kinds {
            let giant = next(segment).payload(30_000).checksum(Sum::Partial);
            let (before, after) = (giant.clone().ack(1100).build(), giant.window(125).build());
            // Left to the device: the field holds what it held.
            live.control(key);
            send_noted(&mut sender, &before, notes);
            let (seen, received) = there.next();
            assert!(seen == after && received.vnet.gso_size == 1400, "{received:?}");
            assert_eq!(live.record().fate, Fate::SetBack);
            // Cut behind the hook, by the host: each segment is right.
            live.control(key);
            run("ethtool -K wbpf0 tso off gso off tx off");
            send_noted(&mut sender, &before, notes);
            let mut got = Vec::new();
            eventually("all segments", || {
                got.extend(there.now());
                (got.len() == 30_000usize.div_ceil(1400)).then_some(())
            });
            for (frame, _) in got {
                let packet = weir_core::wire::packet(&frame, frame.len()).unwrap();
                let checksum = weir_core::wire::checksum::verify(&frame, frame.len(), &packet);
                let tcp = weir_core::wire::tcp(&frame, &packet).unwrap();
                assert_eq!((checksum, tcp.ack.0, tcp.window), (Checksum::Valid, 1000, 125));
            }
            assert_eq!(live.record().fate, Fate::SetBack);
            run("ethtool -K wbpf0 tso on gso on tx on");
        }
    });
}

#[test]
fn interfaces_without_ethernet_header_work_both_ways() {
    in_namespace(|| {
        let tun = Tun::new("wbpf0");
        let ifindex = index("wbpf0");
        let mut live = Live::on(ifindex, false);
        let mut stranger = PacketSender::open(bare(ifindex), false).unwrap();
        let mut out = registered(&live.acks.hooks, bare(ifindex), role::RESTAMP);
        let mut back = registered(&live.acks.hooks, bare(ifindex), role::RESTAMP | role::TO_INGRESS);
        for (segment, key) in [(rig::v4(), rig::key4(0, 0)), (rig::v6(), rig::key6(0, 0))] {
            let slot = live.control(key);
            let ack = next(segment.clone()).macs([0; 6], [0; 6]).ack(1100).build();
            let taken =
                |hook| Record { hook, fate: Fate::Taken, len: ack.len(), gso_size: 0, head: ack.clone() };
            tun.send(&ack[14..]);
            assert_eq!(live.record(), taken(Hook::Ingress));
            send(&mut stranger, &ack);
            assert_eq!(live.record(), taken(Hook::Egress));
            let data = next(segment.clone()).payload(100);
            send(&mut stranger, &data.clone().ack(1100).build());
            assert_eq!(tun.receive(), data.window(125).build()[14..]);
            assert_eq!(live.record().fate, Fate::SetBack);
            slot.assume(|n| n.nxt = Seq(5000));
            slot.assume(|n| n.sent = Seq(1500));
            send(&mut out, &ack);
            let expected = next(segment.clone()).ack(1100).seq(5000).build();
            assert_eq!(tun.receive(), expected[14..]);
            let before = live.acks.counters().unwrap();
            let mut here = Ear::on(ifindex);
            send(&mut back, &ack);
            assert_eq!(here.next().0, expected[14..]);
            let after = live.acks.counters().unwrap();
            assert_eq!(
                after,
                AcksCounters {
                    stamped: before.stamped + 1,
                    bytes_out: after.bytes_out,
                    packets_out: after.packets_out,
                    ..before
                }
            );
        }
    });
}

#[test]
fn everything_goes_to_the_other_end_and_back() {
    in_namespace(|| {
        let (near, far) = pair("wbpf0", "wbpf1");
        let (out, inward) = pair("wbpf2", "wbpf3");
        let all = All::load(Duration::from_millis(50), true).unwrap();
        let _attached =
            (all.attach(near).unwrap(), all.attach_sink(out).unwrap(), all.attach_sink(inward).unwrap());
        let (mut here, mut there) = (Ear::on(near), Ear::on(far));
        // What leaves by `out` arrives at `inward`, and the other way round.
        let (mut leaving, mut arriving) = (Ear::on(inward), Ear::on(out));
        let (mut host, mut remote) = (
            PacketSender::open(ethernet(near), true).unwrap(),
            PacketSender::open(ethernet(far), true).unwrap(),
        );
        let frame = rig::v4().vlan(5).payload(30_000).checksum(Sum::Partial).build();
        let notes = Vnet { header: 58, ..giant(24) };
        // No engine listens: everything passes.
        all.redirect(out, inward);
        send_noted(&mut host, &frame, notes);
        there.next();
        alive(&all.hooks);
        send_noted(&mut host, &frame, notes);
        let (seen, received) = leaving.next();
        assert!(seen == frame && received.vnet == notes, "{received:?}");
        send_noted(&mut remote, &frame, notes);
        let (seen, received) = arriving.next();
        assert!(seen == frame && received.frame.checksum == Checksum::Partial, "{received:?}");
        here.now();
        assert!(there.now().is_empty());
        // And on.
        let (mut forth, mut back) = (
            registered(&all.hooks, ethernet(near), 0),
            registered(&all.hooks, ethernet(near), role::TO_INGRESS),
        );
        send_noted(&mut forth, &frame, notes);
        let (seen, _) = there.next();
        assert!(seen == frame);
        send_noted(&mut back, &frame, notes);
        let (seen, _) = here.next();
        assert!(seen == frame);
        assert!(leaving.now().is_empty() && arriving.now().is_empty());
        let AllCounters { taken, own, dropped, passed_stale, failed, .. } = all.counters().unwrap();
        assert_eq!((taken, own, dropped, passed_stale, failed), (2, 2, 2, 1, 0));
        // One direction alone.
        all.redirect(0, inward);
        send_noted(&mut host, &frame, notes);
        there.next();
    });
}

#[test]
fn everything_of_an_interface_without_ethernet_header() {
    in_namespace(|| {
        let tun = Tun::new("wbpf0");
        let ifindex = index("wbpf0");
        let (out, inward) = pair("wbpf2", "wbpf3");
        let all = All::load(Duration::from_millis(50), false).unwrap();
        let _attached = all.attach(ifindex).unwrap();
        let (mut leaving, mut arriving) = (Ear::on(inward), Ear::on(out));
        all.redirect(out, inward);
        alive(&all.hooks);
        for segment in [rig::v4(), rig::v6()] {
            let frame = segment.payload(100).macs([0; 6], [0; 6]).build();
            tun.send(&frame[14..]);
            assert_eq!(arriving.next().0, frame);
            send(&mut PacketSender::open(bare(ifindex), false).unwrap(), &frame);
            assert_eq!(leaving.next().0, frame);
            send(&mut registered(&all.hooks, bare(ifindex), 0), &frame);
            assert_eq!(tun.receive(), frame[14..]);
        }
    });
}

#[test]
fn a_bump_in_the_wire_drops_what_was_read() {
    in_namespace(|| {
        let (near, far) = pair("wbpf0", "wbpf1");
        let all = All::load(Duration::from_millis(50), true).unwrap();
        let _attached = all.attach_drop(near).unwrap();
        let (mut ear, mut sender) = (Ear::on(near), PacketSender::open(ethernet(far), true).unwrap());
        let frame = rig::v4().build();
        for fresh in [false, true] {
            send(&mut sender, &frame);
            assert_eq!(ear.next().0, frame);
            let counters = eventually("it is counted", || {
                let counters = all.counters().unwrap();
                (counters.passed_stale + counters.dropped == 1 + u64::from(fresh)).then_some(counters)
            });
            assert_eq!((counters.passed_stale, counters.dropped), (1, u64::from(fresh)));
            alive(&all.hooks);
        }
    });
}

#[test]
fn classifiers_where_there_are_no_links() {
    in_namespace(|| {
        let (near, far) = pair("wbpf0", "wbpf1");
        let acks = Acks::load(&rig::options()).unwrap();
        alive(&acks.hooks);
        let attach = || {
            let ingress = attach::filter(
                &named(acks.object(), "acks_ingress"),
                near,
                Hook::Ingress,
                attach::Order::First,
            );
            let egress = attach::filter(
                &named(acks.object(), "acks_egress"),
                near,
                Hook::Egress,
                attach::Order::First,
            );
            ingress.unwrap().and(egress.unwrap())
        };
        let attached = attach();
        assert!(!attached.ends_with_processes());
        let mut there = Ear::on(far);
        let mut sender = PacketSender::open(ethernet(near), true).unwrap();
        let mut remote = PacketSender::open(ethernet(far), true).unwrap();
        let ack = next(rig::v4()).build();
        // Both hooks take it.
        send(&mut sender, &ack);
        send(&mut remote, &ack);
        eventually("both have taken it", || (acks.counters().unwrap().taken == 2).then_some(()));
        assert!(there.now().is_empty());
        // A supervisor may not ask for programs by their numbers.
        let is_on = || {
            let unprivileged = || {
                keep_only(capability::NET_ADMIN | capability::BPF | capability::PERFMON).unwrap();
                attached.is_on()
            };
            std::thread::scope(|scope| scope.spawn(unprivileged).join().unwrap())
        };
        assert!(is_on());
        run("tc filter del dev wbpf0 egress");
        assert!(!is_on());
        drop(attached);
        send(&mut sender, &ack);
        assert_eq!(there.next().0, ack);
        // An end that leaves them behind.
        std::mem::forget(attach());
        assert_eq!((remove_filters(near), remove_filters(near), remove_filters(far)), (2, 0, 0));
        send(&mut sender, &ack);
        assert_eq!(there.next().0, ack);
        // Someone else's at the same place stays.
        run("tc filter add dev wbpf0 ingress prio 30565 protocol all u32 match u32 0 0");
        assert_eq!(remove_filters(near), 0);
    });
}

#[test]
fn links_end_with_what_holds_them() {
    in_namespace(|| {
        let (near, far) = pair("wbpf0", "wbpf1");
        let live = Live::on(near, true);
        if !live._attached.ends_with_processes() {
            println!("skipped: this kernel has no links for tc programs (Linux 6.6)");
            return;
        }
        let mut there = Ear::on(far);
        let mut sender = PacketSender::open(ethernet(near), true).unwrap();
        let ack = next(rig::v4()).build();
        send(&mut sender, &ack);
        drop(live._attached);
        send(&mut sender, &ack);
        assert_eq!(there.next().0, ack);
        // The interface may go and come back: the programs are attached again.
        run("ip link del wbpf0");
        let (near, _) = pair("wbpf0", "wbpf1");
        let _attached = live.acks.attach(near).unwrap();
        let mut sender = PacketSender::open(ethernet(near), true).unwrap();
        send(&mut sender, &ack);
        assert_eq!(live.acks.counters().unwrap().taken, 2);
    });
}
