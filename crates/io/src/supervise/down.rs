//! Removal of what an abnormal end left behind.

use super::changes::Changes;
use super::check::Problems;
use super::state::{Directory, Held, Interface};
use crate::sys::link;
use std::io;
use std::path::Path;

/// Interfaces of the instances that run in this network namespace.
pub fn running(state: &Path) -> io::Result<Vec<String>> {
    let directory = Directory::open(state)?;
    let (running, held) = (directory.running()?, directory.held()?);
    let of = |held: &Held| running.contains(&held.instance).then(|| held.interface.name.clone());
    let mut names: Vec<String> = held.iter().filter_map(of).collect();
    names.sort();
    Ok(names)
}

/// Removes what killed instances left behind: the one on `dev`, or all in this network namespace. Returns
/// what was removed in words. Fails for a running instance.
pub fn down(state: &Path, dev: Option<&str>) -> Result<Vec<String>, Problems> {
    let directory = Directory::open(state)?;
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    if let Some(dev) =
        dev.filter(|dev| running(state).is_ok_and(|names| names.iter().any(|name| name == dev)))
    {
        return Err(Problems(vec![format!("a gateway runs on {dev}: stop it, and nothing is left")]));
    }
    let here = dev.map(link::find).transpose()?.flatten();
    // The interface may have another name now.
    let meant = |interfaces: &[Interface]| {
        dev.is_none_or(|dev| {
            let is = |i: &Interface| i.name == dev || here.as_ref().is_some_and(|link| link.index == i.index);
            interfaces.iter().any(is)
        })
    };
    for instance in directory.names()? {
        let changes = Changes::open(Directory::open(state)?, &instance, &[])?;
        if !meant(&changes.interfaces()) {
            continue;
        }
        match one(changes, &directory, &instance) {
            Ok(removed) => done.extend(removed),
            Err(error) => problems.push(error.to_string()),
        }
    }
    let held = directory.held()?;
    let running = directory.running()?;
    for gone in &held {
        let runs = running.contains(&gone.instance);
        if !runs && meant(std::slice::from_ref(&gone.interface)) && directory.sweep(&gone.instance)? {
            done.push(format!("the socket of {} is removed", gone.interface.name));
        }
    }
    // A filter may have outlived even its note.
    if let Some(link) = here.filter(|_| problems.is_empty()) {
        let interface = Interface { name: link.name.clone(), index: link.index };
        let _lock = directory.lock(&interface, &link.index.to_string())?;
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

fn one(mut changes: Changes, directory: &Directory, instance: &str) -> io::Result<Vec<String>> {
    let lock = |interface: &Interface| directory.lock(interface, instance);
    let _locks = changes.interfaces().iter().map(lock).collect::<io::Result<Vec<_>>>()?;
    Ok(changes.undo())
}

#[cfg(test)]
mod tests {
    use super::super::changes::Change;
    use super::super::state::tests::{interface, Temporary};
    use super::*;

    #[test]
    fn a_socket_that_nobody_listens_to_goes() {
        let temporary = Temporary::new("down-socket");
        let path = temporary.open().socket("7");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let lock = temporary.open().lock(&interface("a", 7), "7").unwrap();
        assert_eq!(down(&temporary.0, None).unwrap(), [""; 0]);
        drop(listener);
        // An instance that is just starting holds the interface.
        assert_eq!(down(&temporary.0, None).unwrap(), [""; 0]);
        drop(lock);
        let file = path.with_extension("lock");
        std::fs::write(&file, "a 7\n").unwrap();
        assert_eq!(down(&temporary.0, Some("b")).unwrap(), [""; 0]);
        assert!(!path.exists() && !file.exists());
    }

    #[test]
    fn one_that_runs_is_left_alone() {
        let temporary = Temporary::new("down");
        let [a, b] = [interface("a", 1 << 30), interface("b", (1 << 30) + 1)];
        let mut changes = Changes::open(temporary.open(), "7+8", &[a, b.clone()]).unwrap();
        changes.record(Change::Veth { name: "weir-none".into(), ends: None }).unwrap();
        let lock = temporary.open().lock(&b, "7+8").unwrap();
        assert_eq!(down(&temporary.0, Some("c")).unwrap(), [""; 0]);
        assert_eq!(down(&temporary.0, None).unwrap_err().0, ["b is in use by another Weir"]);
        drop(lock);
        assert_eq!(temporary.open().names().unwrap(), ["7+8"]);
        // A change that was noted but never made needs no removal.
        assert_eq!(down(&temporary.0, Some("a")).unwrap(), [""; 0]);
        assert_eq!(temporary.open().names().unwrap(), [""; 0]);
    }
}
