//! The last 24 hours of each thing, in steps of five minutes.

use crate::result::traffic::{Kind, Load, Traffic};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Length of a step.
pub const STEP: Duration = Duration::from_secs(300);
/// Steps of 24 hours.
const STEPS: usize = 288;
/// Things with a history, at most: memory is bounded whatever addresses and lists do.
const MOST: usize = 50_000;

/// Values of a step, in 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Step {
    down_kbps: u32,
    up_kbps: u32,
    /// Round-trip times in units of 100 µs.
    wan_p50: u16,
    wan_p99: u16,
    lan_p99: u16,
    /// Packets sent again, of a million, divided by 16.
    resent: u16,
}

/// Bytes that the history of a thing takes.
pub const BYTES: usize = STEPS * size_of::<Step>();

const _: () = assert!(BYTES <= 8_000);

/// Counters of both directions at the last step.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    down: u64,
    up: u64,
    packets: u64,
    resent: u64,
}

/// History of one thing.
#[derive(Debug, Default)]
struct Past {
    steps: VecDeque<Step>,
    last: Option<Counted>,
}

/// Histories of all things.
#[derive(Debug, Default)]
pub struct History {
    past: HashMap<(Kind, String), Past>,
    /// Time of the last step since the beginning.
    last: Option<Duration>,
}

/// History of a thing as the API gives it; the oldest step comes first.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Told {
    /// Length of a step in seconds.
    pub step_s: u64,
    /// Average rates.
    pub down_bps: Vec<u64>,
    /// See `down_bps`.
    pub up_bps: Vec<u64>,
    /// Round-trip times at the end of the step; 0 without samples.
    pub rtt_wan_p50_us: Vec<u64>,
    /// See `rtt_wan_p50_us`.
    pub rtt_wan_p99_us: Vec<u64>,
    /// See `rtt_wan_p50_us`.
    pub rtt_lan_p99_us: Vec<u64>,
    /// Packets sent again, of a million.
    pub resent_ppm: Vec<u64>,
}

/// Both directions of a thing.
#[derive(Clone, Copy, Default)]
struct Both<'a> {
    down: Option<&'a Load>,
    up: Option<&'a Load>,
}

impl Both<'_> {
    fn counted(&self) -> Counted {
        let bytes = |load: Option<&Load>| load.map_or(0, |load| load.bytes);
        let sum = |of: fn(&Load) -> u64| [self.down, self.up].into_iter().flatten().map(of).sum();
        Counted {
            down: bytes(self.down),
            up: bytes(self.up),
            packets: sum(|load| load.packets),
            resent: sum(|load| load.retransmitted_packets),
        }
    }

    /// The direction with more samples tells the round-trip times.
    fn times(&self) -> [u16; 3] {
        let loads = [self.down, self.up].into_iter().flatten();
        let told = loads.max_by_key(|load| load.rtt_wan_us.samples + load.rtt_lan_us.samples);
        let times =
            told.map_or([0; 3], |load| [load.rtt_wan_us.p50, load.rtt_wan_us.p99, load.rtt_lan_us.p99]);
        times.map(|us| us.div_ceil(100).min(u16::MAX.into()) as u16)
    }
}

fn kbps(bytes: u64, time: Duration) -> u32 {
    (bytes as f64 * 8.0 / 1e3 / time.as_secs_f64()).round().min(f64::from(u32::MAX)) as u32
}

impl Past {
    fn step(&mut self, both: &Both<'_>, time: Duration) {
        let now = both.counted();
        let Some(last) = self.last.replace(now) else { return };
        let [wan_p50, wan_p99, lan_p99] = both.times();
        // Counters begin at 0 with a new gateway.
        let more = |now: u64, last: u64| if now < last { now } else { now - last };
        let (packets, resent) = (more(now.packets, last.packets), more(now.resent, last.resent));
        let ppm = (resent * 1_000_000).checked_div(packets).unwrap_or(0).min(1_000_000);
        let step = Step {
            down_kbps: kbps(more(now.down, last.down), time),
            up_kbps: kbps(more(now.up, last.up), time),
            wan_p50,
            wan_p99,
            lan_p99,
            resent: ppm.div_ceil(16) as u16,
        };
        if self.steps.len() == STEPS {
            self.steps.pop_front();
        }
        self.steps.push_back(step);
    }
}

