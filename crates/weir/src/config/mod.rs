//! Configuration files. They are parsed into valid values, never checked later: a unit, a range or
//! a name that is wrong is reported with its line, its column and what is accepted instead.
//!
//! Three kinds of files: experiments ([`experiment::parse`]), `gateway.toml` ([`gateway::parse`]) and
//! files for `weir wan` ([`path::parse_wan`]). `[gateway]`, `[ports]` and `[path]` are the same tables
//! wherever they occur.

mod bins;
mod catalogue;
pub mod diag;
pub mod experiment;
mod flow;
pub mod gateway;
mod measure;
pub mod path;
mod reader;
mod tcp;
pub mod units;

pub use diag::{Errors, Source};

/// A configuration file of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum File {
    /// An experiment.
    Experiment(Box<experiment::Experiment>),
    /// `gateway.toml`: `[ports]` and `[gateway]`.
    Gateway(gateway::GatewayFile),
    /// `[ports]` and `[path]`.
    Wan(path::WanFile),
}

/// Parses a file of any kind: with `[ports]` it is a gateway's, or an emulator's if it has `[path]` too;
/// without, an experiment.
pub fn parse(source: &Source) -> Result<File, Errors> {
    let (has_ports, has_path) = {
        let table = reader::parse_toml(source)?;
        (table.get_ref().get("ports").is_some(), table.get_ref().get("path").is_some())
    };
    match (has_ports, has_path) {
        (false, _) => experiment::parse(source).map(|e| File::Experiment(Box::new(e))),
        (true, false) => gateway::parse(source).map(File::Gateway),
        (true, true) => path::parse_wan(source).map(File::Wan),
    }
}
