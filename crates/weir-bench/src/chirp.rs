//! Paced chirping in this host's kernel: the error of its gaps, and its cost beside the kernel's CUBIC.

use super::figures::{verdict, Spread};
use super::{measure, options, plan, write, Common};
use serde::Serialize;
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use weir::execute::traffic::tcp_info;
use weir::experiment::plan::{Arrivals, Length, Path, Plan};
use weir_core::link;
use weir_core::rate::Rate;
use weir_core::time::Duration;
use weir_io::bpf::chirp;

/// Rate of the path on which gaps are measured. A packet of 1514 bytes takes 121 us there, so gaps converge
/// to that.
const RATE: Rate = Rate::mbit(100);
const FLOWS: u32 = 20;
const BYTES: u64 = 1_000_000;
const RTT_MS: u64 = 20;
const SECONDS: u64 = 6;
/// Bound on the median error of gaps, in microseconds.
const BOUND_US: i32 = 15;
/// Number of connections, and bytes of each, in a turn that measures processor time.
const TRANSFERS: u32 = 200;
const TRANSFER: usize = 4_000_000;
/// Payload of a segment on Ethernet, without the timestamps option, which TCP_MAXSEG includes.
const MSS: u32 = 1448;
const TIMESTAMPS: u32 = 12;

#[derive(Debug, Serialize)]
struct Figures {
    /// Excess of gaps over the requested ones.
    late_p10_us: Spread,
    late_p50_us: Spread,
    late_p90_us: Spread,
    late_p99_us: Spread,
    gaps: u64,
    asked_p50_us: Spread,
    asked_p99_us: Spread,
    sent_p50_us: Spread,
    sent_p99_us: Spread,
    /// Processor time of both ends for a segment of 1448 bytes over the loopback, and for a returning ACK.
    cubic_ns: Spread,
    chirp_ns: Spread,
    ratio: Spread,
    cubic_ack_ns: Spread,
    chirp_ack_ns: Spread,
    ack_ratio: Spread,
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
        "gaps of weir_chirp at {RATE} and {RTT_MS} ms, {} of them (us)\n          p50, p99\n  \
         asked   {:.0}, {:.0}\n  sent    {:.0}, {:.0}\n\n\
         longer than asked for by (us; must be within {BOUND_US} at the median)\n  p10 {:.0}\n  p50 {:.0}\n  p90 {:.0}\n  p99 {:.0}\n  {}\n",
        figures.gaps,
        figures.asked_p50_us,
        figures.asked_p99_us,
        figures.sent_p50_us,
        figures.sent_p99_us,
        figures.late_p10_us,
        figures.late_p50_us,
        figures.late_p90_us,
        figures.late_p99_us,
        verdict(holds)
    );
    println!(
        "processor time of both ends over the loopback, connections of {TRANSFER} bytes, start included (ns)\n\
         {:21}for {MSS} bytes sent, for an ACK received\n  \
         cubic              {:.0}, {:.0}\n  weir_chirp         {:.0}, {:.0}\n  ratio              {:.2}, {:.2}",
        "", figures.cubic_ns, figures.cubic_ack_ns, figures.chirp_ns, figures.chirp_ack_ns, figures.ratio, figures.ack_ratio
    );
    write(common, &figures)
}

fn figures(common: &Common) -> Result<Figures, String> {
    let [mut late, mut asked, mut sent] = [const { vec![] }; 3];
    let (mut cubic, mut chirping) = (vec![], vec![]);
    for _ in 0..common.runs {
        let before = counts()?;
        measure(&gap_plan(common.seconds.unwrap_or(SECONDS)), &options()?)?;
        let after = counts()?;
        late.push(since(&after.late, &before.late));
        asked.push(since(&after.asked, &before.asked));
        sent.push(since(&after.sent, &before.sent));
        cubic.push(cost("cubic")?);
        chirping.push(cost("weir_chirp")?);
    }
    let at = |turns: &[Vec<(i32, u64)>], percent| {
        Spread::of(turns.iter().map(|turn| quantile(turn, percent).into()).collect())
    };
    let [sent_by, acked_by] = [|c: &Cost| c.segment_ns, |c: &Cost| c.ack_ns]
        .map(|part| [&cubic, &chirping].map(|turns| turns.iter().map(part).collect::<Vec<f64>>()));
    Ok(Figures {
        late_p10_us: at(&late, 10),
        late_p50_us: at(&late, 50),
        late_p90_us: at(&late, 90),
        late_p99_us: at(&late, 99),
        gaps: late.iter().flatten().map(|(_, n)| n).sum(),
        asked_p50_us: at(&asked, 50),
        asked_p99_us: at(&asked, 99),
        sent_p50_us: at(&sent, 50),
        sent_p99_us: at(&sent, 99),
        ratio: Spread::ratio(&sent_by[1], &sent_by[0]),
        ack_ratio: Spread::ratio(&acked_by[1], &acked_by[0]),
        cubic_ns: Spread::of(sent_by[0].clone()),
        chirp_ns: Spread::of(sent_by[1].clone()),
        cubic_ack_ns: Spread::of(acked_by[0].clone()),
        chirp_ack_ns: Spread::of(acked_by[1].clone()),
    })
}

fn counts() -> Result<chirp::Gaps, String> {
    chirp::gaps().map_err(|e| e.to_string())
}

/// Returns the counts between two readings.
fn since(after: &[(i32, u64)], before: &[(i32, u64)]) -> Vec<(i32, u64)> {
    after.iter().zip(before).map(|(a, b)| (a.0, a.1 - b.1)).collect()
}

/// Returns the nearest rank: the smallest value that at least this percentage does not exceed.
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

/// Returns a plan of consecutive flows, each long enough for its start phase.
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

/// Processor time of this process's threads, for both ends of connections over the loopback, in nanoseconds.
struct Cost {
    /// Time for [`MSS`] bytes sent.
    segment_ns: f64,
    /// Time for an ACK received.
    ack_ns: f64,
}

fn cost(cc: &str) -> Result<Cost, String> {
    let fail = |e: std::io::Error| format!("{cc} over the loopback: {e}");
    let (before, mut acks) = (cpu_ns(), 0);
    for _ in 0..TRANSFERS {
        acks += u64::from(transfer(cc).map_err(fail)?);
    }
    let spent = (cpu_ns() - before) as f64;
    let segments = f64::from(TRANSFERS) * TRANSFER as f64 / f64::from(MSS);
    Ok(Cost { segment_ns: spent / segments, ack_ns: spent / acks.max(1) as f64 })
}

/// Runs a connection and returns the number of segments that came back.
fn transfer(cc: &str) -> std::io::Result<u32> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_tcp_mss(MSS + TIMESTAMPS)?;
    socket.set_tcp_congestion(cc.as_bytes())?;
    socket.connect(&SocketAddr::from((Ipv4Addr::LOCALHOST, listener.local_addr()?.port())).into())?;
    let mut sender = TcpStream::from(socket);
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
    sender.shutdown(std::net::Shutdown::Write)?;
    reader.join().expect("it does not panic")?;
    Ok(tcp_info(sender.as_fd())?.segs_in)
}

/// Returns the processor time of this process so far, in user and kernel mode.
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
