//! Faults, and how they are brought about and repaired.

use crate::processes;
use rustix::process::{kill_process, Pid, Signal};
use std::path::PathBuf;
use std::process::Command;
use weir_core::time::Duration;

/// Time from a fault of the way until its repair.
const LASTS: Duration = Duration::from_secs(1);
/// Time from a blow to the engine until the next one runs at its rate, and from a repair until the rate is
/// back.
const UNTIL_BACK: Duration = Duration::from_millis(1_100);
const UNTIL_SHAPED: Duration = Duration::from_secs(2);

/// Fault that the benchmark brings about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The engine is killed.
    Killed,
    /// The engine is stopped.
    Stopped,
    /// A filter takes the ACKs that the gateway makes: a part that the rule says.
    Filter(&'static str, &'static str),
    /// The loopback interface, by which ACKs come in, is set down.
    Loopback,
    /// The gateway has 2 of 100 ms of a processor.
    Starved,
}

impl Fault {
    pub const ALL: [Fault; 6] = [
        Fault::Killed,
        Fault::Stopped,
        Fault::Filter("filter", ""),
        Fault::Filter("half a filter", "numgen random mod 2 0"),
        Fault::Loopback,
        Fault::Starved,
    ];

    /// Returns its name in the table.
    pub fn words(self) -> &'static str {
        match self {
            Fault::Killed => "kill -9",
            Fault::Stopped => "SIGSTOP",
            Fault::Filter(words, _) => words,
            Fault::Loopback => "lo down",
            Fault::Starved => "2 % of a CPU",
        }
    }

    /// Returns the time from the blow until every second has to have its rate.
    pub fn until_back(self) -> Duration {
        match self {
            Fault::Killed | Fault::Stopped => UNTIL_BACK,
            _ => LASTS + UNTIL_SHAPED,
        }
    }

    /// Brings it about in the lab named `id`, and repairs it after a second.
    pub fn strike(self, id: &str) -> Result<(), String> {
        match self {
            Fault::Killed => signal(id, Signal::KILL),
            Fault::Stopped => signal(id, Signal::STOP),
            Fault::Filter(_, part) => {
                let rules = format!(
                    "table netdev f {{ chain e {{ type filter hook egress device lo priority 0; \
                     meta skuid >= 0 {part} drop; }}; }}"
                );
                inside(id, &["nft", &rules])?;
                pause();
                inside(id, &["nft", "delete table netdev f"])
            }
            Fault::Loopback => {
                inside(id, &["ip", "link", "set", "lo", "down"])?;
                pause();
                inside(id, &["ip", "link", "set", "lo", "up"])
            }
            Fault::Starved => {
                let quota = Quota::of(id)?;
                pause();
                drop(quota);
                Ok(())
            }
        }
    }
}

fn pause() {
    std::thread::sleep(std::time::Duration::from_nanos(LASTS.as_nanos()));
}

/// Sends a signal to the engine.
fn signal(id: &str, signal: Signal) -> Result<(), String> {
    let engine = processes::engine(id).and_then(|pid| Pid::from_raw(pid as i32)).ok_or("no engine found")?;
    kill_process(engine, signal).map_err(|e| format!("the engine: {e}"))
}

/// Runs a command in the gateway's namespace.
fn inside(id: &str, command: &[&str]) -> Result<(), String> {
    let namespace = format!("weir-{id}-gw");
    let output = Command::new("ip").args(["netns", "exec", &namespace]).args(command).output();
    let output = output.map_err(|e| format!("ip: {e}"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    output.status.success().then_some(()).ok_or_else(|| format!("{}: {error}", command[0]))
}

/// Group of the gateway's processes with 2 of 100 ms of a processor. Removed when dropped.
struct Quota(PathBuf);

impl Quota {
    fn of(id: &str) -> Result<Quota, String> {
        let (gateway, _) = processes::gateway(id).ok_or("no gateway found")?;
        let (first, second) = (PathBuf::from("/sys/fs/cgroup/cpu"), PathBuf::from("/sys/fs/cgroup"));
        let (group, limits) = if first.is_dir() {
            let ordinary = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "2000")];
            let real_time = [("cpu.rt_period_us", "100000"), ("cpu.rt_runtime_us", "2000")];
            (first.join(id), [ordinary, real_time].concat())
        } else {
            write(&second.join("cgroup.subtree_control"), "+cpu")?;
            (second.join(id), vec![("cpu.max", "2000 100000")])
        };
        std::fs::create_dir(&group).map_err(|e| format!("{}: {e}", group.display()))?;
        let quota = Quota(group);
        for (file, limit) in limits {
            // Kernels need not have groups of real-time threads.
            write(&quota.0.join(file), limit)
                .or_else(|e| if file.contains("rt") { Ok(()) } else { Err(e) })?;
        }
        for pid in processes::children(gateway).into_iter().chain([gateway]) {
            write(&quota.0.join("cgroup.procs"), &pid.to_string())?;
        }
        Ok(quota)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let members = std::fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        let above = self.0.with_file_name("cgroup.procs");
        // Engines may begin and end meanwhile.
        members.lines().for_each(|pid| drop(write(&above, pid)));
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn write(file: &std::path::Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))
}
