//! The gateway under test: a bump in the wire that forwards what it gets, and keeps count.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::Write;
use std::net::IpAddr;
use weir_core::frame::Frame;
use weir_core::gateway::{LAN, WAN};
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::time::{Duration, Time};
use weir_core::wire;
use weir_io::bpf::{FlowKey, Verdict, XdpMode};
use weir_io::driver::{DriverConfig, Engine, Report};
use weir_io::supervise::{BridgeUse, Records, Setup, Steered, Supervisor};

/// Counters in shared memory.
const FROM_LAN: usize = 0;
const FROM_WAN: usize = 1;
const OBSERVED: usize = 2;
const RESYNCS: usize = 3;
const STOPS: usize = 4;
/// VLAN of the frame with one tag that was observed last.
const OBSERVED_8100: usize = 5;
/// Outer and inner VLAN of the frame with two tags that was observed last.
const OBSERVED_88A8: usize = 6;
const COUNTERS: usize = 7;

/// Forwards everything after a fixed time.
struct Bump {
    delay: Duration,
    held: VecDeque<(Time, Port, Frame)>,
    counts: &'static mut [u64],
    verdicts: Vec<(FlowKey, Verdict)>,
    stats: std::path::PathBuf,
}

impl Node for Bump {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, mut frame: Frame) {
        let (bytes, len) = (cx.frames.bytes(&frame), frame.len());
        if let Ok(packet) = wire::packet(bytes, len) {
            frame.checksum = wire::checksum::quick(bytes, len, &packet);
        }
        match port {
            LAN | WAN => {
                self.counts[port.0 as usize] += 1;
                self.held.push_back((cx.now + self.delay, if port == LAN { WAN } else { LAN }, frame));
            }
            _ => {
                self.counts[OBSERVED] += 1;
                match cx.frames.bytes(&frame)[12..] {
                    [0x81, 0, _, vlan, 0x08, 0, ..] => self.counts[OBSERVED_8100] = vlan.into(),
                    [0x88, 0xa8, _, outer, 0x81, 0, _, inner, 0x08, 0, ..] => {
                        self.counts[OBSERVED_88A8] = u64::from(outer) << 16 | u64::from(inner);
                    }
                    _ => {}
                }
                cx.frames.absorb(frame);
            }
        }
    }
    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        let mut due = self.held.iter().take_while(|(at, _, _)| *at <= cx.now);
        let i = due.position(|(_, port, _)| writable.contains(*port))?;
        let (at, port, frame) = self.held.remove(i)?;
        Some(Transmit { port, at, frame })
    }
    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        self.held.iter().find(|(_, port, _)| writable.contains(*port)).map(|(at, _, _)| *at)
    }
}

impl Engine for Bump {
    fn resync(&mut self, _: &mut Cx<'_>) {
        self.counts[RESYNCS] += 1;
    }
    fn stop(&mut self, _: &mut Cx<'_>) {
        self.counts[STOPS] += 1;
    }
    fn verdicts(&mut self, out: &mut Vec<(FlowKey, Verdict)>) {
        out.append(&mut self.verdicts);
    }
    fn report(&mut self, report: &Report<'_>) {
        let mut text = format!("pid={}\n", std::process::id());
        for (name, i) in [
            ("from_lan", FROM_LAN),
            ("from_wan", FROM_WAN),
            ("observed", OBSERVED),
            ("resyncs", RESYNCS),
            ("stops", STOPS),
            ("observed_8100", OBSERVED_8100),
            ("observed_88a8", OBSERVED_88A8),
        ] {
            text += &format!("{name}={}\n", self.counts[i]);
        }
        for (i, port) in report.ports.iter().enumerate() {
            text += &format!(
                "unstamped{i}={}\nsent{i}={}\ncompleted{i}={}\nlost{i}={}\n",
                port.unstamped,
                port.sent,
                port.completed_checksums,
                port.lost.dropped + port.lost.ring_full + port.lost.fill_empty
            );
        }
        let late = |p| report.lateness.quantile(p).as_micros();
        text += &format!(
            "drops={}\nrounds={}\ncpu_us={}\nwall_us={}\nlate_p50_us={}\nlate_p99_us={}\n",
            report.drops.total(),
            report.rounds,
            report.cpu.as_micros(),
            report.wall.as_micros(),
            late(500),
            late(990),
        );
        for (i, s) in report.steering.iter().enumerate().filter_map(|(i, s)| Some((i, (*s)?))) {
            text += &format!(
                "taken{i}={}\nverdict{i}={}\nother{i}={}\nlong{i}={}\n",
                s.taken, s.passed_verdict, s.passed_other, s.passed_long
            );
        }
        // Whole or not at all, since a test may be reading.
        let draft = self.stats.with_extension("new");
        std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, &self.stats)).unwrap();
    }
}

