//! The gateway of the soak test, which runs in a lab but is started here, and the events that it goes
//! through.

use super::super::figures::lost_frames;
use super::super::processes;
use super::event::{Endured, Event, Happened, Use};
use super::UPLOADS;
use rustix::process::{kill_process, Pid, Signal};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use weir::execute::lab::Namespace;
use weir::execute::traffic::monotonic;
use weir::experiment::config::gateway::short;
use weir::result::running::GatewayReport;
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};

/// Longest wait for the gateway, on a machine with much other work.
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(5);
/// Time for which a link is down.
const DOWN: Duration = Duration::from_millis(300);
/// Time without any gateway.
const AWAY: Duration = Duration::from_millis(500);
/// Time between the gateway's end and the end of the traffic.
const BEFORE_END: Duration = Duration::from_secs(1);
const DEV: &str = "wan";
/// Rates of an upload in turns, in Mbit/s, and of a download.
const UPLOAD: [u64; 2] = [3, 4];
const DOWNLOAD: Rate = Rate::mbit(6);
/// Rate of the customer in each direction, for all its flows.
const CUSTOMER: Rate = Rate::mbit(20);

/// Thread that runs a gateway in a lab of this process and causes the events.
pub struct Ordeal {
    done: Arc<AtomicBool>,
    thread: JoinHandle<Result<Endured, String>>,
}

impl Ordeal {
    /// Starts the thread for a lab with this `id`, which will run soon with traffic of this `length`. An
    /// event happens every `between`. If the gateway fails, `stop` is set, which ends the lab.
    pub fn start(
        id: String,
        program: PathBuf,
        length: Duration,
        between: Duration,
        stop: Arc<AtomicBool>,
    ) -> Ordeal {
        let done = Arc::new(AtomicBool::new(false));
        let seen = done.clone();
        let run = move || {
            endure(&id, &program, length, between, &seen).inspect_err(|_| stop.store(true, Ordering::Relaxed))
        };
        Ordeal { done, thread: std::thread::spawn(run) }
    }

    /// Ends the thread after the lab has ended.
    pub fn finish(self) -> Result<Endured, String> {
        self.done.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the thread that runs the gateway panicked".to_string())?
    }
}

fn endure(
    id: &str,
    program: &Path,
    length: Duration,
    between: Duration,
    done: &AtomicBool,
) -> Result<Endured, String> {
    let name = format!("weir-{id}-gw");
    let has_link = |n: Namespace| n.ip(&[format!("link show {DEV}")]).is_ok() && n.is_up().unwrap_or(false);
    if !eventually(|| Namespace::open(&name).is_ok_and(has_link)) {
        return Err("the lab never stood".into());
    }
    let namespace = Namespace::open(&name).map_err(|e| format!("{name}: {e}"))?;
    let begin = monotonic();
    let end = begin + length.saturating_sub(BEFORE_END);
    let directory = tempfile::tempdir().map_err(|e| format!("a directory for the gateway: {e}"))?;
    let mut gateway =
        Soaked { namespace, program, directory: directory.path(), child: None, rate: 0, customer: false };
    let mut endured = Endured::default();
    gateway.write()?;
    gateway.start()?;
    endured.happened.push(gateway.happened(Event::Start, begin));
    let rounds = Event::ALL.iter().cycle().take_while(|_| !done.load(Ordering::Relaxed));
    for (number, &event) in (1u64..).zip(rounds) {
        let at = begin + Duration::from_nanos(between.as_nanos() * number);
        if at + between > end {
            break;
        }
        // A gateway that is killed starts with fresh memory, so growth can be seen only in one that survives.
        let event = match event.ends_the_gateway() && number > Event::ALL.len() as u64 {
            true => Event::KillEngine,
            false => event,
        };
        pause(at.since(monotonic()));
        endured.uses.push(gateway.uses());
        let from = monotonic();
        endured.lost_frames += gateway.suffer(event)?;
        endured.happened.push(gateway.happened(event, from));
    }
    pause(end.since(monotonic()));
    endured.lost_frames += gateway.end()?;
    endured.left = gateway.left();
    Ok(endured)
}

/// Gateway on the bridge of a lab.
struct Soaked<'a> {
    namespace: Namespace,
    program: &'a Path,
    directory: &'a Path,
    child: Option<Child>,
    /// Index of the active rate.
    rate: usize,
    /// True if the hosts of the LAN are a customer.
    customer: bool,
}

