//! `weir check`: parses a configuration and explains its effect.

use crate::command::error::Failure;
use crate::experiment::config::diag::Located;
use crate::experiment::config::{self, gateway, File};
use crate::experiment::describe;
#[cfg(feature = "linux")]
use crate::field;
#[cfg(feature = "linux")]
use crate::report::metrics;
use crate::result;
use serde::Serialize;
use std::path::PathBuf;
#[cfg(feature = "linux")]
use weir_core::gateway::{Compiled, Config, Direction, MOST_CONDITIONS};

/// Arguments of `weir check`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  weir check gateway.toml
  weir check --dev eth1 --out-flow-rate 20Mbit       # as `weir run` would take it
  weir check experiments/examples/annotated.toml
  weir check --json - gateway.toml | jq '.errors'
  sudo weir check --host                             # what this kernel lacks, without a file

The tables of a file tell what it is for: [ports] and [gateway] for `weir run`, [ports] and [path] for `weir wan`. Any \
other file is an experiment.")]
pub struct Args {
    /// An experiment, or the configuration of a gateway or an emulator
    #[arg(value_name = "FILE.toml", conflicts_with_all = super::short::OPTIONS)]
    file: Option<PathBuf>,
    #[command(flatten)]
    short: super::short::Short,
    /// Only say what this host's kernel lacks, and since which version it exists
    #[cfg(feature = "linux")]
    #[arg(long, conflicts_with_all = ["file", "json"], conflicts_with_all = super::short::OPTIONS)]
    host: bool,
    /// Write the findings to this file as JSON; `-` is standard output, and the text is then left out
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Property of the host that matters to a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// True if it prevents the configuration from working; otherwise it is a warning.
    pub fatal: bool,
    /// Description of the problem.
    pub message: String,
    /// Advice for solving it.
    pub help: String,
}

/// Function that inspects the host for a configuration: interfaces, privileges, kernel settings.
pub type HostChecks<'a> = &'a dyn Fn(&File) -> Vec<Finding>;

/// Checks nothing, for files of other machines.
pub fn no_host_checks(_: &File) -> Vec<Finding> {
    Vec::new()
}

/// Inspects this host without changing it.
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
    let rules = match file {
        File::Gateway(g) => without_place(&g.gateway),
        _ => Vec::new(),
    };
    fatal.chain(others).chain(rules).collect()
}

/// Returns a finding for rules that do not fit into the maps of the programs in the kernel.
#[cfg(feature = "linux")]
fn without_place(config: &Config) -> Vec<Finding> {
    let compiled = Compiled::from(config.clone());
    let of = |direction| compiled.rules(direction).left_out;
    let help = "Merge rules, or give them prefixes of their own: without a place in the kernel, what only this rule takes is not \
         held to the rate of its class there";
    let finding = |(class, rule): (u32, u32)| {
        Finding {
        fatal: false,
        message: format!(
            "class `{}`, rule {}: more than {MOST_CONDITIONS} rules with this prefix look at more than the prefix",
            config.classes[class as usize].name,
            rule + 1
        ),
        help: help.to_owned(),
    }
    };
    // The hooks classify only where a rate is theirs to keep: queues have rules of their own.
    let limits =
        |d: &Direction| config.classes.iter().any(|class| class.direction == *d && class.ack.is_some());
    [Direction::Out, Direction::In].into_iter().filter(limits).flat_map(of).map(finding).collect()
}

/// Returns how many series `weir metrics` has of a gateway, beside one for each event, reason and action.
#[cfg(feature = "linux")]
fn series(file: &File) -> Option<String> {
    let File::Gateway(g) = file else { return None };
    let of_customers = 2 * g.customers.len();
    // Two directions of the link, and of what no class takes.
    let rows = 4 + g.gateway.classes.len() - of_customers;
    let (few, all) = (metrics::series(rows), metrics::series(rows + of_customers));
    let with = if of_customers > 0 { format!(", {all} with --customers") } else { String::new() };
    let (flow, customer) = (result::quality::BYTES.0, result::quality::BYTES.1);
    let of_customer = if of_customers > 0 { format!(", {customer} bytes a customer") } else { String::new() };
    Some(format!("weir metrics: {few} series{with}\nmemory of quality: {flow} bytes a flow{of_customer}"))
}

/// Says how much memory a gateway takes from its start on.
#[cfg(feature = "linux")]
fn memory(file: &File) -> Option<String> {
    let File::Gateway(g) = file else { return None };
    let bytes = field::gateway_setup(g).memory().ok()?;
    Some(format!("memory: {} MiB for at most {} flows", bytes.div_ceil(1 << 20), g.gateway.max_flows))
}

