//! Tables of results side by side.

use super::columns::{at_least, number, rate_unit, unit, RateUnit};
use super::grid::{Column, Grid};
use super::{clean, Ink, Lines, MOST_FLOWS};
use crate::report::compare::{
    incomparable, off, Apart, Compared, Comparison, Distributed, Outside, Row, Spread,
};
use crate::result::describe;
use crate::result::metric::{of_several, Measured, Tables};
use crate::result::unit::Unit;

/// Most values outside their bounds that are listed.
const MOST_OUTSIDE: usize = 20;

/// Formats a comparison as a table. `terminal` allows colours.
pub fn comparison(c: &Comparison, terminal: bool) -> String {
    let ink = Ink { terminal };
    let mut parts = vec![heading(c, ink)];
    for compared in &c.settings {
        if !compared.settings.is_empty() {
            parts.push(vec![ink.bold(&clean(&describe(&compared.settings)))]);
        }
        let apart = |group: &&[Row; 2]| compared.apart.iter().any(|a| a.group == group[0].id);
        let groups = || compared.groups.iter();
        match compared.flows.len() {
            n if n > MOST_FLOWS => parts.push(grid(c, "group", groups(), ink)),
            _ => {
                parts.push(grid(c, "flow", compared.flows.iter(), ink));
                parts.push(grid(c, "group", groups().filter(apart), ink));
            }
        }
        parts.push(compared.apart.iter().map(|a| drawn(c, a)).collect());
        parts.push(grid(c, "class", compared.classes.iter(), ink));
        parts.push(distributions(c, &compared.distributions, ink));
    }
    parts.push(verdict(c, ink));
    let text = parts.into_iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n") + "\n");
    text.collect::<Vec<_>>().join("\n")
}

fn heading(c: &Comparison, ink: Ink) -> Lines {
    let runs = |i: usize| {
        let all = c.settings.iter().map(|s: &Compared| s.runs[i]);
        let (least, most) = (all.clone().min().unwrap_or(0), all.max().unwrap_or(0));
        match (least, most) {
            (1, 1) => "one run".to_string(),
            (a, b) if a == b => format!("{a} runs"),
            (a, b) => format!("{a} to {b} runs"),
        }
    };
    let [a, b] = &c.names;
    let mut lines =
        vec![format!("{}: {b} ({}) beside {a} ({})", ink.bold(&clean(&c.experiment)), runs(1), runs(0))];
    if c.settings.iter().any(|s| s.runs.iter().any(|&n| n > 1)) {
        lines.push("of several runs their median, and from the lowest to the highest".to_string());
    }
    if c.edited {
        lines.push("the experiment file was not the same in all runs".to_string());
    }
    lines.extend(c.left_out.iter().map(|said| format!("left out: {}", clean(said))));
    if incomplete(c) {
        lines.push("(N of M): a mean of the flows of which the value is known; the others had not ended, or had no sample".into());
    }
    lines.extend(c.differences.iter().map(|said| format!("differs: {}", clean(said))));
    lines
}

/// Returns whether some value is known for a part of the flows only.
fn incomplete(c: &Comparison) -> bool {
    let rows =
        c.settings.iter().flat_map(|s| [&s.flows, &s.groups, &s.classes].into_iter().flatten().flatten());
    rows.flat_map(|row| row.values.iter()).any(|(_, v)| v.is_some_and(|v| v.measured.is_some()))
}

fn value(v: Option<Spread>, unit: Unit, rates: RateUnit) -> String {
    let Some(Spread { median, low, high, measured }) = v else { return String::new() };
    let show = |v: f64| number(unit, v, Some(rates));
    let some = measured.unwrap_or_default();
    if low == high {
        return format!("{}{some}", show(median));
    }
    format!("{} ({} to {}){some}", show(median), show(low), show(high))
}

fn percent(v: Option<f64>) -> String {
    v.map_or(String::new(), |v| format!("{:+.2}", v * 100.0))
}

/// Says why a group is compared as a group only.
fn drawn(c: &Comparison, a: &Apart) -> String {
    let count = |side: usize| match a.flows[side] {
        [least, most] if least == most => least.to_string(),
        [least, most] => format!("{least} to {most}"),
    };
    let why = match a.seeds {
        true => "each seed draws others",
        false => "how many begin depends on the run",
    };
    let ([before, after], [a_name, b_name]) = ([count(0), count(1)], &c.names);
    format!(
        "{}: {before} flows in {a_name}, {after} in {b_name}; {why}, so it is compared as a group",
        clean(&a.group)
    )
}

