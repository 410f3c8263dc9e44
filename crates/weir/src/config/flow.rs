//! `[[flow]]`: groups of flows that are alike.

use super::reader::{Positive, Section, Size};
use super::units::{server_ports, Fault};
use super::{gateway, tcp};
use crate::plan::{Arrivals, FlowGroup, Length, Ports, Tcp};
use core::ops::RangeInclusive;
use weir_core::time::Duration;

/// Reads every `[[flow]]`; a faulty one is missing.
pub(super) fn groups(s: &Section, defaults: &Tcp, duration: Option<Duration>) -> Vec<FlowGroup> {
    let mut groups: Vec<FlowGroup> = Vec::new();
    for (i, section) in s.sections("flow").into_iter().enumerate() {
        if let Some(group) = flow(&section, i, defaults, duration) {
            check_against(&section, &group, &groups);
            groups.push(group);
        }
        section.finish();
    }
    groups
}

fn flow(s: &Section, number: usize, defaults: &Tcp, duration: Option<Duration>) -> Option<FlowGroup> {
    s.need("id", "\"bulk\"");
    let id = s.parsed("id", gateway::name);
    let count = s.int("count", 1..=10_000).unwrap_or(1) as u32;
    let start = s.get::<Duration>("start").unwrap_or_default();
    let stagger = s.get::<Duration>("stagger").unwrap_or_default();
    s.at_most_one(&["bytes", "duration"], "a flow ends after so many bytes or after so long, not both");
    let bytes = s.parsed("bytes", |Size(n): Size| match n {
        0 => Err(Fault::bare("a flow of no bytes")),
        n => Ok(Length::Bytes(n)),
    });
    let lasts = s.get::<Positive>("duration").map(|Positive(d)| Length::Duration(d));
    let direction = s.choice("direction", &gateway::DIRECTIONS, &[]).unwrap_or_default();
    let ports = s.parsed("port", |range: RangeInclusive<u16>| server_ports(range, count));
    let tcp = tcp::over(s, tcp::read(s), defaults);
    let last = start + stagger.saturating_mul(u64::from(count - 1));
    if let Some(end) = duration.filter(|&d| last >= d) {
        let key = if s.has("stagger") { "stagger" } else { "start" };
        let message =
            format!("flow {} of the group would start at {last}, not before the end, {end}", count - 1);
        s.fault(key, Fault::bare(message));
    }
    Some(FlowGroup {
        count,
        tcp,
        start,
        arrivals: Arrivals::Every(stagger),
        length: bytes.or(lasts).unwrap_or(Length::UntilEnd),
        direction,
        ports: ports.unwrap_or(Ports::Shared(FIRST_PORT.saturating_add(number as u16))),
        ..FlowGroup::new(&id?)
    })
}

/// Server port of the first group that names none; further groups take the following ports.
const FIRST_PORT: u16 = 5001;

/// Groups share neither names nor ports: results and rules must tell them apart.
fn check_against(s: &Section, group: &FlowGroup, earlier: &[FlowGroup]) {
    if earlier.iter().any(|g| g.id == group.id) {
        s.fault("id", Fault::bare(format!("a second group of flows named \"{}\"", group.id)));
    }
    let (first, last) = group.port_range();
    let clash = earlier.iter().find(|g| g.port_range().0 <= last && first <= g.port_range().1);
    if let Some(other) = clash {
        let which = if first == last { format!("{first}") } else { format!("{first}-{last}") };
        let message = format!("port {which} of \"{}\" is taken by \"{}\"", group.id, other.id);
        let help = "give each group its own `port`; without one, group n takes 5000 + n";
        s.fault("port", Fault::new(message, help));
    }
}
