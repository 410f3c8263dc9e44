//! `weir compare`: results side by side.

use crate::command::error::Failure;
use crate::report::compare::{self, Bounds, ResultFile};
use crate::report::table;
use crate::result::Document;
use std::path::{Path, PathBuf};

/// Arguments of `weir compare`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  weir compare sim.json lab.json
  weir compare sim.json lab-1.json lab-2.json lab-3.json     # with the median of the lab's
  weir compare before.json after.json --goodput 0.01

Results of the simulator are compared with those of the lab. If all results are of one world, the others are compared \
with the first file. The bounds are those of the experiment's [parity], unless --goodput or --fct is given; without \
bounds nothing is judged. Runs that differ in congestion control, kernel or TCP settings are refused unless \
--allow-differences is given.

Exit codes: 1 outside the bounds, 2 files that cannot be compared.")]
pub struct Args {
    /// Results, as --json writes them
    #[arg(value_name = "RESULT.json", required = true, num_args = 2..)]
    pub results: Vec<PathBuf>,
    /// Largest difference of a flow's goodput, as a fraction: 0.05 is 5 %
    #[arg(long, value_name = "FRACTION", value_parser = fraction)]
    pub goodput: Option<f64>,
    /// Largest difference of completion times, as a fraction
    #[arg(long, value_name = "FRACTION", value_parser = fraction)]
    pub fct: Option<f64>,
    /// Compare runs that differ in congestion control, kernel or settings of TCP, and say in what
    #[arg(long)]
    pub allow_differences: bool,
    /// Write the comparison as JSON; `-` is standard output, and the table then goes to standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

fn fraction(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(v) if v.is_finite() && v >= 0.0 => Ok(v),
        _ => Err("a fraction is a number such as 0.05".to_string()),
    }
}

/// Reads results, compares them, and prints the comparison.
pub fn run(args: &Args) -> Result<(), Failure> {
    let given = args.results.iter().map(|p| read(p)).collect::<Result<Vec<ResultFile>, Failure>>()?;
    let bounds = Bounds { goodput: args.goodput, fct: args.fct };
    let comparison = compare::compare(&given, bounds, args.allow_differences).map_err(Failure::Input)?;
    if let Some(to) = &args.json {
        super::write_json(to, &comparison)?;
    }
    if args.json.as_deref() == Some("-".as_ref()) {
        crate::output::say(table::comparison(&comparison, false).trim_end());
    } else {
        super::print(&table::comparison(&comparison, super::takes_colours()))?;
    }
    match comparison.outside.len() {
        0 => Ok(()),
        n => Err(Failure::Parity(n)),
    }
}

fn read(path: &Path) -> Result<ResultFile, Failure> {
    let name = path.display().to_string();
    let fault = |e: String| Failure::Input(format!("{name}: {e}"));
    let text = std::fs::read_to_string(path).map_err(|e| fault(e.to_string()))?;
    let runs = Document::parse(&text).map_err(fault)?.runs();
    Ok(ResultFile { name, runs })
}
