//! Translation of a plan's TCP settings to those of simulated connections.

use crate::execute::hosts::{buffers, DEFAULT_BUFFER};
use crate::experiment::plan::{FlowGroup, Plan, Protocol, TcpSetting, SHORTHANDS, TCP_SETTINGS};
use std::collections::BTreeMap;
use weir_sim::cc;
use weir_sim::tcp::TcpConfig;

/// TCP payload of an Ethernet frame, without options.
const MSS: u16 = 1460;
/// Bytes of a segment that timestamps take, padding included (RFC 7323 appendix A).
const TIMESTAMPS: u16 = 12;

/// Returns the settings of both ends of a group's flows. Errors list the available congestion controls.
pub fn config(plan: &Plan, group: &FlowGroup) -> Result<TcpConfig, String> {
    let tcp = &group.tcp;
    let cc = tcp.algorithm();
    let mut config = TcpConfig::new(cc::by_name(cc).ok_or_else(|| unknown(group, cc))?);
    let timestamps = tcp.switch("timestamps").unwrap_or(config.timestamps);
    config.mss = if timestamps { MSS - TIMESTAMPS } else { MSS };
    // Linux advertises about half of its buffer (tcp_adv_win_scale = 1).
    config.receive_window = buffers(plan).unwrap_or(DEFAULT_BUFFER) / 2;
    tcp.configure(&mut config);
    config.dscp = group.dscp;
    config.opaque |= matches!(group.protocol, Protocol::Quic { .. });
    Ok(config)
}

/// Returns the settings in force for each group of TCP or QUIC, defaults included, by key: `flow.bulk.mss`.
/// The congestion control is left out because the flows report it.
pub fn in_force(plan: &Plan) -> BTreeMap<String, String> {
    let reliable = |g: &&FlowGroup| g.protocol.is_reliable();
    let values = |group: &FlowGroup| {
        let config = config(plan, group).ok()?;
        let value = |setting: &TcpSetting| {
            let value = setting.in_force(&config, &group.tcp)?;
            Some((format!("flow.{}.{}", group.id, setting.name), value.to_string()))
        };
        Some(TCP_SETTINGS.iter().filter_map(value).collect::<Vec<_>>())
    };
    plan.groups.iter().filter(reliable).filter_map(values).flatten().collect()
}

fn unknown(group: &FlowGroup, cc: &str) -> String {
    let all = cc::names().into_iter().chain(SHORTHANDS.iter().map(|(name, _)| *name));
    let all: Vec<String> = all.map(|name| format!("`{name}`")).collect();
    format!("flow \"{}\": `cc`: the simulator has no \"{cc}\"; it has {}", group.id, all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::plan::{Tcp, Value};
    use weir_core::time::Duration;
    use weir_sim::cc::{CubicRules, Hystart};
    use weir_sim::tcp::{MinRto, Recovery};

    fn with(tcp: Tcp) -> Result<TcpConfig, String> {
        let group = FlowGroup { tcp, ..FlowGroup::new("up") };
        config(&Plan::new("t", Duration::from_secs(1)), &group)
    }

    fn reno() -> Tcp {
        Tcp::of("reno")
    }

    #[test]
    fn what_is_in_force_has_the_defaults_in_it() {
        let mut tcp = Tcp::of("newreno");
        tcp.set_recovery(Recovery::NewReno);
        tcp.set("ecn", Value::Switch(true));
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
        // The window is half of tcp_rmem's 6 MiB.
        assert_eq!((c.receive_window, c.initial_ssthresh), (3 << 20, None));
        assert_eq!(with(reno().with("timestamps", Value::Switch(false))).unwrap().mss, 1460);
        assert_eq!(FlowGroup::new("up").tcp.cc(), "cubic");
    }

    #[test]
    fn quic_is_opaque() {
        let config = |protocol| {
            let group = FlowGroup { protocol, ..FlowGroup::new("up") };
            config(&Plan::new("t", Duration::from_secs(1)), &group).unwrap()
        };
        let quic = config(Protocol::Quic { app_rate: None, streams: 2 });
        let tcp = config(Protocol::Tcp { app_rate: None });
        assert_eq!((quic.opaque, tcp.opaque, quic.mss), (true, false, tcp.mss));
    }

    #[test]
    fn what_is_said_is_done() {
        let mut tcp = reno();
        for (name, n) in [
            ("mss", 1000),
            ("rwnd", 9999),
            ("delayed_ack", 1),
            ("quick_acks", 3),
            ("initial_window", 4),
            ("initial_ssthresh", 64),
            ("tso_segments", 8),
        ] {
            tcp.set(name, Value::Number(n));
        }
        for (name, on) in [
            ("ecn", true),
            ("push_acks", false),
            ("timestamps", false),
            ("abc", false),
            ("hystart", false),
            ("fast_convergence", false),
            ("pacing", true),
        ] {
            tcp.set(name, Value::Switch(on));
        }
        tcp.set("delayed_ack_timer", Value::Time(Duration::from_millis(200)));
        tcp.set("min_rto", Value::Time(Duration::from_secs(1)));
        let c = with(tcp).unwrap();
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
        let error = with(Tcp::of("vegas")).unwrap_err();
        assert!(
            error.starts_with("flow \"up\": `cc`: the simulator has no \"vegas\"; it has `reno`"),
            "{error}"
        );
        assert!(error.ends_with("`tahoe`, `newreno`"), "{error}");
    }

    #[test]
    fn a_cubic_brings_its_own_hystart() {
        let of = |cc: &str, cubic: Option<CubicRules>, hystart: Option<bool>| {
            let mut tcp = Tcp::of(cc);
            let name = |rules| if rules == CubicRules::Linux { "linux" } else { "rfc9438" };
            cubic.into_iter().for_each(|rules| tcp.set("cubic", Value::Name(name(rules))));
            hystart.into_iter().for_each(|on| tcp.set("hystart", Value::Switch(on)));
            let o = with(tcp).unwrap().cc_options;
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
