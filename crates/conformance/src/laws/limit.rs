//! Law of limits: a middlebox that limits a rate holds the limit whatever is sent through it.

use super::ledger::Ledger;
use crate::script::Side;
use crate::seg::{after, Flow, Seg};
use crate::trace::{Limit, Trace};
use crate::Verdict;
use std::collections::BTreeMap;
use weir_core::rig::second::{most, Second};
use weir_core::time::{Duration, Time};
use weir_core::wire::Flags;

/// Returns the time from which a limit must hold: a second after the first forged frame.
fn begin(trace: &Trace) -> Time {
    let forged = trace.script.events().iter().find(|e| !e.believed);
    forged.map_or(Time::ZERO, |e| e.at + Duration::from_secs(1))
}

/// Holds a trace to the law.
pub fn check(trace: &Trace) -> Verdict {
    match trace.traits.limit {
        Some(Limit::Acknowledged(rate)) => acknowledged(trace, begin(trace), most(rate)),
        Some(Limit::Passed(rate)) => passed(trace, begin(trace), most(rate)),
        None => Ok(()),
    }
}

/// Checks the bytes of each flow that the data's sender learns of for the first time, in any second.
///
/// An acknowledgement beyond the receiver's own does not count: its sender drops it (RFC 5961 §5).
fn acknowledged(trace: &Trace, from: Time, most: u64) -> Verdict {
    let mut ledger = Ledger::new(trace);
    let mut told: BTreeMap<Flow, (u32, Second)> = BTreeMap::new();
    for out in trace.out.iter().filter(|o| o.crossed.to == Side::Sender) {
        ledger.hear_until(out.crossed.at);
        let tells = |s: &&Seg| s.has(Flags::ACK) && !s.has(Flags::RST);
        let Some(seg) = out.seg.as_ref().filter(tells) else { continue };
        let Some(acked) = ledger.of(Side::Sender, seg.flow()).0.ack else { continue };
        if after(seg.tcp.ack.0, acked) {
            continue;
        }
        let (ack, second) = told.entry(seg.flow()).or_insert_with(|| (seg.tcp.ack.0, Second::default()));
        if seg.has(Flags::SYN) {
            // This is another connection between the same ports.
            *ack = seg.tcp.ack.0;
        }
        if !after(seg.tcp.ack.0, *ack) {
            continue;
        }
        let news = seg.tcp.ack.0.wrapping_sub(*ack).into();
        *ack = seg.tcp.ack.0;
        if out.crossed.at < from {
            continue;
        }
        let bytes = second.add(out.crossed.at, news);
        if bytes > most {
            return Err(exceeded(bytes, "acknowledged", out.crossed.at));
        }
    }
    Ok(())
}

/// Checks the bytes of data that pass in any second.
fn passed(trace: &Trace, from: Time, most: u64) -> Verdict {
    let mut second = Second::default();
    for out in trace.out.iter().filter(|o| o.crossed.to == Side::Receiver && o.crossed.at >= from) {
        let bytes = second.add(out.crossed.at, out.seg.as_ref().map_or(0, |s| s.tcp.payload_len.into()));
        if bytes > most {
            return Err(exceeded(bytes, "passed", out.crossed.at));
        }
    }
    Ok(())
}

fn exceeded(bytes: u64, how: &str, at: Time) -> String {
    format!("{bytes} bytes are {how} in the second that ends at {at:?}")
}
