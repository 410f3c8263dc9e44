//! Fixtures run by the kernel (`BPF_PROG_TEST_RUN`): the verifier's view and the programs' answers.

use super::abi::*;
use super::*;
use crate::sys::clock;
use crate::sys::xsk::{Bind, Socket, Which};
use libbpf_rs::ProgramInput;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard};
use weir_core::wire::build::{arp, Segment};
use weir_core::wire::Flags;

const PASS: u32 = 2;
const REDIRECT: u32 = 4;
/// As in `linux/capability.h`.
const CAP_NET_ADMIN: u32 = 12;
const UNSPEC: u32 = u32::MAX;

/// Loading programs needs privileges that an ordinary test run does not have.
fn privileged() -> bool {
    let able = crate::sys::process::capabilities().is_ok_and(|c| c >> CAP_NET_ADMIN & 1 == 1);
    if !able {
        println!("skipped: loading BPF programs needs root");
    }
    able
}

const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn ack() -> Segment {
    Segment::v4(A, B).ports(5001, 80).ack(7)
}

fn ack6() -> Segment {
    Segment::v6(Ipv6Addr::LOCALHOST, "fd00::2".parse::<Ipv6Addr>().unwrap()).ports(5001, 80).ack(7)
}

/// Steering over `lo` with a socket on queue 0, as a port has it.
struct Rig {
    shared: Shared,
    steering: Steering,
    _socket: Socket,
    _lock: MutexGuard<'static, ()>,
}

/// There is one queue on `lo`, so one test at a time has it.
static LO: Mutex<()> = Mutex::new(());

fn rig(steer: Steer) -> Rig {
    let lock = LO.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let shared = Shared::new(64).unwrap();
    let options = SteerOptions { steer, stale: Duration::from_millis(50), max_len: 1792 };
    let steering = Steering::load(&shared, options).unwrap();
    let socket = Socket::new().unwrap();
    socket.register(Mapping::anonymous(1 << 16, false).unwrap().leak(), 2048).unwrap();
    for which in [Which::Fill, Which::Completion, Which::Receive] {
        socket.ring(which, 16).unwrap();
    }
    // The kernel frees the queue of a closed socket a little later.
    while socket.bind(1, 0, Bind::First { zero_copy: false }).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    steering.set_socket(0, socket.as_fd()).unwrap();
    shared.beat(clock::now() + Duration::from_secs(60));
    Rig { shared, steering, _socket: socket, _lock: lock }
}

impl Rig {
    /// The program's answer, and the frame with what the program put in front.
    fn run(&self, frame: &[u8]) -> (u32, Vec<u8>) {
        let mut out = vec![0; 4096];
        let program = program(&self.steering.object);
        let input =
            ProgramInput { data_in: Some(frame), data_out: Some(&mut out), ..ProgramInput::default() };
        let output = program.test_run(input).unwrap();
        (output.return_value, output.data.unwrap().to_vec())
    }
    fn answer(&self, frame: &[u8]) -> u32 {
        self.run(frame).0
    }
    fn counters(&self) -> SteerCounters {
        self.steering.counters().unwrap()
    }
}

#[test]
fn full_steering_takes_everything_and_stamps_it() {
    if !privileged() {
        return;
    }
    let rig = rig(Steer::Full);
    let before = clock::now();
    let frame = ack().build();
    let (answer, out) = rig.run(&frame);
    assert_eq!(answer, REDIRECT);
    let stamp: Stamp = pod::read(&out).unwrap();
    assert_eq!(stamp.magic, STAMP_MAGIC);
    assert!(stamp.time >= before.as_nanos() && stamp.time <= clock::now().as_nanos());
    assert_eq!(out[16..], frame);
    assert_eq!(rig.answer(&arp(A, B)), REDIRECT);
    assert_eq!(rig.answer(&ack().payload(1792 - 54).build()), REDIRECT);
    assert_eq!(rig.answer(&ack().payload(1793 - 54).build()), PASS);
    assert_eq!(rig.counters(), SteerCounters { taken: 3, passed_long: 1, ..SteerCounters::default() });
}

