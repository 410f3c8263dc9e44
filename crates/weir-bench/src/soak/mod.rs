//! Mixed traffic through a gateway under all kinds of trouble. Its engine is killed and hangs, its supervisor
//! is killed and restarted, its link goes down, it reloads, and customers come and go. No connection may be
//! lost or stall because of it, and neither memory nor descriptors may grow.

mod event;
mod gateway;
mod target;

use super::figures::verdict;
use super::{group, options, plan, whole, write, Common};
use event::{most, Endured, Use};
use gateway::Ordeal;
use serde::Serialize;
use std::collections::BTreeMap;
use weir::execute::lab::{Options, Outcome};
use weir::execute::traffic::FlowReport;
use weir::experiment::plan::{Arrivals, Flow, FlowGroup, Kind, Length, Path, Plan};
use weir_core::gateway::Direction;
use weir_core::time::Duration;

pub use event::Event;

const SECONDS: u64 = 3600;
/// Time between two events, long enough for a few calm seconds.
const BETWEEN: Duration = Duration::from_secs(6);
/// One-way delay of each link.
const DELAY: Duration = Duration::from_millis(5);
/// Time by which the gateway runs.
const START: Duration = Duration::from_secs(1);
/// Interval between transfers of finite length, and their bytes.
const TRANSFERS: Duration = Duration::from_millis(500);
const TRANSFER_BYTES: u64 = 100_000;
/// Time before the end in which no transfer begins, so that each can finish.
const LAST_TRANSFER: Duration = Duration::from_secs(10);
/// Congestion controls of the endless uploads, with their numbers.
const UPLOADS: [(&str, u32); 3] = [("cubic", 4), ("reno", 2), ("bbr", 2)];
const DOWNLOADS: u32 = 4;
const CONVERSATIONS: u32 = 4;
/// Time after an event from which seconds are calm. In each calm second without an event, the bytes are
/// within [`RATE_PERCENT`] of the uploads' total rate.
const CALM: Duration = Duration::from_millis(2_500);
const SECOND: Duration = Duration::from_secs(1);
const RATE_PERCENT: f64 = 3.0;
/// Time without delivery at the end after which a connection counts as stalled.
const LAST_SECONDS: Duration = Duration::from_secs(3);
/// Insignificant growth of memory, from the second quarter of the run to the last.
const SAME_KB: u64 = 1024;

/// Results of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Number of each event.
    pub events: BTreeMap<Event, u32>,
    /// Number of failed connections.
    pub lost_connections: usize,
    /// Number of all connections.
    pub connections: usize,
    /// Number of incomplete finite transfers.
    pub broken_transfers: usize,
    /// Number of endless connections that delivered nothing in their last seconds. A byte that is
    /// acknowledged but was never received is not sent again, and everything after it waits for it.
    pub stalled: usize,
    /// Number of frames that an engine dropped, or had no room to receive.
    pub lost_frames: u64,
    /// Number of calm seconds.
    pub calm_seconds: usize,
    /// Number of calm seconds in which the bytes differ from the uploads' total rate.
    pub off_target: usize,
    /// Error of the uploads over all calm seconds, in percent.
    pub error_percent: f64,
    /// Maximum of memory and descriptors of supervisor and engine, in the second and in the last quarter of
    /// the run.
    pub uses: [Use; 2],
    /// Remains on the host.
    pub left: Vec<String>,
}

impl Figure {
    /// Returns whether nothing was lost, nothing grew, and nothing remains.
    pub fn holds(&self) -> bool {
        self.is_conserved() && self.is_flat() && self.left.is_empty()
    }

    /// Returns whether no connection was lost or is stalled, and all transfers are complete.
    pub fn is_conserved(&self) -> bool {
        self.lost_connections == 0 && self.broken_transfers == 0 && self.stalled == 0 && self.lost_frames == 0
    }

    /// Returns whether neither memory nor descriptors grew.
    pub fn is_flat(&self) -> bool {
        let [early, late] = self.uses;
        late.memory_kb <= early.memory_kb + SAME_KB && late.descriptors <= early.descriptors
    }
}

pub(super) fn run(common: &Common) -> Result<(), String> {
    let seconds = common.seconds.unwrap_or(SECONDS);
    println!(
        "mixed traffic for {seconds} s; every {} something happens to the gateway; {} runs\n\
         must hold: no connection lost, none stalled, no transfer broken, no growth, \
         nothing left behind\n",
        BETWEEN, common.runs
    );
    let mut figures = Vec::new();
    for _ in 0..common.runs {
        let mut options = options()?;
        options.id = Some(format!("soak-{}", std::process::id()));
        // The results do not depend on the exact time of packets, and an hour of spinning would take a
        // processor from everything else.
        options.spin = Some(Duration::ZERO);
        let figure = measure(&options, seconds, BETWEEN)?;
        print(&figure);
        figures.push(figure);
    }
    write(common, &figures)
}

