//! Results of the gateway and its classes.

use super::{joint_rate, joint_target, ClassPace, Counts, FlowResult, PortPace, QuantilesMax};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use weir_core::gateway::ClassConfig;

/// The gateway's totals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayResult {
    /// Processor time of the engine, user and system.
    pub cpu_s: f64,
    /// Resident memory of the engine's process in bytes; absent in the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// TCP payload that passed through user space; 0 when only ACKs are steered there.
    pub user_data_bytes: u64,
    /// Counters of moments without shaping; absent in the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering: Option<Steering>,
    /// Account of the conservation law: `in + made = out + held + absorbed + Σ dropped`.
    pub frames: Frames,
    /// Fillers in the gaps of paced lines, if any class is paced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<PortPace>,
}

/// Counters of moments in which shaping was off or incomplete. All are small in a healthy run. Segments
/// passed because the engine was away are 0 there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Steering {
    /// Engines that ran before the last one.
    pub restarts: u64,
    /// Times that the engine had stalled, and resumed its flows.
    pub resyncs: u64,
    /// Segments that passed unchanged because the engine's heartbeat was stale.
    pub passed_stale: u64,
    /// Segments that passed unchanged because their flow was not yet classified.
    pub passed_unknown: u64,
    /// Segments that were neither taken nor copied because the ring to the engine was full.
    pub ring_full: u64,
    /// Segments that were neither taken nor copied because their kind exceeded its budget.
    pub over_budget: u64,
    /// Segments of controlled flows that passed unchanged because their contents are implausible.
    pub doubted: u64,
    /// Segments that the kernel refused to rewrite.
    pub failed: u64,
}

/// An account of frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frames {
    /// Frames received.
    #[serde(rename = "in")]
    pub received: u64,
    /// Frames made by the gateway.
    pub made: u64,
    /// Frames sent.
    #[serde(rename = "out")]
    pub sent: u64,
    /// Frames still held.
    pub held: u64,
    /// Frames absorbed: their information is kept.
    pub absorbed: u64,
    /// Frames dropped, by reason.
    pub dropped: Counts,
}

/// Result of one class of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassResult {
    /// Name of the class.
    pub name: String,
    /// Name of the class above it. What a class carries counts for those above it as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Rate of the class, or the highest sum of its flows' targets at any time; 0 for none.
    pub target_bps: u64,
    /// Joint goodput of its flows and of those of the classes below it: their bytes over the time from the
    /// first start to the last end, or to the last byte.
    pub bps: f64,
    /// Peak number of ACKs whose progress was held. A queue would have held as many packets.
    pub held_ack_peak_packets: u64,
    /// Peak of the bytes acknowledged by receivers and not yet passed on.
    pub held_ack_peak_bytes: u64,
    /// Peak size of the ACK frames that waited.
    #[serde(default)]
    pub ack_queue_peak_bytes: u64,
    /// Packets of its queue without ACK control, in a class whose ACKs follow its data.
    #[serde(default)]
    pub scheduled_only: ClassAlone,
    /// Peak sum of data in its queue and of waiting ACKs, in bytes; 0 without a queue.
    #[serde(default)]
    pub buffer_peak_bytes: u64,
    /// Pure ACKs reduced to their held number; the packet was not kept.
    pub acks_absorbed: u64,
    /// ACKs made by the gateway.
    pub acks_generated: u64,
    /// Segments whose ACK number or window was rewritten.
    pub acks_rewritten: u64,
    /// Unresponsive traffic of the class, if the class or its flows have a rate and there was any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<ClassOthers>,
    /// Traffic at the bound of the class, if it has a bound and any traffic came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<ClassBound>,
    /// Admission of flows, if the class guarantees each flow a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<ClassAdmission>,
    /// Queue of the class, if its data waits in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<ClassQueue>,
    /// Pacing of the class, if it is paced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<ClassPace>,
}

/// Traffic of a class that ACKs cannot slow: datagrams, other protocols than TCP, and uncontrolled TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassOthers {
    /// Packets that passed.
    pub packets: u64,
    /// Bytes of these packets from the IP header on.
    pub bytes: u64,
    /// Packets among them that exceeded a fair share, and waited for their turn.
    #[serde(default)]
    pub spilled: u64,
    /// Bytes of these packets from the IP header on.
    #[serde(default)]
    pub spilled_bytes: u64,
    /// Packets among them that left with Congestion Experienced.
    #[serde(default)]
    pub marked: u64,
    /// Packets dropped because the class is policed, or found no room in the queue of their flow.
    pub dropped: u64,
    /// Bytes that exceeded the rate of the class and could not be held back.
    pub exceeded_bytes: u64,
}

/// Traffic that the bound of a class passed and dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassBound {
    /// Bytes of TCP with controlled ACKs, as the rate counts them.
    pub held_bytes: u64,
    /// Bytes of TCP without ACK control, from the IP header on.
    pub free_bytes: u64,
    /// Packets of any kind dropped for lack of room.
    pub dropped: u64,
    /// Bytes of these packets.
    pub dropped_bytes: u64,
}

/// Packets without ACK control, in a class whose ACKs follow its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassAlone {
    /// Fragments, and packets of other protocols than TCP.
    pub not_tcp: u64,
    /// Packets of flows that pass untouched.
    pub untouched: u64,
    /// Packets of flows that are over, or whose ACKs take another way.
    pub no_acks: u64,
}