/// Prints to standard error what the library says.
struct Log;

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::INFO
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Line(String);
        impl tracing::field::Visit for Line {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0 += &match field.name() {
                    "message" => format!(" {value:?}"),
                    name => format!(" {name}={value:?}"),
                };
            }
        }
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        let now = weir_io::sys::clock::now();
        let _ = writeln!(std::io::stderr(), "{now:?} [{}] {}", std::process::id(), line.0);
    }
}

/// `bump STEERED BRIDGE XDP LAN WAN DIRECTORY [PASS]`: runs between two interfaces of this namespace.
pub fn main(args: &[String]) -> i32 {
    tracing::subscriber::set_global_default(Log).unwrap();
    let steered = match args[0].as_str() {
        "full" => Steered::Full,
        "acks" => Steered::Acks { lan: false, wan: true },
        "acks-both" => Steered::Acks { lan: true, wan: true },
        other => panic!("{other}"),
    };
    let bridge = if args[1] == "bridge" { BridgeUse::Kernel } else { BridgeUse::None };
    let mut setup = Setup::new(&args[3], &args[4], steered, bridge);
    setup.xdp = match args[2].as_str() {
        "native" => Some(XdpMode::Native),
        "skb" => Some(XdpMode::Skb),
        _ => None,
    };
    let directory = std::path::PathBuf::from(&args[5]);
    setup.state = directory.clone();
    setup.restarts_per_minute = 100;
    let supervisor = match Supervisor::prepare(&setup) {
        Ok(supervisor) => supervisor,
        Err(problems) => {
            eprintln!("{problems}");
            return 2;
        }
    };
    let counts = Records::<u64>::alloc(COUNTERS).unwrap();
    let pass: Vec<(FlowKey, Verdict)> = args[6..].iter().map(|flow| (key(flow), Verdict::Pass)).collect();
    let delay = std::env::var("BUMP_DELAY_US").map_or(0, |us| us.parse().unwrap());
    let delay = Duration::from_micros(delay);
    let flushes = Cell::new(0);
    let result = supervisor.run(
        |launch| {
            let bump = Bump {
                delay,
                held: VecDeque::new(),
                counts: counts.take().unwrap(),
                verdicts: pass.clone(),
                stats: directory.join("stats"),
            };
            launch.run(bump, DriverConfig::default()).map(drop)
        },
        |senders| {
            flushes.set(flushes.get() + 1);
            // An experimental Ethertype that no host answers.
            let mut frame = [0xff; 60];
            frame[12..14].copy_from_slice(&[0x88, 0xb5]);
            senders.lan.send(&[frame, frame]).unwrap();
            std::fs::write(directory.join("flushes"), flushes.get().to_string()).unwrap();
        },
    );
    match result {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{error}");
            1
        }
    }
}

/// `SRC:PORT>DST:PORT`, IPv4.
fn key(flow: &str) -> FlowKey {
    let end = |text: &str| {
        let (addr, port) = text.rsplit_once(':').unwrap();
        (addr.parse::<IpAddr>().unwrap(), port.parse().unwrap())
    };
    let (src, dst) = flow.split_once('>').unwrap();
    FlowKey::new(end(src), end(dst), 0, 0)
}
