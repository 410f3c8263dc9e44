//! Congestion marks on their way back to the sender.

use super::Case;
use crate::accurate::{self, Codepoint, Receiver};
use crate::script::{Opening, Script, Side, BACKLOG, MSS};
use crate::seg::Seg;
use crate::trace::Trace;
use crate::Verdict;
use weir_core::wire::Flags;

const BOTH: Flags = Flags(Flags::ECE.0 | Flags::CWR.0);
const ACCURATE: Flags = Flags(Flags::AE.0 | Flags::CWR.0 | Flags::ECE.0);

pub(super) const CASES: &[Case] = &[
    Case::new("ecn-negotiated", "what is agreed on passes", "RFC 3168 §6.1.1", negotiated)
        .check(|t| t.untouched("syn")),
    Case::new("ecn-echo", "the receiver's echo reaches the sender, and ends", "RFC 3168 §6.1.3", echo)
        .check(echoed),
    Case::new("ecn-cwr", "the sender's answer passes with its data", "RFC 3168 §6.1.2", cwr)
        .check(|t| t.untouched("cwr")),
    Case::new("dctcp-share", "the share of marked bytes is kept", "RFC 8257 §3.3", dctcp).check(share),
    Case::new("accecn-negotiated", "what is agreed on passes", "RFC 9768 §3.1", accurate)
        .check(|t| t.untouched("syn")),
    Case::new(
        "accecn-counter",
        "the counter of three bits never goes around unseen",
        "RFC 9768 §3.2.2.5",
        counter,
    )
    .check(counted),
    Case::new(
        "accecn-held",
        "a sender counts the marks of ACKs that wait, and counters are not ahead of what is acknowledged",
        "RFC 9768 §3.2.3, appendix A.2",
        held,
    )
    .check(told),
    Case::new("accecn-option", "the counters of bytes pass as they came", "RFC 9768 §3.2.3", option)
        .check(passed),
];

fn open_with(s: &mut Script, syn: Flags, answer: Flags) {
    s.open(Opening { flags: (syn, answer), ..Opening::default() });
}

fn negotiated(s: &mut Script) {
    open_with(s, BOTH, Flags::ECE);
    s.backlog();
}

/// Opens with accurate marks, whose counter begins at 5 (RFC 9768 §3.2.1).
fn open_accurate(s: &mut Script) {
    s.always(Flags::of_ace(5));
    open_with(s, ACCURATE, Flags::CWR);
}

fn accurate(s: &mut Script) {
    open_accurate(s);
    s.backlog();
}

/// Marks come among held ACKs, and stop when the sender has answered.
fn echo(s: &mut Script) {
    open_with(s, BOTH, Flags::ECE);
    s.backlog().send(2 * BACKLOG);
    for n in 1..=50 {
        let flags = if n <= 20 { Flags::ACK | Flags::ECE } else { Flags::ACK };
        let segment = s.ack_for(BACKLOG + n * 2 * MSS).flags(flags);
        s.wait_us(100).put(Side::Receiver, segment);
    }
}

fn echoed(trace: &Trace) -> Verdict {
    let acks: Vec<&Seg> = trace.to(Side::Sender).map(|t| t.1).filter(|s| s.is_ack()).collect();
    if !acks.iter().any(|s| s.has(Flags::ECE)) {
        return Err("the sender never learns of congestion".into());
    }
    if acks.last().is_some_and(|s| s.has(Flags::ECE)) {
        return Err("the sender is told of congestion that is over".into());
    }
    let (said, told) = (marked(trace, true), marked(trace, false));
    // The sender must learn of the same bytes with marks, or of more that are new to it.
    if told + 2 * MSS < said {
        return Err(format!("{told} bytes are acknowledged with ECE, of {said}"));
    }
    Ok(())
}

/// Bytes acknowledged with ECE, as the receiver said or as the sender was told.
fn marked(trace: &Trace, said: bool) -> u32 {
    let segs: Vec<&Seg> = if said {
        let events = trace.script.events().iter().zip(&trace.segs);
        events.filter(|(e, _)| e.from == Side::Receiver).filter_map(|(_, s)| s.as_ref()).collect()
    } else {
        trace.to(Side::Sender).map(|t| t.1).collect()
    };
    let (mut last, mut sum) = (0, 0);
    for seg in segs.iter().filter(|s| s.is_ack()) {
        let more = trace.rel(seg.tcp.ack.0) - last;
        if more > 0 {
            last += more;
            sum += if seg.has(Flags::ECE) { more as u32 } else { 0 };
        }
    }
    sum
}

fn cwr(s: &mut Script) {
    echo(s);
    let answer = s.data(2 * BACKLOG).flags(Flags::ACK | Flags::CWR).tos(2).payload(MSS as usize);
    s.wait_ms(1).label("cwr").put(Side::Sender, answer).wait_ms(20).ack(2 * BACKLOG + MSS);
}

