//! Law of numbers: acknowledgements, sequence numbers and repetitions of ACKs that were made or rewritten.

use super::ledger::Account;
use crate::seg::{after, Seg};
use crate::trace::{Out, Trace};
use crate::Verdict;
use weir_core::wire::Flags;

/// Holds a segment to the law. `said` is the account of its end so far, `told` that of the other end before.
pub fn check(trace: &Trace, out: &Out, seg: &Seg, said: &Account, told: &Account) -> Verdict {
    if !seg.has(Flags::ACK) {
        return Ok(());
    }
    let rel = |n: u32| trace.rel(n);
    let Some(acked) = said.ack else {
        return Err("an ACK is made before its end has acknowledged anything".into());
    };
    if after(seg.tcp.ack.0, acked) {
        let (told, said) = (rel(seg.tcp.ack.0), rel(acked));
        return Err(format!("{told} is acknowledged, of which only {said} have been (RFC 9293 §3.4)"));
    }
    if let Some(before) = told.ack.filter(|&before| after(before, seg.tcp.ack.0)) {
        let (now, before) = (rel(seg.tcp.ack.0), rel(before));
        return Err(format!("the acknowledgement goes back from {before} to {now}"));
    }
    if !seg.is_ack() || out.event().is_some_and(|i| !trace.plain[i]) {
        return Ok(());
    }
    sequence(seg, said, told)?;
    let repeats = |a: &Account| a.duplicates.get(&seg.tcp.ack.0).copied().unwrap_or(0);
    let repeated = told.ack == Some(seg.tcp.ack.0)
        && told.window == Some(seg.tcp.window)
        && seg.sack().is_empty()
        && repeats(told) >= repeats(said);
    if repeated {
        return Err(format!("a duplicate ACK for {} is invented (RFC 5681 §2)", rel(seg.tcp.ack.0)));
    }
    Ok(())
}

/// Checks that the sequence number is the end's SND.NXT, or the part of it that has reached the other end. An
/// ACK before that is dropped and answered (RFC 9293 §3.10.7.4).
fn sequence(seg: &Seg, said: &Account, told: &Account) -> Verdict {
    let behind = told.next.filter(|&next| after(next, seg.tcp.seq.0));
    let ahead = said.next.filter(|&next| after(seg.tcp.seq.0, next));
    match (behind, ahead) {
        (Some(next), _) => {
            Err(format!("an ACK is {} bytes behind SND.NXT", next.wrapping_sub(seg.tcp.seq.0)))
        }
        (_, Some(next)) => {
            Err(format!("an ACK is {} bytes ahead of SND.NXT", seg.tcp.seq.0.wrapping_sub(next)))
        }
        _ => Ok(()),
    }
}