fn print(f: &Figure) {
    let events: Vec<String> = f.events.iter().map(|(event, n)| format!("{n} × {}", event.name())).collect();
    println!("{}", events.join(", "));
    println!("connections lost        {} of {}", f.lost_connections, f.connections);
    println!("transfers broken        {}", f.broken_transfers);
    println!("connections stalled     {}", f.stalled);
    println!("frames lost             {}", f.lost_frames);
    println!(
        "calm seconds            {}, of which {} more than {RATE_PERCENT} % off; {:+.2} % over all",
        f.calm_seconds, f.off_target, f.error_percent
    );
    let [early, late] = f.uses;
    println!(
        "memory                  {} kB in the second quarter, {} in the last",
        early.memory_kb, late.memory_kb
    );
    println!("descriptors             {} and {}", early.descriptors, late.descriptors);
    println!(
        "left behind             {}",
        if f.left.is_empty() { "nothing".into() } else { f.left.join("; ") }
    );
    println!("{}", verdict(f.holds()));
}

/// Runs mixed traffic for `seconds` in a lab with a known name, through a gateway with an event every
/// `between`.
pub fn measure(options: &Options, seconds: u64, between: Duration) -> Result<Figure, String> {
    let plan = mixed(seconds);
    let id = options.id.clone().ok_or("a lab without a name")?;
    let (program, stop) = (options.program.clone(), options.stop.clone());
    let ordeal = Ordeal::start(id, program, Duration::from_secs(seconds), between, stop);
    let outcome = whole(&plan, options);
    let ordeal = ordeal.finish()?;
    Ok(figure(&plan, &outcome?, ordeal))
}

/// Returns a plan of endless uploads and downloads, finite transfers, and conversations.
fn mixed(seconds: u64) -> Plan {
    let mut path = Path::default();
    (path.wan_out.delay, path.wan_back.delay) = (DELAY, DELAY);
    let uploads = UPLOADS.iter().enumerate().map(|(n, &(cc, count))| {
        let mut group = group(cc, Direction::Out, count, 5001 + n as u16);
        group.tcp.cc = Some(cc.into());
        group
    });
    let downloads = group("down", Direction::In, DOWNLOADS, 5011);
    let last = Duration::from_secs(seconds).saturating_sub(LAST_TRANSFER);
    let transfers = FlowGroup {
        arrivals: Arrivals::Every(TRANSFERS),
        length: Length::Bytes(TRANSFER_BYTES),
        ..group("transfer", Direction::In, (last.as_nanos() / TRANSFERS.as_nanos()) as u32, 5012)
    };
    let kind = Kind::Request { request: 1_000, response: 10_000 };
    let conversations = FlowGroup { kind, ..group("ask", Direction::In, CONVERSATIONS, 5013) };
    let mut groups: Vec<FlowGroup> = uploads.chain([downloads, transfers, conversations]).collect();
    groups.iter_mut().for_each(|group| group.start = START);
    Plan { bin: Duration::from_millis(100), groups, ..plan("soak", path, seconds, 0) }
}

fn figure(plan: &Plan, outcome: &Outcome, ordeal: Endured) -> Figure {
    let ends = || outcome.clients.flows.iter().zip(&outcome.servers.flows);
    let lost = |(client, server): &(&FlowReport, &FlowReport)| {
        client.error.is_some() || server.error.is_some() || client.gave_up || server.gave_up
    };
    let receiver = |flow: &Flow<'_>, client: &FlowReport, server: &FlowReport| match flow.direction() {
        Direction::Out => server.received.clone(),
        Direction::In => client.received.clone(),
    };
    let broken = |(flow, (client, server)): &(Flow<'_>, (&FlowReport, &FlowReport))| {
        let received = receiver(flow, client, server).map_or(0, |r| r.bytes);
        matches!(flow.group.length, Length::Bytes(bytes) if received != bytes)
    };
    let end = plan.duration.as_nanos();
    let stalled = |(flow, (client, server)): &(Flow<'_>, (&FlowReport, &FlowReport))| {
        let last = receiver(flow, client, server)
            .map_or(0, |r| r.bins.between(end.saturating_sub(LAST_SECONDS.as_nanos()), end));
        flow.group.length == Length::UntilEnd && last == 0
    };
    let uploads =
        plan.flows().zip(&outcome.servers.flows).filter(|(flow, _)| flow.group.direction == Direction::Out);
    let received: Vec<_> = uploads.filter_map(|(_, end)| Some(&end.received.as_ref()?.bins)).collect();
    let calm = target::calm(&ordeal.happened, outcome.epoch, CALM, SECOND);
    let errors: Vec<f64> = calm.iter().map(|window| window.error_percent(&received)).collect();
    let [early, late] = [1, 3].map(|quarter| most(&ordeal.uses, quarter));
    Figure {
        events: ordeal.events(),
        lost_connections: ends().filter(lost).count(),
        connections: plan.flows().count(),
        broken_transfers: plan.flows().zip(ends()).filter(broken).count(),
        stalled: plan.flows().zip(ends()).filter(stalled).count(),
        lost_frames: ordeal.lost_frames,
        calm_seconds: calm.len(),
        off_target: errors.iter().filter(|e| e.abs() > RATE_PERCENT).count(),
        error_percent: errors.iter().sum::<f64>() / errors.len().max(1) as f64,
        uses: [early, late],
        left: ordeal.left,
    }
}
