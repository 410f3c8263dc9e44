//! Failures of commands, and the exit code of each.

use crate::experiment::config::diag::shown_lines;
use crate::experiment::config::Errors;
use std::fmt;
use std::process::ExitCode;

/// Reason why a command did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The run succeeded, but this many expectations do not hold. Exit code 1.
    Expect(usize),
    /// This many values of two results differ more than allowed. Exit code 1.
    Parity(usize),
    /// This many cases of the conformance suite fail. Exit code 1.
    Conformance(usize),
    /// This many rows of papers differ without a reason, or have a check that fails. Exit code 1.
    Repro(usize),
    /// A configuration file is wrong. Exit code 2, as for a wrong command line.
    Config(Errors),
    /// Other input is wrong: an unreadable file, or contradictory flags. Exit code 2.
    Input(String),
    /// Any other failure: missing permission, no such interface, an I/O error. Exit code 3.
    Other(String),
    /// Inconclusive: a run in real time failed, but the machine was overloaded during it. Exit code 4.
    Starved(Box<Failure>),
    /// The command was stopped by a signal. Exit code 130, as shells report SIGINT.
    Interrupted,
}

impl Failure {
    /// Returns the exit code as a number.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Expect(_) | Failure::Parity(_) | Failure::Conformance(_) | Failure::Repro(_) => 1,
            Failure::Config(_) | Failure::Input(_) => 2,
            Failure::Other(_) => 3,
            Failure::Starved(_) => 4,
            Failure::Interrupted => 130,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Expect(1) => f.write_str("1 expectation does not hold"),
            Failure::Expect(n) => write!(f, "{n} expectations do not hold"),
            Failure::Parity(1) => f.write_str("1 value is outside parity"),
            Failure::Parity(n) => write!(f, "{n} values are outside parity"),
            Failure::Conformance(1) => f.write_str("1 case fails"),
            Failure::Conformance(n) => write!(f, "{n} cases fail"),
            Failure::Repro(1) => f.write_str("1 row differs without a reason, or has a check that fails"),
            Failure::Repro(n) => write!(f, "{n} rows differ without a reason, or have checks that fail"),
            Failure::Config(e) => e.fmt(f),
            // Names of files and answers of a gateway are text from elsewhere.
            Failure::Input(text) | Failure::Other(text) => f.write_str(&shown_lines(text)),
            Failure::Starved(inner) => {
                write!(f, "{inner}; inconclusive: the machine was overloaded during this run")
            }
            Failure::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Errors> for Failure {
    fn from(e: Errors) -> Failure {
        Failure::Config(e)
    }
}

impl From<&Failure> for ExitCode {
    fn from(f: &Failure) -> ExitCode {
        ExitCode::from(f.code())
    }
}
