//! Presets of classes whose flows share a rate in turns of ACKs: TCP rate control and PostACK. A preset makes
//! every choice but one: the bytes that its rate counts, if the rate is not that of a queue.

use super::{counts_words, PolicyKey, COUNTS, OF_ITS_LAW};
use crate::experiment::config::diag::Fault;
use crate::experiment::config::keys::{self, set};
use crate::experiment::config::reader::Section;
use crate::experiment::config::value::one_of;
use weir_core::ack::{AckControl, ClassPreset, Leaf, Release, Scheme, ShareRelease, Turns, CLASS_PRESETS};
use weir_core::class::Spec;
use weir_core::pace::Target;
use weir_core::queue::{self, Kind};
use weir_core::rate::Rate;

/// Keys that a preset of this kind leaves open, without a queue.
static KEYS: &[PolicyKey] =
    &[PolicyKey::new("counts", |p, v| set(&mut law_mut(p).counts, one_of(v, &COUNTS, &[])))];

/// Keys of choices that a preset has made.
const CHOSEN: [&str; 15] = [
    "flow_rate",
    "hold",
    "release",
    "window",
    "standing_delay",
    "when",
    "threshold",
    "meter",
    "period",
    "period_min",
    "period_max",
    "slow_start",
    "catch_up",
    "action",
    "burst",
];
/// Keys of a class whose flows share its rate in turns of bytes.
const OF_BYTES: [&str; 5] = ["police", "unresponsive", "burst", "flow_max", "flow_min"];
/// Rate of a queue that may send as much as those above it.
const UNBOUNDED: Rate = Rate::mbit(1000);

/// Returns the preset of this kind that `ack` names, if it names one.
pub(in crate::experiment::config) fn preset(ack: &Section) -> Option<&'static ClassPreset> {
    let name: String = ack.peek("preset")?;
    CLASS_PRESETS.iter().find(|preset| preset.name == name)
}

/// Reads the policy `preset` of a class with this queue.
pub(in crate::experiment::config) fn of_queue(
    s: Section,
    preset: &ClassPreset,
    spec: &Spec,
    queue: queue::Config,
) -> Option<AckControl> {
    let leaf = match queue.kind {
        Kind::Fifo => Some(Leaf::Fifo),
        Kind::Pfq(_) => Some(Leaf::Pfq),
        _ => None,
    };
    if leaf != Some(preset.leaf) {
        refuse_leaf(&s, preset, leaf);
    }
    let rate = spec.ceil.or(spec.rate);
    if spec.pace.is_some_and(|class| class.target == Target::Window) {
        let message = combined("rate = \"window\"", preset);
        let help = "its rate follows the windows of its flows, and ACKs that wait would only make these longer: give it a rate, or leave `ack` out";
        s.fault("preset", Fault::new(message, help));
    }
    if preset.leaf != Leaf::None && s.has("counts") {
        let help = "the rate is that of the queue, which counts as all queues do";
        s.fault("counts", Fault::new(combined("counts", preset), help));
    }
    let policy = (preset.policy)(rate.unwrap_or(UNBOUNDED));
    Some(finish(s, preset, policy))
}

/// Reads the policy `preset` of a class without a queue, of this rate and perhaps with a guarantee for flows.
/// The class borrows if it is `nested`.
pub(in crate::experiment::config) fn of_rate(
    class: &Section,
    s: Section,
    preset: &ClassPreset,
    (rate, least): (Rate, Option<Rate>),
    nested: bool,
) -> AckControl {
    if preset.leaf != Leaf::None {
        refuse_leaf(&s, preset, Some(Leaf::None));
    }
    let in_round = law(&(preset.policy)(rate)).turns == Turns::Acks(Scheme::Round);
    let combines = |key| in_round && key == "flow_min";
    for key in OF_BYTES.into_iter().filter(|&key| class.has(key) && !combines(key)) {
        class.fault(key, Fault::new(combined(key, preset), "leave it out: flows have equal shares"));
    }
    if nested {
        let help = "leave `parent` out, or `preset`: flows of classes that borrow share by turns of bytes";
        s.fault("preset", Fault::new(combined("parent", preset), help));
    }
    let mut policy = (preset.policy)(rate);
    keys::read(KEYS, &[&s], &mut policy);
    if in_round {
        law_mut(&mut policy).flow_min = least;
    }
    finish(s, preset, policy)
}

