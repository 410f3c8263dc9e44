//! Answers to clients of the socket: one JSON document each.

use super::difference::Difference;
use crate::experiment::config::customers::Customer;
use crate::experiment::config::diag::Located;
use crate::experiment::config::Errors;
use crate::result::running::Notes;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Answer to one request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// True if the request was carried out.
    pub ok: bool,
    /// True if the request itself is wrong; false if the host cannot carry it out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wrong: bool,
    /// Text that says what was done, or why it failed.
    pub text: String,
    /// Errors in files, each with its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Located>,
    /// Differences that a change of configuration made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<Box<Difference>>,
    /// Rows of reloaded lists that are left out, or that count otherwise than written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
}

/// Customer whose traffic a report shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Identifier of the customer.
    pub id: String,
    /// Name of the customer.
    pub name: String,
    /// Addresses of the customer.
    pub prefixes: Vec<String>,
    /// Download rate in bits a second.
    pub down_bps: u64,
    /// Upload rate in bits a second.
    pub up_bps: u64,
    /// True if the customer's flows bypass shaping.
    pub off: bool,
}

impl Owner {
    /// Returns the customer of an address, if it has one.
    pub fn of(address: IpAddr, customers: &[Customer]) -> Option<Owner> {
        let owns = |c: &&Customer| c.prefixes.iter().any(|prefix| prefix.contains(address));
        customers.iter().find(owns).map(Owner::from)
    }
}

impl From<&Customer> for Owner {
    fn from(c: &Customer) -> Owner {
        Owner {
            id: c.id.clone(),
            name: c.name.clone(),
            prefixes: c.prefixes.iter().map(ToString::to_string).collect(),
            down_bps: c.down.bps(),
            up_bps: c.up.bps(),
            off: c.off,
        }
    }
}

impl Answer {
    /// Returns an answer to a request that was carried out.
    pub fn done(text: impl Into<String>, changed: Difference) -> Answer {
        Answer { ok: true, text: text.into(), changed: Some(changed.into()), ..Answer::default() }
    }

    /// Returns an answer to a request that is wrong.
    pub fn wrong(text: impl Into<String>) -> Answer {
        Answer { wrong: true, text: text.into(), ..Answer::default() }
    }

    /// Returns an answer to a request that cannot be carried out now.
    pub fn failed(text: impl Into<String>) -> Answer {
        Answer { text: text.into(), ..Answer::default() }
    }

    /// Returns the answer as it is sent.
    pub fn write(&self) -> Vec<u8> {
        // Serialization cannot fail: all fields can be expressed in JSON.
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// Returns an engine's report as it is sent: `report` beside `ok`, and `customer` if the requested
    /// address belongs to one.
    pub fn of_report(json: &str, owner: Option<&Owner>) -> Vec<u8> {
        // Serialization cannot fail: all fields can be expressed in JSON.
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
