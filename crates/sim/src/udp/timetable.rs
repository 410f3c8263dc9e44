//! When datagrams leave.

use weir_core::dist::Distribution;
use weir_core::rate::{ByteClock, Rate};
use weir_core::rng::Rng;
use weir_core::time::{Duration, Time};

/// Shortest time that a source is on.
const MIN_ON: u64 = 1_000;

/// The departures of a source of datagrams: at a rate, without end or in times on and off that are drawn. The same draws are
/// the same departures, whoever sends.
#[derive(Clone, Debug)]
pub struct Timetable {
    on_off: Option<(Distribution, Distribution)>,
    rng: Rng,
    clock: ByteClock,
    until: Time,
    /// [`Time::MAX`] if there is none.
    next: Time,
    /// From then on, how long it stays on.
    on_left: Duration,
}

impl Timetable {
    /// Departures at `rate` of payload, the first at `start` and none at `until` or later. `on_off` are the lengths of the times on (at
    /// least 1 us) and off, in nanoseconds, drawn with `seed`; it begins on. The rate counts the time on only: what a datagram lacks when
    /// it ends is waited for in the next.
    pub fn new(
        rate: Rate,
        (start, until): (Time, Time),
        on_off: Option<(Distribution, Distribution)>,
        seed: u64,
    ) -> Timetable {
        let (rng, clock) = (Rng::new(seed), ByteClock::new(rate));
        let next = if start < until { start } else { Time::MAX };
        let mut table = Timetable { on_off, rng, clock, until, next, on_left: Duration::MAX };
        table.on_left = table.draw_on();
        table
    }

    /// When the next datagram leaves; [`Time::MAX`] if there is none.
    pub fn next(&self) -> Time {
        self.next
    }

    /// The next datagram, of `payload` bytes, has left. There is at most one a nanosecond.
    pub fn advance(&mut self, payload: u64) {
        if self.next == Time::MAX {
            return;
        }
        let mut wait = self.clock.advance(payload).max(Duration::from_nanos(1));
        while wait >= self.on_left && self.next < self.until {
            self.next = self.next + self.on_left + self.draw_off();
            wait = wait - self.on_left;
            self.on_left = self.draw_on();
        }
        self.next += wait;
        self.on_left = self.on_left - wait;
        if self.next >= self.until {
            self.stop();
        }
    }

    /// No further datagram leaves.
    pub fn stop(&mut self) {
        self.next = Time::MAX;
    }

    fn draw_on(&mut self) -> Duration {
        let on = self.on_off.as_ref().map(|(on, _)| on.draw(&mut self.rng).max(MIN_ON));
        Duration::from_nanos(on.unwrap_or(u64::MAX))
    }

    fn draw_off(&mut self) -> Duration {
        let off = self.on_off.as_ref().map(|(_, off)| off.draw(&mut self.rng));
        Duration::from_nanos(off.unwrap_or(0))
    }
}
