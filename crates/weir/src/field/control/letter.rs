//! Letters between supervisor and engine. A letter begins with a line that holds a number, which the answer
//! repeats, and the letter's kind. A report follows in the form that clients get.

use crate::experiment::config::{Settings, Source};
use crate::result::traffic::Shown;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Question to the engine.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToEngine {
    /// Take another configuration.
    Configure {
        /// Files of the configuration.
        sources: Vec<Source>,
        /// Settings laid over the files.
        settings: Settings,
    },
    /// Send a report.
    Show {
        /// Address that the report's flows are limited to.
        address: Option<IpAddr>,
        /// Classes that it shows.
        shown: Shown,
    },
}

/// Answer of the engine.
#[derive(Debug, PartialEq)]
pub enum FromEngine<'a> {
    /// The configuration was taken.
    Configured,
    /// The configuration was refused, for this reason.
    Refused(&'a str),
    /// A report, as JSON.
    Report(&'a str),
}

impl FromEngine<'_> {
    /// Serializes the letter.
    pub fn write(&self, number: u64) -> Vec<u8> {
        let (kind, text) = match self {
            FromEngine::Configured => ("configured", ""),
            FromEngine::Refused(why) => ("refused", *why),
            FromEngine::Report(json) => ("report", *json),
        };
        format!("{number} {kind}\n{text}").into()
    }

    /// Returns the number and the answer; `None` if the letter is malformed.
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
    /// Serializes the letter.
    pub fn write(&self, number: u64) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&(number, self))
    }

    /// Returns the number and the question.
    pub fn read(letter: &[u8]) -> serde_json::Result<(u64, ToEngine)> {
        serde_json::from_slice(letter)
    }
}
