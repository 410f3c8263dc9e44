//! Each key of a table sets the field that it says. Expected values are those of the units, by hand.

use super::super::{experiment, gateway, wan, Source};
use crate::experiment::plan::{self, Accepts, TCP_SETTINGS, WINDOWS};
use serde::Serialize;
use serde_json::{json, Value};
use weir_core::ack::Counts;
use weir_core::gateway::Config;
use weir_core::packet::{Cells, LinkLayer};

/// Returns the fields of `after` that differ from `before`, by their names.
fn changed(before: &impl Serialize, after: &impl Serialize) -> Value {
    fn within(before: Value, after: Value) -> Value {
        match (before, after) {
            (Value::Object(mut before), Value::Object(after)) if before.keys().eq(after.keys()) => {
                let pairs = after.into_iter().map(|(key, value)| (before.remove(&key), key, value));
                let differ = pairs.filter(|(before, _, value)| before.as_ref() != Some(value));
                differ.map(|(before, key, value)| (key, within(before.unwrap_or_default(), value))).collect()
            }
            (_, after) => after,
        }
    }
    let value = |of: Result<Value, _>| of.unwrap_or_else(|e: serde_json::Error| panic!("{e}"));
    within(value(serde_json::to_value(before)), value(serde_json::to_value(after)))
}

