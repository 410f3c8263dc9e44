//! The cases, by topic. Each begins with a connection of its own.
//!
//! A case whose rule is one of `laws` alone has nothing of its own to check: its script brings about what the law is for.

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

/// Something that may happen to a connection, and what a middlebox must not make of it.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// What must hold, in a line.
    pub rule: &'static str,
    /// Where that comes from.
    pub source: &'static str,
    /// Can it be played over two interfaces?
    pub on_the_wire: bool,
    /// Is it asked of a middlebox that lets segments [pass by](crate::trace::Traits::in_kernel) in the kernel?
    pub in_kernel: bool,
    /// What is sent.
    pub play: fn(&mut Script),
    /// What is asked for beside the laws.
    pub check: fn(&Trace) -> Verdict,
}

impl Case {
    const fn new(
        name: &'static str,
        rule: &'static str,
        source: &'static str,
        play: fn(&mut Script),
    ) -> Case {
        Case { name, rule, source, on_the_wire: true, in_kernel: true, play, check: laws_alone }
    }
    const fn check(self, check: fn(&Trace) -> Verdict) -> Case {
        Case { check, ..self }
    }
    /// It needs time, or a state of a frame, that only virtual time has.
    const fn virtual_only(self) -> Case {
        Case { on_the_wire: false, ..self }
    }
    /// It is not asked of a middlebox that lets segments pass by in the kernel.
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
