//! Tables of what a running gateway carries: a row for each thing, with both directions.

use super::cells::{cut, mbit, megabytes, WIDTH};
use super::grid::{Column, Grid};
use crate::result::traffic::{Kind, Load, Traffic};
use std::collections::HashMap;

/// Longest name that a table shows whole. Names for people have what is left of a line.
const NAME: usize = 16;
/// Cell of what is not counted.
const UNKNOWN: &str = "-";
/// Longest address.
const ADDRESS: usize = 39;

/// A thing in both directions.
#[derive(Clone, Copy)]
pub struct Thing<'a> {
    /// Kind of thing.
    pub kind: Kind,
    /// Name in requests.
    pub name: &'a str,
    /// Name for people.
    pub title: &'a str,
    /// Traffic that comes in by the interface.
    pub down: Option<&'a Load>,
    /// Traffic that leaves by it.
    pub up: Option<&'a Load>,
    /// True for a customer who is off.
    pub off: bool,
}

impl Thing<'_> {
    /// Returns the counters of both directions.
    pub fn loads(&self) -> impl Iterator<Item = &Load> {
        self.down.into_iter().chain(self.up)
    }

    /// Returns a counter's sum over both directions.
    pub fn sum(&self, of: impl Fn(&Load) -> u64) -> u64 {
        self.loads().map(of).sum()
    }

    /// Returns the share that ACKs cannot slow, in percent of the bytes that are told apart; `None` if there
    /// are bytes and none is told apart.
    pub fn unresponsive_percent(&self) -> Option<f64> {
        match (self.sum(Load::told_apart), self.sum(|load| load.bytes)) {
            (0, 0) => Some(0.0),
            (0, _) => None,
            (bytes, _) => Some(self.sum(|load| load.unresponsive_bytes) as f64 * 100.0 / bytes as f64),
        }
    }
}

/// Joins the rows of each thing of a kind, in the order of the first one.
pub fn things(traffic: &[Traffic], kind: Kind) -> Vec<Thing<'_>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut things: Vec<Thing<'_>> = Vec::new();
    for row in traffic.iter().filter(|row| row.kind == kind) {
        let place = *places.entry(&row.name).or_insert(things.len());
        if place == things.len() {
            things.push(Thing { kind, name: &row.name, title: "", down: None, up: None, off: row.off });
        }
        if !row.title.is_empty() {
            things[place].title = &row.title;
        }
        let way = if row.direction == "in" { &mut things[place].down } else { &mut things[place].up };
        *way = Some(&row.load);
    }
    things
}

/// Builds the table of the rates of a kind of things.
pub(super) fn rates(traffic: &[Traffic], kind: Kind) -> Grid {
    let things = things(traffic, kind);
    let narrow = of_width(&things, kind, 0);
    let (heads, rows) = narrow.lines();
    let width = heads.iter().chain(&rows).map(|line| line.chars().count()).max().unwrap_or(0);
    of_width(&things, kind, WIDTH.saturating_sub(width + 2))
}

/// Builds the table with names for people of at most this many characters, or without any.
fn of_width(things: &[Thing<'_>], kind: Kind, title: usize) -> Grid {
    let mut grid = Grid::new(vec![
        Column::words(kind.name()),
        Column::words("name"),
        Column::numbers("down", "Mbit/s"),
        Column::numbers("of", "Mbit/s"),
        Column::numbers("up", "Mbit/s"),
        Column::numbers("of", "Mbit/s"),
        Column::numbers("other", "%"),
        Column::numbers("dropped", "packets"),
        Column::numbers("flows", ""),
    ]);
    let rate = |load: Option<&Load>| load.map_or(String::new(), |load| mbit(load.bps));
    let target = |thing: &Thing<'_>, load: Option<&Load>| match load {
        _ if thing.off => "off".into(),
        Some(load) if load.target_bps > 0 => mbit(load.target_bps as f64),
        _ => String::new(),
    };
    // What no class takes is nothing in most gateways, and idle addresses are many.
    let is_there = |thing: &&Thing<'_>| match kind {
        Kind::Unlisted => thing.sum(|load| load.bytes) > 0,
        Kind::Address => thing.loads().any(Load::is_active),
        _ => true,
    };
    let name = if kind == Kind::Address { ADDRESS } else { NAME };
    for thing in things.iter().filter(is_there) {
        let counts = if matches!(kind, Kind::Unlisted | Kind::Address) {
            [const { String::new() }; 3]
        } else {
            [
                percent(thing.unresponsive_percent()),
                short(thing.sum(|load| load.dropped_packets)),
                thing.sum(|load| load.active_flows).to_string(),
            ]
        };
        let shown = if title == 0 { String::new() } else { cut(thing.title, title) };
        let rates = [rate(thing.down), target(thing, thing.down), rate(thing.up), target(thing, thing.up)];
        grid.row([cut(thing.name, name), shown].into_iter().chain(rates).chain(counts).collect());
    }
    grid
}

