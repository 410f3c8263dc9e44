//! Translation of the TCP settings of a plan to those of simulated connections.

use crate::execute::hosts::{buffers, DEFAULT_BUFFER};
use crate::experiment::config::tcp::values;
use crate::experiment::plan::{FlowGroup, Plan, Protocol, Tcp, SHORTHANDS};
use std::collections::BTreeMap;
use weir_sim::cc::{self, CubicRules, Hystart};
use weir_sim::tcp::{MinRto, TcpConfig};

/// What an Ethernet frame holds of TCP payload, without options.
const MSS: u16 = 1460;
/// Bytes that timestamps take of a segment, padding included (RFC 7323 appendix A).
const TIMESTAMPS: u16 = 12;

/// The settings of both ends of a group's flows. Errors say which congestion controls there are.
pub fn config(plan: &Plan, group: &FlowGroup) -> Result<TcpConfig, String> {
    let tcp = &group.tcp;
    let cc = tcp.algorithm();
    let make = cc::by_name(cc).ok_or_else(|| unknown(group, cc))?;
    let default = TcpConfig::new(make);
    let timestamps = tcp.timestamps.unwrap_or(default.timestamps);
    let mss = tcp.mss.unwrap_or(if timestamps { MSS - TIMESTAMPS } else { MSS });
    let segments = |n: u32| u64::from(n) * u64::from(mss);
    Ok(TcpConfig {
        cc_options: options(tcp, default.cc_options),
        recovery: tcp.recovery.unwrap_or(default.recovery),
        mss,
        initial_window: tcp.initial_window.unwrap_or(default.initial_window),
        initial_ssthresh: tcp.initial_ssthresh.map(segments),
        // Linux advertises about half of its buffer (tcp_adv_win_scale = 1).
        receive_window: tcp.rwnd.unwrap_or(buffers(plan).unwrap_or(DEFAULT_BUFFER) / 2),
        delayed_ack: tcp.delayed_ack.unwrap_or(default.delayed_ack),
        delayed_ack_timer: tcp.delayed_ack_timer.unwrap_or(default.delayed_ack_timer),
        quick_acks: tcp.quick_acks.unwrap_or(default.quick_acks),
        push_acks: tcp.push_acks.unwrap_or(default.push_acks),
        timestamps,
        ecn: tcp.ecn.unwrap_or(default.ecn),
        l4s: tcp.l4s.unwrap_or(default.l4s),
        // Who names a minimum means the whole time-out (RFC 6298); Linux's own bounds its variance.
        min_rto: tcp.min_rto.map_or(default.min_rto, MinRto::Total),
        pacing: tcp.pacing.unwrap_or(default.pacing),
        tso_segments: tcp.tso_segments.unwrap_or(default.tso_segments),
        ..default
    })
}

/// What is in force in each group of flows that has TCP, defaults included, by key: `flow.bulk.mss`. The congestion control
/// is told by the flows themselves.
pub fn in_force(plan: &Plan) -> BTreeMap<String, String> {
    let tcp = |g: &&FlowGroup| matches!(g.protocol, Protocol::Tcp { .. });
    let values = |group: &FlowGroup| {
        let config = config(plan, group).ok()?;
        let named = values(&effective(&group.tcp, &config)).into_iter().filter(|(key, _)| *key != "cc");
        let id = group.id.clone();
        Some(named.map(move |(key, value)| (format!("flow.{id}.{key}"), value)))
    };
    plan.groups.iter().filter(tcp).filter_map(values).flatten().collect()
}

/// What a plan says of TCP, with the values that `config` has for what it leaves out. What is still left out depends on
/// the congestion control, or has no value of its kind.
fn effective(tcp: &Tcp, config: &TcpConfig) -> Tcp {
    Tcp {
        mss: Some(config.mss),
        rwnd: Some(config.receive_window),
        ecn: Some(config.ecn),
        l4s: Some(config.l4s),
        delayed_ack: Some(config.delayed_ack),
        delayed_ack_timer: Some(config.delayed_ack_timer),
        quick_acks: Some(config.quick_acks),
        push_acks: Some(config.push_acks),
        initial_window: Some(config.initial_window),
        // Written even where the congestion control brings it.
        cc: None,
        recovery: Some(config.recovery),
        timestamps: Some(config.timestamps),
        abc: Some(config.cc_options.abc),
        cubic: Some(config.cc_options.cubic).filter(|_| tcp.algorithm() == "cubic"),
        pacing: Some(config.pacing),
        tso_segments: Some(config.tso_segments),
        ..tcp.clone()
    }
}

fn options(tcp: &Tcp, default: cc::Options) -> cc::Options {
    let cubic = tcp.cubic.unwrap_or(default.cubic);
    // Linux's CUBIC has the HyStart that there was before HyStart++.
    let linux = tcp.algorithm() == "cubic" && cubic == CubicRules::Linux;
    let own = if linux { Hystart::Classic } else { Hystart::PlusPlus };
    let hystart = match tcp.hystart {
        Some(false) => Some(Hystart::Off),
        Some(true) => Some(own),
        None => default.hystart,
    };
    cc::Options {
        abc: tcp.abc.unwrap_or(default.abc),
        hystart,
        cubic,
        fast_convergence: tcp.fast_convergence.unwrap_or(default.fast_convergence),
        ..default
    }
}

