//! Watch on an engine from its start to its end: its beat, its process, the interfaces and the signals.

use super::process::Process;
use super::restarts::HANGS;
use super::{EngineEnd, Operator, Senders, Supervisor, LOOK, TRY_AGAIN};
use crate::sys::clock;
use crate::sys::epoll::Waiter;
use rustix::process::Signal;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use weir_core::time::{Duration, Time};

/// Allowance for the hooks' clock, which is read at other moments than this process's.
const JUST_AFTER: Duration = Duration::from_micros(100);
/// Interval between looks at the beat of an engine that beats.
const LOOK_WHILE_WELL: Duration = Duration::from_millis(20);
/// Lateness of a look that tells more about the machine than about the engine.
const STOOD_STILL: Duration = Duration::from_millis(15);
/// Longest time that an engine may take to its first beat.
const START: Duration = Duration::from_secs(30);

/// Time since an engine's last beat, without the time that this process had to wait for a processor, too.
/// After the whole machine stood still, the engine gets its turn first. The time still adds up if this
/// process is late at every look.
#[derive(Clone, Copy, Debug)]
struct Silence {
    beat: Time,
    stood_still: Duration,
}

impl Silence {
    fn since(beat: Time) -> Silence {
        Silence { beat, stood_still: Duration::ZERO }
    }

    /// Returns the silence at a look that was `due` and came `now`; the engine's last beat was at `beat`.
    fn at(&mut self, beat: Time, due: Time, now: Time) -> Duration {
        if beat != self.beat {
            *self = Silence::since(beat);
        }
        let late = now.since(due);
        if late > STOOD_STILL {
            self.stood_still = self.stood_still + late;
        }
        now.since(beat).saturating_sub(self.stood_still)
    }
}

impl Supervisor {
    /// Watches an engine that was `started` at this time, until it ends, hangs, or needs other sockets.
    pub(super) fn watch(
        &mut self,
        process: &Process,
        started: Time,
        flush: &mut impl FnMut(&Senders, Range<usize>),
        operator: &mut impl Operator,
    ) -> io::Result<EngineEnd> {
        let mut waiter = Waiter::new()?;
        self.control.wakes(&waiter)?;
        process.wakes(&waiter, 0)?;
        waiter.add(self.signals.as_fd(), 1)?;
        waiter.add(self.monitor.as_fd(), 2)?;
        let (mut first_beat, mut again) = (None, started);
        // Last beat before a silence that was long enough to flush.
        let (mut flushed_after, mut silence) = (Time::ZERO, Silence::since(started));
        let mut ready = Vec::new();
        loop {
            let due = self.next_look(clock::now(), first_beat.is_some());
            waiter.wait(due, &mut ready)?;
            // A signal to the whole group ends the engine, too. That counts as a stop, not as a loss.
            if self.hears_the_end(&ready, operator) {
                return process.stop().map(|cleanly| EngineEnd::Stopped { cleanly });
            }
            let lived = first_beat.map(|at| clock::now().since(at));
            if let Some(ended) = process.ended()? {
                return Ok(EngineEnd::Lost { reason: process.describe(ended), lived, flushed: false });
            }
            if lived.is_some() && process.is_dying() {
                return Ok(EngineEnd::Lost { reason: "the engine died".into(), lived, flushed: false });
            }
            if first_beat.is_some() {
                self.upgrade(process, operator);
            }
            self.reap()?;
            self.miss_files(clock::now(), &waiter);
            let (now, last) = (clock::now(), self.site.programs.last_beat());
            self.site.programs.watched(now);
            // An older beat is that of the previous engine.
            if last > started {
                self.finish_succession()?;
                if first_beat.is_none() {
                    self.site.programs.keep_bounds(Time::ZERO);
                }
                first_beat = first_beat.or(Some(last));
                self.owed = false;
                self.service.ready(&self.site.setup.attach.names());
                self.control.upgraded(operator);
                if now.since(last) <= self.site.setup.stale {
                    self.service.lives(now);
                }
            } else if now.since(last) > self.site.setup.stale {
                self.settle(flush);
            }
            if lived.is_some_and(|lived| lived >= HANGS) {
                self.site.interfaces.set_hanging(false);
            }
            let limit = if first_beat.is_some() { self.site.setup.hang } else { START };
            let silent = silence.at(last.max(started), due, now);
            if silent > self.site.setup.stale && last > flushed_after.max(started) {
                flushed_after = last;
                self.flush(flush);
            }
            if silent > limit {
                if self.restarts.hung(now) {
                    self.site.interfaces.set_hanging(true);
                }
                let (reason, flushed) = (format!("the engine hung for {limit}"), !self.some_beat(now));
                if flushed {
                    self.replace(process, flush)?;
                } else {
                    self.end_all(process)?;
                }
                return Ok(EngineEnd::Lost { reason, lived, flushed });
            }
            if self.has_moved(&mut again)? {
                self.replace(process, flush)?;
                return Ok(EngineEnd::Moved { ran: lived.is_some() });
            }
        }
    }

