//! What the supervisor changed on the host, so that it can be undone: on exit, and by the next
//! start after everything was killed.
//!
//! A change is written to a file under `/run` before it is made. Undoing what was not made after
//! all does no harm.

use crate::sys::ethtool::Ethtool;
use crate::sys::{link, process};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// An interface as it was when something about it was changed. An interface of the same name that
/// was made since is another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// Its Ethernet address.
    pub mac: Vec<u8>,
}

impl From<&link::Link> for Interface {
    fn from(link: &link::Link) -> Interface {
        Interface { name: link.name.clone(), index: link.index, mac: link.mac.clone() }
    }
}

/// A change, with what is needed to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// An offload was switched.
    Offload {
        /// Where.
        interface: Interface,
        /// Its name in the kernel.
        feature: String,
        /// Whether it had been on.
        was: bool,
    },
    /// A bridge was made.
    Bridge {
        /// Its name.
        name: String,
    },
    /// An observer may be left behind on a kernel that does not take it off by itself.
    Observer {
        /// Where.
        interface: Interface,
    },
}

/// The changes made so far, newest last.
#[derive(Debug)]
pub struct Changes {
    file: PathBuf,
    made: Vec<Change>,
}

impl Changes {
    /// Those that an earlier run between these interfaces left behind; none if it ended well.
    pub fn open(directory: &Path, lan: &str, wan: &str) -> io::Result<Changes> {
        // Interfaces of the same names exist in other network namespaces.
        let place = process::namespace()?.map_or(String::new(), |number| format!("@{number}"));
        let file = directory.join(format!("{lan}-{wan}{place}.json"));
        let made = match std::fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).map_err(|e| {
                let message = format!("{} is not a state of Weir ({e}): remove it", file.display());
                io::Error::new(io::ErrorKind::InvalidData, message)
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(Changes { file, made })
    }

    /// Nothing is changed now.
    pub fn is_empty(&self) -> bool {
        self.made.is_empty()
    }

    /// Remembers a change that is about to be made.
    pub fn record(&mut self, change: Change) -> io::Result<()> {
        self.made.push(change);
        self.save()
    }

    /// Undoes everything, newest first, and forgets it. What cannot be undone is said and left.
    pub fn undo(&mut self) {
        while let Some(change) = self.made.pop() {
            match undo(&change) {
                Ok(Some(what)) => tracing::info!("{what}"),
                Ok(None) => {}
                Err(error) => tracing::error!("cannot undo {change:?}: {error}"),
            }
        }
        if let Err(error) = self.save() {
            tracing::error!("cannot update {}: {error}", self.file.display());
        }
    }

    /// Writes the file as a whole or not at all.
    fn save(&self) -> io::Result<()> {
        if self.made.is_empty() {
            return match std::fs::remove_file(&self.file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        if let Some(directory) = self.file.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let draft = self.file.with_extension("new");
        std::fs::write(&draft, serde_json::to_vec_pretty(&self.made)?)?;
        std::fs::rename(&draft, &self.file)
    }
}

fn is_same(interface: &Interface) -> io::Result<bool> {
    Ok(link::find(&interface.name)?.is_some_and(|link| Interface::from(&link) == *interface))
}

/// Undoes one change and says what it did.
fn undo(change: &Change) -> io::Result<Option<String>> {
    match change {
        Change::Offload { interface, feature, was } => {
            if !is_same(interface)? {
                return Ok(None);
            }
            Ethtool::open(&interface.name)?.set_feature(feature, *was)?;
            Ok(Some(format!("{}: {feature} is {} again", interface.name, if *was { "on" } else { "off" })))
        }
        Change::Bridge { name } => match link::find(name)? {
            Some(bridge) if bridge.kind == "bridge" => {
                link::delete(bridge.index)?;
                Ok(Some(format!("bridge {name} is removed")))
            }
            _ => Ok(None),
        },
        Change::Observer { interface } => {
            if is_same(interface)? {
                crate::bpf::remove_filters(interface.index);
            }
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survive_in_the_file_until_undone() {
        let directory = std::env::temp_dir().join(format!("weir-changes-{}", std::process::id()));
        let open = || Changes::open(&directory, "a", "b").unwrap();
        assert!(open().is_empty());
        let interface = Interface { name: "weir-none".into(), index: 1 << 30, mac: vec![2; 6] };
        let mut changes = open();
        let offload = Change::Offload { interface, feature: "rx-gro".into(), was: true };
        changes.record(offload.clone()).unwrap();
        changes.record(Change::Bridge { name: "weir-none".into() }).unwrap();
        assert_eq!(open().made, [offload, Change::Bridge { name: "weir-none".into() }]);
        open().undo();
        assert!(open().is_empty());
        std::fs::remove_dir(&directory).unwrap();
    }
}
