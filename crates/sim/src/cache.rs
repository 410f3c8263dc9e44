//! Asking for memory before it is needed.

use prefetch_index::prefetch_index;

/// Asks for the cache line in which `what` begins, and does not wait for it.
#[inline(always)]
pub(crate) fn prefetch<T>(what: &T) {
    prefetch_index(core::slice::from_ref(what), 0);
}

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Asks for so many cache lines from the one in which `first` begins, and does not wait for them.
#[inline(always)]
pub(crate) fn prefetch_lines<T>(first: &T, lines: usize) {
    const { assert!(LINE % size_of::<T>() == 0) };
    for line in 0..lines {
        prefetch_index(core::slice::from_ref(first), line * (LINE / size_of::<T>()));
    }
}
