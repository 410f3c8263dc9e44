//! Law of passage: segments beyond plain acknowledgements pass once, in order, at once, as they came. Only an
//! end may delay or drop a SYN, FIN, RST or urgent segment, a probe or data. A middlebox passes everything
//! that it does not understand.

use crate::seg::Flow;
use crate::trace::{Origin, Trace};
use crate::Verdict;
use std::collections::BTreeMap;
use weir_core::wire::Flags;

/// Holds a trace to the law.
pub fn check(trace: &Trace) -> Verdict {
    let events = trace.script.events();
    for (i, event) in events.iter().enumerate().filter(|(i, _)| !trace.plain[*i]) {
        let Some(left) = trace.left[i] else { return Err(format!("{} was lost", what(trace, i))) };
        let out = &trace.out[left];
        if !event.fits && trace.is_late(i, out.crossed.at) {
            let by = out.crossed.at.since(event.at);
            return Err(format!("{} was delayed by {by}", what(trace, i)));
        }
    }
    if let Some(alien) = trace.out.iter().find(|o| o.origin == Origin::Alien) {
        return Err(format!("at {:?} a frame came out that nobody sent", alien.crossed.at));
    }
    in_order(trace)
}

/// Checks the order of a flow's segments beyond plain acknowledgements: they leave as they came.
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

/// Returns the words for a frame.
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
