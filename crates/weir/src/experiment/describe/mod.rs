//! Descriptions in words of the effect of a configuration.

mod checks;
mod flows;
mod gateway;
mod network;
mod ports;

pub use checks::{aggregate, expectation, measure};

use crate::experiment::config::experiment::{Experiment, Run};
use crate::experiment::config::File;
use crate::experiment::plan::{Plan, SeriesKind};
use crate::result::Backend;
use weir_core::gateway::Direction;

/// Returns the kind of the file.
pub fn kind(file: &File) -> &'static str {
    match file {
        File::Experiment(_) | File::Sweep(_) => "experiment",
        File::Gateway(_) => "gateway",
        File::Wan(_) => "wan",
    }
}

/// Describes the file's effect, line by line. Lines that belong to the one above are indented.
pub fn lines(file: &File) -> Vec<String> {
    match file {
        File::Experiment(e) => [experiment(&e.plan), worlds(e)].concat(),
        File::Sweep(runs) => sweep(runs),
        File::Gateway(g) => {
            [ports::gateway(g), gateway::customers(g).into_iter().collect(), gateway::lines(&g.gateway)]
                .concat()
        }
        File::Wan(w) => [ports::emulator(w), network::path(&w.path)].concat(),
    }
}

/// Describes which worlds cannot run the experiment.
fn worlds(e: &Experiment) -> Vec<String> {
    let can = e.worlds();
    let why = |world: Backend, what: &str| {
        let line = format!("cannot run in the {} world: it uses what only {what} has", world.name());
        let endless = (world == Backend::Sim).then(|| e.endless_at_once()).flatten();
        let line = endless.map_or(line, |why| format!("cannot run in the sim world: {why}"));
        (!can.contains(&world)).then_some(line)
    };
    [why(Backend::Lab, "the simulator"), why(Backend::Sim, "Linux")].into_iter().flatten().collect()
}

/// Describes the varied settings and the first run.
fn sweep(runs: &[Run]) -> Vec<String> {
    let mut out = vec![format!("sweep of {}, in the sim world", counted(runs.len() as u64, "run", "runs"))];
    let Some(first) = runs.first() else { return out };
    for (i, (key, _)) in first.settings.iter().enumerate() {
        let mut values: Vec<&str> = runs.iter().map(|r| r.settings[i].1.as_str()).collect();
        let mut seen = std::collections::BTreeSet::new();
        values.retain(|v| seen.insert(*v));
        out.push(format!("  {key} = {}", values.join(", ")));
    }
    let settings: Vec<String> = first.settings.iter().map(|(k, v)| format!("{k} = {v}")).collect();
    out.push(format!("the first run, {}:", settings.join(", ")));
    let lines = experiment(&first.experiment.plan).into_iter().chain(worlds(&first.experiment));
    out.extend(lines.map(|line| format!("  {line}")));
    out
}

fn experiment(p: &Plan) -> Vec<String> {
    let mut out = vec![if p.title.is_empty() { p.name.clone() } else { format!("{}: {}", p.name, p.title) }];
    out.push(format!(
        "runs {}, reported every {}, recorded in bins of {}, seed {}",
        p.duration, p.interval, p.bin, p.seed
    ));
    match &p.graph {
        None => out.extend(network::path(&p.path)),
        Some(graph) => out.extend(network::graph(graph)),
    }
    out.extend(network::hosts(p));
    match &p.gateway {
        None if p.graph.is_some() => out.push("gateway: none".to_string()),
        None => out.push(format!("gateway: none, a plain {}", p.lab.kind.name())),
        Some(g) => out.extend(gateway::lines(g)),
    }
    out.push(format!("flows: {}", p.flows().count()));
    out.extend(p.groups.iter().flat_map(flows::group));
    out.extend(recorded(p));
    if let Some(bound) = p.parity {
        let percent = |f: f64| (f * 1e8).round() / 1e6;
        let (goodput, fct) = (percent(bound.goodput), percent(bound.fct));
        out.push(format!("parity of the worlds: goodput within {goodput}%, completion times within {fct}%"));
    }
    for baseline in &p.baselines {
        let settings: Vec<String> = baseline.settings.iter().map(|(k, v)| format!("{k} = {v}")).collect();
        out.push(format!("beside it, baseline {}: {}", baseline.name, settings.join(", ")));
    }
    if !p.expects.is_empty() {
        out.push(format!("expectations: {}", p.expects.len()));
        out.extend(p.expects.iter().map(|e| format!("  {}", expectation(e))));
    }
    if let Some(r) = &p.reference {
        out.push(format!("compared with: {}", r.source));
        out.extend(
            r.rows.iter().map(|row| format!("  {}: {} ({})", row.name, row.paper, measure(&row.measure))),
        );
    }
    out
}

/// Describes the series that are recorded.
fn recorded(p: &Plan) -> Option<String> {
    let names: Vec<&str> = p.series.iter().map(|kind| kind.name()).collect();
    let how = match p.sample {
        Some(period) => format!("every {period}"),
        None if p.series.contains(&SeriesKind::Queue) => {
            "at every change, queues 1000 times over the run".to_string()
        }
        None => "at every change".to_string(),
    };
    (!names.is_empty()).then(|| format!("recorded over time: {}, {how}", names.join(", ")))
}

fn direction(d: Direction) -> &'static str {
    match d {
        Direction::Out => "uploads (LAN to WAN)",
        Direction::In => "downloads (WAN to LAN)",
    }
}

fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Returns the first few of many names, and the number of the others: `"a", "b" and 39,998 more`.
fn few<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 5;
    let names: Vec<&str> = names.collect();
    let shown: Vec<String> = names.iter().take(MOST).map(|name| format!("\"{name}\"")).collect();
    let more = names.len().saturating_sub(MOST);
    match more {
        0 => shown.join(", "),
        _ => format!("{} and {} more", shown.join(", "), thousands(more)),
    }
}

/// Writes a number with commas between its thousands.
fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let first = digits.len() % 3;
    let (head, tail) = digits.split_at(first);
    let groups = tail.as_bytes().chunks(3).map(|group| String::from_utf8_lossy(group).into_owned());
    let head = Some(head.to_string()).filter(|head| !head.is_empty());
    head.into_iter().chain(groups).collect::<Vec<_>>().join(",")
}

/// Returns the names of `count` things of one kind.
fn numbered(name: &str, count: u32) -> String {
    match count {
        1 => format!("{name}.0"),
        n => format!("{name}.0 to {name}.{}", n - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::{few, thousands};

    #[test]
    fn of_many_names_the_first_are_shown() {
        assert_eq!(few(["a", "b"].into_iter()), "\"a\", \"b\"");
        let five = r#""x", "x", "x", "x", "x""#;
        assert_eq!(few(["x"; 5].into_iter()), five);
        assert_eq!(few(std::iter::repeat_n("x", 40_002)), format!("{five} and 39,997 more"));
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
