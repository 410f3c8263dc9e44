//! Tables of a running gateway.

use super::cells::{cut, mbit, megabytes, WIDTH};
use super::clean;
use super::columns::counts;
use super::gateway::admission;
use super::grid::{Column, Grid};
use super::load;
use crate::result::running::{EngineReport, GatewayClass, GatewayFlow, GatewayReport, Located, Notes};
use crate::result::traffic::Kind;

/// Longest name that a table shows whole.
const NAME: usize = 20;
/// Longest name of a flow's class that a table shows whole.
const FLOW_NAME: usize = 12;

/// Formats the state, the traffic and the active flows.
pub fn running(report: &GatewayReport) -> String {
    let mut parts = vec![state(report)];
    let kinds = [Kind::Link, Kind::Site, Kind::Customer, Kind::Class, Kind::Unlisted, Kind::Address];
    parts.extend(kinds.into_iter().map(|kind| lines(&load::rates(&report.traffic, kind))));
    parts.push(load::ways(&report.traffic).blocks(WIDTH).into_iter().flat_map(together).collect());
    parts.push(lines(&load::quality(&report.traffic)));
    parts.push(report.classes.iter().filter_map(reasons).flatten().collect());
    parts.push(lines(&queues(&report.classes)));
    parts.push(report.classes.iter().filter_map(|c| admission(&c.class)).collect());
    parts.push(flows(&report.flows));
    let parts: Vec<String> =
        parts.into_iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n") + "\n").collect();
    parts.join("\n")
}

/// Returns the heads and rows of a grid.
fn lines(grid: &Grid) -> Vec<String> {
    together(grid.lines())
}

/// Joins heads and rows.
fn together((heads, rows): (Vec<String>, Vec<String>)) -> Vec<String> {
    heads.into_iter().chain(rows).collect()
}

fn state(report: &GatewayReport) -> Vec<String> {
    let mut lines = vec![format!(
        "runs for {:.1} s; {} flows active; {} restarts",
        report.wall_s,
        report.flows.len(),
        report.steering.restarts,
    )];
    lines.extend(
        report.observes.then(|| "observes: every frame passes, and dropped is what would be".to_owned()),
    );
    lines.extend(report.degraded.as_ref().map(|why| format!("DEGRADED: {}", clean(why))));
    lines.extend(report.engines.iter().enumerate().map(|(number, engine)| {
        let EngineReport { cpu_s, active_flows, held_bytes } = engine;
        format!(
            "engine {number}: {cpu_s:.1} s of processor time, {active_flows} flows, {held_bytes} bytes held"
        )
    }));
    lines
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

/// Lists why ACKs of a class passed as they came, in lines of the tables' width.
fn reasons(class: &GatewayClass) -> Option<Vec<String>> {
    let why = counts(&class.passed_acks);
    (!why.is_empty()).then(|| {
        let name = cut(&class.class.name, NAME);
        wrapped(&format!("{name}: ACKs that passed as they came: {why}"))
    })
}

/// Breaks a line between words, and indents what goes on below.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.into()),
            Some(_) => lines.push(format!("  {word}")),
        }
    }
    lines
}

/// Builds the table of classes with data queues.
fn queues(classes: &[GatewayClass]) -> Grid {
    let mut grid = Grid::new(vec![
        Column::words("queue of"),
        Column::numbers("rate", "Mbit/s"),
        Column::numbers("sent", "MB"),
        Column::numbers("delay p50", "ms"),
        Column::numbers("p99", "ms"),
        Column::numbers("marks", ""),
        Column::numbers("drops", ""),
    ]);
    for (c, queue) in classes.iter().filter_map(|c| Some((c, c.class.queue.as_ref()?))) {
        let ms = |us: u64| format!("{:.1}", us as f64 / 1e3);
        grid.row(vec![
            cut(&c.class.name, NAME),
            mbit(c.class.bps),
            megabytes(c.bytes),
            ms(queue.delay_us.p50),
            ms(queue.delay_us.p99),
            queue.marks.to_string(),
            queue.drops.values().sum::<u64>().to_string(),
        ]);
    }
    grid
}

