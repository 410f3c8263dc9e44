//! TCP of a flow: the keys of `[tcp]`, which may also stand in a `[[flow]]` and take precedence there.

use super::diag::{listed, nearest, Fault};
use super::names;
use super::reader::Section;
use super::value::{int, one_of, within, FromValue, Size};
use crate::experiment::plan::{
    Accepts, Tcp, Value, QUIC_CONTROLS, QUIC_SETTINGS, SHORTHANDS, TCP_SETTINGS, WINDOWS,
};
use crate::result::Backend;
use toml::de::DeValue;
use weir_sim::cc;
use weir_sim::tcp::Recovery;

/// Returns the names of all keys.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ["cc"].into_iter().chain(TCP_SETTINGS.iter().map(|setting| setting.name))
}

/// Describes the settings besides the congestion control, in words.
pub fn words(tcp: &Tcp) -> Vec<String> {
    tcp.said().map(|(setting, value)| setting.words(value)).collect()
}

/// Reads `[tcp]`, the defaults of all flows.
pub(super) fn defaults(s: Section) -> Tcp {
    let mut tcp = Tcp::default();
    read(&s, &mut tcp);
    note_worlds(&s, &tcp);
    resolved(&s, tcp.clone());
    s.finish();
    tcp
}

/// Combines a flow's own keys and the defaults; `s` is the flow's section.
pub(super) fn of_flow(s: &Section, defaults: &Tcp) -> Tcp {
    let mut tcp = defaults.clone();
    read(s, &mut tcp);
    note_worlds(s, &tcp);
    resolved(s, tcp)
}

/// Combines the keys of a QUIC flow and the defaults. A SYN that carries data is TCP's own.
pub(super) fn of_quic(s: &Section, defaults: &Tcp) -> Tcp {
    let mut tcp = defaults.clone();
    read(s, &mut tcp);
    for (key, why) in [
        ("fast_open", "it is a key of TCP flows"),
        ("opaque", "QUIC always is: its acknowledgements cannot be read on the way"),
    ] {
        if s.has(key) {
            s.key_fault(key, Fault::new(format!("`{key}` cannot be combined with protocol = \"quic\""), why));
        }
    }
    tcp.unset("fast_open");
    tcp.unset("opaque");
    for setting in TCP_SETTINGS.iter().filter(|setting| !setting.sim_only && setting.name != "fast_open") {
        if s.has(setting.name) && !QUIC_SETTINGS.contains(&setting.name) {
            let message = format!("QUIC has no `{}` in the lab world", setting.name);
            let help = format!("there it has {}", listed(QUIC_SETTINGS));
            s.note_value(Backend::Sim, setting.name, Fault::new(message, help));
        }
    }
    let cc = tcp.cc();
    if !QUIC_CONTROLS.contains(&cc) {
        let message = format!("QUIC has no congestion control `{cc}` in the lab world");
        let help = format!("there it has {}", listed(QUIC_CONTROLS));
        let key = if s.has("cc") { "cc" } else { "protocol" };
        s.note_value(Backend::Sim, key, Fault::new(message, help));
    }
    note_simulated(s, &tcp);
    resolved(s, tcp)
}

/// Lays the keys of a section over `tcp`.
fn read(s: &Section, tcp: &mut Tcp) {
    // Any name is accepted that Linux may have as a module, and any that the simulator has.
    if let Some(cc) = s.value("cc", |value| String::from_value(value).and_then(names::name)) {
        // A shorthand implies its recovery. The recovery of the defaults is for the `cc` of the defaults.
        if Tcp::shorthand(&cc).is_some() {
            tcp.unset("recovery");
        }
        tcp.cc = Some(cc);
    }
    for setting in TCP_SETTINGS {
        if setting.sim_only {
            s.note_only(Backend::Sim, setting.name);
        }
        if let Some(value) = s.value(setting.name, |value| accepted(&setting.accepts, value)) {
            tcp.set(setting.name, value);
        }
    }
}

/// Converts a value of a file to one that a setting accepts.
fn accepted(accepts: &Accepts, value: &DeValue) -> Result<Value, Fault> {
    match *accepts {
        Accepts::Switch => bool::from_value(value).map(Value::Switch),
        Accepts::Number(min, max) => int(value, min..=max).map(Value::Number),
        Accepts::Window => window(value).map(Value::Number),
        Accepts::Time(min, max) => within(value, min, max).map(Value::Time),
        Accepts::Name(names) => {
            let names: Vec<_> = names.iter().map(|&(name, _)| (name, Value::Name(name))).collect();
            one_of(value, &names, &[])
        }
    }
}

