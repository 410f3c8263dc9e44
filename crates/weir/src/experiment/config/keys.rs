//! Tables of keys. A row defines all of a key: how it is read, and its words in `weir check`. Files and
//! command lines are read by the same rows.

use super::diag::Fault;
use super::reader::Section;
use toml::de::DeValue;

/// Key of a `T`.
pub struct Key<T> {
    /// Name in files; as an option of a command it has dashes.
    pub name: &'static str,
    /// Puts the value into the `T`, which has the keys above it already.
    read: fn(&mut T, &DeValue) -> Result<(), Fault>,
    words: fn(&T) -> Option<String>,
    /// Alternative keys, one of which is required, and the reason; none if the key stands alone.
    needs: (&'static [&'static str], &'static str),
    /// Keys above that set the same value in another way, and the difference.
    instead_of: (&'static [&'static str], &'static str),
    /// Option of a command: its name, the placeholder of its value, and help.
    option: (&'static str, &'static str, &'static str),
}

impl<T> Key<T> {
    /// Creates a key that `read` reads. The functions below add the rest.
    pub const fn new(name: &'static str, read: fn(&mut T, &DeValue) -> Result<(), Fault>) -> Key<T> {
        Key { name, read, words: |_| None, needs: (&[], ""), instead_of: (&[], ""), option: ("", "", "") }
    }
    /// Adds the description in words; it returns `None` for a value that needs none.
    pub const fn words(self, words: fn(&T) -> Option<String>) -> Key<T> {
        Key { words, ..self }
    }
    /// Requires one of these keys, the first of which messages name; `why` is the reason for readers.
    pub const fn needs(self, others: &'static [&'static str], why: &'static str) -> Key<T> {
        Key { needs: (others, why), ..self }
    }
    /// Excludes keys above it that set the same value in another way.
    pub const fn instead_of(self, others: &'static [&'static str], why: &'static str) -> Key<T> {
        Key { instead_of: (others, why), ..self }
    }
    /// Makes the key an option of a command: its name, the placeholder of its value, and help.
    pub const fn option(self, long: &'static str, value: &'static str, help: &'static str) -> Key<T> {
        Key { option: (long, value, help), ..self }
    }

    /// Returns whether the key has a meaning by itself.
    pub fn stands_alone(&self) -> bool {
        self.needs.0.is_empty()
    }

    /// Returns the fault of the key where `other` is missing.
    fn lacks(&self, place: &Section, other: &str) -> Fault {
        let message = format!("`{}` needs `{}`", place.full(self.name), place.full(other));
        Fault::new(message, self.needs.1)
    }

    /// Returns whether both keys set the same value.
    fn excludes(&self, other: &Key<T>) -> bool {
        let instead = |one: &Key<T>, of: &Key<T>| one.instead_of.0.contains(&of.name);
        self.name == other.name || instead(self, other) || instead(other, self)
    }

    /// Returns the key as an option of a command.
    pub fn arg(&self) -> clap::Arg {
        let (long, value, help) = self.option;
        let arg = clap::Arg::new(self.name).long(long).value_name(value).help(help);
        let arg = match self.needs.0 {
            [other] => arg.requires(*other),
            _ => arg,
        };
        arg.conflicts_with_all(self.instead_of.0)
    }
}

/// Reads keys, each from the first of `places` that has it.
pub fn read<'k, T: 'k>(keys: impl IntoIterator<Item = &'k Key<T>>, places: &[&Section], into: &mut T) {
    for key in keys {
        for place in places {
            place.has(key.name);
            place.know(key, key.name);
            for other in key.instead_of.0 {
                place.at_most_one(&[other, key.name], key.instead_of.1);
            }
        }
        let Some(place) = places.iter().find(|s| s.has(key.name)) else { continue };
        match key.needs {
            ([other, ..], _) if !key.needs.0.iter().any(|other| places.iter().any(|s| s.has(other))) => {
                place.key_fault(key.name, key.lacks(place, other));
            }
            _ => place.row(key, key.name, |value| (key.read)(into, value)),
        }
    }
}

/// Reads keys of `place` into a value that has the keys of which `known` is true.
pub fn read_over<T>(keys: &[Key<T>], place: &Section, known: impl Fn(&str) -> bool, into: &mut T) {
    for key in keys {
        place.know(key, key.name);
        if !place.has(key.name) {
            continue;
        }
        let there = |other: &&str| known(other) || keys.iter().any(|k| k.name == *other && place.has(k.name));
        match key.needs.0.first().filter(|_| !key.needs.0.iter().any(there)) {
            Some(other) => place.key_fault(key.name, key.lacks(place, other)),
            None => place.row(key, key.name, |value| (key.read)(into, value)),
        }
    }
}

/// Refuses keys of `own` that `both` has already set. `both` is for both directions and `own` for one;
/// `names` are the sections of the two.
pub fn refuse_twice<T>(keys: &[Key<T>], own: &Section, both: &Section, names: [&str; 2]) {
    for key in keys.iter().filter(|key| own.has(key.name)) {
        for other in keys.iter().filter(|other| other.excludes(key) && both.has(other.name)) {
            let message =
                format!("`{}` cannot be combined with `{}`", own.full(key.name), both.full(other.name));
            let (both, [one, two]) = (both.path(), names);
            let help = format!("`{both}` is for both directions: say it there, or in `{one}` and `{two}`");
            own.key_fault(key.name, Fault::new(message, help));
        }
    }
}

/// Describes keys in words.
pub fn words<T>(keys: &[Key<T>], value: &T) -> Vec<String> {
    keys.iter().filter_map(|key| (key.words)(value)).collect()
}

/// Puts the value of a key into an option of the `T`.
pub fn put<V>(slot: &mut Option<V>, value: Result<V, Fault>) -> Result<(), Fault> {
    *slot = Some(value?);
    Ok(())
}

/// Puts the value of a key in its place.
pub fn set<V>(slot: &mut V, value: Result<V, Fault>) -> Result<(), Fault> {
    *slot = value?;
    Ok(())
}
