//! Duplicate detection by the numbers of a flow's datagrams.

/// Length of the window of remembered numbers behind the highest.
pub const SPAN: u64 = 1 << 16;
const WORDS: usize = (SPAN / 64) as usize;

/// An account of the numbers of one flow. A number that is further than `SPAN` behind the highest counts as
/// one that came before.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// One more than the highest number.
    next: u64,
    /// A bit for each of the last [`SPAN`] numbers, once one of them was missing.
    came: Option<Box<[u64; WORDS]>>,
    distinct: u64,
    copies: u64,
    missing: u64,
    reordered: u64,
}

impl Numbers {
    /// One more than the highest number that has come; 0 at first.
    pub fn next(&self) -> u64 {
        self.next
    }
    /// Datagrams, each counted once.
    pub fn distinct(&self) -> u64 {
        self.distinct
    }
    /// Datagrams that had come before.
    pub fn copies(&self) -> u64 {
        self.copies
    }
    /// Numbers below the highest that have not come.
    pub fn missing(&self) -> u64 {
        self.missing
    }
    /// Datagrams that came after one with a higher number (RFC 4737 section 3.3), copies left out.
    pub fn reordered(&self) -> u64 {
        self.reordered
    }

    /// A datagram comes. Is it the first with this number?
    pub fn note(&mut self, number: u64) -> bool {
        let new = if number >= self.next { self.ahead(number) } else { self.behind(number) };
        self.distinct += u64::from(new);
        self.copies += u64::from(!new);
        new
    }

    fn ahead(&mut self, number: u64) -> bool {
        let gap = number - self.next;
        self.missing = self.missing.saturating_add(gap);
        if gap > 0 {
            self.came.get_or_insert_with(|| Box::new([u64::MAX; WORDS]));
        }
        if let Some(came) = &mut self.came {
            if gap >= SPAN {
                **came = [0; WORDS];
            } else {
                (self.next..number).for_each(|n| came[word(n)] &= !bit(n));
            }
            came[word(number)] |= bit(number);
        }
        self.next = number.saturating_add(1);
        true
    }

    fn behind(&mut self, number: u64) -> bool {
        let known = self.next - number <= SPAN;
        let Some(came) = self.came.as_mut().filter(|_| known) else { return false };
        if came[word(number)] & bit(number) != 0 {
            return false;
        }
        came[word(number)] |= bit(number);
        self.missing = self.missing.saturating_sub(1);
        self.reordered += 1;
        true
    }
}

/// Returns the index of a number's word.
fn word(number: u64) -> usize {
    (number / 64) as usize % WORDS
}

/// Returns the bit of a number in its word.
fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_far_behind_counts_as_a_copy() {
        let mut n = Numbers::default();
        let came = [SPAN + 5, 6, 5, 4].map(|number| n.note(number));
        assert_eq!((came, n.missing(), n.copies()), ([true, true, false, false], SPAN + 4, 2));
        // The highest number there is does not overflow.
        assert!(n.note(u64::MAX) && !n.note(u64::MAX - SPAN));
    }

    proptest! {
        /// Counts are those of a set of all numbers, whatever is lost, comes twice or late.
        #[test]
        fn counts_are_those_of_a_set(steps in prop::collection::vec((0u64..300, 0u64..200), 0..2000)) {
            let (mut n, mut set, mut base, mut late) = (Numbers::default(), BTreeSet::new(), 0, 0);
            for (forward, back) in steps {
                base += forward / 100;
                let number = (base + forward % 7).saturating_sub(back / 3);
                late += u64::from(set.last().is_some_and(|&last| number < last) && !set.contains(&number));
                prop_assert_eq!(n.note(number), set.insert(number));
            }
            let all = set.last().map_or(0, |last| last + 1);
            let distinct = set.len() as u64;
            prop_assert_eq!((n.distinct(), n.missing(), n.reordered()), (distinct, all - distinct, late));
        }
    }
}
