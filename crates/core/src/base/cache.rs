//! Prefetching of memory.

use prefetch_index::prefetch_index;

/// Prefetches the cache line in which `what` begins, without waiting for it.
#[inline(always)]
pub fn prefetch<T>(what: &T) {
    prefetch_index(core::slice::from_ref(what), 0);
}
