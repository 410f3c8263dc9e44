//! A list of customers, each with a rate for the sum of its downloads: thousands in the simulator, and as
//! many as two processors carry in the lab. Measures whether each customer has its rate, and the processor
//! time and memory that it costs.

use super::figures::{verdict, Spread};
use super::sim::{processor_time, resident};
use super::{options, whole};
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use weir::execute::{lab, sim};
use weir::experiment::config::ports::MOST_ENGINES;
use weir::experiment::config::{experiment, Source};
use weir::experiment::plan::Plan;
use weir::report::expect;
use weir::result::{Backend, RunResult, Status};
use weir_io::sys::ticks::Ticks;

/// Bound on the error of every customer's rate, in percent.
const PERCENT: f64 = 1.0;
/// Time by which every flow has begun, in seconds.
const BEGUN: u32 = 2;
/// Minimum room for flows in the gateway.
const MAX_FLOWS: u32 = 65_536;

/// Settings of one world.
#[derive(Clone, Copy, Debug)]
struct Case {
    world: Backend,
    customers: u32,
    flows: u32,
    /// Rate of each customer, in kbit/s.
    rate_kbit: u32,
    /// Duration of the run, and start of the measured time, in seconds.
    seconds: u64,
    from: u64,
    /// Round-trip time of the path.
    rtt: &'static str,
}

/// 10 Gbit/s in virtual time, and 0.25 Gbit/s in real time. A segment of 1,448 bytes is 0.1 % of a customer's
/// bytes in the measured time. In the lab thousands of flows begin in two seconds, so the first seconds are
/// not measured.
const CASES: [Case; 2] = [
    Case {
        world: Backend::Sim,
        customers: 10_000,
        flows: 100_000,
        rate_kbit: 1_000,
        seconds: 14,
        from: 4,
        rtt: "50ms",
    },
    Case {
        world: Backend::Lab,
        customers: 1_000,
        flows: 2_000,
        rate_kbit: 250,
        seconds: 60,
        from: 20,
        rtt: "20ms",
    },
];

/// Arguments of `weir-bench customers`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sudo weir-bench customers                # 10,000 with 100,000 flows in the simulator, 2,000 with 4,000 in the lab
  weir-bench customers --world sim --customers 1000 --flows 10000
  sudo weir-bench customers --world lab --customers 100 --flows 400 --seconds 20
  sudo weir-bench customers --world lab --engines 2")]
pub struct Args {
    /// Only in this world
    #[arg(long, value_name = "WORLD", value_parser = ["sim", "lab"])]
    world: Option<String>,
    /// Number of customers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    customers: Option<u32>,
    /// Number of flows of all customers together; in the lab 10,000 at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    flows: Option<u32>,
    /// Number of the gateway's engines in the lab, instead of one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_ENGINES)))]
    engines: Option<u32>,
    /// Seconds of traffic, of which the last two thirds are measured
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(4..=3_600))]
    seconds: Option<u64>,
    /// Write the figures as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Results of a run.
#[derive(Clone, Debug, Serialize)]
struct Figure {
    world: Backend,
    customers: u32,
    flows: u32,
    rate_bps: u64,
    /// Errors of the customers' rates, in percent.
    error_percent: Spread,
    /// Customer with the largest error, and this error.
    worst: String,
    worst_percent: f64,
    /// Number of customers within [`PERCENT`].
    within: u32,
    /// Goodput of all customers in the measured time, in bits per second.
    goodput_bps: f64,
    /// Real time from the beginning of the run to its end, including set-up, tear-down and report.
    wall_s: f64,
    /// Processor time of the simulator, or the sum over the gateway's engines.
    cpu_s: f64,
    /// Processor time of each engine, if there are several.
    engines_cpu_s: Vec<f64>,
    /// Processor time of the whole machine in the lab.
    machine_cpu_s: Option<f64>,
    /// Peak memory of the simulator, or memory of the gateway's engine.
    memory_bytes: u64,
    /// Number of faulty flows.
    faults: usize,
}

impl Figure {
    fn holds(&self) -> bool {
        self.within == self.customers && self.faults == 0
    }
}

