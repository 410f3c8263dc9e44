//! Changes that the supervisor made to the host, kept so that they can be undone: on exit, by the next start after everything
//! was killed, or by `weir down`.
//!
//! A change is saved before it is made. Undoing what was not made after all does no harm.

use super::state::Directory;
use crate::sys::link::{self, HostInterface};
use serde::{Deserialize, Serialize};
use std::io;

/// An interface as it was when something about it was changed. An interface of the same name that
/// was made since is another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Interface {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
}

/// A change, with what is needed to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Change {
    /// A pair of virtual interfaces was made.
    Veth {
        /// Its first end: the other one goes with it.
        name: String,
        /// The numbers of both ends, once there are some.
        #[serde(default)]
        ends: Option<[u32; 2]>,
    },
    /// Classifiers may be left behind on a kernel that does not take them off by itself.
    Filters {
        /// Where.
        interface: Interface,
    },
}

/// What is saved.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Saved {
    /// Their names.
    interfaces: Vec<String>,
    /// Their numbers, in the same order.
    #[serde(default)]
    numbers: Vec<u32>,
    changes: Vec<Change>,
}

/// The changes made so far, newest last.
#[derive(Debug)]
pub(super) struct Changes {
    directory: Directory,
    name: String,
    saved: Saved,
}

impl Changes {
    /// Those that an earlier run of this instance left behind; none if it ended well.
    pub fn open(directory: Directory, name: &str, interfaces: &[Interface]) -> io::Result<Changes> {
        let mut saved: Saved = match directory.load(name)? {
            None => Saved::default(),
            Some(text) => serde_json::from_slice(&text).map_err(|e| {
                let message = format!("{} is not a state of Weir ({e}): remove it", directory.display(name));
                io::Error::new(io::ErrorKind::InvalidData, message)
            })?,
        };
        if !interfaces.is_empty() {
            saved.interfaces = interfaces.iter().map(|interface| interface.name.clone()).collect();
            saved.numbers = interfaces.iter().map(|interface| interface.index).collect();
        }
        Ok(Changes { directory, name: name.to_owned(), saved })
    }

    /// Nothing is changed now.
    pub fn is_empty(&self) -> bool {
        self.saved.changes.is_empty()
    }

    /// The interfaces that were worked on.
    pub fn interfaces(&self) -> Vec<Interface> {
        let Saved { interfaces, numbers, .. } = &self.saved;
        let pairs = interfaces.iter().zip(numbers);
        pairs.map(|(name, index)| Interface { name: name.clone(), index: *index }).collect()
    }

    /// Remembers a change that is about to be made.
    pub fn record(&mut self, change: Change) -> io::Result<()> {
        if self.saved.changes.contains(&change) {
            return Ok(());
        }
        self.saved.changes.push(change);
        self.save()
    }

    /// More is known of a pair of virtual interfaces that was made.
    pub fn replace(&mut self, change: Change) -> io::Result<()> {
        self.saved.changes.retain(|old| !matches!(old, Change::Veth { .. }));
        self.record(change)
    }

    /// Undoes everything, newest first, forgets it, and says what was done. What cannot be undone is said and left.
    pub fn undo(&mut self) -> Vec<String> {
        let mut done = Vec::new();
        while let Some(change) = self.saved.changes.pop() {
            match undo(&change) {
                Ok(what) => done.extend(what),
                Err(error) => tracing::error!("cannot undo {change:?}: {error}"),
            }
        }
        if let Err(error) = self.save() {
            tracing::error!("cannot update {}: {error}", self.directory.display(&self.name));
        }
        done
    }

    fn save(&self) -> io::Result<()> {
        let text = if self.is_empty() { Vec::new() } else { serde_json::to_vec_pretty(&self.saved)? };
        self.directory.save(&self.name, &text)
    }
}

/// Is this an end of the pair that was made? It may be called otherwise by now, and another interface may have its name.
fn is_pair(link: &HostInterface, name: &str, ends: Option<[u32; 2]>) -> bool {
    let same = match ends {
        Some([a, b]) => {
            [(a, b), (b, a)].contains(&(link.index, link.below)) || (link.index == a && link.name == name)
        }
        None => link.name == name,
    };
    same && link.kind == "veth"
}

/// Undoes one change and says what it did.
fn undo(change: &Change) -> io::Result<Option<String>> {
    match change {
        Change::Veth { name, ends } => {
            let Some(veth) = link::all()?.into_iter().find(|link| is_pair(link, name, *ends)) else {
                return Ok(None);
            };
            link::delete(veth.index)?;
            Ok(Some(format!("virtual interface {} is removed", veth.name)))
        }
        Change::Filters { interface } => {
            let found = link::find(&interface.name)?;
            if found.is_some_and(|link| link.index == interface.index) {
                crate::bpf::remove_filters(interface.index);
                return Ok(Some(format!("tc filters of {} are removed", interface.name)));
            }
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::tests::Temporary;
    use super::*;

    #[test]
    fn a_pair_is_known_by_its_numbers() {
        let link = |name: &str, index, below| HostInterface {
            name: name.into(),
            kind: "veth".into(),
            index,
            below,
            ..HostInterface::default()
        };
        let is = |link: &HostInterface| is_pair(link, "weir-1a", Some([4, 5]));
        assert!(is(&link("weir-1a", 4, 5)) && is(&link("renamed", 4, 5)) && is(&link("other", 5, 4)));
        // Its other end is in another network namespace.
        assert!(is(&link("weir-1a", 4, 0)));
        assert!(!is(&link("weir-1a", 9, 10)) && !is(&link("eth0", 4, 0)));
        assert!(!is(&HostInterface { kind: "bridge".into(), ..link("weir-1a", 4, 5) }));
    }

    #[test]
    fn survive_in_the_file_until_undone() {
        let temporary = Temporary::new("changes");
        let a = [Interface { name: "a".into(), index: 7 }];
        let open = || Changes::open(temporary.open(), "7", &a).unwrap();
        assert!(open().is_empty());
        let interface = Interface { name: "weir-none".into(), index: 1 << 30 };
        let mut changes = open();
        let filters = Change::Filters { interface };
        changes.record(filters.clone()).unwrap();
        changes.record(filters.clone()).unwrap();
        changes.record(Change::Veth { name: "weir-none".into(), ends: None }).unwrap();
        assert_eq!(open().saved.changes, [filters, Change::Veth { name: "weir-none".into(), ends: None }]);
        assert_eq!(open().interfaces(), a);
        assert_eq!(open().undo(), [""; 0]);
        assert!(open().is_empty());
        assert_eq!(std::fs::read_dir(&temporary.0).unwrap().count(), 0);
    }
}
