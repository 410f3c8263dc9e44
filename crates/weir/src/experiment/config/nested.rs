//! Keys of a class in a tree of classes that control ACKs: its own rate, and the class that it borrows from.
//!
//! A class is in such a tree if it has no queue and names a `parent`. So is a class that one without a queue
//! names as its `parent`.

use super::diag::Fault;
use super::keys::{self, put, set, Key};
use super::parents::Parents;
use super::policy;
use super::reader::Section;
use super::share::{help, Tree};
use super::value::int;
use std::collections::HashMap;
use weir_core::class::{Unsound, WEIGHTS};
use weir_core::gateway::{ClassConfig, Config, Nested};

type NestedKey = Key<Nested>;

static KEYS: [NestedKey; 3] = [
    NestedKey::new("rate", |n, v| put(&mut n.rate, policy::flow_rate_of(v))).words(|n| {
        let own = |rate| format!("{rate} of its own");
        Some(n.rate.map_or("nothing of its own".to_string(), own))
    }),
    NestedKey::new("ceil", |n, v| put(&mut n.ceil, policy::flow_rate_of(v)))
        .words(|n| n.ceil.map(|ceil| format!("at most {ceil}"))),
    NestedKey::new("weight", |n, v| {
        let range = u64::from(*WEIGHTS.start())..=u64::from(*WEIGHTS.end());
        set(&mut n.weight, int(v, range).map(|n| n as u32))
    })
    .words(|n| (n.weight > 1).then(|| format!("weight {}", n.weight))),
];

/// Keys without a meaning for a class with children.
const OF_FLOWS: [&str; 7] = ["match", "ack", "police", "unresponsive", "burst", "flow_max", "flow_min"];

const NOTHING: Nested = Nested { parent: None, rate: None, ceil: None, weight: 1, lends: false };

/// Classes of a file that borrow from each other the bytes that they release by ACKs.
pub(super) struct Family(Parents);

impl Family {
    /// Returns the family of these sections; the `queued` ones are in another tree.
    pub(super) fn of(sections: &[Section], queued: &Tree) -> Family {
        let mut parents = Parents::of(sections);
        for (i, s) in sections.iter().enumerate().filter(|(i, s)| !queued.has(*i) && s.is_there("parent")) {
            let parent = parents.peek(s);
            if parent.is_some_and(|parent| queued.has(parent)) {
                continue; // it lacks a queue
            }
            parents.join(i);
            if let Some(parent) = parent {
                parents.join(parent);
                parents.add_child(parent, i);
            }
        }
        Family(parents)
    }

    /// Returns whether the class is in a tree.
    pub(super) fn has(&self, class: usize) -> bool {
        self.0.has(class)
    }

    /// Reads the place of a class in its tree, and its rates.
    pub(super) fn read(&self, s: &Section, class: usize) -> Nested {
        let lends = self.0.child(class).is_some();
        let mut nested = Nested { parent: self.0.read(s), lends, ..NOTHING };
        keys::read(&KEYS, &[s], &mut nested);
        self.0.refuse(s, class, OF_FLOWS, "it takes no flows itself: its children do");
        nested
    }
}

/// Checks the trees, and sets the highest rate of each class. Each class by itself must be valid.
pub(super) fn finish(sections: &[Section], classes: &mut [ClassConfig]) {
    let config = Config { classes: classes.to_vec(), ..Config::default() };
    if let Err(refused) = config.check_nested() {
        let (key, help) = help(&refused.why);
        let help = match refused.why {
            Unsound::NoParent(_) | Unsound::Depth(..) => "a parent is another class of the same direction",
            Unsound::TopWithoutRate(_) => {
                "give it the rate of all flows below it together: rate = \"100Mbit\""
            }
            _ => help,
        };
        let message = format!("class \"{}\": {}", classes[refused.class].name, refused.why);
        return sections[refused.class].fault(key, Fault::new(message, help));
    }
    for (i, class) in classes.iter_mut().enumerate() {
        if let Some((most, ack)) = config.most_of(i).zip(class.ack.as_mut()) {
            policy::set_most(ack, most);
        }
    }
    check_counts(sections, classes);
}

/// Checks that all classes of a tree count alike; otherwise their rates could not be compared.
fn check_counts(sections: &[Section], classes: &[ClassConfig]) {
    let counts = |i: usize| classes[i].ack.as_ref().and_then(|ack| Some(ack.release.share()?.counts));
    let parent = |&i: &usize| classes[i].nested?.parent;
    let mut first: HashMap<usize, usize> = HashMap::new();
    for i in (0..classes.len()).filter(|&i| classes[i].nested.is_some_and(|nested| !nested.lends)) {
        let top = std::iter::successors(Some(i), parent).last().unwrap_or(i);
        let other = *first.entry(top).or_insert(i);
        if counts(i) != counts(other) {
            let message =
                format!("class \"{}\" counts other bytes than \"{}\"", classes[i].name, classes[other].name);
            let help = format!("both borrow from \"{}\": give them the same `counts`", classes[top].name);
            return sections[i].fault("name", Fault::new(message, help));
        }
    }
}

/// Describes the place of a class in its tree in words.
pub fn words(nested: &Nested, classes: &[ClassConfig]) -> String {
    let from = match nested.parent {
        Some(parent) => format!("borrows from {}", classes[parent].name),
        None => "the top, which borrows from nobody".to_string(),
    };
    [keys::words(&KEYS, nested), vec![from]].concat().join(", ")
}
