//! Laws of every trace, whatever middlebox made it.
//!
//! - [`passage`]: segments beyond plain acknowledgements pass once, in order, at once, as they came;
//! - [`numbers`]: the bytes that are acknowledged, the sequence numbers, the number of repetitions;
//! - [`window`]: the right edge;
//! - [`form`]: checksums, timestamps, options and addresses of ACKs that were made or rewritten;
//! - [`end`]: the final knowledge of the ends;
//! - [`limit`]: the rate, where the middlebox limits one.
//!
//! The laws compare, flow by flow, everything that an end has *said* with everything that the other one was
//! *told* of it ([`ledger`]).

pub mod end;
pub mod form;
pub mod ledger;
pub mod limit;
pub mod numbers;
pub mod passage;
pub mod window;

use crate::trace::{Origin, Trace};
use crate::Verdict;
use ledger::Ledger;
use weir_core::time::Time;

/// Holds a trace to all laws.
pub fn check(trace: &Trace) -> Verdict {
    passage::check(trace)?;
    limit::check(trace)?;
    let mut ledger = Ledger::new(trace);
    for out in &trace.out {
        ledger.hear_until(out.crossed.at);
        let forged = out.event().is_some_and(|i| !trace.script.events()[i].believed);
        let Some(seg) = out.seg.as_ref().filter(|_| !forged) else { continue };
        let (said, told) = ledger.of(out.crossed.to, seg.flow());
        let touched = out.is_touched() && !matches!(out.origin, Origin::Alien);
        if touched {
            let shift = trace.script.scale_of(out.crossed.to.other());
            let at = |e: String| format!("at {:?}: {e}", out.crossed.at);
            numbers::check(trace, out, seg, &said, &told).map_err(at)?;
            window::check(seg, shift, &said, &told).map_err(at)?;
            form::check(trace, out, seg, &said, &told).map_err(at)?;
        }
        ledger.tell(out, seg);
    }
    ledger.hear_until(Time::MAX);
    end::check(trace, &ledger)
}
