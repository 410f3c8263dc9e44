//! Evenly spaced UDP packets with their sending times, which measure a path's delay.
//!
//! The sink reports two delays. The first ends at the kernel's receive timestamp: the sender's system call,
//! the path and its emulator. The second ends at the application and adds the sink's wake-up. A measurement
//! of the same path without its emulator gives the probe's own part of either.

use super::spec::ProbeSpec;
use super::sys::{set_option, Batch, Message};
use super::{clock, Control, ProbeReport, Quantiles};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use weir_core::time::Time;

const MAGIC: u64 = u64::from_be_bytes(*b"weir-udp");
/// Lateness above which a sender skips packets instead of sending a burst.
const TOO_LATE_NS: u64 = 10_000_000;

fn socket(spec: &ProbeSpec) -> Result<Socket, String> {
    let socket = Socket::new(Domain::for_address(spec.local), Type::DGRAM, Some(Protocol::UDP))
        .map_err(|e| format!("probe `{}`: socket: {e}", spec.id))?;
    let fault = |e| format!("probe `{}`: {} to {}: {e}", spec.id, spec.local, spec.remote);
    socket.bind(&spec.local.into()).map_err(fault)?;
    socket.connect(&spec.remote.into()).map_err(fault)?;
    Ok(socket)
}

/// The sending end of a probe.
pub struct ProbeSource {
    spec: ProbeSpec,
    socket: Socket,
}

impl ProbeSource {
    /// Opens the probe's socket.
    pub fn open(spec: &ProbeSpec) -> Result<ProbeSource, String> {
        let socket = socket(spec)?;
        let buffer = 8 << 20;
        let _ = set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, buffer);
        Ok(ProbeSource { spec: spec.clone(), socket })
    }

    /// Sends until the probe's time is up, or until `control` requests a stop.
    pub fn run(self, epoch: Time, control: &Control) -> ProbeReport {
        precise_sleep();
        let mut report = ProbeReport { id: self.spec.id.clone(), ..ProbeReport::default() };
        let mut packet = vec![0u8; usize::from(self.spec.size)];
        let mut lateness = Vec::<u64>::new();
        let interval = |n: u64| (u128::from(n) * 1_000_000_000 / u128::from(self.spec.pps)) as u64;
        let first = |n: u64| n - n % u64::from(self.spec.burst.max(1));
        let due = |n: u64| epoch.as_nanos() + self.spec.start_ns + interval(first(n));
        let total = {
            let span = u128::from(self.spec.until_ns - self.spec.start_ns);
            (span * u128::from(self.spec.pps) / 1_000_000_000) as u64
        };
        let mut next = 0;
        while next < total && !control.stop_requested() {
            sleep_until(due(next));
            let now = clock::monotonic().as_nanos();
            while next < total && due(next) + TOO_LATE_NS < now {
                next += 1;
                report.skipped += 1;
            }
            // Packets are sent singly, because a packet in a batch would wait for the others.
            while next < total && due(next) <= now {
                let stamp = clock::monotonic().as_nanos();
                lateness.push(stamp - due(next));
                write_header(&mut packet, next, stamp);
                next += 1;
                match self.socket.send(&packet) {
                    Ok(_) => report.sent += 1,
                    // The peer is absent, or the path is full.
                    Err(e) if matches!(e.raw_os_error(), Some(libc::ECONNREFUSED | libc::ENOBUFS)) => {
                        report.skipped += 1;
                    }
                    Err(e) => {
                        report.error = Some(format!("send: {e}"));
                        report.lateness_ns = Quantiles::of(&mut lateness);
                        return report;
                    }
                }
            }
        }
        report.lateness_ns = Quantiles::of(&mut lateness);
        report
    }
}

fn write_header(packet: &mut [u8], number: u64, sent: u64) {
    packet[..8].copy_from_slice(&MAGIC.to_be_bytes());
    packet[8..16].copy_from_slice(&number.to_be_bytes());
    packet[16..24].copy_from_slice(&sent.to_be_bytes());
}

/// Returns `(number, sent)` of a packet of the probe, `None` for others.
fn read_header(packet: &[u8]) -> Option<(u64, u64)> {
    let word = |i: usize| packet.get(i..i + 8)?.try_into().ok().map(u64::from_be_bytes);
    (word(0)? == MAGIC).then_some((word(8)?, word(16)?))
}

/// The receiving end of a probe.
pub struct ProbeSink {
    spec: ProbeSpec,
    socket: Socket,
}

