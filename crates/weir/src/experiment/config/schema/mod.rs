//! JSON Schemas of files, for editors. Nothing is described here: the schema has the tables and keys that the
//! reader asks for and the values that it accepts, which are learnt while it reads the manuals, and the
//! sentences of the manuals.

use super::learnt::{learn, Key, Kind, Learnt, Table};
use super::{experiment, gateway, wan, Settings, Source};
use serde_json::{json, Map, Value};
use std::collections::HashMap;

/// Manuals of the formats: each key stands in one of them.
const MANUALS: [&str; 7] = [
    include_str!("../../../../../../experiments/examples/annotated.toml"),
    include_str!("../../../../../../experiments/examples/simulator.toml"),
    include_str!("../../../../../../experiments/examples/network.toml"),
    include_str!("../../../../../../experiments/examples/sharing.toml"),
    include_str!("../../../../../../experiments/examples/pacing.toml"),
    include_str!("../../../../../../examples/gateway.toml"),
    include_str!("forms.toml"),
];

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// An experiment, for `weir lab` and `weir sim`
    Experiment,
    /// A gateway, for `weir run`
    Gateway,
    /// An emulator, for `weir wan`
    Wan,
}

/// Returns the JSON Schema (2020-12) of a format.
pub fn schema(format: Format) -> Value {
    let learnt = learn(|| MANUALS.iter().flat_map(|text| variants(text)).for_each(|text| read(format, text)));
    let sentences = sentences();
    let definitions = learnt.tables.iter().filter(|(place, _)| !place.is_empty());
    let definitions: Map<String, Value> = definitions
        .map(|(place, table)| (place.clone(), object(&learnt, place, table, &sentences)))
        .collect();
    let empty = Table::default();
    let mut schema = object(&learnt, "", learnt.tables.get("").unwrap_or(&empty), &sentences);
    if format == Format::Experiment {
        // Their keys are paths, which are put into the file before it is read.
        schema["properties"]["sweep"] = json!({"type": "object", "minProperties": 1});
        let variant = json!({"type": "object", "minProperties": 1});
        schema["properties"]["baseline"] =
            json!({"type": "object", "minProperties": 1, "additionalProperties": variant});
    }
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(format!("Weir: {format:?}").to_lowercase());
    schema["$defs"] = definitions.into();
    schema
}

/// Returns a manual, and once more for each key shown as a comment, with that key.
fn variants(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let shown =
        |line: &str| line.strip_prefix('#').is_some_and(|l| l.starts_with(|c: char| c.is_ascii_lowercase()));
    let with = |at: usize| {
        let mut lines = lines.clone();
        lines[at] = &lines[at][1..];
        lines.join("\n")
    };
    let more = (0..lines.len()).filter(|&at| shown(lines[at])).map(with);
    [text.to_string()].into_iter().chain(more).collect()
}

/// Reads a text. Its faults do not matter: tables of other formats are unknown keys.
fn read(format: Format, text: String) {
    let source = Source::new("manual", text);
    match format {
        Format::Experiment => drop(experiment::runs(&source)),
        Format::Gateway => {
            let read = |name: &str| Err(format!("{name} is not read"));
            drop(gateway::parse_with(&source, &Settings::NOTHING, &read));
        }
        Format::Wan => drop(wan::parse(&source)),
    }
}

fn object(learnt: &Learnt, place: &str, table: &Table, sentences: &HashMap<String, String>) -> Value {
    let property = |key: &Key| {
        let mut schema = any_of(&learnt.kinds(key), &key.items);
        let full = if place.is_empty() { key.name.to_string() } else { format!("{place}.{}", key.name) };
        if let Some(text) = sentences.get(&full).or_else(|| sentences.get(&format!("*.{}", key.name))) {
            schema["description"] = json!(text);
        }
        (key.name.to_string(), schema)
    };
    let properties: Map<String, Value> = table.keys.iter().map(property).collect();
    let always = |key: &&Key| key.needed > 0 && key.needed == table.opened;
    let required: Vec<&str> = table.keys.iter().filter(always).map(|key| key.name).collect();
    let pairs = table.exclusive.iter().flat_map(|names| {
        let pair = move |i: usize, j: usize| json!({"not": {"required": [names[i], names[j]]}});
        (0..names.len()).flat_map(move |i| (i + 1..names.len()).map(move |j| pair(i, j)))
    });
    let pairs: Vec<Value> = pairs.collect();
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if !pairs.is_empty() {
        schema["allOf"] = pairs.into();
    }
    schema
}

