//! Metrics of a running gateway for Prometheus: the report's counters under its conventions of names, in base
//! units. Sites, classes and the link are labels; customers are on request, flows and addresses never.

use crate::result::running::GatewayReport;
use crate::result::traffic::{Kind, Load, Traffic};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{prometheus_text, text, DescriptorEncoder, MetricEncoder};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

/// Forms of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus's text format 0.0.4, which files of the node exporter have.
    Prometheus,
}

/// Content of a scrape.
#[derive(Debug, Default)]
pub struct Scrape {
    /// Report of the gateway; `None` if it does not answer.
    pub report: Option<GatewayReport>,
    /// True if customers have series.
    pub customers: bool,
}

impl Scrape {
    /// Formats the scrape.
    pub fn format(self, form: Form) -> String {
        let mut registry = Registry::with_prefix("weir");
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        let written = match form {
            Form::OpenMetrics => text::encode(&mut text, &registry),
            Form::Prometheus => prometheus_text::encode(&mut text, &registry),
        };
        // A string takes all that is written to it.
        debug_assert!(written.is_ok());
        text
    }

    fn has(&self, kind: Kind) -> bool {
        match kind {
            Kind::Link | Kind::Site | Kind::Class | Kind::Unlisted => true,
            Kind::Customer => self.customers,
            Kind::Address => false,
        }
    }
}

/// Value of a metric.
enum Value {
    Count(u64),
    Gauge(f64),
}

/// A metric of each row of traffic.
struct OfTraffic {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    value: fn(&Load) -> Value,
}

/// Bytes per second of bits per second.
fn bytes(bps: u64) -> f64 {
    bps as f64 / 8.0
}

/// Seconds of microseconds.
fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

static OF_TRAFFIC: [OfTraffic; 19] = [
    OfTraffic {
        name: "traffic",
        help: "Bytes that passed, as the rate counts them",
        unit: Some(Unit::Bytes),
        value: |load| Value::Count(load.bytes),
    },
    OfTraffic {
        name: "traffic_packets",
        help: "Packets that passed, of TCP those with payload",
        unit: None,
        value: |load| Value::Count(load.packets),
    },
    OfTraffic {
        name: "traffic_tcp_controlled",
        help: "Bytes of TCP whose ACKs are controlled",
        unit: Some(Unit::Bytes),
        value: |load| Value::Count(load.tcp_controlled_bytes),
    },
    OfTraffic {
        name: "traffic_tcp_passed",
        help: "Bytes of TCP whose ACKs pass as they come",
        unit: Some(Unit::Bytes),
        value: |load| Value::Count(load.tcp_passed_bytes),
    },
    OfTraffic {
        name: "traffic_unresponsive",
        help: "Bytes that ACKs cannot slow",
        unit: Some(Unit::Bytes),
        value: |load| Value::Count(load.unresponsive_bytes),
    },
    OfTraffic {
        name: "traffic_quic",
        help: "Bytes of these that are QUIC",
        unit: Some(Unit::Bytes),
        value: |load| Value::Count(load.quic_bytes),
    },
    OfTraffic {
        name: "traffic_queued",
        help: "Bytes that waited in a queue, which does not tell TCP from others",
        unit: Some(Unit::Bytes),
        value: |load| Value::Count(load.queued_bytes),
    },
    OfTraffic {
        name: "traffic_dropped_packets",
        help: "Packets dropped by a bound, a policer or a queue",
        unit: None,
        value: |load| Value::Count(load.dropped_packets),
    },
    OfTraffic {
        name: "traffic_dropped",
        help: "Bytes of packets dropped by a bound, a policer or a queue",
        unit: Some(Unit::Bytes),
        value: |load| Value::Count(load.dropped_bytes),
    },
    OfTraffic {
        name: "traffic_marked_packets",
        help: "Packets marked with Congestion Experienced",
        unit: None,
        value: |load| Value::Count(load.marked_packets),
    },
    OfTraffic {
        name: "traffic_limit_bytes_per_second",
        help: "Rate that the traffic may have, 0 if it has none",
        unit: None,
        value: |load| Value::Gauge(bytes(load.target_bps)),
    },
    OfTraffic {
        name: "traffic_active_flows",
        help: "Flows with controlled ACKs that are active now",
        unit: None,
        value: |load| Value::Gauge(load.active_flows as f64),
    },
    OfTraffic {
        name: "traffic_held",
        help: "Bytes acknowledged by receivers and held back now",
        unit: Some(Unit::Bytes),
        value: |load| Value::Gauge(load.held_bytes as f64),
    },
    OfTraffic {
        name: "traffic_retransmitted_packets",
        help: "Packets of controlled TCP that were sent again",
        unit: None,
        value: |load| Value::Count(load.retransmitted_packets),
    },
    OfTraffic {
        name: "traffic_reordered_packets",
        help: "Packets of controlled TCP that others overtook",
        unit: None,
        value: |load| Value::Count(load.reordered_packets),
    },
    OfTraffic {
        name: "traffic_rtt_wan_median",
        help: "Median round-trip time to the side of the WAN in the last minutes, 0 without samples",
        unit: Some(Unit::Seconds),
        value: |load| Value::Gauge(seconds(load.rtt_wan_us.p50)),
    },
    OfTraffic {
        name: "traffic_rtt_wan_p99",
        help: "99th percentile of round-trip times to the side of the WAN",
        unit: Some(Unit::Seconds),
        value: |load| Value::Gauge(seconds(load.rtt_wan_us.p99)),
    },
    OfTraffic {
        name: "traffic_rtt_lan_median",
        help: "Median round-trip time to the side of the LAN in the last minutes, 0 without samples",
        unit: Some(Unit::Seconds),
        value: |load| Value::Gauge(seconds(load.rtt_lan_us.p50)),
    },
    OfTraffic {
        name: "traffic_rtt_lan_p99",
        help: "99th percentile of round-trip times to the side of the LAN",
        unit: Some(Unit::Seconds),
        value: |load| Value::Gauge(seconds(load.rtt_lan_us.p99)),
    },
];

