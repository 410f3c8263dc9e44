//! `weir model`: what theory says, beside what the simulator does.

mod ack_filter;

use crate::command::error::Failure;
use clap::Subcommand;

/// A model.
#[derive(Debug, Subcommand)]
pub enum Model {
    /// Slow start behind a slow reverse channel, by how many ACKs may wait there
    AckFilter(ack_filter::Args),
}

/// Computes and prints.
pub fn run(model: &Model) -> Result<(), Failure> {
    match model {
        Model::AckFilter(args) => ack_filter::run(args),
    }
}
