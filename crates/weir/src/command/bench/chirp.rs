//! Paced chirping in this host's kernel: how exact its gaps are, and what it costs beside the kernel's CUBIC.

use super::figures::{verdict, Spread};
use super::{measure, options, plan, write, Common};
use crate::experiment::plan::{Arrivals, Length, Path, Plan};
use serde::Serialize;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use weir_core::link;
use weir_core::rate::Rate;
use weir_core::time::Duration;
use weir_io::bpf::chirp;

/// Of the path on which gaps are measured: a packet of 1514 bytes takes 121 us, so that is what gaps come to.
const RATE: Rate = Rate::mbit(100);
const FLOWS: u32 = 20;
const BYTES: u64 = 1_000_000;
const RTT_MS: u64 = 20;
const SECONDS: u64 = 6;
/// How far from what was asked for the median may be, in microseconds.
const BOUND_US: i32 = 15;
/// Connections and bytes of each, of a turn in which processor time is measured.
const TRANSFERS: u32 = 200;
const TRANSFER: usize = 4_000_000;

#[derive(Debug, Serialize)]
struct Figures {
    /// By how much gaps were longer than asked for.
    late_p10_us: Spread,
    late_p50_us: Spread,
    late_p90_us: Spread,
    late_p99_us: Spread,
    gaps: u64,
    /// Processor time of both ends for a segment of 1448 bytes over the loopback.
    cubic_ns: Spread,
    chirp_ns: Spread,
    ratio: Spread,
}

pub(super) fn run(common: &Common) -> Result<(), String> {
    let ours = !chirp::is_loaded();
    if ours {
        chirp::load().map_err(|e| e.to_string())?;
    }
    let measured = figures(common);
    if ours {
        chirp::unload().map_err(|e| e.to_string())?;
    }
    let figures = measured?;
    let holds = figures.late_p50_us.median.abs() <= f64::from(BOUND_US);
    println!(
        "gaps of weir_chirp at {RATE} and {RTT_MS} ms, {} of them: longer than asked for by (us; must be within {BOUND_US} at the \
         median)\n  p10 {:.0}\n  p50 {:.0}\n  p90 {:.0}\n  p99 {:.0}\n  {}\n\n\
         processor time of both ends for 1448 bytes over the loopback, connections of {TRANSFER} bytes, start included (ns)\n  \
         cubic      {:.0}\n  weir_chirp {:.0}\n  ratio      {:.2}",
        figures.gaps,
        figures.late_p10_us,
        figures.late_p50_us,
        figures.late_p90_us,
        figures.late_p99_us,
        verdict(holds),
        figures.cubic_ns,
        figures.chirp_ns,
        figures.ratio
    );
    write(common, &figures)
}

fn figures(common: &Common) -> Result<Figures, String> {
    let ([mut p10, mut p50, mut p90, mut p99], mut gaps) = ([const { vec![] }; 4], 0);
    let (mut cubic, mut chirping) = (vec![], vec![]);
    for _ in 0..common.runs {
        let before = counts()?;
        measure(&gap_plan(common.seconds.unwrap_or(SECONDS)), &options()?)?;
        let late: Vec<(i32, u64)> = counts()?.iter().zip(&before).map(|(a, b)| (a.0, a.1 - b.1)).collect();
        for (values, percent) in [(&mut p10, 10), (&mut p50, 50), (&mut p90, 90), (&mut p99, 99)] {
            values.push(quantile(&late, percent).into());
        }
        gaps += late.iter().map(|(_, n)| n).sum::<u64>();
        cubic.push(cost("cubic")?);
        chirping.push(cost("weir_chirp")?);
    }
    Ok(Figures {
        late_p10_us: Spread::of(p10),
        late_p50_us: Spread::of(p50),
        late_p90_us: Spread::of(p90),
        late_p99_us: Spread::of(p99),
        gaps,
        ratio: Spread::ratio(&chirping, &cubic),
        cubic_ns: Spread::of(cubic),
        chirp_ns: Spread::of(chirping),
    })
}

fn counts() -> Result<Vec<(i32, u64)>, String> {
    chirp::lateness().map_err(|e| e.to_string())
}

/// The nearest rank: the smallest value that so many percent do not exceed.
fn quantile(counts: &[(i32, u64)], percent: u64) -> i32 {
    let all: u64 = counts.iter().map(|(_, n)| n).sum();
    let rank = (all * percent).div_ceil(100).max(1);
    let mut seen = 0;
    let reached = counts.iter().find(|(_, n)| {
        seen += n;
        seen >= rank
    });
    reached.map_or(0, |(value, _)| *value)
}

/// Flows one after another, each long enough for its start.
fn gap_plan(seconds: u64) -> Plan {
    let delay = Duration::from_millis(RTT_MS / 2);
    let wan_out = link::Config { rate: Some(RATE), delay, ..link::Config::BARE };
    let wan_back = link::Config { delay, ..link::Config::BARE };
    let path = Path { wan_out, wan_back, ..Path::default() };
    let mut plan = plan("chirp", path, seconds, FLOWS);
    let group = &mut plan.groups[0];
    group.tcp.cc = Some("chirp".into());
    group.length = Length::Bytes(BYTES);
    group.arrivals = Arrivals::Every(Duration::from_millis(1000 * (seconds - 1) / u64::from(FLOWS)));
    plan
}

/// Nanoseconds of processor time for a segment, of this process's threads at both ends of connections over the loopback.
fn cost(cc: &str) -> Result<f64, String> {
    let fail = |e: std::io::Error| format!("{cc} over the loopback: {e}");
    let before = cpu_ns();
    for _ in 0..TRANSFERS {
        transfer(cc).map_err(fail)?;
    }
    let segments = f64::from(TRANSFERS) * TRANSFER as f64 / 1448.0;
    Ok((cpu_ns() - before) as f64 / segments)
}

fn transfer(cc: &str) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut sender = TcpStream::connect(listener.local_addr()?)?;
    rustix::net::sockopt::set_tcp_congestion(&sender, cc)?;
    let (mut receiver, _) = listener.accept()?;
    let reader = std::thread::spawn(move || -> std::io::Result<()> {
        let mut buffer = vec![0; 1 << 17];
        while receiver.read(&mut buffer)? > 0 {}
        Ok(())
    });
    let buffer = vec![0; 1 << 17];
    let mut left = TRANSFER;
    while left > 0 {
        let n = left.min(buffer.len());
        sender.write_all(&buffer[..n])?;
        left -= n;
    }
    drop(sender);
    reader.join().expect("it does not panic")
}

/// Processor time of this process so far, in user and kernel mode.
fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let counts = [(-3, 1), (0, 50), (4, 48), (90, 1)];
        assert_eq!(
            (quantile(&counts, 50), quantile(&counts, 51), quantile(&counts, 99), quantile(&counts, 100)),
            (0, 0, 4, 90)
        );
        assert_eq!(quantile(&[], 50), 0);
    }
}
