//! Places of flows among those that take turns.

use super::{law_state, FlowId, Table};
use crate::base::linked::{Linked, Links};
use crate::base::time::{Duration, Time};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Binary logarithm of the unit of waiting times, in nanoseconds. Units of 2^10 ns wrap after 73 minutes.
const UNIT: u32 = 10;

/// Place of a flow among those that take turns, in the same bytes whatever its turns are of.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Place {
    links: Links,
    /// Time since which it waits for its turn, in units of `UNIT`.
    since: u32,
}

impl Place {
    /// The place of a flow that takes no turns.
    pub(crate) const NONE: Place = Place { links: Links::NONE, since: 0 };

    /// Notes that the flow waits for its next turn from `now` on.
    pub(crate) fn wait_from(&mut self, now: Time) {
        self.since = units(now);
    }

    /// Returns the time for which the flow has waited for its turn, if it waits.
    pub(crate) fn waited(&self, now: Time) -> Duration {
        Duration::from_nanos(u64::from(units(now).wrapping_sub(self.since)) << UNIT)
    }
}

fn units(now: Time) -> u32 {
    (now.as_nanos() >> UNIT) as u32
}

/// State of a flow that takes turns, as far as it does not depend on what these are of.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Listed {
    pub(crate) place: Place,
    others: [u32; 11],
}

law_state!(pub(crate) Listed, listed, listed_mut);

impl Linked for Table {
    fn links(&mut self, i: u32) -> Option<&mut Links> {
        self.get_mut(FlowId(i)).map(|r| &mut r.law.listed_mut().place.links)
    }
}
