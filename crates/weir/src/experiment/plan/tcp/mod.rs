//! The TCP settings of a flow in an experiment, and their translation to a simulated connection.

mod settings;

pub use settings::{Accepts, TcpSetting, TCP_SETTINGS, WINDOWS};

use std::collections::BTreeMap;
use std::fmt;
use weir_core::time::Duration;
use weir_sim::tcp::{Recovery, TcpConfig};

/// TCP settings of both ends of a flow. Unset ones are left to the default of the sender or the receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Congestion control as Linux names it (`reno`, `cubic`, …), or a [shorthand](SHORTHANDS). Results show
    /// this name; [`Tcp::algorithm`] is the one that runs.
    pub cc: Option<String>,
    /// Named [settings](TCP_SETTINGS), each with its value.
    said: BTreeMap<&'static str, Value>,
}

/// Value of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// On or off.
    Switch(bool),
    /// A number, in the setting's unit.
    Number(u64),
    /// A time.
    Time(Duration),
    /// One of the setting's names.
    Name(&'static str),
}

/// Default congestion control: Linux's own default, independent of the setting of a lab's host.
pub const DEFAULT_CC: &str = "cubic";

/// Names of congestion controls that mean `reno` with a kind of recovery; simulator only.
pub const SHORTHANDS: [(&str, Recovery); 2] = [("tahoe", Recovery::Tahoe), ("newreno", Recovery::NewReno)];

/// Names of the congestion controls that QUIC has in the lab.
pub const QUIC_CONTROLS: [&str; 4] = ["cubic", "bbr", "reno", "newreno"];

/// Keys of `[tcp]` that QUIC heeds in the lab.
pub const QUIC_SETTINGS: [&str; 3] = ["cc", "rwnd", "ecn"];

impl Tcp {
    /// Returns settings with only this congestion control.
    pub fn of(cc: impl Into<String>) -> Tcp {
        Tcp { cc: Some(cc.into()), ..Tcp::default() }
    }

    /// Returns the value of a setting, if it was named.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.said.get(name).copied()
    }

    /// Returns the value of a setting that is a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name).map(Value::number)
    }

    /// Returns the value of a setting that is on or off.
    pub fn switch(&self, name: &str) -> Option<bool> {
        self.get(name).map(Value::switch)
    }

    /// Returns whether the client's SYN may carry data.
    pub fn opens_fast(&self) -> bool {
        self.switch(settings::FAST_OPEN) == Some(true)
    }

    /// Sets a setting. Panics if there is none of this name, or if it does not accept the value.
    pub fn set(&mut self, name: &'static str, value: Value) {
        let known = TCP_SETTINGS.iter().any(|s| s.name == name && s.accepts.contains(value));
        assert!(known, "no setting {name} = {value}");
        self.said.insert(name, value);
    }

    /// Returns the settings with one more set; see [`Tcp::set`].
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Value) -> Tcp {
        self.set(name, value);
        self
    }

    /// Returns a setting to its default.
    pub fn unset(&mut self, name: &str) {
        self.said.remove(name);
    }

    /// Returns the named settings, in the order of [`TCP_SETTINGS`]. The recovery that a shorthand implies is
    /// left out.
    pub fn said(&self) -> impl Iterator<Item = (&'static TcpSetting, Value)> + '_ {
        let implied = self.cc.as_deref().is_some_and(|cc| Tcp::shorthand(cc).is_some());
        let named = TCP_SETTINGS.iter().filter_map(|setting| Some((setting, self.get(setting.name)?)));
        named.filter(move |(setting, _)| !(implied && setting.name == settings::RECOVERY))
    }

    /// Applies the named settings to a simulated connection.
    pub fn configure(&self, config: &mut TcpConfig) {
        for setting in TCP_SETTINGS {
            if let Some(value) = self.get(setting.name) {
                setting.apply(config, value, self);
            }
        }
    }

    /// Returns the kind of recovery, if it was named or implied by the congestion control's name.
    pub fn recovery(&self) -> Option<Recovery> {
        self.get(settings::RECOVERY).map(|value| settings::chosen(&Recovery::ALL, value))
    }

    /// Sets a kind of recovery.
    pub fn set_recovery(&mut self, recovery: Recovery) {
        self.set(settings::RECOVERY, Value::Name(settings::name(&Recovery::ALL, recovery)));
    }

    /// Returns the recovery that a congestion control's name implies, if it is a shorthand.
    pub fn shorthand(cc: &str) -> Option<Recovery> {
        SHORTHANDS.iter().find(|(name, _)| *name == cc).map(|(_, recovery)| *recovery)
    }

    /// Returns the congestion control's name in results: `cc`, or [`DEFAULT_CC`].
    pub fn cc(&self) -> &str {
        self.cc.as_deref().unwrap_or(DEFAULT_CC)
    }

    /// Returns the Linux names of an experiment's congestion control; the first one that the kernel knows
    /// applies. `weir chirp load` registers controls with names of their own.
    pub fn in_linux(cc: &str) -> Vec<&str> {
        match cc {
            "chirp" => vec!["weir_chirp"],
            "dctcp" => vec!["dctcp", "weir_dctcp"],
            other => vec![other],
        }
    }

    /// Returns the name in experiments of a congestion control of Linux.
    pub fn of_linux(name: &str) -> &str {
        name.strip_prefix("weir_").filter(|cc| Tcp::in_linux(cc).contains(&name)).unwrap_or(name)
    }

    /// Returns the congestion control to run: [`Tcp::cc`], with `reno` for a shorthand, whose recovery is
    /// then set.
    pub fn algorithm(&self) -> &str {
        let cc = self.cc();
        if Tcp::shorthand(cc).is_some() {
            "reno"
        } else {
            cc
        }
    }
}

/// Reason why a value has the requested kind: [`Tcp::set`] has checked it.
const OF_ITS_KIND: &str = "a setting has a value that it accepts";

impl Value {
    fn switch(self) -> bool {
        let Value::Switch(on) = self else { unreachable!("{OF_ITS_KIND}") };
        on
    }

    fn number(self) -> u64 {
        let Value::Number(n) = self else { unreachable!("{OF_ITS_KIND}") };
        n
    }

    fn time(self) -> Duration {
        let Value::Time(time) = self else { unreachable!("{OF_ITS_KIND}") };
        time
    }
}

/// Formats the value as in a file, without quotes.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Switch(on) => write!(f, "{on}"),
            Value::Number(n) => write!(f, "{n}"),
            Value::Time(time) => write!(f, "{time}"),
            Value::Name(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_linux_are_those_of_experiments_where_both_have_it() {
        assert_eq!(Tcp::in_linux("chirp"), ["weir_chirp"]);
        assert_eq!(
            ["weir_chirp", "weir_dctcp", "cubic", "weir_other"].map(Tcp::of_linux),
            ["chirp", "dctcp", "cubic", "weir_other"]
        );
    }
}
