//! The engine under test: it forwards what it gets, and keeps count.

use crate::clerk::Clerk;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::Write;
use std::os::unix::fs::FileExt;
use weir_core::frame::Frame;
use weir_core::gateway::{LAN, WAN};
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::time::{Duration, Time};
use weir_core::wire;
use weir_io::driver::{DriverConfig, Engine, HookCounters, Report};
use weir_io::supervise::{Attach, NoOperator, Records, Setup, Steered, Supervisor, TakenAcks};

/// Counters in shared memory; the first two are of frames from LAN and WAN.
const OBSERVED: usize = 2;
const RESYNCS: usize = 3;
const STOPS: usize = 4;
const GIANT: usize = 5;
const COUNTERS: usize = 6;

/// Forwards everything after a fixed time.
struct Bump {
    delay: Duration,
    held: VecDeque<(Time, Port, Frame)>,
    counts: &'static mut [u64],
    stats: std::path::PathBuf,
    clerk: Clerk,
}

impl Node for Bump {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, mut frame: Frame) {
        if port != LAN && port != WAN {
            self.counts[OBSERVED] += 1;
            return cx.frames.absorb(frame);
        }
        let (bytes, len) = (cx.frames.bytes(&frame), frame.len());
        if frame.checksum == Default::default() {
            if let Ok(packet) = wire::packet(bytes, len) {
                frame.checksum = wire::checksum::quick(bytes, len, &packet);
            }
        }
        self.counts[port.0 as usize] += 1;
        self.counts[GIANT] += u64::from(frame.gso_size != 0);
        self.held.push_back((cx.now + self.delay, if port == LAN { WAN } else { LAN }, frame));
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
    type Node = Bump;
    fn node(&mut self) -> &mut Bump {
        self
    }
    fn resync(&mut self, _: &mut Cx<'_>) {
        self.counts[RESYNCS] += 1;
    }
    fn stop(&mut self, _: &mut Cx<'_>) -> bool {
        self.counts[STOPS] += 1;
        true
    }
    fn report(&mut self, report: &Report<'_>) {
        let names = ["from_lan", "from_wan", "observed", "resyncs", "stops", "giant"];
        let counts = names.iter().zip(self.counts.iter()).map(|(name, count)| format!("{name}={count}\n"));
        self.clerk.write(&self.stats, &(counts.collect::<String>() + &common(report)));
    }
}

