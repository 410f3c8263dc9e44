//! The TCP settings that an experiment may name. A row contains everything about a setting except its line in
//! the manual: the values that it accepts, its description in words, and the part of a simulated connection's
//! configuration that it sets.

use super::{Tcp, Value};
use weir_core::time::Duration;
use weir_sim::cc::{CubicRules, Hystart, Rules};
use weir_sim::tcp::{MinRto, Recovery, TcpConfig};

/// A setting, as a key of `[tcp]` and of `[[flow]]`.
pub struct TcpSetting {
    /// Key of the setting.
    pub name: &'static str,
    /// Accepted values.
    pub accepts: Accepts,
    /// Words before a number or a time, or for the feature that is switched on.
    words: &'static str,
    /// True if only simulated hosts have this setting. Linux has it only system-wide, or not at all.
    pub sim_only: bool,
    effect: Effect,
}

/// Accepted values of a setting.
pub enum Accepts {
    /// On or off.
    Switch,
    /// A number within these limits, inclusive.
    Number(u64, u64),
    /// A receive window in bytes (RFC 7323), at least 2048.
    Window,
    /// A time within these limits, inclusive.
    Time(Duration, Duration),
    /// One of these names, each with its description in words.
    Name(&'static [(&'static str, &'static str)]),
}

/// Limits of a receive window in bytes.
pub const WINDOWS: (u64, u64) = (2048, 1_073_725_440);

/// Effect of a setting on a connection.
enum Effect {
    Switch(fn(&mut TcpConfig) -> &mut bool),
    Number(fn(&mut TcpConfig) -> &mut u32),
    Bytes(fn(&mut TcpConfig) -> &mut u64),
    Time(fn(&mut TcpConfig) -> &mut Duration),
    /// Effect that is more than one field, or that depends on other settings.
    Own {
        set: fn(&mut TcpConfig, Value, &Tcp),
        /// Returns the value in force; `None` if there is none to report.
        in_force: fn(&TcpConfig, &Tcp) -> Option<Value>,
    },
}

pub(super) const RECOVERY: &str = "recovery";
/// Key of Fast Open.
pub(super) const FAST_OPEN: &str = "fast_open";
const CUBIC: &str = "cubic";
const CHIRP: &str = "chirp";
const HYSTART: &str = "hystart";
const FAST_CONVERGENCE: &str = "fast_convergence";

/// Names of the two variants of CUBIC.
const CUBICS: [(&str, CubicRules); 2] = [("rfc9438", CubicRules::Rfc9438), ("linux", CubicRules::Linux)];

use Accepts::{Name, Number, Switch, Time, Window};

/// All settings except the congestion control, in the order of files.
pub static TCP_SETTINGS: &[TcpSetting] = &[
    // The minimum is 88 because Linux refuses less (TCP_MIN_MSS). The maximum of 65,495 is an IP packet
    // without its two headers.
    TcpSetting::new(
        "mss",
        Number(88, 65_495),
        "MSS",
        Effect::Own {
            set: |c, v, _| c.mss = v.number() as u16,
            in_force: |c, _| Some(Value::Number(c.mss.into())),
        },
    )
    .in_both_worlds(),
    TcpSetting::new("rwnd", Window, "receive window", Effect::Bytes(|c| &mut c.receive_window))
        .in_both_worlds(),
    // In the lab this is a setting of hosts, so all flows must agree. So are `recovery` and `tso_segments`.
    TcpSetting::new("ecn", Switch, "ECN", Effect::Switch(|c| &mut c.ecn)).in_both_worlds(),
    TcpSetting::new("l4s", Switch, "L4S", Effect::Switch(|c| &mut c.l4s)),
    TcpSetting::new(FAST_OPEN, Switch, "Fast Open", Effect::Switch(|c| &mut c.fast_open)).in_both_worlds(),
    TcpSetting::new(
        "delayed_ack",
        Number(1, 64),
        "segments for each ACK:",
        Effect::Number(|c| &mut c.delayed_ack),
    ),
    // RFC 1122 section 4.2.3.2 allows less than half a second.
    TcpSetting::new(
        "delayed_ack_timer",
        Time(Duration::from_micros(1), Duration::from_secs(1)),
        "ACKs delayed at most",
        Effect::Time(|c| &mut c.delayed_ack_timer),
    ),
    TcpSetting::new(
        "quick_acks",
        Number(0, 65_535),
        "segments acknowledged at once at first:",
        Effect::Number(|c| &mut c.quick_acks),
    ),
    TcpSetting::new("push_acks", Switch, "ACKs at once for PSH", Effect::Switch(|c| &mut c.push_acks)),
    TcpSetting::new(
        "initial_window",
        Number(1, 1000),
        "initial window",
        Effect::Number(|c| &mut c.initial_window),
    ),
    // The setting is in segments; the connection's value is in bytes.
    TcpSetting::new(
        "initial_ssthresh",
        Number(2, 1_000_000),
        "initial ssthresh",
        Effect::Own {
            set: |c, v, _| c.initial_ssthresh = Some(v.number() * u64::from(c.mss)),
            in_force: |c, _| c.initial_ssthresh.map(|bytes| Value::Number(bytes / u64::from(c.mss))),
        },
    ),
    TcpSetting::new(
        RECOVERY,
        Name(&[
            ("rack", "rack recovery"),
            ("sack", "sack recovery"),
            ("linux", "recovery of Linux without SACK"),
            ("newreno", "newreno recovery"),
            ("reno", "reno recovery"),
            ("ns2-reno", "reno recovery of ns-2"),
            ("tahoe", "tahoe recovery"),
            ("ns2-tahoe", "tahoe recovery of ns-2"),
        ]),
        "",
        Effect::Own {
            set: |c, v, _| c.recovery = chosen(&Recovery::ALL, v),
            in_force: |c, _| Some(Value::Name(name(&Recovery::ALL, c.recovery))),
        },
    )
    .in_both_worlds(),
    TcpSetting::new("timestamps", Switch, "timestamps", Effect::Switch(|c| &mut c.timestamps)),
    // A minimum in a file bounds the whole time-out (RFC 6298). Linux's default bounds only the variance.
    TcpSetting::new(
        "min_rto",
        Time(Duration::from_micros(10), Duration::from_secs(60)),
        "RTO at least",
        Effect::Own {
            set: |c, v, _| c.min_rto = MinRto::Total(v.time()),
            in_force: |c, _| match c.min_rto {
                MinRto::Total(time) => Some(Value::Time(time)),
                MinRto::Variance(_) => None,
            },
        },
    ),
    TcpSetting::new(
        "clock",
        Time(Duration::from_nanos(1), Duration::from_secs(1)),
        "times counted in ticks of",
        Effect::Own {
            set: |c, v, _| c.clock = v.time(),
            in_force: |c, _| (c.clock > Duration::from_nanos(1)).then_some(Value::Time(c.clock)),
        },
    ),
    TcpSetting::new("abc", Switch, "byte counting", Effect::Switch(|c| &mut c.cc_options.abc)),
    TcpSetting::new(
        HYSTART,
        Switch,
        "HyStart",
        Effect::Own {
            set: |c, v, tcp| c.cc_options.hystart = Some(hystart(v.switch(), tcp)),
            in_force: |_, tcp| tcp.get(HYSTART),
        },
    ),
    TcpSetting::new(
        CUBIC,
        Name(&[("rfc9438", "CUBIC of RFC 9438"), ("linux", "CUBIC of Linux")]),
        "",
        Effect::Own {
            set: |c, v, _| c.cc_options.cubic = chosen(&CUBICS, v),
            in_force: |c, tcp| {
                let rules = Value::Name(name(&CUBICS, c.cc_options.cubic));
                (tcp.algorithm() == "cubic").then_some(rules)
            },
        },
    )
    .in_both_worlds(),
    TcpSetting::new(
        CHIRP,
        Name(&[
            ("adaptive", "adaptive chirping"),
            ("published", "chirping as published"),
            ("spread", "chirps spread over their round"),
            ("fixed", "chirping with a fixed gain and geometry"),
            ("plain", "chirping with gaps as sent"),
            ("bursts", "chirping after two bursts"),
            ("unmarked", "chirping without regard to marks"),
            ("unstretched", "chirps as ever, whatever ACKs cover"),
            ("fragile", "chirping until the first loss"),
            ("once", "chirping that marks do not bring back"),
            ("no-restart", "chirping that idleness does not bring back"),
            ("never-again", "chirping that nothing brings back"),
            ("brief", "chirping in rounds of half a round trip"),
            ("hasty", "chirping that fills the path at once"),
        ]),
        "",
        Effect::Own {
            set: |c, v, _| c.cc_options.chirp = chosen(&Rules::ALL, v),
            in_force: |c, tcp| {
                let rules = Value::Name(name(&Rules::ALL, c.cc_options.chirp));
                (tcp.algorithm() == "chirp").then_some(rules)
            },
        },
    ),
    TcpSetting::new(
        FAST_CONVERGENCE,
        Switch,
        "fast convergence",
        Effect::Own {
            set: |c, v, _| c.cc_options.fast_convergence = v.switch(),
            in_force: |_, tcp| tcp.get(FAST_CONVERGENCE),
        },
    ),
    TcpSetting::new("pacing", Switch, "pacing", Effect::Switch(|c| &mut c.pacing)),
    TcpSetting::new("nagle", Switch, "Nagle's algorithm", Effect::Switch(|c| &mut c.nagle)).in_both_worlds(),
    TcpSetting::new(
        "tso_segments",
        Number(1, 64),
        "segments sent back to back:",
        Effect::Number(|c| &mut c.tso_segments),
    )
    .in_both_worlds(),
    TcpSetting::new("opaque", Switch, "disguise as datagrams", Effect::Switch(|c| &mut c.opaque)),
];

impl TcpSetting {
    const fn new(name: &'static str, accepts: Accepts, words: &'static str, effect: Effect) -> TcpSetting {
        TcpSetting { name, accepts, words, sim_only: true, effect }
    }

