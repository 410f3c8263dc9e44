//! Pacing: errors of rates and bursts of many classes on one line in virtual time. In the lab, the arrivals
//! at a receiver of unpaced packets, and of packets paced by both back ends and by the kernel's TBF.

use super::figures::Spread;
use super::{measure, options, plan, write, Common};
use many::Many;
use serde::Serialize;
use weir::execute::lab::{OnBox, Probe};
use weir::experiment::plan::Path;
use weir_core::class::Spec;
use weir_core::gateway::{ClassConfig, Config, Direction};
use weir_core::pace::{Backend, Class, Counts, Port, Target};
use weir_core::queue::{self, Kind, QueueLimit};
use weir_core::rate::Rate;

mod many;

const SECONDS: u64 = 4;
/// Rates of the paced class in the lab, each with that of the line whose holes are filled. On a virtual
/// interface each filler costs as much as a packet.
const RATES: [(Rate, Rate); 6] = [
    (Rate::mbit(1), Rate::mbit(200)),
    (Rate::mbit(10), Rate::mbit(200)),
    (Rate::mbit(50), Rate::mbit(200)),
    (Rate::mbit(100), Rate::mbit(200)),
    (Rate::mbit(500), Rate::mbit(1000)),
    (Rate::mbit(930), Rate::mbit(1000)),
];
/// UDP payload of a packet of 1500 bytes.
const PAYLOAD: u16 = 1472;
const PACKET: u64 = 1500;
/// Packets that the host sends back to back.
const BURST: u32 = 10;
/// Bytes of a packet with the Ethernet header, which TBF counts.
const FRAME: u64 = 1514;

/// Arguments of `weir-bench pace`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    common: Common,
    /// Only the table of many classes, which needs no privileges
    #[arg(long)]
    table: bool,
}

#[derive(Debug, Serialize)]
struct Figures {
    many: Vec<Many>,
    in_lab: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    rate_bps: u64,
    line_bps: u64,
    by: String,
    gap_p50_us: Spread,
    gap_p99_us: Spread,
    gap_error_p50_us: Spread,
    gap_error_p99_us: Spread,
    /// Error of the rate as a fraction.
    off_target: Spread,
}

pub(super) fn run(args: &Args) -> Result<(), String> {
    let many = many::table();
    let in_lab = if args.table { Vec::new() } else { lab(&args.common)? };
    write(&args.common, &Figures { many, in_lab })
}

/// Pacing mechanism in the lab.
#[derive(Clone, Copy)]
enum By {
    Nothing,
    Weir(Backend),
    Tbf,
}

const ALL: [(&str, By); 4] = [
    ("none", By::Nothing),
    ("gap", By::Weir(Backend::Gap)),
    ("clock", By::Weir(Backend::Clock)),
    ("tbf", By::Tbf),
];

fn lab(common: &Common) -> Result<Vec<Row>, String> {
    let seconds = common.seconds.unwrap_or(SECONDS);
    println!(
        "\npackets of {PACKET} bytes, {BURST} at once, through a bridge that does not pace them (`none`), paces by bytes on a line (`gap`), by\n\
         deadlines (`clock`), or by TBF with a bucket of one frame; {seconds} s, {} turns; the time between two packets at the receiver, and how far off\n\
         that is, in microseconds\n",
        common.runs
    );
    let heads = ["gap p50", "gap p99", "off by p50", "off by p99", "rate off by, %"];
    println!(
        "{:<10} {:<10} {:<6}{}",
        "rate",
        "line",
        "by",
        heads.map(|head| format!(" {head:>28}")).concat()
    );
    let mut rows = Vec::new();
    for (rate, line) in RATES {
        let mut turns = ALL.map(|_| Turns::default());
        for _ in 0..common.runs {
            ALL.iter()
                .zip(&mut turns)
                .try_for_each(|((_, by), turns)| once(seconds, (rate, line), *by, turns))?;
        }
        for ((name, _), turns) in ALL.into_iter().zip(turns) {
            let row = turns.row((rate, line), name);
            let (rate, line) = (rate.to_string(), line.to_string());
            println!("{rate:<10} {line:<10} {name:<6}{}", row.text());
            rows.push(row);
        }
    }
    Ok(rows)
}

