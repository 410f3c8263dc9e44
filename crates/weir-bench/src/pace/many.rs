//! Five to a hundred thousand classes of different rates on one line, in virtual time: the errors of their
//! rates, and their bursts.

use serde::Serialize;
use weir_core::frame::{Charge, Frames, Waiting};
use weir_core::node::Cx;
use weir_core::pace::{Backend, Class, Counts, Pacer, Port, Probe, Size, Slot, Target};
use weir_core::queue::{self, Kind, QueueLimit};
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};

/// Numbers of classes, with the rate of the line in Gb/s.
const CASES: [(u64, u64); 5] = [(5, 1), (100, 1), (10_000, 10), (100_000, 10), (100_000, 100)];
const FULL: Charge = Charge { packets: 1, bytes: 1514 };
const OVERHEAD: u16 = 14;
/// Number of measured packets of the average class.
const PACKETS: u64 = 100;
/// Total rate of the classes in percent of the line.
const LOAD: u64 = 95;

/// Results for a number of classes.
#[derive(Debug, Serialize)]
pub struct Many {
    classes: u64,
    line_bps: u64,
    lowest_bps: u64,
    highest_bps: u64,
    packets: u64,
    /// Largest error of a class's rate over the whole time, as a fraction.
    error_max: f64,
    /// Largest difference between the packets that a class sent and those that its rate allows.
    packets_off_max: f64,
    /// Smallest token bucket, in packets, that a class's traffic conforms to: of the worst class, and on
    /// average.
    burst_max: f64,
    burst_mean: f64,
    /// Most consecutive packets of a class without a gap.
    together_max: u64,
}

/// Prints a row for each number of classes.
pub fn table() -> Vec<Many> {
    println!(
        "full packets of classes with rates from one part to a hundred, {LOAD} % of the line together, counted on the wire; every class is backlogged\n"
    );
    println!(
        "{:>8} {:>9} {:>21} {:>10}  {:>12} {:>12} {:>9} {:>9} {:>9}",
        "classes", "line", "rates", "packets", "rate error", "packets off", "burst", "mean", "together"
    );
    let row = |(classes, gbit)| {
        let m = many(classes, Rate::mbit(gbit * 1000));
        println!(
            "{:>8} {:>9} {:>21} {:>10}  {:>12.2e} {:>12.3} {:>9.3} {:>9.3} {:>9}",
            m.classes,
            format!("{gbit} Gb/s"),
            format!("{:.3}-{:.3} Mb/s", m.lowest_bps as f64 / 1e6, m.highest_bps as f64 / 1e6),
            m.packets,
            m.error_max,
            m.packets_off_max,
            m.burst_max,
            m.burst_mean,
            m.together_max,
        );
        m
    };
    CASES.into_iter().map(row).collect()
}

/// Returns the rates of `n` classes: shares of 1 to 100, in a mixed order.
fn rates(n: u64, line: Rate) -> Vec<Rate> {
    let part = |i: u64| 1 + (i * 7919) % 100;
    let all: u64 = (0..n).map(part).sum();
    let one = line.bps() / 100 * LOAD / all;
    (0..n).map(|i| Rate::from_bps((one * part(i)).max(8_000)).unwrap_or(line)).collect()
}

fn many(classes: u64, line: Rate) -> Many {
    let rates = rates(classes, line);
    let class = |&rate: &Rate| {
        let fifo = queue::Config { limit: QueueLimit::Unlimited, kind: Kind::Fifo, tins: None };
        (Class { target: Target::Rate(rate), counts: Counts::Wire, backend: Backend::Gap }, fifo)
    };
    let all: Vec<_> = rates.iter().map(class).collect();
    let port = Port { line: Some(line), runs: true, ..Port::default() };
    let mut run = Run {
        pacer: Pacer::new(port, &all, OVERHEAD).unwrap_or_else(|why| panic!("{why}")),
        frames: Frames::new(2 * classes as usize + 16, 128, 0),
        probes: rates.iter().map(|&rate| Probe::new(rate, Counts::Wire, Some(line))).collect(),
        from: Time::MAX,
        now: Time::ZERO,
    };
    run.start(&rates);
    // The burst of simultaneous starts is not measured.
    run.from = run.now + Duration::from_millis(100);
    let average = line.bps() / 100 * LOAD / classes;
    let lasts = Rate::from_bps(average).unwrap_or(line).time_for(PACKETS * 1538);
    run.until(run.from + lasts);
    run.found(classes, line, &rates)
}

struct Run {
    pacer: Pacer,
    frames: Frames,
    probes: Vec<Probe>,
    /// Start of the measured time; earlier packets are ignored.
    from: Time,
    now: Time,
}

impl Run {
    fn push(&mut self, class: usize) {
        let frame = self.frames.receive_copy(&[0; 64], 1514, self.now).expect("two frames for each class");
        let waiting = Waiting { frame: self.frames.park(frame), charge: FULL, since: self.now };
        self.pacer.push(&mut Cx { now: self.now, frames: &mut self.frames }, Some(class), waiting);
    }

    /// Starts the classes one after the other, each at some time within its first interval.
    fn start(&mut self, rates: &[Rate]) {
        let phase = |(i, rate): (usize, &Rate)| {
            let interval = rate.time_for(1538).as_nanos();
            (Time::from_nanos((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) % interval.max(1)), i)
        };
        let mut begins: Vec<(Time, usize)> = rates.iter().enumerate().map(phase).collect();
        begins.sort_unstable();
        for (at, class) in begins {
            self.until(at);
            self.now = at;
            self.push(class);
            self.push(class);
        }
    }

    /// Sends all packets due up to this time, and enqueues a new packet for each one sent.
    fn until(&mut self, end: Time) {
        while let Some(due) = self.pacer.due().filter(|&due| due <= end) {
            self.now = self.now.max(due);
            let slot = self.pacer.pop(&mut Cx { now: self.now, frames: &mut self.frames });
            let Some(Slot::Packet { class: Some(class), waiting, at }) = slot else { continue };
            if at >= self.from {
                self.probes[class].record(at, Size::of(waiting.charge, OVERHEAD, 1514));
            }
            let frame = self.frames.unpark(waiting.frame);
            self.frames.absorb(frame);
            self.push(class);
        }
    }

    fn found(&self, classes: u64, line: Rate, rates: &[Rate]) -> Many {
        let bps = |probe: &Probe| probe.millibits().map(|bits| bits as f64 / 1000.0);
        let off = |(probe, rate): (&Probe, &Rate)| Some((bps(probe)? / rate.bps() as f64 - 1.0).abs());
        let seen = || self.probes.iter().zip(rates);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let burst = |probe: &Probe| probe.burst_millipackets() as f64 / 1000.0;
        let packets_off =
            |(probe, rate): (&Probe, &Rate)| Some(off((probe, rate))? * (probe.packets() - 1) as f64);
        Many {
            classes,
            line_bps: line.bps(),
            lowest_bps: rates.iter().min().map_or(0, |rate| rate.bps()),
            highest_bps: rates.iter().max().map_or(0, |rate| rate.bps()),
            packets: self.probes.iter().map(Probe::packets).sum(),
            error_max: most(&mut seen().filter_map(off)),
            packets_off_max: most(&mut seen().filter_map(packets_off)),
            burst_max: most(&mut self.probes.iter().map(burst)),
            burst_mean: self.probes.iter().map(burst).sum::<f64>() / classes as f64,
            together_max: self.probes.iter().map(Probe::most_together).max().unwrap_or(0),
        }
    }
}
