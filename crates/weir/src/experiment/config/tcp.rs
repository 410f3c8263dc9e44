//! The TCP of a flow: the keys of `[tcp]`, which may all stand in a `[[flow]]` too and win there.

use super::diag::{listed, nearest, Fault};
use super::keys::{self, put, Key, Written};
use super::names;
use super::reader::Section;
use super::value::{int, one_of, within, FromValue, Size};
use crate::experiment::plan::{Tcp, SHORTHANDS};
use crate::result::Backend;
use std::fmt::Display;
use toml::de::DeValue;
use weir_core::time::Duration;
use weir_sim::cc::{CubicRules, CONTROLS};
use weir_sim::tcp::Recovery;

/// Names of the kinds of CUBIC.
const CUBICS: [(&str, CubicRules); 2] = [("rfc9438", CubicRules::Rfc9438), ("linux", CubicRules::Linux)];

type TcpKey = Key<Tcp>;

/// Every key. Those that only simulated hosts have Linux has for a whole system, or not at all.
static KEYS: &[TcpKey] = &[
    // Words for it stand beside the name of a flow.
    TcpKey::new("cc", congestion_control).write(|t| t.cc.as_ref().map(Written::quoted)),
    // 88: Linux refuses less (TCP_MIN_MSS); 65,495: an IP packet without its two headers.
    TcpKey::new("mss", |t, v| put(&mut t.mss, int(v, 88..=65_495).map(|n| n as u16)))
        .write(|t| t.mss.map(Written::plain))
        .words(|t| number("MSS", t.mss)),
    TcpKey::new("rwnd", |t, v| put(&mut t.rwnd, window(v)))
        .write(|t| t.rwnd.map(Written::plain))
        .words(|t| number("receive window", t.rwnd)),
    // In the lab a setting of its hosts, so that all flows must agree; so are `tso_segments`.
    TcpKey::new("ecn", |t, v| put(&mut t.ecn, bool::from_value(v)))
        .write(|t| t.ecn.map(Written::plain))
        .words(|t| switch("ECN", t.ecn)),
    TcpKey::new("l4s", |t, v| put(&mut t.l4s, bool::from_value(v)))
        .write(|t| t.l4s.map(Written::plain))
        .only(Backend::Sim)
        .words(|t| switch("L4S", t.l4s)),
    TcpKey::new("delayed_ack", |t, v| put(&mut t.delayed_ack, count(v, 1, 64)))
        .write(|t| t.delayed_ack.map(Written::plain))
        .only(Backend::Sim)
        .words(|t| number("segments for each ACK:", t.delayed_ack)),
    // RFC 1122, 4.2.3.2 allows less than half a second.
    TcpKey::new("delayed_ack_timer", |t, v| {
        put(&mut t.delayed_ack_timer, within(v, Duration::from_micros(1), Duration::from_secs(1)))
    })
    .write(|t| t.delayed_ack_timer.map(Written::quoted))
    .only(Backend::Sim)
    .words(|t| number("ACKs delayed at most", t.delayed_ack_timer)),
    TcpKey::new("quick_acks", |t, v| put(&mut t.quick_acks, count(v, 0, 65_535)))
        .write(|t| t.quick_acks.map(Written::plain))
        .only(Backend::Sim)
        .words(|t| number("segments acknowledged at once at first:", t.quick_acks)),
    TcpKey::new("push_acks", |t, v| put(&mut t.push_acks, bool::from_value(v)))
        .write(|t| t.push_acks.map(Written::plain))
        .only(Backend::Sim)
        .words(|t| switch("ACKs at once for PSH", t.push_acks)),
    TcpKey::new("initial_window", |t, v| put(&mut t.initial_window, count(v, 1, 1000)))
        .write(|t| t.initial_window.map(Written::plain))
        .only(Backend::Sim)
        .words(|t| number("initial window", t.initial_window)),
    TcpKey::new("initial_ssthresh", |t, v| put(&mut t.initial_ssthresh, count(v, 2, 1_000_000)))
        .write(|t| t.initial_ssthresh.map(Written::plain))
        .only(Backend::Sim)
        .words(|t| number("initial ssthresh", t.initial_ssthresh)),
    TcpKey::new("recovery", |t, v| put(&mut t.recovery, one_of(v, &Recovery::ALL, &[])))
        .write(|t| t.recovery.filter(|_| !implied(t)).map(|r| Written::quoted(name_of(&Recovery::ALL, r))))
        .only(Backend::Sim)
        .words(recovery),
    TcpKey::new("timestamps", |t, v| put(&mut t.timestamps, bool::from_value(v)))
        .write(|t| t.timestamps.map(Written::plain))
        .only(Backend::Sim)
        .words(|t| switch("timestamps", t.timestamps)),
    TcpKey::new("min_rto", |t, v| {
        put(&mut t.min_rto, within(v, Duration::from_micros(10), Duration::from_secs(60)))
    })
    .write(|t| t.min_rto.map(Written::quoted))
    .only(Backend::Sim)
    .words(|t| number("RTO at least", t.min_rto)),
    TcpKey::new("abc", |t, v| put(&mut t.abc, bool::from_value(v)))
        .write(|t| t.abc.map(Written::plain))
        .only(Backend::Sim)
        .words(|t| switch("byte counting", t.abc)),
    TcpKey::new("hystart", |t, v| put(&mut t.hystart, bool::from_value(v)))
        .write(|t| t.hystart.map(Written::plain))
        .only(Backend::Sim)
        .words(|t| switch("HyStart", t.hystart)),
    TcpKey::new("cubic", |t, v| put(&mut t.cubic, one_of(v, &CUBICS, &[])))
        .write(|t| t.cubic.map(|rules| Written::quoted(name_of(&CUBICS, rules))))
        .words(|t| {
            t.cubic.map(|rules| match rules {
                CubicRules::Rfc9438 => "CUBIC of RFC 9438".to_string(),
                CubicRules::Linux => "CUBIC of Linux".to_string(),
            })
        }),
    TcpKey::new("fast_convergence", |t, v| put(&mut t.fast_convergence, bool::from_value(v)))
        .write(|t| t.fast_convergence.map(Written::plain))
        .only(Backend::Sim)
        .words(|t| switch("fast convergence", t.fast_convergence)),
    TcpKey::new("pacing", |t, v| put(&mut t.pacing, bool::from_value(v)))
        .write(|t| t.pacing.map(Written::plain))
        .only(Backend::Sim)
        .words(|t| switch("pacing", t.pacing)),
    TcpKey::new("tso_segments", |t, v| put(&mut t.tso_segments, count(v, 1, 64)))
        .write(|t| t.tso_segments.map(Written::plain))
        .words(|t| number("segments sent back to back:", t.tso_segments)),
];

