//! State that outlives a run, in a directory of root's: which changes to the host are to be undone, and locks.
//!
//! Nobody else can read or write there: the directory is made with mode 0700, is no link, and belongs to the user
//! that Weir runs as. All files are opened relative to it.

use crate::sys::{clock, process};
use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use weir_core::time::Duration;

/// How long one that was told to end, or was killed, may take to be gone.
const PATIENCE: Duration = Duration::from_secs(2);
/// How the names of sockets end.
const SOCKET: &str = "sock";

/// The directory.
#[derive(Debug)]
pub(super) struct Directory {
    fd: OwnedFd,
    path: PathBuf,
    /// Appended to names: interfaces of the same names exist in other network namespaces.
    place: String,
}

impl Directory {
    /// Makes or opens it; an error says what is wrong with it.
    pub fn open(path: &Path) -> io::Result<Directory> {
        match fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(say(path, "cannot be made", error.into())),
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = fs::open(path, flags, Mode::empty()).map_err(|e| say(path, "is no directory", e.into()))?;
        let about = fs::fstat(&fd)?;
        if about.st_uid != rustix::process::geteuid().as_raw() {
            let error = io::Error::from(io::ErrorKind::PermissionDenied);
            return Err(say(path, &format!("belongs to user {}", about.st_uid), error));
        }
        if about.st_mode & 0o077 != 0 {
            fs::fchmod(&fd, Mode::RWXU)?;
        }
        let place = process::namespace()?.map_or(String::new(), |number| format!("@{number}"));
        Ok(Directory { fd, path: path.to_owned(), place })
    }

    /// The file of `name` in this network namespace.
    fn file(&self, name: &str, ending: &str) -> String {
        format!("{name}{}.{ending}", self.place)
    }

