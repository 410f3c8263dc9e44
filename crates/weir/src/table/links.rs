//! The links of a run.

use super::grid::{Column, Grid};
use super::{cell, clean, counts, some, Ink, Lines, Unit};
use crate::plan::{Link, Plan};
use crate::result::{Counts, LinkResult, QuantilesMax, RunResult};

/// With more links than this, the access links of a group of hosts have one line for each direction.
const MOST_LINKS: usize = 32;

pub(super) fn links(result: &RunResult, plan: &Plan, ink: Ink) -> Lines {
    let mut grid = Grid::new(vec![
        Column::words("link"),
        Column::numbers("packets", ""),
        Column::numbers("data", ""),
        Column::numbers("used", "%"),
        Column::numbers("queue p50", "ms"),
        Column::numbers("p99", "ms"),
        Column::numbers("max", "ms"),
        Column::numbers("marks", ""),
        Column::words("drops"),
    ]);
    let many = result.links.len() > MOST_LINKS;
    let together = if many { grouped(plan, &result.links) } else { Vec::new() };
    let alone = result.links.iter().filter(|l| !many || group_of(plan, &l.name).is_none());
    for l in alone.chain(&together) {
        // Only a link with a rate has a queue and can be full.
        let limited = planned(plan, &l.name).is_none_or(|p| p.rate.is_some());
        let queue = |us: u64| cell(limited.then_some(us as f64 / 1e3), 2);
        grid.row(vec![
            clean(&l.name),
            l.packets.to_string(),
            Unit::Bytes.show(l.bytes as f64),
            cell(limited.then_some(l.utilization * 100.0), 1),
            queue(l.queue_us.p50),
            queue(l.queue_us.p99),
            queue(l.queue_us.max),
            some(l.marks),
            counts(&l.drops),
        ]);
    }
    let mut lines = ink.grid(&grid);
    if many {
        lines.push(
            "access links of a group together: sums; used: mean; queue: mean p50, largest p99 and max".into(),
        );
    }
    lines
}

/// What the plan says of a link in the result.
fn planned<'a>(plan: &'a Plan, name: &str) -> Option<&'a Link> {
    match name {
        "lan.out" | "lan.back" => Some(&plan.path.lan),
        "wan.out" => Some(&plan.path.wan_out),
        "wan.back" => Some(&plan.path.wan_back),
        _ => {
            let (group, direction) = group_of(plan, name)?;
            let hosts = plan.hosts.iter().find(|h| h.name == group)?;
            Some(if direction == "up" { &hosts.up } else { &hosts.down })
        }
    }
}

/// The group of hosts that an access link belongs to, and its direction: `edge.3.up`, or `edge.*.up`.
fn group_of<'a>(plan: &Plan, name: &'a str) -> Option<(&'a str, &'a str)> {
    let (host, direction) = name.rsplit_once('.')?;
    let (group, _) = host.rsplit_once('.')?;
    plan.hosts.iter().any(|h| h.name == group).then_some((group, direction))
}

/// The access links of each group, each direction as one.
fn grouped(plan: &Plan, links: &[LinkResult]) -> Vec<LinkResult> {
    let mut groups: Vec<(String, Vec<&LinkResult>)> = Vec::new();
    for link in links {
        let Some((group, direction)) = group_of(plan, &link.name) else { continue };
        let name = format!("{group}.*.{direction}");
        match groups.iter_mut().find(|(n, _)| *n == name) {
            Some((_, links)) => links.push(link),
            None => groups.push((name, vec![link])),
        }
    }
    groups.into_iter().map(|(name, links)| together(name, &links)).collect()
}

fn together(name: String, links: &[&LinkResult]) -> LinkResult {
    let sum = |of: fn(&LinkResult) -> u64| links.iter().map(|l| of(l)).sum::<u64>();
    let most = |of: fn(&LinkResult) -> u64| links.iter().map(|l| of(l)).max().unwrap_or(0);
    let n = links.len().max(1);
    let mut drops = Counts::new();
    for (reason, count) in links.iter().flat_map(|l| &l.drops) {
        *drops.entry(reason.clone()).or_default() += count;
    }
    LinkResult {
        name,
        packets: sum(|l| l.packets),
        bytes: sum(|l| l.bytes),
        utilization: links.iter().map(|l| l.utilization).sum::<f64>() / n as f64,
        queue_us: QuantilesMax {
            p50: sum(|l| l.queue_us.p50) / n as u64,
            p99: most(|l| l.queue_us.p99),
            max: most(|l| l.queue_us.max),
        },
        marks: sum(|l| l.marks),
        drops,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::HostGroup;
    use weir_core::rate::Rate;
    use weir_core::time::Duration;

    #[test]
    fn many_access_links_are_a_line_for_each_group() {
        let up = Link { rate: Some(Rate::mbit(10)), ..Link::default() };
        let hosts = HostGroup { name: "edge.de".into(), wan: false, count: 40, up, down: Link::default() };
        let plan = Plan { hosts: vec![hosts], ..Plan::new("t", Duration::from_secs(1)) };
        let link = |name: String, k: u64| LinkResult {
            name,
            packets: k,
            bytes: 100 * k,
            utilization: 0.5,
            queue_us: QuantilesMax { p50: 1000, p99: 1000 * k, max: 2000 * k },
            drops: [("queue_full".to_string(), 1)].into(),
            ..LinkResult::default()
        };
        let mut all = vec![link("lan.out".into(), 7)];
        all.extend((1..=40).map(|k| link(format!("edge.de.{k}.up"), k)));
        let result = RunResult { links: all, ..RunResult::default() };
        let lines = links(&result, &plan, Ink { terminal: false });
        assert_eq!(lines.len(), 5, "{lines:?}");
        let words: Vec<&str> = lines[3].split_whitespace().collect();
        // 1 + 2 + … + 40 = 820.
        let want = "edge.de.*.up 820 82 kB 50.0 1.00 40.00 80.00 queue_full 40";
        assert_eq!(words.join(" "), want);
    }
}
