//! LibreQoS's network.json: an object for each site, with its rates in Mbit/s and the sites below it as
//! `children`.

use super::draft::Draft;
use super::json::{Key, Written};
use super::rates::{is_zero, mbps};
use super::Faults;
use crate::experiment::config::diag::{nearest, Fault, Source};
use core::ops::Range;
use std::collections::{BTreeMap, HashSet};
use weir_core::rate::Rate;

pub(super) const DOWN: &str = "downloadBandwidthMbps";
pub(super) const UP: &str = "uploadBandwidthMbps";
const CHILDREN: &str = "children";
const VIRTUAL: &str = "virtual";
const TYPE: &str = "type";
const ID: &str = "id";
/// Keys of alternative names of a site.
const ALIASES: [&str; 2] = ["name", "active_attachment_name"];
/// Keys that change the meaning of a file.
const MEANING: [&str; 6] = [DOWN, UP, CHILDREN, VIRTUAL, TYPE, ID];
/// Keys that only other systems use.
const ELSEWHERE: [&str; 4] = ["latitude", "longitude", "uisp_site", "uisp_device"];
const EXAMPLE: &str =
    "{ \"Tower\": { \"downloadBandwidthMbps\": 1000, \"uploadBandwidthMbps\": 500, \"children\": { … } } }";
/// Maximum nesting of objects.
const DEEPEST: usize = 64;

/// Reads the sites of a file.
pub(super) fn drafts(source: &Source, faults: &mut Faults) -> Vec<Draft> {
    let mut network = Network { found: Vec::new(), unknown: BTreeMap::new(), faults };
    match Written::whole(&source.text) {
        Ok(all) => match all.object() {
            Some(sites) => network.below(sites, None, 0),
            None => network.faults.note(0..0, Fault::new("not an object of sites", EXAMPLE)),
        },
        Err(error) => {
            let lines = source.text.split_inclusive('\n').take(error.line().saturating_sub(1));
            let at = lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
            network.faults.note(at..at, Fault::new(format!("not JSON: {error}"), EXAMPLE));
        }
    }
    let Network { found, unknown, faults } = network;
    for (key, (first, count)) in unknown {
        let of = match count {
            1 => String::new(),
            2 => ", as in 1 more site".to_owned(),
            _ => format!(", as in {} more sites", count - 1),
        };
        faults.remark(first, Fault::new(format!("unknown key `{key}`{of}"), "it has no effect"));
    }
    found
}

struct Network<'a> {
    found: Vec<Draft>,
    /// Ignored keys: the place of the first occurrence and the number of occurrences.
    unknown: BTreeMap<String, (Range<usize>, usize)>,
    faults: &'a mut Faults,
}

/// Keys and values of an object.
type Pairs<'a> = Vec<(Key<'a>, Written<'a>)>;

