//! Metrics of the gateway and of its classes.

use super::Needs::{FlowMin, Lab, Nothing, Pace, Policy, Queue};
use super::{measured, whole, Metric, OverTime, Tables, Total};
use crate::result::unit::Unit;
use crate::result::{ClassResult, Counts, GatewayResult, QuantilesMax};

type Class = Metric<ClassResult>;
type Whole = Metric<GatewayResult>;

/// Metrics of classes, in the order of tables.
pub static CLASS: &[Class] = &[
    Class::new("bps", Unit::Rate, Total::Sum, Nothing, "goodput of the flows of the class, all together")
        .number(|c| Some(c.bps))
        .column("goodput", Tables::Run),
    Class::new(
        "goodput_bps",
        Unit::Rate,
        Total::Sum,
        Nothing,
        "what the flows of the class received per second, all together, in the measured time",
    )
    .over_time(OverTime::Average),
    Class::new("interval_bps", Unit::Rate, Total::Mean, Nothing, "the same in each whole interval")
        .over_time(OverTime::Intervals),
    Class::new("min_bps", Unit::Rate, Total::Least, Nothing, "the lowest of any window")
        .over_time(OverTime::Lowest),
    Class::new("max_bps", Unit::Rate, Total::Most, Nothing, "the highest of any window")
        .over_time(OverTime::Highest),
    Class::new(
        "target_bps",
        Unit::Rate,
        Total::Sum,
        Policy,
        "its rate, or the rates that its flows are set to, all together",
    )
    .number(|c| measured(c.target_bps))
    .column("target", Tables::Run),
    Class::new(
        "held_ack_peak_bytes",
        Unit::Bytes,
        Total::Most,
        Policy,
        "the most bytes acknowledged by receivers and not yet passed on, at any time",
    )
    .number(|c| whole(c.held_ack_peak_bytes))
    .column("held peak", Tables::Run),
    Class::new(
        "held_ack_peak_packets",
        Unit::Count,
        Total::Most,
        Policy,
        "the most ACKs whose progress was held, as packets that a queue would have held",
    )
    .number(|c| whole(c.held_ack_peak_packets))
    .column("packets", Tables::Run),
    Class::new(
        "acks_absorbed",
        Unit::Count,
        Total::Sum,
        Policy,
        "pure ACKs whose number was held instead of the packet",
    )
    .number(|c| whole(c.acks_absorbed))
    .column_of("absorbed", "ACKs"),
    Class::new("acks_generated", Unit::Count, Total::Sum, Policy, "ACKs made by the gateway")
        .number(|c| whole(c.acks_generated))
        .column_of("made", "ACKs"),
    Class::new(
        "acks_rewritten",
        Unit::Count,
        Total::Sum,
        Policy,
        "segments whose ACK number or window was rewritten",
    )
    .number(|c| whole(c.acks_rewritten))
    .column_of("rewritten", "ACKs"),
    Class::new(
        "others.packets",
        Unit::Count,
        Total::Sum,
        Policy,
        "packets that passed of what ACKs cannot slow: not TCP, or left alone",
    )
    .number(|c| whole(c.others?.packets)),
    Class::new("others.bytes", Unit::Bytes, Total::Sum, Policy, "their bytes from the IP header on")
        .number(|c| whole(c.others?.bytes)),
    Class::new(
        "others.spilled",
        Unit::Count,
        Total::Sum,
        Policy,
        "packets of it that exceeded a fair share and waited for their turn",
    )
    .number(|c| whole(c.others?.spilled)),
    Class::new("others.spilled_bytes", Unit::Bytes, Total::Sum, Policy, "their bytes from the IP header on")
        .number(|c| whole(c.others?.spilled_bytes)),
    Class::new(
        "others.marked",
        Unit::Count,
        Total::Sum,
        Policy,
        "packets of it that the queues of their flows marked with Congestion Experienced",
    )
    .number(|c| whole(c.others?.marked)),
    Class::new(
        "others.dropped",
        Unit::Count,
        Total::Sum,
        Policy,
        "packets of it that were dropped, since the class is policed, or a flow's queue was full",
    )
    .number(|c| whole(c.others?.dropped)),
    Class::new(
        "others.exceeded_bytes",
        Unit::Bytes,
        Total::Sum,
        Policy,
        "bytes that exceeded the rate of the class and could not be held back",
    )
    .number(|c| whole(c.others?.exceeded_bytes)),
    Class::new(
        "bound.held_bytes",
        Unit::Bytes,
        Total::Sum,
        Policy,
        "bytes of TCP whose ACKs are controlled, as the rate counts them",
    )
    .number(|c| whole(c.bound?.held_bytes)),
    Class::new(
        "bound.free_bytes",
        Unit::Bytes,
        Total::Sum,
        Policy,
        "bytes of TCP whose ACKs are not controlled, from the IP header on",
    )
    .number(|c| whole(c.bound?.free_bytes)),
    Class::new(
        "bound.dropped",
        Unit::Count,
        Total::Sum,
        Policy,
        "packets of any kind that were dropped, since the class exceeded its bound",
    )
    .number(|c| whole(c.bound?.dropped)),
    Class::new("bound.dropped_bytes", Unit::Bytes, Total::Sum, Policy, "their bytes from the IP header on")
        .number(|c| whole(c.bound?.dropped_bytes)),
    Class::new("admission.guaranteed", Unit::Count, Total::Sum, FlowMin, "flows that have their `flow_min`")
        .number(|c| whole(c.admission?.guaranteed)),
    Class::new(
        "admission.refused",
        Unit::Count,
        Total::Sum,
        FlowMin,
        "SYNs refused for want of a `flow_min`",
    )
    .number(|c| whole(c.admission?.refused)),
    Class::new(
        "admission.best_effort",
        Unit::Count,
        Total::Sum,
        FlowMin,
        "flows that began without the `flow_min` of their class, since there was too little",
    )
    .number(|c| whole(c.admission?.best_effort)),
    Class::new(
        "ack_queue_peak_bytes",
        Unit::Bytes,
        Total::Most,
        Policy,
        "the most bytes of ACKs that waited themselves, as frames",
    )
    .number(|c| whole(c.ack_queue_peak_bytes)),
    Class::new(
        "scheduled_only.not_tcp",
        Unit::Count,
        Total::Sum,
        Policy,
        "packets of its queue that ACKs cannot control, since they are not TCP, or fragments",
    )
    .number(|c| whole(c.scheduled_only.not_tcp)),
    Class::new(
        "scheduled_only.untouched",
        Unit::Count,
        Total::Sum,
        Policy,
        "packets of its queue whose flow passes untouched; `pass_reason` of the flow says why",
    )
    .number(|c| whole(c.scheduled_only.untouched)),
    Class::new(
        "scheduled_only.no_acks",
        Unit::Count,
        Total::Sum,
        Policy,
        "packets of its queue of whose flow no ACK has come this way, or whose connection is over",
    )
    .number(|c| whole(c.scheduled_only.no_acks)),
    Class::new(
        "buffer_peak_bytes",
        Unit::Bytes,
        Total::Most,
        Queue,
        "the most bytes of data in its queue and of ACKs that waited themselves, together at any time",
    )
    .number(|c| c.queue.as_ref().and_then(|_| whole(c.buffer_peak_bytes))),
    Class::new("queue.packets", Unit::Count, Total::Sum, Queue, "packets that left its queue")
        .number(|c| whole(c.queue.as_ref()?.packets)),
    Class::new("queue.bytes", Unit::Bytes, Total::Sum, Queue, "their bytes, as the class is charged")
        .number(|c| whole(c.queue.as_ref()?.bytes)),
    Class::new("queue.borrowed_bytes", Unit::Bytes, Total::Sum, Queue, "those of them that it borrowed")
        .number(|c| whole(c.queue.as_ref()?.borrowed_bytes)),
    Class::new("queue.peak_packets", Unit::Count, Total::Most, Queue, "the most packets that waited at once")
        .number(|c| whole(c.queue.as_ref()?.peak_packets)),
    Class::new("queue.peak_bytes", Unit::Bytes, Total::Most, Queue, "the most bytes that waited at once")
        .number(|c| whole(c.queue.as_ref()?.peak_bytes)),
    Class::new("queue.delay_us.p50", Unit::Micros, Total::Mean, Queue, "median time that its frames waited")
        .number(|c| whole(waited(c)?.p50)),
    Class::new("queue.delay_us.p99", Unit::Micros, Total::Most, Queue, "the 99th percentile of that time")
        .number(|c| whole(waited(c)?.p99)),
    Class::new("queue.delay_us.max", Unit::Micros, Total::Most, Queue, "the longest that a frame waited")
        .number(|c| whole(waited(c)?.max)),
    Class::new(
        "queue.marks",
        Unit::Count,
        Total::Sum,
        Queue,
        "packets that its queue marked with Congestion Experienced",
    )
    .number(|c| whole(c.queue.as_ref()?.marks)),
    Class::new("queue.filtered", Unit::Count, Total::Sum, Queue, "ACKs that its filter erased")
        .number(|c| whole(c.queue.as_ref()?.filtered)),
    Class::new(
        "queue.fallback",
        Unit::Count,
        Total::Sum,
        Queue,
        "ACKs that came while its filter fell back to classical filtering",
    )
    .number(|c| whole(c.queue.as_ref()?.fallback)),
    Class::new(
        "queue.drops",
        Unit::Count,
        Total::Sum,
        Queue,
        "frames that its queue dropped; `queue.drops.queue_full` and so on by reason",
    )
    .counts(|c| c.queue.as_ref().map_or(&NO_DROPS, |queue| &queue.drops)),
    Class::new("queue.dropped_bytes", Unit::Bytes, Total::Sum, Queue, "their bytes, as the class is charged")
        .number(|c| whole(c.queue.as_ref()?.dropped_bytes)),
    Class::new("pace.target_bps", Unit::Rate, Total::Sum, Pace, "the rate that it is paced at")
        .number(|c| whole(c.pace.as_ref()?.target_bps)),
    Class::new(
        "pace.bps",
        Unit::Rate,
        Total::Sum,
        Pace,
        "what it sent, from the beginning of its first packet to that of the last, as its rate counts",
    )
    .number(|c| c.pace.as_ref()?.bps)
    .at_least(|c| c.pace.as_ref()?.bps.is_none().then_some(0.0))
    .column("paced", Tables::All),
    Class::new(
        "pace.off_target",
        Unit::Deviation,
        Total::Furthest,
        Pace,
        "how far off `pace.target_bps` that is",
    )
    .number(|c| c.pace.as_ref()?.off_target),
    Class::new("pace.over1.min_bps", Unit::Rate, Total::Least, Pace, "lowest bandwidth over one packet")
        .number(|c| whole(c.pace.as_ref()?.over1?.min_bps))
        .at_least(|c| c.pace.as_ref()?.over1.is_none().then_some(0.0)),
    Class::new("pace.over1.mean_bps", Unit::Rate, Total::Mean, Pace, "mean bandwidth over one packet")
        .number(|c| whole(c.pace.as_ref()?.over1?.mean_bps))
        .at_least(|c| c.pace.as_ref()?.over1.is_none().then_some(0.0)),
    Class::new("pace.over1.max_bps", Unit::Rate, Total::Most, Pace, "highest bandwidth over one packet")
        .number(|c| whole(c.pace.as_ref()?.over1?.max_bps))
        .at_least(|c| c.pace.as_ref()?.over1.is_none().then_some(0.0)),
    Class::new("pace.over2.min_bps", Unit::Rate, Total::Least, Pace, "lowest bandwidth over two packets")
        .number(|c| whole(c.pace.as_ref()?.over2?.min_bps))
        .at_least(|c| c.pace.as_ref()?.over2.is_none().then_some(0.0)),
    Class::new("pace.over2.mean_bps", Unit::Rate, Total::Mean, Pace, "mean bandwidth over two packets")
        .number(|c| whole(c.pace.as_ref()?.over2?.mean_bps))
        .at_least(|c| c.pace.as_ref()?.over2.is_none().then_some(0.0)),
    Class::new("pace.over2.max_bps", Unit::Rate, Total::Most, Pace, "highest bandwidth over two packets")
        .number(|c| whole(c.pace.as_ref()?.over2?.max_bps))
        .at_least(|c| c.pace.as_ref()?.over2.is_none().then_some(0.0)),
    Class::new(
        "pace.burst_packets",
        Unit::Count,
        Total::Most,
        Pace,
        "the smallest token bucket at its rate that all of it fits through, in its largest packets",
    )
    .number(|c| c.pace.as_ref()?.burst_packets),
    Class::new(
        "pace.together",
        Unit::Count,
        Total::Most,
        Pace,
        "most packets of the class with nothing between them",
    )
    .number(|c| whole(c.pace.as_ref()?.together?))
    .at_least(|c| c.pace.as_ref()?.together.is_none().then_some(0.0)),
];

