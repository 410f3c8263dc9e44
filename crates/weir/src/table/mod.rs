//! A run as text, for people: flows as iperf would list them, the gateway, the links, the checks, and
//! the paper's values beside ours. Plain ASCII unless names are not; no control characters but
//! newlines unless it goes to a terminal.

mod comparison;
mod grid;
mod links;
pub(crate) mod quantity;
mod runs;

pub use comparison::comparison;
pub use runs::runs;

use crate::expect;
use crate::plan::Plan;
use crate::result::{Counts, ExpectResult, FlowResult, RunResult, Status};
use grid::{Column, Grid};
use quantity::Unit;

/// With more flows than this, a group has one line instead of one for each flow.
const MOST_FLOWS: usize = 32;

/// The table of a run. `terminal` allows colours.
pub fn render(result: &RunResult, plan: &Plan, terminal: bool) -> String {
    let ink = Ink { terminal };
    let mut parts = vec![heading(result, plan, ink)];
    if result.flows.len() > MOST_FLOWS {
        parts.push(groups(result, plan, ink));
    } else {
        parts.push(flows(result, plan, ink));
    }
    parts.push(gateway(result, ink));
    parts.push(links::links(result, plan, ink));
    parts.push(checks(result, plan, ink));
    parts.push(reference(result, plan, ink));
    let parts: Vec<String> =
        parts.into_iter().filter(|p| !p.is_empty()).map(|lines| lines.join("\n") + "\n").collect();
    parts.join("\n")
}

type Lines = Vec<String>;

/// How words are set off.
#[derive(Clone, Copy)]
struct Ink {
    terminal: bool,
}

impl Ink {
    fn paint(self, code: &str, text: &str) -> String {
        if self.terminal {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_string()
        }
    }
    fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }
    fn good(self, text: &str) -> String {
        self.paint("32", text)
    }
    fn bad(self, text: &str) -> String {
        self.paint("1;31", text)
    }
    /// A grid with its heading set off.
    fn grid(self, grid: &Grid) -> Lines {
        let (heads, rows) = grid.lines();
        heads.iter().map(|h| self.bold(h)).chain(rows).collect()
    }
}

/// Text from a file: what a terminal would obey is made visible.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn heading(result: &RunResult, plan: &Plan, ink: Ink) -> Lines {
    let name = clean(&result.experiment);
    let title = if plan.title.is_empty() { String::new() } else { format!(": {}", clean(&plan.title)) };
    let status = match result.status {
        Status::Ok => ink.good("ok"),
        Status::Failed => ink.bad("FAILED"),
        Status::Interrupted => ink.bad("interrupted"),
    };
    let kernel = &result.made_by.kernel;
    let kernel = if kernel.is_empty() { String::new() } else { format!(", Linux {}", clean(kernel)) };
    let run = format!(
        "{}, seed {}{kernel}: {} s in {:.1} s, {} frames",
        result.world.name(),
        result.seed,
        seconds(result),
        result.wall_s,
        result.packets
    );
    vec![format!("{}{title}", ink.bold(&name)), format!("{run}, {status}")]
}

/// The time that the run covers, in seconds to the millisecond.
fn seconds(result: &RunResult) -> f64 {
    (result.duration_s * 1e3).round() / 1e3
}

/// The unit of all rates in a table, so that they can be compared at a glance: the name, and bits per
/// second in one of it.
fn rate_unit(rates: impl Iterator<Item = f64>) -> (&'static str, f64) {
    if rates.fold(0.0, f64::max) >= 1e6 {
        ("Mbit/s", 1e6)
    } else {
        ("kbit/s", 1e3)
    }
}

/// Rates of the flows of a run, and what they are set to.
fn rates(result: &RunResult) -> impl Iterator<Item = f64> + '_ {
    result.flows.iter().map(|f| f.goodput_bps.max(f.target_bps.unwrap_or(0) as f64))
}

/// `None` is an empty cell.
fn cell(v: Option<f64>, decimals: usize) -> String {
    v.map_or(String::new(), |v| format!("{v:.decimals$}"))
}

/// Microseconds as milliseconds; 0 says that nothing was measured.
fn ms(us: u64) -> Option<f64> {
    (us > 0).then_some(us as f64 / 1e3)
}

/// How far the goodput is from the target, in percent of it.
fn deviation(f: &FlowResult) -> Option<f64> {
    let target = f.target_bps.filter(|&t| t > 0)? as f64;
    Some((f.goodput_bps - target) / target * 100.0)
}

fn percent(v: Option<f64>) -> String {
    v.map_or(String::new(), |v| format!("{v:+.2}"))
}

/// Smallest and largest rate of the whole intervals; the first and the last may be cut.
fn interval_range(f: &FlowResult, plan: &Plan) -> Option<(f64, f64)> {
    let whole = plan.interval.as_secs_f64() * 0.999_999;
    let rates = f.intervals.iter().filter(|i| i.len_s >= whole).map(|i| i.bps);
    rates.fold(None, |range, bps| {
        let (low, high) = range.unwrap_or((bps, bps));
        Some((low.min(bps), high.max(bps)))
    })
}

