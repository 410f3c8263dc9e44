//! Rules that have an address.

use super::{At, Prefix};
use core::net::IpAddr;
use prefix_trie::PrefixMap;

/// The rules of each prefix. A prefix knows the next shorter one that covers it, so that one search finds all
/// that cover an address, without any memory.
#[derive(Default)]
pub(super) struct Prefixes {
    v4: PrefixMap<(u32, u8), u32>,
    v6: PrefixMap<(u128, u8), u32>,
    entries: Vec<Entry>,
    /// Rules of all prefixes. Those of one prefix are beside each other, in the order of the configuration.
    rules: Vec<At>,
}

struct Entry {
    /// The next shorter prefix.
    cover: Option<u32>,
    /// Range of the prefix's rules.
    first: u32,
    end: u32,
}

impl Prefixes {
    /// The prefixes of rules, in any order.
    pub(super) fn new(mut rules: Vec<(Prefix, At)>) -> Prefixes {
        // What covers a prefix comes before it.
        rules.sort_unstable_by_key(|(prefix, at)| (prefix.bits(), prefix.addr(), *at));
        let mut prefixes = Prefixes::default();
        for same in rules.chunk_by(|(a, _), (b, _)| a == b) {
            let prefix = same[0].0;
            let number = prefixes.entries.len() as u32;
            let first = prefixes.rules.len() as u32;
            let (cover, end) = (prefixes.longest(prefix), first + same.len() as u32);
            prefixes.rules.extend(same.iter().map(|(_, at)| at));
            prefixes.entries.push(Entry { cover, first, end });
            match prefix.addr() {
                IpAddr::V4(a) => prefixes.v4.insert((a.to_bits(), prefix.bits()), number),
                IpAddr::V6(a) => prefixes.v6.insert((a.to_bits(), prefix.bits()), number),
            };
        }
        prefixes
    }

    /// The longest prefix that covers this one.
    fn longest(&self, prefix: Prefix) -> Option<u32> {
        let found = match prefix.addr() {
            IpAddr::V4(a) => self.v4.get_lpm(&(a.to_bits(), prefix.bits())).map(|(_, number)| number),
            IpAddr::V6(a) => self.v6.get_lpm(&(a.to_bits(), prefix.bits())).map(|(_, number)| number),
        };
        found.copied()
    }

    /// The rules of each prefix that covers the address, the longest prefix first.
    pub(super) fn of(&self, address: impl FnOnce() -> IpAddr) -> impl Iterator<Item = &[At]> {
        let first = if self.entries.is_empty() { None } else { self.longest(Prefix::host(address())) };
        let entry = |number: u32| &self.entries[number as usize];
        let next = move |number: &u32| entry(*number).cover;
        core::iter::successors(first, next).map(move |number| {
            let Entry { first, end, .. } = *entry(number);
            &self.rules[first as usize..end as usize]
        })
    }
}
