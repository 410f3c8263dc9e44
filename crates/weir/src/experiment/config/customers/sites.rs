//! Lists of sites: towers, access points or buildings, whose customers share the site's rates. Sites may be
//! nested.
//!
//! Two formats are read: a CSV file of Weir's own columns, and LibreQoS's network.json (in `network`).

use super::columns::{Column, Columns};
use super::draft::Draft;
use super::fields::Fields;
use super::{label, network, rate_set, table, Faults};
use crate::experiment::config::diag::{listed, nearest, Errors, Fault, Located, Source};
use crate::experiment::config::settings::Settings;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::Path;
use weir_core::gateway::{Direction, DEEPEST};
use weir_core::rate::Rate;

/// Maximum number of sites above a site. A customer is one more level below it.
const MOST_ABOVE: usize = DEEPEST - 2;

/// A site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Identifier, as written in lists.
    pub id: String,
    /// Identifier in the form that names of classes allow. The classes are `NAME-up` and `NAME-down`.
    pub name: String,
    /// Site above, as an index into the list.
    pub parent: Option<usize>,
    /// Rate of all downloads below the site together.
    pub down: Rate,
    /// Rate of all uploads below the site together.
    pub up: Rate,
}

impl Site {
    /// Returns the rate of all customers below the site together in this direction. The sites above may leave
    /// less.
    pub fn rate(&self, direction: Direction) -> Rate {
        match direction {
            Direction::Out => self.up,
            Direction::In => self.down,
        }
    }
}

/// Sites, found by the names that rows of customers use.
#[derive(Clone, Debug, Default)]
pub(in crate::experiment::config) struct Sites {
    pub list: Vec<Site>,
    /// Index in the list for each name; `None` for a site without a limit of its own or above it.
    names: HashMap<String, Option<usize>>,
    numbers: HashMap<String, Option<usize>>,
    notes: Vec<Located>,
    /// Words about unknown identifiers: the names that exist, and the guess for each identifier.
    known: OnceCell<String>,
    guesses: RefCell<HashMap<String, String>>,
}

/// Most names that errors list, and most identifiers that names are guessed for. A guess compares all names.
const MOST_LISTED: usize = 20;

impl Sites {
    /// Returns the site with this name, or the nearest limiting site above it.
    pub(super) fn named(&self, name: &str) -> Option<Option<usize>> {
        self.names.get(name).copied()
    }

    /// Finds a site like [`Sites::named`], by the identifier that sites of network.json have besides their
    /// name.
    pub(super) fn numbered(&self, number: &str) -> Option<Option<usize>> {
        self.numbers.get(number).copied()
    }

    /// True if there is no site at all.
    pub(super) fn is_flat(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the fault of an identifier that no site has.
    pub(super) fn unknown(&self, id: &str) -> Fault {
        let guess = self.guess(id);
        let known = self.known.get_or_init(|| {
            let mut known: Vec<&str> = self.names.keys().map(String::as_str).collect();
            known.sort_unstable();
            let more = known.len().saturating_sub(MOST_LISTED);
            known.truncate(MOST_LISTED);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            format!("there is {}{more}", listed(known))
        });
        Fault::new(format!("no site is \"{id}\""), format!("{guess}{known}"))
    }

    /// Returns the words about the site that this identifier probably means, if there is one.
    fn guess(&self, id: &str) -> String {
        let mut guesses = self.guesses.borrow_mut();
        if let Some(guess) = guesses.get(id) {
            return guess.clone();
        }
        if guesses.len() == MOST_LISTED {
            return String::new();
        }
        let name = nearest(id, self.names.keys().map(String::as_str));
        let guess = name.map_or(String::new(), |name| format!("did you mean `{name}`? "));
        guesses.insert(id.to_owned(), guess.clone());
        guess
    }

    /// Takes the notes about the list.
    pub fn notes(&mut self) -> Vec<Located> {
        std::mem::take(&mut self.notes)
    }
}

/// Iterates over the site at `from` and the sites above it.
pub(super) fn upwards(sites: &[Site], from: Option<usize>) -> impl Iterator<Item = usize> + '_ {
    core::iter::successors(from, |&at| sites[at].parent)
}

/// Returns the smallest rate of this site and the sites above it.
pub(super) fn most(sites: &[Site], from: Option<usize>, direction: Direction) -> Option<Rate> {
    upwards(sites, from).map(|at| sites[at].rate(direction)).min()
}

/// Reads a list of sites. All errors of the file are returned at once, up to a limit.
pub(in crate::experiment::config) fn read(source: &Source, settings: &Settings) -> Result<Sites, Errors> {
    let mut faults = Faults::default();
    let extension = Path::new(&source.name).extension();
    let drafts = match extension.is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
        true => network::drafts(source, &mut faults),
        false => rows(source, &mut faults),
    };
    let sites = link(&drafts, &mut faults);
    let (mut sites, notes) = faults.finish(source, sites)?;
    sites.notes = notes;
    set(&mut sites.list, settings).map_err(|fault| Errors::of(source, fault))?;
    Ok(sites)
}

