//! The cost of reloads under load. Each reload changes the flows' rates, and adds and removes customers or
//! classes.

use super::figures::{lost_frames, verdict, Spread};
use super::processes;
use super::{options, plan, whole, write, Common};
use serde::Serialize;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use weir::execute::lab::{Options, Outcome};
use weir::execute::traffic::monotonic;
use weir::experiment::config::{gateway, Source};
use weir::experiment::plan::{Path, Plan, Value};
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};

const RELOADS: u32 = 100;
const FLOWS: u32 = 16;
/// Rates of each flow, in turns, if ACKs are controlled.
const FLOW_RATES: [Rate; 2] = [Rate::mbit(4), Rate::mbit(6)];
/// Rates of all flows together, in turns, if they wait in the queue of a class.
const CLASS_RATES: [Rate; 2] = [Rate::mbit(64), Rate::mbit(96)];
/// Bytes of a full frame on Ethernet, and of its payload.
const FULL_FRAME: u64 = 1514;
const PAYLOAD: u64 = 1448;
/// Receive window that the queue has room for.
const WINDOW_BYTES: u64 = 64 << 10;
const BETWEEN: Duration = Duration::from_millis(400);
/// Time until the first reload. Slow start is over by then.
const FROM: Duration = Duration::from_secs(3);
const AFTER: Duration = Duration::from_secs(1);
/// Window, and the allowed error of its bytes for flows on target.
const WINDOW: Duration = Duration::from_millis(100);
const OFF_PERCENT: f64 = 10.0;
const STEP: Duration = Duration::from_millis(10);

/// Mechanism that limits the flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Held {
    /// Control of their ACKs.
    Acks,
    /// The queue of a class.
    Queues,
}

impl Held {
    const ALL: [Held; 2] = [Held::Acks, Held::Queues];

    const fn name(self) -> &'static str {
        match self {
            Held::Acks => "acks",
            Held::Queues => "queues",
        }
    }

    /// Returns the rates that the file has in turns.
    const fn rates(self) -> [Rate; 2] {
        match self {
            Held::Acks => FLOW_RATES,
            Held::Queues => CLASS_RATES,
        }
    }

    /// Returns the payload of all flows in bits a second, if the file has this rate.
    fn payload(self, rate: Rate) -> u64 {
        match self {
            Held::Acks => rate.bps() * u64::from(FLOWS),
            Held::Queues => rate.bps() * PAYLOAD / FULL_FRAME,
        }
    }

    fn configure(self, plan: &mut Plan) -> Result<(), String> {
        if self == Held::Queues {
            plan.groups.iter_mut().for_each(|group| group.tcp.set("rwnd", Value::Number(WINDOW_BYTES)));
        }
        let file = gateway::parse(&Source::new("the gateway", self.file())).map_err(|e| e.to_string())?;
        plan.gateway = Some(file.gateway);
        Ok(())
    }

    /// Returns the gateway's file at the start.
    fn file(self) -> String {
        let rate = self.rates()[0];
        match self {
            Held::Acks => gateway::short("wan", Some(rate), Some(rate), None).text,
            Held::Queues => format!(
                "[ports]\ndev = \"wan\"\n[[gateway.class]]\nname = \"link\"\nrate = \"{rate}\"\n[[gateway.class]]\n\
                 name = \"all\"\nparent = \"link\"\nrate = \"{rate}\"\nqueue = \"2000p\"\n"
            ),
        }
    }

    /// Returns the file of reload `number` and the file of its customers, with different customers than
    /// before.
    fn files(self, text: &str, number: u32) -> (String, Option<String>) {
        let rates = self.rates();
        let text = text.replace(&rates[0].to_string(), &rates[number as usize % 2].to_string());
        match self {
            Held::Acks => {
                let row = |n| format!("c{n},192.0.2.{n},{}Mbit,1Mbit\n", 1 + number % 5);
                let rows: String = (0..=number % 3).map(row).collect();
                let text = format!("{text}\n[gateway.customers]\nfile = \"customers.csv\"\n");
                (text, Some(format!("id,prefixes,down,up\n{rows}")))
            }
            Held::Queues => {
                let discipline = if number % 4 < 2 { "fifo" } else { "pfq" };
                let text = text.replace("queue = ", &format!("discipline = \"{discipline}\"\nqueue = "));
                let extra = |n| {
                    let port = format!("match = [{{ dst_port = {} }}]\n", 7 + n);
                    format!(
                        "[[gateway.class]]\nname = \"extra{n}\"\nparent = \"link\"\nqueue = \"9p\"\n{port}"
                    )
                };
                let extra: String = (0..number % 3).map(extra).collect();
                (text.replacen("[[gateway.class]]", &format!("{extra}[[gateway.class]]"), 1), None)
            }
        }
    }
}

