//! Packet sockets on real interfaces.

use super::*;
use crate::sys::clock;
use crate::sys::testing::*;
use weir_core::frame::Checksum;
use weir_core::time::Duration;
use weir_core::wire::build::{SegmentBuilder, Sum};

fn segment() -> SegmentBuilder {
    SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).seq(5).ack(7)
}

/// Notes on a frame without VLAN tags whose checksum is to be completed.
fn notes(network: u16, gso_type: u8) -> Vnet {
    let gso_size = if gso_type == 0 { 0 } else { 1400 };
    let header = if gso_type == 0 { 0 } else { 14 + network + 20 };
    Vnet { flags: 1, gso_type, header, gso_size, checksum_start: 14 + network, checksum_offset: 16 }
}

fn send_noted(sender: &mut PacketSender, vnet: Vnet, parts: &[&[u8]]) {
    let notes = vnet.bytes();
    let mut batch = sender.batch();
    batch.part(&notes);
    batch.first(parts[0]);
    parts[1..].iter().for_each(|part| batch.part(part));
    batch.end();
    assert_eq!(batch.send().unwrap(), 1);
}

#[test]
fn headers_survive_the_way_through_bytes() {
    let header = Vnet { gso_type: 0x81, ..notes(20, 1) };
    assert_eq!(Vnet::read(&header.bytes()), header);
    assert_eq!(Vnet::default().bytes(), [0; 10]);
}

#[test]
fn frames_arrive_as_they_were_sent() {
    in_namespace(|| {
        let (a, b) = pair("wbpf0", "wbpf1");
        let mut ear = Ear::on(b);
        let mut sender = PacketSender::open(ethernet(a), false).unwrap();
        let frames: Vec<Vec<u8>> = (0..150).map(|n| segment().seq(n).payload(n as usize).build()).collect();
        let before = clock::now();
        assert_eq!(sender.send(&frames).unwrap(), 150);
        let mut got = Vec::new();
        eventually("all frames have come", || {
            got.extend(ear.now());
            (got.len() == 150).then_some(())
        });
        for (frame, (seen, heard)) in frames.iter().zip(&got) {
            assert_eq!((seen, heard.frame.len()), (frame, frame.len()));
            assert_eq!((heard.vnet.gso_size, heard.frame.checksum), (0, Checksum::Unknown));
            assert!(heard.at + Duration::from_millis(1) >= before && heard.at <= clock::now());
        }
        assert_eq!((ear.packets.stats().received, ear.packets.stats().lost), (150, 0));
        assert_ne!(
            sender.cookie().unwrap(),
            PacketSender::open(ethernet(a), true).unwrap().cookie().unwrap()
        );
    });
}

#[test]
fn tags_are_put_back() {
    in_namespace(|| {
        let (a, b) = pair("wbpf0", "wbpf1");
        let mut ear = Ear::on(b);
        let mut sender = PacketSender::open(ethernet(a), true).unwrap();
        let one = segment().vlan(0x3005).payload(100).checksum(Sum::Partial).build();
        let vnet = Vnet { checksum_start: 38, ..notes(20, 0) };
        send_noted(&mut sender, vnet, &[&one]);
        let (seen, heard) = ear.next();
        assert_eq!((seen, heard.vnet, heard.frame.checksum), (one, vnet, Checksum::Partial));
        let two = segment().tag(0x88a8, 7).tag(0x8100, 9).payload(100).build();
        assert_eq!(sender.send(&[&two]).unwrap(), 1);
        let (seen, heard) = ear.next();
        assert_eq!((seen, heard.frame.checksum), (two, Checksum::Unknown));
    });
}

