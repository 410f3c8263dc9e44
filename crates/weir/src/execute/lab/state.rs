//! State of a lab, kept in `/run/weir/lab/ID`, where the next lab finds it if this one is killed.
//!
//! A file names its owner and the lab's namespaces and processes. Processes are identified by number and
//! start time, so that a reused number is not mistaken. When a lab starts, it cleans up after owners that are
//! dead.

use super::namespace::Namespace;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Directory of the records of labs.
const DIRECTORY: &str = "/run/weir/lab";

/// Identity of a process, distinct from a later process of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pid: u32,
    /// Start time in clock ticks after boot (`/proc/PID/stat`, field 22).
    started: u64,
}

impl Process {
    /// Returns the process that has this number now.
    pub fn of(pid: u32) -> Option<Process> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(Process { pid, started: start_time(&stat)? })
    }

    fn is_alive(self) -> bool {
        Process::of(self.pid) == Some(self)
    }

    fn kill(self) {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid.filter(|_| self.is_alive()) {
            // The process may end between the check and the signal.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Returns the start time. The name in parentheses may contain anything, even spaces and parentheses.
fn start_time(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19)?.parse().ok()
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Contents {
    owner: Process,
    namespaces: Vec<String>,
    children: Vec<Process>,
    directory: Option<PathBuf>,
}

/// Record of a lab that this process owns. Dropping it removes everything that it names.
#[derive(Debug)]
pub struct LabRecord {
    path: PathBuf,
    contents: Contents,
}

impl LabRecord {
    /// Records this process as owner of the lab `id`, after cleaning up after dead owners.
    pub fn open(id: &str) -> Result<LabRecord, String> {
        let fault = |e: io::Error| format!("{DIRECTORY}: {e}");
        fs::create_dir_all(DIRECTORY).map_err(fault)?;
        let _lock = lock().map_err(fault)?;
        for note in clean_up().map_err(fault)? {
            crate::output::say(&note);
        }
        let owner = Process::of(std::process::id()).ok_or("/proc is not there")?;
        let path = Path::new(DIRECTORY).join(id);
        if path.exists() {
            return Err(format!("a lab named {id} is running already"));
        }
        let record = LabRecord {
            path,
            contents: Contents { owner, namespaces: vec![], children: vec![], directory: None },
        };
        record.write()?;
        Ok(record)
    }

    /// Records a namespace. Called before it is made.
    pub fn namespace(&mut self, name: &str) -> Result<(), String> {
        self.contents.namespaces.push(name.to_string());
        self.write()
    }

    /// Records a process. Called right after its start.
    pub fn child(&mut self, pid: u32) -> Result<(), String> {
        self.contents.children.extend(Process::of(pid));
        self.write()
    }

    /// Returns the lab's directory, which the first call makes.
    pub fn directory(&mut self) -> Result<PathBuf, String> {
        let path = self.path.with_extension("d");
        if self.contents.directory.is_none() {
            self.contents.directory = Some(path.clone());
            self.write()?;
            fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        Ok(path)
    }

    fn write(&self) -> Result<(), String> {
        let text = serde_json::to_string(&self.contents).map_err(|e| e.to_string())?;
        // A reader must never see a partial file, even if this process is killed here.
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let new = self.path.with_file_name(format!(".{name}.new"));
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, &self.path))
            .map_err(|e| format!("{}: {e}", self.path.display()))
    }
}

impl Drop for LabRecord {
    fn drop(&mut self) {
        if let Err(e) = remove(&self.contents) {
            crate::output::say(&format!("cleaning up: {e}"));
            // The record stays, and the next lab tries again.
            return;
        }
        if let Err(e) = fs::remove_file(&self.path) {
            crate::output::say(&format!("{}: {e}", self.path.display()));
        }
    }
}

/// Takes the lock on all records, for reading or adding them.
fn lock() -> io::Result<File> {
    let file = File::create(Path::new(DIRECTORY).join(".lock"))?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

/// Removes the remains of labs whose owners are dead. Returns what was done.
fn clean_up() -> io::Result<Vec<String>> {
    let mut notes = Vec::new();
    for entry in fs::read_dir(DIRECTORY)? {
        let path = entry?.path();
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let Ok(found) = serde_json::from_str::<Contents>(&text) else { continue };
        if found.owner.is_alive() {
            continue;
        }
        match remove(&found) {
            Ok(()) => {
                fs::remove_file(&path)?;
                notes.push(format!("removed what the lab {} left when it was killed", path.display()));
            }
            Err(e) => notes.push(format!("the lab {} was killed and left: {e}", path.display())),
        }
    }
    Ok(notes)
}

fn remove(contents: &Contents) -> Result<(), String> {
    contents.children.iter().for_each(|c| c.kill());
    let mut result = Ok(());
    for name in &contents.namespaces {
        // A namespace that cannot be removed does not prevent the removal of others.
        result = result.and(Namespace::remove(name));
    }
    match contents.directory.as_ref().map(fs::remove_dir_all) {
        Some(Err(e)) if e.kind() != io::ErrorKind::NotFound => result.and(Err(e.to_string())),
        _ => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start() {
        let me = Process::of(std::process::id()).unwrap();
        assert!(me.is_alive());
        assert!(!Process { started: me.started + 1, ..me }.is_alive());
        assert_eq!(Process::of(u32::MAX), None);
    }

    #[test]
    fn names_of_processes_may_hold_anything() {
        let fields: Vec<String> = (4..30).map(|n: u32| n.to_string()).collect();
        let stat = format!("7 (a) b (c) R {}", fields.join(" "));
        assert_eq!(start_time(&stat), Some(22));
    }
}
