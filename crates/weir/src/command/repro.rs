//! `weir repro`: the papers' figures, tables and claims again, in one report.

use crate::command::error::Failure;
use crate::execute::progress::Progress;
use crate::execute::sim::{self, Options};
use crate::execute::store::{self, Store};
use crate::execute::sweep;
use crate::output::Target;
use crate::repro::asks::{self, Experiment};
use crate::repro::judge::Verdict;
use crate::repro::outcome::{self, Report, RowOutcome, World};
use crate::repro::rows::Paper;
use crate::repro::{choose, page, rows, work};
use crate::result::Backend;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Arguments of `weir repro`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  weir repro                          # all papers: about 20 minutes on two processors
  weir repro postack fig9             # one row
  weir repro --list
  weir repro --within 0.5 --out /tmp/short
  sudo weir repro ack-shaper --lab    # with the real Linux TCP beside it

The report is DIR/report.html, a page that needs nothing else, and DIR/report.json. Results of runs stay in DIR/runs: \
an interrupted report goes on where it was, and the results of another version of this program are never used. Exit code \
1: a row differs from its paper without a reason, or a check fails.")]
pub struct Args {
    /// A paper, by the name of its folder; the default is all of them
    pub paper: Option<String>,
    /// A row of the paper: fig9, table5
    pub row: Option<String>,
    /// Write the report into this directory, which is created if needed
    #[arg(long, value_name = "DIR", default_value = "out/repro")]
    pub out: PathBuf,
    /// Folder of the papers' experiments and rows; the default is experiments/papers, or the package's
    #[arg(long, value_name = "DIR")]
    pub papers: Option<PathBuf>,
    /// Only rows that take at most so many minutes
    #[arg(long, value_name = "MINUTES")]
    pub within: Option<f64>,
    /// Print the rows with their claims and minutes, and run nothing
    #[arg(long)]
    pub list: bool,
    #[cfg(feature = "linux")]
    /// Run the rows' experiments in the lab too, one after the other; needs root
    #[arg(long)]
    pub lab: bool,
    /// Run at most N simulations at the same time; the default is one for each processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
}

/// Makes the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    let papers = args.papers.clone().unwrap_or_else(default_papers);
    let all = rows::all(&papers)?;
    let mut chosen = chosen(args, rows::all(&papers)?)?;
    if let Some(minutes) = args.within {
        choose::within(&mut chosen, minutes);
    }
    if args.list {
        return super::print(&list(&chosen));
    }
    let stop = super::sim::stop_on_signals()?;
    let version = store::version().map_err(Failure::Other)?;
    let store = Store::open(&args.out.join("runs"), &version).map_err(Failure::Other)?;
    let at_once = args.jobs.map_or_else(sweep::processors, |n| n as usize);
    let experiments = asks::experiments(&chosen, &all, Backend::Sim)?;
    let simulate = |e: &Experiment, n: usize, progress: &Progress| {
        let options = Options { pcap: None, progress: Some(progress), stop: &stop };
        sim::run(e.runs[n].plan(), &options)
    };
    let made = work::make(&experiments, &store, at_once, &stop, simulate).map_err(Failure::Other)?;
    let in_the_lab = in_the_lab(args, &chosen, &all, &store, &stop)?;
    if stop.load(Ordering::Relaxed) {
        crate::output::say("weir repro: interrupted; the same command goes on from here");
        return Err(Failure::Interrupted);
    }
    let mut worlds = vec![World { experiments: &experiments, made: &made }];
    worlds.extend(in_the_lab.iter().map(|(experiments, made)| World { experiments, made }));
    let report = outcome::report(&chosen, &worlds, &version)?;
    write(&args.out, &report)?;
    super::print(&summary(&report, &args.out))?;
    verdict(&report)
}

/// Returns the folder of a source checkout if this is one, otherwise the folder that packages install.
fn default_papers() -> PathBuf {
    let checkout = PathBuf::from("experiments/papers");
    if checkout.is_dir() {
        return checkout;
    }
    super::installed(&checkout).unwrap_or(checkout)
}

fn chosen(args: &Args, papers: Vec<Paper>) -> Result<Vec<Paper>, Failure> {
    choose::choose(papers, args.paper.as_deref(), args.row.as_deref())
        .map_err(|fault| Failure::Input(fault.to_string()))
}

