//! `weir model`: predictions of theory, beside the simulator.

mod ack_filter;
mod link;
mod tss;

use crate::command::error::Failure;
use clap::Subcommand;

/// A model.
#[derive(Debug, Subcommand)]
pub enum Model {
    /// Slow start behind a slow reverse channel, by the limit of ACKs queued there
    AckFilter(ack_filter::Args),
    /// Drives a link with a list of arrivals and prints the departures
    #[command(hide = true)]
    Link(link::Args),
    /// Throughput of a flow with periodic loss behind per-flow queueing, PostACK or TCP rate control
    Tss(tss::Args),
}

/// Computes and prints the model.
pub fn run(model: &Model) -> Result<(), Failure> {
    match model {
        Model::AckFilter(args) => ack_filter::run(args),
        Model::Link(args) => link::run(args),
        Model::Tss(args) => tss::run(args),
    }
}