impl Soaked<'_> {
    fn file(&self) -> PathBuf {
        self.directory.join("gateway.toml")
    }

    fn report(&self) -> PathBuf {
        self.directory.join("report.json")
    }

    /// Writes the gateway's files.
    fn write(&self) -> Result<(), String> {
        let text = short(DEV, Some(Rate::mbit(UPLOAD[self.rate])), Some(DOWNLOAD), None).text;
        let rows = match self.customer {
            true => format!("lan,10.0.0.1,{CUSTOMER},{CUSTOMER}\n"),
            false => String::new(),
        };
        let write = |path: PathBuf, text: String| {
            std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
        };
        write(
            self.directory.join("customers.csv"),
            format!("id,prefixes,down,up\nother,192.0.2.0/24,1Mbit,1Mbit\n{rows}"),
        )?;
        write(self.file(), format!("{text}\n[gateway.customers]\nfile = \"customers.csv\"\n"))
    }

    /// Starts the gateway and waits until its engine runs.
    fn start(&mut self) -> Result<(), String> {
        let mut command = self.inside()?;
        command.arg("run").arg(self.file()).arg("--json").arg(self.report());
        let child = command.spawn().map_err(|e| format!("the gateway: {e}"))?;
        self.child = Some(child);
        let _ = std::fs::remove_file(self.report());
        match eventually(|| self.engine().is_some() && self.said().is_some()) {
            true => Ok(()),
            false => Err("the gateway does not start".into()),
        }
    }

    /// Returns a command of the program in the lab's namespace. The process dies with this thread.
    fn inside(&self) -> Result<Command, String> {
        let mut command = Command::new(self.program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.namespace.start_inside(&mut command).map_err(|e| format!("the gateway: {e}"))?;
        Ok(command)
    }

    fn supervisor(&self) -> Result<u32, String> {
        self.child.as_ref().map(Child::id).ok_or_else(|| "there is no gateway".into())
    }

    fn engine(&self) -> Option<u32> {
        self.supervisor().ok().and_then(|pid| processes::children(pid).first().copied())
    }

    fn said(&self) -> Option<GatewayReport> {
        serde_json::from_slice(&std::fs::read(self.report()).ok()?).ok()
    }

    /// Returns the total rate of the uploads.
    fn uploads(&self) -> Rate {
        let flows: u32 = UPLOADS.iter().map(|(_, count)| count).sum();
        match self.customer {
            true => CUSTOMER,
            false => Rate::mbit(UPLOAD[self.rate] * u64::from(flows)),
        }
    }

    fn happened(&self, event: Event, from: Time) -> Happened {
        Happened { event, from, until: monotonic(), rate: self.uploads() }
    }

    /// Returns the resources that the gateway uses now.
    fn uses(&self) -> Use {
        let all = self.supervisor().into_iter().chain(self.engine());
        let each = all.map(|pid| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let kb =
                |line: &str| line.strip_prefix("RssAnon:")?.trim().split(' ').next()?.parse::<u64>().ok();
            let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |all| all.count());
            (status.lines().find_map(kb).unwrap_or(0), descriptors as u64)
        });
        each.fold(Use::default(), |sum, (memory, descriptors)| Use {
            memory_kb: sum.memory_kb + memory,
            descriptors: sum.descriptors + descriptors,
        })
    }

    /// Causes `event` and waits until it is over. Returns the frames that an ended gateway lost.
    fn suffer(&mut self, event: Event) -> Result<u64, String> {
        let mut lost = 0;
        match event {
            Event::Start => {}
            Event::KillEngine => self.strike(Signal::KILL)?,
            Event::StopEngine => self.strike(Signal::STOP)?,
            Event::Reload => {
                self.rate = 1 - self.rate;
                self.reload()?;
            }
            Event::AddCustomer | Event::RemoveCustomer => {
                self.customer = event == Event::AddCustomer;
                self.reload()?;
            }
            Event::Hangup => send(self.supervisor()?, Signal::HUP)?,
            Event::LinkDown => {
                self.namespace.ip(&[format!("link set {DEV} down")])?;
                pause(DOWN);
                self.namespace.ip(&[format!("link set {DEV} up")])?;
            }
            Event::KillSupervisor | Event::KillBoth => {
                lost = self.said().map_or(0, |report| lost_frames(&report.gateway));
                let engine = self.engine();
                send(self.supervisor()?, Signal::KILL)?;
                if let (Event::KillBoth, Some(engine)) = (event, engine) {
                    // The engine may have noticed already.
                    let _ = send(engine, Signal::KILL);
                }
                pause(AWAY);
                self.reap();
                self.start()?;
            }
        }
        Ok(lost)
    }

    /// Sends a signal to the engine and waits for the next one.
    fn strike(&self, signal: Signal) -> Result<(), String> {
        let old = self.engine().ok_or("no engine runs")?;
        send(old, signal)?;
        match eventually(|| self.engine().is_some_and(|pid| pid != old)) {
            true => Ok(()),
            false => Err(format!("no engine after one was struck by {signal:?}")),
        }
    }

    fn reload(&self) -> Result<(), String> {
        self.write()?;
        let output = self
            .inside()?
            .arg("reload")
            .stderr(Stdio::piped())
            .output()
            .map_err(|e| format!("reload: {e}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("reload: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    }

    fn reap(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Ends the gateway as an operator would. Returns the frames that it lost.
    fn end(&mut self) -> Result<u64, String> {
        send(self.supervisor()?, Signal::TERM)?;
        let mut child = self.child.take().ok_or("there is no gateway")?;
        let mut status = None;
        eventually(|| {
            status = child.try_wait().ok().flatten();
            status.is_some()
        });
        match status {
            Some(status) if status.success() => {
                Ok(self.said().map_or(0, |report| lost_frames(&report.gateway)))
            }
            Some(status) => Err(format!("the gateway ended with {status}")),
            None => {
                let _ = child.kill();
                Err("the gateway does not end".into())
            }
        }
    }

    /// Returns the remains that `weir down` still finds.
    fn left(&self) -> Vec<String> {
        let output = self.inside().map(|mut command| command.arg("down").stdout(Stdio::piped()).output());
        let Ok(Ok(output)) = output else { return vec!["weir down cannot run".into()] };
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines().filter(|line| !line.contains("nothing")).map(str::to_owned).collect()
    }
}

impl Drop for Soaked<'_> {
    fn drop(&mut self) {
        self.reap();
    }
}

fn send(pid: u32, signal: Signal) -> Result<(), String> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("no such process")?;
    kill_process(pid, signal).map_err(|e| format!("signal {signal:?}: {e}"))
}

fn pause(time: Duration) {
    std::thread::sleep(std::time::Duration::from_nanos(time.as_nanos()));
}

/// Waits until `what` is true. Returns false after [`PATIENCE`].
fn eventually(mut what: impl FnMut() -> bool) -> bool {
    let until = monotonic() + PATIENCE;
    while monotonic() < until {
        if what() {
            return true;
        }
        pause(STEP);
    }
    false
}