impl History {
    /// Notes all rows of a report at this time since the beginning, if a step is over.
    pub fn look(&mut self, rows: &[Traffic], now: Duration) {
        let time = self.last.map_or(STEP, |last| now.saturating_sub(last));
        if time < STEP {
            return;
        }
        self.last = Some(now);
        let mut things: HashMap<(Kind, &str), Both<'_>> = HashMap::new();
        for row in rows.iter().filter(|row| row.kind != Kind::Address) {
            let both = things.entry((row.kind, &row.name)).or_default();
            *(if row.direction == "in" { &mut both.down } else { &mut both.up }) = Some(&row.load);
        }
        // What is in no list any more has no history.
        self.past.retain(|(kind, name), _| things.contains_key(&(*kind, name.as_str())));
        for ((kind, name), both) in things {
            if self.past.len() < MOST || self.past.contains_key(&(kind, name.to_owned())) {
                self.past.entry((kind, name.to_owned())).or_default().step(&both, time);
            }
        }
    }

    /// Returns the history of a thing.
    pub fn of(&self, kind: Kind, name: &str) -> Told {
        let mut told = Told { step_s: STEP.as_secs(), ..Told::default() };
        for step in self.past.get(&(kind, name.to_owned())).into_iter().flat_map(|past| &past.steps) {
            told.down_bps.push(u64::from(step.down_kbps) * 1_000);
            told.up_bps.push(u64::from(step.up_kbps) * 1_000);
            told.rtt_wan_p50_us.push(u64::from(step.wan_p50) * 100);
            told.rtt_wan_p99_us.push(u64::from(step.wan_p99) * 100);
            told.rtt_lan_p99_us.push(u64::from(step.lan_p99) * 100);
            told.resent_ppm.push(u64::from(step.resent) * 16);
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::quality::Latency;

    fn row(direction: &str, bytes: u64, packets: u64, resent: u64) -> Traffic {
        let mut load = Load { bytes, packets, retransmitted_packets: resent, ..Load::default() };
        load.rtt_wan_us = Latency { samples: 5, p50: 20_000, p90: 0, p99: 41_950 };
        let (kind, name) = (Kind::Customer, "17".into());
        Traffic { kind, name, direction: direction.into(), load, ..Traffic::default() }
    }

    #[test]
    fn a_step_has_the_average_of_five_minutes() {
        let mut history = History::default();
        history.look(&[row("in", 1_000, 10, 0), row("out", 500, 0, 0)], Duration::from_secs(10));
        history.look(&[row("in", 9, 9, 9)], Duration::from_secs(200)); // no step is over
        let later = [row("in", 75_001_000, 50_010, 500), row("out", 500, 0, 0)];
        history.look(&later, Duration::from_secs(310));
        // 75 MB in 300 s are 2 Mbit/s; 500 of 50,000 packets are 1 %.
        let told = history.of(Kind::Customer, "17");
        assert_eq!((told.down_bps, told.up_bps, told.resent_ppm), (vec![2_000_000], vec![0], vec![10_000]));
        assert_eq!((told.rtt_wan_p50_us, told.rtt_wan_p99_us), (vec![20_000], vec![42_000]));
        assert_eq!(told.rtt_lan_p99_us, [0]);
        assert_eq!(history.of(Kind::Site, "17").down_bps, [0; 0]);
    }

    #[test]
    fn a_day_is_kept_and_no_more() {
        let mut history = History::default();
        for step in 0..400u64 {
            history.look(&[row("in", step * step * 37_500, 0, 0)], STEP * step as u32);
        }
        let told = history.of(Kind::Customer, "17").down_bps;
        // From one step to the next, 2n + 1 kbit/s.
        assert_eq!((told.len(), told[287], told[0]), (288, 797_000, 223_000));
        history.look(&[], STEP * 400);
        assert_eq!(history.of(Kind::Customer, "17").down_bps, [0; 0]);
    }

    #[test]
    fn counters_that_begin_anew_count_from_nothing() {
        let mut history = History::default();
        history.look(&[row("in", 1 << 40, 1 << 30, 1 << 20)], Duration::ZERO);
        history.look(&[row("in", 37_500_000, 0, 0)], STEP);
        assert_eq!(history.of(Kind::Customer, "17").down_bps, [1_000_000]);
    }
}
