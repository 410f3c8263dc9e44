//! The commands, each in a module with its arguments and its action.

pub mod check;
#[cfg(feature = "linux")]
pub mod chirp;
pub mod cli;
pub mod compare;
pub mod conformance;
#[cfg(feature = "linux")]
pub mod ctl;
#[cfg(feature = "linux")]
pub mod dashboard;
#[cfg(feature = "linux")]
pub mod device;
#[cfg(feature = "linux")]
pub mod down;
#[cfg(not(feature = "experiments"))]
pub mod elsewhere;
pub mod error;
#[cfg(feature = "linux")]
pub mod lab;
mod link_options;
#[cfg(feature = "linux")]
mod log;
#[cfg(feature = "linux")]
pub mod metrics;
pub mod model;
#[cfg(feature = "linux")]
pub mod pace;
mod present;
#[cfg(feature = "linux")]
pub mod reload;
pub mod repro;
#[cfg(feature = "linux")]
pub mod run;
pub mod schema;
#[cfg(feature = "linux")]
pub mod shell;
pub mod short;
pub mod sim;
pub mod sweep;
#[cfg(feature = "linux")]
pub mod top;
#[cfg(feature = "linux")]
pub mod traffic;
#[cfg(feature = "linux")]
pub mod upgrade;
#[cfg(feature = "linux")]
pub mod wan;

use crate::command::error::Failure;
use crate::experiment::config::Source;
use crate::output::Target;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Reads a configuration file. Experiments have the same path in a checkout and in the package `weir-lab`.
pub(crate) fn source(path: &Path) -> Result<Source, Failure> {
    let elsewhere = path.starts_with("experiments") && !path.exists();
    let found = elsewhere.then(|| installed(path)).flatten();
    Source::read(found.as_deref().unwrap_or(path)).map_err(Failure::Input)
}

/// Returns the place of data that the package `weir-lab` installs under this path, if it is there.
pub(crate) fn installed(path: &Path) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    // Programs are PREFIX/bin/weir and PREFIX/lib/weir/weir-lab, and data are below PREFIX/share.
    let prefixes = program.ancestors().skip(2).take(2);
    prefixes.map(|prefix| prefix.join("share/weir-lab").join(path)).find(|place| place.exists())
}

/// Writes a value as JSON, to standard output for `-`.
pub fn write_json(to: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let text = crate::report::json::pretty(value).map_err(|e| Failure::Other(e.to_string()))?;
    let written = if to == Path::new("-") {
        std::io::stdout().lock().write_all(&text)
    } else {
        Target::new(to).map_err(Failure::Other)?.write(&text)
    };
    written.map_err(|e| Failure::Other(format!("{}: {e}", to.display())))
}

/// Returns whether standard output takes colours: a terminal does, unless `NO_COLOR` is set
/// (<https://no-color.org>).
pub(crate) fn takes_colours() -> bool {
    use std::io::IsTerminal;
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && std::io::stdout().is_terminal()
}

/// Writes text to standard output. A reader that has gone (`weir … | head`) is not a failure.
pub fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::Other(e.to_string())),
        _ => Ok(()),
    }
}

#[cfg(feature = "linux")]
/// Returns a secret random seed for the flow table's hash.
fn random_seed() -> Result<u64, String> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| format!("random numbers: {e}"))?;
    Ok(u64::from_ne_bytes(bytes))
}