/// Lists the active flows: what is known of each, and its ends, on a line of their own where they are long.
fn flows(flows: &[GatewayFlow]) -> Vec<String> {
    let mut grid = Grid::new(vec![
        Column::words("class"),
        Column::numbers("rate", "Mbit/s"),
        Column::numbers("of", "Mbit/s"),
        Column::numbers("held", "bytes"),
        Column::numbers("WAN", "ms"),
        Column::numbers("LAN", "ms"),
        Column::numbers("resent", "packets"),
        Column::words("passes"),
    ]);
    for f in flows {
        grid.row(vec![
            cut(&f.class, FLOW_NAME),
            mbit(f.bps),
            f.target_bps.map_or(String::new(), |bps| mbit(bps as f64)),
            load::short(f.held_bytes.into()),
            load::millis(f.quality.rtt_wan_us.smoothed),
            load::millis(f.quality.rtt_lan_us.smoothed),
            load::short(f.quality.retransmitted_packets),
            f.pass_reason.clone().unwrap_or_default(),
        ]);
    }
    let (heads, rows) = grid.lines();
    let width = heads.iter().chain(&rows).map(|line| line.chars().count()).max().unwrap_or(0);
    let mut heads = heads.into_iter();
    let first = heads.next().map(|head| format!("{head:<width$}  flow"));
    let rows = flows.iter().zip(rows).flat_map(|(f, row)| {
        let ends = format!("{} > {}", f.src, f.dst);
        match width + 2 + ends.len() <= WIDTH {
            true => vec![format!("{row:<width$}  {ends}")],
            false => vec![row, ends_below(f, &ends)],
        }
    });
    first.into_iter().chain(heads).chain(rows).collect()
}

