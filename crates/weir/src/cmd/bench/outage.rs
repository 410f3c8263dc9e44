//! What an engine's death costs: the longest time without an ACK frame at the sender's host, and the
//! longest gap in delivery at the receiving application.

use super::{options, plan, shape, write, Common};
use crate::lab::{self, Outcome};
use crate::plan::Path;
use crate::traffic::monotonic;
use rustix::process::{kill_process, Pid, Signal};
use serde::Serialize;
use socket2::{Domain, Protocol, Socket, Type};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};
use weir_core::wire::{self, Flags};

const SECONDS: u64 = 10;
const FLOWS: u32 = 4;
const FLOW_RATE: Rate = Rate::mbit(10);
/// From the first ACK until the blow: slow start is over by then.
const UNTIL_BLOW: Duration = Duration::from_secs(4);
/// Gaps that end earlier are not counted.
const GAPS_FROM: Duration = Duration::from_millis(3_500);
/// The last part of the run, in which shaping must be back.
const LAST: u64 = 3;

#[derive(Debug, Serialize)]
struct Figure {
    what: &'static str,
    rtt_ms: u64,
    frame_gap_ms: f64,
    delivery_gap_ms: f64,
    lost_connections: usize,
    rtos: u64,
    /// The flow furthest from its rate in the last three seconds, in percent.
    deviation_percent: f64,
}

pub(super) fn run(common: &Common) -> Result<(), String> {
    println!("{FLOWS} flows of {FLOW_RATE}; the worst of {} runs each\n", common.runs);
    println!(
        "{:<10} {:>7}  {:>13}  {:>16}  {:>6}  {:>5}  {:>15}",
        "", "RTT ms", "frame gap ms", "delivery gap ms", "lost", "RTOs", "rate afterwards"
    );
    let mut figures = Vec::new();
    for (what, signal) in [("kill -9", Signal::KILL), ("SIGSTOP", Signal::STOP)] {
        for rtt_ms in [4, 100] {
            let mut worst: Option<Figure> = None;
            for _ in 0..common.runs {
                let f = measure(what, signal, rtt_ms)?;
                worst = Some(worst.map_or_else(|| f.clone(), |w| w.worse(&f)));
            }
            let Some(f) = worst else { continue };
            println!(
                "{:<10} {:>7}  {:>13.1}  {:>16.1}  {:>6}  {:>5}  {:>+13.2} %",
                f.what,
                f.rtt_ms,
                f.frame_gap_ms,
                f.delivery_gap_ms,
                f.lost_connections,
                f.rtos,
                f.deviation_percent
            );
            figures.push(f);
        }
    }
    write(common, &figures)
}

impl Clone for Figure {
    fn clone(&self) -> Figure {
        Figure { ..*self }
    }
}

impl Figure {
    fn worse(&self, other: &Figure) -> Figure {
        let further = |a: f64, b: f64| if a.abs() >= b.abs() { a } else { b };
        Figure {
            frame_gap_ms: self.frame_gap_ms.max(other.frame_gap_ms),
            delivery_gap_ms: self.delivery_gap_ms.max(other.delivery_gap_ms),
            lost_connections: self.lost_connections + other.lost_connections,
            rtos: self.rtos + other.rtos,
            deviation_percent: further(self.deviation_percent, other.deviation_percent),
            ..*self
        }
    }
}

fn measure(what: &'static str, signal: Signal, rtt_ms: u64) -> Result<Figure, String> {
    let mut path = Path::default();
    path.wan_out.delay = Duration::from_micros(rtt_ms * 500);
    path.wan_back.delay = Duration::from_micros(rtt_ms * 500);
    let mut plan = plan("outage", path, SECONDS, FLOWS);
    let text = shape(&mut plan, FLOW_RATE)?;
    let mut options = options()?;
    let id = format!("outage-{}", std::process::id());
    options.id = Some(id.clone());
    options.gap_after = GAPS_FROM;
    let blow = Blow::prepare(id, signal);
    let outcome = lab::run(&plan, &text, &options);
    let frame_gap = blow.finish();
    let outcome = outcome?;
    let delivery = outcome.servers.flows.iter().filter_map(|f| f.received.as_ref()?.longest_gap);
    let delivery_gap = delivery.map(|g| g.len_ns).max().unwrap_or(SECONDS * 1_000_000_000);
    let lost = outcome.clients.flows.iter().chain(&outcome.servers.flows).filter(|f| f.error.is_some());
    Ok(Figure {
        what,
        rtt_ms,
        frame_gap_ms: frame_gap?.as_nanos() as f64 / 1e6,
        delivery_gap_ms: delivery_gap as f64 / 1e6,
        lost_connections: lost.count(),
        rtos: outcome.result.flows.iter().map(|f| f.rtos).sum(),
        deviation_percent: deviation(&outcome),
    })
}