/// The columns of what was measured, of a flow or a group.
fn measured(rate: &'static str) -> [Column; 11] {
    [
        Column::numbers("goodput", rate),
        Column::numbers("target", rate),
        Column::numbers("off", "%"),
        Column::numbers("min", rate),
        Column::numbers("max", rate),
        Column::numbers("rtt p50", "ms"),
        Column::numbers("p99", "ms"),
        Column::numbers("retr", ""),
        Column::numbers("rto", ""),
        Column::numbers("fct", "s"),
        Column::words("passed"),
    ]
}

fn flows(result: &RunResult, plan: &Plan, ink: Ink) -> Lines {
    let (name, unit) = rate_unit(rates(result));
    let rate = |bps: Option<f64>| cell(bps.map(|v| v / unit), 3);
    let who = [Column::words("flow"), Column::words("cc"), Column::words("class")];
    let mut grid = Grid::new(who.into_iter().chain(measured(name)).collect());
    for f in &result.flows {
        let range = interval_range(f, plan);
        grid.row(vec![
            clean(&f.id),
            clean(&f.cc),
            clean(&f.class),
            rate(Some(f.goodput_bps)),
            rate(f.target_bps.map(|t| t as f64)),
            percent(deviation(f)),
            rate(range.map(|r| r.0)),
            rate(range.map(|r| r.1)),
            cell(ms(f.rtt_us.p50), 2),
            cell(ms(f.rtt_us.p99), 2),
            f.retransmits.to_string(),
            f.rtos.to_string(),
            cell(f.fct_s, 3),
            clean(f.pass_reason.as_deref().unwrap_or("")),
        ]);
    }
    let mut lines = ink.grid(&grid);
    lines.extend(total(result));
    lines.push(format!("min and max are those of whole intervals of {}", plan.interval));
    lines
}

/// Everything that was received, over the whole run.
fn total(result: &RunResult) -> Option<String> {
    if result.flows.len() < 2 || result.duration_s <= 0.0 {
        return None;
    }
    let bytes: u64 = result.flows.iter().map(|f| f.bytes).sum();
    let bps = Unit::Rate.show(bytes as f64 * 8.0 / result.duration_s);
    Some(format!("all {} flows: {bps} over {} s", result.flows.len(), seconds(result)))
}

/// Smallest, mean and largest.
fn spread(values: impl Iterator<Item = f64>) -> Option<[f64; 3]> {
    let (mut low, mut high, mut sum, mut n) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0u64);
    for v in values {
        (low, high, sum, n) = (low.min(v), high.max(v), sum + v, n + 1);
    }
    (n > 0).then(|| [low, sum / n as f64, high])
}

/// What several flows have, each once: `cubic, reno`.
fn distinct<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for w in words.filter(|w| !w.is_empty()) {
        if !seen.contains(&w) {
            seen.push(w);
        }
    }
    clean(&seen.join(", "))
}

fn groups(result: &RunResult, plan: &Plan, ink: Ink) -> Lines {
    let (name, unit) = rate_unit(rates(result));
    let who =
        [Column::words("group"), Column::numbers("flows", ""), Column::words("cc"), Column::words("class")];
    let mut grid = Grid::new(who.into_iter().chain(measured(name)).collect());
    for (id, flows) in result.groups() {
        grid.row(group(id, &flows, plan, unit));
    }
    let mut lines = ink.grid(&grid);
    lines.extend(total(result));
    lines.push(format!(
        "more than {MOST_FLOWS} flows: one line for each group. goodput and fct: min/mean/max of its flows; off: of \
         the flow furthest"
    ));
    lines.push(format!(
        "from its target; min and max: of all whole intervals of {}; rtt p50: mean, p99: largest; retr and rto: sums",
        plan.interval
    ));
    lines
}

fn group(id: &str, flows: &[&FlowResult], plan: &Plan, unit: f64) -> Vec<String> {
    let rate = |bps: Option<f64>| cell(bps.map(|v| v / unit), 3);
    let three = |s: Option<[f64; 3]>| s.map_or(String::new(), |s| s.map(|v| format!("{v:.3}")).join("/"));
    let ranges = || flows.iter().filter_map(|f| interval_range(f, plan));
    let targets = spread(flows.iter().filter_map(|f| f.target_bps).map(|t| t as f64));
    let target = match targets {
        Some([low, _, high]) if low != high => format!("{:.3}/{:.3}", low / unit, high / unit),
        other => rate(other.map(|t| t[0])),
    };
    let furthest = flows.iter().filter_map(|f| deviation(f)).max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let passed: Counts =
        flows.iter().filter_map(|f| f.pass_reason.clone()).fold(Counts::new(), |mut c, r| {
            *c.entry(r).or_default() += 1;
            c
        });
    vec![
        clean(id),
        flows.len().to_string(),
        distinct(flows.iter().map(|f| f.cc.as_str())),
        distinct(flows.iter().map(|f| f.class.as_str())),
        three(spread(flows.iter().map(|f| f.goodput_bps / unit))),
        target,
        percent(furthest),
        rate(ranges().map(|r| r.0).reduce(f64::min)),
        rate(ranges().map(|r| r.1).reduce(f64::max)),
        cell(spread(flows.iter().filter_map(|f| ms(f.rtt_us.p50))).map(|s| s[1]), 2),
        cell(spread(flows.iter().filter_map(|f| ms(f.rtt_us.p99))).map(|s| s[2]), 2),
        flows.iter().map(|f| f.retransmits).sum::<u64>().to_string(),
        flows.iter().map(|f| f.rtos).sum::<u64>().to_string(),
        three(spread(flows.iter().filter_map(|f| f.fct_s))),
        counts(&passed),
    ]
}

