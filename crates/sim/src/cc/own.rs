//! Algorithms that a program adds to those of this crate, under names of its own.

use super::{CongestionControl, Make, Options, CONTROLS};
use weir_core::registry::{Refused, Registry};

static OWN: Registry<Make> = Registry::new();

/// Names that files use for Reno with an older recovery.
const SHORTHANDS: [&str; 2] = ["newreno", "tahoe"];

/// Adds an algorithm under a name that is 1 to 64 letters, digits, `-` and `_`. A later one replaces an
/// earlier one with the same name, in runs that begin afterwards.
///
/// `version` tells apart the results of different states of the algorithm. Stores of results ask for it. An
/// algorithm that is part of the program may say `Some("")`: stores tell programs apart by their files.
///
/// # Errors
/// Fails if the name cannot stand in files, or if the simulator has an algorithm with this name.
pub fn register(
    name: &str,
    version: Option<&str>,
    make: impl Fn(&Options) -> Box<dyn CongestionControl> + Send + Sync + 'static,
) -> Result<(), Refused> {
    let taken: Vec<&str> = CONTROLS.iter().map(|(name, _)| *name).chain(SHORTHANDS).collect();
    OWN.add(name, version, Make::new(Box::leak(Box::new(make))), &taken)
}

/// Returns the constructor that was added under this name.
pub(super) fn by_name(name: &str) -> Option<Make> {
    OWN.number(name).and_then(|number| OWN.make(number))
}

/// Returns the version of an added algorithm: `None` if there is no such algorithm, `Some(None)` if it came
/// without one.
pub fn version(name: &str) -> Option<Option<String>> {
    OWN.number(name).and_then(|number| OWN.named(number)).map(|(_, version)| version)
}

/// Returns the names of all algorithms: those of [`CONTROLS`], then the added ones in the order in which they
/// were added.
pub fn names() -> Vec<&'static str> {
    CONTROLS.iter().map(|(name, _)| *name).chain(OWN.names()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{by_name, reno::Reno};
    use super::*;

    #[test]
    fn an_algorithm_is_found_by_the_name_that_it_was_added_under() {
        let make = |options: &Options| -> Box<dyn CongestionControl> { Box::new(Reno::new(options)) };
        assert!(by_name("own-test").is_none() && version("own-test").is_none());
        register("own-test", Some("1"), make).unwrap();
        assert!(by_name("own-test").is_some());
        assert_eq!(version("own-test"), Some(Some("1".into())));
        register("own-test", None, make).unwrap();
        assert_eq!(version("own-test"), Some(None));
        assert_eq!(names().iter().filter(|name| **name == "own-test").count(), 1);
        assert_eq!(&names()[..2], ["reno", "cubic"]);
        for taken in ["cubic", "tahoe"] {
            assert_eq!(register(taken, None, make), Err(Refused::Taken(taken.into())));
        }
    }
}
