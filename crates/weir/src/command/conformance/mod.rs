//! `weir conformance`: rules of TCP that a middlebox must keep, case by case.

#[cfg(feature = "linux")]
mod between;

use crate::command::error::Failure;
use crate::execute::progress::Progress;
#[cfg(feature = "linux")]
use crate::experiment::config::addresses;
use crate::report::table;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use std::path::PathBuf;
#[cfg(feature = "linux")]
use weir_conformance::{judge, Script, Trace};
use weir_conformance::{subjects, Case, Verdict, CASES};

/// Arguments of `weir conformance`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  weir conformance                                  # every case for every preset, in virtual time
  weir conformance --case sack --case dsack
  weir conformance --list                           # the cases, with their rules and sources
  sudo weir conformance --lan eth0 --wan eth1       # most cases, for whatever sits between two interfaces

With --lan and --wan, both ends are played by this host, on Ethernet and without an address of its own: a bridge or \
another middlebox that no end sees is to sit between the two interfaces. Data goes from --lan to --wan.

A case defines the segments that the two ends of a connection send. The output of the gateway, on its own and behind its hooks, for \
data that goes out and data that comes in, is held to the RFCs. Exit code 1: some case fails.")]
pub struct Args {
    /// Run only this case; may be given several times
    #[arg(long = "case", value_name = "NAME", value_parser = names())]
    cases: Vec<String>,
    #[cfg(feature = "linux")]
    /// Interface at which the data's senders are; the cases test the device between this and --wan
    #[arg(long, value_name = "INTERFACE", requires = "wan", value_parser = addresses::interface)]
    lan: Option<String>,
    #[cfg(feature = "linux")]
    /// Interface at which the data's receivers are
    #[arg(long, value_name = "INTERFACE", requires = "lan", value_parser = addresses::interface)]
    wan: Option<String>,
    /// List the cases, with the rule of each and its source
    #[arg(long, conflicts_with = "json")]
    list: bool,
    /// Write the verdicts to this file as JSON; `-` is standard output, and the table is then left out
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(CASES.iter().map(|case| case.name))
}

/// Results of the suite, as `--json` writes them.
#[derive(Serialize)]
struct Report {
    schema: u32,
    subjects: Vec<String>,
    cases: Vec<Row>,
    passed: usize,
    failed: usize,
}

/// A case, with the reasons of its failures by subject.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    rule: &'static str,
    source: &'static str,
    failures: Vec<Option<String>>,
}

/// Runs `weir conformance`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let chosen = |case: &&Case| args.cases.is_empty() || args.cases.iter().any(|name| name == case.name);
    let cases: Vec<&Case> = CASES.iter().filter(chosen).collect();
    if args.list {
        return super::print(&list(&cases));
    }
    #[cfg(feature = "linux")]
    if let (Some(lan), Some(wan)) = (&args.lan, &args.wan) {
        return over_interfaces(lan, wan, &cases)?.present(args.json.as_deref());
    }
    let subjects = subjects();
    let progress = Progress::counting("conformance", cases.len());
    let verdicts = |_, case: &Case| {
        let judged = subjects.iter().map(|subject| subject.judge(case)).collect();
        progress.step();
        judged
    };
    let report = Report::new(subjects.iter().map(|s| s.name.clone()).collect(), &cases, verdicts);
    drop(progress);
    report.present(args.json.as_deref())
}

/// Tests the middlebox between two interfaces with those cases that a wire can carry.
#[cfg(feature = "linux")]
fn over_interfaces(lan: &str, wan: &str, cases: &[&Case]) -> Result<Report, Failure> {
    let (cases, left_out): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(|case| case.on_the_wire);
    if let [first, ..] = left_out[..] {
        crate::output::say(&format!(
            "{} of the cases need virtual time and are left out: {}, …",
            left_out.len(),
            first.name
        ));
    }
    let script = |(case, number): (&&Case, u8)| {
        let mut script = Script::new(number);
        (case.play)(&mut script);
        script
    };
    let scripts: Vec<Script> = cases.iter().zip(0..).map(script).collect();
    let mut crossed = between::play(lan, wan, &scripts).map_err(Failure::Other)?.into_iter();
    let judged = scripts.iter().zip(&cases).map(|(script, case)| {
        let trace = Trace::new(script, between::TRAITS, crossed.next().unwrap_or_default());
        judge(case, &trace)
    });
    let judged: Vec<Verdict> = judged.collect();
    Ok(Report::new(vec![format!("{lan} to {wan}")], &cases, |n, _| vec![judged[n].clone()]))
}

fn list(cases: &[&Case]) -> String {
    let line = |case: &&Case| format!("{:28} {} ({})\n", case.name, case.rule, case.source);
    cases.iter().map(line).collect()
}

impl Report {
    /// Returns the verdicts on all subjects, case by case.
    fn new(
        subjects: Vec<String>,
        cases: &[&Case],
        verdicts: impl Fn(usize, &Case) -> Vec<Verdict>,
    ) -> Report {
        let row = |(n, case): (usize, &&Case)| Row {
            name: case.name,
            rule: case.rule,
            source: case.source,
            failures: verdicts(n, case).into_iter().map(Result::err).collect(),
        };
        let cases: Vec<Row> = cases.iter().enumerate().map(row).collect();
        let failed = cases.iter().flat_map(|c| &c.failures).flatten().count();
        let passed = cases.iter().map(|c| c.failures.len()).sum::<usize>() - failed;
        Report { schema: crate::result::SCHEMA, subjects, cases, passed, failed }
    }

    /// Writes or prints the report, and returns the command's result.
    fn present(&self, json: Option<&std::path::Path>) -> Result<(), Failure> {
        if let Some(to) = json {
            super::write_json(to, self)?;
        }
        if json != Some("-".as_ref()) {
            let rows: Vec<table::CaseRow> = self.cases.iter().map(Row::shown).collect();
            super::print(&table::conformance(&self.subjects, &rows))?;
        }
        match self.failed {
            0 => Ok(()),
            n => Err(Failure::Conformance(n)),
        }
    }
}

impl Row {
    fn shown(&self) -> table::CaseRow<'_> {
        (self.name, self.failures.iter().map(Option::as_deref).collect())
    }
}
