//! Commands of the package `weir-lab`, which a gateway's build hands on to its program.

use crate::command::error::Failure;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// Arguments of a command that another program runs.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Elsewhere {
    /// Arguments for it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

impl Elsewhere {
    /// Becomes the program of `weir-lab`. Returns only if it cannot.
    pub fn run(&self, name: &str) -> Result<(), Failure> {
        let Some(program) = program() else {
            return Err(Failure::Other(format!(
                "`weir {name}` is in the package weir-lab: apt install weir-lab"
            )));
        };
        let mut command = Command::new(&program);
        command.arg(name).args(&self.arguments);
        let error = execute(&mut command);
        Err(Failure::Other(format!("{}: {error}", program.display())))
    }
}

/// Returns the program of `weir-lab`, which is found from this one's place, so that a tree may be moved.
fn program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let place = own.parent()?.join("../lib/weir/weir-lab");
    place.is_file().then_some(place)
}

#[cfg(unix)]
fn execute(command: &mut Command) -> std::io::Error {
    use std::os::unix::process::CommandExt;
    command.exec()
}

#[cfg(not(unix))]
fn execute(command: &mut Command) -> std::io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(3)),
        Err(error) => error,
    }
}
