//! The gateway in words.

use super::{counted, direction};
use core::ops::RangeInclusive;
use weir_core::ack::{AckControl, Counts, Hold, Meter, Period, Release, SlowStart, Window};
use weir_core::gateway::{ClassConfig, Config, Match};

pub(super) fn lines(g: &Config) -> Vec<String> {
    let mut out = vec![format!(
        "gateway: {}, at most {} flows, idle ones forgotten after {}, RTT assumed where unseen {}",
        counted(g.classes.len() as u64, "class", "classes"),
        g.max_flows,
        g.idle_timeout,
        g.assumed_rtt
    )];
    for c in &g.classes {
        out.push(format!("  {}: {}", c.name, takes(c)));
        out.push(format!("    {}", c.ack.as_ref().map_or("passed untouched".to_string(), ack)));
    }
    out.push("  everything else passes untouched".to_string());
    out
}

fn takes(c: &ClassConfig) -> String {
    let all = direction(c.direction);
    if c.matches.is_empty() {
        return format!("all {all}");
    }
    let rules: Vec<String> = c.matches.iter().map(rule).collect();
    format!("{all} with {}", rules.join("; or "))
}

fn rule(m: &Match) -> String {
    let ports = |name: &str, r: &RangeInclusive<u16>| match (r.start(), r.end()) {
        (a, b) if a == b => format!("{name} {a}"),
        (a, b) => format!("{name} {a}-{b}"),
    };
    let parts = [
        m.src.map(|p| format!("src {p}")),
        m.dst.map(|p| format!("dst {p}")),
        m.src_port.as_ref().map(|r| ports("src_port", r)),
        m.dst_port.as_ref().map(|r| ports("dst_port", r)),
        m.vlan.map(|v| format!("vlan {v}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

fn ack(a: &AckControl) -> String {
    let Hold::Number = a.hold;
    let Release::Rate(r) = &a.release;
    let counts = match r.counts {
        Counts::Payload => "TCP payload",
        Counts::Ip => "IP bytes",
        Counts::Frame => "Ethernet frames with FCS",
        Counts::Wire => "Ethernet frames with preamble and gap",
    };
    let meter = match r.meter {
        Meter::Acked => "",
        Meter::Received => " as it is received",
    };
    let period = match r.period {
        Period::Fixed(d) => format!("every {d}"),
        Period::Auto { min, max } => format!("every {min} to {max}"),
    };
    let slow_start = match r.slow_start {
        SlowStart::Ignore => "slow start ignored".to_string(),
        SlowStart::Detect { enter_milli, exit_milli, gated } => format!(
            "slow start between {} and {}{}",
            f64::from(enter_milli) / 1e3,
            f64::from(exit_milli) / 1e3,
            if gated { "" } else { ", ungated" }
        ),
    };
    let window = match a.window {
        Window::Keep => "window kept".to_string(),
        Window::Size { standing_delay } => format!("window sized for {standing_delay} of standing delay"),
    };
    format!(
        "each flow {} of {counts}{meter}, ACKs released {period}, {slow_start}, catch-up {}, {window}",
        r.rate, r.catch_up
    )
}
