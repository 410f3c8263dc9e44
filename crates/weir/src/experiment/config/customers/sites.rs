//! Lists of sites: towers, access points, buildings, whose customers share what they have. Sites may be below each other.
//!
//! Two kinds are understood: a CSV file of Weir's own columns, and LibreQoS's network.json ([`network`](super::network)).

use super::columns::{Column, Columns};
use super::draft::Draft;
use super::fields::Fields;
use super::{label, network, rate_set, table, Faults};
use crate::experiment::config::diag::{listed, nearest, Errors, Fault, Located, Source};
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

/// Sites by the names that rows of customers have for them.
#[derive(Clone, Debug, Default)]
pub(in crate::experiment::config) struct Sites {
    pub list: Vec<Site>,
    /// The place in the list for each name; none for a site that limits nothing and is below none that does.
    names: HashMap<String, Option<usize>>,
    numbers: HashMap<String, Option<usize>>,
    notes: Vec<Located>,
}

impl Sites {
    /// The site, or the nearest above it that limits anything.
    pub(super) fn named(&self, name: &str) -> Option<Option<usize>> {
        self.names.get(name).copied()
    }

    /// As [`Sites::named`], by the identifier that sites of network.json have beside their name.
    pub(super) fn numbered(&self, number: &str) -> Option<Option<usize>> {
        self.numbers.get(number).copied()
    }

    /// No site is known under any name.
    pub(super) fn is_flat(&self) -> bool {
        self.names.is_empty()
    }

    /// What is wrong where no site has this identifier.
    pub(super) fn unknown(&self, id: &str) -> Fault {
        let known = self.names.keys().map(String::as_str);
        let guess =
            nearest(id, known.clone()).map_or(String::new(), |name| format!("did you mean `{name}`? "));
        let mut known: Vec<&str> = known.collect();
        known.sort_unstable();
        let more = known.len().saturating_sub(20);
        known.truncate(20);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        Fault::new(format!("no site is \"{id}\""), format!("{guess}there is {}{more}", listed(known)))
    }