#[test]
fn giant_frames_stay_whole_and_are_cut_where_they_must() {
    in_namespace(|| {
        let (a, b) = pair("wbpf0", "wbpf1");
        let mut ear = Ear::on(b);
        let mut sender = PacketSender::open(ethernet(a), true).unwrap();
        let four = (segment().payload(60_000), notes(20, 1));
        let six = SegmentBuilder::v6([1; 8], [2; 8]).ts(1, 2).payload(60_000);
        let six = (six, Vnet { header: 14 + 40 + 32, ..notes(40, 4) });
        for (segment, vnet) in [four, six] {
            let frame = segment.checksum(Sum::Partial).build();
            // The frame is sent in pieces.
            let pieces = [&frame[..1000], &frame[1000..30_000], &frame[30_000..]];
            send_noted(&mut sender, vnet, &pieces);
            let (seen, heard) = ear.next();
            assert!(seen == frame && heard.vnet == vnet, "{:?}", heard.vnet);
            // The kernel cuts them for a device that cannot, and completes the checksums.
            run("ethtool -K wbpf0 tso off gso off tx off");
            send_noted(&mut sender, vnet, &pieces);
            let mut got = Vec::new();
            eventually("all segments have come", || {
                got.extend(ear.now());
                (got.len() == 60_000usize.div_ceil(1400)).then_some(())
            });
            for (frame, heard) in got {
                let packet = weir_core::wire::packet(&frame, frame.len()).unwrap();
                assert_eq!(weir_core::wire::checksum::verify(&frame, frame.len(), &packet), Checksum::Valid);
                assert_eq!(heard.frame.gso_size, 0);
            }
            run("ethtool -K wbpf0 tso on gso on tx on");
        }
    });
}

#[test]
fn what_cannot_be_sent_is_told() {
    in_namespace(|| {
        let (a, _) = pair("wbpf0", "wbpf1");
        let mut sender = PacketSender::open(ethernet(a), false).unwrap();
        let (good, long) = (segment().build(), segment().payload(3000).build());
        let code = |result: io::Result<usize>| result.map_err(|e| e.raw_os_error().unwrap());
        assert_eq!(code(sender.send(&[&good, &long, &good])), Ok(1));
        assert_eq!(code(sender.send(&[&long, &good])), Err(libc::EMSGSIZE));
        // A queue of a few frames with hardly any rate.
        run("tc qdisc add dev wbpf0 root tbf rate 8kbit burst 1600 limit 3000");
        let frame = segment().payload(1000).build();
        let went = sender.send(&[&frame; 100]).unwrap();
        assert!((2..10).contains(&went), "{went}");
        assert_eq!(code(sender.send(&[&frame; 100])), Err(libc::ENOBUFS));
        run("ip link set wbpf0 down");
        assert_eq!(code(sender.send(&[&frame])), Err(libc::ENETDOWN));
    });
}

#[test]
fn devices_without_ethernet_header_get_none() {
    in_namespace(|| {
        let tun = Tun::new("wbpf0");
        let mut sender =
            PacketSender::open(Device { ifindex: index("wbpf0"), ethernet: false }, false).unwrap();
        for frame in [segment().payload(10).build(), SegmentBuilder::v6([1; 8], [2; 8]).build()] {
            assert_eq!(sender.send(&[&frame]).unwrap(), 1);
            assert_eq!(tun.receive(), frame[14..]);
        }
    });
}

#[test]
fn a_socket_loses_an_interface_that_was_away() {
    in_namespace(|| {
        let (a, _) = pair("wbpf0", "wbpf1");
        let sender = PacketSender::open(ethernet(a), false).unwrap();
        assert!(sender.is_bound());
        run("ip link set wbpf0 down");
        run("ip link set wbpf0 up");
        assert!(sender.is_bound());
        run("ip link set wbpf0 name wbpf2");
        assert!(sender.is_bound());
        run("ip link del wbpf2");
        assert!(!sender.is_bound());
        // With the same number.
        run(&format!("ip link add wbpf0 index {a} type veth peer name wbpf1"));
        assert!(!sender.is_bound());
        assert!(PacketSender::open(ethernet(a), false).unwrap().is_bound());
    });
}
