//! The cases, by topic. Each begins with its own connection.
//!
//! A case without a check of its own is a script that brings about the subject of a law.

mod close;
mod hostile;
mod loss;
mod marks;
mod open;
mod options;
mod packets;
mod progress;
mod window;

use crate::script::{Opening, Script};
use crate::trace::Trace;
use crate::Verdict;

/// An event of a connection, and the limits of a middlebox in it.
#[derive(Clone, Copy)]
pub struct Case {
    /// Name.
    pub name: &'static str,
    /// Rule in a line.
    pub rule: &'static str,
    /// Source of the rule.
    pub source: &'static str,
    /// True if it can be played over two interfaces.
    pub on_the_wire: bool,
    /// True if it applies to a middlebox that lets segments [pass](crate::trace::Traits::in_kernel) in the
    /// kernel.
    pub in_kernel: bool,
    /// True if it asks whether a limit holds, with data that may be dropped. Its sender keeps to no window.
    pub floods: bool,
    /// True if the limit holds only where data beyond it is dropped.
    pub needs_bound: bool,
    /// Writes the script.
    pub play: fn(&mut Script),
    /// Checks the case's own rule beside the laws.
    pub check: fn(&Trace) -> Verdict,
}

impl Case {
    const fn new(
        name: &'static str,
        rule: &'static str,
        source: &'static str,
        play: fn(&mut Script),
    ) -> Case {
        let (on_the_wire, in_kernel, floods, needs_bound) = (true, true, false, false);
        Case { name, rule, source, on_the_wire, in_kernel, floods, needs_bound, play, check: laws_alone }
    }
    const fn check(self, check: fn(&Trace) -> Verdict) -> Case {
        Case { check, ..self }
    }
    /// Marks a case that needs time, or a state of a frame, that only virtual time has.
    const fn virtual_only(self) -> Case {
        Case { on_the_wire: false, ..self }
    }
    /// Marks a case that asks whether a limit holds.
    const fn floods(self) -> Case {
        Case { floods: true, ..self }
    }
    /// Marks a case that asks whether a limit holds where data beyond it is dropped.
    const fn needs_bound(self) -> Case {
        Case { floods: true, needs_bound: true, ..self }
    }
    /// Marks a case that does not apply to a middlebox that lets segments pass in the kernel.
    const fn whole_only(self) -> Case {
        Case { in_kernel: false, ..self }
    }
}

fn laws_alone(_: &Trace) -> Verdict {
    Ok(())
}

/// The usual handshake.
fn open(script: &mut Script) {
    script.open(Opening::default());
}

/// The usual handshake with timestamps.
fn open_stamped(script: &mut Script) {
    script.open(Opening { timestamps: true, ..Opening::default() });
}

const GROUPS: [&[Case]; 9] = [
    progress::CASES,
    loss::CASES,
    window::CASES,
    open::CASES,
    close::CASES,
    marks::CASES,
    options::CASES,
    packets::CASES,
    hostile::CASES,
];

const COUNT: usize = {
    let (mut n, mut group) = (0, 0);
    while group < GROUPS.len() {
        n += GROUPS[group].len();
        group += 1;
    }
    n
};

/// All cases.
pub static CASES: [Case; COUNT] = {
    let mut all = [progress::CASES[0]; COUNT];
    let (mut n, mut group) = (0, 0);
    while group < GROUPS.len() {
        let mut i = 0;
        while i < GROUPS[group].len() {
            all[n] = GROUPS[group][i];
            (n, i) = (n + 1, i + 1);
        }
        group += 1;
    }
    all
};