/// Builds the table of how the traffic of things keeps to their rates, if anything is special about any.
pub(super) fn ways(traffic: &[Traffic]) -> Grid {
    let mut grid = Grid::new(vec![
        Column::words("kept to the rate"),
        Column::words("way"),
        Column::numbers("TCP held", "MB"),
        Column::numbers("passed", "MB"),
        Column::numbers("QUIC", "MB"),
        Column::numbers("other", "MB"),
        Column::numbers("queued", "MB"),
        Column::numbers("dropped", "packets"),
        Column::numbers("dropped", "MB"),
    ]);
    for row in traffic.iter().filter(|row| !matches!(row.kind, Kind::Link | Kind::Unlisted | Kind::Address)) {
        let load = &row.load;
        if load.tcp_passed_bytes + load.unresponsive_bytes + load.dropped_packets == 0 {
            continue;
        }
        let other = load.unresponsive_bytes - load.quic_bytes.min(load.unresponsive_bytes);
        let bytes = [load.tcp_controlled_bytes, load.tcp_passed_bytes, load.quic_bytes, other];
        let is_told_apart = load.told_apart() > 0 || load.bytes == 0;
        let bytes = bytes.map(|bytes| if is_told_apart { megabytes(bytes) } else { String::new() });
        let queued = if load.queued_bytes > 0 { megabytes(load.queued_bytes) } else { String::new() };
        let names = [cut(&row.name, NAME), cut(&row.direction, 3)];
        let dropped = [short(load.dropped_packets), megabytes(load.dropped_bytes)];
        grid.row(names.into_iter().chain(bytes).chain([queued]).chain(dropped).collect());
    }
    grid
}

/// Builds the table of the quality of TCP, of things with samples.
pub(super) fn quality(traffic: &[Traffic]) -> Grid {
    let mut grid = Grid::new(vec![
        Column::words("quality of TCP"),
        Column::words("way"),
        Column::numbers("WAN p50", "ms"),
        Column::numbers("p99", "ms"),
        Column::numbers("LAN p50", "ms"),
        Column::numbers("p99", "ms"),
        Column::numbers("resent", "packets"),
        Column::numbers("web", "0-100"),
        Column::numbers("call", ""),
        Column::numbers("game", ""),
    ]);
    for row in traffic {
        let Load { rtt_wan_us: wan, rtt_lan_us: lan, score, .. } = &row.load;
        if wan.samples + lan.samples == 0 {
            continue;
        }
        let times =
            [(wan.samples, wan.p50), (wan.samples, wan.p99), (lan.samples, lan.p50), (lan.samples, lan.p99)];
        let times = times.map(|(samples, us)| if samples > 0 { millis(us) } else { String::new() });
        let scores =
            score.map_or([const { String::new() }; 3], |s| [s.web, s.call, s.game].map(|n| n.to_string()));
        let names = [cut(&row.name, NAME), cut(&row.direction, 3)];
        let resent = [short(row.load.retransmitted_packets)];
        grid.row(names.into_iter().chain(times).chain(resent).chain(scores).collect());
    }
    grid
}

/// Formats a share in percent.
pub fn percent(share: Option<f64>) -> String {
    share.map_or(UNKNOWN.into(), |share| format!("{share:.0}"))
}

/// Formats microseconds as milliseconds.
pub fn millis(us: u64) -> String {
    match us {
        0 => String::new(),
        1..100_000 => format!("{:.1}", us as f64 / 1e3),
        _ => format!("{:.0}", us as f64 / 1e3),
    }
}

/// Formats a count in at most seven characters.
pub fn short(n: u64) -> String {
    match n {
        0..10_000_000 => n.to_string(),
        10_000_000..10_000_000_000 => format!("{}M", n / 1_000_000),
        10_000_000_000..10_000_000_000_000 => format!("{}G", n / 1_000_000_000),
        _ => format!("{}T", n / 1_000_000_000_000),
    }
}
