//! The cost of a fault: the engine dies, or a part of its way breaks and is repaired. Measured are the
//! longest time without an ACK frame at the sender's host, the longest gap in delivery at the receiving
//! application, and the error of the rate in each second afterwards. For comparison, it reports the longest
//! time for which the machine did not run the watching thread, which polls every millisecond.

mod fault;

use super::figures::verdict;
use super::{options, plan, shape, whole, write, Common};
use fault::Fault;
use serde::Serialize;
use socket2::{Domain, Protocol, Socket, Type};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use weir::execute::lab::Outcome;
use weir::execute::traffic::monotonic;
use weir::experiment::plan::Path;
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};
use weir_core::wire::{self, Flags};

const SECONDS: u64 = 10;
const FLOWS: u32 = 4;
const FLOW_RATE: Rate = Rate::mbit(10);
/// Time from the first ACK to the blow. Slow start is over by then.
const UNTIL_BLOW: Duration = Duration::from_secs(4);
/// Time before which gaps do not count.
const GAPS_FROM: Duration = Duration::from_millis(3_500);
const SECOND_NS: u64 = 1_000_000_000;
/// Bounds: milliseconds without a frame and without delivery, and percent of the rate.
const FRAMES_MS: f64 = 60.0;
const DELIVERY_MS: f64 = 200.0;
const RATE_PERCENT: f64 = 2.0;

#[derive(Debug, Serialize)]
struct Figure {
    what: &'static str,
    rtt_ms: u64,
    frame_gap_ms: f64,
    delivery_gap_ms: f64,
    /// Longest time between two polls of the watcher after the blow.
    machine_ms: f64,
    lost_connections: usize,
    rtos: u64,
    /// Error of the rate furthest from 0, in percent, over all flows and all seconds once the rate has to be
    /// back.
    deviation_percent: f64,
}

