//! The table's rows.

use crate::boxes::{Hooks, Kind, CONTROLLED, CUSTOMER, FIRST, PASSES, SERVER};
use crate::turns::{Driver, Turns};
use std::error::Error;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use weir_core::wire::build::SegmentBuilder;
use weir_io::bpf::Hook;

/// Least test runs of a row, and the least time that they take together: a fast row needs more of them.
const RUNS: u32 = 40;
const LEAST: Duration = Duration::from_millis(200);
/// Packets of each run: fewer than an engine's ring has room for.
const TIMES: u32 = 10_000;

/// Packets that a row is about. "Data" is of a flow whose ACKs go out.
#[derive(Clone, Copy)]
enum Packet {
    /// Data comes in.
    Data,
    /// Payload goes out with ACKs.
    Payload,
    /// One segment over and over.
    Repeated,
    /// Pure ACKs go out.
    Ack,
    /// Pure ACKs come in.
    AckIn,
    /// Datagrams come in.
    Udp,
}

const ROWS: [(&str, Kind, Packet, u16); 11] = [
    ("payload in a direction that is not configured", Kind::Unbounded, Packet::Data, CONTROLLED),
    ("data of a controlled flow, its class bounded", Kind::Downloads, Packet::Data, CONTROLLED),
    ("data of a controlled flow, flow and class bounded", Kind::Flows, Packet::Data, CONTROLLED),
    ("payload with ACKs of a controlled flow", Kind::Downloads, Packet::Payload, CONTROLLED),
    ("repeated payload with ACKs of a controlled flow", Kind::Downloads, Packet::Repeated, CONTROLLED),
    ("payload of a flow controlled both ways, bounded", Kind::Both, Packet::Payload, CONTROLLED),
    ("pure ACK of a controlled flow", Kind::Downloads, Packet::Ack, CONTROLLED),
    ("payload of a flow that passes", Kind::Downloads, Packet::Payload, PASSES),
    ("pure ACK of a flow that passes", Kind::Downloads, Packet::Ack, PASSES),
    ("pure ACK in a direction of bounded data", Kind::Downloads, Packet::AckIn, PASSES),
    ("UDP in a bounded class", Kind::Downloads, Packet::Udp, CONTROLLED),
];

impl Packet {
    fn hook(self) -> Hook {
        match self {
            Packet::Data | Packet::AckIn | Packet::Udp => Hook::Ingress,
            _ => Hook::Egress,
        }
    }

    /// The frame, in which the customer's port and the last bits of its address are 0.
    fn frame(self, v6: bool, server: u16) -> Vec<u8> {
        let inward = self.hook() == Hook::Ingress;
        let (from, to) = if inward { (SERVER, CUSTOMER) } else { (CUSTOMER, SERVER) };
        let of = if v6 { SegmentBuilder::v6(from.1, to.1) } else { SegmentBuilder::v4(from.0, to.0) };
        let of = if inward { of.ports(server, 0) } else { of.ports(0, server) };
        let of = of.seq(FIRST).ack(1000).window(100).ts(1000, 7);
        match self {
            Packet::Ack | Packet::AckIn => of.build(),
            Packet::Udp => of.udp().payload(1400).build(),
            _ => of.payload(1400).build(),
        }
    }

    fn turns(self, v6: bool, many: bool) -> Turns {
        let inward = self.hook() == Hook::Ingress;
        let l4 = if v6 { 54 } else { 34 };
        let host = if inward {
            l4 - 2
        } else if v6 {
            36
        } else {
            28
        };
        let tcp = if matches!(self, Packet::Udp) { 0 } else { l4 };
        let each = if matches!(self, Packet::Data | Packet::Payload) { 1400 } else { 0 };
        Turns { many, host, port: if inward { l4 + 2 } else { l4 }, tcp, each, from: FIRST }
    }
}

/// Nanoseconds of a row, by its fastest run: others use the machine, too.
fn measure(hooks: &Hooks, packet: Packet, server: u16, v6: bool, many: bool) -> Result<f64, Box<dyn Error>> {
    let [driver, idle] = [(); 2].map(|()| Driver::load(packet.turns(v6, many)));
    let (driver, idle) = (driver?, idle?);
    let program = hooks.acks.program(packet.hook())?;
    let mut ring = hooks.acks.segments()?;
    let frame = packet.frame(v6, server);
    hooks.begin();
    let (mut all, mut turns) = (f64::MAX, f64::MAX);
    let (from, mut runs) = (Instant::now(), 0);
    while runs < RUNS || from.elapsed() < LEAST {
        runs += 1;
        // Each of many flows sends but little.
        if !many {
            hooks.permit();
        }
        turns = idle.time(None, &frame, TIMES)?.min(turns);
        all = driver.time(Some(program.as_fd()), &frame, TIMES)?.min(all);
        ring.drain(usize::MAX, |_| ());
    }
    Ok(all - turns)
}

/// Gives `tell` the name and the nanoseconds of each row with `only` in its name.
pub fn run(only: &str, tell: impl Fn(&str, f64)) -> Result<(), Box<dyn Error>> {
    for (v6, many, of) in [
        (false, false, "IPv4, one flow"),
        (true, false, "IPv6, one flow"),
        (false, true, "IPv4, 100,000 flows"),
    ] {
        let mut hooks: Option<(Kind, Hooks)> = None;
        for (name, kind, packet, server) in ROWS {
            let name = format!("{of}, {name}");
            if !name.contains(only) {
                continue;
            }
            if hooks.as_ref().is_none_or(|(of, _)| *of != kind) {
                hooks = Some((kind, Hooks::new(kind, v6, many)));
            }
            let (_, hooks) = hooks.as_ref().expect("made above");
            tell(&name, measure(hooks, packet, server, v6, many)?);
        }
    }
    Ok(())
}
