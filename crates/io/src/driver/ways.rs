//! Ways of both directions, as a driver uses them.

use super::out::Out;
use super::way::{words, Counts, Turn, Way};
use super::{InterfaceStates, Part};
use crate::port::Input;
use std::sync::atomic::Ordering::Relaxed;
use weir_core::frame::Frames;
use weir_core::gateway::{Direction, LAN, WAN};
use weir_core::node::Port;
use weir_core::time::{Duration, Time};

/// Time for which windows stay bounded while everything passes. Flows then have no more under way than before
/// once they are held again, and pay nothing back.
const A_WHILE: Duration = Duration::from_secs(10);

/// Both ways, or none where no hook sees the frames that leave.
#[derive(Debug)]
pub(super) struct Ways {
    ways: Vec<(Direction, Way)>,
    /// True if windows are those of the receivers.
    unbounded: bool,
    /// True if the interfaces have faults of their own.
    explained: bool,
    /// True while other hooks see the frames.
    apart: bool,
}

/// The port by which frames in this direction leave.
const fn port(way: Direction) -> Port {
    match way {
        Direction::Out => WAN,
        Direction::In => LAN,
    }
}

fn counts(way: Direction, out: &Out, inputs: &[Input], programs: &Part<'_>) -> Counts {
    let (hooks, exit) = (programs.hooks(), out.exit(port(way)));
    // Leaving frames came by the other port.
    let from = port(if way == Direction::Out { Direction::In } else { Direction::Out });
    let came = inputs.iter().find_map(|input| input.came(from));
    let there = came.map(|came| [hooks.taken(way), came]);
    Counts { there, back: [exit.stats().offered, hooks.seen(way)], stuck: exit.stuck() }
}

impl Ways {
    /// Creates the ways, which have to be tried; none unless they are `judged`. The `first` engine takes no
    /// frames before that.
    pub fn new(
        (judged, first): (bool, bool),
        now: Time,
        out: &Out,
        inputs: &[Input],
        programs: &Part<'_>,
    ) -> Ways {
        let both = [Direction::Out, Direction::In];
        let ways: Vec<_> = both
            .into_iter()
            .filter(|_| judged)
            .map(|way| {
                let open = !first && !programs.hooks().is_shut(way);
                programs.hooks().shut(way, !open);
                (way, Way::new(now, &counts(way, out, inputs, programs), open))
            })
            .collect();
        Ways { ways, unbounded: false, explained: false, apart: false }
    }

    /// Judges nothing while the hooks of another program see the frames.
    pub fn wait(&mut self) {
        self.apart = true;
    }

    /// Takes the counts of both ways and acts on them. True if frames bypassed the engine.
    pub fn look(
        &mut self,
        now: Time,
        frames: &mut Frames,
        out: &mut Out,
        inputs: &[Input],
        programs: &Part<'_>,
    ) -> bool {
        let mut past = false;
        let begins = std::mem::take(&mut self.apart);
        for (way, state) in &mut self.ways {
            if begins {
                state.begin(now, &counts(*way, out, inputs, programs));
            }
            let mut turn = state.look(now, &counts(*way, out, inputs, programs));
            while turn == Turn::Try {
                out.exit_mut(port(*way)).attempt(frames, now);
                turn = state.look(now, &counts(*way, out, inputs, programs));
            }
            if turn == Turn::Nothing {
                continue;
            }
            let (hooks, exit) = (programs.hooks(), out.exit_mut(port(*way)));
            match turn {
                Turn::Nothing | Turn::Try => {}
                Turn::Shut { exit: with_exit } => {
                    hooks.shut(*way, true);
                    exit.hold(frames, with_exit);
                    past = true;
                }
                Turn::Open => {
                    exit.hold(frames, false);
                    hooks.shut(*way, false);
                    past = true;
                }
                Turn::Take => {
                    exit.hold(frames, false);
                    hooks.try_one(*way);
                    // What it tells of passed without the engine.
                    past = true;
                }
            }
        }
        self.follow_windows(now, programs);
        past
    }

    /// Restores the receivers' windows where everything passes for long, as without an engine.
    fn follow_windows(&mut self, now: Time, programs: &Part<'_>) {
        let long = self.ways.iter().any(|(_, way)| way.shut_for(now) >= A_WHILE);
        if long && !self.unbounded {
            programs.slots().iter().for_each(|slot| slot.width.store(0, Relaxed));
        }
        self.unbounded = long;
    }

    /// Writes changes of the ways into the log, unless faults of the `interfaces` explain them.
    pub fn tell(&mut self, now: Time, interfaces: &InterfaceStates) {
        let name = interfaces.wan();
        let explained = interfaces.degraded().is_some();
        if std::mem::replace(&mut self.explained, explained) && !explained {
            self.ways.iter_mut().for_each(|(_, way)| way.retry(now));
        }
        for (way, state) in &mut self.ways {
            if explained {
                continue;
            }
            match state.news(now) {
                None => {}
                Some(Some(fault)) => {
                    tracing::warn!("{}; everything passes until it does", words(*way, name, fault));
                }
                Some(None) => {
                    let verb = if *way == Direction::Out { "leaves by" } else { "comes in on" };
                    tracing::info!("what is taken {verb} {name} again");
                }
            }
        }
    }

    /// Returns the faults of the ways in words.
    pub fn degraded(&self, now: Time, interfaces: &InterfaceStates) -> Option<String> {
        let wrong = self
            .ways
            .iter()
            .filter_map(|(way, state)| state.fault(now).map(|fault| words(*way, interfaces.wan(), fault)));
        let wrong: Vec<String> = wrong.collect();
        (!wrong.is_empty()).then(|| wrong.join(", "))
    }
}
