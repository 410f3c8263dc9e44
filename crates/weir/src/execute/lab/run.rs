//! One run: build, start, watch, stop, collect.

use super::assemble::Measured;
use super::child::Child;
use super::controls::Controls;
use super::devices::{self, Device};
use super::probe::{self, ProbeOutcome};
use super::site::Site;
use super::topology::{Layout, Place};
use super::{capture, flows, htb, prerequisites, settings, Nstat, OnBox, Options};
use crate::execute::machine::Watch;
use crate::execute::progress::Progress;
use crate::execute::room::Room;
use crate::execute::traffic::{monotonic, Report, Spec, GO, STOP};
use crate::experiment::plan::Plan;
use crate::output::READY;
use crate::result::running::{EmulatorReport, GatewayFlow, GatewayReport};
use crate::result::{RunResult, Status};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use weir_core::time::Duration as Nanos;
use weir_core::time::Time;

/// Longest time that a process may take to be ready, or to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time from the start command to the epoch, so that both traffic processes have received it.
const LEAD: Nanos = Nanos::from_millis(50);
/// Interval at which the processes are polled.
const LOOK: Duration = Duration::from_millis(10);

/// Interval at which the gateway's report is read while traffic runs.
const LISTEN: Nanos = Nanos::from_secs(1);

/// Result of a run, with data beyond it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The result, without its checks.
    pub result: RunResult,
    /// Faults of flows, and processes that failed. With any, the status is `failed`.
    pub faults: Vec<String>,
    /// Measurements of the probe, if one was requested.
    pub probe: Option<ProbeOutcome>,
    /// Complete report of the clients' traffic process: gaps in delivery, time-outs, samples.
    pub clients: Report,
    /// Complete report of the servers' traffic process.
    pub servers: Report,
    /// Start of the run, from which times in reports count.
    pub epoch: Time,
    /// The gateway's final report, if one ran.
    pub gateway: Option<GatewayReport>,
    /// Protocol counters of the clients' and the servers' host.
    pub nstat: [Nstat; 2],
}

/// Runs `plan`, and removes everything again.
///
/// Must be called from a thread that lives as long as the run, because the processes die with it.
pub fn run(plan: &Plan, options: &Options) -> Result<Outcome, String> {
    let begin = Instant::now();
    prerequisites::check(plan, options.pcap.is_some())?;
    let layout = Layout::of(plan);
    let id = identifier(options)?;
    let _controls = Controls::load(plan)?;
    // Dropped last, so that the processes end before their namespaces are removed.
    let mut site = Site::build(&id, &layout)?;
    let mut faults = Vec::new();

    let mut devices = Devices::start(&mut site, plan, &layout, options)?;
    let captures = match &options.pcap {
        Some(directory) => capture::start(&mut site, &layout, directory)?,
        None => Vec::new(),
    };
    let mut traffic = Traffic::start(&mut site, plan, options)?;
    let watch = Watch::begin();
    let (epoch, clients, servers) = traffic.play(plan, options, &mut devices)?;
    let machine = watch.finish();
    drop(traffic);
    let nstat = [Nstat::read(site.namespace(Place::Clients))?, Nstat::read(site.namespace(Place::Servers))?];

    let settings = settings::in_force(site.namespace(Place::Clients), site.namespace(Place::Servers))?;
    let (lan, wan) = site.box_counters(&layout)?;
    let (gateway, emulators) = devices.end(&mut faults);
    capture::end(captures, &mut faults);
    drop(site);

    let interrupted = clients.interrupted || servers.interrupted;
    let measured = Measured {
        clients,
        servers,
        gateway,
        emulators,
        lan,
        wan,
        settings,
        wall: begin.elapsed(),
        interrupted,
    };
    faults.extend(measured.faults());
    let mut result = measured.result(plan, Room::default());
    faults.append(&mut result.faults);
    if !faults.is_empty() && !interrupted {
        result.status = Status::Failed;
    }
    result.faults = faults.clone();
    result.machine = Some(machine);
    let ends = measured.clients.probes.first().zip(measured.servers.probes.first());
    let probe = options.probe.as_ref().zip(ends).map(|(p, (c, s))| probe::outcome(p, plan, c, s));
    let Measured { clients, servers, gateway, .. } = measured;
    Ok(Outcome { result, faults, probe, clients, servers, epoch, gateway, nstat })
}

/// Returns the name of this lab: the requested one, or one from the process number and a counter.
fn identifier(options: &Options) -> Result<String, String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let id = options
        .id
        .clone()
        .unwrap_or_else(|| format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    let plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if plain && (1..=64).contains(&id.len()) {
        return Ok(id);
    }
    Err(format!("`{id}` cannot name a lab: 1 to 64 letters, digits, `-` and `_`"))
}