/// Results of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Mechanism that limited the flows.
    pub held: Held,
    /// Number of reloads.
    pub reloads: usize,
    /// Durations of the reloads from the command to its end, in milliseconds: median, minimum and maximum.
    pub reload_ms: (f64, f64, f64),
    /// Number of frames that were dropped, or that the engine had no room to receive.
    pub lost_frames: u64,
    /// Number of segments that bypassed shaping because the engine was stalled.
    pub passed_stale: u64,
    /// Number of failed connections.
    pub lost_connections: usize,
    /// Number of retransmitted segments.
    pub retransmits: u64,
    /// Number of retransmission time-outs.
    pub rtos: u64,
    /// Longest time in which every window of 100 ms was more than 10 % away from the flows' total rate, in
    /// milliseconds.
    pub off_target_ms: u64,
    /// Error of the rate over the whole time of the reloads, in percent.
    pub error_percent: f64,
}

impl Figure {
    /// Returns whether no frame and no connection was lost.
    pub fn is_whole(&self) -> bool {
        self.lost_frames == 0 && self.lost_connections == 0
    }
}

pub(super) fn run(common: &Common) -> Result<(), String> {
    println!(
        "{FLOWS} flows in turns of {} and {} each by their ACKs, of {} and {} together in a queue; {RELOADS} reloads, one every \
         {BETWEEN}; {} runs\n\
         must hold: no frame and no connection lost\n",
        FLOW_RATES[0], FLOW_RATES[1], CLASS_RATES[0], CLASS_RATES[1], common.runs
    );
    println!(
        "{:<7} {:>11}  {:>11}  {:>11}  {:>6}  {:>5}  {:>13}  {:>10}  {:>24}",
        "held by",
        "lost frames",
        "lost conns",
        "retransmits",
        "stale",
        "RTOs",
        "off target ms",
        "error %",
        "reload ms"
    );
    let mut figures = Vec::new();
    for held in Held::ALL.into_iter().flat_map(|held| (0..common.runs).map(move |_| held)) {
        let mut options = options()?;
        options.id = Some(format!("reload-{}", std::process::id()));
        let f = measure(&options, held, RELOADS)?;
        let (median, min, max) = f.reload_ms;
        println!(
            "{:<7} {:>11}  {:>11}  {:>11}  {:>6}  {:>5}  {:>13}  {:>+10.2}  {:>24}  {}",
            held.name(),
            f.lost_frames,
            f.lost_connections,
            f.retransmits,
            f.passed_stale,
            f.rtos,
            f.off_target_ms,
            f.error_percent,
            format!("{median:.0} ({min:.0} to {max:.0})"),
            verdict(f.is_whole())
        );
        figures.push(f);
    }
    write(common, &figures)
}

/// Runs flows in a lab with a known name, and reloads its gateway.
pub fn measure(options: &Options, held: Held, reloads: u32) -> Result<Figure, String> {
    let between = Duration::from_nanos(BETWEEN.as_nanos() * u64::from(reloads));
    let length = FROM + between + AFTER;
    let mut plan = plan("reload", Path::default(), length.as_nanos().div_ceil(1_000_000_000), FLOWS);
    held.configure(&mut plan)?;
    let options = Options { file: Some(held.file()), ..options.clone() };
    let id = options.id.clone().ok_or("a lab without a name")?;
    let reloader = Reloader::start(id, options.program.display().to_string(), held, reloads);
    let outcome = whole(&plan, &options);
    let changes = reloader.finish();
    let (outcome, changes) = (outcome?, changes?);
    Ok(figure(&outcome, held, &changes))
}

/// A reload: the time from which the flows have this total payload rate in bits a second, and its duration.
struct Change {
    at: Time,
    bps: u64,
    took: Duration,
}