impl ProbeSink {
    /// Opens the probe's socket.
    pub fn open(spec: &ProbeSpec) -> Result<ProbeSink, String> {
        let socket = socket(spec)?;
        let fd = socket.as_fd();
        let set = set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
            .and_then(|()| socket.set_read_timeout(Some(Duration::from_millis(100))));
        set.map_err(|e| format!("probe `{}`: {e}", spec.id))?;
        let _ = set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 32 << 20);
        Ok(ProbeSink { spec: spec.clone(), socket })
    }

    /// Receives until no packet arrived for a second after the last was sent, until `stop_ns`, or until
    /// `control` requests a stop.
    pub fn run(self, epoch: Time, stop_ns: u64, control: &Control) -> ProbeReport {
        precise_sleep();
        let mut tally = Tally::default();
        let mut batch = Batch::new();
        let offset = clock::realtime_offset();
        let last_sent = epoch.as_nanos() + self.spec.until_ns;
        let stop = epoch.as_nanos() + stop_ns;
        let mut last_heard = 0;
        let mut report = ProbeReport { id: self.spec.id.clone(), ..ProbeReport::default() };
        loop {
            let received = batch.receive(self.socket.as_fd());
            let now = clock::monotonic().as_nanos();
            match received {
                Ok(_) => {
                    last_heard = now;
                    batch.messages().for_each(|m| tally.take(&m, now, offset));
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(e) => {
                    report.error = Some(format!("receive: {e}"));
                    break;
                }
            }
            if now >= stop
                || control.stop_requested()
                || now > last_sent.max(last_heard).saturating_add(1_000_000_000)
            {
                break;
            }
        }
        report.received = tally.received;
        report.reordered = tally.reordered;
        report.delay_ns = Quantiles::of(&mut tally.kernel);
        report.delay_app_ns = Quantiles::of(&mut tally.app);
        if let Some(gap) = self.spec.gap_ns {
            let gaps = Gaps::of(&tally.stamps, gap);
            (report.gap_error_ns, report.gaps_ns, report.gaps_took_ns) = (gaps.errors, gaps.all, gaps.took);
        }
        report
    }
}

/// Counts and samples of a sink.
#[derive(Default)]
struct Tally {
    received: u64,
    reordered: u64,
    highest: Option<u64>,
    kernel: Vec<u64>,
    app: Vec<u64>,
    stamps: Vec<i128>,
}

/// Number of initial packets whose gaps are ignored, while the queue of the pacing device fills.
const FIRST: usize = 100;

/// Gaps between timestamps.
struct Gaps {
    /// Deviations from the expected gap.
    errors: Option<Quantiles>,
    all: Option<Quantiles>,
    /// Sum of the gaps in nanoseconds.
    took: u64,
}

impl Gaps {
    /// Computes the gaps between these timestamps, which should be `gap` apart.
    fn of(stamps: &[i128], gap: u64) -> Gaps {
        let stamps = stamps.get(FIRST..).unwrap_or_default();
        // A clock that is set back counts as a gap of zero.
        let mut all: Vec<u64> = stamps.windows(2).map(|pair| (pair[1] - pair[0]).max(0) as u64).collect();
        let mut errors: Vec<u64> = all.iter().map(|found| found.abs_diff(gap)).collect();
        Gaps { errors: Quantiles::of(&mut errors), took: all.iter().sum(), all: Quantiles::of(&mut all) }
    }
}

impl Tally {
    fn take(&mut self, message: &Message<'_>, now: u64, offset: i128) {
        let Some((number, sent)) = read_header(message.bytes) else { return };
        self.received += 1;
        if self.highest.is_some_and(|h| number < h) {
            self.reordered += 1;
        }
        self.highest = self.highest.max(Some(number));
        self.app.push(now.saturating_sub(sent));
        if let Some(stamp) = message.stamp {
            self.kernel.push(u64::try_from(stamp - offset - i128::from(sent)).unwrap_or(0));
            self.stamps.push(stamp);
        }
    }
}

/// Sets the timer slack to its minimum; the default adds 50 µs to every sleep.
fn precise_sleep() {
    // Failing costs only precision, and the report shows it.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

fn sleep_until(ns: u64) {
    let at = rustix::thread::Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    };
    while let Err(rustix::io::Errno::INTR) =
        rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &at)
    {}
}

#[cfg(test)]
mod tests {
    use super::super::spec::PROBE_HEADER;
    use super::*;

    #[test]
    fn headers_survive() {
        let mut p = [0; 40];
        write_header(&mut p, 7, 99);
        assert_eq!(read_header(&p), Some((7, 99)));
        p[0] ^= 1;
        assert_eq!(read_header(&p), None);
        assert_eq!(read_header(&[0; 5]), None);
    }

    #[test]
    fn gaps_are_compared_with_what_they_are_to_be() {
        let mut stamps = vec![0; FIRST];
        stamps.extend([1_000, 2_010, 2_990]);
        let Gaps { errors, all, took } = Gaps::of(&stamps, 1_000);
        assert_eq!((errors.map(|e| (e.min, e.max, e.samples)), took), (Some((10, 20, 2)), 1_990));
        assert_eq!(all.map(|all| (all.min, all.max)), Some((980, 1_010)));
        let none = Gaps::of(&[5], 1);
        assert_eq!((none.errors, none.all, none.took), (None, None, 0));
    }

    #[test]
    fn reordering_and_delay() {
        let mut t = Tally::default();
        for (number, sent) in [(0, 100), (2, 120), (1, 110)] {
            let mut bytes = [0; PROBE_HEADER];
            write_header(&mut bytes, number, sent);
            t.take(&Message { bytes: &bytes, stamp: Some(1000 + 150) }, 160, 1000);
        }
        assert_eq!((t.received, t.reordered), (3, 1));
        assert_eq!((t.kernel, t.app), (vec![50, 30, 40], vec![60, 40, 50]));
    }
}