/// Marks on every third ACK.
fn dctcp(s: &mut Script) {
    open_with(s, BOTH, Flags::ECE);
    s.backlog().send(4 * BACKLOG);
    for n in 1..=300 {
        let flags = if n % 3 == 0 { Flags::ACK | Flags::ECE } else { Flags::ACK };
        let segment = s.ack_for(BACKLOG + n * MSS).flags(flags);
        s.wait_us(50).put(Side::Receiver, segment);
    }
}

/// Checks that the sender learns of the same marked bytes, except for the largest step of an ACK.
fn share(trace: &Trace) -> Verdict {
    let (said, told) = (marked(trace, true), marked(trace, false));
    let acks: Vec<i32> =
        trace.to(Side::Sender).filter(|t| t.1.is_ack()).map(|t| trace.rel(t.1.tcp.ack.0)).collect();
    let step = acks.windows(2).map(|a| a[1] - a[0]).max().unwrap_or(0).max(MSS as i32) as u32;
    if told.abs_diff(said) > step {
        return Err(format!("{told} bytes are acknowledged with ECE, of {said}, in steps of {step}"));
    }
    Ok(())
}

/// Marks by ACK: more than the counter holds, among held ACKs.
const MARKS: [u32; 10] = [0, 3, 3, 8, 14, 14, 20, 21, 26, 32];

fn counter(s: &mut Script) {
    open_accurate(s);
    let flags = |marks: u32| Flags::ACK | Flags::of_ace((5 + marks) as u8 & 7);
    s.backlog().send(2 * BACKLOG).wait_ms(2);
    for (n, &marks) in (1..).zip(&MARKS) {
        let segment = s.ack_for(BACKLOG + n * 10 * MSS).flags(flags(marks));
        s.wait_us(200).put(Side::Receiver, segment);
    }
}

/// Checks the count of a sender that takes each change of three bits for the least possible one.
fn counted(trace: &Trace) -> Verdict {
    let acks = trace.to(Side::Sender).filter(|t| t.1.is_ack() && trace.rel(t.1.tcp.ack.0) > 0);
    let (mut last, mut sum) = (5, 0);
    for ace in acks.map(|t| u32::from(t.1.tcp.flags.ace())) {
        sum += (ace + 8 - last) % 8;
        last = ace;
    }
    let said = *MARKS.last().unwrap_or(&0);
    if sum != said {
        return Err(format!("the sender counts {sum} marked packets of {said}"));
    }
    Ok(())
}

fn option(s: &mut Script) {
    accurate(s);
    // AccECN0: three counters of 24 bits (RFC 9768 §3.2.3).
    for n in 1..=5 {
        let segment =
            s.ack_for(BACKLOG).flags(Flags::ACK | Flags::of_ace(5)).option(172, &[0, 0, n, 0, 0, 1, 0, 0, 2]);
        s.wait_ms(1).label("counters").put(Side::Receiver, segment);
    }
    s.wait_ms(1).ack(BACKLOG);
}

/// Checks that each of the counters reaches the sender, and at once where ACKs do not keep their order.
fn passed(trace: &Trace) -> Verdict {
    let counters = |frame: &[u8]| accurate::counters(frame, &Seg::of(frame)?);
    let reach = trace.out.iter().filter(|out| out.crossed.to == Side::Sender);
    let told: Vec<_> = reach.map(|out| (out.crossed.at, counters(&out.crossed.bytes))).collect();
    for event in trace.script.events().iter().filter(|event| event.label == "counters") {
        let (own, last) = (counters(&event.frame.head), event.at + trace.traits.at_once);
        let waits = trace.traits.fifo || trace.traits.queues == Some(Side::Receiver);
        let at_once = |at| waits || at <= last;
        if !told.iter().any(|&(at, told)| told == own && at >= event.at && at_once(at)) {
            return Err(format!("counters of {:?} were lost or late", event.at));
        }
    }
    Ok(())
}

/// Marked packets of each ten, of the data whose ACKs wait.
const DENSITY: [u32; 10] = [0, 0, 1, 0, 3, 9, 10, 10, 2, 0];

fn codepoint(marked: bool) -> Codepoint {
    if marked {
        Codepoint::Ce
    } else {
        Codepoint::Ect0
    }
}

fn receiver() -> Receiver {
    let mut receiver = Receiver::default();
    DENSITY.iter().for_each(|&marked| (0..10).for_each(|n| receiver.packet(codepoint(n < marked))));
    receiver
}

/// ACKs for two packets each, within a millisecond.
fn held(s: &mut Script) {
    open_accurate(s);
    s.send(BACKLOG).wait_ms(20);
    let mut receiver = Receiver::default();
    for packet in 0..100 {
        receiver.packet(codepoint(packet % 10 < DENSITY[packet as usize / 10]));
        if packet % 2 == 1 {
            let ack = receiver.ack(s, packet % 4 == 1);
            s.wait_us(20).put(Side::Receiver, ack);
        }
    }
    s.wait_ms(2);
}

fn told(trace: &Trace) -> Verdict {
    accurate::check(trace.script, trace.out.iter().map(|out| &out.crossed), &receiver())
}
