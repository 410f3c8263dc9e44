//! `weir check`: parses a configuration and says what it will do.

use crate::command::error::Failure;
use crate::experiment::config::diag::Located;
use crate::experiment::config::{self, File};
use crate::experiment::describe;
#[cfg(feature = "linux")]
use crate::field;
use crate::result;
use serde::Serialize;
use std::path::PathBuf;

/// Arguments of `weir check`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  weir check gateway.toml
  weir check --dev eth1 --out-flow-rate 20Mbit       # as `weir run` would take it
  weir check experiments/examples/annotated.toml
  weir check --json - gateway.toml | jq '.errors'

The tables of a file tell what it is for: [ports] and [gateway] for `weir run`, [ports] and [path] for `weir wan`. Any \
other file is an experiment.")]
pub struct Args {
    /// An experiment, or the configuration of a gateway or an emulator
    #[arg(value_name = "FILE.toml", conflicts_with_all = ["dev", "out_flow_rate", "in_flow_rate", "uplink", "ack_filter"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    short: super::short::Short,
    /// Write the findings to this file as JSON; `-` is standard output, and the text is then left out
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Something about the host that matters to a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether the configuration cannot work because of it; else it is a warning.
    pub fatal: bool,
    /// What it is.
    pub message: String,
    /// What can be done about it.
    pub help: String,
}

/// Looks at the host that a configuration is for: interfaces, privileges, kernel settings.
pub type HostChecks<'a> = &'a dyn Fn(&File) -> Vec<Finding>;

/// Nothing is looked at: for files from elsewhere.
pub fn no_host_checks(_: &File) -> Vec<Finding> {
    Vec::new()
}

/// This host, which is left as it is.
#[cfg(feature = "linux")]
pub fn this_host(file: &File) -> Vec<Finding> {
    let setup = match file {
        File::Experiment(_) | File::Sweep(_) => return Vec::new(),
        File::Gateway(g) => field::gateway_setup(g),
        File::Wan(w) => field::emulator_setup(w),
    };
    let problems = setup.check().err().map_or(Vec::new(), |p| p.0);
    let fatal = problems.into_iter().map(|message| Finding { fatal: true, message, help: String::new() });
    let help =
        "Weir's programs come first; one that is put in front of them later can keep traffic from them"
            .to_owned();
    let others =
        setup.others().into_iter().map(|message| Finding { fatal: false, message, help: help.clone() });
    fatal.chain(others).collect()
}

/// What a check found, as it is written by `--json`.
#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    file: String,
    kind: Option<&'static str>,
    ok: bool,
    errors: Vec<Located>,
    host: Vec<Finding>,
    summary: Vec<String>,
}

/// Runs `weir check`. Errors in the file are [`Failure::Config`]; a host that cannot do what the file
/// says is [`Failure::Other`].
pub fn run(args: &Args, host: HostChecks) -> Result<(), Failure> {
    let (name, parsed) = match &args.file {
        Some(path) => {
            let source = super::source(path)?;
            (source.name.clone(), config::parse(&source))
        }
        None => ("command line".to_string(), Ok(File::Gateway(Box::new(args.short.load()?)))),
    };
    let mut report = Report {
        schema: result::SCHEMA,
        file: name,
        kind: None,
        ok: parsed.is_ok(),
        errors: Vec::new(),
        host: Vec::new(),
        summary: Vec::new(),
    };
    match &parsed {
        Err(errors) => report.errors = errors.located(),
        Ok(file) => {
            report.kind = Some(describe::kind(file));
            report.summary = describe::lines(file);
            report.host = host(file);
            report.ok = report.host.iter().all(|f| !f.fatal);
        }
    }
    if let Some(to) = &args.json {
        super::write_json(to, &report)?;
    }
    parsed?;
    if args.json.as_deref() != Some("-".as_ref()) {
        super::print(&text(&report))?;
    }
    match report.ok {
        true => Ok(()),
        false => Err(Failure::Other("this host cannot do what the configuration says".to_string())),
    }
}

fn text(report: &Report) -> String {
    let mut text = format!("{}: {}\n", report.file, report.kind.unwrap_or("nothing"));
    for line in &report.summary {
        text.push_str(&format!("  {line}\n"));
    }
    for f in &report.host {
        let severity = if f.fatal { "problem" } else { "warning" };
        text.push_str(&format!("{severity}: {}\n", f.message));
        if !f.help.is_empty() {
            text.push_str(&format!("  {}\n", f.help));
        }
    }
    text
}
