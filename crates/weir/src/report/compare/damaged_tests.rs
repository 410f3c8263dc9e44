//! Result files that were damaged or edited, one value at a time: each is refused in words or compared.

use super::{compare, Bounds, ResultFile};
use crate::execute::sim;
use crate::experiment::config::{experiment, Source};
use crate::report::{json, table};
use crate::result::{Document, Runs, SCHEMA};
use serde_json::{json, Value};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::AtomicBool;

/// Part of everything that a result of a simulation can have.
const EXPERIMENT: &str = "
name = 'damaged'
duration = '400ms'
interval = '200ms'
bin = '200ms'
[path]
rtt = '10ms'
[path.wan]
rate = '10Mbit'
queue = '20p'
loss = 0.05
[[gateway.class]]
name = 'q'
rate = '5Mbit'
queue = '20p'
match = [{ protocol = 'udp' }]
[[gateway.class]]
name = 'h'
ack = { preset = 'ack-shaper', flow_rate = '2Mbit' }
[[flow]]
id = 'u'
protocol = 'udp'
rate = '1Mbit'
datagram = 1000
[[flow]]
id = 't'
count = 2
bytes = '100kB'
[[flow]]
id = 'b'
burst = '20kB'
pause = '50ms'
[parity]
goodput = 0.05
fct = 0.1
[[expect]]
what = 'flow.*.goodput_bps'
op = 'at_least'
target = '1kbit'
";

/// Values that replace each one in turn. `None` takes it away.
fn replacements() -> Vec<Option<Value>> {
    let numbers = [json!(0), json!(-1), json!(1), json!(0.5), json!(1e308), json!(-1e308), json!(u64::MAX)];
    let others = [json!(null), json!(true), json!(""), json!("\u{1b}[31m"), json!([]), json!({})];
    numbers.into_iter().chain(others).map(Some).chain([None]).collect()
}

/// Paths of all values. The first element of an array stands for the others.
fn paths(value: &Value, at: String, all: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| paths(value, format!("{at}/{key}"), all));
        }
        Value::Array(list) => {
            list.iter().take(1).enumerate().for_each(|(i, value)| paths(value, format!("{at}/{i}"), all));
        }
        _ => (),
    }
    all.push(at);
}

/// Replaces or takes away the value at `path`.
fn damage(document: &Value, path: &str, with: Option<&Value>) -> Option<Value> {
    let mut damaged = document.clone();
    match with {
        Some(with) => *damaged.pointer_mut(path)? = with.clone(),
        None => {
            let (above, last) = path.rsplit_once('/')?;
            match damaged.pointer_mut(above)? {
                Value::Object(map) => drop(map.remove(last)),
                Value::Array(list) => drop(list.remove(last.parse().ok()?)),
                _ => return None,
            }
        }
    }
    Some(damaged)
}

/// Does what `weir compare` does with two files.
fn read_and_compare(whole: &str, damaged: &str) -> Result<(), String> {
    let file = |name: &str, text: &str| {
        Ok::<_, String>(ResultFile { name: name.into(), runs: Document::parse(text)?.runs() })
    };
    let given = [file("whole.json", whole)?, file("damaged.json", damaged)?];
    let comparison = compare(&given, Bounds::default(), false)?;
    json::pretty(&comparison).map_err(|e| e.to_string())?;
    let text = table::comparison(&comparison, false);
    assert!(!text.is_empty() && !text.contains('\u{1b}'), "a table with {text:?}");
    Ok(())
}

#[test]
fn damaged_results_are_refused_in_words_or_compared() {
    let plan = experiment::parse(&Source::new("d.toml", EXPERIMENT)).unwrap_or_else(|e| panic!("{e}")).plan;
    let options = sim::Options { pcap: None, progress: None, stop: &AtomicBool::new(false) };
    let mut run = sim::run(&plan, &options).unwrap();
    crate::report::expect::conclude(&plan, &mut run);
    let one = serde_json::to_value(&run).unwrap();
    let several = Runs { schema: SCHEMA, runs: vec![run.clone(), run], summary: Vec::new() };
    let mut several = serde_json::to_value(several).unwrap();
    // What a run has is tried with the single one.
    several["runs"][1] = json!({"schema": SCHEMA});
    let mut all = Vec::new();
    paths(&one, String::new(), &mut all);
    assert!(all.len() > 100, "{} values", all.len());
    let (mut refused, mut compared) = (0, 0);
    let mut hold = |document: &Value, path: &str, with: Option<&Value>| {
        let Some(damaged) = damage(document, path, with).map(|d| d.to_string()) else { return };
        let whole = document.to_string();
        let tried = catch_unwind(AssertUnwindSafe(|| read_and_compare(&whole, &damaged)));
        match tried.unwrap_or_else(|_| panic!("{path} as {with:?} ends in a panic")) {
            Ok(()) => compared += 1,
            Err(why) => {
                assert!(!why.is_empty(), "{path} as {with:?} is refused without a word");
                refused += 1;
            }
        }
    };
    let replacements = replacements();
    for path in &all {
        replacements.iter().for_each(|with| hold(&one, path, with.as_ref()));
    }
    for path in ["/runs", "/runs/0", "/runs/1", "/schema", ""] {
        replacements.iter().for_each(|with| hold(&several, path, with.as_ref()));
    }
    assert!(refused > 100 && compared > 100, "{refused} refused, {compared} compared");
}