/// Notes values that only one world supports, of keys that both have.
fn note_worlds(s: &Section, tcp: &Tcp) {
    if s.has("cubic") && tcp.get("cubic") == Some(Value::Name("rfc9438")) {
        let message = "CUBIC as in RFC 9438 does not exist in the lab world";
        s.note_value(Backend::Sim, "cubic", Fault::new(message, "the lab has cubic = \"linux\" only"));
    }
    let foreign = |recovery: &Recovery| s.has("recovery") && !recovery.is_linux();
    if let Some(recovery) = tcp.recovery().filter(foreign) {
        let message = format!("recovery \"{}\" does not exist in the lab world", name_of(recovery));
        let help = "the lab has Linux's own: \"rack\", and \"linux\" without SACK";
        s.note_value(Backend::Sim, "recovery", Fault::new(message, help));
    }
    let Some(name) = tcp.cc.as_deref().filter(|_| s.has("cc")) else { return };
    if let Some(recovery) = Tcp::shorthand(name) {
        let kind = name_of(recovery);
        let message = format!("the congestion control `{name}` does not exist in the lab world");
        let help = format!(
            "it is `reno` with recovery = \"{kind}\", in the sim world only; Linux has `reno` itself"
        );
        s.note_value(Backend::Sim, "cc", Fault::new(message, help));
    }
    note_simulated(s, tcp);
}

/// Notes a congestion control that only the lab has.
fn note_simulated(s: &Section, tcp: &Tcp) {
    let Some(name) = tcp.cc.as_deref().filter(|_| s.has("cc")) else { return };
    if cc::by_name(tcp.algorithm()).is_none() {
        let message = format!("the congestion control `{name}` does not exist in the sim world");
        let names = || cc::names().into_iter().chain(SHORTHANDS.map(|(n, _)| n));
        let guess = nearest(name, names()).map_or(String::new(), |n| format!("did you mean `{n}`? "));
        let help = format!("{guess}what exists: {}", listed(names()));
        s.note_value(Backend::Lab, "cc", Fault::new(message, help));
    }
}

/// Puts in the recovery of a shorthand; another recovery beside it is a contradiction.
fn resolved(s: &Section, mut tcp: Tcp) -> Tcp {
    let Some((cc, recovery)) = tcp.cc.as_deref().and_then(|cc| Some((cc, Tcp::shorthand(cc)?))) else {
        return tcp;
    };
    // A fault between two keys elsewhere is noted there.
    let own = ["recovery", "cc"].into_iter().find(|key| s.has(key));
    if let Some(key) = own.filter(|_| tcp.recovery().is_some_and(|r| r != recovery)) {
        let message = format!("another `recovery` cannot be combined with cc = \"{cc}\"");
        s.fault(
            key,
            Fault::new(message, format!("\"{cc}\" is \"reno\" with a recovery of its own: leave one out")),
        );
    }
    tcp.set_recovery(recovery);
    tcp
}

fn window(value: &DeValue) -> Result<u64, Fault> {
    let Size(bytes) = Size::from_value(value)?;
    if (WINDOWS.0..=WINDOWS.1).contains(&bytes) {
        return Ok(bytes);
    }
    let (min, max) = WINDOWS;
    Err(Fault::bare(format!("a window of {bytes} bytes is not from {min} to {max} (RFC 7323)")))
}

/// Returns the name of a kind of recovery.
fn name_of(recovery: Recovery) -> &'static str {
    Recovery::ALL.iter().find(|(_, other)| *other == recovery).map_or("", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use crate::experiment::config::{experiment, Source};
    use crate::experiment::plan::{Tcp, Value};
    use weir_sim::tcp::Recovery;

    /// Returns the TCP of the only flow.
    fn tcp(defaults: &str, flow: &str) -> Result<Tcp, String> {
        let path = "path = { rtt = '1ms' }";
        let text =
            format!("name = 'x'\nduration = '1s'\n{path}\n[tcp]\n{defaults}\n[[flow]]\nid = 'a'\n{flow}\n");
        let parsed = experiment::parse(&Source::new("t.toml", text)).map_err(|e| e.to_string())?;
        Ok(parsed.plan.groups[0].tcp.clone())
    }

    #[test]
    fn a_flow_wins_over_the_defaults() {
        let got = tcp("mss = 1000\nrwnd = '64KiB'\necn = true", "mss = 500\ndelayed_ack = 1").unwrap();
        let want = Tcp::default()
            .with("mss", Value::Number(500))
            .with("rwnd", Value::Number(65_536))
            .with("ecn", Value::Switch(true))
            .with("delayed_ack", Value::Number(1));
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
            assert_eq!((got.recovery(), got.algorithm()), (recovery, algorithm), "{defaults} {flow}");
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
