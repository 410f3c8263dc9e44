//! `weir lab`: an experiment with the real Linux TCP in network namespaces.

use super::{write_text, Failure};
use crate::config::{experiment, Source};
use crate::lab::{self, Options};
use crate::result::{Status, World};
use crate::{chart, expect, table};
use clap::Args;
use std::io::IsTerminal;
use std::path::PathBuf;

/// Arguments of `weir lab`.
#[derive(Debug, Args)]
#[command(after_help = "Exits 0 if every [[expect]] holds, 1 if one fails, 2 on bad input, 3 when interrupted (with \
                        what was measured until then).\n\nExample: sudo weir lab \
                        experiments/papers/ack-shaper/fig12.toml --out out/fig12")]
pub struct Arguments {
    /// The experiment.
    #[arg(value_name = "EXPERIMENT.TOML")]
    pub file: PathBuf,
    /// Write the result as JSON to this file (`-`: standard output instead of the table).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the result, SVG charts and a CSV file per series to this directory.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Capture the frames at the gateway's ports to this directory.
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Seed of everything random, instead of the file's.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Name of the namespaces (`weir-ID-cl` and so on), for looking into a running lab.
    #[arg(long)]
    pub id: Option<String>,
}

/// Runs the experiment, checks it, prints and writes its result.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let source = Source::read(&arguments.file)?;
    let parsed = experiment::parse(&source).map_err(|e| e.to_string())?;
    let mut plan = parsed.plan_for(World::Lab).map_err(|e| e.to_string())?;
    plan.seed = arguments.seed.unwrap_or(plan.seed);

    let options = Options::with_signals().map_err(|e| format!("signals: {e}"))?;
    let options = Options { id: arguments.id.clone(), pcap: arguments.pcap.clone(), ..options };
    let outcome = lab::run(&plan, &source.text, &options)?;
    for fault in &outcome.faults {
        eprintln!("weir lab: {fault}");
    }
    let mut result = outcome.result;
    if result.status != Status::Interrupted {
        result.expects = expect::evaluate(&plan, &result);
        if result.expects.iter().any(|e| !e.ok) {
            result.status = Status::Failed;
        }
    }

    let json = serde_json::to_string(&result).map_err(|e| e.to_string())? + "\n";
    let to_stdout = arguments.json.as_ref().is_some_and(|p| p.as_os_str() == "-");
    if let Some(path) = &arguments.json {
        write_text(path, &json)?;
    }
    if !to_stdout {
        print!("{}", table::render(&result, &plan, std::io::stdout().is_terminal()));
    }
    if let Some(directory) = &arguments.out {
        let fault = |e: std::io::Error| format!("{}: {e}", directory.display());
        std::fs::create_dir_all(directory).map_err(fault)?;
        std::fs::write(directory.join("result.json"), &json).map_err(fault)?;
        let written = chart::write(directory, &plan, &result).map_err(fault)?;
        if !to_stdout {
            println!("{} files in {}", written.len() + 1, directory.display());
        }
    }
    match result.status {
        Status::Ok => Ok(()),
        Status::Failed => Err(Failure::Expect),
        Status::Interrupted => Err(Failure::Interrupted),
    }
}
