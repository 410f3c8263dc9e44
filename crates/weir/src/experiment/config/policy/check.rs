//! Checks across the keys of a policy for each flow, and against the queue of its class.

use super::rate::{bounds, burst, thresholds};
use super::threshold;
use crate::experiment::config::diag::Fault;
use crate::experiment::config::queue_limit;
use crate::experiment::config::reader::Section;
use weir_core::ack::{AckControl, Release, When, Window};
use weir_core::queue::QueueLimit;

/// Checks the keys of a class, whose data may wait in a queue of this limit.
pub(super) fn keys(s: &Section, policy: &AckControl, queue: Option<QueueLimit>) {
    if let Release::Rate(_) = policy.release {
        bounds_and_thresholds(s, policy);
    }
    window(s, policy);
    bursts(s, policy);
    when(s, policy, queue);
}

/// Checks the bounds of the period, and the thresholds of the detector of slow start.
fn bounds_and_thresholds(s: &Section, policy: &AckControl) {
    if let Some((min, max)) = bounds(policy).ok().filter(|(min, max)| min > max) {
        let key = if s.has("period_min") { "period_min" } else { "period_max" };
        s.fault(key, Fault::bare(format!("the shortest period, {min}, is longer than the longest, {max}")));
    }
    if thresholds(policy).is_some_and(|(enter, exit)| exit >= enter) {
        let key = if s.has("slow_start_exit") { "slow_start_exit" } else { "slow_start_enter" };
        let message = "`slow_start_exit` must be below `slow_start_enter`, or the state would flap";
        s.fault(key, Fault::bare(message));
    }
}

/// Checks the two keys of the window.
fn window(s: &Section, policy: &AckControl) {
    if s.has("standing_delay") {
        let bound = match s.get::<String>("window").as_deref() {
            Some("keep") if policy.window != Window::Keep => {
                "a bound cannot be combined with window = \"keep\""
            }
            Some("size") if policy.window == Window::Keep => {
                "`standing_delay` = \"none\" cannot be combined with window = \"size\""
            }
            _ => return,
        };
        s.fault("standing_delay", Fault::new(bound, "leave one of the two out"));
    }
}

/// Refuses a sized window beside a burst, which the window would hold back. It is also refused beside `when =
/// "congested"`, because a window acts without congestion too.
fn bursts(s: &Section, policy: &AckControl) {
    let why = match (policy.window, policy.when, burst(policy)) {
        (Window::Keep, ..) => return,
        (_, When::Congested { .. }, _) => {
            ("when = \"congested\"", "it bounds the flow while nothing is congested too")
        }
        (_, _, Some(_)) => ("action = \"police\"", "it keeps bursts back"),
        _ => return,
    };
    let key = if s.has("standing_delay") { "standing_delay" } else { "window" };
    s.fault(key, Fault::new(format!("a sized window cannot be combined with {}", why.0), why.1));
}

/// Checks the threshold of congestion: the class must have a queue that can be longer.
fn when(s: &Section, policy: &AckControl, queue: Option<QueueLimit>) {
    let Some(above) = threshold(policy) else { return };
    let key = if s.has("threshold") { "threshold" } else { "when" };
    match queue {
        None => s.fault(
            "when",
            Fault::new(
                "when = \"congested\" cannot be combined with a class without a queue",
                "the length of its own queue says whether a class is congested: give it one, queue = \"100p\"",
            ),
        ),
        Some(limit) if queue_limit::hides(limit, above) => {
            let (above, limit) = (queue_limit::counted(above), queue_limit::counted(limit));
            let message = format!("{above} are not below the limit of the class's queue, {limit}");
            s.fault(
                key,
                Fault::new(message, "the class would never be congested: write a lower `threshold`"),
            );
        }
        Some(_) => {}
    }
}