/// Metrics of the gateway, beside those of hooks and ends of flows.
fn of_gateway(report: &GatewayReport) -> [(&'static str, &'static str, Option<Unit>, Value); 8] {
    let unseen = report.steering.unseen_bytes.iter().sum();
    let memory = report.gateway.memory_bytes.unwrap_or(0) as f64;
    let flag = |is_set: bool| Value::Gauge(if is_set { 1.0 } else { 0.0 });
    let (degraded, observes) = (flag(report.degraded.is_some()), flag(report.observes));
    [
        ("degraded", "1 if something keeps Weir from its work", None, degraded),
        ("observes", "1 if every frame passes as it came, and drops are what would be", None, observes),
        ("uptime", "Time since the gateway was set up", Some(Unit::Seconds), Value::Gauge(report.wall_s)),
        (
            "engine_restarts",
            "Engines that were replaced",
            None,
            Value::Count(report.steering.restarts.into()),
        ),
        ("engine_stalls", "Times that an engine was away", None, Value::Count(report.steering.resyncs)),
        ("engine_memory", "Resident memory of the engine", Some(Unit::Bytes), Value::Gauge(memory)),
        ("unseen", "Bytes that went around the hooks", Some(Unit::Bytes), Value::Count(unseen)),
        ("notes", "Rows of lists without effect", None, Value::Gauge(report.notes.count as f64)),
    ]
}

/// Series of a gateway with this many rows of traffic and no counted events or reasons.
pub fn series(rows: usize) -> usize {
    // Of the gateway: whether it is up, and the engine's processor time.
    rows * OF_TRAFFIC.len() + of_gateway(&GatewayReport::default()).len() + 2
}

fn kind_of(value: &Value) -> MetricType {
    match value {
        Value::Count(_) => MetricType::Counter,
        Value::Gauge(_) => MetricType::Gauge,
    }
}

