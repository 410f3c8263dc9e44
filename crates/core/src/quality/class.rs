//! Distributions of the flows of each class, with all below it, and of all of each direction.

use super::flow::Side;
use super::sight::Answer;
use super::sketch::{Sketch, AGE};
use crate::base::time::Time;
use crate::flow::ClassId;
use zerocopy::FromZeros;

/// Distributions of both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromZeros)]
pub struct Quality {
    sides: [Sketch; 2],
    /// Age at which the samples count as they are.
    age: u32,
}

fn age(now: Time) -> u32 {
    (now.as_nanos() >> AGE) as u32
}

impl Quality {
    /// Returns the distribution of a side.
    pub fn side(&self, side: Side) -> &Sketch {
        &self.sides[side as usize]
    }

    /// Adds what another engine has measured.
    pub fn merge(&mut self, other: &Quality) {
        self.sides.iter_mut().zip(&other.sides).for_each(|(a, b)| a.merge(b));
    }

    fn follow(&mut self, now: Time) {
        let ages = age(now).saturating_sub(self.age);
        if ages > 0 {
            self.sides.iter_mut().for_each(|side| side.age(ages));
            self.age = age(now);
        }
    }

    /// Returns it as of now.
    pub fn at(&self, now: Time) -> Quality {
        let mut current = *self;
        current.follow(now);
        current
    }

    fn note(&mut self, side: Side, time: u32, now: Time) {
        self.follow(now);
        self.sides[side as usize].add(time);
    }
}

/// Distributions of classes, by place, and of all of each direction.
pub(crate) struct Qualities {
    places: Vec<Quality>,
    ways: [Quality; 2],
}

impl Qualities {
    /// For this many places. Memory is taken as it is used.
    pub fn new(places: u32) -> Qualities {
        let places = Quality::new_vec_zeroed(places as usize).unwrap_or_default();
        Qualities { places, ways: [Quality::default(); 2] }
    }

    /// There is one for each of `places`. Memory is taken as it is used.
    pub fn grow(&mut self, places: u32) {
        let known = self.places.len();
        if places as usize > known {
            let mut grown = Quality::new_vec_zeroed(places as usize).unwrap_or_default();
            // Without memory for more there are those that there were.
            if let Some(first) = grown.get_mut(..known) {
                first.copy_from_slice(&self.places);
                self.places = grown;
            }
        }
    }

    /// Returns the qualities of the class in a place.
    pub fn of(&self, place: ClassId) -> Option<&Quality> {
        self.places.get(place.index())
    }

    /// Returns the qualities of data that goes out, and of data that comes in.
    pub fn ways(&self) -> &[Quality; 2] {
        &self.ways
    }

    /// A class, and those above it, have a time of a side.
    #[cold]
    pub fn note(
        &mut self,
        way: usize,
        places: impl Iterator<Item = ClassId>,
        side: Side,
        time: u32,
        now: Time,
    ) {
        self.ways[way].note(side, time, now);
        for place in places {
            if let Some(quality) = self.places.get_mut(place.index()) {
                quality.note(side, time, now);
            }
        }
    }
}

impl Answer {
    /// Times of sides.
    pub fn sides(&self) -> impl Iterator<Item = (Side, u32)> {
        let sides = [(Side::Receiver, self.receiver), (Side::Sender, self.sender)];
        sides.into_iter().filter_map(|(side, time)| Some((side, time?)))
    }
}