/// The gateway and the emulators.
struct Devices {
    gateway: Option<(Child, PathBuf)>,
    /// The gateway's reports on flows that are no longer active at its end.
    said: HashMap<(SocketAddr, SocketAddr), GatewayFlow>,
    emulators: Vec<(Place, Child, PathBuf)>,
}

impl Devices {
    fn start(site: &mut Site, plan: &Plan, layout: &Layout, options: &Options) -> Result<Devices, String> {
        let mut devices = Devices { gateway: None, said: HashMap::new(), emulators: Vec::new() };
        for &place in layout.places.iter().filter(|p| matches!(p, Place::Lan | Place::Wan)) {
            let emulator = Device::Emulator(devices::emulator(plan, place, options.spin).into());
            let (child, report) = device(site, place, &emulator, options)?;
            devices.emulators.push((place, child, report));
        }
        let (place, _) = layout.gateway();
        match (options.on_box, &plan.gateway) {
            (OnBox::Emulator, _) => {
                let emulator = Device::Emulator(devices::on_box(layout).into());
                let (child, report) = device(site, place, &emulator, options)?;
                devices.emulators.push((place, child, report));
            }
            (OnBox::Htb, Some(gateway)) => {
                let (place, dev) = layout.gateway();
                site.namespace(place).tc(&htb::commands(gateway, dev))?;
            }
            (OnBox::Gateway, Some(gateway)) => {
                devices.gateway = Some(match &options.file {
                    Some(text) => gateway_of_file(site, place, text, options)?,
                    None => {
                        let file = devices::gateway(gateway, layout, options.engines);
                        device(site, place, &Device::Gateway(file.into()), options)?
                    }
                });
            }
            (OnBox::Tbf, Some(gateway)) => {
                let (place, dev) = layout.gateway();
                site.namespace(place).tc(&htb::one_rate(gateway, dev))?;
            }
            (OnBox::Htb | OnBox::Tbf | OnBox::Gateway, None) => {}
        }
        Ok(devices)
    }

    fn check(&mut self) -> Result<(), String> {
        let emulators = self.emulators.iter_mut().map(|(_, child, _)| child);
        self.gateway.iter_mut().map(|(child, _)| child).chain(emulators).try_for_each(Child::check)
    }

    /// Keeps the gateway's report on its active flows.
    fn listen(&mut self) {
        let Some((_, file)) = &self.gateway else { return };
        let text = std::fs::read_to_string(file).unwrap_or_default();
        // The gateway writes its first report after a second.
        let Ok(report) = serde_json::from_str::<GatewayReport>(&text) else { return };
        self.said.extend(report.flows.into_iter().map(|flow| ((flow.src, flow.dst), flow)));
    }

    /// Ends the devices, the gateway first, and reads their reports.
    fn end(mut self, faults: &mut Vec<String>) -> (Option<GatewayReport>, Vec<EmulatorReport>) {
        self.listen();
        let mut gateway: Option<GatewayReport> =
            self.gateway.map(|(child, file)| collect(child, &file, faults).unwrap_or_default());
        if let Some(report) = &mut gateway {
            // The latest report on a flow comes first, and the first one counts.
            report.flows.extend(self.said.into_values());
        }
        let mut emulators = Vec::new();
        for (place, child, file) in self.emulators {
            let report: Option<EmulatorReport> = collect(child, &file, faults);
            emulators.extend(report.map(|report| named(report, place)));
        }
        (gateway, emulators)
    }
}

/// Renames an emulator's links from `wan.out` and `wan.back` to the plan's names.
fn named(mut report: EmulatorReport, place: Place) -> EmulatorReport {
    let name = match place {
        Place::Lan => "lan",
        Place::Wan => return report,
        Place::Clients | Place::Gateway | Place::Servers => "box",
    };
    for link in &mut report.links {
        link.name = link.name.replacen("wan", name, 1);
    }
    report
}

/// Starts `weir device --json REPORT` and waits until it is ready.
fn device(
    site: &mut Site,
    place: Place,
    device: &Device,
    options: &Options,
) -> Result<(Child, PathBuf), String> {
    let report = site.directory()?.join(format!("{}-{}.json", device.name(), place.suffix()));
    let mut program = Command::new(&options.program);
    program.arg("device").arg("--json").arg(&report);
    let mut child = site.start(place, &format!("the {}", device.name()), program)?;
    child.tell(&serde_json::to_string(device).map_err(|e| e.to_string())?)?;
    child.wait_for(READY, PATIENCE)?;
    Ok((child, report))
}

