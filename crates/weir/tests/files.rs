//! Every configuration file of the repository is right, and can run in a world.

use std::path::{Path, PathBuf};
use weir::experiment::config::schema::{schema, Format};
use weir::experiment::config::{self, experiment, gateway, File, Source};
use weir::result::Backend;

/// Collects configuration files. The rows of a paper are read by `weir repro` alone.
fn toml_files(dir: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            toml_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "toml") && !path.ends_with("rows.toml") {
            out.push(path);
        }
    }
}

#[test]
fn experiments_and_examples_parse() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for dir in ["experiments", "examples"] {
        toml_files(&root.join(dir), &mut files);
    }
    assert!(files.len() >= 6, "{files:?}");
    for path in &files {
        let source = Source::read(path).unwrap();
        match config::parse(&source).unwrap_or_else(|e| panic!("{e}")) {
            File::Experiment(e) => {
                let world = *e.worlds().first().unwrap_or(&Backend::Lab);
                let plan = e.plan_for(world).unwrap_or_else(|e| panic!("{e}"));
                let judged = !plan.expects.is_empty() || plan.parity.is_some();
                assert!(judged, "{}: nothing is expected", path.display());
            }
            File::Sweep(runs) => {
                for run in runs {
                    let plan = run.experiment.plan_for(Backend::Sim).unwrap_or_else(|e| panic!("{e}"));
                    assert!(!plan.expects.is_empty(), "{}: nothing is expected", path.display());
                }
            }
            File::Gateway(g) => assert!(!g.gateway.classes.is_empty(), "{}", path.display()),
            File::Wan(_) => (),
        }
    }
}

/// Readers of a reproduction can tell the paper's claims from what this program happens to reach.
#[test]
fn checks_on_papers_say_where_their_bounds_come_from() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/papers");
    let mut files = Vec::new();
    toml_files(&root, &mut files);
    for path in &files {
        let expects = match config::parse(&Source::read(path).unwrap()).unwrap_or_else(|e| panic!("{e}")) {
            File::Experiment(e) => e.plan.expects,
            File::Sweep(runs) => runs.into_iter().flat_map(|run| run.experiment.plan.expects).collect(),
            File::Gateway(_) | File::Wan(_) => panic!("{}: no experiment", path.display()),
        };
        let without = expects.iter().find(|e| e.basis.is_none());
        assert!(without.is_none(), "{}: no `basis`: {without:?}", path.display());
    }
}

/// An independent validator finds each file of the repository right by the schema of its format.
#[test]
fn experiments_and_examples_follow_the_schema() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    ["experiments", "examples"].iter().for_each(|dir| toml_files(&root.join(dir), &mut files));
    let schema = |format| jsonschema::validator_for(&schema(format)).unwrap();
    let [experiment, gateway, wan] = [Format::Experiment, Format::Gateway, Format::Wan].map(schema);
    for path in files {
        let source = Source::read(&path).unwrap();
        let schema = match config::parse(&source).unwrap_or_else(|e| panic!("{e}")) {
            File::Experiment(_) | File::Sweep(_) => &experiment,
            File::Gateway(_) => &gateway,
            File::Wan(_) => &wan,
        };
        let value = serde_json::to_value(source.text.parse::<toml::Table>().unwrap()).unwrap();
        let errors: Vec<String> =
            schema.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
    }
}

/// Most keys have a kind and a sentence.
#[test]
fn the_schema_says_what_keys_are() {
    let schema = schema(Format::Experiment);
    let link = &schema["$defs"]["path.wan"]["properties"];
    assert_eq!(link["overhead"]["maximum"], 256);
    assert_eq!(link["jitter_law"]["enum"], serde_json::json!(["uniform", "exponential", "normal", "pareto"]));
    assert!(link["rate"]["description"].as_str().unwrap().starts_with("of Ethernet frames"), "{link:#}");
    assert_eq!(schema["required"], serde_json::json!(["name", "duration", "flow"]));
    assert_eq!(schema["properties"]["path"]["$ref"], "#/$defs/path");
}

const MANUALS: [&str; 5] = [
    "experiments/examples/annotated.toml",
    "experiments/examples/simulator.toml",
    "experiments/examples/network.toml",
    "experiments/examples/sharing.toml",
    "experiments/examples/pacing.toml",
];

fn text_of(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)).unwrap()
}

/// Source files below a directory, without tests.
fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        match path.is_dir() {
            true if name != "tests" => sources(&path, out),
            false if name != "tests" && path.extension().is_some_and(|e| e == "rs") => out.push(path),
            _ => {}
        }
    }
}

/// The fixed parts of the messages that a source file logs as warnings and errors.
fn logged(text: &str) -> Vec<String> {
    let production = text.split("#[cfg(test)]").next().unwrap();
    let calls =
        ["tracing::warn!(", "tracing::error!("].iter().flat_map(|call| production.split(call).skip(1));
    let literal = |call: &str| -> String {
        let quoted = call.split_once('"').unwrap().1.replace("\\\"", "\u{1}");
        quoted.split('"').next().unwrap().replace('\u{1}', "\"")
    };
    let parts = |message: String| -> Vec<String> {
        message
            .split('{')
            .map(|part| part.split_once('}').map_or(part, |(_, rest)| rest).to_owned())
            .collect()
    };
    calls.map(literal).flat_map(parts).filter(|part| part.trim().len() >= 6).collect()
}

