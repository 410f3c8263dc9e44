//! LibreQoS's network.json: an object for each site, with its rates in megabits a second, and those below it as `children`.

use super::draft::Draft;
use super::fields::mbps;
use super::Faults;
use crate::experiment::config::diag::{Fault, Source};
use core::ops::Range;
use serde_json::{Map, Value};
use weir_core::rate::Rate;

const DOWN: &str = "downloadBandwidthMbps";
const UP: &str = "uploadBandwidthMbps";
const CHILDREN: &str = "children";
const EXAMPLE: &str =
    "{ \"Tower\": { \"downloadBandwidthMbps\": 1000, \"uploadBandwidthMbps\": 500, \"children\": { … } } }";

/// The sites of a file.
pub(super) fn drafts(source: &Source, faults: &mut Faults) -> Vec<Draft> {
    let mut found = Vec::new();
    match serde_json::from_str::<Value>(&source.text) {
        Ok(Value::Object(sites)) => below(source, &sites, None, &mut found, faults),
        Ok(_) => faults.note(0..0, Fault::new("not an object of sites", EXAMPLE)),
        Err(error) => {
            let lines = source.text.split_inclusive('\n').take(error.line().saturating_sub(1));
            let at = lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
            faults.note(at..at, Fault::new(format!("not JSON: {error}"), EXAMPLE));
        }
    }
    found
}

fn below(
    source: &Source,
    sites: &Map<String, Value>,
    parent: Option<(&str, &Range<usize>)>,
    found: &mut Vec<Draft>,
    faults: &mut Faults,
) {
    for (id, value) in sites {
        let at = key(source, id);
        let Value::Object(site) = value else {
            faults.note(at, Fault::new(format!("site \"{id}\" is not an object"), EXAMPLE));
            continue;
        };
        let rates = [DOWN, UP].map(|key| rate(site.get(key), key, id));
        // What is faulty is refused, so any rate does for now.
        let [down, up] = rates.map(|rate| {
            rate.unwrap_or_else(|fault| {
                faults.note(at.clone(), fault);
                Rate::mbit(1)
            })
        });
        let parent = parent.map(|(id, at)| (id.to_owned(), at.clone()));
        found.push(Draft { id: id.clone(), id_at: at.clone(), parent, down, up });
        match site.get(CHILDREN) {
            Some(Value::Object(children)) => below(source, children, Some((id, &at)), found, faults),
            None | Some(Value::Null) => {}
            Some(_) => {
                let message = format!("site \"{id}\": `{CHILDREN}` is not an object");
                faults.note(at, Fault::new(message, EXAMPLE));
            }
        }
    }
}

fn rate(value: Option<&Value>, key: &str, id: &str) -> Result<Rate, Fault> {
    let text = match value {
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::String(text)) => text.clone(),
        Some(_) => return Err(Fault::new(format!("site \"{id}\": `{key}` is not a number"), EXAMPLE)),
        None => return Err(Fault::new(format!("site \"{id}\" has no `{key}`"), EXAMPLE)),
    };
    mbps(&text)
        .map_err(|fault| Fault { message: format!("site \"{id}\": `{key}`: {}", fault.message), ..fault })
}

/// Where a key is.
fn key(source: &Source, name: &str) -> Range<usize> {
    let quoted = format!("\"{name}\"");
    let is_key = |&(at, _): &(usize, &str)| source.text[at + quoted.len()..].trim_start().starts_with(':');
    let found = source.text.match_indices(&quoted).find(is_key);
    found.map_or(0..0, |(at, _)| at..at + quoted.len())
}
