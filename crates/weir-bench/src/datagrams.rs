//! Small datagrams through a bridge, as fast as one processor sends them: cost of a packet on its whole way.
//! Sender, box and receiver are on that processor.

use super::figures::{verdict, Spread};
use super::hostile::flood::{checksum, enter, CLIENTS_MAC, SERVERS_MAC};
use super::{group, measure, options, plan, write, Common};
use rustix::thread::{sched_setaffinity, CpuSet};
use serde::Serialize;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir::execute::hosts::CLIENT;
use weir::experiment::config::gateway::one_rate;
use weir::experiment::plan::{BoxKind, Path, Protocol};
use weir_core::ack::{AckControl, Unresponsive};
use weir_core::gateway::{Config, Direction};
use weir_core::rate::Rate;

const SECONDS: u64 = 7;
/// Time from the start of the lab until datagrams are sent, and that in which they are counted.
const AFTER: Duration = Duration::from_millis(3_000);
const COUNTED: Duration = Duration::from_millis(2_000);
/// Rates that are no limit.
const RATE: Rate = Rate::mbit(80_000);
/// Required: packets a second beside the plain box, and time for a packet beside one of a direction that is
/// not configured.
const THROUGH: f64 = 0.9;
const COST: f64 = 1.3;
/// Numbers of flows that take turns, packet by packet.
const FLOWS: [u32; 2] = [1, 65_536];

/// Treatment of the datagrams, which come in from the WAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Case {
    /// The box has no gateway.
    Plain,
    /// The other direction has a class.
    Other,
    /// Their class has a rate.
    Class,
    /// Their class has a rate, of which each flow has its fair share.
    Fair,
    /// Flows spill what exceeds their shares, which is nothing here.
    Queue,
    /// Each flow has a rate.
    Each,
}

impl Case {
    const ALL: [Case; 6] = [Case::Plain, Case::Other, Case::Class, Case::Fair, Case::Queue, Case::Each];

    const fn name(self) -> &'static str {
        match self {
            Case::Plain => "plain box",
            Case::Other => "not configured",
            Case::Class => "a class's rate",
            Case::Fair => "fair",
            Case::Queue => "queue",
            Case::Each => "a rate each",
        }
    }

    /// Returns whether each flow has a virtual queue.
    const fn is_queued(self) -> bool {
        matches!(self, Case::Fair | Case::Queue | Case::Each)
    }

    fn gateway(self) -> Option<Config> {
        let of_class = |out: Option<Rate>, inward: Option<Rate>, unresponsive| {
            let mut gateway = one_rate(out, inward);
            let mut ack = AckControl::ack_share(RATE);
            ack.release.set_unresponsive(unresponsive);
            gateway.classes.iter_mut().for_each(|class| class.ack = Some(ack));
            Some(gateway)
        };
        match self {
            Case::Plain => None,
            Case::Other => of_class(Some(RATE), None, Unresponsive::Bound),
            Case::Class => of_class(None, Some(RATE), Unresponsive::Bound),
            Case::Fair => of_class(None, Some(RATE), Unresponsive::FAIR),
            Case::Queue => of_class(None, Some(RATE), Unresponsive::Queue),
            Case::Each => Some(one_rate(None, Some(RATE))),
        }
    }
}

/// Row of the table.
#[derive(Debug, Serialize)]
struct Row {
    case: Case,
    flows: u32,
    /// Packets a second.
    pps: Vec<f64>,
    /// Beside the plain box.
    through: Spread,
    /// Time for a packet beside a direction that is not configured.
    cost: Spread,
}

pub(super) fn run(common: &Common) -> Result<(), String> {
    println!(
        "datagrams of 18 bytes through a bridge for {} s, one sender without a pause; {} turns, medians\n\
         must hold: with Weir \u{f7} plain box at least {THROUGH}; time for a packet with a virtual queue \
         \u{f7} one of a direction that is not configured at most {COST}\n",
        COUNTED.as_secs(),
        common.runs
    );
    println!(
        "{:<16} {:>7} {:>9}  {:<22} time \u{f7} not configured",
        "", "flows", "a second", "\u{f7} plain box"
    );
    let mut rows = Vec::new();
    for flows in FLOWS {
        let frames: Vec<_> = (0..flows.max(BATCH as u32)).map(|n| frame(n % flows)).collect();
        let mut pps = Case::ALL.map(|_| Vec::new());
        for turn in 0..common.runs as usize {
            // Another case is first in each turn.
            for n in (0..Case::ALL.len()).map(|n| (n + turn) % Case::ALL.len()) {
                pps[n].push(once(common, Case::ALL[n], &frames)?);
            }
        }
        let [plain, other] = [&pps[0], &pps[1]].map(Vec::clone);
        for (case, pps) in Case::ALL.into_iter().zip(pps) {
            let (through, cost) = (Spread::ratio(&pps, &plain), Spread::ratio(&other, &pps));
            let row = Row { case, flows, pps, through, cost };
            print(&row);
            rows.push(row);
        }
    }
    let through = rows.iter().all(|row| row.through.median >= THROUGH);
    let cost = rows.iter().filter(|row| row.case.is_queued()).all(|row| row.cost.median <= COST);
    println!("\nthrough the box: {}; with a virtual queue: {}", verdict(through), verdict(cost));
    write(common, &rows)
}

