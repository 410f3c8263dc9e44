//! Removing what an abnormal end left behind.

use super::changes::Changes;
use super::check::Problems;
use super::state::Directory;
use crate::sys::link;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Removes what is left of instances that were killed: of the one on `dev`, or of all in this network namespace.
/// Says what it removed. Refused for one that runs.
pub fn down(state: &Path, dev: Option<&str>) -> Result<Vec<String>, Problems> {
    let directory = Directory::open(state)?;
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    for name in directory.names()? {
        if dev.is_some_and(|dev| !name.split('+').any(|part| part == dev)) {
            continue;
        }
        match one(state, &name) {
            Ok(removed) => done.extend(removed),
            Err(error) => problems.push(error.to_string()),
        }
    }
    for name in directory.sockets()? {
        if dev.is_some_and(|dev| dev != name) {
            continue;
        }
        if UnixStream::connect(directory.socket(&name)).is_ok() {
            continue; // somebody answers
        }
        // One that is just starting holds the interface.
        let lock = directory.lock(&name);
        if lock.is_ok() && directory.remove_socket(&name)? {
            done.push(format!("the socket of {name} is removed"));
        }
    }
    // A filter may have outlived even the note of it.
    if let Some(link) = dev.filter(|_| problems.is_empty()).map(link::find).transpose()?.flatten() {
        let _lock = directory.lock(&link.name)?;
        match crate::bpf::remove_filters(link.index) {
            0 => {}
            count => done.push(format!("{count} tc filters of {} are removed", link.name)),
        }
    }
    if problems.is_empty() {
        Ok(done)
    } else {
        Err(Problems(problems))
    }
}

fn one(state: &Path, name: &str) -> io::Result<Vec<String>> {
    let mut changes = Changes::open(Directory::open(state)?, name, &[])?;
    let directory = Directory::open(state)?;
    let interfaces: Vec<String> = match changes.interfaces() {
        [] => name.split('+').map(String::from).collect(),
        some => some.to_vec(),
    };
    let _locks = interfaces.iter().map(|name| directory.lock(name)).collect::<io::Result<Vec<_>>>()?;
    Ok(changes.undo())
}

#[cfg(test)]
mod tests {
    use super::super::changes::Change;
    use super::super::state::tests::Temporary;
    use super::*;

    #[test]
    fn a_socket_that_nobody_listens_to_goes() {
        let temporary = Temporary::new("down-socket");
        let path = temporary.open().socket("a");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(down(&temporary.0, None).unwrap(), [""; 0]);
        drop(listener);
        assert_eq!(down(&temporary.0, None).unwrap(), ["the socket of a is removed"]);
        assert!(!path.exists());
    }

    #[test]
    fn one_that_runs_is_left_alone() {
        let temporary = Temporary::new("down");
        let mut changes = Changes::open(temporary.open(), "a+b", &["a", "b"]).unwrap();
        changes.record(Change::Veth { name: "weir-none".into() }).unwrap();
        let lock = temporary.open().lock("b").unwrap();
        assert_eq!(down(&temporary.0, Some("c")).unwrap(), [""; 0]);
        assert_eq!(down(&temporary.0, None).unwrap_err().0, ["b is in use by another Weir"]);
        drop(lock);
        assert_eq!(temporary.open().names().unwrap(), ["a+b"]);
        // What was noted but is not there needs no removing.
        assert_eq!(down(&temporary.0, Some("a")).unwrap(), [""; 0]);
        assert_eq!(temporary.open().names().unwrap(), [""; 0]);
    }
}
