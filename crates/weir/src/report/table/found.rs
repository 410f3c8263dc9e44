//! Tables of several runs besides their flows: classes, checks, and values of a paper.

use super::checks::ours;
use super::columns::{number, rate_unit, unit};
use super::grid::{Column, Grid};
use super::{clean, Ink, Lines};
use crate::experiment::plan::Plan;
use crate::report::summary::mean;
use crate::result::unit::Unit;
use crate::result::{ClassResult, ExpectResult, RunResult, Runs, Status};

/// Most rows of classes that are shown.
const MOST_CLASSES: usize = 200;

/// Returns the completed runs, grouped by settings.
fn whole(runs: &Runs) -> Vec<Vec<&RunResult>> {
    let all: Vec<&RunResult> =
        runs.runs.iter().filter(|r| r.error.is_none() && r.status != Status::Interrupted).collect();
    all.chunk_by(|a, b| a.settings == b.settings).map(<[&RunResult]>::to_vec).collect()
}

/// Returns the values of the settings, in the order of the columns.
pub(super) fn settings<'a>(
    run: &'a crate::result::Settings,
    names: &'a [String],
) -> impl Iterator<Item = String> + 'a {
    names.iter().map(|name| clean(&run.get(name).map_or(String::new(), |setting| setting.to_string())))
}

/// Returns the columns of the settings that a sweep made.
fn setting_columns(names: &[String]) -> Vec<Column> {
    names.iter().map(|name| Column::words(clean(name))).collect()
}

/// Lists the goodput of each class for each setting; with several seeds, their mean.
pub(super) fn classes(runs: &Runs, names: &[String], ink: Ink) -> Lines {
    let whole = whole(runs);
    let rates = rate_unit(whole.iter().flatten().flat_map(|r| &r.classes).map(|c| c.bps));
    let mut columns = setting_columns(names);
    columns.extend([Column::words("class"), Column::numbers("runs", "")]);
    columns
        .extend(["goodput", "+-", "target"].map(|head| Column::numbers(head, unit(Unit::Rate, Some(rates)))));
    let mut grid = Grid::new(columns);
    let mut rows = 0;
    for same in &whole {
        let Some(first) = same.first() else { continue };
        for name in first.classes.iter().map(|c| &c.name) {
            let own: Vec<&ClassResult> =
                same.iter().filter_map(|r| r.classes.iter().find(|c| c.name == *name)).collect();
            let Some(found) = mean(&own.iter().map(|c| c.bps).collect::<Vec<_>>()) else { continue };
            let target = own.iter().map(|c| c.target_bps).max().filter(|&bps| bps > 0);
            rows += 1;
            if rows > MOST_CLASSES {
                continue;
            }
            let rate = |v: Option<f64>| v.map_or(String::new(), |v| number(Unit::Rate, v, Some(rates)));
            let mut cells: Vec<String> = settings(&first.settings, names).collect();
            cells.extend([clean(name), own.len().to_string(), rate(Some(found.mean)), rate(found.ci95)]);
            cells.push(rate(target.map(|bps| bps as f64)));
            grid.row(cells);
        }
    }
    if rows == 0 {
        return Vec::new();
    }
    let more = rows.saturating_sub(MOST_CLASSES);
    let rest = (more > 0).then(|| format!("{more} more rows of classes are in the JSON document"));
    ink.grid(&grid).into_iter().chain(rest).collect()
}

/// Lists each check with the lowest and the highest value found in any run.
pub(super) fn checks(runs: &Runs, plan: &Plan, ink: Ink) -> Lines {
    let whole: Vec<&RunResult> = whole(runs).into_iter().flatten().collect();
    let checks = plan.expects.iter().enumerate();
    checks.filter_map(|(i, e)| check(&whole, i, e.measure.quantity.unit(), ink)).collect()
}

fn check(runs: &[&RunResult], i: usize, unit: Unit, ink: Ink) -> Option<String> {
    let made: Vec<&ExpectResult> = runs.iter().filter_map(|run| run.expects.get(i)).collect();
    let first = made.first()?;
    let held = made.iter().filter(|e| e.ok).count();
    let word = if held == made.len() { ink.good("ok    ") } else { ink.bad("FAILED") };
    let values: Vec<f64> = made.iter().filter_map(|e| e.found).collect();
    let bound = if made.iter().any(|e| e.at_least) { "at least " } else { "" };
    let found =
        unit.show_range(&values).map_or("nothing to measure".into(), |all| format!("found {bound}{all}"));
    // The words of a check may contain a swept setting.
    let what = if made.iter().all(|e| e.what == first.what) { &first.what } else { "check, by settings" };
    let of = made.len();
    Some(format!("{word}  {}: {found}; {held} of {of} runs hold", clean(what)))
}

/// Lists a paper's values beside the lowest and the highest values found, for each setting.
pub(super) fn reference(runs: &Runs, names: &[String], plan: &Plan, ink: Ink) -> Lines {
    let Some(reference) = &plan.reference else { return Vec::new() };
    let mut columns = setting_columns(names);
    columns.extend(["", "paper", "ours"].map(Column::words));
    let mut grid = Grid::new(columns);
    for same in whole(runs) {
        let Some(first) = same.first() else { continue };
        for (i, row) in reference.rows.iter().enumerate() {
            let found: Vec<_> = same.iter().filter_map(|run| run.reference.get(i)).collect();
            let ours = ours(row.measure.quantity.unit(), &found);
            let mut cells: Vec<String> = settings(&first.settings, names).collect();
            cells.extend([clean(&row.name), clean(&row.paper), ours]);
            grid.row(cells);
        }
    }
    let source = format!("beside {}", clean(&reference.source));
    std::iter::once(ink.bold(&source)).chain(ink.grid(&grid)).collect()
}
