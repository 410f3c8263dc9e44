//! Handing a value from one thread to another without blocking either.

use std::sync::{Mutex, TryLockError};

/// Place for one value. A thread that finds the other at the slot tries again later.
#[derive(Debug)]
pub struct Slot<T>(Mutex<Option<T>>);

impl<T> Default for Slot<T> {
    fn default() -> Slot<T> {
        Slot(Mutex::new(None))
    }
}

impl<T> Slot<T> {
    /// Puts a value in the slot and drops the old one. Returns the value if the other thread is at the slot.
    pub fn put(&self, value: T) -> Result<(), T> {
        match self.0.try_lock() {
            Ok(mut place) => {
                // The old value is dropped after the slot is free again.
                let old = place.replace(value);
                drop(place);
                drop(old);
                Ok(())
            }
            Err(TryLockError::WouldBlock) => Err(value),
            // No code panics while it holds the slot.
            Err(TryLockError::Poisoned(_)) => Ok(()),
        }
    }

    /// Takes the value from the slot, if there is one.
    pub fn take(&self) -> Option<T> {
        self.0.try_lock().ok()?.take()
    }
}

/// A value that the other thread was in the way of. The engine keeps it until the slot is free: the other
/// thread waits for it, and would wait in vain.
#[derive(Debug)]
pub struct Late<T>(Option<T>);

impl<T> Default for Late<T> {
    fn default() -> Late<T> {
        Late(None)
    }
}

impl<T> Late<T> {
    /// Puts a value in the slot, now or [`again`](Late::again).
    pub fn put(&mut self, slot: &Slot<T>, value: T) {
        self.0 = slot.put(value).err();
    }

    /// Puts what is late in the slot, if anything is.
    pub fn again(&mut self, slot: &Slot<T>) {
        if let Some(value) = self.0.take() {
            self.put(slot, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits() {
        let slot = Slot::default();
        assert_eq!(slot.take(), None);
        slot.put(1).unwrap();
        slot.put(2).unwrap();
        let held = slot.0.lock().unwrap();
        assert_eq!((slot.take(), slot.put(3)), (None, Err(3)));
        drop(held);
        assert_eq!((slot.take(), slot.take()), (Some(2), None));
    }

    #[test]
    fn what_finds_the_other_thread_is_put_later() {
        let (slot, mut late) = (Slot::default(), Late::default());
        let held = slot.0.lock().unwrap();
        late.put(&slot, 1);
        late.again(&slot);
        drop(held);
        assert_eq!(slot.take(), None);
        late.again(&slot);
        assert_eq!(slot.take(), Some(1));
        late.again(&slot);
        assert_eq!(slot.take(), None, "it is put once");
    }
}
