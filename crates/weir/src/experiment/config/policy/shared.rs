//! Policy of a class whose flows share its rate, by the law *share*.

use super::{counts_words, flow_rate_of, turns, PolicyKey, COUNTS, OF_ITS_LAW};
use crate::experiment::config::diag::Fault;
use crate::experiment::config::keys::{self, put, set};
use crate::experiment::config::reader::Section;
use crate::experiment::config::value::{one_of, within, FromValue, Positive};
use weir_core::ack::{AckControl, Release, ShareRelease, Unresponsive, Window};
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Keys of a class whose flows share its rate, beside the rate.
static BESIDE_RATE: &[PolicyKey] = &[
    PolicyKey::new("police", |p, v| set(&mut share_mut(p).unresponsive, bool::from_value(v).map(policing))),
    PolicyKey::new("unresponsive", |p, v| set(&mut share_mut(p).unresponsive, one_of(v, &UNRESPONSIVE, &[]))),
    PolicyKey::new("burst", |p, v| {
        let Unresponsive::Fair { burst } = &mut share_mut(p).unresponsive else {
            return Err(Fault::new(
                "`burst` of a class with a `rate` needs `unresponsive = \"fair\"`",
                OF_FAIR,
            ));
        };
        set(burst, within(v, BURSTS.0, BURSTS.1))
    }),
    PolicyKey::new("flow_max", |p, v| put(&mut share_mut(p).flow_max, flow_rate_of(v))),
    PolicyKey::new("flow_min", |p, v| put(&mut share_mut(p).flow_min, flow_rate_of(v))),
];

/// Treatments of unresponsive traffic, by name.
pub(in crate::experiment::config) const UNRESPONSIVE: [(&str, Unresponsive); 5] = [
    ("bound", Unresponsive::Bound),
    ("fair", Unresponsive::FAIR),
    ("queue", Unresponsive::Queue),
    ("police", Unresponsive::Police),
    ("count", Unresponsive::Count),
];
/// Depths of virtual queues.
const BURSTS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));
/// Meaning of `burst` beside a rate.
const OF_FAIR: &str = "it is the depth of each flow's virtual queue";

/// Returns the treatment that `police = true` abbreviates.
pub(in crate::experiment::config) fn policing(police: bool) -> Unresponsive {
    if police {
        Unresponsive::Police
    } else {
        Unresponsive::Bound
    }
}

/// Keys of the policy of a class whose flows share its rate.
pub(super) static KEYS: &[PolicyKey] = &[
    PolicyKey::new("counts", |p, v| set(&mut share_mut(p).counts, one_of(v, &COUNTS, &[]))).words(|p| {
        let (rate, counts) = (share(p).rate, counts_words(share(p).counts));
        let police = match share(p).unresponsive {
            Unresponsive::Bound => "",
            Unresponsive::Fair { .. } => ", to each flow that ACKs cannot slow its fair share",
            Unresponsive::Queue => {
                ", to each flow that ACKs cannot slow its fair share, and more waits in turn"
            }
            Unresponsive::Police => ", what ACKs cannot slow policed",
            Unresponsive::Count => ", not bounded: what ACKs cannot slow is counted",
        };
        let most = share(p).flow_max.map_or(String::new(), |most| format!(", each at most {most}"));
        let least = share(p).flow_min.map_or(String::new(), |least| format!(", each at least {least}"));
        Some(format!("all flows together {rate} of {counts}, shared in turns{most}{least}{police}"))
    }),
    PolicyKey::new("standing_delay", |p, v| {
        let positive = Positive::from_value(v).map(|Positive(standing_delay)| standing_delay);
        set(&mut p.window, positive.map(|standing_delay| Window::Size { standing_delay }))
    })
    .words(|p| match p.window {
        Window::Keep => None,
        Window::Size { standing_delay } => {
            Some(format!("windows sized for {standing_delay} of standing delay"))
        }
    }),
];

/// Builds the policy of a customer's or a site's class, whose flows share `rate`.
pub(in crate::experiment::config) fn of_customer(rate: Rate, unresponsive: Unresponsive) -> AckControl {
    let mut policy = AckControl::ack_share(rate);
    share_mut(&mut policy).unresponsive = unresponsive;
    policy
}

/// Reads the policy of a class whose flows share `rate`, from its keys beside the rate and from its `ack`.
/// The class borrows if it is `nested`.
pub(in crate::experiment::config) fn shared(rate: Rate, class: &Section, nested: bool) -> AckControl {
    let mut policy = AckControl::ack_share(rate);
    keys::read(BESIDE_RATE, &[class], &mut policy);
    let Some(s) = class.section("ack") else { return policy };
    if let Some(preset) = turns::preset(&s) {
        return turns::of_rate(class, s, preset, (rate, share(&policy).flow_min), nested);
    }
    for key in ["preset", "flow_rate", "hold", "release", "action", "burst", "when", "threshold"] {
        if s.has(key) {
            let help = "flows of a class with a `rate` share it; leave one of the two out";
            s.fault(
                key,
                Fault::new(format!("`{key}` cannot be combined with the `rate` of the class"), help),
            );
        }
    }
    keys::read(KEYS, &[&s], &mut policy);
    s.finish();
    policy
}

/// Sets the highest joint rate of flows that share the rate of a class.
pub(in crate::experiment::config) fn set_most(policy: &mut AckControl, most: Rate) {
    if let Release::Share(law) = &mut policy.release {
        law.rate = most;
    }
}

/// Refuses keys that have a meaning only beside `rate`, in a class without a rate.
pub(in crate::experiment::config) fn need_rate(s: &Section) {
    for key in BESIDE_RATE.iter().map(|key| key.name).filter(|&key| s.has(key)) {
        let message =
            format!("`{key}` cannot be combined with a class that has no `rate` of all its flows together");
        s.fault(key, Fault::new(message, "give the class a `rate`"));
    }
}

/// Checks the bounds of a flow's rate: at most that of its class, and at least `flow_min`.
pub(in crate::experiment::config) fn check_bounds(s: &Section, policy: &AckControl) {
    let Some(law) = policy.release.share() else { return };
    if let Some(most) = law.flow_max.filter(|&most| most > law.rate) {
        let message = format!("{most} is more than the class's `rate` of {}", law.rate);
        s.fault("flow_max", Fault::new(message, "leave `flow_max` out: without, a flow may have all of it"));
    }
    if let Some(least) = law.flow_min {
        check_flow_min(s, least, law.flow_max.unwrap_or(law.rate).min(law.rate));
    }
}

/// Checks that the guarantee of a flow does not exceed its highest rate.
pub(in crate::experiment::config) fn check_flow_min(s: &Section, least: Rate, most: Rate) {
    if least > most {
        let help = "no flow would ever get it: give a lower `flow_min`";
        s.fault(
            "flow_min",
            Fault::new(format!("at least {least} for each flow, which may have {most}"), help),
        );
    }
}

/// Returns the law by which flows share the rate of their class.
fn share(policy: &AckControl) -> &ShareRelease {
    let Release::Share(law) = &policy.release else { unreachable!("{OF_ITS_LAW}") };
    law
}

fn share_mut(policy: &mut AckControl) -> &mut ShareRelease {
    let Release::Share(law) = &mut policy.release else { unreachable!("{OF_ITS_LAW}") };
    law
}