/// The names of all keys.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name)
}

/// What is set besides the congestion control, in words.
pub fn words(tcp: &Tcp) -> Vec<String> {
    keys::words(KEYS, tcp)
}

/// What is set, by key, as the values stand in a file but without quotes.
pub fn values(tcp: &Tcp) -> Vec<(&'static str, String)> {
    keys::values(KEYS, tcp)
}

/// The assignments that make this TCP.
pub fn assignments(tcp: &Tcp) -> Vec<String> {
    keys::assignments(KEYS, tcp, &Tcp::default())
}

/// Reads `[tcp]`, the defaults of all flows.
pub(super) fn defaults(s: Section) -> Tcp {
    let mut tcp = Tcp::default();
    keys::read(KEYS, &[&s], &mut tcp);
    note_worlds(&s, &tcp);
    resolved(&s, tcp.clone());
    s.finish();
    tcp
}

/// What a flow's own keys and the defaults make; `s` is the flow's section.
pub(super) fn of_flow(s: &Section, defaults: &Tcp) -> Tcp {
    let mut tcp = defaults.clone();
    keys::read(KEYS, &[s], &mut tcp);
    note_worlds(s, &tcp);
    resolved(s, tcp)
}

/// `cc`: any name that Linux may have as a module, and any that the simulator has. A shorthand brings its recovery: that
/// of the defaults is for their `cc`.
fn congestion_control(tcp: &mut Tcp, value: &DeValue) -> Result<(), Fault> {
    let cc = String::from_value(value).and_then(names::name)?;
    if Tcp::shorthand(&cc).is_some() {
        tcp.recovery = None;
    }
    tcp.cc = Some(cc);
    Ok(())
}