#[derive(Default)]
struct Turns {
    gap_p50: Vec<f64>,
    gap_p99: Vec<f64>,
    error_p50: Vec<f64>,
    error_p99: Vec<f64>,
    off: Vec<f64>,
}

impl Turns {
    fn row(self, (rate, line): (Rate, Rate), by: &str) -> Row {
        Row {
            rate_bps: rate.bps(),
            line_bps: line.bps(),
            by: by.to_string(),
            gap_p50_us: Spread::of(self.gap_p50),
            gap_p99_us: Spread::of(self.gap_p99),
            gap_error_p50_us: Spread::of(self.error_p50),
            gap_error_p99_us: Spread::of(self.error_p99),
            off_target: Spread::of(self.off),
        }
    }
}

impl Row {
    fn text(&self) -> String {
        let percent = Spread::of(self.off_target.values.iter().map(|off| off * 100.0).collect());
        let us = [&self.gap_p50_us, &self.gap_p99_us, &self.gap_error_p50_us, &self.gap_error_p99_us];
        let us = us.map(|spread| format!(" {:>28}", format!("{spread:.1}"))).concat();
        format!("{us} {:>28}", format!("{percent:.3}"))
    }
}

fn once(seconds: u64, (rate, line): (Rate, Rate), by: By, turns: &mut Turns) -> Result<(), String> {
    let gap = rate.time_for(PACKET);
    let mut plan = plan("pace", Path::default(), seconds, 1);
    plan.groups.clear();
    let per_second = |parts: u64| (parts * 1_000_000_000 / gap.as_nanos() / 2) as u32;
    // Paced packets arrive at 1.5 times the paced rate, so the queue is never empty.
    let (on_box, gateway, pps) = match by {
        By::Nothing => (OnBox::Gateway, None, per_second(2)),
        By::Weir(backend) => (OnBox::Gateway, Some(paced(rate, backend, line)), per_second(3)),
        By::Tbf => {
            let frames = Rate::from_bps(rate.bps() * FRAME / PACKET).unwrap_or(rate);
            (OnBox::Tbf, Some(paced(frames, Backend::Clock, line)), per_second(3))
        }
    };
    plan.gateway = gateway;
    let mut options = options()?;
    options.on_box = on_box;
    options.probe =
        Some(Probe { pps, size: PAYLOAD, direction: Direction::Out, burst: BURST, gap: Some(gap) });
    let sink = measure(&plan, &options)?.probe.ok_or("the probe reported nothing")?.sink;
    let (errors, gaps) = sink.gap_error_ns.zip(sink.gaps_ns).ok_or("the probe's sink received nothing")?;
    let us = |ns: u64| ns as f64 / 1e3;
    turns.gap_p50.push(us(gaps.p50));
    turns.gap_p99.push(us(gaps.p99));
    turns.error_p50.push(us(errors.p50));
    turns.error_p99.push(us(errors.p99));
    let wanted = errors.samples as f64 * gap.as_nanos() as f64;
    turns.off.push(wanted / sink.gaps_took_ns.max(1) as f64 - 1.0);
    Ok(())
}

/// Returns a gateway that paces all outgoing traffic at this rate.
fn paced(rate: Rate, backend: Backend, line: Rate) -> Config {
    let pace = Class { target: Target::Rate(rate), counts: Counts::Ip, backend };
    let queue = queue::Config { limit: QueueLimit::Packets(200), kind: Kind::Fifo, tins: None };
    let class = ClassConfig {
        name: "paced".into(),
        direction: Direction::Out,
        matches: Vec::new(),
        ack: None,
        share: Some(Spec { rate: Some(rate), queue: Some(queue), pace: Some(pace), ..Spec::of(None) }),
        nested: None,
    };
    let port = Port { line: (backend == Backend::Gap).then_some(line), ..Port::default() };
    Config { classes: vec![class], port, ..Config::default() }
}
