//! Settings laid over a gateway's file while the gateway runs: `class/voip.rate=90kbit`,
//! `customer/17.down=50Mbit`, `site/tower.up=100Mbit`.
//!
//! The settings are put into the file before it is read. So each value must follow the rules of its place.

use super::customers::label;
use super::diag::Fault;
use super::sweep::place::{place, set};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// Values by place and key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings(BTreeMap<String, String>);

/// Settings of a customer, or of a site, which is never off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfCustomer<'a> {
    /// Value of `down`.
    pub down: Option<&'a str>,
    /// Value of `up`.
    pub up: Option<&'a str>,
    /// Flag: its flows pass untouched.
    pub off: bool,
}

const HELP: &str = "for example class/voip.ack.flow_rate=90kbit, or customer/17.down=50Mbit";
/// Keys that identify a class.
const FIXED: [&str; 2] = ["name", "direction"];

impl Settings {
    /// Empty settings.
    pub const NOTHING: Settings = Settings(BTreeMap::new());

    /// Adds settings, each written as `PLACE.KEY=VALUE`. A key may occur once.
    pub fn add_all(&mut self, texts: &[impl AsRef<str>]) -> Result<(), Fault> {
        let mut keys = BTreeSet::new();
        for text in texts {
            let key = self.add(text.as_ref())?;
            if let Some(twice) = keys.replace(key) {
                return Err(Fault::new(format!("`{twice}` is set twice"), "leave one of the values"));
            }
        }
        Ok(())
    }

    /// Adds a setting, written as `PLACE.KEY=VALUE`. Returns its place and key.
    pub fn add(&mut self, text: &str) -> Result<String, Fault> {
        let wrong = || Fault::new(format!("`{text}` sets nothing"), HELP);
        let (path, value) = text.split_once('=').ok_or_else(wrong)?;
        let (kind, rest) = path.split_once('/').ok_or_else(wrong)?;
        let listed = matches!(kind, "customer" | "site");
        let (name, key) =
            if listed { rest.rsplit_once('.') } else { rest.split_once('.') }.ok_or_else(wrong)?;
        match (kind, key) {
            (_, "") => return Err(wrong()),
            ("class", key) if FIXED.contains(&key) => {
                let message = format!("`{key}` says which class it is, and cannot be set");
                return Err(Fault::new(message, "change the file, then `weir reload`"));
            }
            ("class", _) => {}
            ("customer", "down" | "up" | "off") | ("site", "down" | "up") => {}
            ("customer" | "site", _) => {
                let message = format!("`{key}` cannot be set of a {kind}");
                return Err(Fault::new(message, format!("{kind}/{name}.down and {kind}/{name}.up can")));
            }
            _ => return Err(wrong()),
        }
        // Identifiers are written here as in names of classes.
        let path = if listed { format!("{kind}/{}.{key}", label(name)) } else { path.to_owned() };
        match (kind, key, value) {
            ("customer", "off", "false") => drop(self.0.remove(&path)),
            _ => drop(self.0.insert(path.clone(), value.to_owned())),
        }
        Ok(path)
    }

    /// Returns whether there are no settings.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the settings that the other ones lack, as written.
    pub fn without(&self, other: &Settings) -> Vec<String> {
        let gone = self.0.iter().filter(|(path, _)| !other.0.contains_key(*path));
        gone.map(|(path, value)| format!("{path}={value}")).collect()
    }

    /// Puts the settings of classes into the table of a file.
    pub(super) fn lay_over<'a>(&'a self, table: &mut DeTable<'a>) -> Result<(), Fault> {
        for (path, value) in &self.0 {
            let Some(rest) = path.strip_prefix("class/") else { continue };
            let path: Vec<String> =
                ["gateway", "class"].into_iter().chain(rest.split('.')).map(str::to_owned).collect();
            let is_list = |t: &DeTable| t.get("class").is_some_and(|v| v.get_ref().is_array());
            if !table.get("gateway").and_then(|v| v.get_ref().as_table()).is_some_and(is_list) {
                return Err(Fault::bare("there is no class: there are customers alone"));
            }
            place(table, &path).map_err(|f| Fault { message: f.message.replace("sweep.", ""), ..f })?;
            let value = match DeValue::parse(value) {
                Ok(read) if !read.get_ref().is_str() => read.into_inner(),
                _ => DeValue::String(value.as_str().into()),
            };
            set(table, &path, &(0..0), Spanned::new(0..0, value));
        }
        Ok(())
    }

    /// Returns the customers and sites with settings, by kind and name.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let customers = self.of_customers().into_keys().map(|id| ("customer", id));
        customers.chain(self.of_sites().into_keys().map(|name| ("site", name)))
    }

    /// Returns the settings of customers, by their identifiers.
    pub(super) fn of_customers(&self) -> BTreeMap<&str, OfCustomer<'_>> {
        self.below("customer/")
    }

    /// Returns the settings of sites, by their names.
    pub(super) fn of_sites(&self) -> BTreeMap<&str, OfCustomer<'_>> {
        self.below("site/")
    }

    fn below(&self, place: &str) -> BTreeMap<&str, OfCustomer<'_>> {
        let mut found: BTreeMap<&str, OfCustomer<'_>> = BTreeMap::new();
        for (path, value) in &self.0 {
            let Some((id, key)) = path.strip_prefix(place).and_then(|rest| rest.split_once('.')) else {
                continue;
            };
            let one = found.entry(id).or_default();
            match key {
                "down" => one.down = Some(value),
                "up" => one.up = Some(value),
                _ => one.off = value == "true",
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_counts_and_what_sets_nothing_is_named() {
        let mut settings = Settings::default();
        settings.add("class/a.ack.flow_rate=1Mbit").unwrap();
        let before = settings.clone();
        settings.add("class/a.ack.flow_rate=2Mbit").unwrap();
        settings.add("customer/7.off=true").unwrap();
        assert_eq!(settings.without(&before), ["customer/7.off=true"]);
        assert_eq!(settings.of_customers()["7"], OfCustomer { off: true, ..OfCustomer::default() });
        settings.add("customer/7.off=false").unwrap();
        assert_eq!(settings.without(&before), [""; 0]);
        for wrong in ["", "class/a", "class/a.b", "class.a=1", "a/b.c=1", "class/a.=1"] {
            assert!(settings.add(wrong).unwrap_err().message.contains("sets nothing"), "{wrong}");
        }
        assert!(settings.add("class/a.name=b").unwrap_err().message.contains("cannot be set"));
        assert!(settings.add("customer/7.name=b").unwrap_err().help.unwrap().contains("customer/7.down"));
        let twice =
            settings.add_all(&["customer/7.down=1Mbit", "customer/7.up=1Mbit", "customer/7.down=2Mbit"]);
        assert_eq!(twice.unwrap_err().message, "`customer/7.down` is set twice");
        settings.add("site/a.up=3Mbit").unwrap();
        assert_eq!(settings.of_sites()["a"], OfCustomer { up: Some("3Mbit"), ..OfCustomer::default() });
        assert!(settings.add("site/a.off=true").unwrap_err().help.unwrap().contains("site/a.down"));
    }
}