#[test]
fn no_heartbeat_and_no_socket_pass() {
    if !privileged() {
        return;
    }
    let mut rig = rig(Steer::Full);
    let frame = ack().build();
    rig.shared.beat(clock::now());
    assert_eq!(rig.answer(&frame), REDIRECT);
    rig.shared.beat(clock::now().saturating_sub(Duration::from_millis(51)));
    assert_eq!(rig.answer(&frame), PASS);
    rig.shared.beat(Time::ZERO);
    assert_eq!(rig.answer(&frame), PASS);
    rig._socket = Socket::new().unwrap();
    rig.shared.beat(clock::now() + Duration::from_secs(60));
    assert_eq!(rig.answer(&frame), PASS);
    let expected = SteerCounters { taken: 1, passed_stale: 2, passed_unbound: 1, ..SteerCounters::default() };
    assert_eq!(rig.counters(), expected);
}

#[test]
fn ack_steering_takes_tcp_without_a_verdict() {
    if !privileged() {
        return;
    }
    let rig = rig(Steer::Acks);
    let tcp = [
        ack().build(),
        ack().vlan(5).build(),
        ack().tag(0x88a8, 7).tag(0x8100, 9).build(),
        ack().ip_options(&[1; 8]).build(),
        ack6().build(),
        ack6().extension(0, &[0; 6]).extension(60, &[0; 14]).build(),
        ack6().vlan(5).extension(43, &[0; 6]).build(),
    ];
    for (i, frame) in tcp.iter().enumerate() {
        assert_eq!(rig.answer(frame), REDIRECT, "{i}");
    }
    let others = [
        arp(A, B),
        ack().udp().build(),
        ack().fragment(0, true).build(),
        ack().fragment(10, false).build(),
        ack6().fragment(0, true).build(),
        ack().tag(0x88a8, 7).tag(0x8100, 9).tag(0x8100, 1).build(),
        ack6().udp().build(),
        // More extension headers than are followed.
        (0..7).fold(ack6(), |s, _| s.extension(60, &[0; 6])).build(),
        ack().build()[..14].to_vec(),
        ack().build()[..33].to_vec(),
        ack().build()[..53].to_vec(),
        ack().vlan(5).build()[..17].to_vec(),
        ack6().build()[..53].to_vec(),
        ack6().extension(0, &[0; 6]).build()[..60].to_vec(),
    ];
    for (i, frame) in others.iter().enumerate() {
        assert_eq!(rig.answer(frame), PASS, "{i}");
    }
    let expected = SteerCounters {
        taken: tcp.len() as u64,
        passed_other: others.len() as u64,
        ..SteerCounters::default()
    };
    assert_eq!(rig.counters(), expected);
}

