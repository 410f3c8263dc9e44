//! Network namespaces by name, as `ip netns` knows them, so that a running lab can be inspected.

use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};
use serde::Deserialize;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Directory in which `ip netns` keeps names.
const NAMES: &str = "/run/netns";

/// An existing network namespace.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    handle: File,
}

impl Namespace {
    /// Creates the namespace, with its loopback interface down.
    pub fn create(name: &str) -> Result<Namespace, String> {
        ip(None, &["netns", "add", name])?;
        Namespace::open(name).map_err(|e| format!("network namespace {name}: {e}"))
    }

    /// Opens a namespace that another part of this program created.
    pub fn open(name: &str) -> io::Result<Namespace> {
        Ok(Namespace { name: name.to_string(), handle: File::open(format!("{NAMES}/{name}"))? })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Removes the name. The kernel removes the namespace after the last process in it. A missing name is no
    /// error.
    pub fn remove(name: &str) -> Result<(), String> {
        if !std::path::Path::new(NAMES).join(name).exists() {
            return Ok(());
        }
        ip(None, &["netns", "del", name]).map(drop)
    }

    /// Runs `f` on a new thread inside the namespace. There, `/proc/sys/net` and sockets are those of the
    /// namespace; `/sys` is not.
    pub fn inside<T: Send>(&self, f: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let entered = scope.spawn(|| {
                move_into_link_name_space(self.handle.as_fd(), Some(LinkNameSpaceType::Network))?;
                Ok(f())
            });
            entered.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Sets a value below `/proc/sys/net`.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<(), String> {
        let path = format!("/proc/sys/net/{key}");
        self.inside(|| std::fs::write(&path, value))
            .and_then(|written| written)
            .map_err(|e| format!("{}: {path} = {value}: {e}", self.name))
    }

    /// Runs lines of `ip` commands in the namespace.
    pub fn ip(&self, lines: &[String]) -> Result<(), String> {
        batch(Some(&self.name), lines)
    }

    /// Loads rules into the namespace's packet filter.
    pub fn nft(&self, rules: &str) -> Result<(), String> {
        let mut command = Command::new("nft");
        command.args(["-f", "-"]);
        let fault = |e: &dyn std::fmt::Display| format!("{}: nft: {e}", self.name);
        self.start_inside(&mut command).map_err(|e| fault(&e))?;
        tell(command, rules).map(drop).map_err(|e| fault(&e))
    }

    /// Runs lines of `tc` commands in the namespace.
    pub fn tc(&self, lines: &[String]) -> Result<(), String> {
        let mut command = Command::new("tc");
        command.args(["-batch", "-"]);
        let fault = |e: &dyn std::fmt::Display| format!("{}: tc: {e}", self.name);
        self.start_inside(&mut command).map_err(|e| fault(&e))?;
        tell(command, &(lines.join("\n") + "\n")).map(drop).map_err(|e| fault(&e))
    }

    /// Returns whether every interface carries frames. The kernel notices carriers up to a second late, and
    /// drops frames until then.
    pub fn is_up(&self) -> Result<bool, String> {
        let text = ip(None, &["-n", &self.name, "-j", "-d", "link"])?;
        let links: Vec<LinkEntry> =
            serde_json::from_slice(&text).map_err(|e| format!("{}: ip -j link: {e}", self.name))?;
        Ok(links.iter().all(LinkEntry::carries_frames))
    }

    /// Makes the child of `command` start in the namespace, and die when the calling thread ends. The thread
    /// must therefore outlive it. Only the network changes. Mounts stay shared, so that the BPF file system
    /// is at its usual place, which `ip netns exec` hides.
    pub fn start_inside(&self, command: &mut Command) -> io::Result<()> {
        let handle = self.handle.try_clone()?;
        let parent = rustix::process::getpid();
        // SAFETY: between fork and exec the child makes three system calls. It uses no lock and no allocator:
        // rustix calls are raw, and the error values hold no memory.
        unsafe {
            command.pre_exec(move || {
                rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
                if rustix::process::getppid() != Some(parent) {
                    // The parent ended before that.
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
                move_into_link_name_space(handle.as_fd(), Some(LinkNameSpaceType::Network))?;
                Ok(())
            });
        }
        Ok(())
    }
}

/// Entry of `ip -j -d link`; only these fields are read.
#[derive(Deserialize)]
struct LinkEntry {
    ifname: String,
    operstate: String,
    #[serde(default)]
    linkinfo: LinkInfo,
}

#[derive(Deserialize, Default)]
struct LinkInfo {
    info_slave_data: Option<BridgePort>,
}

#[derive(Deserialize)]
struct BridgePort {
    state: String,
}

impl LinkEntry {
    fn carries_frames(&self) -> bool {
        let forwards = self.linkinfo.info_slave_data.as_ref().is_none_or(|port| port.state == "forwarding");
        // The loopback interface has no meaningful carrier.
        self.ifname == "lo" || self.operstate == "UP" && forwards
    }
}

/// Runs `ip ARGS` and returns its output.
fn ip(stdin: Option<&str>, args: &[&str]) -> Result<Vec<u8>, String> {
    let mut command = Command::new("ip");
    command.args(args);
    tell(command, stdin.unwrap_or_default()).map_err(|e| format!("ip {}: {e}", args.join(" ")))
}

/// Runs a command with this input. Returns its output, or its error messages.
fn tell(mut command: Command, input: &str) -> Result<Vec<u8>, String> {
    use std::io::Write;
    let mut child = command
        // Ctrl-C ends the lab, which still needs `ip` to clean up.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    if let Some(mut to) = child.stdin.take() {
        // If the command ends early, its status and its messages tell why.
        let _ = to.write_all(input.as_bytes());
    }
    let out = child.wait_with_output().map_err(|e| e.to_string())?;
    if out.status.success() {
        return Ok(out.stdout);
    }
    Err(String::from_utf8_lossy(&out.stderr).trim().to_string())
}

/// Runs lines of `ip` commands, in the namespace `inside` or here.
pub fn batch(inside: Option<&str>, lines: &[String]) -> Result<(), String> {
    let text = lines.join("\n") + "\n";
    match inside {
        Some(name) => ip(Some(&text), &["-n", name, "-batch", "-"]).map(drop),
        None => ip(Some(&text), &["-batch", "-"]).map(drop),
    }
}
