//! A program behind an emulated path of its own, without privileges.
//!
//! ```text
//!  program ── weir0 10.77.0.1 │ emulator │ 10.77.0.2 weir1 ── far side
//! ```
//!
//! The program runs in a network namespace with only a loopback interface and `weir0`, a TUN device. Its
//! packets pass through a [`Path`](weir_core::link::Path) to `weir1` on the far side, and back. For root the
//! far side is the host itself. Another user gets a user namespace in which they are root, and the far side
//! is a second namespace in it.

mod cable;
mod server;

use crate::experiment::config::wan::WanFile;
use cable::Cable;
use rustix::process::{geteuid, kill_process, kill_process_group, pidfd_open, Pid, PidfdFlags, Signal};
use server::Server;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_io::sys::{namespace, tun};

/// Address of the program's side.
pub const NEAR: &str = "10.77.0.1";
/// Address of the far side.
pub const FAR: &str = "10.77.0.2";
/// Device of the far side.
const FAR_DEVICE: &str = "weir1";
/// Time that a process has to end after it was asked to.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Program to run, and its path.
#[derive(Clone, Debug)]
pub struct Shell {
    /// Path between both sides. The program sends in direction `out`.
    pub wan: WanFile,
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// Shell command that runs on the far side meanwhile.
    pub server: Option<String>,
}

/// Reason why a program did not run.
#[derive(Debug)]
pub enum Failed {
    /// There is no such program, or it may not be run: with the exit code that shells have for it.
    Program(String, u8),
    /// Anything else.
    Other(String),
}

impl From<String> for Failed {
    fn from(text: String) -> Failed {
        Failed::Other(text)
    }
}

/// Runs the program until it ends, and returns its exit status. The far side's command is there before it,
/// and is ended after it.
pub fn run(shell: &Shell) -> Result<ExitStatus, Failed> {
    let signals = Signals::register().map_err(|e| e.to_string())?;
    let is_root = geteuid().is_root();
    if !is_root {
        namespace::become_root().map_err(no_namespaces)?;
        ip("lo", &["link set lo up"])?;
    }
    let far = tun::create(FAR_DEVICE).map_err(|e| no_device(FAR_DEVICE, &e))?;
    let address = format!("addr add {FAR} peer {NEAR} dev {FAR_DEVICE}");
    ip(FAR_DEVICE, &[&address, &format!("link set {FAR_DEVICE} up")])?;
    let server = shell.server.as_deref().map(|command| Server::start(command, &signals)).transpose()?;
    let near = std::thread::scope(|scope| scope.spawn(|| near_side(&shell.program)).join());
    let Near { device, mut program } = near.map_err(|_| "the near side ended early".to_owned())??;
    let carried = carry(shell, [device, far], &program, &signals).map_err(|e| e.to_string());
    drop(server);
    if carried.is_err() {
        end(&mut program);
    }
    carried?;
    Ok(program.wait().map_err(|e| e.to_string())?)
}

fn no_device(name: &str, error: &io::Error) -> String {
    let help = match error.kind() {
        io::ErrorKind::ResourceBusy if name == FAR_DEVICE => {
            "another `weir shell` of root runs here, and this host is the far side of one at a time: start it as \
             another user, or in a network namespace of its own"
        }
        io::ErrorKind::NotFound => "the kernel's module tun makes /dev/net/tun: modprobe tun",
        io::ErrorKind::PermissionDenied => "/dev/net/tun may not be opened: it has mode 0666 on most systems",
        _ => "a TUN device cannot be made",
    };
    format!("{name}: {error}: {help}")
}

fn no_namespaces(error: io::Error) -> String {
    format!(
        "no namespaces for an ordinary user: {error}; the system has to allow them (user.max_user_namespaces, \
         kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), or run this as root"
    )
}

/// The program's side.
struct Near {
    device: OwnedFd,
    program: Child,
}

