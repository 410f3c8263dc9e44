//! Frames on their way through a link, in order of entry, each with its number.

use crate::frame::{Charge, Frame};
use crate::time::Time;

/// Number of places above which they are freed when no frame is left. The tests have few frames.
const MANY: usize = if cfg!(test) { 8 } else { 4096 };

/// A frame on its way, in one cache line.
#[derive(Debug)]
pub(super) struct Passing {
    /// Time at which it is through, and the fraction by which the last bit left later
    /// ([`ByteClock::carried`](crate::rate::ByteClock::carried)).
    pub(super) done: Time,
    pub(super) carried: u64,
    /// Time since which it waits.
    pub(super) since: Time,
    pub(super) frame: Frame,
    pub(super) packets: u32,
    /// Bytes charged. Frames and overheads are shorter than 2³² bytes.
    pub(super) bytes: u32,
}

const _: () = assert!(size_of::<Passing>() == 64);

impl Passing {
    #[inline]
    pub(super) fn charge(&self) -> Charge {
        Charge { packets: self.packets, bytes: self.bytes.into() }
    }

    /// Returns the placeholder of an empty place.
    fn nothing() -> Passing {
        let (done, since) = (Time::ZERO, Time::ZERO);
        Passing { done, carried: 0, since, frame: Frame::nothing(), packets: 0, bytes: 0 }
    }
}

/// See the [module documentation](self). The lowest bits of a frame's number are its place.
#[derive(Debug, Default)]
pub(super) struct Ring {
    /// Places. Their number is a power of two, or zero.
    places: Box<[Passing]>,
    /// Number of the first frame, and of the next to arrive.
    first: usize,
    end: usize,
}

impl Ring {
    #[inline]
    pub(super) fn first(&self) -> usize {
        self.first
    }
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.end
    }
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// Returns the frame with this number, which is not below [`Ring::first`]. `None` if it has not arrived
    /// yet.
    #[inline(always)]
    pub(super) fn get(&self, number: usize) -> Option<&Passing> {
        if number < self.end {
            self.places.get(self.place(number))
        } else {
            None
        }
    }

    /// Mutable form of [`Ring::get`].
    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut Passing> {
        let place = self.place(number);
        self.places.get_mut(place).filter(|_| number < self.end)
    }

    #[inline(always)]
    pub(super) fn push(&mut self, passing: Passing) {
        if self.end - self.first == self.places.len() {
            self.grow();
        }
        let place = self.place(self.end);
        self.places[place] = passing;
        self.end += 1;
    }

    /// Removes the first frame. There must be one.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Frame {
        debug_assert!(!self.is_empty(), "no frame to be taken");
        let place = self.place(self.first);
        self.first += 1;
        self.places[place].frame.lift()
    }

    /// Frees the places of a burst if no frame is left.
    #[inline(always)]
    pub(super) fn rest(&mut self) {
        if self.is_empty() && self.places.len() > MANY {
            self.places = Box::default();
        }
    }

    #[inline(always)]
    fn place(&self, number: usize) -> usize {
        number & self.places.len().wrapping_sub(1)
    }

    /// Doubles the places, and moves each frame to its own.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let len = (2 * self.places.len()).max(4);
        let mut places: Box<[Passing]> = (0..len).map(|_| Passing::nothing()).collect();
        for number in self.first..self.end {
            let place = self.place(number);
            core::mem::swap(&mut places[number & (len - 1)], &mut self.places[place]);
        }
        self.places = places;
    }
}