impl Network<'_> {
    fn below(&mut self, sites: Pairs<'_>, parent: Option<(&str, &Range<usize>)>, depth: usize) {
        for (key, value) in sites {
            let (id, at) = (key.name.as_str(), key.place());
            match value.object() {
                Some(_) if depth > DEEPEST => {
                    let message = format!("site \"{id}\": more than {DEEPEST} sites above it");
                    self.faults.note(at, Fault::bare(message));
                }
                Some(pairs) => self.site(id, &at, pairs, parent, depth),
                None => {
                    self.faults.note(at, Fault::new(format!("site \"{id}\" is not an object"), EXAMPLE));
                }
            }
        }
    }

    fn site(
        &mut self,
        id: &str,
        at: &Range<usize>,
        pairs: Pairs<'_>,
        parent: Option<(&str, &Range<usize>)>,
        depth: usize,
    ) {
        self.keys(id, &pairs);
        let value = |name: &str| pairs.iter().find(|(key, _)| key.name == name).map(|(_, value)| *value);
        let said = |name: &str| value(name).filter(|value| !value.is_null());
        let is_virtual = self.is_virtual(id, at, said(VIRTUAL), said(TYPE));
        let rates = [DOWN, UP].map(|key| {
            let rate = said(key).map_or(Ok(None), |value| rate(value, key, id));
            rate.map_err(|fault| self.faults.note(at.clone(), fault)).unwrap_or_default()
        });
        if parent.is_none() && !is_virtual {
            self.limited(id, at, [DOWN, UP].map(said));
        }
        self.found.push(Draft {
            id: id.to_owned(),
            id_at: at.clone(),
            aliases: ALIASES.iter().filter_map(|name| said(name)?.string()).collect(),
            number: said(ID).and_then(|value| value.string().or_else(|| number(value))),
            parent: parent.map(|(id, at)| (id.to_owned(), at.clone())),
            rates,
            is_virtual,
        });
        let Some(children) = said(CHILDREN) else { return };
        match children.object() {
            Some(children) => self.below(children, Some((id, at)), depth + 1),
            None => {
                let message = format!("site \"{id}\": `{CHILDREN}` is not an object");
                self.faults.note(at.clone(), Fault::new(message, EXAMPLE));
            }
        }
    }

    /// Notes keys that occur twice or are unknown.
    fn keys(&mut self, id: &str, pairs: &Pairs<'_>) {
        let is_known = |name: &str| [&MEANING[..], &ALIASES, &ELSEWHERE].concat().contains(&name);
        let all: HashSet<&str> = pairs.iter().map(|(key, _)| key.name.as_str()).collect();
        let mut before = HashSet::new();
        for (key, value) in pairs {
            let name = key.name.as_str();
            if !before.insert(name) {
                let message = format!("site \"{id}\": a second `{name}`");
                self.faults.note(key.place(), Fault::bare(message));
            } else if is_known(name) {
            } else if let Some(meant) =
                nearest(name, MEANING.into_iter().filter(|meant| !all.contains(meant)))
            {
                let message = format!("site \"{id}\": unknown key `{name}`");
                self.faults.note(key.place(), Fault::new(message, format!("did you mean `{meant}`?")));
            } else if value.is_object() {
                let message = format!("site \"{id}\": unknown key `{name}`");
                let help = format!("sites below a site stand in its `{CHILDREN}`");
                self.faults.note(key.place(), Fault::new(message, help));
            } else {
                self.unknown.entry(name.to_owned()).or_insert((key.place(), 0)).1 += 1;
            }
        }
    }

    /// True if a site only groups other sites.
    fn is_virtual(
        &mut self,
        id: &str,
        at: &Range<usize>,
        said: Option<Written<'_>>,
        kind: Option<Written<'_>>,
    ) -> bool {
        let by_kind = kind.and_then(|kind| kind.string()).is_some_and(|k| k.eq_ignore_ascii_case(VIRTUAL));
        match said.map(|said| said.text()) {
            Some("true") => true,
            Some("false") | None => by_kind,
            Some(other) => {
                let message = format!("site \"{id}\": `{VIRTUAL}` is {other}");
                self.faults.note(at.clone(), Fault::new(message, "it is true or false"));
                false
            }
        }
    }

    /// Notes the missing rates of a site at the top, which cannot inherit them.
    fn limited(&mut self, id: &str, at: &Range<usize>, said: [Option<Written<'_>>; 2]) {
        for (key, value) in [DOWN, UP].into_iter().zip(said) {
            let zero = value.is_some_and(|value| is_zero(&plain(value)));
            if value.is_none() || zero {
                let zero = if zero { " above zero" } else { "" };
                let message = format!("site \"{id}\" has no `{key}`{zero}");
                self.faults.note(at.clone(), Fault::new(message, EXAMPLE));
            }
        }
    }
}

/// Returns a number as it is written, or `None` for any other value.
fn number(value: Written<'_>) -> Option<String> {
    value.text().starts_with(|c: char| c.is_ascii_digit()).then(|| value.text().to_owned())
}

/// Returns the contents of a string, or the text of any other value.
fn plain(value: Written<'_>) -> String {
    value.string().unwrap_or_else(|| value.text().to_owned())
}

/// Parses a rate. Returns `None` for zero, which means no rate.
fn rate(value: Written<'_>, key: &str, id: &str) -> Result<Option<Rate>, Fault> {
    if value.string().or_else(|| number(value)).is_none() && !value.text().starts_with('-') {
        return Err(Fault::new(format!("site \"{id}\": `{key}` is not a number"), EXAMPLE));
    }
    let text = plain(value);
    if is_zero(text.trim()) {
        return Ok(None);
    }
    let in_site = |fault: Fault| {
        let message = format!("site \"{id}\": `{key}`: {}", fault.message);
        Fault { message, ..fault }
    };
    mbps(text.trim()).map(Some).map_err(in_site)
}
