//! The TCP of a flow: what an experiment says of it, and what that makes of a simulated connection.

mod settings;

pub use settings::{Accepts, TcpSetting, TCP_SETTINGS, WINDOWS};

use std::collections::BTreeMap;
use std::fmt;
use weir_core::time::Duration;
use weir_sim::tcp::{Recovery, TcpConfig};

/// The TCP of both ends of a flow. What it does not say is left to the default of the sender or the receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Congestion control as Linux names it (`reno`, `cubic`, …), or a [shorthand](SHORTHANDS). This is the
    /// name for results; [`Tcp::algorithm`] is what runs.
    pub cc: Option<String>,
    /// The [settings](TCP_SETTINGS) that were named, each with its value.
    said: BTreeMap<&'static str, Value>,
}

/// The value of a setting.
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

/// Congestion control where nothing names one: Linux's own default, whatever the host of a lab is set to.
pub const DEFAULT_CC: &str = "cubic";

/// Names of congestion controls that stand for `reno` with a kind of recovery; simulator only.
pub const SHORTHANDS: [(&str, Recovery); 2] = [("tahoe", Recovery::Tahoe), ("newreno", Recovery::NewReno)];

impl Tcp {
    /// This congestion control, and nothing else.
    pub fn of(cc: impl Into<String>) -> Tcp {
        Tcp { cc: Some(cc.into()), ..Tcp::default() }
    }

    /// The value of a setting, if it was named.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.said.get(name).copied()
    }

    /// The value of a setting that is a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name).map(Value::number)
    }

    /// The value of a setting that is on or off.
    pub fn switch(&self, name: &str) -> Option<bool> {
        self.get(name).map(Value::switch)
    }

    /// May the SYN of the client carry data?
    pub fn opens_fast(&self) -> bool {
        self.switch(settings::FAST_OPEN) == Some(true)
    }

    /// Names a setting. Panics if there is none of this name, or if it does not accept the value.
    pub fn set(&mut self, name: &'static str, value: Value) {
        let known = TCP_SETTINGS.iter().any(|s| s.name == name && s.accepts.contains(value));
        assert!(known, "no setting {name} = {value}");
        self.said.insert(name, value);
    }

    /// The same with a setting named; see [`Tcp::set`].
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Value) -> Tcp {
        self.set(name, value);
        self
    }

    /// Leaves a setting to its default.
    pub fn unset(&mut self, name: &str) {
        self.said.remove(name);
    }

    /// What was named, in the order of [`TCP_SETTINGS`]; not the recovery that the congestion control's name stands for.
    pub fn said(&self) -> impl Iterator<Item = (&'static TcpSetting, Value)> + '_ {
        let implied = self.cc.as_deref().is_some_and(|cc| Tcp::shorthand(cc).is_some());
        let named = TCP_SETTINGS.iter().filter_map(|setting| Some((setting, self.get(setting.name)?)));
        named.filter(move |(setting, _)| !(implied && setting.name == settings::RECOVERY))
    }

    /// Gives a simulated connection what was named.
    pub fn configure(&self, config: &mut TcpConfig) {
        for setting in TCP_SETTINGS {
            if let Some(value) = self.get(setting.name) {
                setting.apply(config, value, self);
            }
        }
    }

    /// The kind of recovery, if it was named or the congestion control's name stands for it.
    pub fn recovery(&self) -> Option<Recovery> {
        self.get(settings::RECOVERY).map(|value| settings::chosen(&Recovery::ALL, value))
    }

    /// Names a kind of recovery.
    pub fn set_recovery(&mut self, recovery: Recovery) {
        self.set(settings::RECOVERY, Value::Name(settings::name(&Recovery::ALL, recovery)));
    }

    /// The recovery that a name of a congestion control stands for, if it is a shorthand.
    pub fn shorthand(cc: &str) -> Option<Recovery> {
        SHORTHANDS.iter().find(|(name, _)| *name == cc).map(|(_, recovery)| *recovery)
    }

    /// The congestion control by the name that results have: `cc`, or [`DEFAULT_CC`].
    pub fn cc(&self) -> &str {
        self.cc.as_deref().unwrap_or(DEFAULT_CC)
    }

    /// The names that a congestion control of experiments has in Linux, the first of which that a kernel knows is it. What
    /// `weir chirp load` registers has names of its own.
    pub fn in_linux(cc: &str) -> Vec<&str> {
        match cc {
            "chirp" => vec!["weir_chirp"],
            "dctcp" => vec!["dctcp", "weir_dctcp"],
            other => vec![other],
        }
    }

    /// The name that experiments have for a congestion control of Linux.
    pub fn of_linux(name: &str) -> &str {
        name.strip_prefix("weir_").filter(|cc| Tcp::in_linux(cc).contains(&name)).unwrap_or(name)
    }

    /// The congestion control to run: [`Tcp::cc`], with `reno` for a shorthand, whose recovery is set then.
    pub fn algorithm(&self) -> &str {
        let cc = self.cc();
        if Tcp::shorthand(cc).is_some() {
            "reno"
        } else {
            cc
        }
    }
}

/// Why a value is of the kind that is asked for: [`Tcp::set`] has looked.
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

/// As in a file, without quotes.
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
