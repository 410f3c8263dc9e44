//! Prefetching of memory.

use prefetch_index::prefetch_index;

/// Prefetches the cache line in which `what` begins, without waiting.
#[inline(always)]
pub(crate) fn prefetch<T>(what: &T) {
    prefetch_index(core::slice::from_ref(what), 0);
}

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Prefetches `lines` cache lines from the one in which `first` begins, without waiting.
#[inline(always)]
pub(crate) fn prefetch_lines<T>(first: &T, lines: usize) {
    const { assert!(LINE % size_of::<T>() == 0) };
    for line in 0..lines {
        prefetch_index(core::slice::from_ref(first), line * (LINE / size_of::<T>()));
    }
}