/// Reads the rows of a CSV file.
fn rows(source: &Source, faults: &mut Faults) -> Vec<Draft> {
    let rows = table::rows(source, faults);
    let Some((header, rows)) = rows.split_first() else { return Vec::new() };
    let Some(columns) = Columns::of_sites(header, faults) else { return Vec::new() };
    let mut drafts = Vec::new();
    let fields = |row| Fields { source, columns: &columns, row };
    let has_none = rows.iter().any(|row| fields(row).text(Column::Id) == "none");
    for row in rows {
        let fields = fields(row);
        if let Some(fault) = columns.wrong_length(row) {
            faults.note(row.place(0), fault);
            continue;
        }
        let id = fields.id(faults);
        let rates = [Column::Down, Column::Up].map(|column| fields.rate(column, faults));
        let parent =
            fields.named(Column::Site, |_| has_none).map(|id| (id.to_owned(), fields.place(Column::Site)));
        if let Some((id, _)) = id {
            let id_at = fields.place(Column::Id);
            let (aliases, number) = (Vec::new(), None);
            drafts.push(Draft { id, id_at, aliases, number, parent, rates, is_virtual: false });
        }
    }
    drafts
}

/// Links the limiting sites into a hierarchy. Returns no sites if the file is faulty.
fn link(drafts: &[Draft], faults: &mut Faults) -> Sites {
    let by_id = by_id(drafts, faults);
    let known = OnceCell::new();
    let parents: Vec<Option<usize>> =
        drafts.iter().map(|draft| parent(draft, &by_id, &known, faults)).collect();
    let above = |i: usize| core::iter::successors(parents[i], |&at| parents[at]);
    let limits = |at: &usize| !drafts[*at].is_virtual;
    for (i, draft) in drafts.iter().enumerate() {
        // Sites without a limit may form a circle, too.
        let all = above(i).take(drafts.len() + 1);
        if all.clone().filter(limits).nth(MOST_ABOVE).is_some() || all.count() > drafts.len() {
            let message =
                format!("site \"{}\" is above itself, or has more than {MOST_ABOVE} above it", draft.id);
            faults.note(draft.id_at.clone(), Fault::bare(message));
        }
    }
    // A site that only groups others has no rate to inherit.
    let own = |i: usize, k: usize| {
        [i].into_iter().chain(above(i)).filter(limits).find_map(|at| drafts[at].rates[k])
    };
    if faults.count == 0 {
        for (i, draft) in drafts.iter().enumerate().filter(|(i, _)| limits(i)) {
            for (k, key) in [network::DOWN, network::UP].into_iter().enumerate() {
                if own(i, k).is_none() {
                    let message = format!("site \"{}\" has no `{key}`, nor has a site above it", draft.id);
                    faults.note(draft.id_at.clone(), Fault::bare(message));
                }
            }
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
    // Each limiting site has both by now.
    let rate = |i: usize, k: usize| own(i, k).unwrap_or(Rate::mbit(1));
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
    // A name that several sites have besides their own names none of them.
    let mut aliases: HashMap<&str, Option<Option<usize>>> = HashMap::new();
    for (i, draft) in drafts.iter().enumerate() {
        let at = Some(nearest(Some(i)));
        for alias in &draft.aliases {
            let one = aliases.entry(alias).or_insert(at);
            *one = one.filter(|_| *one == at);
        }
    }
    for (alias, at) in aliases.into_iter().filter_map(|(alias, at)| Some((alias, at?))) {
        sites.names.entry(alias.to_owned()).or_insert(at);
    }
    sites
}

/// Adds a note about a nested site that inherits a rate.
fn inherited(draft: &Draft, faults: &mut Faults) {
    let missing = draft.rates.contains(&None) && !draft.is_virtual && draft.parent.is_some();
    if missing {
        let message = format!("site \"{}\" has no rate of its own", draft.id);
        faults.remark(draft.id_at.clone(), Fault::new(message, "it has that of the site above it"));
    }
}

/// Returns the indices of drafts by their identifiers, and notes duplicates.
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

/// Returns the index of the site above.
fn parent(
    draft: &Draft,
    by_id: &HashMap<&str, usize>,
    known: &OnceCell<Sites>,
    faults: &mut Faults,
) -> Option<usize> {
    let (parent, at) = draft.parent.as_ref()?;
    let found = by_id.get(parent.as_str()).copied();
    if found.is_none() {
        let names = || by_id.keys().map(|id| (id.to_string(), None)).collect();
        let known = known.get_or_init(|| Sites { names: names(), ..Sites::default() });
        faults.note(at.clone(), known.unknown(parent));
    }
    found
}

/// Applies the settings to the list. Settings refer to a site by the name of its classes.
fn set(sites: &mut [Site], settings: &Settings) -> Result<(), Fault> {
    for (name, values) in settings.of_sites() {
        let site = sites.iter_mut().find(|site| site.name == name);
        let site = site.ok_or_else(|| Fault::bare(format!("there is no site \"{name}\"")))?;
        rate_set(values.down, &mut site.down)?;
        rate_set(values.up, &mut site.up)?;
    }
    Ok(())
}