fn print(row: &Row) {
    println!(
        "{:<16} {:>7} {:>9.0}  {:<22.2} {:.2}",
        row.case.name(),
        row.flows,
        Spread::of(row.pps.clone()).median,
        row.through,
        row.cost
    );
}

/// Returns the packets a second that the box carries.
fn once(common: &Common, case: Case, frames: &[[u8; FRAME]]) -> Result<f64, String> {
    let seconds = common.seconds.unwrap_or(SECONDS).max(SECONDS);
    let mut plan = plan("datagrams", Path::default(), seconds, 0);
    plan.lab.kind = BoxKind::Bridge;
    // A lab lasts as long as its flows: one of ten packets a second.
    plan.groups = vec![group("flow", Direction::In, 1, 5001)];
    plan.groups[0].protocol = Protocol::Udp { rate: Rate::kbit(8), datagram: 100, on_off: None };
    plan.gateway = case.gateway();
    let mut options = options()?;
    let id = format!("datagrams-{}", std::process::id());
    options.id = Some(id.clone());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| send(&id, frames, &over));
        let outcome = measure(&plan, &options);
        over.store(true, Ordering::Relaxed);
        let sent = sender.join().map_err(|_| "the sender's thread panicked".to_string())?;
        let (outcome, took) = (outcome?, sent?);
        let arrived: u64 =
            outcome.result.links.iter().filter(|link| link.name == "lan.back").map(|link| link.packets).sum();
        Ok(arrived as f64 / took.as_secs_f64())
    })
}

/// Sends the frames in turn from the servers' host. Returns for how long.
fn send(id: &str, frames: &[[u8; FRAME]], over: &AtomicBool) -> Result<Duration, String> {
    let mut sender = loop {
        match enter(id) {
            Ok(sender) => break sender,
            Err(_) if over.load(Ordering::Relaxed) => return Err("the servers' host never appeared".into()),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    // What is sent on a processor is forwarded and received there.
    let mut first = CpuSet::new();
    first.set(0);
    sched_setaffinity(None, &first).map_err(|error| format!("affinity: {error}"))?;
    std::thread::sleep(AFTER);
    let begin = Instant::now();
    let mut batches = frames.chunks(BATCH).cycle();
    while begin.elapsed() < COUNTED {
        let batch = batches.next().unwrap_or(frames);
        if !sender.send(batch).is_ok_and(|sent| sent == batch.len()) {
            // The receiver's turn.
            std::thread::yield_now();
        }
    }
    Ok(begin.elapsed())
}

/// Frames that are sent together.
const BATCH: usize = 64;
/// Ethernet, IPv4 and UDP with 18 bytes: the shortest frame.
const FRAME: usize = 14 + 20 + 8 + 18;

/// Returns a datagram of the flow with this number.
fn frame(flow: u32) -> [u8; FRAME] {
    let mut f = [0; FRAME];
    f[..6].copy_from_slice(&CLIENTS_MAC);
    f[6..12].copy_from_slice(&SERVERS_MAC);
    f[12..14].copy_from_slice(&[0x08, 0x00]);
    f[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17]);
    // Addresses from 172.16.0.0 on belong to no host here.
    f[26..30].copy_from_slice(&Ipv4Addr::from(0xac10_0000 + flow).octets());
    f[30..34].copy_from_slice(&CLIENT.octets());
    let sum = checksum(0, &f[14..34]);
    f[24..26].copy_from_slice(&sum.to_be_bytes());
    // Ports 4000 and 4001, 26 bytes, and no checksum (RFC 768).
    f[34..42].copy_from_slice(&[0x0f, 0xa0, 0x0f, 0xa1, 0, 26, 0, 0]);
    f
}
