//! Handing a value from one thread to another without either waiting.

use std::sync::{Mutex, TryLockError};

/// A place for one value. Whoever finds the other one at it comes again.
#[derive(Debug)]
pub struct Slot<T>(Mutex<Option<T>>);

impl<T> Default for Slot<T> {
    fn default() -> Slot<T> {
        Slot(Mutex::new(None))
    }
}

impl<T> Slot<T> {
    /// Puts a value there instead of the one that is there. It comes back if the other thread is at the slot.
    pub fn put(&self, value: T) -> Result<(), T> {
        match self.0.try_lock() {
            Ok(mut place) => {
                // What was there is dropped when the slot is free again.
                let old = place.replace(value);
                drop(place);
                drop(old);
                Ok(())
            }
            Err(TryLockError::WouldBlock) => Err(value),
            // Nothing panics while it holds the slot.
            Err(TryLockError::Poisoned(_)) => Ok(()),
        }
    }

    /// Takes the value that is there.
    pub fn take(&self) -> Option<T> {
        self.0.try_lock().ok()?.take()
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
}
