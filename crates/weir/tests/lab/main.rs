//! Labs in real namespaces. They need root; without it each test says so and passes.

mod between;
mod both;
mod carries;
mod engines;
mod filter;
mod iperf;
mod life;
mod pacing;
mod rates;
mod reload;
mod soak;

use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weir::execute::lab::{self, Options, Outcome};
use weir::experiment::plan::{FlowGroup, Length, Plan, Ports};
use weir_core::gateway::Direction;
use weir_core::time::Duration as Nanos;

/// Labs that measure take turns: two processors are not enough for several.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: labs need root");
    }
    root
}

/// A name that belongs to this test in this process.
fn id(test: &str) -> String {
    format!("wlab-{}-{test}", std::process::id())
}

fn options(id: &str) -> Options {
    Options {
        id: Some(id.to_string()),
        program: env!("CARGO_BIN_EXE_weir").into(),
        progress: false,
        ..Options::new().unwrap()
    }
}

fn group(id: &str, port: u16, direction: Direction, length: Length) -> FlowGroup {
    let mut group = FlowGroup::new(id);
    group.tcp.cc = Some("reno".into());
    FlowGroup { start: Nanos::from_millis(100), length, direction, ports: Ports::Shared(port), ..group }
}

fn plan(ms: u64, groups: Vec<FlowGroup>) -> Plan {
    let interval = Nanos::from_millis(200);
    Plan { interval, groups, ..Plan::new("lab-test", Nanos::from_millis(ms)) }
}

fn run(plan: &Plan, options: &Options) -> Outcome {
    let outcome = lab::run(plan, options).unwrap();
    assert!(!left_behind(options.id.as_ref().unwrap()), "the lab left something behind");
    outcome
}

/// Whether namespaces or records of the lab `id` exist.
fn left_behind(id: &str) -> bool {
    let has = |directory: &str, text: &str| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.into_iter().any(|e| e.file_name().to_string_lossy().contains(text))
    };
    has("/run/netns", &format!("weir-{id}-")) || has("/run/weir/lab", id)
}

fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        eprintln!("skipped: {program} is missing");
    }
    found.is_ok()
}

/// Does something, and finds the longest time meanwhile for which a thread that sleeps a millisecond did not run.
fn longest_stall<T>(what: impl FnOnce() -> T) -> (T, std::time::Duration) {
    use std::sync::atomic::{AtomicBool, Ordering};
    /// Ends the watcher, also when the test panics.
    struct Ends<'a>(&'a AtomicBool);
    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let (mut longest, mut last) = (std::time::Duration::ZERO, std::time::Instant::now());
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(std::time::Duration::from_millis(1));
                longest = longest.max(last.elapsed());
                last = std::time::Instant::now();
            }
            longest
        });
        let ends = Ends(&done);
        let result = what();
        drop(ends);
        (result, watcher.join().unwrap())
    })
}

/// Makes an attempt, and another one if that fails, which is said aloud. For what a machine without time can spoil.
fn twice(what: &str, attempt: impl Fn() -> Result<(), String>) {
    if let Err(first) = attempt() {
        eprintln!("{what}: NEEDED A SECOND RUN: {first}");
        attempt().unwrap_or_else(|second| panic!("{what}: {first}, then {second}"));
    }
}
