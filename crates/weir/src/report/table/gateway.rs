//! Tables of a run's gateway.

use super::columns::{column, counts, shown, total};
use super::grid::{Column, Grid};
use super::{clean, Ink, Lines};
use crate::result::metric::{Heading, Tables, CLASS};
use crate::result::unit::Unit;
use crate::result::{ClassResult, RunResult, Steering};

/// Describes the moments without shaping, if there were any.
fn away(s: Steering) -> Option<String> {
    let away = s.passed_stale > 0 || s.restarts > 0;
    away.then(|| {
        format!(
            "the engine was away: {} segments passed as they came, {} restarts",
            s.passed_stale, s.restarts
        )
    })
}

/// Describes the unresponsive traffic of a class, if there was any.
fn others(class: &ClassResult) -> Option<String> {
    let o = class.others?;
    let [bytes, exceeded] = [o.bytes, o.exceeded_bytes].map(|bytes| Unit::Bytes.show(bytes as f64));
    let waited = match o.spilled_bytes {
        0 => String::new(),
        bytes => format!("{} of it waited for its turn, ", Unit::Bytes.show(bytes as f64)),
    };
    let marked = match o.marked {
        0 => String::new(),
        packets => format!("{packets} packets marked, "),
    };
    Some(format!(
        "{}: {bytes} that ACKs cannot slow, {waited}{exceeded} of it beyond the rate; {marked}{} packets \
         dropped",
        clean(&class.name),
        o.dropped
    ))
}

/// Describes the traffic dropped beyond the bound of a class, if there was any.
fn beyond(class: &ClassResult) -> Option<String> {
    let b = class.bound.filter(|b| b.dropped > 0)?;
    let bytes = Unit::Bytes.show(b.dropped_bytes as f64);
    Some(format!(
        "{}: {} packets ({bytes}) dropped beyond the bound of the class",
        clean(&class.name),
        b.dropped
    ))
}

/// Describes the admission of flows to a class that guarantees each flow a rate.
pub(super) fn admission(class: &ClassResult) -> Option<String> {
    let a = class.admission?;
    Some(format!(
        "{}: {} flows have their `flow_min`; {} SYNs refused, {} flows began without it",
        clean(&class.name),
        a.guaranteed,
        a.refused,
        a.best_effort
    ))
}

/// Lists the queues of classes, if there are any.
fn queues(result: &RunResult, ink: Ink) -> Lines {
    let queued: Vec<&ClassResult> = result.classes.iter().filter(|c| c.queue.is_some()).collect();
    if queued.is_empty() {
        return Vec::new();
    }
    let metrics = || {
        QUEUE_COLUMNS.iter().filter_map(|(name, text)| Some((CLASS.iter().find(|m| m.name == *name)?, *text)))
    };
    let heading = |text| Heading { text, below: "", tables: Tables::Run };
    let columns = metrics().map(|(m, text)| column(m, heading(text), None));
    let mut grid = Grid::new(std::iter::once(Column::words("queue of")).chain(columns).collect());
    for c in queued {
        let cells = metrics().map(|(m, _)| total(m, &[c], None));
        grid.row(std::iter::once(clean(&c.name)).chain(cells).collect());
    }
    ink.grid(&grid)
}

/// Most classes that a table shows.
const MOST_CLASSES: usize = 64;

/// Columns of the queues of classes, with their headings.
const QUEUE_COLUMNS: [(&str, &str); 8] = [
    ("queue.packets", "packets"),
    ("queue.bytes", "data"),
    ("queue.borrowed_bytes", "borrowed"),
    ("queue.delay_us.p50", "p50"),
    ("queue.delay_us.p99", "p99"),
    ("queue.peak_bytes", "peak"),
    ("queue.marks", "marks"),
    ("queue.drops", "drops"),
];

/// Describes the gateway's work and its classes.
pub(super) fn gateway(result: &RunResult, ink: Ink) -> Lines {
    let Some(g) = &result.gateway else { return Vec::new() };
    let sum = |of: fn(&ClassResult) -> u64| result.classes.iter().map(of).sum::<u64>();
    let f = &g.frames;
    let dropped: u64 = f.dropped.values().sum();
    let reasons = counts(&f.dropped);
    let reasons = if reasons.is_empty() { reasons } else { format!(" ({reasons})") };
    let memory =
        g.memory_bytes.map_or(String::new(), |n| format!(", {} of memory", Unit::Bytes.show(n as f64)));
    let mut lines = vec![
        format!(
            "{}: {} bytes of user data, ACKs {} absorbed, {} made, {} rewritten, {:.2} s of CPU{memory}",
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
    lines.extend(g.steering.and_then(away));
    let columns = shown(CLASS).map(|(m, heading)| column(m, heading, None));
    let mut grid = Grid::new(std::iter::once(Column::words("class")).chain(columns).collect());
    for c in result.classes.iter().take(MOST_CLASSES) {
        let cells = shown(CLASS).map(|(m, _)| total(m, &[c], None));
        grid.row(std::iter::once(clean(&c.name)).chain(cells).collect());
    }
    lines.extend(ink.grid(&grid));
    let more = result.classes.len().saturating_sub(MOST_CLASSES);
    lines.extend((more > 0).then(|| format!("{more} more classes are in the JSON document")));
    lines.extend(result.classes.iter().filter_map(others).take(MOST_CLASSES));
    lines.extend(result.classes.iter().filter_map(beyond).take(MOST_CLASSES));
    lines.extend(result.classes.iter().filter_map(admission).take(MOST_CLASSES));
    lines.extend(queues(result, ink));
    lines
}
