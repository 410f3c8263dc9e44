//! The whole I/O layer on virtual interfaces: client – gateway – server, three network namespaces.
//! Needs root; without, it says so and passes.
//!
//! Without the usual test harness, because a gateway has to be a process with one thread: this
//! program runs itself again as one. Arguments select tests by name.

mod bump;
mod devices;
mod ends;
mod gateway;
mod hosts;
mod lab;
mod tests;

/// Every test with its name.
fn all() -> impl Iterator<Item = &'static (&'static str, fn())> {
    tests::ALL.iter().chain(ends::ALL).chain(devices::ALL)
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
    let mut failed = Vec::new();
    for (name, test) in all() {
        if !wanted.is_empty() && !wanted.iter().any(|w| name.contains(w.as_str())) {
            continue;
        }
        let started = std::time::Instant::now();
        // A namespace that a failed test leaves behind is removed by `Drop`.
        let result = std::panic::catch_unwind(test);
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        println!("test {name} ... {word} ({:.1} s)", started.elapsed().as_secs_f64());
        if result.is_err() {
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        println!("failed: {failed:?}");
        std::process::exit(1);
    }
}