/// `queue_full 12, loss 3`; empty for none.
fn counts(c: &Counts) -> String {
    let some = c.iter().filter(|(_, n)| **n > 0);
    some.map(|(name, n)| format!("{} {n}", clean(name))).collect::<Vec<_>>().join(", ")
}

/// An empty cell for nothing.
fn some(n: u64) -> String {
    if n == 0 {
        String::new()
    } else {
        n.to_string()
    }
}

fn gateway(result: &RunResult, ink: Ink) -> Lines {
    let Some(g) = &result.gateway else { return Vec::new() };
    let sum = |of: fn(&crate::result::ClassResult) -> u64| result.classes.iter().map(of).sum::<u64>();
    let f = &g.frames;
    let dropped: u64 = f.dropped.values().sum();
    let reasons = counts(&f.dropped);
    let reasons = if reasons.is_empty() { reasons } else { format!(" ({reasons})") };
    let mut lines = vec![
        format!(
            "{}: {} bytes of user data, ACKs {} absorbed, {} made, {} rewritten, {:.2} s of CPU",
            ink.bold("gateway"),
            g.user_data_bytes,
            sum(|c| c.acks_absorbed),
            sum(|c| c.acks_generated),
            sum(|c| c.acks_rewritten),
            g.cpu_s
        ),
        format!(
            "frames: {} in + {} made = {} out + {} held + {} absorbed + {dropped} dropped{reasons}",
            f.received, f.made, f.sent, f.held, f.absorbed
        ),
    ];
    let mut grid = Grid::new(vec![
        Column::words("class"),
        Column::numbers("goodput", ""),
        Column::numbers("target", ""),
        Column::numbers("held peak", ""),
        Column::numbers("packets", ""),
        Column::numbers("absorbed", "ACKs"),
        Column::numbers("made", "ACKs"),
        Column::numbers("rewritten", "ACKs"),
    ]);
    let shown = |n: u64, unit: Unit| if n == 0 { String::new() } else { unit.show(n as f64) };
    for c in &result.classes {
        grid.row(vec![
            clean(&c.name),
            Unit::Rate.show(c.bps),
            shown(c.target_bps, Unit::Rate),
            Unit::Bytes.show(c.held_ack_peak_bytes as f64),
            c.held_ack_peak_packets.to_string(),
            c.acks_absorbed.to_string(),
            c.acks_generated.to_string(),
            c.acks_rewritten.to_string(),
        ]);
    }
    lines.extend(ink.grid(&grid));
    lines
}

fn checks(result: &RunResult, plan: &Plan, ink: Ink) -> Lines {
    if result.status == Status::Interrupted && !plan.expects.is_empty() {
        return vec!["checks were not made: the run was interrupted".to_string()];
    }
    let same = plan.expects.len() == result.expects.len();
    let units = plan.expects.iter().map(|e| Unit::of(&e.measure.metric)).filter(|_| same);
    let units = units.chain(std::iter::repeat(Unit::Plain));
    result.expects.iter().zip(units).map(|(e, unit)| check(e, unit, ink)).collect()
}

fn check(e: &ExpectResult, unit: Unit, ink: Ink) -> String {
    let word = if e.ok { ink.good("ok    ") } else { ink.bad("FAILED") };
    let found = match e.found {
        None => "nothing to measure".to_string(),
        Some(found) => {
            let (found, bound) = unit.show_pair(found, e.bound);
            let at = if e.at.is_empty() { String::new() } else { format!(" ({})", clean(&e.at)) };
            format!("found {found}{at}, bound {bound}")
        }
    };
    format!("{word}  {}: {found}", clean(&e.what))
}

fn reference(result: &RunResult, plan: &Plan, ink: Ink) -> Lines {
    let Some(reference) = &plan.reference else { return Vec::new() };
    let mut grid = Grid::new(vec![Column::words(""), Column::words("paper"), Column::words("ours")]);
    for row in &reference.rows {
        let values: Vec<f64> =
            expect::measure(&row.measure, plan.bin, result).iter().map(|s| s.value).collect();
        let ours = Unit::of(&row.measure.metric).show_range(&values);
        grid.row(vec![clean(&row.name), clean(&row.paper), ours.unwrap_or("nothing measured".into())]);
    }
    let source = format!("beside {}", clean(&reference.source));
    std::iter::once(ink.bold(&source)).chain(ink.grid(&grid)).collect()
}

#[cfg(test)]
mod tests;
