//! State that outlives a run, in a directory of root's: changes to the host that have to be undone, and
//! locks.
//!
//! Files are named by the numbers of interfaces and of the network namespace, because an interface may be
//! renamed and its name used again. A file about a gateway is valid while a process holds its lock or answers
//! at its socket. Others are removed when they are found, because numbers of namespaces are used again.
//!
//! No other user can read or write there. The directory is made with mode 0700, is no link, and belongs to
//! the user of Weir. All files are opened relative to it.

use super::handover::LeftLock;
use crate::sys::inherit::{adopt, Heir};
use crate::sys::{clock, process};
use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use weir_core::time::Duration;

/// Longest wait for a process that was told to end or was killed.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// Endings of the names of sockets and locks.
const SOCKET: &str = "sock";
const LOCK: &str = "lock";

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns whether a name is that of an instance: the numbers of its interfaces.
fn is_instance(name: &str) -> bool {
    !name.is_empty() && name.split('+').all(|number| number.parse::<u32>().is_ok())
}

/// Fails for users who may ask no gateway.
pub fn may_ask() -> io::Result<()> {
    if is_root() {
        Ok(())
    } else {
        Err(needs_root())
    }
}

fn needs_root() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "this needs root (try sudo)")
}

/// Interface that something is kept of. A later interface of the same name is another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Interface {
    /// Name.
    pub name: String,
    /// Number.
    pub index: u32,
}

/// The directory.
#[derive(Debug)]
pub(super) struct Directory {
    fd: OwnedFd,
    path: PathBuf,
    /// Suffix of names, because interfaces of the same names exist in other network namespaces.
    place: String,
}

