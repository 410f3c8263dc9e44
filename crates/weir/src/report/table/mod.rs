//! Text of a run, for people: flows in the layout of iperf, the gateway, the links, the checks, and the
//! paper's values beside the measured ones. Plain ASCII unless names are not. Only terminal output has
//! control characters other than newlines.

#[cfg(feature = "linux")]
mod cells;
mod checks;
mod columns;
mod comparison;
mod conformance;
#[cfg(feature = "linux")]
mod emulator;
mod flows;
mod found;
mod gateway;
mod grid;
mod links;
#[cfg(feature = "linux")]
pub mod load;
#[cfg(feature = "linux")]
mod running;
mod runs;

#[cfg(feature = "linux")]
pub use cells::{cut, mbit};
pub use comparison::comparison;
pub use conformance::{conformance, CaseRow};
#[cfg(feature = "linux")]
pub use emulator::emulator;
#[cfg(feature = "linux")]
pub use running::{notes, running};
pub use runs::runs;

use crate::experiment::config::diag::is_hidden;
use crate::experiment::plan::Plan;
use crate::result::{RunResult, Status};
use grid::Grid;

/// Most flows shown singly; beyond it, each group has one line.
const MOST_FLOWS: usize = 32;

/// Width of comparisons, in columns of a terminal.
const WIDTH: usize = 100;

/// Formats a run as a table. `terminal` allows colours.
pub fn render(result: &RunResult, plan: &Plan, terminal: bool) -> String {
    let ink = Ink { terminal };
    let mut parts = vec![heading(result, plan, ink)];
    if result.flows.len() > MOST_FLOWS {
        parts.push(flows::groups(result, plan, ink));
    } else {
        parts.push(flows::flows(result, plan, ink));
    }
    parts.push(gateway::gateway(result, ink));
    parts.push(links::links(result, plan, ink));
    parts.push(checks::checks(result, plan, ink));
    parts.push(checks::reference(result, plan, ink));
    let parts: Vec<String> =
        parts.into_iter().filter(|p| !p.is_empty()).map(|lines| lines.join("\n") + "\n").collect();
    parts.join("\n")
}

/// Formats rows of numbers under their headings, each with its unit.
pub fn numbers(heads: &[(&str, &'static str)], rows: Vec<Vec<String>>) -> String {
    let mut grid = Grid::new(heads.iter().map(|(name, unit)| grid::Column::numbers(*name, unit)).collect());
    rows.into_iter().for_each(|row| grid.row(row));
    let (heads, rows) = grid.lines();
    heads.into_iter().chain(rows).map(|line| line + "\n").collect()
}

type Lines = Vec<String>;

/// Highlighting of words.
#[derive(Clone, Copy)]
struct Ink {
    terminal: bool,
}

impl Ink {
    fn paint(self, code: &str, text: &str) -> String {
        if self.terminal {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_string()
        }
    }
    fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }
    fn good(self, text: &str) -> String {
        self.paint("32", text)
    }
    fn bad(self, text: &str) -> String {
        self.paint("1;31", text)
    }
    /// Formats a grid with a highlighted heading.
    fn grid(self, grid: &Grid) -> Lines {
        self.block(grid.lines())
    }
    /// Formats a grid in blocks that fit a terminal of [`WIDTH`] columns, with an empty line between them.
    fn narrow(self, grid: &Grid) -> Lines {
        let blocks: Vec<Lines> = grid.blocks(WIDTH).into_iter().map(|block| self.block(block)).collect();
        blocks.join(&String::new())
    }
    fn block(self, (heads, rows): (Lines, Lines)) -> Lines {
        heads.iter().map(|h| self.bold(h)).chain(rows).collect()
    }
}

/// Makes hidden characters in text from a file visible, so that a terminal does not obey them.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) { '?' } else { c }).collect()
}

fn heading(result: &RunResult, plan: &Plan, ink: Ink) -> Lines {
    let name = clean(&result.experiment);
    let title = if plan.title.is_empty() { String::new() } else { format!(": {}", clean(&plan.title)) };
    let status = match result.status {
        Status::Ok => ink.good("ok"),
        Status::Failed => ink.bad("FAILED"),
        Status::Interrupted => ink.bad("interrupted"),
    };
    let kernel = &result.made_by.kernel;
    let kernel = if kernel.is_empty() { String::new() } else { format!(", Linux {}", clean(kernel)) };
    let run = format!(
        "{}, seed {}{kernel}: {} s in {:.1} s, {} frames",
        result.world.name(),
        result.seed,
        seconds(result),
        result.wall_s,
        result.packets
    );
    let starved = result.machine.filter(|machine| !machine.had_time());
    let starved = starved.map(|machine| {
        ink.bad(&format!("inconclusive: the machine was overloaded during this run: {machine}"))
    });
    [format!("{}{title}", ink.bold(&name)), format!("{run}, {status}")].into_iter().chain(starved).collect()
}

/// Returns the time that the run covers, in seconds to the millisecond.
fn seconds(result: &RunResult) -> f64 {
    (result.duration_s * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests;
