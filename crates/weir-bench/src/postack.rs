//! Tables 1 and 2 of PostACK (Wei et al., TCP rate shaping over edge gateways) as measurements: the
//! requirements and the performance of each scheme in the simulator, and the cost of a packet and of a flow.

use super::{write, Common};
use serde::Serialize;
use std::time::Instant;
use weir::command::sim::simulate;
use weir::report::table;
use weir::result::{FlowResult, RunResult};
use weir_core::ack::{AckControl, ClassPreset, Leaf, CLASS_PRESETS};
use weir_core::flow::Record;
use weir_core::rate::Rate;
use weir_core::rig::busy::{self, Busy};
use weir_core::steer::Slot;

/// Bytes of TCP and IPv4 headers, and of the Ethernet header, which queues count too.
const HEADERS: u64 = 40;
const ETHERNET: u64 = 14;
/// Bytes of a flow in the table of per-flow queues ([`weir_core::queue::pfq::Params::flows`]).
const PFQ_FLOW: usize = 68;
/// Numbers of flows with which a packet's cost is measured, and number of packets.
const FLOWS: [u32; 3] = [1_000, 10_000, 100_000];
const PACKETS: u64 = 2_000_000;
/// Payload rate of figures 9 and 11.
const ONE: u64 = 800_000;
/// Recoveries and minimum time-outs of the senders of figure 11.
const SENDERS: [(&str, &str); 4] = [("reno", "1s"), ("newreno", "1s"), ("sack", "200ms"), ("rack", "200ms")];

/// Arguments of `weir-bench postack`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    common: Common,
    /// Only table 1, which comes from the simulator and is the same on any machine
    #[arg(long)]
    table1: bool,
    /// Measure the cost of a packet with N flows, instead of 1000, 10000 and 100000; a million take 10 GB
    #[arg(long, value_name = "N", conflicts_with = "table1", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    flows: Vec<u32>,
}

/// Row of both tables.
#[derive(Debug, Serialize)]
struct Row {
    scheme: &'static str,
    /// Most data and ACKs that wait, for 25 windows of 32 KB and for four of 2 MB.
    buffer_bytes: [u64; 2],
    /// Share of the rate with 1 % of random loss.
    lossy: f64,
    /// Jain's index of flows of 10, 50 and 150 ms: over ten seconds, and of the worst second.
    jain: [f64; 2],
    /// Share of the rate of the worst of several senders, with every 100th packet lost.
    worst_sender: f64,
    /// Nanoseconds for a data packet and its ACK, by the number of flows.
    packet_ns: Vec<f64>,
    /// Bytes of a flow, without its waiting packets.
    flow_bytes: usize,
}

/// A preset, or per-flow queues alone.
#[derive(Clone, Copy)]
struct Scheme(Option<&'static ClassPreset>);

impl Scheme {
    fn all() -> impl Iterator<Item = Scheme> {
        [Scheme(None)].into_iter().chain(CLASS_PRESETS.iter().map(|preset| Scheme(Some(preset))))
    }

    fn name(self) -> &'static str {
        self.0.map_or("pfq", |preset| preset.name)
    }

    fn leaf(self) -> Leaf {
        self.0.map_or(Leaf::Pfq, |preset| preset.leaf)
    }

    fn ack(self, rate: Rate) -> Option<AckControl> {
        self.0.map(|preset| (preset.policy)(rate))
    }

    /// Returns a class that gives its flows this total payload rate, in segments of this size.
    fn class(self, payload_bps: u64, mss: u64) -> String {
        let queued = self.leaf() != Leaf::None;
        let rate = payload_bps * (mss + HEADERS + if queued { ETHERNET } else { 0 }) / mss;
        let queue = match self.leaf() {
            Leaf::None => "",
            Leaf::Fifo => "queue = \"100000p\"\n",
            Leaf::Pfq => "discipline = \"pfq\"\nqueue = \"100000p\"\n",
        };
        let ack =
            self.0.map_or(String::new(), |preset| format!("ack = {{ preset = \"{}\" }}\n", preset.name));
        format!("[[gateway.class]]\nname = \"all\"\nrate = \"{rate}bit\"\n{queue}{ack}")
    }
}

pub(super) fn run(args: &Args) -> Result<(), String> {
    let mut rows = Scheme::all().map(table1).collect::<Result<Vec<Row>, String>>()?;
    print_table1(&rows);
    if !args.table1 {
        let flows = if args.flows.is_empty() { &FLOWS[..] } else { &args.flows[..] };
        measure_packets(&mut rows, args.common.runs, flows);
        print_table2(&rows, flows);
    }
    write(&args.common, &rows)
}

