//! Configuration files of every kind: what is wrong is said, what is right is described, and what a process
//! is handed of it is read as what it was.
//!
//! Input: the text of a file; `make fuzz` begins with those of `examples/` and `experiments/`.
//! `cargo +nightly fuzz run config`
#![no_main]

use libfuzzer_sys::{fuzz_target, Corpus};
use weir::experiment::config::gateway::GatewayFile;
use weir::experiment::config::wan::WanFile;
use weir::experiment::config::{parse, File, Source};
use weir::experiment::describe;

fn source(text: &str) -> Source {
    Source::new("fuzz.toml", text)
}

fuzz_target!(|data: &[u8]| -> Corpus {
    let Ok(text) = core::str::from_utf8(data) else { return Corpus::Reject };
    let file = match parse(&source(text)) {
        Ok(file) => file,
        Err(errors) => {
            assert!(!errors.located().is_empty() && !errors.to_string().is_empty());
            return Corpus::Keep;
        }
    };
    assert!(!describe::lines(&file).is_empty());
    match file {
        File::Experiment(experiment) => {
            for world in experiment.worlds() {
                assert!(experiment.clone().plan_for(world).is_ok());
            }
        }
        File::Sweep(runs) => assert!(!runs.is_empty()),
        File::Gateway(file) => {
            let written = serde_json::to_string(&file).unwrap();
            assert_eq!(
                serde_json::from_str::<GatewayFile>(&written).as_ref().ok(),
                Some(&*file),
                "{written}"
            );
        }
        File::Wan(file) => {
            let written = serde_json::to_string(&file).unwrap();
            assert_eq!(serde_json::from_str::<WanFile>(&written).as_ref().ok(), Some(&*file), "{written}");
        }
    }
    Corpus::Keep
});
