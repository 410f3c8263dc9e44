//! The gateway of a run.

use super::columns::{column, counts, shown, total};
use super::grid::{Column, Grid};
use super::{clean, Ink, Lines};
use crate::result::metric::CLASS;
use crate::result::{ClassResult, RunResult, Steering};

/// That the engine was away, if it was.
fn away(s: Steering) -> Option<String> {
    let away = s.passed_stale > 0 || s.restarts > 0;
    away.then(|| {
        format!(
            "the engine was away: {} segments passed as they came, {} restarts",
            s.passed_stale, s.restarts
        )
    })
}

/// What the gateway did, and its classes.
pub(super) fn gateway(result: &RunResult, ink: Ink) -> Lines {
    let Some(g) = &result.gateway else { return Vec::new() };
    let sum = |of: fn(&ClassResult) -> u64| result.classes.iter().map(of).sum::<u64>();
    let f = &g.frames;
    let dropped: u64 = f.dropped.values().sum();
    let reasons = counts(&f.dropped);
    let reasons = if reasons.is_empty() { reasons } else { format!(" ({reasons})") };
    let mut lines = vec![
        format!(
            "{}: {} bytes of user data, ACKs {} absorbed, {} made, {} rewritten, {:.2} s of CPU",
            ink.bold("gateway"),
            g.user_data_bytes,
            sum(|c| c.acks_absorbed),
            sum(|c| c.acks_generated),
            sum(|c| c.acks_rewritten),
            g.cpu_s
        ),
        format!(
            "frames: {} in + {} made = {} out + {} held + {} absorbed + {dropped} dropped{reasons}",
            f.received, f.made, f.sent, f.held, f.absorbed
        ),
    ];
    lines.extend(g.steering.and_then(away));
    let columns = shown(CLASS).map(|(m, heading)| column(m, heading, None));
    let mut grid = Grid::new(std::iter::once(Column::words("class")).chain(columns).collect());
    for c in &result.classes {
        let cells = shown(CLASS).map(|(m, _)| total(m, &[c], None));
        grid.row(std::iter::once(clean(&c.name)).chain(cells).collect());
    }
    lines.extend(ink.grid(&grid));
    lines
}
