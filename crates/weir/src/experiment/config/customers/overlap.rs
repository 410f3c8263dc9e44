//! Checks that no address belongs to two customers.

use super::entry::Entry;
use super::Faults;
use crate::experiment::config::diag::Fault;
use core::net::IpAddr;
use weir_core::gateway::Prefix;

/// Notes prefixes that equal or overlap prefixes of other customers. Prefixes of one customer may overlap.
pub(super) fn check(entries: &[Entry], faults: &mut Faults) {
    let each = |(i, entry): (usize, &Entry)| (0..entry.customer.prefixes.len()).map(move |k| (i, k));
    let mut all: Vec<(usize, usize)> = entries.iter().enumerate().flat_map(each).collect();
    let prefix = |(i, k): (usize, usize)| entries[i].customer.prefixes[k];
    // In this order a covering prefix comes first, and only prefixes that it covers stand between the two.
    all.sort_unstable_by_key(|&at| (prefix(at).addr(), prefix(at).bits(), at));
    let mut open: Vec<(usize, usize)> = Vec::new();
    for at in all {
        while open.last().is_some_and(|&outer| !covers(prefix(outer), prefix(at))) {
            open.pop();
        }
        if let Some(&outer) = open.iter().rev().find(|outer| outer.0 != at.0) {
            // The later one in the file is reported.
            let (first, second) = (outer.min(at), outer.max(at));
            note(entries, first, second, faults);
        }
        open.push(at);
    }
}

fn note(entries: &[Entry], first: (usize, usize), second: (usize, usize), faults: &mut Faults) {
    let of = |(i, k): (usize, usize)| (&entries[i], entries[i].customer.prefixes[k]);
    let ((other, theirs), (entry, ours)) = (of(first), of(second));
    let what = if ours == theirs { "is" } else { "overlaps" };
    let (id, line) = (&other.customer.id, other.line);
    let message = if ours == theirs {
        format!("{ours} {what} customer \"{id}\"'s too")
    } else {
        format!("{ours} {what} {theirs} of customer \"{id}\"")
    };
    let help = format!("an address is one customer's; \"{id}\" is in line {line}");
    faults.note(entry.places[second.1].clone(), Fault::new(message, help));
}

fn covers(outer: Prefix, inner: Prefix) -> bool {
    let same = matches!(
        (outer.addr(), inner.addr()),
        (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_))
    );
    same && outer.bits() <= inner.bits() && outer.contains(inner.addr())
}