pub(super) fn run(args: &Args) -> Result<(), String> {
    println!("customers of a list, each with a rate for all its downloads together; must hold: each within {PERCENT} %\n");
    let mut figures = Vec::new();
    for case in CASES.iter().filter(|c| args.world.as_ref().is_none_or(|w| w == c.world.name())) {
        let case = asked(case, args);
        let figure = measure(&case, args)?;
        print(&figure, &case);
        figures.push(figure);
    }
    let Some(path) = &args.json else { return Ok(()) };
    weir::command::write_json(path, &figures).map_err(|e| e.to_string())
}

/// Returns the case with the arguments applied.
fn asked(case: &Case, args: &Args) -> Case {
    let seconds = args.seconds.unwrap_or(case.seconds);
    Case {
        customers: args.customers.unwrap_or(case.customers),
        flows: args.flows.unwrap_or(case.flows),
        seconds,
        from: args.seconds.map_or(case.from, |s| s.div_ceil(3)),
        ..*case
    }
}

fn print(f: &Figure, case: &Case) {
    let (customers, flows, rate) = (f.customers, f.flows, case.rate_kbit);
    println!("{}: {customers} customers with {flows} flows, {rate} kbit/s for each customer", f.world.name());
    println!(
        "within {PERCENT} %          {} of {customers}; worst {} with {:+.2} %, median {:+.3} %",
        f.within, f.worst, f.worst_percent, f.error_percent.median
    );
    println!("all together        {:.2} Mbit/s", f.goodput_bps / 1e6);
    let seconds = case.seconds as f64;
    let whose = match f.world {
        Backend::Sim => "of the simulator",
        Backend::Lab => "of the gateway's engines",
    };
    println!(
        "processor time      {:.2} s {whose}, {:.3} s for each second of traffic",
        f.cpu_s,
        f.cpu_s / seconds
    );
    if !f.engines_cpu_s.is_empty() {
        let each: Vec<String> = f.engines_cpu_s.iter().map(|cpu| format!("{cpu:.2} s")).collect();
        println!("                    of each engine: {}", each.join(", "));
    }
    if let Some(all) = f.machine_cpu_s {
        println!(
            "                    {all:.1} s of the machine, {:.2} for each second of traffic",
            all / seconds
        );
    }
    println!("memory              {:.1} MB {whose}", f.memory_bytes as f64 / 1e6);
    println!("by the clock        {:.1} s for {seconds} s", f.wall_s);
    if f.faults > 0 {
        println!("flows that failed   {}", f.faults);
    }
    println!("{}\n", verdict(f.holds()));
}

fn measure(case: &Case, args: &Args) -> Result<Figure, String> {
    let directory = tempfile::tempdir().map_err(|e| format!("a directory for the list: {e}"))?;
    let plan = plan(case, directory.path())?;
    let begin = Instant::now();
    let mut engines_cpu_s = Vec::new();
    let (result, cpu_s, machine_cpu_s, memory_bytes) = match case.world {
        Backend::Sim => {
            let before = processor_time();
            let stop = AtomicBool::new(false);
            let result = sim::run(&plan, &sim::Options { pcap: None, progress: None, stop: &stop })?;
            (result, processor_time() - before, None, resident("VmHWM:")?)
        }
        Backend::Lab => {
            let before = Ticks::now();
            let outcome = in_the_lab(&plan, args.engines)?;
            let machine = Ticks::now().since(before).busy_s();
            let said = outcome.gateway.iter().flat_map(|gateway| &gateway.engines);
            engines_cpu_s = said.map(|engine| engine.cpu_s).collect();
            let result = outcome.result;
            let gateway = result.gateway.clone().unwrap_or_default();
            (result, gateway.cpu_s, Some(machine), gateway.memory_bytes.unwrap_or(0))
        }
    };
    let wall_s = begin.elapsed().as_secs_f64();
    let judged = judged(case, &plan, &result)?;
    let figure = Figure { wall_s, cpu_s, engines_cpu_s, machine_cpu_s, memory_bytes, ..judged };
    Ok(figure)
}

fn in_the_lab(plan: &Plan, engines: Option<u32>) -> Result<lab::Outcome, String> {
    let options = lab::Options { engines, ..options()? };
    let outcome = whole(plan, &options)?;
    for fault in outcome.faults.iter().take(3) {
        eprintln!("weir-bench: {fault}");
    }
    Ok(outcome)
}

