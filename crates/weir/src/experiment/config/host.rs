//! `[[host]]`: hosts beyond the two of the path, each behind an access link of its own. Simulator only.

use super::diag::Fault;
use super::reader::Section;
use super::{names, path};
use crate::experiment::plan::HostGroup;
use crate::result::World;
use weir_core::time::Duration;

/// Reads every `[[host]]`; a faulty one is missing. `rtt` is that of the path.
pub(super) fn groups(s: &Section, rtt: Duration) -> Vec<HostGroup> {
    let mut groups: Vec<HostGroup> = Vec::new();
    s.note_only(World::Sim, "host");
    for section in s.sections("host") {
        groups.extend(group(section, rtt, &groups));
    }
    groups
}

fn group(s: Section, rtt: Duration, earlier: &[HostGroup]) -> Option<HostGroup> {
    s.need("name", "\"clients\"");
    let name = s.parsed("name", names::name);
    if let Some(name) = name.as_ref().filter(|name| earlier.iter().any(|g| g.name == **name)) {
        s.fault("name", Fault::bare(format!("a second group of hosts named \"{name}\"")));
    }
    s.need("side", "\"lan\"");
    let wan = s.choice("side", &[("lan", false), ("wan", true)], &[]);
    let count = s.int("count", 1..=10_000).unwrap_or(1) as u32;
    let (up, down) = path::access(s, rtt);
    Some(HostGroup { name: name?, wan: wan?, count, up, down })
}
