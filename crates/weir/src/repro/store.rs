//! Results of runs, kept between calls.
//!
//! The name of a file is a hash of everything that decides what is in it, the program included. So a result
//! of another version, or of a changed experiment, is never found. A file is there whole or not at all.

use super::asks::Given;
use crate::output::Target;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Folder of results.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    version: String,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    version: String,
    key: String,
    given: Given,
}

/// Returns the version of this program: its number, and the beginning of the hash of its file.
pub fn version() -> Result<String, String> {
    let path = std::env::current_exe().map_err(|e| format!("this program's own file: {e}"))?;
    let bytes = std::fs::read(&path).map_err(|e| format!("this program's own file: {e}"))?;
    let hash: String = Sha256::digest(&bytes).iter().take(8).map(|b| format!("{b:02x}")).collect();
    Ok(format!("{} ({hash})", env!("CARGO_PKG_VERSION")))
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
    pub fn get(&self, key: &str) -> Option<Given> {
        let text = std::fs::read(self.path(key)).ok()?;
        let kept: Kept = serde_json::from_slice(&text).ok()?;
        (kept.version == self.version && kept.key == key).then_some(kept.given)
    }

    /// Keeps a result.
    pub fn put(&self, key: &str, given: &Given) -> Result<(), String> {
        let path = self.path(key);
        let kept = Kept { version: self.version.clone(), key: key.into(), given: given.clone() };
        let text = serde_json::to_vec(&kept).map_err(|e| e.to_string())?;
        Target::new(&path)?.write(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(seed: u64) -> Given {
        Given {
            seed,
            settings: Vec::new(),
            wall_s: 1.5,
            faults: Vec::new(),
            checks: Vec::new(),
            values: [("k".to_string(), Vec::new())].into(),
            starved: false,
        }
    }

    #[test]
    fn another_version_s_results_are_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let one = Store::open(folder.path(), "1").unwrap();
        one.put("abc", &given(7)).unwrap();
        assert_eq!(one.get("abc"), Some(given(7)));
        assert_eq!(one.get("abd"), None);
        // The key has the version in it; a file that came under it in another way is not used either.
        assert_eq!(Store::open(folder.path(), "2").unwrap().get("abc"), None);
        std::fs::copy(folder.path().join("abc.json"), folder.path().join("abd.json")).unwrap();
        assert_eq!(one.get("abd"), None);
    }

    #[test]
    fn a_part_of_a_file_is_no_result() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), "1").unwrap();
        store.put("abc", &given(7)).unwrap();
        let path = folder.path().join("abc.json");
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() / 2]).unwrap();
        assert_eq!(store.get("abc"), None);
        store.put("abc", &given(8)).unwrap();
        assert_eq!(store.get("abc").unwrap().seed, 8);
    }
}
