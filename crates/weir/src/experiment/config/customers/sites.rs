//! Lists of sites: towers, access points, buildings, whose customers share what they have. Sites may be below each other.
//!
//! Two kinds are understood: a CSV file of Weir's own columns, and LibreQoS's network.json ([`network`](super::network)).

use super::columns::{Column, Columns};
use super::draft::Draft;
use super::fields::Fields;
use super::{network, place, rate_set, Faults};
use crate::experiment::config::diag::{listed, nearest, Errors, Fault, Source};
use crate::experiment::config::names;
use crate::experiment::config::settings::Settings;
use std::collections::HashMap;
use weir_core::gateway::{Direction, DEEPEST};
use weir_core::rate::Rate;

/// Sites above a site at most: a customer is one more below it.
const MOST_ABOVE: usize = DEEPEST - 2;

/// A site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its identifier, as lists have it.
    pub id: String,
    /// The same as far as it can be in names of classes, which are `NAME-up` and `NAME-down`.
    pub name: String,
    /// The site above it, by its place in the list.
    pub parent: Option<usize>,
    /// What all below it download together at most.
    pub down: Rate,
    /// What they upload.
    pub up: Rate,
}

impl Site {
    /// What all below it have together in this direction, if those above it leave as much.
    pub fn rate(&self, direction: Direction) -> Rate {
        match direction {
            Direction::Out => self.up,
            Direction::In => self.down,
        }
    }
}

/// The site at `from` and those above it.
pub(super) fn upwards(sites: &[Site], from: Option<usize>) -> impl Iterator<Item = usize> + '_ {
    core::iter::successors(from, |&at| sites[at].parent)
}

/// The most that this site, and those above it, let through.
pub(super) fn most(sites: &[Site], from: Option<usize>, direction: Direction) -> Option<Rate> {
    upwards(sites, from).map(|at| sites[at].rate(direction)).min()
}

/// Reads a list of sites. All errors of the file come at once, up to a limit.
pub(in crate::experiment::config) fn read(source: &Source, settings: &Settings) -> Result<Vec<Site>, Errors> {
    let mut faults = Faults::default();
    let drafts = match source.name.ends_with(".json") {
        true => network::drafts(source, &mut faults),
        false => rows(source, &mut faults),
    };
    let sites = link(drafts, &mut faults);
    let mut sites = faults.finish(source, sites)?;
    set(&mut sites, settings).map_err(|fault| Errors::of(source, fault))?;
    Ok(sites)
}

/// The rows of a CSV file.
fn rows(source: &Source, faults: &mut Faults) -> Vec<Draft> {
    let mut reader = super::reader(source);
    let columns = match reader.headers() {
        Ok(header) => Columns::of_sites(source, header, faults),
        Err(error) => {
            faults.note(0..0, Fault::bare(error.to_string()));
            None
        }
    };
    let Some(columns) = columns else { return Vec::new() };
    let mut drafts = Vec::new();
    for record in super::records(&mut reader, faults) {
        let start = record.position().map_or(0, |at| at.byte() as usize);
        let at = |i: usize| place::place(&source.text, start, i);
        let fields = Fields { source, columns: &columns, record: &record, at: &at };
        if let Some(fault) = columns.wrong_length(record.len()) {
            faults.note(at(0), fault);
            continue;
        }
        let (id, id_at) = fields.id(faults);
        let ((down, _), (up, _)) = (fields.rate(Column::Down, faults), fields.rate(Column::Up, faults));
        let parent = fields.named(Column::Site);
        if let Some(id) = id {
            // What is faulty is refused, so any rate does for now.
            let [down, up] = [down, up].map(|rate| rate.unwrap_or(Rate::mbit(1)));
            drafts.push(Draft { id, id_at, parent, down, up });
        }
    }
    drafts
}

/// The sites with the places of their parents.
fn link(drafts: Vec<Draft>, faults: &mut Faults) -> Vec<Site> {
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    let mut by_name: HashMap<String, &str> = HashMap::new();
    for (i, draft) in drafts.iter().enumerate() {
        if by_id.insert(&draft.id, i).is_some() {
            faults.note(draft.id_at.clone(), Fault::bare(format!("site \"{}\" is there twice", draft.id)));
        } else if let Some(other) = by_name.insert(name(&draft.id), &draft.id) {
            let message =
                format!("the classes of site \"{}\" would be called as those of \"{other}\"", draft.id);
            let help = "in names of classes other characters than letters, digits and `-` become `_`";
            faults.note(draft.id_at.clone(), Fault::new(message, help));
        }
        if names::name(format!("{}-down", name(&draft.id))).is_err() {
            let help = "identifiers of sites have 1 to 59 characters";
            faults.note(draft.id_at.clone(), Fault::new(format!("\"{}\" is too long", draft.id), help));
        }
    }
    let mut sites: Vec<Site> = Vec::new();
    for draft in &drafts {
        let parent = draft.parent.as_ref().and_then(|(parent, at)| {
            let found = by_id.get(parent.as_str()).copied();
            if found.is_none() {
                faults.note(at.clone(), unknown(parent, by_id.keys().copied()));
            }
            found
        });
        let (id, name) = (draft.id.clone(), name(&draft.id));
        sites.push(Site { id, name, parent, down: draft.down, up: draft.up });
    }
    for (i, draft) in drafts.iter().enumerate() {
        if upwards(&sites, sites[i].parent).nth(MOST_ABOVE).is_some() {
            let message =
                format!("site \"{}\" is above itself, or has more than {MOST_ABOVE} above it", draft.id);
            faults.note(draft.id_at.clone(), Fault::bare(message));
        }
    }
    sites
}

/// What is wrong where no site has this identifier.
pub(super) fn unknown<'a>(id: &str, known: impl Iterator<Item = &'a str> + Clone) -> Fault {
    let guess = nearest(id, known.clone()).map_or(String::new(), |name| format!("did you mean `{name}`? "));
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    let more = known.len().saturating_sub(20);
    known.truncate(20);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    Fault::new(format!("no site is \"{id}\""), format!("{guess}there is {}{more}", listed(known)))
}

/// An identifier as it can be in the name of a class.
fn name(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// Lays what was set over the list; sites are called there as their classes are.
fn set(sites: &mut [Site], settings: &Settings) -> Result<(), Fault> {
    for (name, values) in settings.of_sites() {
        let site = sites.iter_mut().find(|site| site.name == name);
        let site = site.ok_or_else(|| Fault::bare(format!("there is no site \"{name}\"")))?;
        rate_set(values.down, &mut site.down)?;
        rate_set(values.up, &mut site.up)?;
    }
    Ok(())
}