/// Starts `weir run FILE --json REPORT` and waits until it is ready.
fn gateway_of_file(
    site: &mut Site,
    place: Place,
    text: &str,
    options: &Options,
) -> Result<(Child, PathBuf), String> {
    let directory = site.directory()?;
    let (file, report) = (directory.join("gateway.toml"), directory.join("gateway.json"));
    std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut program = Command::new(&options.program);
    program.arg("run").arg(&file).arg("--json").arg(&report);
    let mut child = site.start(place, "weir run", program)?;
    child.wait_for(READY, PATIENCE)?;
    Ok((child, report))
}

/// Ends a device and reads its report.
fn collect<T: DeserializeOwned>(child: Child, file: &Path, faults: &mut Vec<String>) -> Option<T> {
    let name = child.name().to_string();
    faults.extend(child.end(PATIENCE).err());
    let read = std::fs::read_to_string(file).map_err(|e| e.to_string());
    let report = read.and_then(|text| serde_json::from_str(&text).map_err(|e| e.to_string()));
    report.map_err(|e| faults.push(format!("{name}: no report: {e}"))).ok()
}

/// The two traffic processes.
struct Traffic {
    clients: Child,
    servers: Child,
}

impl Traffic {
    /// Starts both processes and waits until they are ready.
    fn start(site: &mut Site, plan: &Plan, options: &Options) -> Result<Traffic, String> {
        let (mut clients, mut servers) = flows::specs(plan, options);
        if let Some(probe) = &options.probe {
            probe::add(probe, plan, &mut clients, &mut servers);
        }
        let mut start = |place, name, spec: &Spec| {
            let mut command = Command::new(&options.program);
            command.arg("traffic");
            let mut child = site.start(place, name, command)?;
            child.tell(&serde_json::to_string(spec).map_err(|e| e.to_string())?)?;
            child.wait_for(READY, PATIENCE)?;
            Ok::<Child, String>(child)
        };
        let servers = start(Place::Servers, "the servers' traffic", &servers)?;
        let clients = start(Place::Clients, "the clients' traffic", &clients)?;
        Ok(Traffic { clients, servers })
    }

    /// Runs the traffic until both have reported. Returns `(epoch, clients, servers)`.
    fn play(
        &mut self,
        plan: &Plan,
        options: &Options,
        devices: &mut Devices,
    ) -> Result<(Time, Report, Report), String> {
        let epoch = monotonic() + LEAD;
        let go = format!("{GO} {}", epoch.as_nanos());
        self.servers.tell(&go)?;
        self.clients.tell(&go)?;
        let progress = Progress::new(&plan.name, plan.duration, options.progress);
        let mut deadline = epoch + plan.duration + Nanos::from_nanos(PATIENCE.as_nanos() as u64);
        let (mut clients, mut servers) = (None, None);
        let mut stopped = false;
        let mut listen = epoch + LISTEN;
        loop {
            if clients.is_none() {
                clients = report(&mut self.clients)?;
            }
            if servers.is_none() {
                servers = report(&mut self.servers)?;
            }
            if let (Some(_), Some(_)) = (&clients, &servers) {
                return Ok((epoch, clients.unwrap_or_default(), servers.unwrap_or_default()));
            }
            devices.check()?;
            let now = monotonic();
            progress.at(now.since(epoch));
            if now >= listen {
                listen = now + LISTEN;
                devices.listen();
            }
            if options.stop.load(Ordering::Relaxed) && !stopped {
                stopped = true;
                deadline = deadline.min(now + Nanos::from_nanos(PATIENCE.as_nanos() as u64));
                self.stop(&clients, &servers)?;
            }
            overdue(now, deadline)?;
        }
    }

    /// Asks the processes that still run traffic to stop.
    fn stop(&mut self, clients: &Option<Report>, servers: &Option<Report>) -> Result<(), String> {
        for (child, reported) in [(&mut self.clients, clients), (&mut self.servers, servers)] {
            if reported.is_none() {
                child.tell(STOP)?;
            }
        }
        Ok(())
    }
}

fn overdue(now: Time, deadline: Time) -> Result<(), String> {
    if now > deadline {
        return Err(format!("no report of the traffic {} s after its end", PATIENCE.as_secs()));
    }
    Ok(())
}

/// Returns the report of a traffic process, if it has arrived.
fn report(child: &mut Child) -> Result<Option<Report>, String> {
    let Some(line) = child.hear(LOOK)? else { return Ok(None) };
    serde_json::from_str(&line).map(Some).map_err(|e| format!("{}: {e}", child.name()))
}
