//! `weir model ack-filter`: slow start behind a slow reverse channel, by §2.2 and §2.3 of "On ACK Filtering
//! on a Slow Reverse Channel" (Barakat and Altman, 2000).
//!
//! Windows and ACKs are counted in round trips of the constant time T. The reverse channel carries μ_r ACKs
//! per second. A receiver acknowledges every d-th packet.
//!
//! - Before ACKs are filtered the window grows to `W(n) = α^n`, with `α = 1 + 1/d`.
//! - The channel is fully used once a burst has `μ_r T` ACKs, of which `δ_o = μ_r T / (d + 1)` must wait
//!   (equation 1).
//! - If at most δ < δ_o may wait, filtering begins at `n_0`, where `α^n_0 = δ d (d + 1)`. From then on the
//!   channel carries δ more ACKs in each round trip, `N(n) = δ (d + 1 + n - n_0)`, and the window grows by
//!   the same number.
//!
//! With any δ the window finally grows by μ_r packets per second. The formulas leave out the delay in a queue
//! of δ ACKs.

use crate::command::error::Failure;
use crate::experiment::config::diag::Fault;
use crate::experiment::config::units;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Arguments of `weir model ack-filter`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  weir model ack-filter --rate 100kbit --rtt 200ms --segments 1 --threshold 1 --threshold 3 --threshold 30

The model is that of sections 2.2 and 2.3 of \"On ACK Filtering on a Slow Reverse Channel\" (Barakat and Altman, 2000).")]
pub struct Args {
    /// Rate of the reverse channel
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    rate: Rate,
    /// Round-trip time without queueing
    #[arg(long, value_name = "TIME", value_parser = units::positive_duration)]
    rtt: Duration,
    /// Bytes of an ACK
    #[arg(long, value_name = "BYTES", default_value_t = 40, value_parser = clap::value_parser!(u32).range(40..=256))]
    ack: u32,
    /// Packets that an ACK acknowledges
    #[arg(long, value_name = "D", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    segments: u32,
    /// Limit of queued ACKs; may be given several times; default: 1, 3 and the optimum
    #[arg(long = "threshold", value_name = "ACKS", value_parser = threshold)]
    thresholds: Vec<u32>,
    /// Round trips to show
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    round_trips: u32,
    /// Write the figures to this file as JSON; `-` is standard output, and the table is then left out
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn threshold(text: &str) -> Result<u32, Fault> {
    let n = text.parse().ok().filter(|n| (1..=1_000_000).contains(n));
    n.ok_or_else(|| Fault::new(format!("{text} is not a number of ACKs"), "a whole number from 1 to 1000000"))
}

/// The channel and the receiver.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// ACKs that the channel carries in a round trip, μ_r T.
    pipe: f64,
    /// Packets that an ACK acknowledges.
    d: f64,
}

impl Path {
    /// Returns δ_o (equation 1).
    fn optimum(self) -> f64 {
        self.pipe / (self.d + 1.0)
    }

    /// Returns α.
    fn growth(self) -> f64 {
        1.0 + 1.0 / self.d
    }

    /// Returns n_0, the round trip in which filtering begins if δ ACKs may wait, or in which the channel is
    /// fully used without filtering.
    fn filtered_from(self, threshold: f64) -> f64 {
        (threshold.min(self.optimum()) * self.d * (self.d + 1.0)).ln() / self.growth().ln()
    }

    /// Returns the round trip from which the channel is fully used: N(n) = μ_r T.
    fn full_from(self, threshold: f64) -> f64 {
        let from = self.filtered_from(threshold);
        if threshold >= self.optimum() {
            from
        } else {
            from + self.pipe / threshold - self.d - 1.0
        }
    }

    /// Returns the ACKs that leave the channel in round trip n.
    fn acks(self, n: f64, threshold: f64) -> f64 {
        let from = self.filtered_from(threshold);
        let before = self.growth().powf(n) / self.d;
        let filtered = threshold * (self.d + 1.0 + n - from);
        (if n <= from { before } else { filtered }).min(self.pipe)
    }

    /// Returns the window at the beginning of round trip n, in packets.
    fn window(self, n: f64, threshold: f64) -> f64 {
        let (from, full, d) = (self.filtered_from(threshold), self.full_from(threshold), self.d);
        if n > full {
            return self.window(full, threshold) + (n - full) * self.pipe;
        }
        if n <= from {
            return self.growth().powf(n);
        }
        let since = n - from;
        threshold * (d * (d + 1.0) + since * (d + 1.0) + since * (since - 1.0) / 2.0)
    }
}

/// Output of `--json`.
#[derive(Serialize)]
struct Report {
    schema: u32,
    /// ACKs that the channel carries per second, μ_r.
    acks_per_s: f64,
    /// ACKs that the channel carries in a round trip, μ_r T: the safe upper choice of the threshold (§3).
    pipe_acks: f64,
    /// Optimal threshold, δ_o.
    optimum_acks: f64,
    curves: Vec<Curve>,
}