fn figure(outcome: &Outcome, held: Held, changes: &[Change]) -> Figure {
    let result = &outcome.result;
    let gateway = result.gateway.clone().unwrap_or_default();
    let steering = gateway.steering.unwrap_or_default();
    let ends = outcome.clients.flows.iter().chain(&outcome.servers.flows);
    let took = Spread::of(changes.iter().map(|c| c.took.as_nanos() as f64 / 1e6).collect());
    let (off_target_ms, error_percent) = target(outcome, changes);
    Figure {
        held,
        reloads: changes.len(),
        reload_ms: (took.median, took.min, took.max),
        lost_frames: lost_frames(&gateway),
        passed_stale: steering.passed_stale,
        lost_connections: ends.filter(|f| f.error.is_some()).count(),
        retransmits: result.flows.iter().map(|f| f.retransmits).sum(),
        rtos: result.flows.iter().map(|f| f.rtos).sum(),
        off_target_ms,
        error_percent,
    }
}

/// Returns the longest time off target in milliseconds, and the total error in percent.
fn target(outcome: &Outcome, changes: &[Change]) -> (u64, f64) {
    let since = |at: Time| at.since(outcome.epoch).as_nanos();
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return (0, 0.0) };
    let (from, until) = (since(first.at), since(last.at) + AFTER.as_nanos() / 2);
    let received = |a: u64, b: u64| -> u64 {
        let flows = outcome.servers.flows.iter().filter_map(|f| f.received.as_ref());
        flows.map(|r| r.bins.between(a, b)).sum()
    };
    let wanted = |a: u64, b: u64| -> f64 {
        let ends = changes.iter().skip(1).map(|c| since(c.at)).chain([u64::MAX]);
        let parts = changes.iter().zip(ends).map(|(c, end)| {
            let (begin, end) = (since(c.at).max(a), end.min(b));
            end.saturating_sub(begin) as f64 * c.bps as f64 / 8e9
        });
        parts.sum::<f64>()
    };
    let error = |a: u64, b: u64| (received(a, b) as f64 / wanted(a, b) - 1.0) * 100.0;
    let (window, step) = (WINDOW.as_nanos(), STEP.as_nanos());
    let (mut longest, mut now) = (0, 0);
    for at in (from..until.saturating_sub(window)).step_by(step as usize) {
        now = if error(at, at + window).abs() > OFF_PERCENT { now + 1 } else { 0 };
        longest = longest.max(now);
    }
    (longest * step / 1_000_000, error(from, until))
}

/// Thread that reloads the gateway of a running lab.
struct Reloader {
    done: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Change>, String>>,
}

impl Reloader {
    fn start(id: String, program: String, held: Held, reloads: u32) -> Reloader {
        let done = Arc::new(AtomicBool::new(false));
        let seen = done.clone();
        Reloader { done, thread: std::thread::spawn(move || reload(&id, &program, held, reloads, &seen)) }
    }

    fn finish(self) -> Result<Vec<Change>, String> {
        self.done.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the reloading thread panicked".to_string())?
    }
}

fn reload(
    id: &str,
    program: &str,
    held: Held,
    reloads: u32,
    done: &AtomicBool,
) -> Result<Vec<Change>, String> {
    let pause = |d: Duration| std::thread::sleep(std::time::Duration::from_nanos(d.as_nanos()));
    let file = loop {
        match processes::gateway(id) {
            Some((_, file)) => break file,
            None if done.load(Ordering::Relaxed) => return Err("the gateway never ran".into()),
            None => pause(STEP),
        }
    };
    pause(FROM);
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{file}: {e}"))?;
    let list = std::path::Path::new(&file).with_file_name("customers.csv");
    let mut changes = Vec::new();
    for number in 1..=reloads {
        let (text, customers) = held.files(&text, number);
        let write = |path: &std::path::Path, text: String| {
            std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
        };
        if let Some(customers) = customers {
            write(&list, customers)?;
        }
        write(file.as_ref(), text)?;
        let before = monotonic();
        let output = Command::new("ip")
            .args(["netns", "exec", &format!("weir-{id}-gw"), program, "reload"])
            .output()
            .map_err(|e| format!("ip: {e}"))?;
        if !output.status.success() {
            return Err(format!("reload {number}: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        let at = monotonic();
        let bps = held.payload(held.rates()[number as usize % 2]);
        changes.push(Change { at, bps, took: at.since(before) });
        pause(BETWEEN.saturating_sub(at.since(before)));
    }
    Ok(changes)
}