    /// Takes an interface; what to say if someone has it and keeps it.
    pub fn lock(&self, interface: &str) -> io::Result<Lock> {
        let file = self.file(interface, "lock");
        let until = clock::now() + PATIENCE;
        loop {
            let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = fs::openat(&self.fd, &file, flags, Mode::RUSR | Mode::WUSR)?;
            match fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                // One that its last holder has removed meanwhile locks nobody out.
                Ok(()) if fs::fstat(&fd)?.st_nlink == 0 => continue,
                Ok(()) => {
                    let owner = std::process::id();
                    let held = RefCell::new(Some(fd));
                    return Ok(Lock { held, directory: self.fd.try_clone()?, file, owner });
                }
                Err(Errno::WOULDBLOCK) if clock::now() < until => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                Err(Errno::WOULDBLOCK) => {
                    let message = format!("{interface} is in use by another Weir");
                    return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What was saved under `name`, `None` if nothing was.
    pub fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match fs::openat(&self.fd, self.file(name, "json"), flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            fd => fd?,
        };
        let mut text = Vec::new();
        File::from(fd).read_to_end(&mut text)?;
        Ok(Some(text))
    }

    /// Saves `text` under `name`, as a whole or not at all; nothing if it is empty.
    pub fn save(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let file = self.file(name, "json");
        if text.is_empty() {
            return match fs::unlinkat(&self.fd, &file, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(error) => Err(error.into()),
            };
        }
        let draft = self.file(name, "new");
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = fs::openat(&self.fd, &draft, flags, Mode::RUSR | Mode::WUSR)?;
        File::from(fd).write_all(text)?;
        fs::renameat(&self.fd, &draft, &self.fd, &file)?;
        Ok(())
    }

    /// The names that something is saved under in this network namespace.
    pub fn names(&self) -> io::Result<Vec<String>> {
        self.names_of("json")
    }

    fn names_of(&self, ending: &str) -> io::Result<Vec<String>> {
        let ending = self.file("", ending);
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(self.fd.as_fd())? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            // Another namespace's ends in the same way where this one has no number.
            let own = name.strip_suffix(&ending).filter(|name| !name.contains('@') && !name.is_empty());
            names.extend(own.map(String::from));
        }
        names.sort();
        Ok(names)
    }

    /// Where the socket of `name` is.
    pub fn socket(&self, name: &str) -> PathBuf {
        self.path.join(self.file(name, SOCKET))
    }

    /// Nobody but this user can use the socket of `name`.
    pub fn close_socket(&self, name: &str) -> io::Result<()> {
        let file = self.file(name, SOCKET);
        Ok(fs::chmodat(&self.fd, &file, Mode::RUSR | Mode::WUSR, AtFlags::empty())?)
    }

    /// Removes the socket of `name`; false if there was none.
    pub fn remove_socket(&self, name: &str) -> io::Result<bool> {
        match fs::unlinkat(&self.fd, self.file(name, SOCKET), AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The names that there are sockets of in this network namespace.
    pub fn sockets(&self) -> io::Result<Vec<String>> {
        self.names_of(SOCKET)
    }

    /// For messages.
    pub fn display(&self, name: &str) -> String {
        self.path.join(self.file(name, "json")).display().to_string()
    }
}

fn say(path: &Path, what: &str, error: io::Error) -> io::Error {
    let message =
        format!("{} {what}: state is kept in a directory of root's alone ({error})", path.display());
    io::Error::new(error.kind(), message)
}

/// Holds an interface.
#[derive(Debug)]
pub(super) struct Lock {
    held: RefCell<Option<OwnedFd>>,
    directory: OwnedFd,
    file: String,
    owner: u32,
}

impl Lock {
    /// In a forked process: it no longer holds the interface together with its parent. One that hangs after
    /// its parent's end keeps nobody out.
    pub fn leave_to_parent(&self) {
        debug_assert!(self.owner != std::process::id());
        self.held.take();
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            // If it stays, it does no harm.
            let _ = fs::unlinkat(&self.directory, &self.file, AtFlags::empty());
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A directory that is removed when the test ends.
    pub struct Temporary(pub PathBuf);

    impl Temporary {
        pub fn new(name: &str) -> Temporary {
            Temporary(std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id())))
        }
        pub fn open(&self) -> Directory {
            Directory::open(&self.0).unwrap()
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn second_taker_is_refused() {
        let temporary = Temporary::new("lock");
        let directory = temporary.open();
        let lock = directory.lock("x").unwrap();
        assert_eq!(directory.lock("x").unwrap_err().to_string(), "x is in use by another Weir");
        drop(lock);
        drop(directory.lock("x").unwrap());
        assert_eq!(std::fs::read_dir(&temporary.0).unwrap().count(), 0);
    }

    #[test]
    fn what_is_saved_is_there_until_it_is_removed() {
        let temporary = Temporary::new("saved");
        let directory = temporary.open();
        assert_eq!(directory.load("a").unwrap(), None);
        directory.save("a", b"text").unwrap();
        assert_eq!(temporary.open().load("a").unwrap().unwrap(), b"text");
        assert_eq!(directory.names().unwrap(), ["a"]);
        directory.save("a", b"").unwrap();
        assert_eq!(directory.names().unwrap(), [""; 0]);
    }

    #[test]
    fn a_directory_of_others_is_not_used() {
        use std::os::unix::fs::{symlink, PermissionsExt};
        let temporary = Temporary::new("others");
        let link = Temporary::new("link");
        std::fs::create_dir(&temporary.0).unwrap();
        std::fs::set_permissions(&temporary.0, std::fs::Permissions::from_mode(0o777)).unwrap();
        drop(temporary.open());
        assert_eq!(std::fs::metadata(&temporary.0).unwrap().permissions().mode() & 0o777, 0o700);
        symlink(&temporary.0, &link.0).unwrap();
        assert!(Directory::open(&link.0).unwrap_err().to_string().contains("is no directory"));
        std::fs::remove_file(&link.0).unwrap();
        let Ok(()) = std::os::unix::fs::chown(&temporary.0, Some(1), None) else { return };
        assert!(Directory::open(&temporary.0).unwrap_err().to_string().contains("belongs to user 1"));
    }
}