pub(super) fn run(common: &Common) -> Result<(), String> {
    println!(
        "{FLOWS} flows of {FLOW_RATE}; the worst of {} runs each\nmust hold: at most {FRAMES_MS} ms without a frame \
         and {DELIVERY_MS} without delivery, no connection lost, every second from 1 s after a restart on, or 2 s \
         after a repair, within {RATE_PERCENT} %\n",
        common.runs
    );
    println!(
        "{:<16} {:>7}  {:>13}  {:>16}  {:>6}  {:>5}  {:>15}  {:>10}",
        "", "RTT ms", "frame gap ms", "delivery gap ms", "lost", "RTOs", "worst second", "machine ms"
    );
    let mut figures = Vec::new();
    for fault in Fault::ALL {
        for rtt_ms in [4, 100] {
            let mut worst: Option<Figure> = None;
            for _ in 0..common.runs {
                let f = measure(fault, rtt_ms)?;
                worst = Some(worst.map_or_else(|| f.clone(), |w| w.worse(&f)));
            }
            let Some(f) = worst else { continue };
            println!(
                "{:<16} {:>7}  {:>13.1}  {:>16.1}  {:>6}  {:>5}  {:>+13.2} %  {:>10.1}  {}",
                f.what,
                f.rtt_ms,
                f.frame_gap_ms,
                f.delivery_gap_ms,
                f.lost_connections,
                f.rtos,
                f.deviation_percent,
                f.machine_ms,
                verdict(f.holds())
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
    fn holds(&self) -> bool {
        self.frame_gap_ms <= FRAMES_MS
            && self.delivery_gap_ms <= DELIVERY_MS
            && self.lost_connections == 0
            && self.deviation_percent.abs() <= RATE_PERCENT
    }

    fn worse(&self, other: &Figure) -> Figure {
        let further = |a: f64, b: f64| if a.abs() >= b.abs() { a } else { b };
        Figure {
            frame_gap_ms: self.frame_gap_ms.max(other.frame_gap_ms),
            delivery_gap_ms: self.delivery_gap_ms.max(other.delivery_gap_ms),
            machine_ms: self.machine_ms.max(other.machine_ms),
            lost_connections: self.lost_connections + other.lost_connections,
            rtos: self.rtos + other.rtos,
            deviation_percent: further(self.deviation_percent, other.deviation_percent),
            ..*self
        }
    }
}

fn measure(fault: Fault, rtt_ms: u64) -> Result<Figure, String> {
    let mut path = Path::default();
    path.wan_out.delay = Duration::from_micros(rtt_ms * 500);
    path.wan_back.delay = Duration::from_micros(rtt_ms * 500);
    let mut plan = plan("outage", path, SECONDS, FLOWS);
    shape(&mut plan, Some(FLOW_RATE), None);
    let mut options = options()?;
    let id = format!("outage-{}", std::process::id());
    options.id = Some(id.clone());
    options.gap_after = GAPS_FROM;
    let blow = Blow::prepare(id, fault);
    let outcome = whole(&plan, &options);
    let struck = blow.finish();
    let outcome = outcome?;
    let struck = struck?;
    let delivery = outcome.servers.flows.iter().filter_map(|f| f.received.as_ref()?.longest_gap);
    let delivery_gap = delivery.map(|g| g.len_ns).max().unwrap_or(SECONDS * 1_000_000_000);
    let lost = outcome.clients.flows.iter().chain(&outcome.servers.flows).filter(|f| f.error.is_some());
    Ok(Figure {
        what: fault.words(),
        rtt_ms,
        frame_gap_ms: struck.gap.as_nanos() as f64 / 1e6,
        delivery_gap_ms: delivery_gap as f64 / 1e6,
        machine_ms: struck.still.as_nanos() as f64 / 1e6,
        lost_connections: lost.count(),
        rtos: outcome.result.flows.iter().map(|f| f.rtos).sum(),
        deviation_percent: deviation(&outcome, struck.at + fault.until_back()),
    })
}

/// Returns the error of the rate furthest from 0, in percent, over all flows and all whole seconds after the
/// time `back`.
fn deviation(outcome: &Outcome, back: Time) -> f64 {
    let from = back.since(outcome.epoch).as_nanos();
    let starts: Vec<u64> =
        (0..).map(|k| from + k * SECOND_NS).take_while(|s| s + SECOND_NS <= SECONDS * SECOND_NS).collect();
    let received = outcome.servers.flows.iter().filter_map(|f| f.received.as_ref());
    let error = |bytes: u64| (bytes as f64 * 8.0 / FLOW_RATE.bps() as f64 - 1.0) * 100.0;
    let errors = received.flat_map(|r| starts.iter().map(move |&s| error(r.bins.between(s, s + SECOND_NS))));
    errors.max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(-100.0)
}

/// Watcher of the ACKs that reach the senders' host. It brings the fault about and continues to watch.
struct Blow {
    done: Arc<AtomicBool>,
    thread: JoinHandle<Result<Struck, String>>,
}

/// Observations of the watcher.
#[derive(Clone, Copy)]
struct Struck {
    at: Time,
    /// Longest time without an ACK after the blow.
    gap: Duration,
    /// Longest time between two polls after the blow.
    still: Duration,
}

impl Blow {
    fn prepare(id: String, fault: Fault) -> Blow {
        let done = Arc::new(AtomicBool::new(false));
        let seen = done.clone();
        Blow { done, thread: std::thread::spawn(move || watch(&id, fault, &seen)) }
    }

    fn finish(self) -> Result<Struck, String> {
        self.done.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the watching thread panicked".to_string())?
    }
}

fn watch(id: &str, fault: Fault, done: &AtomicBool) -> Result<Struck, String> {
    let Some(mut socket) = wait_for(done, || capture(id).ok()) else {
        return Err("the senders' host never appeared".into());
    };
    let mut buf = [0u8; 2048];
    let (mut first, mut last, mut struck, mut gap) = (None, Time::ZERO, None, Duration::ZERO);
    let (mut looked, mut still, mut blow) = (Time::ZERO, Duration::ZERO, None);
    while !done.load(Ordering::Relaxed) {
        let got = socket.read(&mut buf).unwrap_or(0);
        let now = monotonic();
        if struck.is_some() {
            still = still.max(now.since(looked));
        }
        looked = now;
        if first.is_some_and(|f| now >= f + UNTIL_BLOW) && struck.is_none() {
            struck = Some(now);
            let id = id.to_owned();
            // In a thread of its own: its commands take time.
            blow = Some(std::thread::spawn(move || fault.strike(&id)));
            (last, looked) = (now, monotonic());
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
    if let Some(blow) = blow {
        blow.join().map_err(|_| "the thread of the fault panicked".to_string())??;
    }
    struck
        .map(|at| Struck { at, gap, still })
        .ok_or_else(|| "no ACK was seen, or the run ended before the blow".into())
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

/// Opens a socket that captures every frame arriving at the senders' host. The calling thread stays in that
/// namespace.
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
