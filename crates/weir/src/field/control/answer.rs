//! Answers to clients of the socket: one JSON document each.

use super::difference::Difference;
use crate::experiment::config::customers::Customer;
use crate::experiment::config::diag::Located;
use crate::experiment::config::Errors;
use crate::result::running::Notes;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// Was what was asked for done?
    pub ok: bool,
    /// If not: is what was asked for wrong, and not the host?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wrong: bool,
    /// Why not, or what was done, in words.
    pub text: String,
    /// What is wrong with files, each with its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Located>,
    /// What a change of configuration changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<Box<Difference>>,
    /// Rows of lists that were read again and that are left out or count otherwise than they say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
}

/// The customer of an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its identifier.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its addresses.
    pub prefixes: Vec<String>,
    /// What it downloads at, in bits a second.
    pub down_bps: u64,
    /// What it uploads at.
    pub up_bps: u64,
    /// Do its flows pass untouched?
    pub off: bool,
}

impl Owner {
    /// Of an address, if it is a customer's.
    pub fn of(address: IpAddr, customers: &[Customer]) -> Option<Owner> {
        let owns = |c: &&Customer| c.prefixes.iter().any(|prefix| prefix.contains(address));
        customers.iter().find(owns).map(|c| Owner {
            id: c.id.clone(),
            name: c.name.clone(),
            prefixes: c.prefixes.iter().map(ToString::to_string).collect(),
            down_bps: c.down.bps(),
            up_bps: c.up.bps(),
            off: c.off,
        })
    }
}

impl Answer {
    /// It is done.
    pub fn done(text: impl Into<String>, changed: Difference) -> Answer {
        Answer { ok: true, text: text.into(), changed: Some(changed.into()), ..Answer::default() }
    }

    /// What was asked for is wrong.
    pub fn wrong(text: impl Into<String>) -> Answer {
        Answer { wrong: true, text: text.into(), ..Answer::default() }
    }

    /// It cannot be done now.
    pub fn failed(text: impl Into<String>) -> Answer {
        Answer { text: text.into(), ..Answer::default() }
    }

    /// As it is sent.
    pub fn write(&self) -> Vec<u8> {
        // It has nothing that JSON cannot say.
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// A report of the engine, as it is sent: `report` beside `ok`, and `customer` if the address that was asked for is one's.
    pub fn of_report(json: &str, owner: Option<&Owner>) -> Vec<u8> {
        // It has nothing that JSON cannot say.
        let owner = owner.and_then(|owner| serde_json::to_string(owner).ok());
        let owner = owner.map_or(String::new(), |owner| format!("\"customer\":{owner},"));
        format!("{{\"ok\":true,{owner}\"report\":{json}}}\n").into()
    }
}

impl From<Errors> for Answer {
    fn from(errors: Errors) -> Answer {
        Answer { errors: errors.located(), ..Answer::wrong(errors.to_string()) }
    }
}
