//! Manuals, in which each quantity gets a few edges: what is accepted can be described, planned and begun.

use crate::edges::{self, EACH};
use crate::laws;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use weir::execute::sim::{self, Options};
use weir::experiment::config::experiment::Experiment;
use weir::experiment::config::{self, File, Source};
use weir::experiment::describe;
use weir::result::Backend;
use weir_core::rng::Rng;

const FILES: [&str; 8] = [
    "experiments/examples/annotated.toml",
    "experiments/examples/simulator.toml",
    "experiments/examples/network.toml",
    "experiments/examples/sharing.toml",
    "experiments/examples/pacing.toml",
    "experiments/examples/aqm.toml",
    "examples/gateway.toml",
    "examples/customers.toml",
];
/// Edges of each quantity in an ordinary test.
const FEW: u64 = 1;
/// Flows of an experiment that a test begins.
const MOST_FLOWS: usize = 1000;
/// The first moment, as a divisor of its duration.
const FIRST: u64 = 1000;

/// Uncomments line `number` if it shows a key. Returns the text, and the place of the line.
fn with_line(text: &str, number: usize) -> Option<(String, Range<usize>)> {
    let start: usize = text.split_inclusive('\n').take(number).map(str::len).sum();
    let shown = text[start..].lines().next()?.strip_prefix('#')?;
    let is_key = shown.starts_with(|c: char| c.is_ascii_lowercase()) && shown.contains(" = ");
    is_key.then(|| ([&text[..start], &text[start + 1..]].concat(), start..start + shown.len()))
}

/// Begins an experiment: its world is built, a first moment passes, and there is a result.
fn begin(experiment: Experiment) {
    let Ok(plan) = experiment.plan_for(Backend::Sim) else { return };
    let few = plan.flows().take(MOST_FLOWS + 1).count() <= MOST_FLOWS;
    if few && laws::packets(&plan) / FIRST <= laws::MOST_PACKETS {
        let options = Options { pcap: None, progress: None, stop: &AtomicBool::new(true) };
        let _ = sim::run(&plan, &options);
    }
}

/// Answers a file by errors within it or by a description. Returns whether it was accepted.
fn answered(path: &Path, text: String) -> bool {
    let lines = text.lines().count();
    match config::parse(&Source::new(path.display().to_string(), text)) {
        Err(errors) => assert!(errors.located().iter().all(|e| (1..=lines).contains(&e.line)), "{errors}"),
        Ok(file) => {
            assert!(!describe::lines(&file).is_empty());
            match file {
                File::Experiment(experiment) => begin(*experiment),
                File::Sweep(runs) => runs.into_iter().take(2).for_each(|run| begin(run.experiment)),
                File::Gateway(_) | File::Wan(_) => (),
            }
            return true;
        }
    }
    false
}

/// `EDGES=42` tries all.
#[test]
fn manuals_with_a_quantity_at_an_edge_are_answered() {
    let few = crate::number("EDGES", FEW).min(EACH as u64) as usize;
    let (mut rng, mut accepted, mut all) = (Rng::new(1), 0, 0);
    for file in FILES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let shown = (0..text.lines().count()).filter_map(|number| with_line(&text, number));
        for (text, place) in std::iter::once((text.clone(), 0..text.len())).chain(shown) {
            for quantity in edges::quantities(&text).iter().filter(|q| place.contains(&q.start())) {
                let first = rng.below(EACH as u64) as usize;
                for n in 0..few {
                    all += 1;
                    let text = edges::replaced(&text, quantity, (first + n) % EACH);
                    accepted += usize::from(answered(&path, text));
                }
            }
        }
    }
    println!("{all} files: {accepted} accepted");
    assert!(all > 250 && accepted * 10 > all, "{accepted} of {all} were accepted");
}