/// Makes the program's namespace and starts the program there. Called on a thread of its own, which moves
/// into that namespace.
fn near_side(program: &[OsString]) -> Result<Near, Failed> {
    namespace::new_network().map_err(|e| format!("a network namespace for the program: {e}"))?;
    let device = tun::create("weir0").map_err(|e| no_device("weir0", &e))?;
    let lines = [
        "link set lo up".to_string(),
        format!("addr add {NEAR} peer {FAR} dev weir0"),
        "link set weir0 up".to_string(),
        "route add default dev weir0".to_string(),
    ];
    ip("weir0", &lines.each_ref().map(String::as_str))?;
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]);
    let program = command.spawn().map_err(|error| not_started(&program[0], &error))?;
    Ok(Near { device, program })
}

/// Returns why a program could not be started. A directory of `PATH` that may not be read hides no program.
fn not_started(program: &OsStr, error: &io::Error) -> Failed {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let plain = Path::new(program).components().count() == 1;
    let exists = match plain {
        true => std::env::split_paths(&path).any(|dir| dir.join(program).is_file()),
        false => Path::new(program).exists(),
    };
    let name = program.to_string_lossy();
    match exists {
        true => Failed::Program(format!("{name}: {error}"), 126),
        false => Failed::Program(format!("{name}: no such program"), 127),
    }
}

/// Ends a process that this one started, and its process group if it leads one. One that does not end in time
/// is killed.
fn end(child: &mut Child) {
    for signal in [Signal::TERM, Signal::KILL] {
        if let (Ok(None), Some(pid)) = (child.try_wait(), Pid::from_raw(child.id() as i32)) {
            // The process has not been reaped, so its number is still its own.
            if kill_process_group(pid, signal).is_err() {
                let _ = kill_process(pid, signal);
            }
        }
        let until = Instant::now() + LAST_WORDS;
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Signals that this process got.
struct Signals {
    /// Ctrl-C is meant for the program, which is in the same process group. Without a handler it would end
    /// this process too.
    interrupted: Arc<AtomicBool>,
    /// Number of the latest signal that asks for the end, or 0.
    stopped: Arc<AtomicUsize>,
}

impl Signals {
    fn register() -> io::Result<Signals> {
        let signals = Signals { interrupted: Arc::default(), stopped: Arc::default() };
        for signal in [SIGINT, SIGQUIT] {
            signal_hook::flag::register(signal, signals.interrupted.clone())?;
        }
        for signal in [SIGTERM, SIGHUP] {
            signal_hook::flag::register_usize(signal, signals.stopped.clone(), signal as usize)?;
        }
        Ok(signals)
    }

    /// Returns whether there is nothing to begin any more.
    fn have_come(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.stopped.load(Ordering::Relaxed) > 0
    }

    /// Returns the signal that asks for the end, once.
    fn take_stop(&self) -> Option<Signal> {
        match self.stopped.swap(0, Ordering::Relaxed) as i32 {
            SIGTERM => Some(Signal::TERM),
            SIGHUP => Some(Signal::HUP),
            _ => None,
        }
    }
}

/// Carries packets until the program has ended. A signal to end goes to the program. One that does not end,
/// as interactive shells do not, is killed.
fn carry(shell: &Shell, devices: [OwnedFd; 2], program: &Child, signals: &Signals) -> io::Result<()> {
    let pid = Pid::from_raw(program.id() as i32).ok_or(io::ErrorKind::NotFound)?;
    let ended = pidfd_open(pid, PidfdFlags::empty())?;
    let mut cable = Cable::new(&shell.wan, devices)?;
    let mut latest = None;
    while !cable.carry(ended.as_fd())? {
        if let Some(signal) = signals.take_stop() {
            kill_process(pid, signal)?;
            latest.get_or_insert(Instant::now() + LAST_WORDS);
        }
        if latest.is_some_and(|latest| Instant::now() >= latest) {
            kill_process(pid, Signal::KILL)?;
        }
    }
    Ok(())
}

/// Runs lines of `ip` in this thread's namespace.
fn ip(what: &str, lines: &[&str]) -> Result<(), String> {
    for line in lines {
        let done = Command::new("ip").args(line.split(' ')).stdin(Stdio::null()).output();
        let done = done.map_err(|e| format!("{what}: cannot start ip (of iproute2): {e}"))?;
        if !done.status.success() {
            return Err(format!("{what}: ip {line}: {}", String::from_utf8_lossy(&done.stderr).trim()));
        }
    }
    Ok(())
}
