//! A lab that a test runs: its turn, its name, and how an attempt is judged.

use std::fmt::Debug;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use weir::execute::lab::Options;
use weir::execute::machine::Watch;

/// Labs that measure take turns: two processors are not enough for several. After a signal no lab gets one.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if stop().load(Ordering::Relaxed) {
        std::process::exit(130);
    }
    turn
}

/// Set by SIGINT, SIGTERM and SIGHUP: a lab that runs ends and takes itself down.
fn stop() -> Arc<AtomicBool> {
    static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    STOP.get_or_init(|| Options::with_signals().unwrap().stop).clone()
}

pub fn root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: labs need root");
    }
    root
}

/// A name that belongs to this test in this process.
pub fn id(test: &str) -> String {
    format!("wlab-{}-{test}", std::process::id())
}

pub fn options(id: &str, program: &str) -> Options {
    Options {
        stop: stop(),
        id: Some(id.to_string()),
        program: program.into(),
        progress: false,
        ..Options::new().unwrap()
    }
}

/// Returns whether namespaces or records of the lab `id` exist.
pub fn left_behind(id: &str) -> bool {
    let has = |directory: &str, text: &str| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.into_iter().any(|e| e.file_name().to_string_lossy().contains(text))
    };
    has("/run/netns", &format!("weir-{id}-")) || has("/run/weir/lab", id)
}

/// Makes attempts until one succeeds. Fails at the second that fails on a machine that had time for it, and
/// at the third that the machine had no time for: what no machine may spoil is asserted by the attempt
/// itself.
pub fn judged(what: &str, attempt: impl Fn() -> Result<(), String>) {
    let (mut own, mut starved) = (0, 0);
    while own < 2 && starved < 3 {
        let watch = Watch::begin();
        let Err(error) = attempt() else { return };
        let machine = watch.finish();
        eprintln!("{what}: NOT AT THE FIRST ATTEMPT: {error} ({machine})");
        match machine.had_time() {
            true => own += 1,
            false => {
                starved += 1;
                count_inconclusive(what);
            }
        }
        assert!(own < 2, "{what}: {error}");
    }
    panic!("{what}: inconclusive three times: the machine was overloaded");
}

/// Adds a line to the file that `INCONCLUSIVE` names, if it does.
fn count_inconclusive(what: &str) {
    let Some(path) = std::env::var_os("INCONCLUSIVE") else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut f| writeln!(f, "{what}")).expect("the file that INCONCLUSIVE names");
}

/// Asks for what an attempt must show on a machine that has its time.
pub fn holds(it_does: bool, seen: impl Debug) -> Result<(), String> {
    match it_does {
        true => Ok(()),
        false => Err(format!("{seen:?}")),
    }
}
