//! Message about a lasting state: logged at once, and then once a minute.

use weir_core::time::{Duration, Time};

const BETWEEN: Duration = Duration::from_secs(60);

/// Time of the last message, and the number of messages left out since.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seldom {
    said: Option<Time>,
    unsaid: u32,
}

impl Seldom {
    /// A message that was never logged.
    pub const fn new() -> Seldom {
        Seldom { said: None, unsaid: 0 }
    }

    /// Returns whether the message is to be logged now, with the number of times since the last one that it
    /// should have been, this one included.
    pub fn is_due(&mut self, now: Time) -> Option<u32> {
        if self.said.is_some_and(|said| now.since(said) < BETWEEN) {
            self.unsaid = self.unsaid.saturating_add(1);
            return None;
        }
        self.said = Some(now);
        Some(std::mem::take(&mut self.unsaid).saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn said_at_once_and_once_a_minute() {
        let mut message = Seldom::new();
        let due: Vec<Option<u32>> =
            [5, 6, 64, 65, 66, 200].map(|s| message.is_due(Time::from_secs(s))).into();
        assert_eq!(due, [Some(1), None, None, Some(3), None, Some(2)]);
    }
}
