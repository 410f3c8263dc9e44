//! Configuration files, parsed into valid values. A wrong unit, range or name is reported with its line, its
//! column and the accepted values, so nothing is checked later.
//!
//! There are three kinds of files: experiments ([`experiment::parse`]), `gateway.toml` ([`gateway::parse`])
//! and files for `weir wan` ([`wan::parse`]). `[gateway]`, `[ports]` and `[path]` are the same tables in all
//! of them.

mod ack_filter;
pub mod addresses;
mod aqm;
mod baseline;
mod bins;
pub mod changes;
pub mod class;
pub mod customers;
mod decimal;
pub mod diag;
mod distribution;
mod encoding;
pub mod engines;
pub mod experiment;
mod flow;
pub mod gateway;
mod graph;
mod host;
mod keys;
mod lab;
mod learnt;
pub mod link;
mod link_layer;
mod measure;
mod measured;
mod names;
pub mod nested;
mod pace;
mod parents;
mod path;
pub mod policy;
pub mod ports;
mod queue_limit;
mod reader;
pub mod schema;
mod settings;
pub mod share;
mod subject;
mod sweep;
pub mod tcp;
#[cfg(test)]
mod tests;
pub mod units;
mod value;
pub mod wan;

pub use diag::{Errors, Source};
pub use settings::Settings;

/// Configuration file of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum File {
    /// Experiment without a sweep.
    Experiment(Box<experiment::Experiment>),
    /// Experiment with `[sweep]`: its runs, at least one.
    Sweep(Vec<experiment::Run>),
    /// File `gateway.toml`: `[ports]` and `[gateway]`.
    Gateway(Box<gateway::GatewayFile>),
    /// File for `weir wan`: `[ports]` and `[path]`.
    Wan(Box<wan::WanFile>),
}

/// Parses a file of any kind. A file with `[ports]` and without flows is a gateway's, or an emulator's if it
/// also has `[path]`. All other files are experiments.
pub fn parse(source: &Source) -> Result<File, Errors> {
    let (has, is_experiment) = {
        let table = reader::parse_toml(source)?;
        let has = |key: &str| table.get_ref().contains_key(key);
        let is_experiment = ["name", "duration", "flow", "baseline"].into_iter().any(has) || !has("gateway");
        (["ports", "path", "flow"].map(has), is_experiment)
    };
    match has {
        // A gateway whose ports have a wrong name.
        [false, false, false] if !is_experiment => gateway::parse(source).map(|g| File::Gateway(Box::new(g))),
        [true, false, false] => gateway::parse(source).map(|g| File::Gateway(Box::new(g))),
        [true, true, false] => wan::parse(source).map(|w| File::Wan(Box::new(w))),
        _ => experiments(source),
    }
}

fn experiments(source: &Source) -> Result<File, Errors> {
    let mut runs = experiment::runs(source)?;
    match runs.as_slice() {
        [run] if run.settings.is_empty() => Ok(File::Experiment(Box::new(runs.remove(0).experiment))),
        _ => Ok(File::Sweep(runs)),
    }
}
