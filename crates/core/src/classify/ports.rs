//! Rules that have nothing but a port.

use core::ops::RangeInclusive;

/// No class.
pub(super) const NONE: u32 = u32::MAX;

/// For each port the first class with a rule for it: from this port on, in ascending order.
#[derive(Default)]
pub(super) struct Ports(Vec<(u16, u32)>);

impl Ports {
    /// The ranges with their classes, in the order of the classes.
    pub(super) fn new(rules: &[(RangeInclusive<u16>, u32)]) -> Ports {
        // Where ranges begin and end: between two of these all ports are alike.
        let ends = |range: &RangeInclusive<u16>| [u32::from(*range.start()), u32::from(*range.end()) + 1];
        let mut points: Vec<u32> = rules.iter().flat_map(|(range, _)| ends(range)).collect();
        points.sort_unstable();
        points.dedup();
        let number = |point| points.partition_point(|&p| p < point);
        // The first part from here on that has no class yet: each is filled once, however ranges overlap.
        let mut free: Vec<usize> = (0..=points.len()).collect();
        let mut classes = vec![NONE; points.len()];
        for (range, class) in rules {
            let [start, end] = ends(range).map(number);
            let mut part = next(&mut free, start);
            while part < end {
                classes[part] = *class;
                free[part] = part + 1;
                part = next(&mut free, part);
            }
        }
        // What begins after the last port is of no port.
        let parts =
            points.iter().zip(classes).filter_map(|(&p, class)| Some((u16::try_from(p).ok()?, class)));
        Ports(parts.collect())
    }

    /// Ports that are alike, in ascending order, with their class or [`NONE`].
    pub(super) fn ranges(&self) -> impl Iterator<Item = (RangeInclusive<u16>, u32)> + '_ {
        let next = self.0.iter().skip(1).map(|(port, _)| port - 1).chain([u16::MAX]);
        self.0.iter().zip(next).map(|((from, class), to)| (*from..=to, *class))
    }

    /// The first class with a rule for this port, or [`NONE`].
    pub(super) fn first(&self, port: u16) -> u32 {
        let run = self.0.partition_point(|(from, _)| *from <= port);
        self.0[..run].last().map_or(NONE, |(_, class)| *class)
    }
}

/// The first free one from here on; the way there is shortened.
fn next(free: &mut [usize], from: usize) -> usize {
    let mut end = from;
    while free[end] != end {
        end = free[end];
    }
    let mut at = from;
    while at != end {
        at = core::mem::replace(&mut free[at], end);
    }
    end
}
