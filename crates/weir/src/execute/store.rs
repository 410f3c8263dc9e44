//! Results of runs, kept between calls.
//!
//! The name of a file is a hash of everything that decides what is in it, the program included. So a result
//! of another version, or of a changed experiment, is never found. A file is there whole or not at all.

use crate::output::Target;
use fs4::{FileExt, TryLockError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Folder of results.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    version: String,
}

#[derive(Serialize, Deserialize)]
struct Kept<T> {
    version: String,
    key: String,
    given: T,
}

/// Claim to make a result, which ends with the process.
#[derive(Debug)]
pub struct Claim {
    /// Locked until it is closed.
    _file: File,
    path: PathBuf,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Others take a left file for what it is: no process holds it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns the version of this program: its number, and the beginning of the hash of its file.
pub fn version() -> Result<String, String> {
    let path = std::env::current_exe().map_err(|e| format!("this program's own file: {e}"))?;
    version_of(&path)
}

/// Returns the version of a program or library in this file.
pub fn version_of(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(format!("{} ({})", env!("CARGO_PKG_VERSION"), &hash(&[&bytes])[..16]))
}

/// Returns a key for what these parts decide.
pub fn hash(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // Lengths keep parts apart: "ab", "c" is not "a", "bc".
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Store {
    /// Opens the folder, which is made if needed, for results of `version`.
    pub fn open(folder: &Path, version: &str) -> Result<Store, String> {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Store { folder: folder.into(), version: version.into() })
    }

    /// Returns the version whose results it has.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the result with this key, if it is there and whole.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let text = std::fs::read(self.path(key)).ok()?;
        let kept: Kept<T> = serde_json::from_slice(&text).ok()?;
        (kept.version == self.version && kept.key == key).then_some(kept.given)
    }

    /// Keeps a result.
    pub fn put<T: Serialize>(&self, key: &str, given: &T) -> Result<(), String> {
        let path = self.path(key);
        let kept = Kept { version: self.version.clone(), key: key.into(), given };
        let text = serde_json::to_vec(&kept).map_err(|e| e.to_string())?;
        Target::new(&path)?.write(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Claims to make the result with this key. `None` if another process does.
    ///
    /// The claim is a lock on a file, which the system takes from a process that ends. A folder on a network
    /// needs a file system with such locks (NFS has them since version 4).
    pub fn claim(&self, key: &str) -> Result<Option<Claim>, String> {
        let path = self.folder.join(format!("{key}.claim"));
        let fault = |e: std::io::Error| format!("{}: {e}", path.display());
        let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(fault)?;
        match FileExt::try_lock(&file) {
            // One who held it has removed its name meanwhile, so the next one would lock another file.
            Ok(()) if same_file(&file, &path) => Ok(Some(Claim { _file: file, path })),
            Ok(()) | Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(fault(error)),
        }
    }

    /// Returns versions of which there are results in the folder, apart from this one.
    pub fn other_versions(&self) -> Result<BTreeSet<String>, String> {
        #[derive(Deserialize)]
        struct Of {
            version: String,
        }
        let entries =
            std::fs::read_dir(&self.folder).map_err(|e| format!("{}: {e}", self.folder.display()))?;
        let results = entries.flatten().map(|entry| entry.path());
        let results = results.filter(|path| path.extension().is_some_and(|end| end == "json"));
        let versions = results.filter_map(|path| {
            let of: Of = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
            Some(of.version)
        });
        Ok(versions.filter(|version| *version != self.version).collect())
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

/// Returns whether an open file still has this name.
#[cfg(unix)]
fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let number = |of: std::io::Result<std::fs::Metadata>| of.ok().map(|of| (of.dev(), of.ino()));
    number(file.metadata()).is_some_and(|own| number(std::fs::metadata(path)) == Some(own))
}

/// Names of open files cannot be removed here.
#[cfg(not(unix))]
fn same_file(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(seed: u64) -> (u64, String) {
        (seed, "a result".into())
    }

    #[test]
    fn another_version_s_results_are_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let one = Store::open(folder.path(), "1").unwrap();
        one.put("abc", &given(7)).unwrap();
        assert_eq!(one.get("abc"), Some(given(7)));
        assert_eq!(one.get::<(u64, String)>("abd"), None);
        // The key has the version in it; a file that came under it in another way is not used either.
        let other = Store::open(folder.path(), "2").unwrap();
        assert_eq!(other.get::<(u64, String)>("abc"), None);
        assert_eq!(other.other_versions().unwrap(), ["1".to_string()].into());
        assert!(one.other_versions().unwrap().is_empty());
        std::fs::copy(folder.path().join("abc.json"), folder.path().join("abd.json")).unwrap();
        assert_eq!(one.get::<(u64, String)>("abd"), None);
    }

    #[test]
    fn a_part_of_a_file_is_no_result() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), "1").unwrap();
        store.put("abc", &given(7)).unwrap();
        let path = folder.path().join("abc.json");
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() / 2]).unwrap();
        assert_eq!(store.get::<(u64, String)>("abc"), None);
        store.put("abc", &given(8)).unwrap();
        assert_eq!(store.get::<(u64, String)>("abc").unwrap().0, 8);
    }
    #[test]
    fn a_result_is_claimed_once_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let stores = [1, 2].map(|_| Store::open(folder.path(), "1").unwrap());
        let claim = stores[0].claim("abc").unwrap();
        assert!(claim.is_some());
        assert!(stores[1].claim("abc").unwrap().is_none());
        assert!(stores[1].claim("abd").unwrap().is_some());
        drop(claim);
        assert!(stores[1].claim("abc").unwrap().is_some());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
