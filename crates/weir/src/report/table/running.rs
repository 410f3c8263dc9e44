//! Tables of a running gateway.

use super::clean;
use super::columns::counts;
use super::gateway::admission;
use super::grid::{Column, Grid};
use crate::result::running::{EngineReport, GatewayClass, GatewayFlow, GatewayReport, Located, Notes};
use crate::result::unit::Unit;

/// Formats the state, the classes and the active flows.
pub fn running(report: &GatewayReport) -> String {
    let mut lines = vec![format!(
        "runs for {:.1} s; {} flows active; {} restarts{}",
        report.wall_s,
        report.flows.len(),
        report.steering.restarts,
        report.degraded.as_ref().map_or(String::new(), |why| format!("; DEGRADED: {}", clean(why)))
    )];
    lines.extend(report.engines.iter().enumerate().map(|(number, engine)| {
        let EngineReport { cpu_s, active_flows, held_bytes } = engine;
        format!("engine {number}: {cpu_s:.1} s of processor time, {active_flows} flows active, {held_bytes} bytes held")
    }));
    for grid in [classes(&report.classes), queues(&report.classes), flows(&report.flows)] {
        let (heads, rows) = grid.lines();
        if !rows.is_empty() {
            lines.push(String::new());
            lines.extend(heads.into_iter().chain(rows));
        }
    }
    let traffic: Vec<String> = report.classes.iter().filter_map(traffic).collect();
    if !traffic.is_empty() {
        lines.push(String::new());
        lines.extend(traffic);
    }
    let admissions: Vec<String> = report.classes.iter().filter_map(|c| admission(&c.class)).collect();
    if !admissions.is_empty() {
        lines.push(String::new());
        lines.extend(admissions);
    }
    lines.join("\n") + "\n"
}

/// Formats notes about lists, a line for each of the first.
pub fn notes(notes: &Notes) -> String {
    let line = |note: &Located| {
        let Located { file, line, column, message, help } = note;
        let help = help.as_ref().map_or(String::new(), |help| format!(": {help}"));
        format!("{}\n", clean(&format!("{file}:{line}:{column}: {message}{help}")))
    };
    let more = notes.count - notes.first.len().min(notes.count);
    let more = if more > 0 { format!("and {more} more: `weir check` has them all\n") } else { String::new() };
    notes.first.iter().map(line).chain([more]).collect()
}

fn classes(classes: &[GatewayClass]) -> Grid {
    let mut grid = Grid::new(vec![
        Column::words("class"),
        Column::numbers("active flows", ""),
        Column::numbers("rate", "Mbit/s"),
        Column::numbers("target", "Mbit/s"),
        Column::numbers("held", "bytes"),
        Column::numbers("acknowledged", "bytes"),
    ]);
    for c in classes.iter().filter(|c| c.class.queue.is_none()) {
        grid.row(vec![
            clean(&c.class.name),
            c.active_flows.to_string(),
            mbit(c.class.bps),
            mbit(c.class.target_bps as f64),
            c.held_bytes.to_string(),
            c.bytes.to_string(),
        ]);
    }
    grid
}

/// Describes the bytes of a class by how they keep to its rate, and what was dropped of them.
fn traffic(class: &GatewayClass) -> Option<String> {
    let (bound, others) = (class.class.bound, class.class.others);
    if bound.is_none() && others.is_none() && class.passed_acks.is_empty() {
        return None;
    }
    let (bound, others) = (bound.unwrap_or_default(), others.unwrap_or_default());
    let show = |bytes: u64| Unit::Bytes.show(bytes as f64);
    let why = counts(&class.passed_acks);
    let why = if why.is_empty() { why } else { format!(" (ACKs as they came: {why})") };
    Some(format!(
        "{}, {}: TCP {} held, {} passed{why}; {} unresponsive; {} packets dropped",
        clean(&class.class.name),
        class.direction,
        show(bound.held_bytes),
        show(bound.free_bytes),
        show(others.bytes),
        bound.dropped + others.dropped
    ))
}

