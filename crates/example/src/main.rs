//! The command `weir` with a congestion control and a queue discipline of one's own:
//!
//! ```text
//! cargo run --release -p weir-example -- sim crates/example/own.toml
//! ```
//!
//! `scalable` is Scalable TCP (Kelly, ACM CCR 33(2), 2003). `two-classes` serves packets of at most 200 bytes
//! first and keeps the others short.

mod scalable;
mod two_classes;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Err(refused) = add() {
        eprintln!("weir-own: {refused}");
        return ExitCode::FAILURE;
    }
    weir::command::cli::main()
}

/// Adds both under their names. A store of results tells this program's states apart by its file, so they
/// need no versions of their own.
fn add() -> Result<(), weir_core::registry::Refused> {
    weir_sim::cc::register("scalable", Some(""), |_| Box::<scalable::Scalable>::default())?;
    weir_core::queue::own::register("two-classes", Some(""), |_| Box::new(two_classes::TwoClasses))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::command::sim::simulate;
    use weir::result::RunResult;

    const FILE: &str = include_str!("../own.toml");

    fn run(file: &str) -> RunResult {
        add().unwrap();
        simulate(file).unwrap()
    }

    /// At 1 % of loss Reno's window is √(1.5 / p) = 12 segments (Mathis et al., CCR 27(3), 1997), and
    /// that of Scalable TCP 0.08 / p = 8 (Kelly 2003: a b / p with a = 0.01 and 1 / b = 1/8): 2/3 of Reno's.
    #[test]
    fn windows_follow_the_law_of_the_control() {
        let lossy = FILE.replace("aqm = \"two-classes\"", "loss = \"1%\"");
        let goodput = |cc: &str| run(&lossy.replace("\"scalable\"", cc)).flows[0].goodput_bps;
        let ratio = goodput("\"scalable\"") / goodput("\"reno\"");
        assert!((0.5..0.85).contains(&ratio), "{ratio}");
    }

    /// The path takes 40 ms both ways. A small segment waits for the full frame that is being sent, 1.2 ms at
    /// most. Without the bands it waits behind the queue too, of up to ten frames.
    #[test]
    fn small_packets_go_first() {
        let median = |file: &str| run(file).flows[1].rtt_us.p50;
        let with = median(FILE);
        assert!((40_000..41_700).contains(&with), "{with}");
        let without = median(&FILE.replace("aqm = \"two-classes\"\n", "").replace("100p", "10p"));
        assert!(without > 43_000, "{without}");
    }
}
