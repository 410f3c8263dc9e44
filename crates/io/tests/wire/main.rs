//! The whole I/O layer on virtual interfaces: client – gateway – server, three network namespaces.
//! Needs root; without, it says so and passes.
//!
//! Without the usual test harness, because a gateway has to be a process with one thread: this
//! program runs itself again as one. Arguments select tests by name.
//!
//! Tests run one by one, and one that fails is run once more: these are real kernels, and the machine may
//! have had no time for them. The summary names each test that needed its second run.

mod bump;
mod clerk;
mod devices;
mod ends;
mod gateway;
mod hosts;
mod lab;
mod metadata;
mod outages;
mod places;
mod shaping;
mod tests;
mod verdict;
mod ways;

use verdict::Verdict;

/// Every test with its name.
fn all() -> impl Iterator<Item = &'static (&'static str, fn())> {
    let ends = ends::ALL.iter().chain(outages::ALL);
    tests::ALL
        .iter()
        .chain(ends)
        .chain(shaping::ALL)
        .chain(devices::ALL)
        .chain(metadata::ALL)
        .chain(ways::ALL)
        .chain(places::ALL)
        .chain(verdict::ALL)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|a| a == "bump") {
        std::process::exit(bump::main(&args[1..]));
    }
    if args.first().is_some_and(|a| a == "gateway") {
        std::process::exit(gateway::main(&args[1..]));
    }
    if args.first().is_some_and(|a| a == "down") {
        return println!("{:?}", weir_io::supervise::down(args[1].as_ref(), None));
    }
    if args.first().is_some_and(|a| a == "host") {
        return hosts::main(&args[1..]);
    }
    if args.iter().any(|a| a == "--list") {
        return all().for_each(|(name, _)| println!("{name}: test"));
    }
    if let Some(reason) = lab::unable() {
        return println!("skipped: {reason}");
    }
    let wanted: Vec<&String> = args.iter().filter(|a| !a.starts_with('-')).collect();
    let chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str()));
    let verdict = Verdict::of(all().filter(|(name, _)| chosen(name)).copied(), verdict::run);
    print!("{verdict}");
    verdict.count_inconclusive();
    if !verdict.is_good() {
        std::process::exit(1);
    }
}
