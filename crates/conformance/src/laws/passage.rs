//! Whatever is more than an acknowledgement passes once, in order, at once, as it came. Nobody but an end may delay or drop a SYN, FIN, RST or urgent
//! segment, a probe or data, and what a middlebox does not understand it has no say over.

use crate::seg::Flow;
use crate::trace::{Origin, Trace};
use crate::Verdict;
use std::collections::BTreeMap;
use weir_core::wire::Flags;

/// Holds a trace to it.
pub fn check(trace: &Trace) -> Verdict {
    let events = trace.script.events();
    for (i, event) in events.iter().enumerate().filter(|(i, _)| !trace.plain[*i]) {
        let Some(left) = trace.left[i] else { return Err(format!("{} was lost", what(trace, i))) };
        let out = &trace.out[left];
        if trace.is_late(i, out.crossed.at) {
            let by = out.crossed.at.since(event.at);
            return Err(format!("{} was delayed by {by}", what(trace, i)));
        }
    }
    if let Some(alien) = trace.out.iter().find(|o| o.origin == Origin::Alien) {
        return Err(format!("at {:?} a frame came out that nobody sent", alien.crossed.at));
    }
    in_order(trace)
}

/// The segments of a flow that are more than acknowledgements leave in the order in which they came.
fn in_order(trace: &Trace) -> Verdict {
    let mut last: BTreeMap<Flow, usize> = BTreeMap::new();
    let kept = |i: &usize| !trace.plain[*i];
    for i in trace.out.iter().filter_map(|o| o.event()).filter(kept) {
        let Some(seg) = &trace.segs[i] else { continue };
        let last = last.entry(seg.flow()).or_insert(i);
        if i < *last {
            return Err(format!("{} was overtaken by {}", what(trace, i), what(trace, *last)));
        }
        *last = i;
    }
    Ok(())
}

/// A frame in words.
fn what(trace: &Trace, i: usize) -> String {
    let event = &trace.script.events()[i];
    if !event.label.is_empty() {
        return format!("{} (at {:?})", event.label, event.at);
    }
    let name = match &trace.segs[i] {
        None => "a frame",
        Some(s) if s.has(Flags::SYN) => "a SYN",
        Some(s) if s.has(Flags::RST) => "a RST",
        Some(s) if s.has(Flags::FIN) => "a FIN",
        Some(s) if s.tcp.payload_len > 0 => "data",
        Some(_) => "a segment that no middlebox may hold",
    };
    format!("{name} (at {:?})", event.at)
}
