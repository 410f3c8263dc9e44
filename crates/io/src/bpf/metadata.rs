//! Metadata of frames that go through user space (`metadata.h`): records in memory that hooks and engine have
//! mapped.

use super::abi::{Metadata, Outgoing, ARRIVING, LEAVING};
use super::map;
use crate::sys::mmap::Mapping;
use libbpf_rs::Object;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;

impl Metadata {
    /// Bytes of a record.
    pub const LEN: usize = size_of::<Metadata>();

    /// The record at the start of a frame's headroom; `None` if the frame has none.
    pub fn of(headroom: &[u8]) -> Option<Metadata> {
        let record: Metadata = crate::sys::pod::read(headroom)?;
        (record.number != 0).then_some(record)
    }

    /// Bit of a record's number in a headroom: its frame is sent without the outer tag.
    pub const UNTAGGED: u32 = 1 << 31;

    /// Number of the record at the start of a frame's headroom; 0 if the frame has none.
    pub fn number_of(headroom: &[u8]) -> u32 {
        let number = headroom.get(NUMBER).and_then(|bytes| bytes.try_into().ok());
        number.map_or(0, u32::from_ne_bytes)
    }

    /// Writes another number into the record at the start of a frame's headroom.
    pub fn renumber(headroom: &mut [u8], number: u32) {
        if let Some(bytes) = headroom.get_mut(NUMBER) {
            bytes.copy_from_slice(&number.to_ne_bytes());
        }
    }
}

const NUMBER: Range<usize> = std::mem::offset_of!(Metadata, number)..std::mem::offset_of!(Metadata, mark);

const OUTGOING: usize = size_of::<Outgoing>();

/// Records of the frames that the hooks redirect to the engine.
#[derive(Debug)]
pub struct Arriving(Mapping);

impl Arriving {
    pub(super) fn of(object: &Object) -> io::Result<Arriving> {
        let records = map(object, "arriving")?;
        Ok(Arriving(Mapping::of_fd(records.as_fd(), ARRIVING * Metadata::LEN, 0, false)?))
    }

    /// The record of a frame that came with this mark; `None` if there is none, or if it has been overwritten
    /// since.
    pub fn get(&self, mark: u32) -> Option<Metadata> {
        if mark == 0 {
            return None;
        }
        let record: Metadata = self.0.get(mark as usize % ARRIVING * Metadata::LEN);
        (record.number == mark).then_some(record)
    }
}

/// Records of the frames that leave by one exit.
#[derive(Debug)]
pub struct Leaving {
    records: Mapping,
    /// Places of the exit's records.
    places: Range<usize>,
    next: usize,
}

impl Leaving {
    /// Records of exit number `exit` of `exits`.
    pub(super) fn of(object: &Object, exit: usize, exits: usize) -> io::Result<Leaving> {
        let records = map(object, "leaving")?;
        let records = Mapping::of_fd(records.as_fd(), LEAVING * OUTGOING, 0, true)?;
        let each = LEAVING / exits;
        let places = exit * each..(exit + 1) * each;
        Ok(Leaving { records, next: places.start, places })
    }

    /// Writes a frame's record, and returns the number by which the hooks find it. The place is used again
    /// after as many records as the exit has places. The hooks add an outer `tag` of this protocol and value,
    /// if there is one.
    pub fn put(&mut self, record: Metadata, tag: Option<(u16, u16)>) -> u32 {
        let place = self.next;
        self.next = if place + 1 < self.places.end { place + 1 } else { self.places.start };
        let number = place as u32 + 1;
        let (protocol, tag) = tag.unwrap_or_default();
        let metadata = Metadata { number, ..record };
        let record = Outgoing { metadata, tag_protocol: protocol.to_be(), tag, pad: 0 };
        self.records.set(place * OUTGOING, record);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::pod::bytes_of;

    const RECORD: Metadata = Metadata { departure: 1, number: 7, mark: 2, priority: 3, queue: 4, spilled: 0 };

    #[test]
    fn records_are_found_in_headrooms() {
        let mut headroom = [bytes_of(&RECORD), &[9; 10]].concat();
        assert_eq!((Metadata::of(&headroom), Metadata::number_of(&headroom)), (Some(RECORD), 7));
        Metadata::renumber(&mut headroom, 8);
        assert_eq!(Metadata::of(&headroom), Some(Metadata { number: 8, ..RECORD }));
        Metadata::renumber(&mut headroom, 0);
        assert_eq!((Metadata::of(&headroom), Metadata::number_of(&headroom)), (None, 0));
        assert_eq!(headroom[24..], [9; 10]);
        let short = &mut headroom[..10];
        Metadata::renumber(short, 7);
        assert_eq!((Metadata::of(short), Metadata::number_of(short)), (None, 0));
    }

    #[test]
    fn exits_write_in_turn_to_their_own_places() {
        let records = |exit: usize| {
            let places = exit * 3..exit * 3 + 3;
            Leaving { records: Mapping::anonymous(6 * OUTGOING, false).unwrap(), next: places.start, places }
        };
        let mut second = records(1);
        assert_eq!([(); 5].map(|()| second.put(RECORD, Some((0x88a8, 5)))), [4, 5, 6, 4, 5]);
        let metadata = Metadata { number: 5, ..RECORD };
        let record = Outgoing { metadata, tag_protocol: 0x88a8_u16.to_be(), tag: 5, pad: 0 };
        assert_eq!(second.records.get::<Outgoing>(4 * OUTGOING), record);
        let mut first = records(0);
        assert_eq!([(); 4].map(|()| first.put(RECORD, None)), [1, 2, 3, 1]);
    }

    #[test]
    fn an_overwritten_record_is_none() {
        let mut memory = Mapping::anonymous(ARRIVING * Metadata::LEN, false).unwrap();
        memory.set(7 * Metadata::LEN, RECORD);
        let arriving = Arriving(memory);
        assert_eq!(arriving.get(7), Some(RECORD));
        assert_eq!((arriving.get(0), arriving.get(8), arriving.get(7 + ARRIVING as u32)), (None, None, None));
    }
}