fn unknown(group: &FlowGroup, cc: &str) -> String {
    let all = cc::CONTROLS.iter().map(|(name, _)| *name).chain(SHORTHANDS.iter().map(|(name, _)| *name));
    let all: Vec<String> = all.map(|name| format!("`{name}`")).collect();
    format!("flow \"{}\": `cc`: the simulator has no \"{cc}\"; it has {}", group.id, all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::time::Duration;
    use weir_sim::tcp::Recovery;

    fn with(tcp: Tcp) -> Result<TcpConfig, String> {
        let group = FlowGroup { tcp, ..FlowGroup::new("up") };
        config(&Plan::new("t", Duration::from_secs(1)), &group)
    }

    fn reno() -> Tcp {
        Tcp { cc: Some("reno".into()), ..Tcp::default() }
    }

    #[test]
    fn what_is_in_force_has_the_defaults_in_it() {
        let tcp = Tcp {
            cc: Some("newreno".into()),
            recovery: Some(Recovery::NewReno),
            ecn: Some(true),
            ..Tcp::default()
        };
        let group = FlowGroup { tcp, ..FlowGroup::new("up") };
        let plan =
            Plan { groups: vec![group, FlowGroup::new("plain")], ..Plan::new("t", Duration::from_secs(1)) };
        let all = in_force(&plan);
        let of = |key: &str| all.get(key).map(String::as_str);
        assert_eq!((of("flow.up.ecn"), of("flow.plain.ecn")), (Some("true"), Some("false")));
        assert_eq!((of("flow.up.recovery"), of("flow.plain.recovery")), (Some("newreno"), Some("rack")));
        assert_eq!((of("flow.plain.mss"), of("flow.plain.cubic")), (Some("1448"), Some("linux")));
        assert_eq!((of("flow.up.cubic"), of("flow.up.min_rto"), of("flow.up.cc")), (None, None, None));
    }

    #[test]
    fn what_is_left_out_is_linux_s() {
        let c = with(reno()).unwrap();
        assert_eq!((c.mss, c.initial_window, c.delayed_ack, c.recovery), (1448, 10, 2, Recovery::Rack));
        // Half of tcp_rmem's 6 MiB.
        assert_eq!((c.receive_window, c.initial_ssthresh), (3 << 20, None));
        assert_eq!(with(Tcp { timestamps: Some(false), ..reno() }).unwrap().mss, 1460);
        assert_eq!(FlowGroup::new("up").tcp.cc(), "cubic");
    }

    #[test]
    fn what_is_said_is_done() {
        let c = with(Tcp {
            mss: Some(1000),
            rwnd: Some(9999),
            ecn: Some(true),
            delayed_ack: Some(1),
            delayed_ack_timer: Some(Duration::from_millis(200)),
            quick_acks: Some(3),
            push_acks: Some(false),
            initial_window: Some(4),
            initial_ssthresh: Some(64),
            timestamps: Some(false),
            min_rto: Some(Duration::from_secs(1)),
            abc: Some(false),
            hystart: Some(false),
            fast_convergence: Some(false),
            pacing: Some(true),
            tso_segments: Some(8),
            ..reno()
        })
        .unwrap();
        assert_eq!((c.mss, c.receive_window, c.ecn, c.delayed_ack, c.quick_acks), (1000, 9999, true, 1, 3));
        assert_eq!((c.initial_window, c.initial_ssthresh), (4, Some(64_000)));
        assert_eq!(c.delayed_ack_timer, Duration::from_millis(200));
        assert_eq!(c.min_rto, MinRto::Total(Duration::from_secs(1)));
        assert!(!c.push_acks);
        assert_eq!((c.timestamps, c.pacing, c.tso_segments), (false, true, 8));
        assert_eq!((c.cc_options.abc, c.cc_options.hystart), (false, Some(Hystart::Off)));
        assert!(!c.cc_options.fast_convergence);
    }

    #[test]
    fn an_unknown_congestion_control_is_answered_with_those_that_exist() {
        let error = with(Tcp { cc: Some("vegas".into()), ..Tcp::default() }).unwrap_err();
        assert!(
            error.starts_with("flow \"up\": `cc`: the simulator has no \"vegas\"; it has `reno`"),
            "{error}"
        );
        assert!(error.ends_with("`tahoe`, `newreno`"), "{error}");
    }

    #[test]
    fn a_cubic_brings_its_own_hystart() {
        let of = |cc: &str, cubic, hystart| {
            let cc = Some(cc.to_string());
            let o = with(Tcp { cc, cubic, hystart, ..Tcp::default() }).unwrap().cc_options;
            (o.cubic, o.hystart)
        };
        let (rfc, linux) = (CubicRules::Rfc9438, CubicRules::Linux);
        assert_eq!(of("cubic", None, None), (linux, None));
        assert_eq!(of("cubic", Some(rfc), None), (rfc, None));
        assert_eq!(of("cubic", Some(linux), None), (linux, None));
        assert_eq!(of("cubic", Some(linux), Some(false)), (linux, Some(Hystart::Off)));
        assert_eq!(of("cubic", Some(linux), Some(true)), (linux, Some(Hystart::Classic)));
        assert_eq!(of("reno", Some(linux), None), (linux, None));
        assert_eq!(of("reno", None, Some(true)), (linux, Some(Hystart::PlusPlus)));
    }
}
