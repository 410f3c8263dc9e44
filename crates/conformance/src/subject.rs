//! Middleboxes that are put through the cases.

use crate::cases::Case;
use crate::laws;
use crate::trace::{Limit, Trace, Traits};
use crate::wire::Wire;
use crate::{play, Script, Side, Verdict};
use std::panic::{catch_unwind, AssertUnwindSafe};
use weir_core::ack::{
    AckControl, ClassPreset, Leaf, ShareRelease, Unresponsive, Window, CLASS_PRESETS, PRESETS,
};
use weir_core::class::Spec;
use weir_core::combined::{Acks, Combined};
use weir_core::gateway::{ClassConfig, Config, Direction, Gateway, LAN, WAN};
use weir_core::node::{Node, Port};
use weir_core::queue::ack_filter::{Params, Policy, Service, Threshold};
use weir_core::queue::{self, pfq, Kind, QueueLimit};
use weir_core::rate::Rate;
use weir_core::sharing::Sharing;
use weir_sim::steering::{Bounds, Steered};

/// Rate at which presets release: [`BACKLOG`](crate::script::BACKLOG) takes 0.6 s.
const RATE: Rate = Rate::mbit(2);
/// Rate behind an ACK filter. An ACK takes 4 ms, so most of a [`BACKLOG`](crate::script::BACKLOG) waits.
const UPLINK: Rate = Rate::kbit(100);
/// Bytes that a packet costs beyond IP: an Ethernet header.
const OVERHEAD: u16 = 14;
/// Most flows of a gateway, more than a case has.
const FLOWS: u32 = 64;

/// Budgets of hooks with three of everything each second, and room for three flows in their maps.
const FEW: Bounds = Bounds::of(3);

/// A middlebox by name, in all its forms.
pub struct Subject {
    /// Name.
    pub name: String,
    /// Forms, all of which have to pass.
    pub forms: Vec<Form>,
}

/// A form in which a middlebox is put into the path.
pub struct Form {
    /// Name among the forms.
    pub name: &'static str,
    /// Port of the data's sender.
    pub sender: Port,
    /// Traits of the middlebox.
    pub traits: Traits,
    make: Box<dyn Fn() -> Box<dyn Node>>,
}

impl Form {
    /// Creates a form from a maker of nodes with ports 0 and 1.
    pub fn new<N: Node + 'static>(
        name: &'static str,
        sender: Port,
        traits: Traits,
        make: impl Fn() -> N + 'static,
    ) -> Form {
        Form { name, sender, traits, make: Box::new(move || Box::new(make())) }
    }

    /// Creates a node of the form.
    pub fn node(&self) -> Box<dyn Node> {
        (self.make)()
    }

    /// Creates the form of a cable.
    pub fn wire() -> Form {
        Form::new("", LAN, Traits::WIRE, Wire::default)
    }

    /// Puts a node of the form through a case.
    pub fn judge(&self, case: &Case) -> Verdict {
        if self.traits.in_kernel && !case.in_kernel || self.traits.bounded && !case.floods {
            return Ok(());
        }
        let limit = self.traits.limit.filter(|_| self.traits.bounded || !case.needs_bound);
        let traits = Traits { limit, ..self.traits };
        let mut script = Script::new(0);
        (case.play)(&mut script);
        let crossed = catch_unwind(AssertUnwindSafe(|| play(&script, (self.make)(), self.sender)));
        let crossed = crossed.map_err(|panic| format!("the node breaks its contract: {}", words(&*panic)))?;
        judge(case, &Trace::new(&script, traits, crossed))
    }
}