/// Formats the ends of a flow on a line of their own; two of IPv6 may need two.
fn ends_below(f: &GatewayFlow, ends: &str) -> String {
    match ends.len() + 2 <= WIDTH {
        true => format!("  {ends}"),
        false => format!("  {} >\n  {}", f.src, f.dst),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::quality::{FlowRtt, Latency, OfFlow, Scores};
    use crate::result::traffic::{Load, Traffic};
    use crate::result::{ClassQueue, ClassResult};
    use weir_core::gateway::PassReason;

    fn row(kind: Kind, name: &str, direction: &str, bps: f64, target_bps: u64) -> Traffic {
        let (bytes, tcp_controlled_bytes) = (9_000_000, 9_000_000);
        let load = Load { bps, target_bps, bytes, tcp_controlled_bytes, ..Load::default() };
        Traffic { kind, name: name.into(), direction: direction.into(), load, ..Traffic::default() }
    }

    fn cells(text: &str, first: &str) -> Vec<String> {
        let line = text.lines().find(|line| line.starts_with(first)).unwrap_or_else(|| panic!("{text}"));
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn both_directions_of_a_thing_are_one_row() {
        let mut down = row(Kind::Customer, "17", "in", 25.04e6, 25_000_000);
        down.title = "Ada".into();
        down.load.dropped_packets = 12;
        down.load.unresponsive_bytes = 4_500_000;
        let traffic = vec![
            row(Kind::Customer, "17", "out", 0.31e6, 5_000_000),
            down,
            row(Kind::Site, "tower", "in", 60.0e6, 60_000_000),
            row(Kind::Link, "eth1", "in", 1_234.5e6, 0),
        ];
        let text = running(&GatewayReport { traffic, wall_s: 2.0, ..GatewayReport::default() });
        assert!(text.starts_with("runs for 2.0 s; 0 flows active; 0 restarts\n\nlink"), "{text}");
        // Half of all bytes down are unresponsive: 4.5 of 18 MB in both directions.
        assert_eq!(cells(&text, "17 "), ["17", "Ada", "25.0", "25.0", "0.310", "5.000", "25", "12", "0"]);
        assert_eq!(cells(&text, "tower"), ["tower", "60.0", "60.0", "0", "0", "0"]);
        assert_eq!(cells(&text, "eth1")[..2], ["eth1", "1234"]);
    }

    #[test]
    fn a_customer_who_is_off_is_shown_as_such() {
        let off = Traffic { off: true, ..row(Kind::Customer, "17", "in", 1e6, 0) };
        let text = running(&GatewayReport { traffic: vec![off], ..GatewayReport::default() });
        assert_eq!(cells(&text, "17 "), ["17", "1.000", "off", "off", "0", "0", "0"]);
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let long = "a".repeat(64);
        let mut traffic: Vec<Traffic> = [Kind::Link, Kind::Site, Kind::Customer, Kind::Class]
            .into_iter()
            .flat_map(|kind| ["out", "in"].map(|way| row(kind, &long, way, 98_765.4e6, 100_000_000_000)))
            .collect();
        for row in &mut traffic {
            row.title = "Ümläute & <b>Ada</b>\n".repeat(4);
            row.load.dropped_packets = u32::MAX.into();
            (row.load.tcp_passed_bytes, row.load.dropped_bytes) = (1 << 50, 1 << 50);
            (row.load.bytes, row.load.queued_bytes) = (1 << 52, 1 << 50);
            row.load.active_flows = 65_536;
            let worst = Latency { samples: 1, p50: 8_000_000, p90: 8_000_000, p99: 8_000_000 };
            (row.load.rtt_wan_us, row.load.rtt_lan_us) = (worst, worst);
            row.load.score = Some(Scores { web: 100, call: 100, game: 100 });
            row.load.retransmitted_packets = 1 << 40;
        }
        let passed_acks = PassReason::ALL.map(|reason| (reason.name().to_string(), 1_234_567_890)).into();
        let queue = Some(ClassQueue { marks: u32::MAX.into(), ..ClassQueue::default() });
        let class = ClassResult { name: long.clone(), queue, bps: 98_765.4e6, ..ClassResult::default() };
        let class = GatewayClass { class, passed_acks, bytes: 1 << 50, ..GatewayClass::default() };
        let end = "[2001:db8:1234:5678:9abc:def0:1234:5678]:65535".parse().unwrap();
        let short = "10.1.2.3:443".parse().unwrap();
        let flow = |src, dst| GatewayFlow { src, dst, class: long.clone(), ..a_flow() };
        let flows = vec![flow(end, end), flow(short, short), flow(end, short)];
        let report = GatewayReport { traffic, classes: vec![class], flows, ..GatewayReport::default() };
        let text = running(&report);
        let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
        assert_eq!(wide, [""; 0], "{text}");
    }

    const RTT: FlowRtt = FlowRtt { min: 1, smoothed: 4_194_000, last: 4_194_000 };

    fn a_flow() -> GatewayFlow {
        let at = (std::net::Ipv4Addr::LOCALHOST, 9).into();
        GatewayFlow {
            bps: 98_765.4e6,
            target_bps: Some(100_000_000_000),
            pass_reason: Some("implausible".into()),
            held_bytes: u32::MAX,
            rtt_us: 999_999,
            quality: OfFlow {
                rtt_wan_us: RTT,
                rtt_lan_us: RTT,
                retransmitted_packets: 1 << 40,
                ..OfFlow::default()
            },
            ..GatewayFlow::between(at, at)
        }
    }

    #[test]
    fn quality_is_a_row_for_each_direction_with_samples() {
        let mut traffic = row(Kind::Customer, "17", "in", 1e6, 2_000_000);
        traffic.load.rtt_wan_us = Latency { samples: 9, p50: 38_250, p90: 70_000, p99: 120_400 };
        traffic.load.rtt_lan_us = Latency { samples: 9, p50: 900, p90: 2_000, p99: 3_100 };
        traffic.load.retransmitted_packets = 7;
        traffic.load.score = Some(Scores { web: 98, call: 100, game: 61 });
        let report = GatewayReport { traffic: vec![traffic], ..GatewayReport::default() };
        let text = running(&report);
        let quality = text.split("quality of TCP").nth(1).unwrap_or_default();
        let expected = ["17", "in", "38.2", "120", "0.9", "3.1", "7", "98", "100", "61"];
        assert_eq!(cells(quality, "17 "), expected, "{text}");
    }

    #[test]
    fn what_passed_of_a_class_is_told_by_how_it_keeps_to_the_rate() {
        let mut traffic = row(Kind::Class, "up", "out", 1e6, 2_000_000);
        traffic.load.tcp_controlled_bytes = 3_000_000;
        traffic.load.tcp_passed_bytes = 20_000;
        traffic.load.unresponsive_bytes = 40_000;
        traffic.load.quic_bytes = 30_000;
        (traffic.load.dropped_packets, traffic.load.dropped_bytes) = (7, 10_500);
        let passed_acks = [("malformed".to_string(), 2), ("unknown_option".to_string(), 7)].into();
        let class = ClassResult { name: "up".into(), ..ClassResult::default() };
        let classes = vec![GatewayClass { class, passed_acks, ..GatewayClass::default() }];
        let text = running(&GatewayReport { traffic: vec![traffic], classes, ..GatewayReport::default() });
        let ways = text.split("TCP held").nth(1).unwrap_or_default();
        assert_eq!(cells(ways, "up "), ["up", "out", "3.000", "0.020", "0.030", "0.010", "7", "0.011"]);
        assert!(text.contains("up: ACKs that passed as they came: malformed 2, unknown_option 7"), "{text}");
    }

    /// A queue counts bytes without telling them apart.
    #[test]
    fn what_waited_in_a_queue_has_a_column_of_its_own() {
        let mut queued = row(Kind::Customer, "17", "out", 1e6, 2_000_000);
        (queued.load.tcp_controlled_bytes, queued.load.queued_bytes) = (0, 9_000_000);
        (queued.load.dropped_packets, queued.load.dropped_bytes) = (92, 139_000);
        let mut down = row(Kind::Customer, "17", "in", 1e6, 2_000_000);
        let text = |traffic: &[Traffic]| {
            running(&GatewayReport { traffic: traffic.to_vec(), ..GatewayReport::default() })
        };
        let alone = text(&[queued.clone()]);
        assert_eq!(cells(&alone, "17 "), ["17", "1.000", "2.000", "-", "92", "0"]);
        let ways = |text: &str| text.split("kept to the rate").nth(1).unwrap_or_default().to_owned();
        assert_eq!(cells(&ways(&alone), "17 "), ["17", "out", "9.000", "92", "0.139"]);
        // A third of what is told apart is unresponsive: 3 of 9 MB.
        (down.load.tcp_controlled_bytes, down.load.unresponsive_bytes) = (6_000_000, 3_000_000);
        let both = text(&[queued, down]);
        assert_eq!(cells(&both, "17 ")[5..], ["33", "92", "0"]);
        assert_eq!(cells(&ways(&both), "17 "), ["17", "out", "-", "-", "-", "-", "9.000", "92", "0.139"]);
    }

    #[test]
    fn queues_are_a_table_of_their_own() {
        let queue = Some(ClassQueue { marks: 4, ..ClassQueue::default() });
        let class = ClassResult { name: "voip".into(), bps: 9e4, queue, ..ClassResult::default() };
        let class = GatewayClass { class, bytes: 250_000, ..GatewayClass::default() };
        let text = running(&GatewayReport { classes: vec![class], ..GatewayReport::default() });
        let row = text.lines().last().unwrap_or_default();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells, ["voip", "0.090", "0.250", "0.0", "0.0", "4", "0"], "{text}");
    }
}
