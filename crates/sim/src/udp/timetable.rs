//! Departures of datagrams.

use weir_core::dist::Distribution;
use weir_core::rate::{ByteClock, Rate};
use weir_core::rng::Rng;
use weir_core::time::{Duration, Time};

/// Shortest on time of a source, in nanoseconds.
const MIN_ON: u64 = 1_000;

/// Departures of a source of datagrams at a rate, endless or in random on and off times. They depend only on
/// the draws, and are equal in the simulator and the lab.
#[derive(Clone, Debug)]
pub struct Timetable {
    on_off: Option<(Distribution, Distribution)>,
    rng: Rng,
    clock: ByteClock,
    until: Time,
    /// Next departure; [`Time::MAX`] if there is none.
    next: Time,
    /// Rest of the on time after the next departure.
    on_left: Duration,
}

impl Timetable {
    /// Returns departures at `rate` of payload, the first at `start` and none from `until` on. `on_off` are
    /// the lengths of the on times (at least 1 us) and off times, in nanoseconds, drawn with `seed`. A source
    /// begins on. The rate counts only the on time, so a datagram that is incomplete at its end continues in
    /// the next.
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

    /// Returns the departure of the next datagram; [`Time::MAX`] if there is none.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Records the departure of the next datagram, of `payload` bytes. At most one leaves per nanosecond.
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

    /// Ends the departures.
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