    const fn in_both_worlds(self) -> TcpSetting {
        TcpSetting { sim_only: false, ..self }
    }

    /// Returns a value of the setting in words.
    pub fn words(&self, value: Value) -> String {
        let words = self.words;
        match (&self.accepts, value) {
            (Name(names), Value::Name(name)) => (*chosen(names, Value::Name(name))).to_string(),
            (_, Value::Switch(on)) => format!("{}{words}", if on { "" } else { "no " }),
            _ => format!("{words} {value}"),
        }
    }

    /// Applies this value to a connection. `tcp` holds all named settings.
    pub(super) fn apply(&self, config: &mut TcpConfig, value: Value, tcp: &Tcp) {
        match &self.effect {
            Effect::Switch(field) => *field(config) = value.switch(),
            Effect::Number(field) => *field(config) = value.number() as u32,
            Effect::Bytes(field) => *field(config) = value.number(),
            Effect::Time(field) => *field(config) = value.time(),
            Effect::Own { set, .. } => set(config, value, tcp),
        }
    }

    /// Returns the value in force in a connection with this configuration, made from `tcp`.
    pub fn in_force(&self, config: &TcpConfig, tcp: &Tcp) -> Option<Value> {
        let mut config = config.clone();
        match &self.effect {
            Effect::Switch(field) => Some(Value::Switch(*field(&mut config))),
            Effect::Number(field) => Some(Value::Number((*field(&mut config)).into())),
            Effect::Bytes(field) => Some(Value::Number(*field(&mut config))),
            Effect::Time(field) => Some(Value::Time(*field(&mut config))),
            Effect::Own { in_force, .. } => in_force(&config, tcp),
        }
    }
}

impl Accepts {
    /// Returns whether this value is accepted.
    pub fn contains(&self, value: Value) -> bool {
        match (self, value) {
            (Switch, Value::Switch(_)) => true,
            (&Number(min, max), Value::Number(n)) => (min..=max).contains(&n),
            (Window, Value::Number(n)) => (WINDOWS.0..=WINDOWS.1).contains(&n),
            (&Time(min, max), Value::Time(time)) => (min..=max).contains(&time),
            (Name(names), Value::Name(name)) => names.iter().any(|(n, _)| *n == name),
            _ => false,
        }
    }
}

/// Returns the variant of HyStart. Linux's CUBIC has the original one, from before HyStart++.
fn hystart(on: bool, tcp: &Tcp) -> Hystart {
    let linux = tcp.algorithm() == "cubic" && tcp.get(CUBIC) != Some(Value::Name("rfc9438"));
    match (on, linux) {
        (false, _) => Hystart::Off,
        (true, true) => Hystart::Classic,
        (true, false) => Hystart::PlusPlus,
    }
}

/// Returns the choice of a name.
pub(super) fn chosen<T: Copy>(names: &[(&str, T)], value: Value) -> T {
    let Value::Name(named) = value else { unreachable!("{}", super::OF_ITS_KIND) };
    names.iter().find(|(name, _)| *name == named).map(|(_, chosen)| *chosen).expect(super::OF_ITS_KIND)
}

/// Returns the name of a choice.
pub(super) fn name<T: PartialEq>(names: &[(&'static str, T)], choice: T) -> &'static str {
    names.iter().find(|(_, other)| *other == choice).map_or("", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_simulator() {
        let named = |key: &str| match &TCP_SETTINGS.iter().find(|s| s.name == key).unwrap().accepts {
            Name(names) => names.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            _ => panic!("{key} has no names"),
        };
        assert_eq!(named(RECOVERY), Recovery::ALL.map(|(name, _)| name));
        assert_eq!(named(CUBIC), CUBICS.map(|(name, _)| name));
        assert_eq!(named(CHIRP), Rules::ALL.map(|(name, _)| name));
    }

    #[test]
    #[should_panic(expected = "no setting mss = 87")]
    fn a_value_that_is_not_accepted_is_a_mistake_of_the_caller() {
        Tcp::default().set("mss", Value::Number(87));
    }
}
