//! Letters between supervisor and engine. A letter begins with a line: a number, which the answer repeats, and what it is.
//! A report follows as it is given to clients.

use crate::experiment::config::{Settings, Source};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// What the engine is asked.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToEngine {
    /// To take another configuration.
    Configure {
        /// The files that say it.
        sources: Vec<Source>,
        /// What is laid over them.
        settings: Settings,
    },
    /// For a report.
    Show {
        /// Only of flows of this address.
        address: Option<IpAddr>,
    },
}

/// What the engine answers.
#[derive(Debug, PartialEq)]
pub enum FromEngine<'a> {
    /// The configuration is that which was asked for.
    Configured,
    /// It is not, and why.
    Refused(&'a str),
    /// A report, as JSON.
    Report(&'a str),
}

impl FromEngine<'_> {
    /// The letter.
    pub fn write(&self, number: u64) -> Vec<u8> {
        let (kind, text) = match self {
            FromEngine::Configured => ("configured", ""),
            FromEngine::Refused(why) => ("refused", *why),
            FromEngine::Report(json) => ("report", *json),
        };
        format!("{number} {kind}\n{text}").into()
    }

    /// The number and the answer; `None` if it is no such letter.
    pub fn read(letter: &[u8]) -> Option<(u64, FromEngine<'_>)> {
        let (head, text) = std::str::from_utf8(letter).ok()?.split_once('\n')?;
        let (number, kind) = head.split_once(' ')?;
        let answer = match kind {
            "configured" => FromEngine::Configured,
            "refused" => FromEngine::Refused(text),
            "report" => FromEngine::Report(text),
            _ => return None,
        };
        Some((number.parse().ok()?, answer))
    }
}

impl ToEngine {
    /// The letter.
    pub fn write(&self, number: u64) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&(number, self))
    }

    /// The number and the question.
    pub fn read(letter: &[u8]) -> serde_json::Result<(u64, ToEngine)> {
        serde_json::from_slice(letter)
    }
}