/// Returns the waiting times of a class's queue; `None` if no packet left it.
fn waited(c: &ClassResult) -> Option<&QuantilesMax> {
    c.queue.as_ref().filter(|queue| queue.packets > 0).map(|queue| &queue.delay_us)
}

/// Drops of a class without a queue.
static NO_DROPS: Counts = Counts::new();

/// Metrics of the gateway as a whole.
pub static GATEWAY: &[Whole] = &[
    Whole::new("cpu_s", Unit::Seconds, Total::Sum, Lab, "processor time of the engine")
        .number(|g| Some(g.cpu_s)),
    Whole::new("memory_bytes", Unit::Bytes, Total::Most, Lab, "resident memory of the engine's process")
        .number(|g| g.memory_bytes.map(|bytes| bytes as f64)),
    Whole::new(
        "user_data_bytes",
        Unit::Bytes,
        Total::Sum,
        Nothing,
        "TCP payload that passed through user space",
    )
    .number(|g| whole(g.user_data_bytes)),
    Whole::new("steering.restarts", Unit::Count, Total::Sum, Lab, "engines that ran before the last one")
        .number(|g| whole(g.steering?.restarts)),
    Whole::new("steering.resyncs", Unit::Count, Total::Sum, Lab, "times that the engine had stalled")
        .number(|g| whole(g.steering?.resyncs)),
    Whole::new(
        "steering.passed_stale",
        Unit::Count,
        Total::Sum,
        Lab,
        "segments that passed because the engine's heartbeat was stale",
    )
    .number(|g| whole(g.steering?.passed_stale)),
    Whole::new(
        "steering.passed_unknown",
        Unit::Count,
        Total::Sum,
        Lab,
        "segments that passed because their flow was not classified yet",
    )
    .number(|g| whole(g.steering?.passed_unknown)),
    Whole::new(
        "steering.ring_full",
        Unit::Count,
        Total::Sum,
        Lab,
        "segments not taken or shown because the ring to the engine was full",
    )
    .number(|g| whole(g.steering?.ring_full)),
    Whole::new(
        "steering.over_budget",
        Unit::Count,
        Total::Sum,
        Lab,
        "segments not taken or shown because there were too many of their kind",
    )
    .number(|g| whole(g.steering?.over_budget)),
    Whole::new(
        "steering.doubted",
        Unit::Count,
        Total::Sum,
        Lab,
        "segments of controlled flows that passed because they cannot be true",
    )
    .number(|g| whole(g.steering?.doubted)),
    Whole::new(
        "steering.failed",
        Unit::Count,
        Total::Sum,
        Lab,
        "segments that the kernel refused to rewrite",
    )
    .number(|g| whole(g.steering?.failed)),
    Whole::new("frames.in", Unit::Count, Total::Sum, Nothing, "frames handed in")
        .number(|g| whole(g.frames.received)),
    Whole::new("frames.made", Unit::Count, Total::Sum, Nothing, "frames made by the gateway")
        .number(|g| whole(g.frames.made)),
    Whole::new("frames.out", Unit::Count, Total::Sum, Nothing, "frames given out")
        .number(|g| whole(g.frames.sent)),
    Whole::new("frames.held", Unit::Count, Total::Sum, Nothing, "frames still inside at the end")
        .number(|g| whole(g.frames.held)),
    Whole::new(
        "frames.absorbed",
        Unit::Count,
        Total::Sum,
        Nothing,
        "frames ended with their information kept",
    )
    .number(|g| whole(g.frames.absorbed)),
    Whole::new(
        "frames.dropped",
        Unit::Count,
        Total::Sum,
        Nothing,
        "frames dropped; `frames.dropped.shutdown` and so on by reason",
    )
    .counts(|g| &g.frames.dropped),
    Whole::new("pace.fillers", Unit::Count, Total::Sum, Nothing, "frames that filled holes of paced lines")
        .number(|g| whole(g.pace?.fillers)),
    Whole::new("pace.filler_bytes", Unit::Bytes, Total::Sum, Nothing, "bytes that they took on the wire")
        .number(|g| whole(g.pace?.filler_bytes)),
    Whole::new(
        "pace.discarded",
        Unit::Count,
        Total::Sum,
        Nothing,
        "fillers that the switches behind paced ports discarded",
    )
    .number(|g| whole(g.pace?.discarded)),
    Whole::new(
        "pace.behind_bytes",
        Unit::Bytes,
        Total::Sum,
        Nothing,
        "byte times by which schedules were held back, since the rates did not fit on the line",
    )
    .number(|g| whole(g.pace?.behind_bytes)),
];