/// How far the flow furthest from its rate is from it at the end, in percent.
fn deviation(outcome: &Outcome) -> f64 {
    let rate = FLOW_RATE.bps() as f64;
    let last = |f: &crate::result::FlowResult| {
        let from = (SECONDS - LAST) as f64;
        // Whole intervals only: what was still under way at the end comes in all at once.
        let whole = f.intervals.iter().filter(|i| i.t_s >= from && i.len_s == 1.0);
        let (bytes, seconds) = whole.fold((0, 0.0), |(b, s), i| (b + i.bytes, s + i.len_s));
        bytes as f64 * 8.0 / f64::max(seconds, 1.0)
    };
    let off = outcome.result.flows.iter().map(|f| (last(f) / rate - 1.0) * 100.0);
    off.max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(-100.0)
}

/// Watches the ACKs that reach the senders' host, strikes the engine, and goes on watching.
struct Blow {
    done: Arc<AtomicBool>,
    thread: JoinHandle<Result<Duration, String>>,
}

impl Blow {
    fn prepare(id: String, signal: Signal) -> Blow {
        let done = Arc::new(AtomicBool::new(false));
        let seen = done.clone();
        Blow { done, thread: std::thread::spawn(move || watch(&id, signal, &seen)) }
    }

    /// The longest time without an ACK from the blow on.
    fn finish(self) -> Result<Duration, String> {
        self.done.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the watching thread panicked".to_string())?
    }
}

fn watch(id: &str, signal: Signal, done: &AtomicBool) -> Result<Duration, String> {
    let Some(mut socket) = wait_for(done, || capture(id).ok()) else {
        return Err("the senders' host never appeared".into());
    };
    let mut buf = [0u8; 2048];
    let (mut first, mut last, mut struck, mut gap) = (None, Time::ZERO, None, Duration::ZERO);
    while !done.load(Ordering::Relaxed) {
        let got = socket.read(&mut buf).unwrap_or(0);
        let now = monotonic();
        if first.is_some_and(|f| now >= f + UNTIL_BLOW) && struck.is_none() {
            struck = Some(now);
            strike(signal)?;
            last = now;
        }
        if !is_ack(&buf[..got]) {
            continue;
        }
        first.get_or_insert(now);
        if struck.is_some() {
            gap = gap.max(now.since(last));
            last = now;
        }
    }
    struck.map(|_| gap).ok_or_else(|| "no ACK was seen, or the run ended before the blow".into())
}

fn wait_for<T>(done: &AtomicBool, mut f: impl FnMut() -> Option<T>) -> Option<T> {
    while !done.load(Ordering::Relaxed) {
        if let Some(t) = f() {
            return Some(t);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    None
}

/// A socket that sees every frame that comes in on the senders' host. This thread stays in there.
fn capture(id: &str) -> std::io::Result<Socket> {
    let namespace = File::open(format!("/run/netns/weir-{id}-cl"))?;
    rustix::thread::move_into_link_name_space(
        namespace.as_fd(),
        Some(rustix::thread::LinkNameSpaceType::Network),
    )?;
    let ip = i32::from((libc::ETH_P_IP as u16).to_be());
    let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(ip)))?;
    socket.set_read_timeout(Some(std::time::Duration::from_millis(1)))?;
    Ok(socket)
}

fn is_ack(frame: &[u8]) -> bool {
    let Ok(p) = wire::packet(frame, frame.len()) else { return false };
    wire::tcp(frame, &p).is_ok_and(|t| t.flags.contains(Flags::ACK) && t.src_port == 5001)
}

/// Sends `signal` to the engine: the child of the gateway that is a child of this process.
fn strike(signal: Signal) -> Result<(), String> {
    let engine = children(std::process::id())
        .into_iter()
        .filter(|&pid| arguments(pid).get(1).is_some_and(|a| a == "run"))
        .find_map(|gateway| children(gateway).first().copied());
    let pid = engine.and_then(|pid| Pid::from_raw(pid as i32)).ok_or("no engine found")?;
    kill_process(pid, signal).map_err(|e| format!("the engine: {e}"))
}

fn arguments(pid: u32) -> Vec<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|&b| b == 0).map(|a| String::from_utf8_lossy(a).into_owned()).collect()
}

/// The child processes of `parent`.
fn children(parent: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return vec![] };
    let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name may contain anything but ends at the last parenthesis: `pid (name) state ppid`.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.split_whitespace().nth(1).is_some_and(|ppid| ppid == parent.to_string())
    })
    .collect()
}
