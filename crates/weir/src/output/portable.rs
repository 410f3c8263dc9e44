//! Files on other systems. A link in the file's place is refused. Unlike on Linux, there is no protection
//! against directories that other users can write to.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// File that will be written.
#[derive(Debug)]
pub struct Target {
    path: PathBuf,
}

impl Target {
    /// Prepares a file that a command writes once.
    pub fn new(path: &Path) -> Result<Target, String> {
        let fault = |what: &str| Err(format!("{}: {what}", path.display()));
        if path.file_name().is_none() {
            return fault("names no file");
        }
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_symlink() => {
                fault("is a symbolic link, which is not followed: name the file itself, or `-`")
            }
            Ok(found) if found.is_dir() => fault("is a directory"),
            _ => Ok(Target { path: path.to_owned() }),
        }
    }

    /// Returns the file's path for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `bytes` to the file. Readers see the previous file or this one, never a part.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        // A pipe or a device is written to, not replaced.
        if fs::metadata(&self.path).is_ok_and(|found| !found.is_file()) {
            return OpenOptions::new().write(true).open(&self.path)?.write_all(bytes);
        }
        let draft = self.draft();
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&draft)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| fs::rename(&draft, &self.path));
        if written.is_err() {
            // A partial file is useless. If removing it fails too, the first error is more informative.
            let _ = fs::remove_file(&draft);
        }
        written
    }

    /// Returns a name beside the file's.
    fn draft(&self) -> PathBuf {
        let mut name = OsString::from(".");
        name.push(self.path.file_name().unwrap_or_default());
        name.push(format!(".{:016x}", RandomState::new().hash_one(0)));
        self.path.with_file_name(name)
    }
}