fn gateway_of(text: &str) -> gateway::GatewayFile {
    gateway::parse(&Source::new("g.toml", text)).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Keys, what goes before them, and the fields that they change.
fn hold(read: impl Fn(&str) -> Value, rows: &[(&str, &str, Value)]) {
    for (base, keys, change) in rows {
        let (before, after) = (read(base), read(&format!("{base}\n{keys}")));
        assert_eq!(changed(&before, &after), *change, "{keys}");
    }
}

#[test]
fn keys_of_links() {
    let read = |keys: &str| {
        let text = format!("[ports]\nlan = 'a'\nwan = 'b'\n[path.wan.out]\n{keys}\n");
        let file = wan::parse(&Source::new("w.toml", text)).unwrap_or_else(|e| panic!("{e}"));
        serde_json::to_value(file.path.wan_out).unwrap()
    };
    const R: &str = "rate = '10Mbit'";
    const CODEL: &str = "rate = '10Mbit'\naqm = 'codel'";
    const FQ: &str = "rate = '10Mbit'\naqm = 'fq-codel'";
    const RED: &str = "rate = '10Mbit'\naqm = 'red'";
    const DUAL: &str = "rate = '10Mbit'\naqm = 'dualpi2'";
    hold(
        read,
        &[
            ("", R, json!({"rate": 10_000_000})),
            (R, "queue = '7p'", json!({"queue": {"Packets": 7}})),
            (R, "queue = '64KiB'", json!({"queue": {"Bytes": 65_536}})),
            (R, "mark = '5p'", json!({"mark": {"Packets": 5}})),
            (CODEL, "target = '7ms'", json!({"aqm": {"Codel": {"target": 7_000_000}}})),
            (CODEL, "interval = '90ms'", json!({"aqm": {"Codel": {"interval": 90_000_000}}})),
            (CODEL, "ecn = true", json!({"aqm": {"Codel": {"ecn": true}}})),
            (FQ, "flows = 64", json!({"aqm": {"FqCodel": {"flows": 64}}})),
            (FQ, "quantum = 300", json!({"aqm": {"FqCodel": {"quantum": 300}}})),
            // A full frame has 1500 bytes and the overhead of 14.
            (RED, "red_min = '4p'\nred_max = '30p'", json!({"aqm": {"Red": {"min": 6056, "max": 45_420}}})),
            (RED, "red_p = '20%'", json!({"aqm": {"Red": {"max_p": 200_000_000_000u64}}})),
            (RED, "red_weight = 4", json!({"aqm": {"Red": {"weight": 4}}})),
            (DUAL, "step = '2ms'", json!({"aqm": {"DualPi2": {"step": 2_000_000, "range": 0}}})),
            (DUAL, "coupling = 3", json!({"aqm": {"DualPi2": {"coupling": 3}}})),
            (
                R,
                "ack_filter = 'classical'",
                json!({"aqm": {"AckFilter": serde_json::to_value(weir_core::queue::ack_filter::Params {
                    policy: weir_core::queue::ack_filter::Policy::Classical,
                    service: weir_core::queue::ack_filter::Service::Fifo,
                    ..weir_core::queue::ack_filter::Params::default()
                }).unwrap()}}),
            ),
            ("", "overhead = 38", json!({"overhead": 38})),
            ("", "cells = 'atm'", json!({"cells": "Atm"})),
            (R, "burst = '3kB'", json!({"burst": 3000})),
            ("rate = '10Mbit'\nburst = '3kB'", "timer = '1ms'", json!({"timer": 1_000_000})),
            ("", "delay = '20ms'", json!({"delay": 20_000_000})),
            ("", "jitter = '1ms'", json!({"jitter": {"by": 1_000_000}})),
            ("jitter = '1ms'", "jitter_law = 'pareto'", json!({"jitter": {"law": "Pareto"}})),
            ("jitter = '1ms'", "jitter_order = 'free'", json!({"jitter": {"reorders": true}})),
            (
                "",
                "reorder = '1%'\nreorder_by = '5ms'",
                json!({"reorder": {"trillionths": 10_000_000_000u64, "by": 5_000_000}}),
            ),
            ("", "loss = 0.25", json!({"loss": {"Random": {"trillionths": 250_000_000_000u64}}})),
            ("", "loss_every = 9", json!({"loss": {"Periodic": {"n": 9}}})),
            (
                "loss_p = 0.5\nloss_r = 0.25",
                "loss_bad = 0.125\nloss_good = 1",
                json!({"loss": {"Burst": {"bad": 125_000_000_000u64, "good": 1_000_000_000_000u64}}}),
            ),
            (
                "",
                "loss_p = 0.5\nloss_r = 0.25",
                json!({"loss": {"Burst": {
                    "enter": 500_000_000_000u64, "leave": 250_000_000_000u64, "bad": 1_000_000_000_000u64, "good": 0
                }}}),
            ),
            ("", "duplicate = 0.5", json!({"damage": {"duplicate": 500_000_000_000u64}})),
            ("", "corrupt = 0.5", json!({"damage": {"corrupt": 500_000_000_000u64}})),
        ],
    );
}

#[test]
fn keys_of_policies_and_of_rules() {
    let read = |keys: &str| {
        let class = format!("name = 'a'\nack = {{ preset = 'ack-shaper', flow_rate = '10Mbit'{keys} }}");
        serde_json::to_value(gateway_of(&format!("ports.dev = 'e'\n[[gateway.class]]\n{class}")).gateway)
    };
    let law = |change: Value| json!({"release": {"Rate": change}});
    for (base, keys, change) in [
        ("", "counts = 'wire'", law(json!({"counts": "Wire"}))),
        ("", "meter = 'acked'", law(json!({"meter": "Acked"}))),
        ("", "period = '5ms'", law(json!({"period": {"Fixed": 5_000_000}}))),
        ("", "period_min = '2ms'", law(json!({"period": {"Auto": {"min": 2_000_000}}}))),
        ("", "period_max = '30ms'", law(json!({"period": {"Auto": {"max": 30_000_000}}}))),
        ("", "slow_start = 'ignore'", law(json!({"slow_start": "Ignore"}))),
        ("", "slow_start_enter = 2", law(json!({"slow_start": {"Detect": {"enter_milli": 2000}}}))),
        ("", "slow_start_exit = 0.5", law(json!({"slow_start": {"Detect": {"exit_milli": 500}}}))),
        ("", "catch_up = '7ms'", law(json!({"catch_up": 7_000_000}))),
        ("", "standing_delay = '50ms'", json!({"window": {"Size": {"standing_delay": 50_000_000}}})),
        ("", "window = 'keep'", json!({"window": "Keep"})),
        (", action = 'police'", "burst = '10kB'", law(json!({"action": {"Police": {"burst": 10_000}}}))),
    ] {
        let (before, after) = (read(base).unwrap(), read(&format!("{base}, {keys}")).unwrap());
        let (before, after) = (&before["classes"][0]["ack"], &after["classes"][0]["ack"]);
        assert_eq!(changed(before, after), change, "{keys}");
    }
    let rule = |keys: &str| {
        let class = "name = 'a'\nack = { preset = 'ack-shaper', flow_rate = '1Mbit' }";
        let text = format!("ports.dev = 'e'\n[[gateway.class]]\n{class}\nmatch = [{{ vlan = 7{keys} }}]");
        gateway_of(&text).gateway.classes[0].matches[0].clone()
    };
    for (keys, change) in [
        ("protocol = 'tcp'", json!({"protocol": 6})),
        ("src = '10.1.0.0/16'", json!({"src": {"addr": "10.1.0.0", "len": 16}})),
        ("dst = '2001:db8::1'", json!({"dst": {"addr": "2001:db8::1", "len": 128}})),
        ("src_port = 80", json!({"src_port": {"start": 80, "end": 80}})),
        ("dst_port = '80-90'", json!({"dst_port": {"start": 80, "end": 90}})),
    ] {
        assert_eq!(changed(&rule(""), &rule(&format!(", {keys}"))), change, "{keys}");
    }
}

#[test]
fn keys_of_gateways_and_classes() {
    const POLICY: &str = "[[gateway.class]]\nname = 'a'\nrate = '9Mbit'";
    let all = |ports: &str, keys: &str, class: &str| {
        gateway_of(&format!("[ports]\ndev = 'e'\n{ports}\n[gateway]\n{keys}\n{POLICY}\n{class}"))
    };
    let plain = all("", "", "");
    for (keys, change) in [
        ("wait = '9s'", json!({"wait": 9_000_000_000u64})),
        ("priority = 7", json!({"priority": 7})),
        ("cpu = 1", json!({"cpu": 1})),
        ("spin = '5us'", json!({"spin": 5_000})),
        ("batch_delay = '1ms'", json!({"batch_delay": 1_000_000})),
        ("engines = 1", json!({"engines": 1})),
    ] {
        assert_eq!(changed(&plain.driving, &all(keys, "", "").driving), change, "{keys}");
    }
    for (keys, change) in [
        ("max_flows = 9", json!({"max_flows": 9})),
        ("idle_timeout = '8s'", json!({"idle_timeout": 8_000_000_000u64})),
        ("assumed_rtt = '8ms'", json!({"assumed_rtt": 8_000_000})),
        ("line = '1Gbit'", json!({"port": {"line": 1_000_000_000}})),
        ("filler = '01:80:c2:00:00:05'", json!({"port": {"filler": {"Reserved": 5}}})),
    ] {
        assert_eq!(changed(&plain.gateway, &all("", keys, "").gateway), change, "{keys}");
    }
    let law = |change: Value| json!({"release": {"Share": change}});
    for (keys, change) in [
        ("police = true", law(json!({"unresponsive": "Police"}))),
        ("unresponsive = 'count'", law(json!({"unresponsive": "Count"}))),
        ("unresponsive = 'queue'", law(json!({"unresponsive": "Queue"}))),
        ("unresponsive = 'fair'", law(json!({"unresponsive": {"Fair": {"burst": 100_000_000}}}))),
        (
            "unresponsive = 'fair'\nburst = '9ms'",
            law(json!({"unresponsive": {"Fair": {"burst": 9_000_000}}})),
        ),
        ("flow_max = '2Mbit'", law(json!({"flow_max": 2_000_000}))),
        ("flow_min = '1Mbit'", law(json!({"flow_min": 1_000_000}))),
        ("ack = { counts = 'ip' }", law(json!({"counts": "Ip"}))),
        ("ack = { standing_delay = '9ms' }", json!({"window": {"Size": {"standing_delay": 9_000_000}}})),
    ] {
        let with = all("", "", keys);
        assert_eq!(changed(&plain.gateway.classes[0].ack, &with.gateway.classes[0].ack), change, "{keys}");
    }
}

/// A link layer is of all rates but those that say what they count.
#[test]
fn a_link_layer_is_of_all_rates() {
    let read = |keys: &str| {
        let class = |name: &str, keys: &str| {
            format!("[[gateway.class]]\nname = '{name}'\nmatch = [{{ src = '10.0.0.{name}' }}]\n{keys}\n")
        };
        let classes = [
            class("1", "rate = '1Mbit'"),
            class("2", "rate = '1Mbit'\nack = { counts = 'ip' }"),
            class("3", "ack = { preset = 'ack-shaper', flow_rate = '1Mbit' }"),
            class("4", "rate = '1Mbit'\nack = { preset = 'tcr' }"),
            class("5", "rate = '1Mbit'\nqueue = '9p'\nack = { preset = 'postack' }"),
        ];
        gateway_of(&format!("ports.dev = 'e'\n[gateway]\n{keys}\n{}", classes.concat())).gateway
    };
    let counts = |gateway: &Config| -> Vec<Counts> {
        gateway.classes.iter().filter_map(|class| Some(class.ack?.release.counts())).collect()
    };
    let [payload, ip] = [Counts::Payload, Counts::Ip];
    for raw in ["", "link_layer = 'raw'"] {
        assert_eq!((counts(&read(raw)), read(raw).link_layer), (vec![payload, ip, payload, ip, ip], None));
    }
    for (keys, overhead, mpu, cells) in [
        ("link_layer = 'docsis'", 18, 64, Cells::None),
        ("link_layer = 'pppoe-ptm ether-vlan'", 34, 0, Cells::Ptm),
        ("link_layer = { overhead = -64 }", -64, 0, Cells::None),
        ("link_layer = { overhead = 256, mpu = 256, cells = 'atm' }", 256, 256, Cells::Atm),
    ] {
        let (layer, gateway) = (LinkLayer { overhead, mpu, cells }, read(keys));
        let link = Counts::Link(layer);
        assert_eq!((counts(&gateway), gateway.link_layer), (vec![link, ip, link, link, link], Some(layer)));
    }
}

/// Keys of classes with queues, beside those of the test of whole files.
#[test]
fn keys_of_shares_and_pacing() {
    let share = |keys: &str| {
        let text = format!("ports.dev = 'e'\n[gateway]\nline = '1Gbit'\n[[gateway.class]]\nname = 'a'\nparent = 'b'\n{keys}\n[[gateway.class]]\nname = 'b'\nrate = '9Mbit'");
        gateway_of(&text).gateway.classes[0].share.unwrap()
    };
    const Q: &str = "queue = '9p'";
    for (base, keys, change) in [
        (Q, "rate = '1Mbit'", json!({"rate": 1_000_000})),
        (Q, "ceil = '1Mbit'", json!({"ceil": 1_000_000})),
        (Q, "priority = 7", json!({"priority": 7})),
        (Q, "weight = 9", json!({"weight": 9})),
        ("", Q, json!({"queue": {"limit": {"Packets": 9}, "kind": "Fifo", "tins": null}})),
        (Q, "tins = 'diffserv3'", json!({"queue": {"tins": "Three"}})),
        (Q, "tins = 'diffserv4'", json!({"queue": {"tins": "Four"}})),
        (Q, "tins = 'besteffort'", json!({})),
        (
            "queue = '9p'\nrate = '2Mbit'\ndiscipline = 'pfq'",
            "flow_min = '1Mbit'\nadmission = 'reset'",
            json!({"flow_min": {"rate": 1_000_000, "refusal": "Reset"}}),
        ),
    ] {
        let before = if base.is_empty() { weir_core::class::Spec::of(Some(1)) } else { share(base) };
        assert_eq!(changed(&before, &share(&format!("{base}\n{keys}"))), change, "{keys}");
    }
    let paced = |keys: &str| {
        let text = format!("ports.dev = 'e'\n[gateway]\nline = '1Gbit'\n[[gateway.class]]\nname = 'a'\nqueue = '9p'\npace = 'gap'\n{keys}");
        gateway_of(&text).gateway.classes[0].share.unwrap().pace.unwrap()
    };
    let plain = paced("rate = '1Mbit'");
    assert_eq!(changed(&plain, &paced("rate = '25%'")), json!({"target": {"Share": 250_000}}));
    assert_eq!(changed(&plain, &paced("rate = 'window'")), json!({"target": "Window"}));
    assert_eq!(changed(&plain, &paced("rate = '1Mbit'\ncounts = 'wire'")), json!({"counts": "Wire"}));
}

/// Each setting of TCP, with the ends of its range or each of its names.
#[test]
fn settings_of_tcp() {
    for setting in TCP_SETTINGS {
        let texts: Vec<(String, plan::Value)> = match &setting.accepts {
            Accepts::Switch => [true, false].map(|on| (on.to_string(), plan::Value::Switch(on))).into(),
            Accepts::Number(a, b) => [a, b].map(|n| (n.to_string(), plan::Value::Number(*n))).into(),
            Accepts::Window => [WINDOWS.0, WINDOWS.1].map(|n| (n.to_string(), plan::Value::Number(n))).into(),
            Accepts::Time(a, b) => [a, b].map(|t| (format!("\"{t}\""), plan::Value::Time(*t))).into(),
            Accepts::Name(names) => {
                names.iter().map(|(name, _)| (format!("\"{name}\""), plan::Value::Name(name))).collect()
            }
        };
        for (text, value) in texts {
            let keys = format!("[tcp]\n{} = {text}", setting.name);
            let file =
                format!("name = 'x'\nduration = '1s'\npath.rtt = '1ms'\nflow = [{{ id = 'a' }}]\n{keys}");
            let read = experiment::parse(&Source::new("t.toml", file)).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(read.plan.groups[0].tcp.get(setting.name), Some(value), "{keys}");
        }
    }
}