fn grid<'a>(
    c: &Comparison,
    what: &'static str,
    rows: impl Iterator<Item = &'a [Row; 2]> + Clone,
    ink: Ink,
) -> Lines {
    let all = || rows.clone().flatten().flat_map(|row| row.values.iter());
    let rates = rate_unit(all().filter(|(m, _)| m.unit == Unit::Rate).filter_map(|(_, v)| Some(v?.high)));
    let mut columns = vec![Column::words(what)];
    for (m, heading) in of_several(Tables::Comparisons).filter_map(|m| Some((m, m.column?))) {
        let of = unit(m.unit, Some(rates));
        let [a, b] = c.names.each_ref().map(|side| Column::numbers(format!("{} {side}", heading.text), of));
        columns.extend([a, b.joined()]);
        columns.extend(m.judged.map(|_| Column::numbers("off", "%").joined()));
    }
    let mut grid = Grid::new(columns);
    for [a, b] in rows {
        let mut cells = vec![clean(&a.id)];
        for ((m, a), (_, b)) in a.values.iter().zip(b.values.iter()) {
            cells.extend([a, b].map(|v| value(v, m.unit, rates)));
            let bound = m.judged.and_then(|what| c.bounds.of(what)).unwrap_or(0.0);
            let comparable = incomparable(a, b, bound).is_none();
            cells.extend(m.judged.map(|_| percent(off(a, b).filter(|_| comparable))));
        }
        grid.row(cells);
    }
    ink.narrow(&grid)
}

/// Lists the distributions of groups, the two sides below each other.
fn distributions(c: &Comparison, all: &[Distributed], ink: Ink) -> Lines {
    let rates = all.iter().filter(|d| d.unit == Unit::Rate).flat_map(|d| d.sides.iter().flatten());
    let rates = rate_unit(rates.map(|d| d.max));
    let heads = ["flows", "min", "p10", "p50", "p90", "p99", "max"].map(|head| Column::numbers(head, ""));
    let words = ["group", "value", "side"].map(Column::words);
    let mut grid = Grid::new(words.into_iter().chain(heads).collect());
    for d in all {
        let of = unit(d.unit, Some(rates));
        let value = if of.is_empty() { d.heading.to_string() } else { format!("{}, {of}", d.heading) };
        for (side, found) in c.names.iter().zip(&d.sides) {
            let cells = found.as_ref().map_or([const { String::new() }; 7], |f| {
                let show = |(v, bound)| match bound {
                    true => at_least(d.unit, v, Some(rates)),
                    false => number(d.unit, v, Some(rates)),
                };
                let some = Measured { n: f.n as u64, of: f.of as u64 };
                let [a, b, c, d, e, g] = f.quantiles().map(show);
                [
                    format!(
                        "{}{}",
                        f.of,
                        if some.is_all() { String::new() } else { format!(", {} known", f.n) }
                    ),
                    a,
                    b,
                    c,
                    d,
                    e,
                    g,
                ]
            });
            grid.row([clean(&d.group), value.clone(), side.clone()].into_iter().chain(cells).collect());
        }
    }
    ink.narrow(&grid)
}

/// Returns whether a side has a value of what is judged, in any group.
fn is_measured(c: &Comparison, what: &str) -> bool {
    let any = |[a, b]: &[Row; 2]| {
        a.values
            .iter()
            .zip(b.values.iter())
            .any(|((metric, a), (_, b))| metric.judged == Some(what) && (a.is_some() || b.is_some()))
    };
    c.settings.iter().flat_map(|settings| &settings.groups).any(any)
}

fn verdict(c: &Comparison, ink: Ink) -> Lines {
    let bounds = [("goodput", c.bounds.goodput), ("fct", c.bounds.fct)];
    let bounds: Vec<String> = bounds
        .into_iter()
        .filter_map(|(what, bound)| {
            let percent = round(bound? * 100.0);
            Some(match is_measured(c, what) {
                true => format!("{what} within {percent} %"),
                false => format!("no {what} to compare"),
            })
        })
        .collect();
    if bounds.is_empty() {
        return vec!["no parity is declared: nothing is judged".to_string()];
    }
    let mut lines: Lines = c.outside.iter().take(MOST_OUTSIDE).map(|o| outside(o, ink)).collect();
    if c.outside.len() > MOST_OUTSIDE {
        lines.push(format!("and {} more", c.outside.len() - MOST_OUTSIDE));
    }
    let word = if c.outside.is_empty() { ink.good("ok    ") } else { ink.bad("FAILED") };
    lines.push(format!("{word}  parity: {}", bounds.join(", ")));
    lines
}