fn table1(scheme: Scheme) -> Result<Row, String> {
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let lossy = (1..=3).map(|seed| lossy(scheme, seed)).collect::<Result<Vec<f64>, String>>()?;
    let senders = SENDERS.iter().map(|sender| sender_share(scheme, sender));
    let senders = senders.collect::<Result<Vec<f64>, String>>()?;
    let control = if scheme.0.is_some() { size_of::<Record>() + size_of::<Slot>() } else { 0 };
    let queue = if scheme.leaf() == Leaf::Pfq { PFQ_FLOW } else { 0 };
    Ok(Row {
        scheme: scheme.name(),
        buffer_bytes: [buffer(scheme, 25, "32KiB", 20)?, buffer(scheme, 4, "2MB", 60)?],
        lossy: mean(&lossy),
        jain: fairness(scheme)?,
        worst_sender: senders.into_iter().fold(f64::MAX, f64::min),
        packet_ns: Vec::new(),
        flow_bytes: control + queue,
    })
}

/// Returns the bytes that wait for the 25 flows of figure 8, or for other flows.
fn buffer(scheme: Scheme, flows: u32, window: &str, seconds: u64) -> Result<u64, String> {
    let class = scheme.class(4_000_000, 1460);
    let run = simulate(&format!(
        "name = \"buffer\"\nduration = \"{seconds}s\"\n[path]\nrtt = \"50ms\"\n[tcp]\ncc = \"newreno\"\ntimestamps = false\n\
         rwnd = \"{window}\"\ndelayed_ack = 1\nmin_rto = \"1s\"\n{class}[[flow]]\nid = \"all\"\ncount = {flows}\nstagger = \"200ms\"\n"
    ))?;
    let class = run.classes.first().ok_or("no class")?;
    Ok(class.buffer_peak_bytes.max(class.ack_queue_peak_bytes))
}

/// Returns figure 9: one flow with 1 % of random loss.
fn lossy(scheme: Scheme, seed: u64) -> Result<f64, String> {
    let class = scheme.class(ONE, 1250);
    let run = simulate(&format!(
        "name = \"lossy\"\nseed = {seed}\nduration = \"500s\"\n[path]\nrtt = \"50ms\"\n[path.wan.out]\nloss = \"1%\"\n[tcp]\n\
         cc = \"newreno\"\nmss = 1250\ntimestamps = false\nrwnd = \"32KiB\"\nmin_rto = \"1s\"\ndelayed_ack = 1\n{class}\
         [[flow]]\nid = \"one\"\n"
    ))?;
    Ok(first(&run)?.goodput_bps / ONE as f64)
}

/// Returns figure 11: one flow of this sender, with every 100th packet lost.
fn sender_share(scheme: Scheme, (recovery, min_rto): &(&str, &str)) -> Result<f64, String> {
    let class = scheme.class(ONE, 1460);
    let run = simulate(&format!(
        "name = \"sender\"\nduration = \"200s\"\n[path]\nrtt = \"50ms\"\n[path.wan.out]\nloss_every = 100\n[tcp]\ncc = \"reno\"\n\
         mss = 1460\ntimestamps = false\nrwnd = \"32KiB\"\nrecovery = \"{recovery}\"\nmin_rto = \"{min_rto}\"\ndelayed_ack = 1\n{class}\
         [[flow]]\nid = \"one\"\n"
    ))?;
    Ok(first(&run)?.goodput_bps / ONE as f64)
}

fn first(run: &RunResult) -> Result<&FlowResult, String> {
    run.flows.first().ok_or_else(|| "no flow".to_string())
}

/// Returns figure 10: flows of 10, 50 and 150 ms share 200 kB/s. The first two seconds do not count.
fn fairness(scheme: Scheme) -> Result<[f64; 2], String> {
    let class = scheme.class(1_600_000, 1460);
    let host = |name: &str, delay: &str| {
        format!(
            "[[host]]\nname = \"{name}\"\nside = \"wan\"\ndelay = \"{delay}\"\n[[flow]]\nid = \"{name}\"\nserver = \"{name}\"\n"
        )
    };
    let hosts = [host("near", "5ms"), host("middle", "25ms"), host("far", "75ms")].concat();
    let run = simulate(&format!(
        "name = \"fairness\"\nduration = \"12s\"\ninterval = \"1s\"\n[path]\nrtt = \"0ms\"\n[tcp]\ncc = \"newreno\"\ntimestamps = false\n\
         rwnd = \"32KiB\"\nmin_rto = \"1s\"\n{class}{hosts}"
    ))?;
    let seconds = |flow: &FlowResult| flow.intervals.iter().skip(2).map(|i| i.bps).collect::<Vec<f64>>();
    let flows: Vec<Vec<f64>> = run.flows.iter().map(seconds).collect();
    let count = flows.iter().map(Vec::len).min().unwrap_or(0);
    let sums: Vec<f64> = flows.iter().map(|seconds| seconds.iter().take(count).sum()).collect();
    let of_second = |n: usize| jain(&flows.iter().map(|seconds| seconds[n]).collect::<Vec<f64>>());
    Ok([jain(&sums), (0..count).map(of_second).fold(1.0, f64::min)])
}

