//! Things that a request names: an address, a customer, a site or a class.

use super::{Owner, Version};
use crate::experiment::config::customers::{self, label};
use crate::experiment::config::diag::{listed, near};
use crate::field::lists::Lists;
use crate::result::traffic::{Kind, Place, Shown};
use std::net::IpAddr;

/// Part of the traffic that a request asks for.
#[derive(Debug, Default, PartialEq)]
pub struct Subject {
    /// Address that flows are limited to.
    pub address: Option<IpAddr>,
    /// Classes that are shown.
    pub shown: Shown,
    /// Customer whose traffic it is.
    pub owner: Option<Owner>,
}

/// Word that asks for everything.
const ALL: &str = "all";

impl Subject {
    /// Finds what a word of a request names. The word is `all`, an address, `KIND/NAME`, or a name that only
    /// one thing has.
    pub fn find(word: &str, version: &Version) -> Result<Subject, String> {
        if word == ALL {
            return Ok(Subject { shown: Shown::All, ..Subject::default() });
        }
        let list = &version.file.customers;
        let lists = Lists::of(version);
        if let Ok(address) = word.parse() {
            let owner = Owner::of(address, list);
            let name = owner.as_ref().map(|owner| label(&owner.id));
            let shown = name.map_or_else(Vec::new, |name| named(lists.places(), Kind::Customer, &name));
            return Ok(Subject { address: Some(address), shown: Shown::These(shown), owner });
        }
        let classes = &version.file.gateway.classes;
        let of_class = |name: &str| {
            let own = classes.iter().position(|class| class.name == name || class.name == label(name));
            below(lists.places(), own.into_iter().collect())
        };
        let find = |kind: Kind, name: &str| {
            Ok::<_, String>(match kind {
                Kind::Class => of_class(name),
                Kind::Customer => {
                    let found = customers::named::find(list, name)?;
                    found.map_or_else(Vec::new, |found| named(lists.places(), kind, &found.label))
                }
                _ => below(lists.places(), named(lists.places(), kind, &label(name))),
            })
        };
        let kinds = [Kind::Customer, Kind::Site, Kind::Class];
        let written = word
            .split_once('/')
            .and_then(|(kind, name)| Some((kinds.into_iter().find(|known| known.name() == kind)?, name)));
        let found: Vec<(Kind, &str, Vec<usize>)> = match written {
            Some((kind, name)) => vec![(kind, name, find(kind, name)?)],
            None => {
                let all = kinds.into_iter().map(|kind| Ok((kind, word, find(kind, word)?)));
                all.collect::<Result<_, String>>()?
            }
        };
        let mut found = found.into_iter().filter(|(.., places)| !places.is_empty());
        let Some((kind, name, places)) = found.next() else {
            let name = written.map_or(word, |(_, name)| name);
            let places = lists.places().iter().map(|place| place.name.as_str());
            let mut like = customers::named::like(list, name);
            like.extend(near(name, places));
            return Err(unknown(word, &like));
        };
        if let Some((other, ..)) = found.next() {
            let [one, other] = [kind, other].map(Kind::name);
            return Err(format!(
                "`{word}` is a {one} and a {other}: {one}/{word} and {other}/{word} tell them apart"
            ));
        }
        let owner = match kind {
            Kind::Customer => customers::named::find(list, name)?.map(Owner::from),
            _ => None,
        };
        Ok(Subject { address: None, shown: Shown::These(places), owner })
    }
}

/// Returns an error about a word that names nothing, with the names that are like it.
fn unknown(word: &str, like: &[&str]) -> String {
    let mut names: Vec<&str> = Vec::new();
    like.iter().for_each(|name| {
        if names.iter().all(|known| label(known) != label(name)) {
            names.push(name);
        }
    });
    let guess = if names.is_empty() { String::new() } else { format!("; like it: {}", listed(names)) };
    format!("`{word}` is no address, and no customer, site or class has this name{guess}")
}

/// Returns the indices of the classes of a thing.
fn named(places: &[Place], kind: Kind, name: &str) -> Vec<usize> {
    let is_it = |(_, place): &(usize, &Place)| place.kind == kind && place.name == name;
    places.iter().enumerate().filter(is_it).map(|(i, _)| i).collect()
}

