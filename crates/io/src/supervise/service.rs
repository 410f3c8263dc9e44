//! The service manager: when Weir shapes, what it does, and that its engine beats.
//!
//! Without a manager (`NOTIFY_SOCKET`) nothing is said. A manager that cannot be reached is no reason to
//! stop.

use sd_notify::NotifyState;
use weir_core::time::{Duration, Time};

/// Patience of the manager with a program that takes over, in microseconds.
const WHILE_UPGRADED: u32 = 300_000_000;

/// Messages to the service manager.
#[derive(Debug)]
pub(super) struct Service {
    /// Half of the manager's patience, if it has a watchdog.
    every: Option<Duration>,
    /// Time of the next sign of life.
    next: Time,
    ready: bool,
}

impl Service {
    /// Reads the manager's settings.
    pub fn new() -> Service {
        let patience = sd_notify::watchdog_enabled();
        let every = patience.map(|patience| Duration::from_nanos(patience.as_nanos() as u64 / 2));
        Service { every, next: Time::ZERO, ready: false }
    }

    /// Says once that traffic is shaped.
    pub fn ready(&mut self, names: &[&str]) {
        if !std::mem::replace(&mut self.ready, true) {
            let status = format!("shaping {}", names.join(" and "));
            tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
        }
    }

    /// Says that another program takes over in this process, which may take a while.
    pub fn is_upgraded(&mut self) {
        if self.every.is_some() {
            tell(&[NotifyState::WatchdogUsec(WHILE_UPGRADED), NotifyState::Watchdog]);
        }
    }

    /// Sets the patience back that the manager began with.
    pub fn stays(&mut self) {
        if let Some(every) = self.every {
            tell(&[NotifyState::WatchdogUsec((every.as_nanos() / 500) as u32), NotifyState::Watchdog]);
        }
    }

    /// Says that the engine beats, or that there is nothing to beat for, as often as the manager asks.
    pub fn lives(&mut self, now: Time) {
        let Some(every) = self.every.filter(|_| now >= self.next) else { return };
        self.next = now + every;
        tell(&[NotifyState::Watchdog]);
    }
}

/// Says why Weir ends, for the manager's report on it.
pub fn status(text: &str) {
    // A status is one line.
    tell(&[NotifyState::Status(&text.replace('\n', ";"))]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!("the service manager cannot be told: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_life_come_at_half_of_the_patience() {
        let mut service = Service { every: Some(Duration::from_secs(5)), next: Time::ZERO, ready: true };
        let told: Vec<u64> = (0..20)
            .filter(|&s| {
                let before = service.next;
                service.lives(Time::from_secs(s));
                service.next != before
            })
            .collect();
        assert_eq!(told, [0, 5, 10, 15]);
    }
}
