//! The TCP of a flow: the keys of `[tcp]`, which may all stand in a `[[flow]]` too and win there.

use super::diag::{listed, nearest};
use super::gateway;
use super::reader::{Positive, Section, Size};
use super::units::Fault;
use crate::plan::{Tcp, SHORTHANDS};
use crate::result::World;
use weir_core::time::Duration;
use weir_sim::cc::{CubicRules, CONTROLS};
use weir_sim::tcp::Recovery;

/// Keys that both worlds have.
const BOTH: [&str; 4] = ["cc", "mss", "rwnd", "cubic"];
/// Keys that only simulated hosts have; Linux has most of them for a whole system, not for a flow.
const SIMULATED: [&str; 13] = [
    "ecn",
    "delayed_ack",
    "delayed_ack_timer",
    "quick_acks",
    "initial_window",
    "initial_ssthresh",
    "recovery",
    "timestamps",
    "min_rto",
    "abc",
    "hystart",
    "pacing",
    "tso_segments",
];

/// Names of the kinds of CUBIC.
const CUBICS: [(&str, CubicRules); 2] = [("rfc9438", CubicRules::Rfc9438), ("linux", CubicRules::Linux)];

/// Every key.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    BOTH.into_iter().chain(SIMULATED)
}

/// Reads the keys from a table; what it does not say is `None`.
pub(super) fn read(s: &Section) -> Tcp {
    let tcp = Tcp {
        cc: congestion_control(s),
        // 88: Linux refuses less (TCP_MIN_MSS); 65,495: an IP packet without its two headers.
        mss: s.int("mss", 88..=65_495).map(|m| m as u16),
        rwnd: s.parsed("rwnd", |Size(n): Size| match n {
            2048..=1_073_725_440 => Ok(n),
            n => Err(Fault::bare(format!("a window of {n} bytes is not from 2048 to 1073725440 (RFC 7323)"))),
        }),
        ecn: s.get("ecn"),
        delayed_ack: number(s, "delayed_ack", 1, 64),
        // RFC 1122, 4.2.3.2 allows less than half a second.
        delayed_ack_timer: between(s, "delayed_ack_timer", Duration::from_micros(1), Duration::from_secs(1)),
        quick_acks: number(s, "quick_acks", 0, 65_535),
        initial_window: number(s, "initial_window", 1, 1000),
        initial_ssthresh: number(s, "initial_ssthresh", 2, 1_000_000),
        recovery: s.choice("recovery", &Recovery::ALL, &[]),
        timestamps: s.get("timestamps"),
        min_rto: between(s, "min_rto", Duration::from_micros(10), Duration::from_secs(60)),
        abc: s.get("abc"),
        hystart: s.get("hystart"),
        cubic: cubic(s),
        pacing: s.get("pacing"),
        tso_segments: number(s, "tso_segments", 1, 64),
    };
    for key in SIMULATED {
        s.note_only(World::Sim, key);
    }
    tcp
}

fn number(s: &Section, key: &'static str, min: u64, max: u64) -> Option<u32> {
    s.int(key, min..=max).map(|n| n as u32)
}

fn between(s: &Section, key: &'static str, min: Duration, max: Duration) -> Option<Duration> {
    s.parsed(key, |Positive(d): Positive| {
        if (min..=max).contains(&d) {
            Ok(d)
        } else {
            Err(Fault::bare(format!("{d} is not from {min} to {max}")))
        }
    })
}

/// `cubic`: the lab has Linux's only.
fn cubic(s: &Section) -> Option<CubicRules> {
    let rules = s.choice("cubic", &CUBICS, &[])?;
    if rules == CubicRules::Rfc9438 {
        let message = "CUBIC as in RFC 9438 does not exist in the lab world";
        s.note_value(World::Sim, "cubic", Fault::new(message, "the lab has cubic = \"linux\" only"));
    }
    Some(rules)
}

/// `cc`: any name that Linux may have as a module, and any that the simulator has; each world refuses
/// the names that it does not have.
fn congestion_control(s: &Section) -> Option<String> {
    let cc = s.parsed("cc", gateway::name)?;
    let shorthand = Tcp::shorthand(&cc);
    if let Some(recovery) = shorthand {
        let kind = Recovery::ALL.iter().find(|(_, r)| *r == recovery).map_or("", |(name, _)| name);
        let message = format!("the congestion control `{cc}` does not exist in the lab world");
        let help = format!(
            "it is `reno` with recovery = \"{kind}\", in the sim world only; Linux has `reno` itself"
        );
        s.note_value(World::Sim, "cc", Fault::new(message, help));
    } else if !CONTROLS.iter().any(|(name, _)| *name == cc) {
        let message = format!("the congestion control `{cc}` does not exist in the sim world");
        let names = || CONTROLS.iter().map(|(n, _)| *n).chain(SHORTHANDS.map(|(n, _)| n));
        let guess = nearest(&cc, names()).map_or(String::new(), |n| format!("did you mean `{n}`? "));
        s.note_value(
            World::Lab,
            "cc",
            Fault::new(message, format!("{guess}what exists: {}", listed(names()))),
        );
    }
    Some(cc)
}