type InWorld = (Vec<Experiment>, work::Made);

#[cfg(not(feature = "linux"))]
fn in_the_lab(
    _: &Args,
    _: &[Paper],
    _: &[Paper],
    _: &Store,
    _: &AtomicBool,
) -> Result<Option<InWorld>, Failure> {
    Ok(None)
}

/// Runs the rows' experiments in the lab, if that is asked for.
#[cfg(feature = "linux")]
fn in_the_lab(
    args: &Args,
    chosen: &[Paper],
    all: &[Paper],
    store: &Store,
    stop: &AtomicBool,
) -> Result<Option<InWorld>, Failure> {
    if !args.lab {
        return Ok(None);
    }
    let experiments = asks::experiments(chosen, all, Backend::Lab)?;
    let options =
        crate::execute::lab::Options::with_signals().map_err(|e| Failure::Other(format!("signals: {e}")))?;
    let run = |e: &Experiment, n: usize, _: &Progress| super::lab::once(e.runs[n].plan(), &options);
    // The lab runs in real time: one experiment has the machine alone.
    let made = work::make(&experiments, store, 1, stop, run).map_err(Failure::Other)?;
    Ok(Some((experiments, made)))
}

/// Lists rows.
fn list(papers: &[Paper]) -> String {
    let mut out = String::new();
    for paper in papers {
        out.push_str(&format!("{}: {}\n", paper.name, paper.about.title));
        for row in &paper.rows {
            let minutes = work::minutes(row.minutes * 60.0);
            out.push_str(&format!("  {:<18} {:>7}  {}\n", row.id.get_ref(), minutes, row.title));
        }
    }
    out
}

/// Writes the page and the JSON.
fn write(folder: &Path, report: &Report) -> Result<(), Failure> {
    let page = page::page(report).map_err(Failure::Other)?;
    let path = folder.join("report.html");
    let target = Target::new(&path).map_err(Failure::Other)?;
    target.write(page.as_bytes()).map_err(|e| Failure::Other(format!("{}: {e}", path.display())))?;
    super::write_json(&folder.join("report.json"), report)
}

fn all(report: &Report) -> impl Iterator<Item = (&str, &RowOutcome)> {
    report.papers.iter().flat_map(|p| p.rows.iter().map(|r| (p.name.as_str(), r)))
}

/// Returns the verdicts as text.
fn summary(report: &Report, folder: &Path) -> String {
    let mut out = String::new();
    for (paper, row) in all(report) {
        let verdict = row.verdict.words().trim_end_matches(", because");
        out.push_str(&format!("{:<30} {verdict}\n", format!("{paper} {}", row.id)));
        if row.verdict.needs_reason() {
            row.differences.iter().for_each(|d| out.push_str(&format!("    {d}\n")));
            let because = if row.because.is_empty() { "no reason is given" } else { &row.because };
            out.push_str(&format!("    because: {because}\n"));
        }
        let failed = row.experiments.iter().flat_map(|e| e.failed.iter().map(|f| (&e.file, f)));
        failed.for_each(|(file, f)| out.push_str(&format!("    fails: {file}: {f}\n")));
        if row.needless_reason {
            out.push_str("    a reason is given, and nothing differs\n");
        }
    }
    let count = |v: Verdict| all(report).filter(|(_, r)| r.verdict == v).count();
    out.push_str(&format!(
        "{} rows: {} agree, {} better, {} differ, {} not reproducible here\n{}\n",
        all(report).count(),
        count(Verdict::Agrees),
        count(Verdict::Better),
        count(Verdict::Differs),
        count(Verdict::NotReproducible),
        folder.join("report.html").display()
    ));
    out
}

/// Returns the command's result: rows need a reason where they differ, and checks must hold.
fn verdict(report: &Report) -> Result<(), Failure> {
    let failed = |r: &RowOutcome| r.experiments.iter().any(|e| !e.failed.is_empty() && !e.inconclusive);
    match all(report).filter(|(_, r)| r.unexplained || failed(r)).count() {
        0 => Ok(()),
        n => Err(Failure::Repro(n)),
    }
}
