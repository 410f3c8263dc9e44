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
use rustix::process::{geteuid, pidfd_open, Pid, PidfdFlags};
use server::Server;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use weir_io::sys::{namespace, tun};

/// Address of the program's side.
pub const NEAR: &str = "10.77.0.1";
/// Address of the far side.
pub const FAR: &str = "10.77.0.2";

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
    let is_root = geteuid().is_root();
    if !is_root {
        namespace::become_root().map_err(no_namespaces)?;
        ip("lo", &["link set lo up"])?;
    }
    let far = tun::create("weir1").map_err(|e| no_device("weir1", &e))?;
    ip("weir1", &[&format!("addr add {FAR} peer {NEAR} dev weir1"), "link set weir1 up"])?;
    let server = shell.server.as_deref().map(Server::start).transpose()?;
    let near = std::thread::scope(|scope| scope.spawn(|| near_side(&shell.program)).join());
    let Near { device, mut program } = near.map_err(|_| "the near side ended early".to_owned())??;
    let carried = carry(shell, [device, far], &program).map_err(|e| e.to_string());
    drop(server);
    if carried.is_err() {
        end(&mut program);
    }
    carried?;
    Ok(program.wait().map_err(|e| e.to_string())?)
}

fn no_device(name: &str, error: &io::Error) -> String {
    let help = match error.kind() {
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

/// Ends a process that this one started, and its process group if it leads one.
fn end(child: &mut Child) {
    if let (Ok(None), Some(pid)) = (child.try_wait(), Pid::from_raw(child.id() as i32)) {
        // The process has not been reaped, so its number is still its own.
        let group = rustix::process::kill_process_group(pid, rustix::process::Signal::TERM);
        if group.is_err() {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }
    let _ = child.wait();
}

/// Carries packets until the program has ended or this process is told to end.
fn carry(shell: &Shell, devices: [OwnedFd; 2], program: &Child) -> io::Result<()> {
    let pid = Pid::from_raw(program.id() as i32).ok_or(io::ErrorKind::NotFound)?;
    let ended = pidfd_open(pid, PidfdFlags::empty())?;
    // Ctrl-C is meant for the program, which is in the same process group. Without a handler it would end
    // this process too.
    let (ignored, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGQUIT] {
        signal_hook::flag::register(signal, ignored.clone())?;
    }
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let mut cable = Cable::new(&shell.wan, devices)?;
    while !cable.carry(ended.as_fd())? {
        if stop.swap(false, Ordering::Relaxed) {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
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
