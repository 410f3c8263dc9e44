//! Error messages for wrong files, word by word: these texts are an interface. `messages.txt` has one of each
//! kind, from the first case of it; all cases are refused. After a change on purpose, `BLESS=1 cargo test -p
//! weir --test messages` writes the file, and the diff is what gets reviewed.

mod cases;

use cases::{CASES, CUSTOMERS, EXPERIMENT, GATEWAY, NETWORK, REFUSED, SETTINGS, WAN};
use std::collections::BTreeSet;
use std::fmt::Write;
use weir::experiment::config::diag::Located;
use weir::experiment::config::schema::{schema, Format};
use weir::experiment::config::{self, experiment, gateway, Settings, Source};
use weir::result::Backend;

#[test]
fn the_files_are_right_before_anything_is_replaced() {
    for text in [GATEWAY, WAN, EXPERIMENT, NETWORK] {
        config::parse(&Source::new("f.toml", text)).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// Paths of sweeps, and keys whose kind depends on another key.
const BEYOND_THE_SCHEMA: [&str; 4] = [
    "a sweep over one value",
    "a swept key that does not exist",
    "a sum of shares",
    "a time that means nothing",
];

/// A schema refuses what it can express: unknown keys and names, kinds and ranges of values. Keys
/// that depend on others are the reader's alone.
#[test]
fn the_schema_refuses_what_it_can_express() {
    let schema = |format| jsonschema::validator_for(&schema(format)).unwrap();
    let [experiment, gateway, wan] = [Format::Experiment, Format::Gateway, Format::Wan].map(schema);
    let (mut refused, mut accepted) = (0, Vec::new());
    for (title, file, from, to) in CASES {
        let text = file.replacen(from, to, 1);
        let Ok(table) = text.parse::<toml::Table>() else { continue };
        let schema = match ["ports", "path", "flow"].map(|key| table.contains_key(key)) {
            [true, false, false] => &gateway,
            [true, true, false] => &wan,
            _ => &experiment,
        };
        let Err(errors) = config::parse(&Source::new("f.toml", text)) else { continue };
        let said =
            |what: &[&str]| errors.located().iter().any(|e| what.iter().any(|w| e.message.contains(w)));
        match schema.is_valid(&serde_json::to_value(&table).unwrap()) {
            false => refused += 1,
            true if said(&["unknown key", "expected a", "without a unit"]) => accepted.push(*title),
            true => {}
        }
    }
    accepted.retain(|title| !BEYOND_THE_SCHEMA.contains(title));
    assert!(accepted.is_empty() && refused > 60, "{refused} refused; accepted: {accepted:#?}");
}

/// The list of what exists grows with every algorithm, so it is no part of the texts in the file.
#[test]
fn a_congestion_control_that_the_simulator_does_not_have() {
    let source = Source::new("f.toml", EXPERIMENT.replacen("count = 2", "cc = \"cubik\"", 1));
    let parsed = experiment::parse(&source).unwrap();
    assert_eq!(parsed.worlds(), [Backend::Lab]);
    let errors = parsed.plan_for(Backend::Sim).unwrap_err();
    let start =
        "f.toml:8:6: the congestion control `cubik` does not exist in the sim world\n 8 | cc = \"cubik\"\n";
    assert!(errors.to_string().starts_with(start), "{errors}");
    let help = errors.located()[0].help.clone().unwrap();
    assert!(help.starts_with("did you mean `cubic`? what exists: "), "{help}");
    for name in weir_sim::cc::CONTROLS.iter().map(|(name, _)| *name).chain(["tahoe", "newreno"]) {
        assert!(help.contains(&format!("`{name}`")), "{help}");
    }
}

const LISTED: &str = r#"[ports]
dev = "eth1"

[gateway.customers]
file = "customers.csv"

[[gateway.class]]
name = "up"
direction = "in"
ack = { preset = "ack-shaper", flow_rate = "10Mbit" }
"#;

/// A gateway with a list that has a further row.
fn listed(toml: &str, row: &str, settings: &Settings) -> Result<gateway::GatewayFile, config::Errors> {
    let list = format!("id,name,prefixes,down,up\n17,Ada,10.1.2.0/24,50Mbit,10Mbit\n{row}\n");
    let read = |name: &str| {
        assert_eq!(name, "dir/customers.csv");
        Ok(Source::new(name, list.clone()))
    };
    gateway::parse_with(&Source::new("dir/f.toml", toml), settings, &read)
}

/// Messages found, one of each kind.
#[derive(Default)]
struct Found {
    kinds: BTreeSet<String>,
    text: String,
}

impl Found {
    fn add(&mut self, title: &str, errors: &config::Errors) {
        let lists = |help: &String| help.contains("known ") || help.contains("exists: ");
        let kind = |e: &Located| format!("{}{:?}", shape(&e.message), e.help.clone().filter(lists));
        if self.kinds.insert(errors.located().iter().map(kind).collect()) {
            writeln!(self.text, "# {title}\n{errors}\n").unwrap();
        }
    }
}

/// The message without its names, values and numbers.
fn shape(message: &str) -> String {
    let mut shape = String::new();
    let mut chars = message.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '`' | '"' => drop(chars.by_ref().find(|&end| end == c)),
            '0'..='9' => {
                while chars.next_if(|c| c.is_ascii_alphanumeric() || ".%/".contains(*c)).is_some() {}
            }
            _ => shape.push(c),
        }
    }
    shape
}

#[test]
fn messages() {
    let mut found = Found::default();
    for (title, file, from, to) in CASES {
        assert!(file.contains(from), "{title}: the file has no {from:?}");
        let source = Source::new("f.toml", file.replacen(from, to, 1));
        match config::parse(&source) {
            Ok(parsed) => panic!("{title}: accepted: {parsed:?}"),
            Err(errors) => found.add(title, &errors),
        }
    }
    let sweep = EXPERIMENT.replacen("[path]", "[sweep]\nseed = [1, 2]\n[path]", 1);
    let errors = experiment::parse(&Source::new("f.toml", sweep)).unwrap_err();
    found.add("a sweep where one experiment is wanted", &errors);
    for (title, row) in CUSTOMERS {
        let toml =
            LISTED.replace("\"up\"", if row.starts_with("up-to") { "\"up-to-down\"" } else { "\"up\"" });
        let errors = listed(&toml, row, &Settings::default()).unwrap_err();
        found.add(&format!("customers: {title}"), &errors);
    }
    for (title, text) in SETTINGS {
        let mut settings = Settings::default();
        settings.add(text).unwrap();
        let errors = listed(LISTED, "", &settings).unwrap_err().about(&Source::new("set", *text));
        found.add(&format!("set: {title}"), &errors);
    }
    for (title, world, from, to) in REFUSED {
        assert!(EXPERIMENT.contains(from), "{title}: the file has no {from:?}");
        let source = Source::new("f.toml", EXPERIMENT.replacen(from, to, 1));
        let parsed = experiment::parse(&source).unwrap_or_else(|e| panic!("{title}: {e}"));
        assert!(!parsed.worlds().contains(world), "{title}");
        found.add(title, &parsed.plan_for(*world).unwrap_err());
    }
    let found = found.text;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    for (found, expected) in found.split("\n# ").zip(expected.split("\n# ")) {
        assert_eq!(found, expected, "\nfound:\n{found}\nexpected:\n{expected}");
    }
    assert_eq!(found.len(), expected.len(), "messages.txt has more or fewer cases");
}