/// The page's file has the same meaning as the options beside it.
#[test]
fn the_uplink_s_file_is_what_its_options_stand_for() {
    let page = text_of("docs/uplink.md");
    let toml = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let rates = [19, 95].map(|mbit| Some(weir_core::rate::Rate::mbit(mbit)));
    let options = gateway::line("eth0", rates, "delayed-per-flow", None, None, true).unwrap();
    let [written, meant] =
        [Source::new("page", toml), options].map(|source| gateway::parse(&source).unwrap());
    assert_eq!(written.gateway, meant.gateway);
}

/// The page of messages has each warning and error of the log, and each feature that a kernel may lack.
#[test]
fn the_page_of_messages_has_what_is_logged() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = text_of("docs/messages.md");
    let mut files = Vec::new();
    ["crates/weir/src", "crates/io/src"].iter().for_each(|dir| sources(&root.join(dir), &mut files));
    let messages: Vec<String> =
        files.iter().flat_map(|file| logged(&std::fs::read_to_string(file).unwrap())).collect();
    assert!(messages.len() > 40, "{messages:?}");
    for message in messages {
        assert!(page.contains(&message), "docs/messages.md lacks: {message}");
    }
    let features = text_of("crates/io/src/bpf/features.rs");
    let missing: Vec<&str> = features.lines().filter(|line| line.contains("Missing = Missing {")).collect();
    assert!(missing.len() >= 3, "{missing:?}");
    for line in missing {
        let words: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
        let row = format!("| {} | {} |", words[0], words[1]);
        assert!(page.contains(&row), "docs/messages.md lacks: {row}");
    }
}

#[test]
fn the_manual_runs_in_both_worlds() {
    let source = Source::new(MANUALS[0], text_of(MANUALS[0]));
    assert_eq!(experiment::parse(&source).unwrap().worlds(), [Backend::Lab, Backend::Sim]);
}

/// Every key of every table, as the parser lists them for one that it does not know, stands in a manual.
#[test]
fn the_manuals_show_every_key() {
    let manuals = MANUALS.map(text_of).join("\n");
    let mut seen = std::collections::BTreeSet::new();
    for file in MANUALS {
        let text = text_of(file);
        let lines: Vec<&str> = text.lines().collect();
        for (i, _) in lines.iter().enumerate().filter(|(i, l)| *i == 0 || l.starts_with('[')) {
            let with = [&lines[..=i], &["zzzzzz = []"], &lines[i + 1..]].concat().join("\n");
            let errors = config::parse(&Source::new(file, with)).unwrap_err().located();
            let help = errors.iter().filter_map(|e| e.help.as_deref()).find(|h| h.starts_with("known "));
            let Some((_, keys)) = help.and_then(|h| h.split_once(": ")) else { continue };
            seen.extend(keys.split('`').skip(1).step_by(2).map(str::to_string));
        }
    }
    assert!(seen.len() > 60, "{seen:?}");
    for key in &seen {
        let shown = manuals.lines().any(|l| {
            let l = l.strip_prefix('#').unwrap_or(l);
            l.starts_with(&format!("{key} = ")) || l.trim_start_matches('[').contains(&format!("{key}]"))
        });
        assert!(shown, "no manual shows `{key}`");
    }
}

/// The keys shown as comments are right too: uncommented one by one, each is known. What it then
/// contradicts or needs is another matter.
#[test]
fn keys_shown_as_comments_exist() {
    for file in MANUALS.into_iter().chain(["examples/gateway.toml"]) {
        let text = text_of(file);
        let lines: Vec<&str> = text.lines().collect();
        let shown: Vec<usize> = (0..lines.len())
            .filter(|&i| {
                lines[i].strip_prefix('#').is_some_and(|l| l.starts_with(|c: char| c.is_ascii_lowercase()))
            })
            .collect();
        // Two show nearly all their keys at work.
        let at_work = file.ends_with("sharing.toml") || file.ends_with("pacing.toml");
        assert!(shown.len() >= 4 || at_work, "{file}: {shown:?}");
        for i in shown {
            let mut with = lines.clone();
            with[i] = &with[i][1..];
            if let Err(errors) = config::parse(&Source::new(file, with.join("\n"))) {
                let text = errors.to_string();
                assert!(text.contains(" cannot be combined with ") || text.contains(" needs "), "{text}");
            }
        }
    }
}

/// Files that are being edited: nothing that is left out or doubled makes the parser panic, and no
/// error is without a position inside the file.
#[test]
fn half_written_files_are_answered() {
    for file in MANUALS.into_iter().chain(["examples/gateway.toml"]) {
        let text = text_of(file);
        let lines: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
        let answer = |lines: Vec<&str>| {
            let n = lines.len();
            if let Err(errors) = config::parse(&Source::new(file, lines.join("\n"))) {
                assert!(errors.located().iter().all(|e| (1..=n.max(1)).contains(&e.line)), "{errors}");
            }
        };
        for i in 0..lines.len() {
            answer([&lines[..i], &lines[i + 1..]].concat());
            answer([&lines[..=i], &lines[i..]].concat());
            answer(lines[..i].to_vec());
            for other in ["= 1", "= \"x\"", "= []", "= {}", "= [{}]", "= -1", "= 1e400", "= true", "= \"\""] {
                let Some((key, _)) = lines[i].split_once('=') else { continue };
                let changed = format!("{key}{other}");
                let mut with = lines.clone();
                with[i] = &changed;
                answer(with);
            }
        }
    }
}
