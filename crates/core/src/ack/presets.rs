//! Presets: the published schemes by name, each a function from a flow's rate to a policy. Other keys of a
//! configuration override its values one by one.

use super::{
    AckControl, Action, Counts, Hold, Meter, Period, RateRelease, Release, Scheme, ShareRelease, SlowStart,
    Turns, When, Window,
};
use crate::rate::Rate;
use crate::time::Duration;

/// A policy by name.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name in configurations.
    pub name: &'static str,
    /// Description in one line.
    pub description: &'static str,
    /// Policy for flows of this rate each.
    pub policy: fn(Rate) -> AckControl,
}

/// Every preset. The first is the default of values that a configuration leaves open.
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

/// A policy by name, for a class whose flows share its rate.
#[derive(Clone, Copy, Debug)]
pub struct ClassPreset {
    /// Name in configurations.
    pub name: &'static str,
    /// Description in one line.
    pub description: &'static str,
    /// Place where the data of its class waits.
    pub leaf: Leaf,
    /// Policy for flows that share this rate.
    pub policy: fn(Rate) -> AckControl,
}

/// Place where the data of a class waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// No queue here: data stays in the kernel.
    None,
    /// One queue.
    Fifo,
    /// A queue for each flow.
    Pfq,
}

/// Every preset of classes whose flows share a rate.
pub const CLASS_PRESETS: &[ClassPreset] = &[
    ClassPreset {
        name: "tcr",
        description: "TCP rate control: a turn for each flow in the class's round, the window sized for the WAN's delay",
        leaf: Leaf::None,
        policy: AckControl::tcr,
    },
    ClassPreset {
        name: "postack",
        description: "PostACK with one queue: one ACK per dequeued packet; flows ahead of their share skip a turn",
        leaf: Leaf::Fifo,
        policy: AckControl::postack,
    },
    ClassPreset {
        name: "postack-basic",
        description: "basic PostACK: each ACK is held for as long as a packet of data would wait in a queue of its flow",
        leaf: Leaf::None,
        policy: |rate| AckControl::in_turns(Hold::Queue, rate, Scheme::Basic, Window::Keep),
    },
    ClassPreset {
        name: "postack-timer",
        description: "PostACK with one queue and a timer: one ACK per flow and round; flows ahead of their share skip a turn",
        leaf: Leaf::Fifo,
        policy: |rate| AckControl::in_turns(Hold::Queue, rate, Scheme::Timer, Window::Keep),
    },
    ClassPreset {
        name: "postack-pfq",
        description: "scalable PostACK: ACKs wait, and leave with the last packet of their flow in its queue",
        leaf: Leaf::Pfq,
        policy: AckControl::postack_pfq,
    },
    ClassPreset {
        name: "postack-number",
        description: "as postack-pfq, but the number of ACKs is held, which takes the same memory for any window",
        leaf: Leaf::Pfq,
        policy: AckControl::postack_number,
    },
];

/// Returns the preset of this name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

impl AckControl {
    /// The preset `ack-shaper` at `rate`: the bytes received are held at the rate, and the window is sized.
    pub const fn ack_shaper(rate: Rate) -> AckControl {
        AckControl {
            hold: Hold::Number,
            release: Release::Rate(RateRelease::new(rate)),
            window: Window::SIZE,
            when: When::Always,
        }
    }

    /// All flows of a class share `rate`, in turns. Their windows are sized for their shares.
    pub const fn ack_share(rate: Rate) -> AckControl {
        AckControl {
            hold: Hold::Number,
            release: Release::Share(ShareRelease::new(rate)),
            window: Window::Size { standing_delay: Duration::from_millis(15) },
            when: When::Always,
        }
    }

    /// The preset `tcr` at `rate`: TCP rate control (PostACK paper, section 2.4).
    pub const fn tcr(rate: Rate) -> AckControl {
        let window = Window::Size { standing_delay: Duration::ZERO };
        AckControl::in_turns(Hold::Queue, rate, Scheme::Round, window)
    }

    /// The preset `postack` with a queue of `rate`: PostACK as an on-off variant of ACK pacing (section 3.2,
    /// figs 4 and 5), clocked by departures from the queue.
    pub const fn postack(rate: Rate) -> AckControl {
        AckControl::in_turns(Hold::Queue, rate, Scheme::OneQueue, Window::Keep)
    }

    /// The preset `postack-pfq` with a queue of `rate`: PostACK driven by departures alone (section 6, figs
    /// 13 and 14).
    pub const fn postack_pfq(rate: Rate) -> AckControl {
        AckControl::in_turns(Hold::Queue, rate, Scheme::PerFlow, Window::Keep)
    }

    /// The preset `postack-number` with a queue of `rate`: `postack-pfq` without a queue of ACKs, which
    /// section 3.1 calls feasible.
    pub const fn postack_number(rate: Rate) -> AckControl {
        AckControl::in_turns(Hold::Number, rate, Scheme::PerFlow, Window::Keep)
    }

    /// Turns of ACKs at a rate of IP bytes, as queues count them.
    const fn in_turns(hold: Hold, rate: Rate, scheme: Scheme, window: Window) -> AckControl {
        let turns = Turns::Acks(scheme);
        let release = ShareRelease { turns, counts: Counts::Ip, ..ShareRelease::new(rate) };
        AckControl { hold, release: Release::Share(release), window, when: When::Always }
    }

    /// The preset `ack-shaper-published` at `rate`: the ACK shaper of the paper. The bytes acknowledged are
    /// held at the rate by a timer of 10 ms (section 3). The detector of slow start has the thresholds of
    /// fig. 5. The window stays as the receiver advertised it. Without a bound a sender's window grows until
    /// the gateway holds all of it.
    pub const fn published(rate: Rate) -> AckControl {
        let release = RateRelease {
            meter: Meter::Acked,
            period: Period::Fixed(Duration::from_millis(10)),
            slow_start: SlowStart::PUBLISHED,
            ..RateRelease::new(rate)
        };
        AckControl::kept(release)
    }

    /// The preset `ack-policer` at `rate`: bursts of 64 KiB pass unheld. The window is kept, since one sized
    /// for the rate would prevent bursts.
    pub const fn policer(rate: Rate) -> AckControl {
        AckControl::kept(RateRelease { action: Action::POLICE, ..RateRelease::new(rate) })
    }

    /// The preset `ack-reconstruct` at `rate`, the rate of the data path. An ACK that a filter upstream has
    /// thinned out leaves as ACKs of two segments each (RFC 3449 §5.2.2, ACK reconstruction), up to 230 Mb/s,
    /// paced at the rate. ACKs that come no faster than that pass.
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

    #[test]
    fn presets_of_classes_have_names_of_their_own_and_no_rate_for_each_flow() {
        for p in CLASS_PRESETS {
            assert!(preset(p.name).is_none(), "{}", p.name);
            let policy = (p.policy)(Rate::mbit(7));
            let law = policy.release.share().unwrap();
            assert_eq!((law.rate, policy.release.flow_rate()), (Rate::mbit(7), None), "{}", p.name);
            assert_eq!(p.leaf == Leaf::Pfq, law.turns == Turns::Acks(Scheme::PerFlow), "{}", p.name);
            // Only a law with a clock of its own needs no queue.
            assert_eq!(p.leaf != Leaf::None, law.follows_data(), "{}", p.name);
        }
    }
}
