//! Configuration files. They are parsed into valid values, never checked later: a unit, a range or
//! a name that is wrong is reported with its line, its column and what is accepted instead.
//!
//! Three kinds of files: experiments ([`experiment::parse`]), `gateway.toml` ([`gateway::parse`]) and
//! files for `weir wan` ([`wan::parse`]). `[gateway]`, `[ports]` and `[path]` are the same tables
//! wherever they occur.

mod ack_filter;
pub mod addresses;
mod aqm;
mod baseline;
mod bins;
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

pub mod link;
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

/// A configuration file of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum File {
    /// An experiment.
    Experiment(Box<experiment::Experiment>),
    /// An experiment with `[sweep]`: its runs, at least one.
    Sweep(Vec<experiment::Run>),
    /// `gateway.toml`: `[ports]` and `[gateway]`.
    Gateway(Box<gateway::GatewayFile>),
    /// `[ports]` and `[path]`.
    Wan(Box<wan::WanFile>),
}

/// Parses a file of any kind: with `[ports]` it is a gateway's, or an emulator's if it has `[path]` too;
/// without, or with flows, an experiment.
pub fn parse(source: &Source) -> Result<File, Errors> {
    let has = {
        let table = reader::parse_toml(source)?;
        ["ports", "path", "flow"].map(|key| table.get_ref().contains_key(key))
    };
    match has {
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
