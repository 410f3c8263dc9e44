//! Rehearsal of an upgrade: the new program, run in a child with the same arguments, checks all that it can
//! check without touching the host.

use crate::driver::Programs;
use crate::log::shown;
use crate::supervise::check::{self, Problems};
use crate::supervise::handover::{Inherited, FORMAT, LAYOUT, VARIABLE, VERSION};
use crate::supervise::setup::Setup;
use crate::supervise::site;
use crate::sys::clock;
use crate::sys::link;
use crate::sys::memory;
use crate::sys::process::{Child, Ended, Execution};
use rustix::fs::{memfd_create, MemfdFlags};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use weir_core::time::{Duration, Time};

/// Longest time that it may take. Emulated processors load programs in minutes.
const PATIENCE: Duration = Duration::from_secs(300);
/// First word of the line by which the new program says that it can take over.
const WORD: &str = "weir-upgrade";
/// Most bytes of its output that are read and shown.
const MOST_READ: usize = 16 << 10;
const MOST_SHOWN: usize = 400;

/// A rehearsal that runs.
#[derive(Debug)]
pub(in crate::supervise) struct Rehearsal {
    child: Option<Child>,
    output: File,
    began: Time,
}

/// Result of a rehearsal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::supervise) enum Verdict {
    /// The program can take over; this is its version.
    Fit(String),
    /// It cannot, for this reason.
    Unfit(String),
}

impl Rehearsal {
    /// Starts the program at `path` with the state.
    pub fn start(path: &Path, state: &OwnedFd) -> io::Result<Rehearsal> {
        let output = File::from(memfd_create("weir-rehearsal", MemfdFlags::CLOEXEC)?);
        let state = state.as_raw_fd();
        let execution = Execution::again(path).with(VARIABLE, state.to_string());
        let child = Child::fork(|| execution.rehearse(&output, state))?;
        Ok(Rehearsal { child: Some(child), output, began: clock::now() })
    }

    /// Time since its start.
    pub fn took(&self) -> Duration {
        clock::now().since(self.began)
    }

    /// Returns the result, `None` while it runs.
    pub fn verdict(&mut self) -> Option<Verdict> {
        let child = self.child.as_ref()?;
        let ended = match child.ended() {
            Ok(Some(ended)) => ended,
            Ok(None) if self.took() < PATIENCE => return None,
            _ => {
                self.child.take().into_iter().for_each(Child::end);
                return Some(Verdict::Unfit(format!("the new program has not answered within {PATIENCE}")));
            }
        };
        self.child = None;
        Some(judge(ended, &self.said()))
    }

    fn said(&self) -> String {
        let mut text = vec![0; MOST_READ];
        let count = self.output.read_at(&mut text, 0).unwrap_or(0);
        String::from_utf8_lossy(&text[..count]).into_owned()
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        self.child.take().into_iter().for_each(Child::end);
    }
}

/// Judges by the end of the program and by its output.
fn judge(ended: Ended, said: &str) -> Verdict {
    let words = |line: &str| -> Option<String> {
        let mut words = line.split_whitespace();
        let fits = words.next() == Some(WORD) && words.next()?.parse() == Ok(FORMAT);
        fits.then(|| words.next().map(str::to_owned))?
    };
    let last = shown(said.trim(), MOST_SHOWN);
    match (ended, said.lines().find_map(words)) {
        (Ended::Exited(0), Some(version)) => Verdict::Fit(version),
        (Ended::Exited(0), None) => {
            Verdict::Unfit("it is not a version of Weir that can take over".to_owned())
        }
        _ if !last.is_empty() => Verdict::Unfit(last),
        (Ended::Exited(code), _) => Verdict::Unfit(format!("it ends with code {code}")),
        (Ended::Signalled(signal), _) => Verdict::Unfit(format!("signal {signal} ends it")),
    }
}

impl Inherited {
    /// Checks whether this program could take over with this setup, and says so on standard output. Changes
    /// nothing.
    pub fn rehearse(&self, setup: &Setup) -> Result<(), Problems> {
        let site = &self.0.site;
        let wanted: Vec<&str> = site.places.iter().map(|place| place.wanted.as_str()).collect();
        if wanted != setup.attach.names() {
            let names = setup.attach.names().join(" and ");
            return Err(Problems(vec![format!(
                "the gateway runs on {}, not on {names}",
                wanted.join(" and ")
            )]));
        }
        let mut problems = check::host(setup.pool.bytes() as u64 * u64::from(setup.engines));
        // The maps are there twice for a moment.
        let needed = setup.memory().unwrap_or(0).saturating_mul(2);
        problems.extend(check::room(memory::limit(), needed, setup.flows.saturating_mul(setup.engines)));
        if !problems.is_empty() {
            return Err(Problems(problems));
        }
        let all = link::all()?;
        let first = site.places.first().and_then(|place| all.iter().find(|link| link.index == place.index));
        let first = first.ok_or_else(|| Problems(vec![format!("{} is gone", wanted.join(" and "))]))?;
        let programs = site::load(setup, first, None)?;
        let missing = site.programs().find(|name| !has(&programs, name));
        if let Some(name) = missing {
            return Err(Problems(vec![format!("it has no program {name}: a restart is needed")]));
        }
        writeln!(io::stdout(), "{WORD} {FORMAT} {VERSION} {LAYOUT}")?;
        Ok(())
    }
}

fn has(programs: &Programs, name: &str) -> bool {
    let of_acks = programs.acks().is_some_and(|acks| acks.find(name).is_some());
    of_acks || programs.frames().is_some_and(|all| all.find(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_that_says_so_can_take_over() {
        let fit = format!("some warning\n{WORD} {FORMAT} 0.2.0 0123\n");
        assert_eq!(judge(Ended::Exited(0), &fit), Verdict::Fit("0.2.0".into()));
        let unfit = |ended, said: &str| match judge(ended, said) {
            Verdict::Unfit(why) => why,
            fit => panic!("{fit:?}"),
        };
        assert!(unfit(Ended::Exited(0), "").contains("not a version of Weir"));
        assert!(unfit(Ended::Exited(0), "weir-upgrade 2 9.0.0 0123").contains("not a version of Weir"));
        assert!(unfit(Ended::Exited(1), &fit).contains("some warning"));
        assert_eq!(unfit(Ended::Exited(2), "error: no such key\n"), "error: no such key");
        assert_eq!(unfit(Ended::Exited(127), ""), "it ends with code 127");
        assert_eq!(unfit(Ended::Signalled(11), ""), "signal 11 ends it");
    }
}