/// Holds the trace of a case to the laws and to the case's own check.
pub fn judge(case: &Case, trace: &Trace) -> Verdict {
    if trace.traits.bounded {
        return laws::limit::check(trace);
    }
    laws::check(trace)?;
    (case.check)(trace)
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

impl Subject {
    /// Creates a middlebox with these forms.
    pub fn new(name: impl Into<String>, forms: Vec<Form>) -> Subject {
        Subject { name: name.into(), forms }
    }

    /// Flows under a policy of ACK control, for data that goes out and data that comes in. The forms are a
    /// gateway on its own, one behind hooks, and one behind hooks with the tightest bounds.
    ///
    /// These drop nothing, since senders of the cases keep to no window. Where data has a bound, the same
    /// forms have it once more, and are asked for the limit alone.
    pub fn controlled(name: &str, ack: AckControl) -> Subject {
        let traits = traits_of(&ack);
        let bounded = Traits { bounded: true, limit: Some(Limit::Passed(RATE)), ..traits };
        let mut all = forms(FREE, traits, unbounded(ack));
        if is_bounded(&ack) {
            all.extend(forms(BOUNDED, bounded, ack));
        }
        Subject::new(name, all)
    }

    /// Flows of a class that share its rate by a preset. If the preset needs a queue, the class's data waits
    /// in it, behind the forms of [`Subject::controlled`].
    pub fn sharing(preset: &ClassPreset) -> Subject {
        let ack = (preset.policy)(RATE);
        let kind = match preset.leaf {
            Leaf::None => return Subject::controlled(preset.name, ack),
            Leaf::Fifo => Kind::Fifo,
            Leaf::Pfq => Kind::Pfq(pfq::Params::default()),
        };
        let limit = Some(Limit::Passed(RATE));
        let traits = Traits { queues: Some(Side::Sender), limit, ..traits_of(&ack) };
        let in_kernel = Traits { in_kernel: true, ..traits };
        let config = move |direction| {
            let class = ClassConfig::controlled("all", direction, ack);
            of_class(ClassConfig { share: Some(leaf(RATE, kind)), ..class })
        };
        let alone = move |direction| move || queued(Gateway::new(config(direction)), config(direction));
        let hooked = move |direction| move || queued(Steered::new(config(direction)), config(direction));
        let few =
            move |direction| move || queued(Steered::within(config(direction), &FEW), config(direction));
        let forms = vec![
            Form::new("alone, out", LAN, traits, alone(Direction::Out)),
            Form::new("alone, in", WAN, traits, alone(Direction::In)),
            Form::new("hooks, out", LAN, in_kernel, hooked(Direction::Out)),
            Form::new("hooks, in", WAN, in_kernel, hooked(Direction::In)),
            Form::new("budgets of 3, out", LAN, in_kernel, few(Direction::Out)),
            Form::new("budgets of 3, in", WAN, in_kernel, few(Direction::In)),
        ];
        Subject::new(preset.name, forms)
    }

    /// A queue with an ACK filter in front of a thin uplink, for data that comes in. Each policy is a form.
    pub fn filtering() -> Subject {
        let traits = Traits { fifo: true, queues: Some(Side::Receiver), filters: true, ..Traits::WIRE };
        let node = |policy, service| {
            let kind = Kind::AckFilter(Params { policy, service, ..Params::default() });
            let uplink = ClassConfig {
                ack: None,
                share: Some(leaf(UPLINK, kind)),
                ..ClassConfig::controlled("uplink", Direction::Out, AckControl::ack_share(UPLINK))
            };
            move || Sharing::new(of_class(uplink.clone()), OVERHEAD).expect("a sound tree")
        };
        let form = |name, policy, service| Form::new(name, WAN, traits, node(policy, service));
        let forms = vec![
            form("delayed-per-flow, rr", Policy::DelayedPerFlow, Service::RoundRobin),
            form("delayed-per-flow, fifo", Policy::DelayedPerFlow, Service::Fifo),
            form("delayed", Policy::Delayed, Service::Fifo),
            form("static", Policy::Static(Threshold::Acks(3)), Service::Fifo),
            form("classical", Policy::Classical, Service::Fifo),
        ];
        Subject::new("ack-filter", forms)
    }

    /// Puts all forms through a case; the error is that of the first that fails.
    pub fn judge(&self, case: &Case) -> Verdict {
        let named = |form: &Form, e| if form.name.is_empty() { e } else { format!("{}: {e}", form.name) };
        self.forms.iter().try_for_each(|form| form.judge(case).map_err(|e| named(form, e)))
    }
}

/// Traits of a gateway with this policy.
fn traits_of(ack: &AckControl) -> Traits {
    Traits {
        fifo: !ack.hold.is_number(),
        sizes: matches!(ack.window, Window::Size { .. }),
        limit: ack.release.share().is_none_or(ShareRelease::paces).then_some(Limit::Acknowledged(RATE)),
        ..Traits::WIRE
    }
}

/// Configuration of a gateway with this class alone.
fn of_class(class: ClassConfig) -> Config {
    Config { classes: vec![class], max_flows: FLOWS, ..Config::default() }
}

/// A queue of this kind in front of `rate`, without a limit.
fn leaf(rate: Rate, kind: Kind) -> Spec {
    let queue = queue::Config { limit: QueueLimit::Unlimited, kind, tins: None };
    Spec { rate: Some(rate), queue: Some(queue), ..Spec::of(None) }
}

/// A node of ACK control with the queues of its classes behind it.
fn queued<A: Acks>(acks: A, config: Config) -> Combined<A> {
    Combined::new(acks, Sharing::new(config, 0).expect("a sound tree"))
}

/// Names of forms that drop nothing.
const FREE: [&str; 6] =
    ["alone, out", "alone, in", "hooks, out", "hooks, in", "budgets of 3, out", "budgets of 3, in"];
/// Names of the same forms with bounds.
const BOUNDED: [&str; 6] = [
    "alone, bounded, out",
    "alone, bounded, in",
    "hooks, bounded, out",
    "hooks, bounded, in",
    "budgets of 3, bounded, out",
    "budgets of 3, bounded, in",
];

/// Returns the forms of flows under a policy, with these names.
fn forms(names: [&'static str; 6], traits: Traits, ack: AckControl) -> Vec<Form> {
    let config = move |direction| of_class(ClassConfig::controlled("all", direction, ack));
    let alone = move |direction| move || Gateway::new(config(direction));
    let hooked = move |direction| move || Steered::new(config(direction));
    let few = move |direction| move || Steered::within(config(direction), &FEW);
    let in_kernel = Traits { in_kernel: true, ..traits };
    vec![
        Form::new(names[0], LAN, traits, alone(Direction::Out)),
        Form::new(names[1], WAN, traits, alone(Direction::In)),
        Form::new(names[2], LAN, in_kernel, hooked(Direction::Out)),
        Form::new(names[3], WAN, in_kernel, hooked(Direction::In)),
        Form::new(names[4], LAN, in_kernel, few(Direction::Out)),
        Form::new(names[5], WAN, in_kernel, few(Direction::In)),
    ]
}

/// True if no second of a flow under this policy may have more than the limit. One whose window is kept may
/// be ahead of it.
fn is_bounded(ack: &AckControl) -> bool {
    let by_bytes = ack.release.share().is_none_or(|law| !law.is_of_acks());
    by_bytes && ack.window != Window::Keep
}

/// Returns the policy without the bound on all bytes of its class and flows.
fn unbounded(mut policy: AckControl) -> AckControl {
    policy.release.set_unresponsive(Unresponsive::Count);
    policy
}

/// Returns every preset of ACK control, a class whose flows share a rate by turns of bytes, every preset of
/// classes, and the ACK filter.
pub fn subjects() -> Vec<Subject> {
    let presets = PRESETS.iter().map(|preset| Subject::controlled(preset.name, (preset.policy)(RATE)));
    let class_rate = Subject::controlled("class-rate", AckControl::ack_share(RATE));
    let shares = CLASS_PRESETS.iter().map(Subject::sharing);
    presets.chain([class_rate]).chain(shares).chain([Subject::filtering()]).collect()
}
