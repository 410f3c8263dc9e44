//! Changes of the supervisor to the host, kept so that they can be undone: at the end, at the next start
//! after everything was killed, or by `weir down`.
//!
//! A change is saved before it is made. Undoing a change that was never made does no harm.

use super::state::{Directory, Interface};
use crate::sys::link::{self, HostInterface};
use serde::{Deserialize, Serialize};
use std::io;

/// A change, with the data needed to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Change {
    /// A pair of virtual interfaces was made.
    Veth {
        /// First end; the other one disappears with it.
        name: String,
        /// Numbers of both ends, once they exist.
        #[serde(default)]
        ends: Option<[u32; 2]>,
    },
    /// Classifiers may stay on a kernel that does not remove them by itself.
    Filters {
        /// Interface that they are on.
        interface: Interface,
    },
}

/// Contents of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Saved {
    /// Names of the interfaces.
    interfaces: Vec<String>,
    /// Numbers of the interfaces, in the same order.
    #[serde(default)]
    numbers: Vec<u32>,
    changes: Vec<Change>,
}

/// Changes made so far, newest last.
#[derive(Debug)]
pub(super) struct Changes {
    directory: Directory,
    name: String,
    saved: Saved,
}

impl Changes {
    /// Opens the changes that an earlier run of this instance left behind; none if it ended well.
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

    /// True without changes.
    pub fn is_empty(&self) -> bool {
        self.saved.changes.is_empty()
    }

    /// Interfaces of the instance.
    pub fn interfaces(&self) -> Vec<Interface> {
        let Saved { interfaces, numbers, .. } = &self.saved;
        let pairs = interfaces.iter().zip(numbers);
        pairs.map(|(name, index)| Interface { name: name.clone(), index: *index }).collect()
    }

    /// Saves a change that is about to be made.
    pub fn record(&mut self, change: Change) -> io::Result<()> {
        if self.saved.changes.contains(&change) {
            return Ok(());
        }
        self.saved.changes.push(change);
        self.save()
    }

    /// Replaces the saved pair of virtual interfaces, now that its numbers are known.
    pub fn replace(&mut self, change: Change) -> io::Result<()> {
        self.saved.changes.retain(|old| !matches!(old, Change::Veth { .. }));
        self.record(change)
    }

    /// Undoes and forgets all changes, newest first, and returns what was done in words. Failures are logged.
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

    /// Saves the changes in a directory of the same path, because the one before was removed.
    pub fn move_to(&mut self, directory: Directory) -> io::Result<()> {
        self.directory = directory;
        self.save()
    }

    fn save(&self) -> io::Result<()> {
        let text = if self.is_empty() { Vec::new() } else { serde_json::to_vec_pretty(&self.saved)? };
        self.directory.save(&self.name, &text)
    }
}

/// Returns whether this is an end of the pair that was made. The end may have another name now, and its name
/// another interface.
fn is_pair(link: &HostInterface, name: &str, ends: Option<[u32; 2]>) -> bool {
    let same = match ends {
        Some([a, b]) => {
            [(a, b), (b, a)].contains(&(link.index, link.below)) || (link.index == a && link.name == name)
        }
        None => link.name == name,
    };
    same && link.kind == "veth"
}

/// Undoes one change and returns what was done in words.
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
        // The other end is in another network namespace.
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
