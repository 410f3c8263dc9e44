//! Tables of a run's checks, and of a paper's values beside the measured ones.

use super::grid::{Column, Grid};
use super::{clean, Ink, Lines};
use crate::experiment::plan::Plan;
use crate::result::unit::Unit;
use crate::result::{ExpectResult, ReferenceResult, RunResult, Status};

/// Lists the checks with their outcomes.
pub(super) fn checks(result: &RunResult, plan: &Plan, ink: Ink) -> Lines {
    if result.status == Status::Interrupted && !plan.expects.is_empty() {
        return vec!["checks were not made: the run was interrupted".to_string()];
    }
    with_units(result, plan).map(|(e, unit)| check(e, unit, ink)).collect()
}

/// Returns the checks of a run with the units of their values.
pub(super) fn with_units<'a>(
    result: &'a RunResult,
    plan: &'a Plan,
) -> impl Iterator<Item = (&'a ExpectResult, Unit)> {
    let same = plan.expects.len() == result.expects.len();
    let units = plan.expects.iter().map(|e| e.measure.quantity.unit()).filter(move |_| same);
    result.expects.iter().zip(units.chain(std::iter::repeat(Unit::Count)))
}

fn check(e: &ExpectResult, unit: Unit, ink: Ink) -> String {
    let word = if e.ok { ink.good("ok    ") } else { ink.bad("FAILED") };
    format!("{word}  {}: {}", clean(&e.what), outcome(e, unit))
}

/// Says what a check found, and its bound.
pub(super) fn outcome(e: &ExpectResult, unit: Unit) -> String {
    let Some(value) = e.found else { return "nothing to measure".to_string() };
    let (found, bound) = unit.show_pair(value, e.bound);
    let found = match e.at_least {
        true if value == 0.0 => "nothing that is known".to_string(),
        true => format!("at least {found}"),
        false => found,
    };
    let at = if e.at.is_empty() { String::new() } else { format!(" ({})", clean(&e.at)) };
    let basis = e.basis.map_or(String::new(), |b| format!(" ({})", b.name()));
    format!("found {found}{at}, bound {bound}{basis}")
}

/// Lists a paper's values beside the measured ones.
pub(super) fn reference(result: &RunResult, plan: &Plan, ink: Ink) -> Lines {
    let Some(reference) = plan.reference.as_ref().filter(|_| !result.reference.is_empty()) else {
        return Vec::new();
    };
    let mut grid = Grid::new(vec![Column::words(""), Column::words("paper"), Column::words("ours")]);
    for (row, found) in reference.rows.iter().zip(&result.reference) {
        let ours = ours(row.measure.quantity.unit(), &[found]);
        grid.row(vec![clean(&row.name), clean(&row.paper), ours]);
    }
    let source = format!("beside {}", clean(&reference.source));
    std::iter::once(ink.bold(&source)).chain(ink.grid(&grid)).collect()
}

/// Formats the range of the values found in runs. Where some were not known, its end is a bound.
pub(super) fn ours(unit: Unit, found: &[&ReferenceResult]) -> String {
    let values: Vec<f64> = found.iter().flat_map(|row| row.low.into_iter().chain(row.high)).collect();
    let range = unit.show_range(&values);
    match (range, found.iter().any(|row| row.at_least)) {
        (Some(range), false) => range,
        (Some(range), true) => match range.split_once(" to ") {
            Some((low, high)) => format!("{low} to >={high}"),
            None => format!(">={range}"),
        },
        (None, true) => "-".into(),
        (None, false) => "nothing measured".into(),
    }
}
