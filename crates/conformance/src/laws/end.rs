//! Law of the final state: no acknowledgement is lost.

use super::ledger::{Account, Ledger};
use crate::script::Side;
use crate::seg::after;
use crate::trace::Trace;
use crate::Verdict;

/// Holds a trace to the law.
pub fn check(trace: &Trace, ledger: &Ledger) -> Verdict {
    for (to, said, told) in ledger.flows() {
        if to == Side::Sender && trace.script.is_over() {
            continue;
        }
        progress(trace, said, &told)?;
        arrivals(trace, said, &told)?;
    }
    Ok(())
}

/// Checks that the last acknowledgement has been told.
fn progress(trace: &Trace, said: &Account, told: &Account) -> Verdict {
    match (said.ack, told.ack) {
        (Some(said), None) => Err(format!("nothing of {} bytes is ever acknowledged", trace.rel(said))),
        (Some(said), Some(told)) if after(said, told) => {
            Err(format!("the last {} bytes are never acknowledged", said.wrapping_sub(told)))
        }
        _ => Ok(()),
    }
}

/// Checks that data out of order has been told, by its block, by a larger one, or by an acknowledgement (RFC
/// 2018).
fn arrivals(trace: &Trace, said: &Account, told: &Account) -> Verdict {
    let covers =
        |outer: &(u32, u32), inner: &(u32, u32)| !after(outer.0, inner.0) && !after(inner.1, outer.1);
    for block in &said.sack {
        let acked = told.ack.is_some_and(|ack| !after(block.1, ack));
        if !acked && !told.sack.iter().any(|b| covers(b, block)) {
            let (left, right) = (trace.rel(block.0), trace.rel(block.1));
            return Err(format!("the sender never learns that {left} to {right} have arrived (RFC 2018)"));
        }
    }
    Ok(())
}