/// Reads `[tcp]`, the defaults of all flows.
pub(super) fn defaults(s: Section) -> Tcp {
    let tcp = read(&s);
    resolved(&s, tcp.clone());
    s.finish();
    tcp
}

/// What a flow's own keys and the defaults make; `s` is the section of the flow's own.
pub(super) fn over(s: &Section, own: Tcp, defaults: &Tcp) -> Tcp {
    // A flow's own shorthand brings its recovery; that of the defaults is for their `cc`.
    let recovery = match &own.cc {
        Some(cc) if Tcp::shorthand(cc).is_some() => own.recovery,
        _ => own.recovery.or(defaults.recovery),
    };
    let merged = Tcp {
        cc: own.cc.or_else(|| defaults.cc.clone()),
        mss: own.mss.or(defaults.mss),
        rwnd: own.rwnd.or(defaults.rwnd),
        ecn: own.ecn.or(defaults.ecn),
        delayed_ack: own.delayed_ack.or(defaults.delayed_ack),
        delayed_ack_timer: own.delayed_ack_timer.or(defaults.delayed_ack_timer),
        quick_acks: own.quick_acks.or(defaults.quick_acks),
        initial_window: own.initial_window.or(defaults.initial_window),
        initial_ssthresh: own.initial_ssthresh.or(defaults.initial_ssthresh),
        recovery,
        timestamps: own.timestamps.or(defaults.timestamps),
        min_rto: own.min_rto.or(defaults.min_rto),
        abc: own.abc.or(defaults.abc),
        hystart: own.hystart.or(defaults.hystart),
        cubic: own.cubic.or(defaults.cubic),
        pacing: own.pacing.or(defaults.pacing),
        tso_segments: own.tso_segments.or(defaults.tso_segments),
    };
    resolved(s, merged)
}

/// A shorthand's recovery put in; another recovery beside it is a contradiction.
fn resolved(s: &Section, tcp: Tcp) -> Tcp {
    let Some((cc, recovery)) = tcp.cc.as_deref().and_then(|cc| Some((cc, Tcp::shorthand(cc)?))) else {
        return tcp;
    };
    // Of two keys elsewhere the fault is noted there.
    let own = ["recovery", "cc"].into_iter().find(|key| s.has(key));
    if let Some(key) = own.filter(|_| tcp.recovery.is_some_and(|r| r != recovery)) {
        let message = format!("another `recovery` together with cc = \"{cc}\"");
        s.fault(
            key,
            Fault::new(message, format!("\"{cc}\" is \"reno\" with a recovery of its own: leave one out")),
        );
    }
    Tcp { recovery: Some(recovery), ..tcp }
}

#[cfg(test)]
mod tests {
    use crate::config::{experiment, Source};
    use crate::plan::Tcp;
    use weir_sim::tcp::Recovery;

    /// The TCP of the only flow.
    fn tcp(defaults: &str, flow: &str) -> Result<Tcp, String> {
        let text = format!("name = 'x'\nduration = '1s'\n[tcp]\n{defaults}\n[[flow]]\nid = 'a'\n{flow}\n");
        let parsed = experiment::parse(&Source::new("t.toml", text)).map_err(|e| e.to_string())?;
        Ok(parsed.plan.groups[0].tcp.clone())
    }

    #[test]
    fn a_flow_wins_over_the_defaults() {
        let got = tcp("mss = 1000\nrwnd = '64KiB'\necn = true", "mss = 500\ndelayed_ack = 1").unwrap();
        let want = Tcp {
            mss: Some(500),
            rwnd: Some(65_536),
            ecn: Some(true),
            delayed_ack: Some(1),
            ..Tcp::default()
        };
        assert_eq!(got, want);
    }

    #[test]
    fn shorthands_bring_their_recovery() {
        for (defaults, flow, recovery, algorithm) in [
            ("cc = 'tahoe'", "", Some(Recovery::Tahoe), "reno"),
            ("cc = 'tahoe'", "cc = 'newreno'", Some(Recovery::NewReno), "reno"),
            ("recovery = 'sack'", "cc = 'tahoe'", Some(Recovery::Tahoe), "reno"),
            // The defaults' own recovery came with their `cc`.
            ("cc = 'tahoe'", "cc = 'cubic'", None, "cubic"),
            ("cc = 'reno'", "recovery = 'tahoe'", Some(Recovery::Tahoe), "reno"),
        ] {
            let got = tcp(defaults, flow).unwrap();
            assert_eq!((got.recovery, got.algorithm()), (recovery, Some(algorithm)), "{defaults} {flow}");
        }
        for (defaults, flow) in
            [("cc = 'tahoe'", "recovery = 'sack'"), ("", "cc = 'tahoe'\nrecovery = 'rack'")]
        {
            assert!(tcp(defaults, flow).unwrap_err().contains("together with cc"), "{defaults} {flow}");
        }
    }
}
