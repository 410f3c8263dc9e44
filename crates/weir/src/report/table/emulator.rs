//! Table of a running emulator.

use super::cells::{mbit, megabytes};
use super::clean;
use super::grid::{Column, Grid};
use crate::result::running::{EmulatorReport, LinkNow};
use crate::result::LinkResult;

/// Formats the state of an emulator, the keys of both directions, and their counters.
pub fn emulator(report: &EmulatorReport) -> String {
    let mut lines = vec![format!("runs for {:.1} s; {} restarts", report.wall_s, report.steering.restarts)];
    lines.extend(report.degraded.as_ref().map(|why| format!("DEGRADED: {}", clean(why))));
    lines.extend(report.now.iter().map(|link| clean(&format!("{}: {}", link.name, link.does))));
    lines.push(String::new());
    let (heads, rows) = links(report).lines();
    lines.into_iter().chain(heads).chain(rows).map(|line| line + "\n").collect()
}

fn links(report: &EmulatorReport) -> Grid {
    let mut grid = Grid::new(vec![
        Column::words("link"),
        Column::numbers("rate", "Mbit/s"),
        Column::numbers("of", "Mbit/s"),
        Column::numbers("sent", "MB"),
        Column::numbers("waits", "packets"),
        Column::numbers("delay p50", "ms"),
        Column::numbers("p99", "ms"),
        Column::numbers("marks", ""),
        Column::numbers("drops", ""),
    ]);
    let row = |(now, link): (&LinkNow, &LinkResult)| {
        let ms = |us: u64| format!("{:.1}", us as f64 / 1e3);
        vec![
            clean(&now.name),
            mbit(now.bps),
            now.target_bps.map_or(String::new(), |bps| mbit(bps as f64)),
            megabytes(link.bytes),
            now.queue_packets.to_string(),
            ms(link.queue_us.p50),
            ms(link.queue_us.p99),
            link.marks.to_string(),
            link.drops.values().sum::<u64>().to_string(),
        ]
    };
    report.now.iter().zip(&report.links).map(row).for_each(|cells| grid.row(cells));
    grid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_has_a_line_and_its_keys() {
        let now = LinkNow {
            name: "wan.out".into(),
            does: "10Mbit, delay 20ms".into(),
            bps: 9_400_000.0,
            target_bps: Some(10_000_000),
            queue_packets: 42,
            ..LinkNow::default()
        };
        let back = LinkNow { name: "wan.back".into(), does: "bare".into(), ..LinkNow::default() };
        let mut link = LinkResult { bytes: 12_500_000, ..LinkResult::default() };
        link.drops.insert("queue_full".into(), 7);
        let links = vec![link, LinkResult::default()];
        let report =
            EmulatorReport { wall_s: 3.25, now: vec![now, back], links, ..EmulatorReport::default() };
        let text = emulator(&report);
        assert!(text.contains("wan.out: 10Mbit, delay 20ms\nwan.back: bare\n"), "{text}");
        let row: Vec<&str> =
            text.lines().find(|l| l.starts_with("wan.out ")).unwrap().split_whitespace().collect();
        assert_eq!(row, ["wan.out", "9.400", "10.0", "12.5", "42", "0.0", "0.0", "0", "7"], "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }
}