/// Findings of a check, as `--json` writes them.
#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    file: String,
    kind: Option<&'static str>,
    ok: bool,
    errors: Vec<Located>,
    /// Rows and keys of lists that are left out, or that count otherwise than written.
    notes: Vec<Located>,
    host: Vec<Finding>,
    summary: Vec<String>,
}

/// Runs `weir check`. Errors in the file are [`Failure::Config`]. A host that cannot run the configuration is
/// [`Failure::Other`].
pub fn run(args: &Args, host: HostChecks) -> Result<(), Failure> {
    #[cfg(feature = "linux")]
    if args.host {
        return this_kernel();
    }
    let (name, parsed) = match &args.file {
        Some(path) => {
            let source = super::source(path)?;
            (source.name.clone(), config::parse(&source))
        }
        None => ("command line".to_string(), Ok(File::Gateway(gateway::parse(&args.short.load()?)?.into()))),
    };
    let mut report = Report {
        schema: result::SCHEMA,
        file: name,
        kind: None,
        ok: parsed.is_ok(),
        errors: Vec::new(),
        notes: Vec::new(),
        host: Vec::new(),
        summary: Vec::new(),
    };
    match &parsed {
        Err(errors) => report.errors = errors.located(),
        Ok(file) => {
            report.kind = Some(describe::kind(file));
            report.summary = describe::lines(file);
            #[cfg(feature = "linux")]
            report.summary.extend(memory(file).into_iter().chain(series(file)));
            report.notes = notes(file);
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

/// Says what the kernel lacks for a gateway, an emulator or paced hosts.
#[cfg(feature = "linux")]
fn this_kernel() -> Result<(), Failure> {
    match weir_io::supervise::host_problems().as_slice() {
        [] => super::print("this kernel has what Weir needs\n"),
        problems => {
            super::print(
                &problems.iter().map(|problem| format!("problem: {problem}\n")).collect::<String>(),
            )?;
            Err(Failure::Other("Weir cannot run on this host".to_owned()))
        }
    }
}

/// Returns the notes on the lists of customers and sites that a file names.
fn notes(file: &File) -> Vec<Located> {
    match file {
        File::Gateway(g) => g.notes.clone(),
        File::Experiment(e) => e.notes.clone(),
        File::Sweep(runs) => runs.first().map_or(Vec::new(), |run| run.experiment.notes.clone()),
        File::Wan(_) => Vec::new(),
    }
}

/// Most notes that the text lists one by one.
const MOST_NOTES: usize = 100;

fn text(report: &Report) -> String {
    let mut text = format!("{}: {}\n", report.file, report.kind.unwrap_or("nothing"));
    for line in &report.summary {
        text.push_str(&format!("  {line}\n"));
    }
    for note in report.notes.iter().take(MOST_NOTES) {
        text.push_str(&format!("note: {note}\n"));
    }
    if report.notes.len() > MOST_NOTES {
        let more = report.notes.len() - MOST_NOTES;
        text.push_str(&format!("note: and {more} more, which `--json -` has\n"));
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

#[cfg(all(test, feature = "linux"))]
mod tests {
    use super::*;
    use weir_core::ack::PRESETS;
    use weir_core::gateway::{ClassConfig, Match, Prefix};
    use weir_core::rate::Rate;

    /// Six rows: link and unlisted traffic in two directions, and two classes. Each has nineteen values.
    #[test]
    fn series_are_counted_before_they_are_scraped() {
        let both = gateway::short("eth1", Some(Rate::mbit(1)), Some(Rate::mbit(1)), None);
        let file = File::Gateway(gateway::parse(&both).unwrap().into());
        assert_eq!(
            series(&file).as_deref(),
            Some("weir metrics: 124 series\nmemory of quality: 64 bytes a flow")
        );
    }

    #[test]
    fn a_rule_without_a_place_in_the_kernel_is_named() {
        let rule = |port: u16| Match {
            src: Prefix::new("10.0.0.0".parse().unwrap(), 8),
            dst_port: Some(port..=port),
            ..Match::default()
        };
        let policy = (PRESETS[0].policy)(Rate::mbit(1));
        let with_ack = |rules: u16, ack| {
            let class = ClassConfig {
                matches: (0..rules).map(rule).collect(),
                ack,
                ..ClassConfig::controlled("a", Direction::Out, policy)
            };
            without_place(&Config { classes: vec![class], ..Config::default() })
        };
        let with = |rules: u16| with_ack(rules, Some(policy));
        let most = MOST_CONDITIONS as u16;
        assert!(with(most).is_empty());
        assert!(with_ack(most + 1, None).is_empty(), "no rate is kept there");
        let found = with(most + 1);
        assert_eq!(found.len(), 1);
        assert!(found[0].message.starts_with(&format!("class `a`, rule {}: ", most + 1)), "{found:?}");
    }
}
