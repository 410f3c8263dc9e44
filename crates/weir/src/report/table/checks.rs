//! Tables of a run's checks, and of a paper's values beside the measured ones.

use super::grid::{Column, Grid};
use super::{clean, Ink, Lines};
use crate::experiment::plan::Plan;
use crate::result::unit::Unit;
use crate::result::{ExpectResult, RunResult, Status};

/// Lists the checks with their outcomes.
pub(super) fn checks(result: &RunResult, plan: &Plan, ink: Ink) -> Lines {
    if result.status == Status::Interrupted && !plan.expects.is_empty() {
        return vec!["checks were not made: the run was interrupted".to_string()];
    }
    let same = plan.expects.len() == result.expects.len();
    let units = plan.expects.iter().map(|e| e.measure.quantity.unit()).filter(|_| same);
    let units = units.chain(std::iter::repeat(Unit::Count));
    result.expects.iter().zip(units).map(|(e, unit)| check(e, unit, ink)).collect()
}

fn check(e: &ExpectResult, unit: Unit, ink: Ink) -> String {
    let word = if e.ok { ink.good("ok    ") } else { ink.bad("FAILED") };
    let found = match e.found {
        None => "nothing to measure".to_string(),
        Some(found) => {
            let (found, bound) = unit.show_pair(found, e.bound);
            let found = match (e.at_least, e.found) {
                (true, Some(0.0)) => "nothing that is known".to_string(),
                (true, _) => format!("at least {found}"),
                (false, _) => found,
            };
            let at = if e.at.is_empty() { String::new() } else { format!(" ({})", clean(&e.at)) };
            let basis = e.basis.map_or(String::new(), |b| format!(" ({})", b.name()));
            format!("found {found}{at}, bound {bound}{basis}")
        }
    };
    format!("{word}  {}: {found}", clean(&e.what))
}

/// Lists a paper's values beside the measured ones.
pub(super) fn reference(result: &RunResult, plan: &Plan, ink: Ink) -> Lines {
    let Some(reference) = &plan.reference else { return Vec::new() };
    let mut grid = Grid::new(vec![Column::words(""), Column::words("paper"), Column::words("ours")]);
    for (row, found) in reference.rows.iter().zip(&result.reference) {
        let values: Vec<f64> = found.low.into_iter().chain(found.high).collect();
        let ours = row.measure.quantity.unit().show_range(&values);
        grid.row(vec![clean(&row.name), clean(&row.paper), ours.unwrap_or("nothing measured".into())]);
    }
    let source = format!("beside {}", clean(&reference.source));
    std::iter::once(ink.bold(&source)).chain(ink.grid(&grid)).collect()
}