fn put(mut encoder: MetricEncoder<'_>, value: Value) -> fmt::Result {
    use prometheus_client::encoding::EncodeMetric;
    match value {
        Value::Count(n) => ConstCounter::new(n).encode(encoder),
        Value::Gauge(v) => encoder.encode_gauge(&v),
    }
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        use prometheus_client::encoding::EncodeMetric;
        let up = ConstGauge::new(i64::from(self.report.is_some()));
        up.encode(encoder.encode_descriptor("up", "1 if the gateway answers", None, MetricType::Gauge)?)?;
        let Some(report) = &self.report else { return Ok(()) };
        for (name, help, unit, value) in of_gateway(report) {
            put(encoder.encode_descriptor(name, help, unit.as_ref(), kind_of(&value))?, value)?;
        }
        let cpu = ConstCounter::new(report.gateway.cpu_s);
        let help = "Processor time of the engine";
        cpu.encode(encoder.encode_descriptor(
            "engine_cpu",
            help,
            Some(&Unit::Seconds),
            MetricType::Counter,
        )?)?;
        let counts = [
            ("events", "Events of flows", "event", &report.events),
            ("passed_frames", "Frames that passed untouched, by reason", "reason", &report.passed),
            ("hook_packets", "Actions of the programs in the kernel", "action", &report.steering.hooks),
        ];
        for (name, help, label, counts) in counts {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            // Bytes are no packets; rows of traffic have them.
            for (key, n) in counts.iter().filter(|(key, _)| !key.contains("bytes_")) {
                put(family.encode_family(&[(label, key.as_str())])?, Value::Count(*n))?;
            }
        }
        let rows: Vec<&Traffic> = report.traffic.iter().filter(|row| self.has(row.kind)).collect();
        for OfTraffic { name, help, unit, value } in &OF_TRAFFIC {
            let kind = kind_of(&value(&Load::default()));
            let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), kind)?;
            for row in &rows {
                let labels = [
                    ("kind", row.kind.name()),
                    ("name", row.name.as_str()),
                    ("direction", row.direction.as_str()),
                ];
                put(family.encode_family(&labels)?, value(&row.load))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\"} 1\n# EOF\\<b>\u{7f}";

    fn report() -> GatewayReport {
        let load = Load { bps: 8e6, bytes: 1_000, packets: 3, target_bps: 16_000_000, ..Load::default() };
        let row = |kind, name: &str| Traffic {
            kind,
            name: name.into(),
            direction: "in".into(),
            load,
            ..Traffic::default()
        };
        let rows = [
            row(Kind::Link, "eth1"),
            row(Kind::Site, HOSTILE),
            row(Kind::Customer, "17"),
            row(Kind::Address, "10.0.0.9"),
        ];
        let mut report = GatewayReport { traffic: rows.into(), wall_s: 2.5, ..GatewayReport::default() };
        report.events.insert("evicted".into(), 4);
        report.steering.hooks.insert("taken".into(), 44);
        report.steering.hooks.insert("bytes_in".into(), 45);
        report
    }

    fn text(report: Option<GatewayReport>, customers: bool, form: Form) -> String {
        Scrape { report, customers }.format(form)
    }

    fn samples(text: &str) -> Vec<&str> {
        text.lines().filter(|line| !line.starts_with('#')).collect()
    }

    #[test]
    fn names_and_units_are_those_of_prometheus() {
        let text = text(Some(report()), true, Form::OpenMetrics);
        for line in [
            "weir_up 1",
            "weir_uptime_seconds 2.5",
            "weir_traffic_bytes_total{kind=\"link\",name=\"eth1\",direction=\"in\"} 1000",
            // 16 Mbit/s.
            "weir_traffic_limit_bytes_per_second{kind=\"customer\",name=\"17\",direction=\"in\"} 2000000.0",
            "weir_events_total{event=\"evicted\"} 4",
            "weir_hook_packets_total{action=\"taken\"} 44",
            "# UNIT weir_traffic_bytes bytes",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n") && !text.contains("bytes_in"), "{text}");
    }

    #[test]
    fn customers_are_on_request_and_addresses_never() {
        let (without, with) =
            (text(Some(report()), false, Form::OpenMetrics), text(Some(report()), true, Form::OpenMetrics));
        assert!(!without.contains("\"17\"") && with.contains("\"17\""));
        assert!(!with.contains("10.0.0.9"));
        assert_eq!(samples(&with).len() - samples(&without).len(), OF_TRAFFIC.len());
        // An event and a counter of the hooks are not among those that are known before.
        assert_eq!(samples(&with).len(), series(3) + 2);
    }

    /// The specification of OpenMetrics escapes `\`, `"` and the line feed in values of labels.
    #[test]
    fn a_hostile_name_breaks_no_line() {
        for form in [Form::OpenMetrics, Form::Prometheus] {
            let text = text(Some(report()), true, form);
            let escaped = "name=\"a\\\"} 1\\n# EOF\\\\<b>\u{7f}\"";
            assert_eq!(text.matches(escaped).count(), OF_TRAFFIC.len(), "{text}");
            assert_eq!(
                text.lines().filter(|line| *line == "# EOF").count(),
                usize::from(form == Form::OpenMetrics)
            );
            assert!(samples(&text).iter().all(|line| line.starts_with("weir_")), "{text}");
        }
    }

    /// `scripts/prometheus` puts these files through Prometheus.
    #[test]
    fn files_for_other_programs() {
        let Some(directory) = std::env::var_os("METRICS_DIR") else { return };
        for (name, form) in [("metrics.txt", Form::OpenMetrics), ("metrics.prom", Form::Prometheus)] {
            let path = std::path::Path::new(&directory).join(name);
            std::fs::write(path, text(Some(report()), true, form)).unwrap();
        }
    }

    #[test]
    fn a_gateway_that_does_not_answer_is_down() {
        assert_eq!(samples(&text(None, true, Form::OpenMetrics)), ["weir_up 0"]);
    }
}
