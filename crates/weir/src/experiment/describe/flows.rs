//! Flows in words.

use super::{direction, numbered};
use crate::experiment::config::tcp;
use crate::experiment::plan::{Arrivals, FlowGroup, Kind, Length, Ports, Protocol, Sources};
use weir_core::dist::Distribution;
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Describes a group and its TCP settings.
pub(super) fn group(g: &FlowGroup) -> Vec<String> {
    let port = match g.ports {
        Ports::Shared(p) => format!("port {p}"),
        Ports::Each { first } => format!("ports {first}-{}", g.port_range().1),
    };
    let cc = g.tcp.cc.as_deref().map_or(String::new(), |c| format!(", {c}"));
    let hosts = match (&g.client, &g.server) {
        (None, None) => String::new(),
        (Some(c), None) => format!(", clients on {c}"),
        (None, Some(s)) => format!(", servers on {s}"),
        (Some(c), Some(s)) => format!(", clients on {c}, servers on {s}"),
    };
    let ids = match &g.arrivals {
        Arrivals::Every(_) if g.sources.is_none() => numbered(&g.id, g.count),
        _ => format!("{0}.0 up to at most {0}.{1}", g.id, g.count - 1),
    };
    let sources = g.sources.as_ref().map_or(String::new(), |Sources { count, think }| {
        format!(" from {count} sources, one after the other with {} between,", drawn(think, time))
    });
    let alike = g.drawn_as.as_ref().map_or(String::new(), |name| format!(", drawn as those of {name}"));
    let start = format!("from {}{}{sources} {}{alike}", g.start, arrivals(&g.arrivals), length(&g.length));
    let kind = match g.kind {
        Kind::Bulk => String::new(),
        Kind::TwoWay => ", and the other way in the same connections".to_string(),
        Kind::Request { request, response } => {
            format!(", requests of {} answered by {}", bytes(request), bytes(response))
        }
    };
    let pauses = g.bursts.map_or(String::new(), |bursts| {
        format!(" of an application that pauses for {} after each {}", bursts.pause, bytes(bursts.size))
    });
    let first = format!(
        "  {ids}: {}{kind}{}{pauses}, {port}{hosts}{cc}, {start}",
        direction(g.direction),
        protocol(&g.protocol)
    );
    let set = tcp::words(&g.tcp).join(", ");
    let second = (!set.is_empty()).then(|| format!("    {set}"));
    std::iter::once(first).chain(second).collect()
}

fn protocol(p: &Protocol) -> String {
    match p {
        Protocol::Tcp { app_rate } => application(*app_rate),
        Protocol::Quic { app_rate, streams: 1 } => format!(" over QUIC{}", application(*app_rate)),
        Protocol::Quic { app_rate, streams } => {
            format!(" over QUIC in {streams} streams{}", application(*app_rate))
        }
        Protocol::Udp { rate, datagram, on_off } => {
            let when = on_off.as_ref().map_or(String::new(), |(on, off)| {
                format!(", on for {} and off for {}", drawn(on, time), drawn(off, time))
            });
            format!(" over UDP, {rate} in datagrams of {datagram} bytes{when}")
        }
    }
}

fn application(rate: Option<Rate>) -> String {
    rate.map_or(String::new(), |rate| format!(" of an application at {rate}"))
}

fn arrivals(a: &Arrivals) -> String {
    match a {
        Arrivals::Every(Duration::ZERO) => String::new(),
        Arrivals::Every(gap) => format!(", each {gap} later"),
        Arrivals::Drawn(gaps) => format!(", each {} later,", drawn(gaps, time)),
    }
}

fn length(l: &Length) -> String {
    match l {
        Length::UntilEnd => "until the end".to_string(),
        Length::Bytes(n) => bytes(*n),
        Length::Drawn(sizes) => drawn(sizes, bytes),
        Length::Duration(d) => format!("for {d}"),
    }
}

fn time(nanos: u64) -> String {
    Duration::from_nanos(nanos).to_string()
}

fn bytes(n: u64) -> String {
    format!("{n} bytes")
}

/// Describes a distribution; `value` formats one of its values.
fn drawn(d: &Distribution, value: fn(u64) -> String) -> String {
    match d {
        Distribution::Constant(n) => value(*n),
        Distribution::Uniform { min, max } => format!("{} to {} (uniform)", value(*min), value(*max)),
        Distribution::Exponential { mean } => format!("{} on average (exponential)", value(*mean)),
        Distribution::Pareto { scale, shape, min, max } => {
            let most = max.map_or(String::new(), |m| format!(" and at most {}", value(m)));
            let scale = if scale == min { String::new() } else { format!("scale {}, ", value(*scale)) };
            format!("at least {}{most} (Pareto, {scale}shape {shape})", value(*min))
        }
        Distribution::BoundedPareto { min, shape, max } => {
            format!("{} to {} (bounded Pareto, shape {shape})", value(*min), value(*max))
        }
        Distribution::Empirical(values) => format!("one of {} values", values.len()),
    }
}