#[test]
fn verdicts_hold_for_their_flow_and_generation() {
    if !privileged() {
        return;
    }
    let rig = rig(Steer::Acks);
    let key = FlowKey::new((A.into(), 5001), (B.into(), 80), 0, 0);
    rig.shared.set_verdict(&key, Verdict::Pass).unwrap();
    assert_eq!(rig.answer(&ack().build()), PASS);
    assert_eq!(rig.answer(&ack().payload(100).build()), PASS);
    // A new connection on the same ports is to be classified anew.
    assert_eq!(rig.answer(&ack().flags(Flags::SYN).build()), REDIRECT);
    // The end of this flow is that of the one in the other direction, which may be shaped.
    assert_eq!(rig.answer(&ack().flags(Flags::FIN.with(Flags::ACK)).build()), REDIRECT);
    assert_eq!(rig.answer(&ack().flags(Flags::RST).build()), REDIRECT);
    // Other flows: another port, the other direction, another VLAN.
    assert_eq!(rig.answer(&ack().ports(5002, 80).build()), REDIRECT);
    assert_eq!(rig.answer(&Segment::v4(B, A).ports(80, 5001).build()), REDIRECT);
    assert_eq!(rig.answer(&ack().vlan(3).build()), REDIRECT);
    rig.shared.set_verdict(&key, Verdict::Take).unwrap();
    assert_eq!(rig.answer(&ack().build()), REDIRECT);
    rig.shared.set_verdict(&key, Verdict::Pass).unwrap();
    rig.shared.next_generation();
    assert_eq!(rig.answer(&ack().build()), REDIRECT);
    let tagged = FlowKey::new(("::1".parse().unwrap(), 5001), ("fd00::2".parse().unwrap(), 80), 7, 9);
    rig.shared.set_verdict(&tagged, Verdict::Pass).unwrap();
    // Priority bits of a tag are not part of the flow.
    assert_eq!(rig.answer(&ack6().tag(0x88a8, 0x2007).tag(0x8100, 0xf009).build()), PASS);
    assert_eq!(rig.counters().passed_verdict, 3);
}

fn observe(observer: &Observer, frame: &[u8]) -> u32 {
    let mut out = vec![0; 4096];
    let input = ProgramInput { data_in: Some(frame), data_out: Some(&mut out), ..ProgramInput::default() };
    let output = program(&observer.object).test_run(input).unwrap();
    assert_eq!(output.data.unwrap(), frame, "the frame is untouched");
    output.return_value
}

#[test]
fn the_observer_copies_openings_and_endings() {
    if !privileged() {
        return;
    }
    let mut observer = Observer::load().unwrap();
    let fin_ack = Flags::FIN | Flags::ACK;
    let seen = [
        ack().flags(Flags::SYN).mss(1460).sack_permitted().ts(1, 2).window_scale(7).build(),
        ack().flags(Flags::RST).build(),
        ack().flags(fin_ack).payload(1400).build(),
        ack6().flags(Flags::SYN).extension(0, &[0; 6]).build(),
        ack().flags(Flags::SYN).vlan(0x2005).build(),
        ack().flags(Flags::SYN).tag(0x88a8, 7).tag(0x8100, 9).build(),
    ];
    let before = clock::now();
    for (i, frame) in seen.iter().enumerate() {
        assert_eq!(observe(&observer, frame), UNSPEC);
        let o = observer.next().unwrap_or_else(|| panic!("frame {i} was not seen"));
        assert_eq!(o.len as usize, frame.len());
        let head = o.head_len as usize;
        assert_eq!((head, &o.head[..head]), (frame.len().min(OBSERVED_HEAD), &frame[..head]));
        assert!(o.time >= before.as_nanos() && o.time <= clock::now().as_nanos());
    }
    let unseen = [
        ack().build(),
        ack().payload(1000).build(),
        arp(A, B),
        ack().flags(Flags::SYN).udp().build(),
        ack().flags(Flags::SYN).fragment(0, true).build(),
        ack().flags(Flags::SYN).build()[..50].to_vec(),
    ];
    for frame in &unseen {
        assert_eq!(observe(&observer, frame), UNSPEC);
    }
    assert!(observer.next().is_none());
    assert_eq!(observer.counters().unwrap(), ObserveCounters { observed: seen.len() as u64, lost: 0 });
}

#[test]
fn a_full_ring_loses_observations_and_says_so() {
    if !privileged() {
        return;
    }
    let mut observer = Observer::load().unwrap();
    let frame = ack().flags(Flags::SYN).build();
    for _ in 0..2 {
        for _ in 0..2000 {
            observe(&observer, &frame);
        }
        // 256 KiB of records of 208 + 8 bytes.
        assert_eq!(std::iter::from_fn(|| observer.next()).count(), (1 << 18) / 216);
    }
    let counters = observer.counters().unwrap();
    assert_eq!(counters.observed + counters.lost, 4000);
}