/// Returns classes and all below them, in order.
fn below(places: &[Place], top: Vec<usize>) -> Vec<usize> {
    if top.is_empty() {
        return top;
    }
    let above = |place: &usize| places[*place].parent.filter(|&parent| parent < places.len());
    let is_below = |place: &usize| {
        let mut way = std::iter::successors(Some(*place), above).take(places.len());
        way.any(|place| top.contains(&place))
    };
    (0..places.len()).filter(is_below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::config::{Settings, Source};

    fn version() -> Version {
        let toml = "[ports]\ndev = \"eth1\"\n[gateway.customers]\nfile = \"c.csv\"\nsites = \"s.csv\"\n\
                    [[gateway.class]]\nname = \"voip\"\nmatch = [{ dst_port = 5061 }]\nrate = \"9Mbit\"\n\
                    [[gateway.class]]\nname = \"17\"\nmatch = [{ dst_port = 5062 }]\nrate = \"9Mbit\"";
        let list = "id,name,site,prefixes,down,up\n17,Ada,Tower 0,10.0.0.1,2Mbit,1Mbit\n\
                    12 Main/B,,,10.0.0.2,2Mbit,1Mbit\n";
        let sites = "id,parent,down,up\nTower 0,,5Mbit,5Mbit\n";
        let sources =
            vec![Source::new("g.toml", toml), Source::new("c.csv", list), Source::new("s.csv", sites)];
        Version::parse(sources, Settings::default()).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Classes: 17-up, 17-down, 12_Main_B-up, 12_Main_B-down, Tower_0-up, Tower_0-down, voip, 17.
    #[test]
    fn one_name_finds_one_thing() {
        let version = version();
        let these = |word: &str| match Subject::find(word, &version) {
            Ok(Subject { shown: Shown::These(places), .. }) => places,
            other => panic!("{word}: {other:?}"),
        };
        assert_eq!((these("customer/17"), these("Ada")), (vec![0, 1], vec![0, 1]));
        assert_eq!((these("12_Main_B"), these("customer/12 Main/B")), (vec![2, 3], vec![2, 3]));
        assert_eq!((these("12 Main/B"), these("12 Main/B-down")), (vec![2, 3], vec![3]));
        assert_eq!((these("Tower_0"), these("site/Tower 0")), (vec![0, 1, 4, 5], vec![0, 1, 4, 5]));
        assert_eq!((these("voip"), these("17-down"), these("class/17")), (vec![6], vec![1], vec![7]));
        assert_eq!((these("10.0.0.1"), these("10.9.9.9")), (vec![0, 1], vec![]));
        assert_eq!(Subject::find("all", &version).unwrap().shown, Shown::All);
    }

    #[test]
    fn customers_are_named_with_their_lists_row() {
        let owner = |word: &str| Subject::find(word, &version()).unwrap().owner.map(|owner| owner.name);
        assert_eq!(owner("customer/17").as_deref(), Some("Ada"));
        assert_eq!((owner("Ada").as_deref(), owner("customer/Ada").as_deref()), (Some("Ada"), Some("Ada")));
        assert_eq!((owner("10.0.0.1").as_deref(), owner("Tower_0")), (Some("Ada"), None));
    }

    #[test]
    fn a_name_that_nothing_or_two_things_have_is_refused() {
        let wrong = |word: &str| Subject::find(word, &version()).unwrap_err();
        assert!(wrong("19").contains("no customer, site or class"), "{}", wrong("19"));
        assert!(wrong("17").contains("customer/17 and class/17"), "{}", wrong("17"));
        assert!(wrong("site/17").contains("no customer, site or class"));
        assert!(wrong("ada").ends_with("; like it: `Ada`"), "{}", wrong("ada"));
        assert!(wrong("Towre_0").ends_with("; like it: `Tower_0`"), "{}", wrong("Towre_0"));
        assert!(wrong("main").ends_with("; like it: `12 Main/B`"), "{}", wrong("main"));
    }
}
