//! Memory that outlives the engine: flow records that the supervisor can still read when the
//! engine has died.

use crate::sys::mmap::Mapping;
use crate::sys::pod::Pod;
use std::cell::Cell;
use std::io;

/// An array of `T` that this process and the children it forks share.
///
/// Each process may take it once, as the only reference of that process; the engine takes it when
/// it starts, the supervisor looks at it only when no engine runs. [`Pod`] makes sure that whatever
/// a dying engine left there is a value.
pub struct Records<T: 'static> {
    memory: Cell<Option<&'static mut [T]>>,
}

impl<T: Pod> Records<T> {
    /// `count` records of zero bytes. Called before the engine is forked.
    pub fn alloc(count: usize) -> io::Result<Records<T>> {
        let map = Mapping::anonymous((count * size_of::<T>()).max(1), true)?;
        Ok(Records { memory: Cell::new(Some(map.leak())) })
    }

    /// The records, for the engine. `None` if this process has taken them before: a forked child
    /// has not.
    pub fn take(&self) -> Option<&'static mut [T]> {
        self.memory.take()
    }

    /// Looks at the records, for the supervisor while no engine runs. Panics if this process has
    /// taken them.
    pub fn with<R>(&self, look: impl FnOnce(&mut [T]) -> R) -> R {
        let memory = self.memory.take().expect("the records are with the supervisor");
        let result = look(memory);
        self.memory.set(Some(memory));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_once() {
        let records = Records::<u64>::alloc(3).unwrap();
        records.with(|r| r[1] = 5);
        assert_eq!(records.with(|r| r.to_vec()), [0, 5, 0]);
        assert_eq!(records.take().unwrap().len(), 3);
        assert!(records.take().is_none());
    }
}