/// Returns the part that every engine under test reports.
pub fn common(report: &Report<'_>) -> String {
    let late = |p| report.lateness.quantile(p).as_micros();
    let mut text = format!(
        "pid={}\ndegraded={}\ndrops={}\nrounds={}\ncpu_us={}\nwall_us={}\nmargin_us={}\nlate_p50_us={}\nlate_p99_us={}\n",
        std::process::id(),
        report.degraded.as_deref().unwrap_or("no"),
        report.drops.total(),
        report.rounds,
        report.cpu.as_micros(),
        report.wall.as_micros(),
        report.margin.as_micros(),
        late(500_000),
        late(990_000),
    );
    for (i, exit) in report.exits.iter().enumerate() {
        text += &format!(
            "sent{i}={}\ncalls{i}={}\ncompleted{i}={}\nfull{i}={}\nrefused{i}={}\n",
            exit.sent, exit.calls, exit.completed_checksums, exit.full, exit.refused
        );
    }
    for (i, input) in report.inputs.iter().enumerate() {
        text += &format!("lost{i}={}\ntoo_long{i}={}\n", input.lost, input.too_long);
    }
    match report.hooks {
        Some(HookCounters::Acks(h)) => {
            text += &format!(
                "hook_taken={}\nhook_copied={}\nhook_set_back={}\nhook_passed_flow={}\nhook_passed_other={}\n\
                 hook_stamped={}\nhook_discarded={}\nhook_own={}\nhook_failed={}\nhook_doubted={}\nhook_ring_full={}\n\
                 hook_passed_known={}\nhook_passed_unknown={}\nhook_passed_stale={}\n\
                 hook_granted={}\n",
                h.taken, h.copied, h.set_back, h.passed_flow, h.passed_other, h.stamped, h.discarded, h.own,
                h.failed, h.doubted, h.ring_full, h.passed_known, h.passed_unknown, h.passed_stale,
                h.granted,
            );
        }
        Some(HookCounters::All(h)) => {
            text += &format!("hook_taken={}\nhook_own={}\nhook_failed={}\n", h.taken, h.own, h.failed);
        }
        Some(HookCounters::Both(..)) => unreachable!("no bump of these tests has both"),
        None => {}
    }
    text
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

/// Prepares an engine under test, started with `STEERED DEV,DEV DIRECTORY`.
pub fn prepare(args: &[String]) -> Result<Supervisor, i32> {
    tracing::subscriber::set_global_default(Log).unwrap();
    let sizes = args[0] == "gateway";
    let acks = |out, inward| {
        Steered::Acks(TakenAcks {
            out,
            inward,
            size_out: sizes,
            size_in: sizes,
            spill_out: false,
            spill_in: false,
            observe: false,
        })
    };
    let steered = match args[0].as_str() {
        "all" => Steered::All { out: true, inward: true },
        "all-out" => Steered::All { out: true, inward: false },
        "acks" | "gateway" => acks(true, true),
        "acks-out" => acks(true, false),
        other => panic!("{other}"),
    };
    let attach = match args[1].split_once(',') {
        Some((lan, wan)) => Attach::Pair { lan: lan.into(), wan: wan.into() },
        None => Attach::Dev(args[1].clone()),
    };
    let mut setup = Setup::new(attach, steered);
    setup.state = directory(args).join("state");
    setup.flows = number("FLOWS", 1024);
    setup.engines = number("ENGINES", 1);
    (setup.stale, setup.hang) = (Duration::from_millis(50), Duration::from_millis(60));
    setup.wait = std::env::var("BUMP_WAIT_S").ok().map(|s| Duration::from_secs(s.parse().unwrap()));
    Supervisor::prepare(&setup).map_err(|problems| {
        eprintln!("{problems}");
        2
    })
}

/// Returns the number that a variable says.
pub fn number(variable: &str, otherwise: u32) -> u32 {
    std::env::var(variable).map_or(otherwise, |value| value.parse().unwrap())
}

pub fn directory(args: &[String]) -> std::path::PathBuf {
    std::path::PathBuf::from(&args[2])
}

/// Runs until it is told to stop.
pub fn main(args: &[String]) -> i32 {
    let supervisor = match prepare(args) {
        Ok(supervisor) => supervisor,
        Err(code) => return code,
    };
    let directory = directory(args);
    let counts = Records::<u64>::alloc(COUNTERS).unwrap();
    let delay = Duration::from_micros(number("BUMP_DELAY_US", 0).into());
    let flushes = Cell::new(0);
    // Opened before a test takes the right to open files away.
    let count = std::fs::File::create(directory.join("flushes")).unwrap();
    let result = supervisor.run(
        |launch| {
            let counts = counts.take().unwrap();
            let (stats, clerk) = (directory.join("stats"), Clerk::start());
            let bump = Bump { delay, held: VecDeque::new(), counts, stats, clerk };
            launch.run(bump, DriverConfig { priority: None, ..DriverConfig::default() }).map(drop)
        },
        |senders, _| {
            flushes.set(flushes.get() + 1);
            // An experimental Ethertype that no host answers.
            let mut frame = vec![0xff; 60];
            frame[12..14].copy_from_slice(&[0x88, 0xb5]);
            let sent = senders.send(&[frame.clone(), frame], &[]);
            assert_eq!((sent.lan.len(), sent.wan.len()), (2, 0));
            count.write_all_at(flushes.get().to_string().as_bytes(), 0).unwrap();
        },
        || {},
        &mut NoOperator,
    );
    match result {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{error}");
            1
        }
    }
}