/// Returns Jain's index: 1 for equal shares, 1/n if one of n has everything.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (shares.len() as f64 * squares).max(f64::MIN_POSITIVE)
}

fn print_table1(rows: &[Row]) {
    let heads = [
        ("buffer", "25 x 32 KB, kB"),
        ("buffer", "4 x 2 MB, kB"),
        ("goodput", "1 % lost, % of rate"),
        ("fairness", "10 s"),
        ("fairness", "worst second"),
        ("worst sender", "% of rate"),
    ];
    let cells = |r: &Row| {
        vec![
            format!("{:.1}", r.buffer_bytes[0] as f64 / 1e3),
            format!("{:.1}", r.buffer_bytes[1] as f64 / 1e3),
            format!("{:.1}", 100.0 * r.lossy),
            format!("{:.4}", r.jain[0]),
            format!("{:.4}", r.jain[1]),
            format!("{:.1}", 100.0 * r.worst_sender),
        ]
    };
    println!(
        "Table 1, in the simulator: 500 kB/s and 50 ms; 100 kB/s and 50 ms; 10, 50 and 150 ms at 200 kB/s\n"
    );
    println!("{}", named(rows, &heads, cells));
}

/// Measures packets in turns, because machines are noisy. The result is the median of `runs`.
fn measure_packets(rows: &mut [Row], runs: u32, flows: &[u32]) {
    for &flows in flows {
        let mut turns = vec![Vec::new(); rows.len()];
        let loops = Scheme::all().map(|s| Busy::new(s.ack(busy::RATE), s.leaf(), flows));
        let mut loops: Vec<Busy> = loops.collect();
        for _ in 0..runs {
            for (turns, one) in turns.iter_mut().zip(&mut loops) {
                let begin = Instant::now();
                let took = one.measure(PACKETS, || begin.elapsed().as_nanos() as u64);
                turns.push(took as f64 / PACKETS as f64);
            }
        }
        for (row, turns) in rows.iter_mut().zip(turns) {
            row.packet_ns.push(super::figures::Spread::of(turns).median);
        }
    }
}

fn print_table2(rows: &[Row], flows: &[u32]) {
    let names: Vec<String> = flows.iter().map(|n| format!("{n} flows")).collect();
    let ns = names.iter().map(|name| (name.as_str(), "ns"));
    let heads: Vec<(&str, &'static str)> = ns.chain([("a flow", "bytes")]).collect();
    let cells = |r: &Row| {
        let ns = r.packet_ns.iter().map(|ns| format!("{ns:.0}"));
        ns.chain([r.flow_bytes.to_string()]).collect()
    };
    println!(
        "Table 2: a packet of data and its ACK, in and out, and what is kept of a flow beside what waits\n"
    );
    println!("{}", named(rows, &heads, cells));
}

/// Returns a table whose rows are named by their schemes.
fn named(rows: &[Row], heads: &[(&str, &'static str)], cells: impl Fn(&Row) -> Vec<String>) -> String {
    let lines = table::numbers(heads, rows.iter().map(cells).collect());
    let heads = lines.lines().count() - rows.len();
    let names = std::iter::repeat_n("", heads).chain(rows.iter().map(|r| r.scheme));
    lines.lines().zip(names).map(|(line, name)| format!("{name:<16}{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_are_fair() {
        assert!((jain(&[2.0, 2.0, 2.0]) - 1.0).abs() < 1e-12);
        assert!((jain(&[3.0, 0.0, 0.0]) - 1.0 / 3.0).abs() < 1e-12);
    }

    /// Verifies rates of figure 9: 1250 of 1304 bytes in a queue are payload, and of 1290 without a queue.
    #[test]
    fn classes_have_their_payload() {
        let tcr = Scheme(CLASS_PRESETS.iter().find(|p| p.name == "tcr"));
        assert!(Scheme(None).class(ONE, 1250).contains("rate = \"834560bit\""));
        assert!(tcr.class(ONE, 1250).contains("rate = \"825600bit\""));
    }
}
