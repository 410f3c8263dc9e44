//! Datagrams that are under way.

use super::UdpSink;
use std::collections::{HashMap, HashSet};
use weir_core::frame::Frames;
use weir_core::wire;

/// Source and destination, as the IP and UDP headers have them one behind the other.
pub(super) type Ends = [u8; 12];

/// Length of the longest frame of a datagram: only its head lies in a chunk.
const LONGEST: usize = 14 + 65_535;

/// Heads of the datagrams of all flows that a world has under way at one time.
#[derive(Debug)]
pub struct InFlight<'a>(HashMap<Ends, Vec<&'a [u8]>>);

impl<'a> InFlight<'a> {
    /// Finds the datagrams in the pool of a world.
    pub fn of(frames: &'a Frames) -> InFlight<'a> {
        let mut by_ends: HashMap<Ends, Vec<&[u8]>> = HashMap::new();
        for head in frames.used() {
            let datagram =
                wire::packet(head, LONGEST).ok().filter(|p| p.version == 4 && p.protocol == wire::UDP);
            let ends = datagram.and_then(|p| ends(head, p.l4.into()));
            ends.into_iter().for_each(|ends| by_ends.entry(ends).or_default().push(head));
        }
        InFlight(by_ends)
    }

    /// Returns the number of datagrams under way to a sink, copies left out, that none which arrived has
    /// overtaken.
    pub fn to(&self, sink: &UdpSink) -> u64 {
        let heads = self.0.get(&sink.ends()).map_or(&[][..], Vec::as_slice);
        let numbers = heads.iter().filter_map(|head| sink.number_ahead(head, LONGEST));
        numbers.collect::<HashSet<u64>>().len() as u64
    }
}

/// Returns the ends of a datagram whose UDP header is at `l4`.
fn ends(head: &[u8], l4: usize) -> Option<Ends> {
    head.get(l4.checked_sub(8)?..l4 + 4)?.try_into().ok()
}
