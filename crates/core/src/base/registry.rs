//! Tables of what a program adds to a library under names of its own.
//!
//! A table belongs to the process. It is filled before runs begin, and what is in it is never freed.

use core::fmt;
use std::sync::{PoisonError, RwLock};

/// Most bytes of a name.
const LONGEST: usize = 64;

/// Reason why a name is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The name cannot stand in files.
    Name(String),
    /// The library has something with this name itself.
    Taken(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Name(name) => {
                write!(f, "\"{name}\" is not a name: names are 1 to {LONGEST} letters, digits, `-` and `_`")
            }
            Refused::Taken(name) => write!(f, "Weir has a `{name}` itself: choose another name"),
        }
    }
}

impl std::error::Error for Refused {}

/// Reason why an algorithm of the program cannot go on. As the payload of a panic, it ends the run with this
/// message (`std::panic::resume_unwind(Box::new(Fault(message)))`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

struct Entry<M> {
    name: &'static str,
    version: Option<String>,
    make: M,
}

/// Table of constructors by name.
pub struct Registry<M>(RwLock<Vec<Entry<M>>>);

impl<M: Copy> Registry<M> {
    /// Creates an empty table.
    pub const fn new() -> Registry<M> {
        Registry(RwLock::new(Vec::new()))
    }

    /// Adds a constructor, or replaces the one with the same name. Names are 1 to 64 letters, digits, `-` and
    /// `_`; those in `taken` are the library's.
    ///
    /// # Errors
    /// Fails if the name is not one, or taken.
    pub fn add(&self, name: &str, version: Option<&str>, make: M, taken: &[&str]) -> Result<(), Refused> {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > LONGEST || !name.chars().all(good) {
            return Err(Refused::Name(name.into()));
        }
        if taken.contains(&name) {
            return Err(Refused::Taken(name.into()));
        }
        let version = version.map(str::to_owned);
        let mut entries = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match entries.iter_mut().find(|entry| entry.name == name) {
            Some(entry) => (entry.make, entry.version) = (make, version),
            None => entries.push(Entry { name: Box::leak(name.into()), version, make }),
        }
        Ok(())
    }

    /// Returns the number of the entry with this name, which stays the same.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.read(|entries| entries.iter().position(|entry| entry.name == name).map(|n| n as u32))
    }

    /// Returns the constructor with this number.
    pub fn make(&self, number: u32) -> Option<M> {
        self.read(|entries| entries.get(number as usize).map(|entry| entry.make))
    }

    /// Returns the name and the version of the entry with this number.
    pub fn named(&self, number: u32) -> Option<(&'static str, Option<String>)> {
        self.read(|entries| entries.get(number as usize).map(|e| (e.name, e.version.clone())))
    }

    /// Returns all names, in the order in which they were added.
    pub fn names(&self) -> Vec<&'static str> {
        self.read(|entries| entries.iter().map(|entry| entry.name).collect())
    }

    fn read<T>(&self, get: impl FnOnce(&[Entry<M>]) -> T) -> T {
        get(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<M: Copy> Default for Registry<M> {
    fn default() -> Registry<M> {
        Registry::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_found_and_replaced_by_its_name() {
        let table = Registry::new();
        table.add("a", None, 1, &[]).unwrap();
        table.add("b", Some("1"), 2, &[]).unwrap();
        let b = table.number("b").unwrap();
        assert_eq!((table.make(b), table.named(b)), (Some(2), Some(("b", Some("1".into())))));
        table.add("b", Some("2"), 3, &[]).unwrap();
        assert_eq!((table.number("b"), table.make(b)), (Some(b), Some(3)));
        assert_eq!(table.named(b), Some(("b", Some("2".into()))));
        assert_eq!(table.names(), ["a", "b"]);
        assert_eq!((table.number("c"), table.make(2)), (None, None));
    }

    #[test]
    fn a_name_can_stand_in_files_and_is_not_the_library_s() {
        let table = Registry::new();
        for bad in ["", "a b", "é", "a.b", &"x".repeat(65)] {
            assert_eq!(table.add(bad, None, 1, &[]), Err(Refused::Name(bad.into())));
        }
        assert_eq!(table.add("cubic", None, 1, &["cubic"]), Err(Refused::Taken("cubic".into())));
        assert!(table.names().is_empty());
        table.add(&"x".repeat(64), None, 1, &[]).unwrap();
    }
}