    /// Takes the notes about the list.
    pub fn notes(&mut self) -> Vec<Located> {
        std::mem::take(&mut self.notes)
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
pub(in crate::experiment::config) fn read(source: &Source, settings: &Settings) -> Result<Sites, Errors> {
    let mut faults = Faults::default();
    let drafts = match source.name.ends_with(".json") {
        true => network::drafts(source, &mut faults),
        false => rows(source, &mut faults),
    };
    let sites = link(&drafts, &mut faults);
    let (mut sites, notes) = faults.finish(source, sites)?;
    sites.notes = notes;
    set(&mut sites.list, settings).map_err(|fault| Errors::of(source, fault))?;
    Ok(sites)
}

/// The rows of a CSV file.
fn rows(source: &Source, faults: &mut Faults) -> Vec<Draft> {
    let rows = table::rows(source, faults);
    let Some((header, rows)) = rows.split_first() else { return Vec::new() };
    let Some(columns) = Columns::of_sites(header, faults) else { return Vec::new() };
    let mut drafts = Vec::new();
    for row in rows {
        let fields = Fields { source, columns: &columns, row };
        if let Some(fault) = columns.wrong_length(row.fields.len()) {
            faults.note(row.place(0), fault);
            continue;
        }
        let id = fields.id(faults);
        let rates = [Column::Down, Column::Up].map(|column| fields.rate(column, faults));
        let parent = fields.named(Column::Site).map(|id| (id.to_owned(), fields.place(Column::Site)));
        if let Some((id, _)) = id {
            let id_at = fields.place(Column::Id);
            let (aliases, number) = (Vec::new(), None);
            drafts.push(Draft { id, id_at, aliases, number, parent, rates, is_virtual: false });
        }
    }
    drafts
}

/// The sites that limit anything, below each other. Where a file is faulty, there are none.
fn link(drafts: &[Draft], faults: &mut Faults) -> Sites {
    let by_id = by_id(drafts, faults);
    let parents: Vec<Option<usize>> = drafts.iter().map(|draft| parent(draft, &by_id, faults)).collect();
    let above = |i: usize| core::iter::successors(parents[i], |&at| parents[at]);
    let limits = |at: &usize| !drafts[*at].is_virtual;
    for (i, draft) in drafts.iter().enumerate() {
        // Those that limit nothing may be in a circle, too.
        let all = above(i).take(drafts.len() + 1);
        if all.clone().count() > drafts.len() || all.filter(limits).nth(MOST_ABOVE).is_some() {
            let message =
                format!("site \"{}\" is above itself, or has more than {MOST_ABOVE} above it", draft.id);
            faults.note(draft.id_at.clone(), Fault::bare(message));
        }
    }
    if faults.count > 0 {
        return Sites::default();
    }
    let mut places = vec![None; drafts.len()];
    (0..drafts.len()).filter(limits).zip(0..).for_each(|(i, place)| places[i] = Some(place));
    let nearest = |from: Option<usize>| {
        let at = core::iter::successors(from, |&at| parents[at]).find(limits)?;
        places[at]
    };
    let rate = |i: usize, k: usize| {
        let own = [i].into_iter().chain(above(i)).filter(limits).find_map(|at| drafts[at].rates[k]);
        // A site below no other has its rates.
        own.unwrap_or(Rate::mbit(1))
    };
    let site = |i: usize| {
        let id = drafts[i].id.clone();
        let (name, parent) = (label::label(&id), nearest(parents[i]));
        Site { id, name, parent, down: rate(i, 0), up: rate(i, 1) }
    };
    let mut sites = Sites { list: (0..drafts.len()).filter(limits).map(site).collect(), ..Sites::default() };
    for (i, draft) in drafts.iter().enumerate() {
        sites.names.insert(draft.id.clone(), nearest(Some(i)));
        if let Some(number) = &draft.number {
            if sites.numbers.insert(number.clone(), nearest(Some(i))).is_some() {
                let message = format!("site \"{}\": another site has the `id` \"{number}\" too", draft.id);
                faults.note(draft.id_at.clone(), Fault::bare(message));
            }
        }
        inherited(draft, faults);
    }
    for (i, draft) in drafts.iter().enumerate() {
        for alias in &draft.aliases {
            sites.names.entry(alias.clone()).or_insert(nearest(Some(i)));
        }
    }
    sites
}

/// Says of a site below another one that it has no rate of its own.
fn inherited(draft: &Draft, faults: &mut Faults) {
    let missing = draft.rates.contains(&None) && !draft.is_virtual && draft.parent.is_some();
    if missing {
        let message = format!("site \"{}\" has no rate of its own", draft.id);
        faults.remark(draft.id_at.clone(), Fault::new(message, "it has that of the site above it"));
    }
}

/// The places of drafts by their identifiers, with a note of those that are there twice.
fn by_id<'a>(drafts: &'a [Draft], faults: &mut Faults) -> HashMap<&'a str, usize> {
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    let mut by_label: HashMap<String, &str> = HashMap::new();
    for (i, draft) in drafts.iter().enumerate() {
        let at = || draft.id_at.clone();
        if by_id.insert(&draft.id, i).is_some() {
            faults.note(at(), Fault::bare(format!("site \"{}\" is there twice", draft.id)));
            continue;
        }
        if draft.is_virtual {
            continue;
        }
        match label::checked(&draft.id) {
            Ok(label) => {
                if let Some(other) = by_label.insert(label, &draft.id) {
                    faults.note(at(), label::taken("site", &draft.id, &format!("\"{other}\"")));
                }
            }
            Err(fault) => faults.note(at(), fault),
        }
    }
    by_id
}

/// The place of the site above one.
fn parent(draft: &Draft, by_id: &HashMap<&str, usize>, faults: &mut Faults) -> Option<usize> {
    let (parent, at) = draft.parent.as_ref()?;
    let found = by_id.get(parent.as_str()).copied();
    if found.is_none() {
        let known = by_id.keys().map(|id| (id.to_string(), None)).collect();
        let sites = Sites { names: known, ..Sites::default() };
        faults.note(at.clone(), sites.unknown(parent));
    }
    found
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