/// Curve of one threshold.
#[derive(Serialize)]
struct Curve {
    threshold: u32,
    /// Round trip n_0, and the one from which the channel is fully used.
    filtered_from: f64,
    full_from: f64,
    /// Values by round trip, from 0 on.
    window_packets: Vec<f64>,
    acks: Vec<f64>,
}

/// Computes and prints the curves.
pub fn run(args: &Args) -> Result<(), Failure> {
    let report = report(args)?;
    if let Some(to) = &args.json {
        crate::command::write_json(to, &report)?;
    }
    match args.json.as_deref() == Some("-".as_ref()) {
        true => Ok(()),
        false => crate::command::print(&text(&report, args.rtt)),
    }
}

fn report(args: &Args) -> Result<Report, Failure> {
    let per_s = args.rate.bps() as f64 / 8.0 / f64::from(args.ack);
    let path = Path { pipe: per_s * args.rtt.as_secs_f64(), d: f64::from(args.segments) };
    if path.optimum() < 1.0 {
        let text =
            format!("the channel carries {:.2} ACKs in a round trip: there is nothing to choose", path.pipe);
        return Err(Failure::Input(text));
    }
    let chosen = [1, 3, path.optimum() as u32];
    let thresholds = if args.thresholds.is_empty() { &chosen[..] } else { &args.thresholds[..] };
    let curve = |&threshold: &u32| {
        let delta = f64::from(threshold);
        let each = |of: fn(Path, f64, f64) -> f64| {
            (0..=args.round_trips).map(|n| of(path, f64::from(n), delta)).collect()
        };
        Curve {
            threshold,
            filtered_from: path.filtered_from(delta),
            full_from: path.full_from(delta),
            window_packets: each(Path::window),
            acks: each(Path::acks),
        }
    };
    Ok(Report {
        schema: crate::result::SCHEMA,
        acks_per_s: per_s,
        pipe_acks: path.pipe,
        optimum_acks: path.optimum(),
        curves: thresholds.iter().map(curve).collect(),
    })
}

fn text(report: &Report, rtt: Duration) -> String {
    let mut out = format!(
        "The channel carries {:.1} ACKs per second, {:.1} in a round trip. The best threshold is {:.1} ACKs, a safe one {:.1}.\n\n",
        report.acks_per_s, report.pipe_acks, report.optimum_acks, report.pipe_acks
    );
    for curve in &report.curves {
        let _ = writeln!(
            out,
            "{} ACKs may wait: filtered from round trip {:.1} on, channel full from {:.1} on ({:.2} s)",
            curve.threshold,
            curve.filtered_from,
            curve.full_from,
            curve.full_from * rtt.as_secs_f64()
        );
    }
    let _ = write!(out, "\n{:>4} {:>8}", "n", "s");
    for c in &report.curves {
        let _ = write!(out, " {:>12}", format!("W, δ = {}", c.threshold));
    }
    out.push('\n');
    for n in 0..report.curves.first().map_or(0, |c| c.window_packets.len()) {
        let _ = write!(out, "{n:>4} {:>8.2}", n as f64 * rtt.as_secs_f64());
        for c in &report.curves {
            let _ = write!(out, " {:>12.1}", c.window_packets[n]);
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Path of §2.4: 312.5 ACKs a second, 200 ms, every packet acknowledged.
    const PAPER: Path = Path { pipe: 62.5, d: 1.0 };

    #[test]
    fn the_paper_s_scenario() {
        assert_eq!(PAPER.optimum(), 31.25);
        assert_eq!(PAPER.growth(), 2.0);
        // δ d (d + 1) = 2 is the first round trip. Each later one has one ACK more.
        assert_eq!(PAPER.filtered_from(1.0), 1.0);
        assert_eq!([1.0, 2.0, 3.0].map(|n| PAPER.acks(n, 1.0)), [2.0, 3.0, 4.0]);
        assert_eq!([1.0, 2.0, 3.0, 4.0].map(|n| PAPER.window(n, 1.0)), [2.0, 4.0, 7.0, 11.0]);
        assert_eq!(PAPER.full_from(1.0), 1.0 + 62.5 - 2.0);
    }

    /// Verifies W(n + 1) = W(n) + N(n) wherever ACKs are filtered (§2.3).
    #[test]
    fn the_window_grows_by_the_acks_of_a_round_trip() {
        for (pipe, d, delta) in [(62.5, 1.0, 3.0), (62.5, 2.0, 5.0), (400.0, 2.0, 7.0)] {
            let path = Path { pipe, d };
            let from = path.filtered_from(delta);
            for k in 0..5 {
                let n = from + f64::from(k);
                let grown = path.window(n, delta) + path.acks(n, delta);
                assert!((path.window(n + 1.0, delta) - grown).abs() < 1e-6, "{d} {delta} {k}");
            }
        }
    }

    #[test]
    fn a_threshold_above_the_optimum_filters_nothing_before_the_channel_is_full() {
        for delta in [31.25, 60.0, 500.0] {
            assert_eq!(PAPER.full_from(delta), PAPER.filtered_from(delta));
            assert!((PAPER.window(PAPER.full_from(delta), delta) - 62.5).abs() < 1e-9);
            assert_eq!(PAPER.acks(10.0, delta), 62.5);
        }
    }
}
