//! A word of shared memory in which the kernel notes that the thread that owns it has ended, however it ends:
//! the lock word of a robust futex (`set_robust_list(2)`; Documentation/locking/robust-futexes.rst).

use super::check;
use rustix::thread::gettid;
use std::io;
use std::marker::PhantomData;
use std::ptr::null;
use std::sync::atomic::{AtomicU32, Ordering};

/// Set by the kernel when the owner has ended (`FUTEX_OWNER_DIED`).
pub const ENDED: u32 = libc::FUTEX_OWNER_DIED;

/// `struct robust_list_head`, and the only entry of its list.
#[repr(C)]
struct List {
    first: *const Entry,
    /// Distance from an entry to its word.
    distance: libc::c_long,
    pending: *const Entry,
    entry: Entry,
}

/// `struct robust_list`
#[repr(C)]
struct Entry {
    next: *const Entry,
}

/// Ownership of a word by the thread that made it. The word is marked when this is dropped, too.
pub struct Owner<'a> {
    word: &'a AtomicU32,
    list: Box<List>,
    _of_thread: PhantomData<*const ()>,
}

impl<'a> Owner<'a> {
    /// Makes the calling thread the owner of a word. It owns no other one meanwhile; the mutexes of the
    /// standard library are not of this kind.
    ///
    /// # Errors
    /// Fails if the kernel has no such lists.
    pub fn new(word: &'a AtomicU32) -> io::Result<Owner<'a>> {
        let entry = Entry { next: null() };
        let mut list = Box::new(List { first: null(), distance: 0, pending: null(), entry });
        list.first = &raw const list.entry;
        // The list is a ring through its head.
        list.entry.next = (&raw const list.first).cast();
        list.distance = word.as_ptr().addr().wrapping_sub(list.first.addr()) as libc::c_long;
        word.store(gettid().as_raw_nonzero().get() as u32, Ordering::Release);
        // SAFETY: list and word outlive this value, and it is forgotten when dropped.
        unsafe { set_list(&raw const *list)? };
        Ok(Owner { word, list, _of_thread: PhantomData })
    }
}

impl Drop for Owner<'_> {
    fn drop(&mut self) {
        // The ring without an entry; a call that worked before works again.
        self.list.first = (&raw const self.list.first).cast();
        self.word.store(ENDED, Ordering::Release);
        // SAFETY: null is no list.
        let _ = unsafe { set_list(null()) };
    }
}

/// Sets the calling thread's list.
///
/// # Safety
/// The list, its entries and their words stay where they are until another one is set.
unsafe fn set_list(list: *const List) -> io::Result<()> {
    const HEAD: usize = std::mem::offset_of!(List, entry);
    // SAFETY: the caller answers for the list. The kernel checks each access to it.
    check(unsafe { libc::syscall(libc::SYS_set_robust_list, list, HEAD) } as libc::c_int).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The word of a thread that has ended is marked, and one that another has taken over meanwhile is not.
    #[test]
    fn the_end_of_a_thread_is_noted() {
        static WORDS: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];
        let [ended, dropped, taken] = &WORDS;
        let run = |word: &'static AtomicU32, then: fn(Owner<'static>)| {
            std::thread::spawn(move || then(Owner::new(word).unwrap())).join().unwrap();
            word.load(Ordering::Acquire)
        };
        // What is forgotten is never dropped, as when a process is killed.
        assert_eq!(run(ended, std::mem::forget) & ENDED, ENDED);
        assert_eq!(run(dropped, drop), ENDED);
        let take = |owner: Owner<'static>| {
            assert_eq!(owner.word.load(Ordering::Acquire) & ENDED, 0);
            owner.word.store(1, Ordering::Release);
            std::mem::forget(owner);
        };
        assert_eq!(run(taken, take), 1);
    }
}
