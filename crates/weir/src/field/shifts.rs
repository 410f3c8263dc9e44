//! Rows of reports that another configuration makes sums of other classes: a customer moves to another site,
//! leaves the list or is switched off. Their counters go on from where they were.

use super::control::Version;
use super::lists::Lists;
use crate::result::traffic::{upwards, Carried, Counted, Load, Place, Snapshot};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A row that is the sum of other classes from now on: its identity, and its index among the loads of a
/// snapshot before the change and after it. A site that comes or goes has only one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shift {
    id: u64,
    before: Option<usize>,
    after: Option<usize>,
}

/// A version with its lists, as an engine has it.
pub(super) struct Side<'a> {
    pub version: &'a Version,
    pub lists: &'a Lists,
    /// Classes that the engine counts.
    pub here: &'a [usize],
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the identities of all rows at the indices of [`Snapshot::loads`]. None is 0.
pub(super) fn identities(places: &[Place]) -> impl Iterator<Item = u64> + '_ {
    let of_place = |place: &Place| hash((place.kind, &place.name, place.direction)).max(1);
    places.iter().map(of_place).chain(["out", "in"].map(|way| hash(("link", way)).max(1)))
}

impl Side<'_> {
    /// Returns a digest of the classes that each row is the sum of. A class that comes to have a queue, or
    /// has none any more, has other counters.
    fn members(&self) -> Vec<u64> {
        let (places, classes) = (self.lists.places(), &self.version.file.gateway.classes);
        let mut members = vec![0u64; places.len() + 2];
        for &place in self.here {
            let Some(class) = classes.get(place) else { continue };
            let queued = class.share.is_some_and(|share| share.queue.is_some());
            let member = hash((&class.name, queued));
            let link = places.len() + usize::from(places[place].direction == "in");
            let rows = upwards(places, place).chain([link]);
            rows.for_each(|row| members[row] = members[row].wrapping_add(member));
        }
        members
    }
}

/// Returns the rows that are sums of other classes in the next version. Of rows that one version lacks, those
/// of several classes are among them: a class alone keeps its own counters.
pub(super) fn between(old: &Side<'_>, new: &Side<'_>) -> Vec<Shift> {
    let (had, has) = (old.members(), new.members());
    let [mut gone, known] = [(); 2].map(|()| rows(old.lists.places()));
    let mut shifts = Vec::new();
    for (id, (after, is_sum)) in rows(new.lists.places()) {
        gone.remove(&id);
        match known.get(&id) {
            Some(&(before, _)) if had[before] == has[after] => {}
            None if !is_sum => {}
            before => shifts.push(Shift { id, before: before.map(|row| row.0), after: Some(after) }),
        }
    }
    let gone = gone.into_iter().filter(|(_, (_, is_sum))| *is_sum);
    shifts.extend(gone.map(|(id, (before, _))| Shift { id, before: Some(before), after: None }));
    shifts
}

/// Returns the index of each row by its identity, and whether it is a sum of other rows.
fn rows(places: &[Place]) -> HashMap<u64, (usize, bool)> {
    let mut sums = vec![false; places.len()];
    let parents = places.iter().filter_map(|place| place.parent);
    parents.for_each(|parent| sums.get_mut(parent).into_iter().for_each(|is_sum| *is_sum = true));
    sums.extend([true, true]);
    identities(places).zip(sums.into_iter().enumerate()).collect()
}

/// Sums of rows at one moment.
pub(super) struct Sums(Vec<Load>);

impl Sums {
    /// Returns the sums of these classes.
    pub fn of(classes: Vec<Counted>, places: &Arc<Vec<Place>>) -> Sums {
        Sums(Snapshot { classes, places: places.clone(), ..Snapshot::default() }.loads())
    }

