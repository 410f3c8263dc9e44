//! Files on Linux. They are never written through a link that another user planted, either at the file's
//! place or on the path to it.

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// File that will be written once or repeatedly. Its directory is held open, so that it stays the same even
/// if its path changes.
#[derive(Debug)]
pub struct Target {
    directory: OwnedFd,
    name: OsString,
    path: PathBuf,
}

impl Target {
    /// Prepares a file that a command writes once. A link in its place is refused, not followed.
    pub fn new(path: &Path) -> Result<Target, String> {
        let fault = |what: &str| format!("{}: {what}", path.display());
        let Some(name) = path.file_name() else { return Err(fault("names no file")) };
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        no_planted_links(parent)?;
        let directory = fs::open(parent, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|e| format!("{}: {}", parent.display(), io::Error::from(e)))?;
        let target = Target { directory, name: name.to_owned(), path: path.to_owned() };
        match target.kind() {
            Some(FileType::Symlink) => {
                Err(fault("is a symbolic link, which is not followed: name the file itself, or `-`"))
            }
            Some(FileType::Directory) => Err(fault("is a directory")),
            _ => Ok(target),
        }
    }

    /// Prepares a file that root's daemon writes every second. Fails if another user could replace it.
    pub fn of_a_daemon(path: &Path) -> Result<Target, String> {
        if path == Path::new("-") {
            let why = "a report is replaced each second, which standard output cannot be";
            return Err(format!("--json -: {why}: name a file, or ask with `weir ctl --json show`"));
        }
        let target = Target::new(path)?;
        let fault = |what: &str| Err(format!("{}: {what}", path.display()));
        if !matches!(target.kind(), None | Some(FileType::RegularFile)) {
            return fault("is there and no regular file: it would be replaced by one");
        }
        let stat = fs::fstat(&target.directory).map_err(|e| format!("{}: {e}", path.display()))?;
        match shared(&stat, rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()) {
            None => Ok(target),
            Some(who) => fault(&format!(
                "{who} could replace files in its directory: use one that only root can write, such as /run/weir"
            )),
        }
    }

    /// Returns the file's directory.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Returns the file's path for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn kind(&self) -> Option<FileType> {
        let stat = fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(FileType::from_raw_mode(stat.st_mode))
    }

    /// Writes `bytes` to the file. Readers see the previous file or this one, never a part.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        // A pipe or a device is written to, not replaced.
        if let Some(FileType::Fifo | FileType::CharacterDevice) = self.kind() {
            let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            return File::from(fs::openat(&self.directory, &self.name, flags, Mode::empty())?)
                .write_all(bytes);
        }
        let draft = draft_name(&self.name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(fs::openat(&self.directory, &draft, flags, Mode::from_raw_mode(0o644))?);
        let written = file
            .write_all(bytes)
            .and_then(|()| Ok(fs::renameat(&self.directory, &draft, &self.directory, &self.name)?));
        if written.is_err() {
            // A partial file is useless. If removing it fails too, the first error is more informative.
            let _ = fs::unlinkat(&self.directory, &draft, AtFlags::empty());
        }
        written
    }
}

/// Returns an unpredictable name beside the file's.
fn draft_name(name: &OsStr) -> io::Result<OsString> {
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let mut draft = OsString::from(".");
    draft.push(name);
    draft.push(format!(".{:016x}", u64::from_ne_bytes(random)));
    Ok(draft)
}

/// Returns who, besides `uid` and root, may replace files in a directory; `None` if there is no such user.
fn shared(directory: &Stat, uid: u32, gid: u32) -> Option<String> {
    let sticky = directory.st_mode & 0o1000 != 0;
    if directory.st_uid != uid && directory.st_uid != 0 {
        // The owner of a directory may remove any file from it, sticky or not.
        return Some(format!("user {}", directory.st_uid));
    }
    if directory.st_mode & 0o002 != 0 && !sticky {
        return Some("everybody".to_string());
    }
    let group = directory.st_mode & 0o020 != 0 && !sticky && directory.st_gid != gid;
    group.then(|| format!("group {}", directory.st_gid))
}

/// Checks that links on the path to a directory belong to root or to this user. Such links are followed.
fn no_planted_links(directory: &Path) -> Result<(), String> {
    let own = [0, rustix::process::geteuid().as_raw()];
    for part in directory.ancestors().filter(|p| !p.as_os_str().is_empty()) {
        let Ok(stat) = fs::lstat(part) else { continue };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink && !own.contains(&stat.st_uid) {
            let whose = stat.st_uid;
            return Err(format!(
                "{}: a symbolic link of user {whose}, which is not followed",
                part.display()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{symlink, PermissionsExt};

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("weir-output-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        path
    }

    #[test]
    fn written_whole_and_again() {
        let dir = directory("again");
        let target = Target::of_a_daemon(&dir.join("x.json")).unwrap();
        target.write(b"one").unwrap();
        target.write(b"two").unwrap();
        assert_eq!(std::fs::read(dir.join("x.json")).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1, "no draft is left");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn links_are_not_followed() {
        let dir = directory("links");
        let victim = dir.join("victim");
        std::fs::write(&victim, "precious").unwrap();
        symlink(&victim, dir.join("x.json")).unwrap();
        assert!(Target::new(&dir.join("x.json")).unwrap_err().contains("symbolic link"));
        // A link that is planted later is replaced.
        let target = Target::new(&dir.join("y.json")).unwrap();
        symlink(&victim, dir.join("y.json")).unwrap();
        target.write(b"numbers").unwrap();
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
        assert!(!dir.join("y.json").is_symlink());
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_daemon_s_file_is_in_a_directory_of_its_own() {
        let dir = directory("open");
        let mode = |m| std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(m)).unwrap();
        mode(0o777);
        let error = Target::of_a_daemon(&dir.join("x.json")).unwrap_err();
        assert!(error.contains("everybody could replace files") && error.contains("/run/weir"), "{error}");
        mode(0o1777);
        Target::of_a_daemon(&dir.join("x.json")).unwrap();
        std::fs::remove_dir_all(dir).unwrap();
        assert!(Target::of_a_daemon(Path::new("/dev/null")).unwrap_err().contains("no regular file"));
        let error = Target::of_a_daemon(Path::new("-")).unwrap_err();
        assert!(error.contains("name a file") && error.contains("weir ctl --json show"), "{error}");
        let error = Target::new(Path::new("/nonexistent/x.json")).unwrap_err();
        assert!(error.contains("/nonexistent: No such file"), "{error}");
    }
}