fn any_of(kinds: &[Kind], items: &[Kind]) -> Value {
    let list = |items| json!({"type": "array", "minItems": 1, "items": any_of(items, &[])});
    // A name is read as text first where some names have a message of their own.
    let named = kinds.iter().any(|kind| matches!(kind, Kind::Names(_)));
    let mut all: Vec<Value> =
        kinds.iter().filter(|kind| !(named && **kind == Kind::Text)).map(of_kind).collect();
    all.extend((!items.is_empty()).then(|| list(items)));
    match all.as_slice() {
        // A key of which no manual shows a value.
        [] => json!({}),
        [one] => one.clone(),
        _ => json!({"anyOf": all}),
    }
}

fn of_kind(kind: &Kind) -> Value {
    const NUMBER: &str = r"^\s*[0-9._]+\s*";
    let text = |units: &str| json!({"type": "string", "pattern": format!("{NUMBER}{units}\\s*$")});
    match kind {
        Kind::Text => json!({"type": "string"}),
        Kind::Switch => json!({"type": "boolean"}),
        Kind::Whole(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Signed(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Number => json!({"type": "number"}),
        Kind::Rate => text(r"[kMG]?bit\s*(/s)?"),
        Kind::Time => text("(ns|us|ms|s|min)"),
        Kind::Limit => text("(p|bdp|B|[kMG]B|[KMG]iB)"),
        Kind::Probability => {
            json!({"type": ["string", "number"], "minimum": 0, "maximum": 1, "pattern": format!("{NUMBER}%?\\s*$")})
        }
        Kind::Size => {
            json!({"type": ["string", "integer"], "minimum": 0, "pattern": format!("{NUMBER}(B|[kMG]B|[KMG]iB)?\\s*$")})
        }
        Kind::Ports => json!({"type": ["string", "integer"], "minimum": 1, "maximum": 65_535}),
        Kind::Prefix => json!({"type": "string", "pattern": "^[0-9a-fA-F.:]+(/[0-9]{1,3})?$"}),
        Kind::Names(names) => json!({"enum": names}),
        Kind::Table(place) => json!({"$ref": format!("#/$defs/{place}")}),
        Kind::Tables(place) => {
            json!({"type": "array", "minItems": 1, "items": {"$ref": format!("#/$defs/{place}")}})
        }
    }
}

/// Returns the sentences that manuals have beside keys, by place and key; and by `*.KEY` for all places.
fn sentences() -> HashMap<String, String> {
    let mut found = HashMap::new();
    for text in MANUALS {
        let (mut place, mut key) = (String::new(), None);
        for line in text.lines() {
            let line = line
                .strip_prefix('#')
                .filter(|l| l.starts_with(|c: char| c.is_ascii_lowercase()))
                .unwrap_or(line);
            let (code, comment) = line.split_once('#').unwrap_or((line, ""));
            if let Some(header) = code.trim().strip_prefix('[') {
                place = format!("{}.", header.trim_matches(['[', ']']).trim());
            }
            key = match (code.split_once(" = "), code.trim()) {
                (Some((name, _)), _) if !name.starts_with([' ', '{']) => Some(name.trim().to_string()),
                (None, "") if line.starts_with(' ') => key,
                _ => None,
            };
            let (Some(key), false) = (&key, comment.trim().is_empty()) else { continue };
            for name in [format!("{place}{key}"), format!("*.{key}")] {
                let text: &mut String = found.entry(name).or_default();
                if !text.is_empty() && code.trim().is_empty() {
                    text.push(' ');
                }
                if text.is_empty() || code.trim().is_empty() {
                    text.push_str(comment.trim());
                }
            }
        }
    }
    found
}
