//! Tables of the links of a run.

use super::columns::{column, headings, is_mean, shown, total};
use super::grid::{Column, Grid};
use super::{clean, Ink, Lines};
use crate::experiment::plan::{has, Plan};
use crate::result::metric::{Metric, Total, LINK};
use crate::result::{LinkResult, RunResult};
use weir_core::link;

/// Most links shown singly. Beyond it, the access links of a group of hosts have one line for each direction.
const MOST_LINKS: usize = 32;

pub(super) fn links(result: &RunResult, plan: &Plan, ink: Ink) -> Lines {
    let columns = shown(LINK).map(|(m, heading)| column(m, heading, None));
    let mut grid = Grid::new(std::iter::once(Column::words("link")).chain(columns).collect());
    let many = result.links.len() > MOST_LINKS;
    let together = if many { grouped(plan, &result.links) } else { Vec::new() };
    let alone = result.links.iter().filter(|l| !many || group_of(plan, &l.name).is_none());
    for (name, links) in alone.map(|l| (l.name.clone(), vec![l])).chain(together) {
        let link = planned(plan, &name);
        let cells = shown(LINK).map(|(m, _)| match link {
            Some(link) if !has(link, m.needs) => String::new(),
            _ => total(m, &links, None),
        });
        grid.row(std::iter::once(clean(&name)).chain(cells).collect());
    }
    let mut lines = ink.grid(&grid);
    if many {
        let of = |wanted: fn(&Metric<LinkResult>) -> bool| headings(LINK.iter(), wanted);
        lines.push(format!(
            "access links of a group together: {}: sums; {}: means; {}: the largest",
            of(|m| m.total == Total::Sum),
            of(is_mean),
            of(|m| m.total == Total::Most)
        ));
    }
    lines
}

/// Returns the plan's configuration of a link in the result.
fn planned<'a>(plan: &'a Plan, name: &str) -> Option<&'a link::Config> {
    let of_graph = plan.graph.as_ref().and_then(|g| g.directions().find(|(n, _)| n == name));
    if let Some((_, link)) = of_graph {
        return Some(link);
    }
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

/// Returns the group of hosts of an access link, and its direction: `edge.3.up`, or `edge.*.up`.
fn group_of<'a>(plan: &Plan, name: &'a str) -> Option<(&'a str, &'a str)> {
    let (host, direction) = name.rsplit_once('.')?;
    let (group, _) = host.rsplit_once('.')?;
    plan.hosts.iter().any(|h| h.name == group).then_some((group, direction))
}

/// Returns the access links of each group, by direction.
fn grouped<'a>(plan: &Plan, links: &'a [LinkResult]) -> Vec<(String, Vec<&'a LinkResult>)> {
    let mut groups: Vec<(String, Vec<&LinkResult>)> = Vec::new();
    for link in links {
        let Some((group, direction)) = group_of(plan, &link.name) else { continue };
        let name = format!("{group}.*.{direction}");
        match groups.iter_mut().find(|(n, _)| *n == name) {
            Some((_, links)) => links.push(link),
            None => groups.push((name, vec![link])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::plan::HostGroup;
    use crate::result::QuantilesMax;
    use weir_core::rate::Rate;
    use weir_core::time::Duration;

    #[test]
    fn many_access_links_are_a_line_for_each_group() {
        let up = link::Config { rate: Some(Rate::mbit(10)), ..link::Config::BARE };
        let down = link::Config::BARE;
        let hosts = HostGroup { name: "edge.de".into(), wan: false, node: None, count: 40, up, down };
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