/// Builds the table of classes with data queues.
fn queues(classes: &[GatewayClass]) -> Grid {
    let mut grid = Grid::new(vec![
        Column::words("queue of"),
        Column::numbers("rate", "Mbit/s"),
        Column::numbers("sent", "bytes"),
        Column::numbers("waited p50", "ms"),
        Column::numbers("p99", "ms"),
        Column::numbers("marks", ""),
        Column::numbers("drops", ""),
    ]);
    for (c, queue) in classes.iter().filter_map(|c| Some((c, c.class.queue.as_ref()?))) {
        let ms = |us: u64| format!("{:.1}", us as f64 / 1e3);
        grid.row(vec![
            clean(&c.class.name),
            mbit(c.class.bps),
            c.bytes.to_string(),
            ms(queue.delay_us.p50),
            ms(queue.delay_us.p99),
            queue.marks.to_string(),
            queue.drops.values().sum::<u64>().to_string(),
        ]);
    }
    grid
}

fn flows(flows: &[GatewayFlow]) -> Grid {
    let mut grid = Grid::new(vec![
        Column::words("from"),
        Column::words("to"),
        Column::words("class"),
        Column::numbers("rate", "Mbit/s"),
        Column::numbers("target", "Mbit/s"),
        Column::numbers("held", "bytes"),
        Column::numbers("RTT", "ms"),
        Column::words("passes"),
    ]);
    for f in flows {
        grid.row(vec![
            f.src.to_string(),
            f.dst.to_string(),
            clean(&f.class),
            mbit(f.bps),
            f.target_bps.map_or(String::new(), |bps| mbit(bps as f64)),
            f.held_bytes.to_string(),
            format!("{:.1}", f.rtt_us as f64 / 1e3),
            f.pass_reason.clone().unwrap_or_default(),
        ]);
    }
    grid
}

fn mbit(bps: f64) -> String {
    format!("{:.3}", bps / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{ClassBound, ClassOthers, ClassQueue, ClassResult};

    #[test]
    fn classes_and_flows() {
        let class =
            ClassResult { name: "up".into(), bps: 9.96e6, target_bps: 10_000_000, ..ClassResult::default() };
        let class = GatewayClass { class, active_flows: 1, held_bytes: 3_000, ..GatewayClass::default() };
        let report = GatewayReport { classes: vec![class], wall_s: 2.0, ..GatewayReport::default() };
        let text = running(&report);
        assert!(
            text.starts_with("runs for 2.0 s; 0 flows active; 0 restarts\n\nclass  active flows"),
            "{text}"
        );
        assert!(text.contains("up                1   9.960  10.000   3000"), "{text}");
    }

    #[test]
    fn what_passed_of_a_class_is_told_by_how_it_keeps_to_the_rate() {
        let bound =
            ClassBound { held_bytes: 3_000_000, free_bytes: 20_000, dropped: 4, dropped_bytes: 6_000 };
        let others = ClassOthers { packets: 50, bytes: 40_000, dropped: 3, exceeded_bytes: 0 };
        let class = ClassResult {
            name: "up".into(),
            bound: Some(bound),
            others: Some(others),
            ..ClassResult::default()
        };
        let passed_acks = [("malformed".to_string(), 2), ("unknown_option".to_string(), 7)].into();
        let class = GatewayClass { class, direction: "out".into(), passed_acks, ..GatewayClass::default() };
        let text = running(&GatewayReport { classes: vec![class], ..GatewayReport::default() });
        let line = text.lines().last().unwrap_or_default();
        let numbers =
            ["up, out: TCP 3", "held, 20", "malformed 2", "unknown_option 7", "; 40", "; 7 packets dropped"];
        assert!(numbers.iter().all(|n| line.contains(n)), "{line}");
    }

    #[test]
    fn queues_are_a_table_of_their_own() {
        let queue = Some(ClassQueue { marks: 4, ..ClassQueue::default() });
        let class = ClassResult { name: "voip".into(), bps: 9e4, queue, ..ClassResult::default() };
        let class = GatewayClass { class, bytes: 250, ..GatewayClass::default() };
        let text = running(&GatewayReport { classes: vec![class], ..GatewayReport::default() });
        let row = text.lines().last().unwrap_or_default();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells, ["voip", "0.090", "250", "0.0", "0.0", "4", "0"], "{text}");
        assert!(!text.contains("active flows"), "{text}");
    }
}