    /// Returns what each shifted row carries over to the sums after the change, by its identity.
    pub fn carried(&self, after: &Sums, shifts: &[Shift]) -> Vec<(u64, Carried)> {
        let load = |sums: &Sums, row: Option<usize>| {
            row.and_then(|row| sums.0.get(row).copied()).unwrap_or_default()
        };
        let carried = |s: &Shift| (s.id, load(self, s.before).ahead_of(load(after, s.after)));
        shifts.iter().map(carried).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::config::{Settings, Source};

    const QUEUED: &str = "queues = \"down\"\ndiscipline = \"pfq\"\nqueue = \"9kB\"\n";

    fn version(list: &str, more: &str, off: &[&str]) -> (Version, Lists) {
        let toml = format!(
            "[ports]\ndev = \"eth1\"\n[gateway.customers]\nfile = \"c.csv\"\nsites = \"s.csv\"\n{more}"
        );
        let list = format!("id,site,prefixes,down,up\n{list}");
        let sources = vec![
            Source::new("g.toml", toml),
            Source::new("c.csv", list),
            Source::new("s.csv", "id,parent,down,up\na,,9Mbit,9Mbit\nb,,9Mbit,9Mbit\n"),
        ];
        let mut settings = Settings::default();
        settings.add_all(off).unwrap();
        let version = Version::parse(sources, settings).unwrap_or_else(|e| panic!("{e}"));
        let lists = Lists::of(&version);
        (version, lists)
    }

    /// Returns the shifted rows, by name and direction.
    fn shifted(old: &(Version, Lists), new: &(Version, Lists)) -> Vec<String> {
        let all =
            |(version, _): &(Version, Lists)| (0..version.file.gateway.classes.len()).collect::<Vec<_>>();
        let (here_old, here_new) = (all(old), all(new));
        let places = new.1.places().iter().map(|place| format!("{} {}", place.name, place.direction));
        let names: Vec<String> = places.chain(["link out", "link in"].map(str::to_owned)).collect();
        let old = Side { version: &old.0, lists: &old.1, here: &here_old };
        let new = Side { version: &new.0, lists: &new.1, here: &here_new };
        let shifts = between(&old, &new);
        let mut rows: Vec<usize> = shifts.iter().filter_map(|shift| shift.after).collect();
        rows.sort_unstable();
        let gone = shifts.iter().filter(|shift| shift.after.is_none()).map(|_| "gone".to_owned());
        rows.iter().map(|row| names[*row].clone()).chain(gone).collect()
    }

    const TWO: &str = "1,a,10.0.0.1,5Mbit,1Mbit\n2,b,10.0.0.2,5Mbit,1Mbit\n";

    #[test]
    fn rows_of_other_classes_are_found() {
        let two = version(TWO, "", &[]);
        assert_eq!(shifted(&two, &version(TWO, "", &[])), [""; 0]);
        let moved = "1,b,10.0.0.1,5Mbit,1Mbit\n2,b,10.0.0.2,5Mbit,1Mbit\n3,a,10.0.0.3,5Mbit,1Mbit\n";
        let rows = ["a out", "a in", "b out", "b in", "link out", "link in"];
        assert_eq!(shifted(&two, &version(moved, "", &[])), rows);
        let gone = version(TWO.split_once('\n').unwrap().0, "", &[]);
        assert_eq!(shifted(&two, &gone), ["link out", "link in", "gone", "gone"]);
        assert_eq!(shifted(&gone, &two), ["b out", "b in", "link out", "link in"]);
        // A customer with a queue that is switched off has none, and a site of such customers has no classes.
        let queued = version(TWO, QUEUED, &[]);
        let off = version(TWO, QUEUED, &["customer/2.off=true"]);
        assert_eq!(shifted(&queued, &off), ["2 in", "link out", "link in", "gone", "gone"]);
    }

    #[test]
    fn counters_go_on_in_both_directions() {
        let places = Arc::new(version(TWO, "", &[]).1.places().to_vec());
        let counted = |place, bytes| Counted { place, load: Load { bytes, ..Load::default() } };
        // Row 4 is `a out`: customer 1, and then none.
        let before = Sums::of(vec![counted(0, 700), counted(2, 30)], &places);
        let after = Sums::of(vec![counted(2, 30)], &places);
        let shift = |before, after| [Shift { id: 9, before, after }];
        let bytes = |before: &Sums, after: &Sums, shifts: [Shift; 1]| before.carried(after, &shifts)[0].1[0];
        assert_eq!(bytes(&before, &after, shift(Some(4), Some(4))), 700);
        assert_eq!(bytes(&after, &before, shift(Some(4), Some(4))), -700);
        // A site that comes begins at nothing, and one that goes is where it was when it comes again.
        assert_eq!(bytes(&after, &before, shift(None, Some(4))), -700);
        assert_eq!(bytes(&before, &after, shift(Some(4), None)), 700);
        let carried = vec![(4, before.carried(&after, &shift(Some(4), Some(4)))[0].1)];
        let snapshot = Snapshot { classes: vec![counted(2, 50)], places, carried, ..Snapshot::default() };
        let bytes = |name: &str| {
            let rows = snapshot.rows();
            rows.iter().find(|row| row.name == name && row.direction == "out").unwrap().load.bytes
        };
        assert_eq!((bytes("a"), bytes("b"), bytes("2")), (700, 50, 50));
    }
}