/// Notes the values of keys that both worlds have which one of them cannot do.
fn note_worlds(s: &Section, tcp: &Tcp) {
    if s.has("cubic") && tcp.cubic == Some(CubicRules::Rfc9438) {
        let message = "CUBIC as in RFC 9438 does not exist in the lab world";
        s.note_value(Backend::Sim, "cubic", Fault::new(message, "the lab has cubic = \"linux\" only"));
    }
    let Some(cc) = tcp.cc.as_deref().filter(|_| s.has("cc")) else { return };
    if let Some(recovery) = Tcp::shorthand(cc) {
        let kind = name_of(&Recovery::ALL, recovery);
        let message = format!("the congestion control `{cc}` does not exist in the lab world");
        let help = format!(
            "it is `reno` with recovery = \"{kind}\", in the sim world only; Linux has `reno` itself"
        );
        s.note_value(Backend::Sim, "cc", Fault::new(message, help));
    } else if !CONTROLS.iter().any(|(name, _)| *name == cc) {
        let message = format!("the congestion control `{cc}` does not exist in the sim world");
        let names = || CONTROLS.iter().map(|(n, _)| *n).chain(SHORTHANDS.map(|(n, _)| n));
        let guess = nearest(cc, names()).map_or(String::new(), |n| format!("did you mean `{n}`? "));
        let help = format!("{guess}what exists: {}", listed(names()));
        s.note_value(Backend::Lab, "cc", Fault::new(message, help));
    }
}

/// A shorthand's recovery put in; another recovery beside it is a contradiction.
fn resolved(s: &Section, tcp: Tcp) -> Tcp {
    let Some((cc, recovery)) = tcp.cc.as_deref().and_then(|cc| Some((cc, Tcp::shorthand(cc)?))) else {
        return tcp;
    };
    // Of two keys elsewhere the fault is noted there.
    let own = ["recovery", "cc"].into_iter().find(|key| s.has(key));
    if let Some(key) = own.filter(|_| tcp.recovery.is_some_and(|r| r != recovery)) {
        let message = format!("another `recovery` cannot be combined with cc = \"{cc}\"");
        s.fault(
            key,
            Fault::new(message, format!("\"{cc}\" is \"reno\" with a recovery of its own: leave one out")),
        );
    }
    Tcp { recovery: Some(recovery), ..tcp }
}

fn count(value: &DeValue, min: u64, max: u64) -> Result<u32, Fault> {
    int(value, min..=max).map(|n| n as u32)
}

fn window(value: &DeValue) -> Result<u64, Fault> {
    match Size::from_value(value)? {
        Size(n @ 2048..=1_073_725_440) => Ok(n),
        Size(n) => {
            Err(Fault::bare(format!("a window of {n} bytes is not from 2048 to 1073725440 (RFC 7323)")))
        }
    }
}

fn number(name: &str, n: Option<impl Display>) -> Option<String> {
    n.map(|n| format!("{name} {n}"))
}

fn switch(name: &str, on: Option<bool>) -> Option<String> {
    on.map(|on| format!("{}{name}", if on { "" } else { "no " }))
}

/// Does the congestion control say the recovery itself?
fn implied(tcp: &Tcp) -> bool {
    tcp.cc.as_deref().is_some_and(|cc| Tcp::shorthand(cc).is_some())
}

/// A shorthand says its recovery itself.
fn recovery(tcp: &Tcp) -> Option<String> {
    tcp.recovery.filter(|_| !implied(tcp)).map(|r| format!("{} recovery", name_of(&Recovery::ALL, r)))
}

/// What a value of a choice is called.
fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, v)| *v == value).map_or("", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use crate::experiment::config::{experiment, Source};
    use crate::experiment::plan::Tcp;
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
            assert_eq!((got.recovery, got.algorithm()), (recovery, algorithm), "{defaults} {flow}");
        }
        for (defaults, flow) in
            [("cc = 'tahoe'", "recovery = 'sack'"), ("", "cc = 'tahoe'\nrecovery = 'rack'")]
        {
            assert!(
                tcp(defaults, flow).unwrap_err().contains("cannot be combined with cc"),
                "{defaults} {flow}"
            );
        }
    }
}