    /// Returns the time of the next look at the beat. It does not miss the moment at which all traffic begins
    /// to pass. `begun` says whether the engine has beaten yet.
    fn next_look(&self, now: Time, begun: bool) -> Time {
        let stale = self.site.programs.last_beat() + self.site.setup.stale + JUST_AFTER;
        let well = begun && stale > now && !self.control.is_busy() && self.dying.is_empty();
        let look = now + if well { LOOK_WHILE_WELL } else { LOOK };
        if stale > now {
            look.min(stale)
        } else {
            look
        }
    }

    /// Follows the interfaces. True if programs were attached again, so that an engine needs other sockets.
    /// Failures are tried again at `again`.
    fn has_moved(&mut self, again: &mut Time) -> io::Result<bool> {
        let mut moved = self.site.follow(&self.monitor.events()?)?;
        let now = clock::now();
        self.site.look_around(now);
        if !moved && !self.site.is_whole() && now >= *again {
            *again = now + TRY_AGAIN;
            moved = self.site.reattach();
        }
        Ok(moved)
    }

    /// Returns whether any engine beats.
    fn some_beat(&self, now: Time) -> bool {
        now.since(self.site.programs.latest_beat()) <= self.site.setup.stale
    }

    /// Kills the engines, of which one hangs. Then all count as having died now: no traffic passes while the
    /// next ones start.
    fn end_all(&self, process: &Process) -> io::Result<()> {
        process.kill()?;
        let programs = &self.site.programs;
        programs.beat(programs.latest_beat());
        Ok(())
    }

    /// Kills an engine and sends what it held. It does nothing more once the signal is sent. Its sockets may
    /// take tens of milliseconds to close, and senders need not wait for that.
    fn replace(&self, process: &Process, flush: &mut impl FnMut(&Senders, Range<usize>)) -> io::Result<()> {
        process.signal(Signal::KILL)?;
        self.site.programs.beat(Time::ZERO);
        self.flush(flush);
        process.kill().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn what_the_machine_stood_still_is_not_silence() {
        let mut silence = Silence::since(ms(0));
        assert_eq!(silence.at(ms(100), ms(104), ms(104)), Duration::from_millis(4));
        // The machine stands still for a second.
        assert_eq!(silence.at(ms(100), ms(109), ms(1_104)), Duration::from_millis(9));
        assert_eq!(silence.at(ms(100), ms(1_109), ms(1_109)), Duration::from_millis(14));
        // The engine has had its turn.
        assert_eq!(silence.at(ms(1_110), ms(1_114), ms(1_114)), Duration::from_millis(4));
    }

    #[test]
    fn an_engine_that_hangs_is_found_by_one_that_always_comes_late() {
        let mut silence = Silence::since(ms(0));
        let looks = (0..).map(|n| (ms(25 * n + 5), ms(25 * (n + 1))));
        let mut late = looks.take(40).map(|(before, now)| silence.at(ms(0), before, now));
        assert!(late.any(|silent| silent > Duration::from_millis(80)));
    }
}