fn outside(o: &Outside, ink: Ink) -> String {
    let settings = if o.settings.is_empty() { String::new() } else { format!("{}: ", describe(&o.settings)) };
    let off = match (o.off, o.measured) {
        (Some(off), _) => format!("{:+.2} % off", off * 100.0),
        (None, Some([a, b])) => format!(
            "known of {:.0} % of the flows on one side and of {:.0} % on the other, which is not compared",
            a.share() * 100.0,
            b.share() * 100.0
        ),
        (None, None) => "only one side has any".to_string(),
    };
    format!(
        "{}  {}{} {}: {off}, bound {} %",
        ink.bad("FAILED"),
        clean(&settings),
        clean(&o.group),
        o.what,
        round(o.bound * 100.0)
    )
}

/// Rounds to six decimals: 0.05 × 100 is 5.
fn round(v: f64) -> f64 {
    (v * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::super::WIDTH;
    use super::*;
    use crate::report::compare::{compare, Bounds, ResultFile};
    use crate::result::{Backend, FlowResult, Parity, Quantiles, RunResult};

    fn run(world: Backend, goodput_bps: f64, fct_s: f64) -> ResultFile {
        let rtt_us = Quantiles { p50: 20_000, p99: 31_500 };
        let flow = FlowResult {
            id: "up.0".into(),
            goodput_bps,
            fct_s: Some(fct_s),
            retransmits: 2,
            rtt_us,
            ..FlowResult::default()
        };
        let parity = Some(Parity { goodput: 0.05, fct: 0.1 });
        let run =
            RunResult { experiment: "pair".into(), world, parity, flows: vec![flow], ..RunResult::default() };
        ResultFile { name: "x".into(), runs: vec![run] }
    }

    #[test]
    fn side_by_side() {
        let all = [run(Backend::Sim, 9.9e6, 2.25), run(Backend::Lab, 9e6, 2.0), run(Backend::Lab, 11e6, 2.0)];
        let text = comparison(&compare(&all, Bounds::default(), false).unwrap(), false);
        let want = "\
pair: sim (one run) beside lab (2 runs)
of several runs their median, and from the lowest to the highest

flow               goodput lab  goodput sim    off  fct lab  fct sim     off
                        Mbit/s       Mbit/s      %        s        s       %
up.0  10.000 (9.000 to 11.000)        9.900  -1.00    2.000    2.250  +12.50

flow  rtt p50 lab  rtt p50 sim  rtt p99 lab  rtt p99 sim  retr lab  retr sim  rto lab  rto sim
               ms           ms           ms           ms
up.0        20.00        20.00        31.50        31.50         2         2        0        0

FAILED  up fct: +12.50 % off, bound 10 %
FAILED  parity: goodput within 5 %, fct within 10 %
";
        assert_eq!(text, want, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let wide =
            comparison(&compare(&all, Bounds { fct: Some(0.2), ..Bounds::default() }, false).unwrap(), false);
        assert!(wide.ends_with("ok      parity: goodput within 5 %, fct within 20 %\n"), "{wide}");
        // No flow has ended on either side.
        let mut endless = [run(Backend::Sim, 10e6, 2.0), run(Backend::Lab, 10e6, 2.0)];
        endless.iter_mut().for_each(|file| file.runs[0].flows[0].fct_s = None);
        let text = comparison(&compare(&endless, Bounds::default(), false).unwrap(), false);
        assert!(text.ends_with("ok      parity: goodput within 5 %, no fct to compare\n"), "{text}");
    }

    #[test]
    fn distributions_are_below_each_other() {
        let side = |world, slower: f64| {
            let flow = |k: u32| FlowResult {
                id: format!("web.{k}"),
                fct_s: Some(f64::from(k) * slower),
                ..FlowResult::default()
            };
            let run = RunResult { world, flows: (1..=10).map(flow).collect(), ..RunResult::default() };
            ResultFile { name: "x".into(), runs: vec![run] }
        };
        let all = [side(Backend::Lab, 1.0), side(Backend::Sim, 2.0)];
        let text = comparison(&compare(&all, Bounds::default(), false).unwrap(), false);
        let rows: Vec<&str> = text.lines().filter(|l| l.starts_with("web    fct, s")).collect();
        let words = |row: &str| row.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(rows[0]), "web fct, s lab 10 1.000 1.000 5.000 9.000 10.000 10.000");
        assert_eq!(words(rows[1]), "web fct, s sim 10 2.000 2.000 10.000 18.000 20.000 20.000");
    }
}
