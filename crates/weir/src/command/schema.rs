//! `weir schema`: the JSON Schema of a file, for editors.

use crate::command::error::Failure;
use crate::experiment::config::schema::{schema, Format};
use std::path::Path;

/// Arguments of `weir schema`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Format of the file
    format: Format,
}

/// Prints the schema.
pub fn run(args: &Args) -> Result<(), Failure> {
    super::write_json(Path::new("-"), &schema(args.format))
}