impl Directory {
    /// Makes or opens it. An error tells what is wrong with it.
    pub fn open(path: &Path) -> io::Result<Directory> {
        match fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(Errno::ACCESS | Errno::PERM) if !is_root() => return Err(needs_root()),
            Err(error) => return Err(say(path, "cannot be made", error.into())),
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = fs::open(path, flags, Mode::empty()).map_err(|error| match error {
            Errno::ACCESS | Errno::PERM if !is_root() => needs_root(),
            Errno::ACCESS | Errno::PERM => say(path, "cannot be opened", error.into()),
            _ => say(path, "is no directory", error.into()),
        })?;
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

    /// Another holder of this directory.
    pub fn again(&self) -> io::Result<Directory> {
        Ok(Directory { fd: self.fd.try_clone()?, path: self.path.clone(), place: self.place.clone() })
    }

    /// Name of the file of `name` in this network namespace.
    fn file(&self, name: &str, ending: &str) -> String {
        format!("{name}{}.{ending}", self.place)
    }

    /// Locks an interface for an instance. Fails if another process keeps it.
    pub fn lock(&self, interface: &Interface, instance: &str) -> io::Result<Lock> {
        self.lock_within(interface, instance, PATIENCE)
    }

    /// Like [`Directory::lock`], without waiting for a process that is about to end.
    pub fn try_lock(&self, interface: &Interface, instance: &str) -> io::Result<Lock> {
        self.lock_within(interface, instance, Duration::ZERO)
    }

    /// Takes over the lock that the program before held in this process.
    pub fn adopt(&self, left: &LeftLock) -> io::Result<Lock> {
        let LeftLock { name, index, fd } = left;
        Ok(Lock {
            held: RefCell::new(Some(adopt(*fd)?)),
            directory: self.fd.try_clone()?,
            file: self.file(&index.to_string(), LOCK),
            owner: std::process::id(),
            name: name.clone(),
            index: *index,
        })
    }

    fn lock_within(&self, interface: &Interface, instance: &str, patience: Duration) -> io::Result<Lock> {
        let (name, index) = (&interface.name, interface.index);
        let file = self.file(&index.to_string(), LOCK);
        let until = clock::now() + patience;
        loop {
            let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = fs::openat(&self.fd, &file, flags, Mode::RUSR | Mode::WUSR)?;
            match fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                // A lock whose file its last holder has removed meanwhile excludes no other process.
                Ok(()) if fs::fstat(&fd)?.st_nlink == 0 => continue,
                Ok(()) => {
                    let owner = std::process::id();
                    fs::ftruncate(&fd, 0)?;
                    rustix::io::write(&fd, format!("{name} {instance}\n").as_bytes())?;
                    let held = RefCell::new(Some(fd));
                    let directory = self.fd.try_clone()?;
                    return Ok(Lock { held, directory, file, owner, name: name.clone(), index });
                }
                Err(Errno::WOULDBLOCK) if clock::now() < until => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                Err(Errno::WOULDBLOCK) => return Err(in_use(name)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Loads the text saved under `name`, `None` if there is none.
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

    /// Saves `text` under `name`, as a whole or not at all. An empty text removes the file.
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

    /// Names of saved texts in this network namespace.
    pub fn names(&self) -> io::Result<Vec<String>> {
        self.names_of("json")
    }

    fn names_of(&self, ending: &str) -> io::Result<Vec<String>> {
        let ending = self.file("", ending);
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(self.fd.as_fd())? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            // In the first namespace, which has no number, files of other namespaces have the same ending, as
            // have reports and sockets that users put here.
            let own = name.strip_suffix(&ending).filter(|name| is_instance(name));
            names.extend(own.map(String::from));
        }
        names.sort();
        Ok(names)
    }

    /// Path of the socket of `name`.
    pub fn socket(&self, name: &str) -> PathBuf {
        self.path.join(self.file(name, SOCKET))
    }

    /// Restricts the socket of `name` to this user.
    pub fn close_socket(&self, name: &str) -> io::Result<()> {
        let file = self.file(name, SOCKET);
        Ok(fs::chmodat(&self.fd, &file, Mode::RUSR | Mode::WUSR, AtFlags::empty())?)
    }

    /// Returns whether clients find the socket of `name`.
    pub fn has_socket(&self, name: &str) -> bool {
        fs::statat(&self.fd, self.file(name, SOCKET), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Removes the socket of `name`; false if there was none.
    pub fn remove_socket(&self, name: &str) -> io::Result<bool> {
        match fs::unlinkat(&self.fd, self.file(name, SOCKET), AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Instances with a socket in this network namespace, whether or not a process answers there.
    pub fn sockets(&self) -> io::Result<Vec<String>> {
        self.names_of(SOCKET)
    }

    /// Instances that run in this network namespace: a process holds their locks or listens. Remains of
    /// others are removed.
    pub fn running(&self) -> io::Result<Vec<String>> {
        let mut running = Vec::new();
        for instance in self.sockets()? {
            let locks = self.held()?.into_iter().filter(|held| held.instance == instance);
            let mut locks = locks.map(|held| self.try_lock(&held.interface, &instance));
            if locks.any(|lock| lock.is_err()) || self.listens(&instance)? {
                running.push(instance);
            } else {
                self.sweep(&instance)?;
            }
        }
        Ok(running)
    }

    /// Returns whether a process listens at the socket of an instance. One that does not accept, or has no
    /// room for another client, listens, too.
    fn listens(&self, instance: &str) -> io::Result<bool> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match net::connect(&socket, &SocketAddrUnix::new(self.socket(instance))?) {
            Ok(()) | Err(Errno::AGAIN) => Ok(true),
            Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the socket and the locks of a dead instance; true if there was a socket. An instance that is
    /// just starting holds its lock.
    pub fn sweep(&self, instance: &str) -> io::Result<bool> {
        for held in self.held()?.iter().filter(|held| held.instance == instance) {
            match self.try_lock(&held.interface, instance) {
                Ok(lock) => drop(lock), // its file goes with it
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.remove_socket(instance)
    }

    /// Contents of the lock files in this network namespace, whether or not a process holds them.
    pub fn held(&self) -> io::Result<Vec<Held>> {
        let mut all = Vec::new();
        for number in self.names_of(LOCK)? {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let (Ok(index), Ok(fd)) =
                (number.parse(), fs::openat(&self.fd, self.file(&number, LOCK), flags, Mode::empty()))
            else {
                continue;
            };
            let mut text = String::new();
            File::from(fd).read_to_string(&mut text)?;
            if let Some((name, instance)) = text.trim_end().rsplit_once(' ') {
                let interface = Interface { name: name.to_owned(), index };
                all.push(Held { interface, instance: instance.to_owned() });
            }
        }
        Ok(all)
    }

    /// Path of the saved text, for messages.
    pub fn display(&self, name: &str) -> String {
        self.path.join(self.file(name, "json")).display().to_string()
    }
}

/// The error of an interface that another instance has.
pub(super) fn in_use(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::AddrInUse, format!("{name} is in use by another Weir"))
}

fn say(path: &Path, what: &str, error: io::Error) -> io::Error {
    let message =
        format!("{} {what}: state is kept in a directory of root's alone ({error})", path.display());
    io::Error::new(error.kind(), message)
}

/// An interface and the instance that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    /// The interface, with its name at the time.
    pub interface: Interface,
    /// Number of the instance's first interface, or the numbers of both.
    pub instance: String,
}

/// Lock on an interface.
#[derive(Debug)]
pub(super) struct Lock {
    held: RefCell<Option<OwnedFd>>,
    directory: OwnedFd,
    file: String,
    owner: u32,
    /// Name of the interface at the time.
    name: String,
    /// Number of the interface.
    pub index: u32,
}

impl Lock {
    /// Returns whether other processes find the file.
    pub fn is_there(&self) -> bool {
        let held = self.held.borrow();
        held.as_ref().is_some_and(|fd| fs::fstat(fd).is_ok_and(|about| about.st_nlink > 0))
    }

    /// Takes the lock again, in a directory of the same path. Fails if another process was faster.
    pub fn take_again(&mut self, directory: &Directory, instance: &str) -> io::Result<()> {
        let interface = Interface { name: self.name.clone(), index: self.index };
        *self = directory.try_lock(&interface, instance)?;
        Ok(())
    }

    /// Hands the lock over to the next program of this process.
    pub fn leave(&self, heir: &mut Heir) -> Option<LeftLock> {
        let fd = self.held.borrow().as_ref().map(|fd| heir.gets(fd))?;
        Some(LeftLock { name: self.name.clone(), index: self.index, fd })
    }

    /// Gives up the lock, which the parent keeps, in a forked process. A child that hangs after its parent's
    /// end then locks no other process out.
    pub fn leave_to_parent(&self) {
        debug_assert!(self.owner != std::process::id());
        self.held.take();
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A removed file may be another process's now.
        if self.owner == std::process::id() && self.is_there() {
            // A file that stays does no harm.
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
        let x = interface("x", 7);
        let lock = directory.lock(&x, "7").unwrap();
        // The name does not matter.
        assert_eq!(
            directory.lock(&interface("y", 7), "7").unwrap_err().to_string(),
            "y is in use by another Weir"
        );
        // Another interface may have its old name.
        drop(directory.lock(&interface("x", 8), "8").unwrap());
        assert_eq!(directory.held().unwrap(), [Held { interface: x.clone(), instance: "7".into() }]);
        drop(lock);
        drop(directory.lock(&x, "7").unwrap());
        assert_eq!(std::fs::read_dir(&temporary.0).unwrap().count(), 0);
    }

    #[test]
    fn a_removed_lock_is_taken_again_unless_another_process_was_faster() {
        let temporary = Temporary::new("again");
        let (x, y) = (interface("x", 7), interface("y", 8));
        let mut locks = [&x, &y].map(|interface| temporary.open().lock(interface, "7").unwrap());
        assert!(locks.iter().all(Lock::is_there));
        std::fs::remove_dir_all(&temporary.0).unwrap();
        assert!(!locks.iter().any(Lock::is_there));
        let theirs = temporary.open().lock(&y, "8").unwrap();
        let directory = temporary.open();
        locks[0].take_again(&directory, "7").unwrap();
        assert!(locks[0].is_there() && directory.try_lock(&x, "9").is_err());
        assert!(locks[1].take_again(&directory, "7").is_err());
        // It does not remove the file that it no longer has.
        drop(locks);
        assert!(theirs.is_there());
        drop(directory.lock(&x, "9").unwrap());
    }

    pub fn interface(name: &str, index: u32) -> Interface {
        Interface { name: name.into(), index }
    }

    #[test]
    fn what_nobody_holds_is_no_instance() {
        use std::os::unix::net::UnixListener;
        let temporary = Temporary::new("sweep");
        let directory = temporary.open();
        let _listener = UnixListener::bind(directory.socket("4")).unwrap();
        // Left behind: the socket has no listener, and the lock no holder.
        drop(UnixListener::bind(directory.socket("5")).unwrap());
        std::fs::write(temporary.0.join(directory.file("5", LOCK)), "wan0 5\n").unwrap();
        // An instance that is just starting.
        drop(UnixListener::bind(directory.socket("6")).unwrap());
        let _lock = directory.lock(&interface("c", 6), "6").unwrap();
        assert_eq!(directory.running().unwrap(), ["4", "6"]);
        assert_eq!(directory.sockets().unwrap(), ["4", "6"]);
        assert_eq!(directory.held().unwrap().len(), 1);
    }

    #[test]
    fn what_is_saved_is_there_until_it_is_removed() {
        let temporary = Temporary::new("saved");
        let directory = temporary.open();
        assert_eq!(directory.load("7+8").unwrap(), None);
        directory.save("7+8", b"text").unwrap();
        assert_eq!(temporary.open().load("7+8").unwrap().unwrap(), b"text");
        assert_eq!(directory.names().unwrap(), ["7+8"]);
        directory.save("7+8", b"").unwrap();
        assert_eq!(directory.names().unwrap(), [""; 0]);
    }

    /// A service's report, and sockets of `weir metrics` and `weir dashboard`, are in the same directory.
    #[test]
    fn files_of_users_are_no_instances() {
        let temporary = Temporary::new("beside");
        let directory = temporary.open();
        for name in ["wan.json", "metrics.sock", "a+7.json", "+.json", "7 8.json"] {
            let (name, ending) = name.split_once('.').unwrap();
            std::fs::write(temporary.0.join(directory.file(name, ending)), "{}").unwrap();
        }
        assert_eq!(directory.names().unwrap(), [""; 0]);
        assert_eq!(directory.sockets().unwrap(), [""; 0]);
        directory.save("7", b"text").unwrap();
        assert_eq!(directory.names().unwrap(), ["7"]);
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
