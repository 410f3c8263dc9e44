//! Configuration files of every kind: what is wrong is said, what is right is described, and what is written
//! is read as what it was.
//!
//! Input: the text of a file; `make fuzz` begins with those of `examples/` and `experiments/`.
//! `cargo +nightly fuzz run config`
#![no_main]

use libfuzzer_sys::{fuzz_target, Corpus};
use weir::experiment::config::{gateway, parse, wan, File, Source};
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
            let written = file.to_toml();
            assert_eq!(gateway::parse(&source(&written)).as_ref(), Ok(&*file), "{written}");
        }
        File::Wan(file) => {
            let written = file.to_toml();
            assert_eq!(wan::parse(&source(&written)).as_ref(), Ok(&*file), "{written}");
        }
    }
    Corpus::Keep
});
