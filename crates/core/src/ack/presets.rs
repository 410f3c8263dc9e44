//! Presets: the published schemes by name, each a function from a flow's rate to a policy. What else a
//! configuration says is laid over it, key by key.

use super::{
    AckControl, Action, Hold, Meter, Period, RateRelease, Release, ShareRelease, SlowStart, When, Window,
};
use crate::rate::Rate;
use crate::time::Duration;

/// A policy by name.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name in configurations.
    pub name: &'static str,
    /// What it does, in a line.
    pub description: &'static str,
    /// The policy for flows of this rate each.
    pub policy: fn(Rate) -> AckControl,
}

/// Every preset. The first is the default of what a configuration leaves open.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "ack-shaper",
        description: "hold the number, release at a rate what the receiver gets, size the window",
        policy: AckControl::ack_shaper,
    },
    Preset {
        name: "ack-shaper-published",
        description:
            "hold the number, release at a rate what the sender is acknowledged, every 10 ms, keep the window",
        policy: AckControl::published,
    },
    Preset {
        name: "ack-policer",
        description: "as ack-shaper, but bursts of up to 64 KiB pass unheld, and the window is kept",
        policy: AckControl::policer,
    },
    Preset {
        name: "ack-reconstruct",
        description: "hold the number, release two segments at a time at the rate of the path, for senders behind an ACK filter",
        policy: AckControl::reconstruct,
    },
];

/// The preset of this name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

impl AckControl {
    /// The preset `ack-shaper` at `rate`: what the receiver gets is held at the rate, and the window is sized.
    pub const fn ack_shaper(rate: Rate) -> AckControl {
        AckControl {
            hold: Hold::Number,
            release: Release::Rate(RateRelease::new(rate)),
            window: Window::SIZE,
            when: When::Always,
        }
    }

    /// All flows of a class at `rate` together, in turns, their windows sized for their shares.
    pub const fn ack_share(rate: Rate) -> AckControl {
        AckControl {
            hold: Hold::Number,
            release: Release::Share(ShareRelease::new(rate)),
            window: Window::Size { standing_delay: Duration::from_millis(15) },
            when: When::Always,
        }
    }

    /// The preset `ack-shaper-published` at `rate`, the ACK shaper as its paper has it: what the sender is
    /// acknowledged is held at the rate by a timer of 10 ms (section 3), the detector of slow start has the thresholds
    /// of fig. 5, and the window stays what the receiver says. Without a bound a sender's window grows until the
    /// gateway holds all of it.
    pub const fn published(rate: Rate) -> AckControl {
        let release = RateRelease {
            meter: Meter::Acked,
            period: Period::Fixed(Duration::from_millis(10)),
            slow_start: SlowStart::PUBLISHED,
            ..RateRelease::new(rate)
        };
        AckControl::kept(release)
    }

    /// The preset `ack-policer` at `rate`: bursts of 64 KiB pass unheld. The window is kept, since one that is sized for the rate
    /// would keep bursts back.
    pub const fn policer(rate: Rate) -> AckControl {
        AckControl::kept(RateRelease { action: Action::POLICE, ..RateRelease::new(rate) })
    }

    /// The preset `ack-reconstruct` at `rate`, that of the path that the data takes: what a filter upstream has made one ACK of leaves as ACKs
    /// of two segments each (RFC 3449 §5.2.2, ACK reconstruction), up to 230 Mb/s, paced at the rate; ACKs that are no faster pass.
    pub const fn reconstruct(rate: Rate) -> AckControl {
        let period = Period::Auto { min: Duration::from_micros(100), max: Duration::from_millis(10) };
        let release = RateRelease {
            meter: Meter::Acked,
            period,
            slow_start: SlowStart::Ignore,
            ..RateRelease::new(rate)
        };
        AckControl::kept(release)
    }

    const fn kept(release: RateRelease) -> AckControl {
        AckControl {
            hold: Hold::Number,
            release: Release::Rate(release),
            window: Window::Keep,
            when: When::Always,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_found_by_its_name_and_has_the_rate_it_is_given() {
        for (n, p) in PRESETS.iter().enumerate() {
            assert_eq!(PRESETS.iter().position(|q| q.name == p.name), Some(n), "{}: twice", p.name);
            let policy = (preset(p.name).unwrap().policy)(Rate::mbit(7));
            assert_eq!(policy.release.flow_rate(), Some(Rate::mbit(7)), "{}", p.name);
        }
        assert!(preset("ack-shapper").is_none());
    }
}