/// Computes the errors of the customers' rates.
fn judged(case: &Case, plan: &Plan, result: &RunResult) -> Result<Figure, String> {
    if result.status == Status::Interrupted {
        return Err("interrupted".into());
    }
    let rate = f64::from(case.rate_kbit) * 1e3;
    let expected = plan.expects.first().ok_or("nothing is expected")?;
    let samples = expect::measure(&expected.measure, plan.bin, result);
    let errors: Vec<f64> = samples.iter().map(|s| (s.value / rate - 1.0) * 100.0).collect();
    let worst = samples.iter().zip(&errors).max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    let (worst, worst_percent) = worst.map_or(("nobody".into(), f64::NAN), |(s, e)| (s.at.clone(), *e));
    Ok(Figure {
        world: case.world,
        customers: case.customers,
        flows: case.flows,
        rate_bps: u64::from(case.rate_kbit) * 1000,
        within: errors.iter().filter(|e| e.abs() <= PERCENT).count() as u32,
        goodput_bps: samples.iter().map(|s| s.value).sum(),
        error_percent: Spread::of(errors),
        worst,
        worst_percent,
        wall_s: 0.0,
        cpu_s: 0.0,
        engines_cpu_s: Vec::new(),
        machine_cpu_s: None,
        memory_bytes: 0,
        faults: result.faults.len(),
    })
}

/// Returns the experiment and writes its list of customers to a directory.
fn plan(case: &Case, directory: &Path) -> Result<Plan, String> {
    let file = directory.join("customers.csv");
    std::fs::write(&file, list(case)).map_err(|e| format!("{}: {e}", file.display()))?;
    let source = Source::new(directory.join("customers.toml").display().to_string(), text(case));
    let parsed = experiment::parse(&source).map_err(|e| e.to_string())?;
    parsed.plan_for(case.world).map_err(|e| e.to_string())
}

fn list(case: &Case) -> String {
    let mut text = String::from("id,prefixes,down,up\n");
    for n in 0..case.customers {
        // Hosts have addresses from 10.1.0.1 on.
        let address = std::net::Ipv4Addr::from_bits(0x0a01_0001 + n);
        let rate = case.rate_kbit;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "c{n},{address},{rate}kbit,{rate}kbit");
    }
    text
}

fn text(case: &Case) -> String {
    let Case { customers, flows, rate_kbit, seconds, from, rtt, .. } = *case;
    let stagger_us = (BEGUN * 1_000_000 / flows).max(1);
    let max_flows = (2 * flows).max(MAX_FLOWS);
    format!(
        "name = \"customers\"\nduration = \"{seconds}s\"\nbin = \"1s\"\n[path]\nrtt = \"{rtt}\"\n\
         [gateway]\nmax_flows = {max_flows}\n[gateway.customers]\nfile = \"customers.csv\"\n\
         [[host]]\nname = \"homes\"\nside = \"lan\"\ncount = {customers}\n\
         [[flow]]\nid = \"down\"\ndirection = \"in\"\nclient = \"homes\"\ncount = {flows}\nstagger = \"{stagger_us}us\"\n\
         [[expect]]\nwhat = \"class.*-down.goodput_bps\"\nfrom = \"{from}s\"\nop = \"within\"\n\
         target = \"{rate_kbit}kbit\"\ntolerance = \"{PERCENT}%\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_customer_has_a_host_and_each_host_its_flows() {
        for case in CASES {
            let case = Case { customers: 300, flows: 600, ..case };
            let directory = tempfile::tempdir().unwrap();
            let plan = plan(&case, directory.path()).unwrap();
            let gateway = plan.gateway.as_ref().unwrap();
            // Each customer has a class for incoming and one for outgoing data.
            assert_eq!((gateway.classes.len(), plan.hosts[0].count), (600, 300));
            let classifier = plan.classifier();
            let ends = weir::execute::hosts::Ends::of(&plan);
            for (n, flow) in plan.flows().enumerate() {
                let towards = ends.of_flow(&flow, n).towards(flow.direction());
                let class = classifier.of(flow.direction(), &flow.group.protocol, towards).unwrap();
                assert_eq!(class.name, format!("c{}-down", n % 300));
            }
        }
    }
}
