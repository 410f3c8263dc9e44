//! Differences between two configurations, and those that a running gateway cannot take.

use crate::experiment::config::gateway::{self, GatewayFile};
use crate::experiment::config::ports;
use crate::field::setup;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use weir_core::gateway::{ClassConfig, Config, Direction};
use weir_io::supervise::{Steered, TakenAcks};

/// Most names listed.
const MOST: usize = 20;

/// Differences between two configurations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Difference {
    /// Added classes.
    pub added: Names,
    /// Removed classes.
    pub removed: Names,
    /// Classes that act differently or apply to other traffic.
    pub changed: Names,
    /// Number of unchanged classes.
    pub unchanged: usize,
    /// Keys of `[gateway]` with another value.
    pub keys: Vec<String>,
}

/// Number of some things, and the first names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// Number of things.
    pub count: usize,
    /// First 20 names.
    pub first: Vec<String>,
}

impl Names {
    fn add(&mut self, name: &str) {
        self.count += 1;
        if self.first.len() < MOST {
            self.first.push(name.to_owned());
        }
    }

    fn words(&self, what: &str) -> Option<String> {
        let more = self.count - self.first.len();
        let names = self.first.join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (self.count > 0).then(|| format!("{what} {names}{more}"))
    }
}

impl Difference {
    /// Returns the differences between the running configuration and the next one.
    pub fn between(old: &Config, new: &Config) -> Difference {
        let by_name = |class: &'_ ClassConfig| (class.name.clone(), class.direction);
        let mut had: HashMap<(String, Direction), &ClassConfig> =
            old.classes.iter().map(|class| (by_name(class), class)).collect();
        let mut difference = Difference { keys: gateway::differences(old, new), ..Difference::default() };
        for class in &new.classes {
            match had.remove(&by_name(class)) {
                None => difference.added.add(&class.name),
                Some(before) if before == class => difference.unchanged += 1,
                Some(_) => difference.changed.add(&class.name),
            }
        }
        let gone = |class: &&ClassConfig| had.contains_key(&by_name(class));
        old.classes.iter().filter(gone).for_each(|class| difference.removed.add(&class.name));
        difference
    }

    /// Returns the differences in words; "nothing" if there are none.
    pub fn words(&self) -> String {
        let keys = (!self.keys.is_empty()).then(|| format!("changed {}", self.keys.join(", ")));
        let parts = [self.added.words("added"), self.removed.words("removed"), self.changed.words("changed")];
        let parts: Vec<String> = parts.into_iter().flatten().chain(keys).collect();
        if parts.is_empty() {
            return "nothing has changed".to_owned();
        }
        format!("{}; {} as before", parts.join("; "), classes(self.unchanged))
    }
}

fn classes(count: usize) -> String {
    format!("{count} {}", if count == 1 { "class" } else { "classes" })
}

/// Returns the changes that a running gateway with these hooks cannot take, by key.
pub fn unchangeable(old: &GatewayFile, new: &GatewayFile, steered: Steered) -> Vec<String> {
    let changed = |key: &str, old: &str, new: &str| {
        format!("`{key}` cannot change while Weir runs: it is {old}, and {new} would need a restart")
    };
    let mut found = Vec::new();
    if old.dev != new.dev {
        found.push(changed("ports.dev", &old.dev, &new.dev));
    }
    let driving = ports::differences(&old.driving, &new.driving);
    found.extend(driving.iter().map(|(key, old, new)| changed(&format!("ports.{key}"), old, new)));
    if old.gateway.max_flows != new.gateway.max_flows {
        let [old, new] = [old, new].map(|file| file.gateway.max_flows.to_string());
        found.push(changed("gateway.max_flows", &old, &new));
    }
    if old.gateway.observe != new.gateway.observe {
        let [old, new] = [old, new].map(|file| file.gateway.observe.to_string());
        found.push(changed("gateway.observe", &old, &new));
    }
    found.extend(not_hooked(steered, setup::gateway(new).steered));
    found
}

/// Returns what the new configuration requires of the programs in the kernel that they were not loaded for.
fn not_hooked(has: Steered, wants: Steered) -> Option<String> {
    let first = |cases: [(bool, bool, &'static str); 2]| {
        cases.into_iter().find(|(has, wants, _)| *wants && !has).map(|(.., direction)| direction)
    };
    let restart = |why: String| Some(format!("{why}: a restart is needed"));
    let none = TakenAcks {
        out: false,
        inward: false,
        size_out: false,
        size_in: false,
        spill_out: false,
        spill_in: false,
        observe: false,
    };
    let (had, acks) = (has.acks().unwrap_or(none), wants.acks().unwrap_or(none));
    let (whole, frames) = (has.frames().unwrap_or_default(), wants.frames().unwrap_or_default());
    let (some, any) = (frames != (false, false), acks != none);
    let spilled = [(had.spill_out, acks.spill_out, "out"), (had.spill_in, acks.spill_in, "in")];
    if let Some((spills, _, direction)) = spilled.into_iter().find(|(had, wants, _)| had != wants) {
        let words = if spills { "was started with" } else { "was started without" };
        return restart(format!("Weir {words} `unresponsive = \"queue\"` in direction \"{direction}\""));
    }
    if some && has.frames().is_none() {
        return restart("Weir was started without queues".to_owned());
    }
    if !some && has.frames().is_some() {
        return restart("Weir was started with queues, and none are left".to_owned());
    }
    if any && has.acks().is_none() {
        return restart("Weir was started with queues alone, and no class controlled ACKs".to_owned());
    }
    if let Some(direction) = first([(had.out, acks.out, "out"), (had.inward, acks.inward, "in")]) {
        return restart(format!(
            "no class of direction \"{direction}\" controlled ACKs when Weir was started, so its programs in the kernel let \
             them pass"
        ));
    }
    if let Some(direction) = first([(had.size_out, acks.size_out, "out"), (had.size_in, acks.size_in, "in")])
    {
        return restart(format!(
            "no class of direction \"{direction}\" sized windows when Weir was started, so its programs in the kernel let the \
             windows of handshakes pass"
        ));
    }
    let direction = first([(whole.0, frames.0, "out"), (whole.1, frames.1, "in")])?;
    restart(format!(
        "no class of direction \"{direction}\" had a queue when Weir was started, so its programs in the kernel let frames pass"
    ))
}