/// Flows of a class that guarantees each flow a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassAdmission {
    /// Flows with the guarantee now.
    pub guaranteed: u64,
    /// SYNs refused; a dropped SYN may have been repeated.
    pub refused: u64,
    /// Flows that began without the guarantee because too little rate was left.
    pub best_effort: u64,
}

/// The queue of a class that shares a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassQueue {
    /// Packets dequeued; a giant frame counts as its segments.
    pub packets: u64,
    /// Bytes dequeued, as the class is charged.
    pub bytes: u64,
    /// Bytes sent with borrowed rate.
    pub borrowed_bytes: u64,
    /// Peak number of packets in the queue.
    pub peak_packets: u64,
    /// Peak number of bytes in the queue.
    pub peak_bytes: u64,
    /// Waiting time of frames.
    pub delay_us: QuantilesMax,
    /// Packets marked with Congestion Experienced.
    pub marks: u64,
    /// ACKs erased by an ACK filter.
    #[serde(default)]
    pub filtered: u64,
    /// ACKs that came during the fallback to classical filtering, which is used when more flows are active
    /// than the filter measures.
    #[serde(default)]
    pub fallback: u64,
    /// Frames dropped, by reason.
    pub drops: Counts,
    /// Bytes of these frames, as the class is charged.
    #[serde(default)]
    pub dropped_bytes: u64,
}

/// Bytes or bits per second of one direction of a flow, with its start and end.
type Part = (u64, f64, f64);

/// Returns the name of the class above a configured one.
pub fn parent(class: &ClassConfig, all: &[ClassConfig]) -> Option<String> {
    let index = class.share.and_then(|share| share.parent).or(class.nested.and_then(|nested| nested.parent));
    index.and_then(|i| all.get(i)).map(|parent| parent.name.clone())
}

/// Classes above each class of a result, by name.
#[derive(Debug)]
pub struct Ancestry<'a>(HashMap<&'a str, &'a str>);

impl<'a> Ancestry<'a> {
    /// Reads the classes' parents.
    pub fn of(classes: &'a [ClassResult]) -> Ancestry<'a> {
        let parent = |c: &'a ClassResult| Some((c.name.as_str(), c.parent.as_deref()?));
        Ancestry(classes.iter().filter_map(parent).collect())
    }

    /// Returns a class and those above it.
    pub fn from(&self, class: &'a str) -> impl Iterator<Item = &'a str> + '_ {
        // A class is above no more classes than there are.
        std::iter::successors(Some(class), |name| self.0.get(name).copied()).take(self.0.len() + 1)
    }
}

/// Completes the classes with the targets and goodput of their flows. The goodput of a class includes that of
/// the classes below it.
pub fn with_flows(mut classes: Vec<ClassResult>, flows: &[FlowResult]) -> Vec<ClassResult> {
    let ancestry = Ancestry::of(&classes);
    let (mut targets, mut carried) = (HashMap::<&str, Vec<Part>>::new(), HashMap::<&str, Vec<Part>>::new());
    for f in flows {
        let back = f.back.iter().map(|back| {
            let until_s = back.last_s.map_or(f.end_s, |last| last.max(f.end_s));
            (back.class.as_str(), back.bytes, until_s, back.target_bps)
        });
        for (class, bytes, until_s, target) in
            back.chain([(f.class.as_str(), f.bytes, f.until_s(), f.target_bps)])
        {
            targets.entry(class).or_default().push((target.unwrap_or(0), f.start_s, f.end_s));
            for name in ancestry.from(class) {
                carried.entry(name).or_default().push((bytes, f.start_s, until_s));
            }
        }
    }
    let parts = |of: &HashMap<&str, Vec<Part>>, class: &ClassResult| {
        of.get(class.name.as_str()).cloned().unwrap_or_default().into_iter()
    };
    let found = classes.iter().map(|c| (joint_target(parts(&targets, c)), joint_rate(parts(&carried, c))));
    let found: Vec<(Option<u64>, Option<f64>)> = found.collect();
    for (class, (target, bps)) in classes.iter_mut().zip(found) {
        class.target_bps = class.target_bps.max(target.unwrap_or(0));
        class.bps = bps.unwrap_or(0.0);
        // A class whose ACKs do not follow its data has no ACKs that wait beside the data.
        class.buffer_peak_bytes =
            class.queue.as_ref().map_or(0, |queue| queue.peak_bytes.max(class.buffer_peak_bytes));
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two classes below a third carry 1000 bytes each, one in the first second and one in the next. The
    /// class above has all of them, over both seconds.
    #[test]
    fn a_class_carries_what_the_classes_below_it_carry() {
        let class = |name: &str, parent: Option<&str>| ClassResult {
            name: name.into(),
            parent: parent.map(Into::into),
            ..ClassResult::default()
        };
        let flow = |class: &str, start_s: f64| FlowResult {
            class: class.into(),
            bytes: 1000,
            start_s,
            end_s: start_s + 1.0,
            target_bps: Some(5000),
            ..FlowResult::default()
        };
        // A class may stand before the one above it.
        let classes = vec![class("leaf", Some("ada")), class("site", None), class("ada", Some("site"))];
        let classes = [classes, vec![class("ben", Some("site"))]].concat();
        let found = with_flows(classes, &[flow("leaf", 0.0), flow("ben", 1.0)]);
        let rates: Vec<(f64, u64)> = found.iter().map(|c| (c.bps, c.target_bps)).collect();
        assert_eq!(rates, [(8000.0, 5000), (8000.0, 0), (8000.0, 0), (8000.0, 5000)]);
    }
}
