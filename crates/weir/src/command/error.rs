//! Failures of commands, and the exit code of each.

use crate::experiment::config::Errors;
use std::fmt;
use std::process::ExitCode;

/// Why a command did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The run went well and this many expectations do not hold. Exit code 1.
    Expect(usize),
    /// So many values of two results are further apart than they may be. Exit code 1.
    Parity(usize),
    /// So many cases of the conformance suite fail. Exit code 1.
    Conformance(usize),
    /// A configuration file is wrong. Exit code 2, as for a wrong command line.
    Config(Errors),
    /// Some other input is wrong: a file that cannot be read, flags that contradict. Exit code 2.
    Input(String),
    /// Everything else: no permission, no such interface, an I/O error. Exit code 3.
    Other(String),
    /// A run in real time failed so, and the machine did not give it its time: it says nothing. Exit code 4.
    Starved(Box<Failure>),
    /// It was stopped by a signal. Exit code 130, as shells report SIGINT.
    Interrupted,
}

impl Failure {
    /// The exit code as a number.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Expect(_) | Failure::Parity(_) | Failure::Conformance(_) => 1,
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
            Failure::Config(e) => e.fmt(f),
            Failure::Input(text) | Failure::Other(text) => f.write_str(text),
            Failure::Starved(inner) => {
                write!(f, "{inner}; the machine had no time for the run, which therefore says nothing")
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
