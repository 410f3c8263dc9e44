//! Packet sockets on real interfaces.

use super::*;
use crate::sys::clock;
use crate::sys::testing::*;
use weir_core::frame::Checksum;
use weir_core::time::Duration;
use weir_core::wire::build::{Segment, Sum};

fn segment() -> Segment {
    Segment::v4([10, 0, 0, 1], [10, 0, 0, 2]).seq(5).ack(7)
}

const PLAIN: SenderOptions = SenderOptions { ethernet: true, vnet: false, buffer: None };
const GIANT: SenderOptions = SenderOptions { ethernet: true, vnet: true, buffer: Some(1 << 22) };

fn outgoing(head: &[u8]) -> Outgoing<'_> {
    Outgoing { vnet: Vnet::default(), head, rest: &[] }
}

#[test]
fn frames_arrive_as_they_were_sent() {
    in_namespace(|| {
        let (a, b) = pair("wbpf0", "wbpf1");
        let mut ear = Ear::on(b);
        let mut sender = Sender::open(a, PLAIN).unwrap();
        let frames: Vec<Vec<u8>> = (0..150).map(|n| segment().seq(n).payload(n as usize).build()).collect();
        let mut sent = Vec::new();
        let before = clock::now();
        sender.send(&frames.iter().map(|f| outgoing(f)).collect::<Vec<_>>(), &mut sent);
        assert_eq!(sent, [Sent::Yes; 150]);
        let mut got = Vec::new();
        eventually("all frames have come", || {
            got.extend(ear.now());
            (got.len() == 150).then_some(())
        });
        for (frame, (seen, received)) in frames.iter().zip(&got) {
            assert_eq!((seen, received.len), (frame, frame.len()));
            assert_eq!((received.vnet.gso_size(), received.vnet.checksum()), (0, Checksum::Unknown));
            assert!(received.time + Duration::from_millis(1) >= before && received.time <= clock::now());
        }
        assert_eq!(ear.0.losses().unwrap(), 0);
        assert_ne!(sender.cookie().unwrap(), Sender::open(a, PLAIN).unwrap().cookie().unwrap());
    });
}

#[test]
fn tags_are_put_back() {
    in_namespace(|| {
        let (a, b) = pair("wbpf0", "wbpf1");
        let mut ear = Ear::on(b);
        let mut sender = Sender::open(a, GIANT).unwrap();
        let one = segment().vlan(0x3005).payload(100).checksum(Sum::Partial).build();
        let two = segment().tag(0x88a8, 7).tag(0x8100, 9).payload(100).build();
        for (frame, checksum) in [(one, Checksum::Partial), (two, Checksum::Unknown)] {
            let vnet = Vnet::of(&frame, frame.len(), 0, checksum).unwrap();
            let mut sent = Vec::new();
            sender.send(&[Outgoing { vnet, head: &frame, rest: &[] }], &mut sent);
            assert_eq!(sent, [Sent::Yes]);
            let (seen, received) = ear.next();
            assert_eq!((seen, received.len), (frame.clone(), frame.len()));
            assert_eq!(received.vnet, vnet);
        }
    });
}

#[test]
fn giant_frames_stay_whole_and_are_cut_where_they_must() {
    in_namespace(|| {
        let (a, b) = pair("wbpf0", "wbpf1");
        let mut ear = Ear::on(b);
        let mut sender = Sender::open(a, GIANT).unwrap();
        for segment in [segment().payload(60_000), Segment::v6([1; 8], [2; 8]).ts(1, 2).payload(60_000)] {
            let frame = segment.checksum(Sum::Partial).build();
            let vnet = Vnet::of(&frame[..128], frame.len(), 1400, Checksum::Partial).unwrap();
            // In pieces.
            let rest = [io::IoSlice::new(&frame[1000..30_000]), io::IoSlice::new(&frame[30_000..])];
            let giant = [Outgoing { vnet, head: &frame[..1000], rest: &rest }];
            let mut sent = Vec::new();
            sender.send(&giant, &mut sent);
            assert_eq!(sent, [Sent::Yes]);
            let (seen, received) = ear.next();
            assert!(seen == frame && received.vnet == vnet, "{received:?}");
            // A device that cannot cut them has it done for it, and the checksums completed.
            run("ethtool -K wbpf0 tso off gso off tx off");
            sender.send(&giant, &mut sent);
            let mut got = Vec::new();
            eventually("all segments have come", || {
                got.extend(ear.now());
                (got.len() == 60_000usize.div_ceil(1400)).then_some(())
            });
            for (frame, received) in got {
                let packet = weir_core::wire::packet(&frame, frame.len()).unwrap();
                assert_eq!(weir_core::wire::checksum::verify(&frame, frame.len(), &packet), Checksum::Valid);
                assert_eq!(received.vnet.gso_size(), 0);
            }
            run("ethtool -K wbpf0 tso on gso on tx on");
        }
    });
}

#[test]
fn what_cannot_be_sent_is_told_frame_by_frame() {
    in_namespace(|| {
        let (a, _) = pair("wbpf0", "wbpf1");
        let mut sender = Sender::open(a, PLAIN).unwrap();
        let (good, long) = (segment().build(), segment().payload(3000).build());
        let mut sent = Vec::new();
        sender.send(&[outgoing(&good), outgoing(&long), outgoing(&good)], &mut sent);
        assert_eq!(sent, [Sent::Yes, Sent::No(libc::EMSGSIZE), Sent::Yes]);
        // A queue of a few frames that hardly moves.
        run("tc qdisc add dev wbpf0 root tbf rate 8kbit burst 1600 limit 3000");
        let frame = segment().payload(1000).build();
        sender.send(&[outgoing(&frame); 100], &mut sent);
        let went = sent.iter().take_while(|s| **s == Sent::Yes).count();
        assert!((2..10).contains(&went), "{went}");
        assert!(sent[went..].iter().all(|s| *s == Sent::Later) && sent.len() == 100);
        run("ip link set wbpf0 down");
        sender.send(&[outgoing(&frame); 2], &mut sent);
        assert_eq!(sent, [Sent::No(libc::ENETDOWN); 2]);
    });
}

#[test]
fn a_frame_longer_than_its_buffers_says_so() {
    in_namespace(|| {
        let (a, b) = pair("wbpf0", "wbpf1");
        let mut receiver = Receiver::open(b, ReceiverOptions { buffer: None, stamps: false }).unwrap();
        let mut sent = Vec::new();
        let frame = segment().payload(1000).build();
        Sender::open(a, PLAIN).unwrap().send(&[outgoing(&frame)], &mut sent);
        let mut memory = [0; 200];
        let received = eventually("a frame has come", || {
            let mut found = None;
            receiver.receive(&mut [&mut memory], 1, |_, _, received| found = Some(received)).unwrap();
            found
        });
        assert_eq!((received.len, received.present), (frame.len(), 200 - HEADROOM));
        assert_eq!(memory[HEADROOM..], frame[..200 - HEADROOM]);
    });
}

#[test]
fn devices_without_ethernet_header_get_none() {
    in_namespace(|| {
        let tun = Tun::new("wbpf0");
        let options = SenderOptions { ethernet: false, vnet: false, buffer: None };
        let mut sender = Sender::open(index("wbpf0"), options).unwrap();
        let mut sent = Vec::new();
        for frame in [segment().payload(10).build(), Segment::v6([1; 8], [2; 8]).build()] {
            sender.send(&[outgoing(&frame)], &mut sent);
            assert_eq!(sent, [Sent::Yes]);
            assert_eq!(tun.receive(), frame[14..]);
        }
    });
}
