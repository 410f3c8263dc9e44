//! The classes below one at the top that have flows, in the order in which they are looked at for what ACKs
//! cannot slow.
//!
//! A few are looked at in each call. What a class is charged late comes as a lump, which stops the others of
//! its tree for so long. Classes that have had such traffic lately are therefore looked at first.

use crate::flow::ClassId;
use std::collections::VecDeque;

/// Classes that are looked at in one call, at most.
const LOOKS: usize = 4;

/// See the module documentation.
#[derive(Default)]
pub(crate) struct Leaves {
    busy: VecDeque<ClassId>,
    idle: VecDeque<ClassId>,
}

impl Leaves {
    /// Adds a class of whose traffic nothing is known.
    pub(crate) fn add(&mut self, place: ClassId) {
        self.idle.push_back(place);
    }

    /// Removes all.
    pub(crate) fn clear(&mut self) {
        self.busy.clear();
        self.idle.clear();
    }

    /// Returns those to look at now. They are to be [put back](Leaves::put).
    pub(crate) fn take(&mut self) -> impl Iterator<Item = ClassId> + 'static {
        let all = (self.busy.len() + self.idle.len()).max(1);
        let of_idle = (LOOKS * self.idle.len()).div_ceil(all).min(LOOKS / 2);
        let of_busy = self.busy.len().min(LOOKS - of_idle);
        let of_idle = self.idle.len().min(LOOKS - of_busy);
        let mut taken = [None; LOOKS];
        let places = self.busy.drain(..of_busy).chain(self.idle.drain(..of_idle));
        taken.iter_mut().zip(places).for_each(|(taken, place)| *taken = Some(place));
        taken.into_iter().flatten()
    }

    /// Puts back a class that was taken. `busy` says whether it had such traffic lately.
    pub(crate) fn put(&mut self, place: ClassId, busy: bool) {
        if busy { &mut self.busy } else { &mut self.idle }.push_back(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two of 1,000 classes have traffic and are looked at in each call, every other one in 500.
    #[test]
    fn those_with_traffic_come_first() {
        let mut leaves = Leaves::default();
        (0..1_000).for_each(|place| leaves.add(ClassId(place)));
        let has_traffic = |place: ClassId| place == ClassId(7) || place == ClassId(900);
        let mut call = || {
            let taken: Vec<ClassId> = leaves.take().collect();
            taken.iter().for_each(|&place| leaves.put(place, has_traffic(place)));
            taken
        };
        (0..500).for_each(|_| drop(call()));
        let mut looks = vec![0; 1_000];
        for _ in 0..499 {
            call().iter().for_each(|place| looks[place.index()] += 1);
        }
        assert_eq!((looks[7], looks[900]), (499, 499));
        assert!((0..1_000).all(|place| has_traffic(ClassId(place)) || looks[place as usize] == 1));
    }

    /// Few classes are all looked at in each call, whatever they have.
    #[test]
    fn few_are_all_looked_at() {
        for busy in 0..16u32 {
            let mut leaves = Leaves::default();
            (0..4).for_each(|place| leaves.add(ClassId(place)));
            for _ in 0..3 {
                let mut taken: Vec<ClassId> = leaves.take().collect();
                taken.iter().for_each(|&place| leaves.put(place, busy >> place.0 & 1 != 0));
                taken.sort();
                assert_eq!(taken, [0, 1, 2, 3].map(ClassId));
            }
        }
    }
}
