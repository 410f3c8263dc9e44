//! Maps of loaded programs that other programs are loaded on: of the same process, or of the next program
//! that it executes.

use super::failed;
use crate::sys::inherit::{adopt, Heir};
use libbpf_rs::{Map, MapCore, Object, OpenMapMut};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

/// Maps by name, rings by engine, and the secret of hashes in the maps.
#[derive(Debug, Default)]
pub struct Maps {
    maps: BTreeMap<String, OwnedFd>,
    pub(super) rings: Vec<OwnedFd>,
    pub(super) secret: Secret,
}

/// Secret of the hashes that the programs compute. What lies in the maps is found only with the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    pub(super) seed: u64,
    pub(super) keys: [u64; 5],
}

/// [`Maps`], by the numbers of their descriptors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftMaps {
    maps: BTreeMap<String, RawFd>,
    rings: Vec<RawFd>,
    secret: Secret,
}

impl LeftMaps {
    /// Hands the maps of an object, but not those of its constants and variables, over to the program that
    /// this process is about to execute.
    pub(super) fn of(object: &Object, rings: &[impl AsFd], secret: Secret, heir: &mut Heir) -> LeftMaps {
        let maps = own(object).map(|(name, map)| (name, heir.gets(map))).collect();
        let rings = rings.iter().map(|fd| heir.gets(fd)).collect();
        LeftMaps { maps, rings, secret }
    }
}

/// Maps of an object but those of its constants and variables, with their names.
fn own(object: &Object) -> impl Iterator<Item = (String, Map<'_>)> {
    let named = object.maps().map(|map| (map.name().to_string_lossy().into_owned(), map));
    named.filter(|(name, _)| !name.contains('.'))
}

impl Maps {
    /// Returns the maps of an object, but not those of its constants and variables.
    #[cfg(test)]
    pub(super) fn of(object: &Object, rings: &[impl AsFd], secret: Secret) -> io::Result<Maps> {
        let maps = own(object).map(|(name, map)| Ok((name, map.as_fd().try_clone_to_owned()?)));
        let rings = rings.iter().map(|ring| ring.as_fd().try_clone_to_owned());
        Ok(Maps { maps: maps.collect::<io::Result<_>>()?, rings: rings.collect::<io::Result<_>>()?, secret })
    }

    /// Takes over the maps of the program before.
    pub fn adopt(left: &LeftMaps) -> io::Result<Maps> {
        let maps = left.maps.iter().map(|(name, fd)| Ok((name.clone(), adopt(*fd)?)));
        let maps = maps.collect::<io::Result<_>>()?;
        let rings = left.rings.iter().map(|fd| adopt(*fd)).collect::<io::Result<_>>()?;
        Ok(Maps { maps, rings, secret: left.secret })
    }

    /// Makes a map that is not yet made the one of this name, if there is one.
    pub(super) fn lend(&self, map: &mut OpenMapMut<'_>, name: &str) -> io::Result<()> {
        let Some(fd) = self.maps.get(name) else { return Ok(()) };
        map.reuse_fd(fd.as_fd()).map_err(|e| failed(name, &e))
    }

    pub(super) fn rings(&self) -> Vec<BorrowedFd<'_>> {
        self.rings.iter().map(AsFd::as_fd).collect()
    }
}