/// Refuses a preset of this kind in a class without a rate and a queue.
pub(super) fn refuse_without_rate(s: Section, preset: &ClassPreset) {
    refuse_leaf(&s, preset, None);
    finish(s, preset, (preset.policy)(UNBOUNDED));
}

fn refuse_leaf(s: &Section, preset: &ClassPreset, leaf: Option<Leaf>) {
    let (what, help) = match (preset.leaf, leaf) {
        (Leaf::None, Some(Leaf::Fifo | Leaf::Pfq)) => {
            ("a class with a queue", "leave `queue` and `discipline` out: data stays in the kernel")
        }
        (Leaf::None, _) => ("a class without a `rate`", "give the class the rate of all its flows together: rate = \"10Mbit\""),
        (Leaf::Fifo, Some(Leaf::Pfq)) => (
            "a queue for each flow",
            "leave `discipline` out; with a queue for each flow there are \"postack-pfq\" and \"postack-number\"",
        ),
        (Leaf::Fifo, _) => ("a class without a plain queue", "give it one, without an `aqm`: queue = \"100p\""),
        (Leaf::Pfq, _) => (
            "a class without a plain queue for each flow",
            "give it one, without an `aqm`: discipline = \"pfq\", queue = \"1000p\"",
        ),
    };
    let message = format!("preset = \"{}\" cannot be combined with {what}", preset.name);
    s.fault("preset", Fault::new(message, help));
}

fn combined(key: &str, preset: &ClassPreset) -> String {
    format!("`{key}` cannot be combined with preset = \"{}\"", preset.name)
}

fn finish(s: Section, preset: &ClassPreset, policy: AckControl) -> AckControl {
    let names: Vec<_> = CLASS_PRESETS.iter().map(|preset| (preset.name, ())).collect();
    s.choice("preset", &names, &[]);
    for key in CHOSEN.into_iter().filter(|&key| s.has(key)) {
        s.key_fault(key, Fault::new(combined(key, preset), "the preset makes this choice: leave it out"));
    }
    s.finish();
    policy
}

/// Returns whether a policy has a preset of this kind, so that the flows of its class take turns.
pub(super) fn takes_turns(policy: &AckControl) -> bool {
    preset_of(policy).is_some()
}

/// Returns the preset of this kind that a policy has, whatever its rate counts and its flows are guaranteed.
fn preset_of(policy: &AckControl) -> Option<&'static ClassPreset> {
    let law = policy.release.share().filter(|law| law.is_of_acks())?;
    CLASS_PRESETS.iter().find(|preset| {
        let mut other = (preset.policy)(law.rate);
        let own = law_mut(&mut other);
        (own.counts, own.flow_min) = (law.counts, law.flow_min);
        other == *policy
    })
}

/// Describes a policy of this kind in words; `None` for others.
pub(super) fn words(policy: &AckControl) -> Option<String> {
    let preset = preset_of(policy)?;
    let rate = match preset.leaf {
        Leaf::None => {
            let least =
                law(policy).flow_min.map_or(String::new(), |least| format!(", each at least {least}"));
            let counts = counts_words(law(policy).counts);
            format!(", all flows together {} of {counts}{least}", policy.release.rate())
        }
        Leaf::Fifo | Leaf::Pfq => String::new(),
    };
    Some(format!("{}{rate}", preset.description))
}

fn law(policy: &AckControl) -> &ShareRelease {
    let Release::Share(law) = &policy.release else { unreachable!("{OF_ITS_LAW}") };
    law
}

fn law_mut(policy: &mut AckControl) -> &mut ShareRelease {
    let Release::Share(law) = &mut policy.release else { unreachable!("{OF_ITS_LAW}") };
    law
}
