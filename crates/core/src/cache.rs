//! Asking for memory before it is needed.

use prefetch_index::prefetch_index;

/// Asks for the cache line in which `what` begins, and does not wait for it.
#[inline(always)]
pub fn prefetch<T>(what: &T) {
    prefetch_index(core::slice::from_ref(what), 0);
}
