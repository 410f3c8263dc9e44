//! The `weir` command. Everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    weir::command::cli::main()
}
