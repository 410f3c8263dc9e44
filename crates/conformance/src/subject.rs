//! Who is put through the cases.

use crate::cases::Case;
use crate::laws;
use crate::trace::{Trace, Traits};
use crate::wire::Wire;
use crate::{play, Script, Verdict};
use std::panic::{catch_unwind, AssertUnwindSafe};
use weir_core::ack::{AckControl, Window, PRESETS};
use weir_core::gateway::{ClassConfig, Config, Direction, Gateway, LAN, WAN};
use weir_core::node::{Node, Port};
use weir_core::rate::Rate;
use weir_sim::steering::Steered;

/// The rate at which presets release: [`BACKLOG`](crate::script::BACKLOG) takes 0.6 s.
const RATE: Rate = Rate::mbit(2);

/// A middlebox by name, in all forms that it has.
pub struct Subject {
    /// Its name.
    pub name: String,
    /// Each of them has to pass.
    pub forms: Vec<Form>,
}

/// One way in which a middlebox is put into the path.
pub struct Form {
    /// What distinguishes it from the others.
    pub name: &'static str,
    /// The port at which the data's sender is.
    pub sender: Port,
    /// What may be expected of it.
    pub traits: Traits,
    make: Box<dyn Fn() -> Box<dyn Node>>,
}

impl Form {
    /// Nodes of this making, with ports 0 and 1.
    pub fn new<N: Node + 'static>(
        name: &'static str,
        sender: Port,
        traits: Traits,
        make: impl Fn() -> N + 'static,
    ) -> Form {
        Form { name, sender, traits, make: Box::new(move || Box::new(make())) }
    }

    /// A cable.
    pub fn wire() -> Form {
        Form::new("", LAN, Traits::WIRE, Wire::default)
    }

    /// Puts a node of the form through a case.
    pub fn judge(&self, case: &Case) -> Verdict {
        if self.traits.in_kernel && !case.in_kernel {
            return Ok(());
        }
        let mut script = Script::new(0);
        (case.play)(&mut script);
        let crossed = catch_unwind(AssertUnwindSafe(|| play(&script, (self.make)(), self.sender)));
        let crossed = crossed.map_err(|panic| format!("the node breaks its contract: {}", words(&*panic)))?;
        judge(case, &Trace::new(&script, self.traits, crossed))
    }
}

/// Holds what came of a case's script to the laws, and to what the case asks for.
pub fn judge(case: &Case, trace: &Trace) -> Verdict {
    laws::check(trace)?;
    (case.check)(trace)
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

impl Subject {
    /// A middlebox in these forms.
    pub fn new(name: impl Into<String>, forms: Vec<Form>) -> Subject {
        Subject { name: name.into(), forms }
    }

    /// Flows under a policy of ACK control: a gateway on its own and one behind hooks, for data that goes out and data that comes in.
    pub fn controlled(name: &str, ack: AckControl) -> Subject {
        let traits = Traits {
            fifo: !ack.hold.is_number(),
            sizes: matches!(ack.window, Window::Size { .. }),
            ..Traits::WIRE
        };
        let config = move |direction| Config {
            classes: vec![ClassConfig::controlled("all", direction, ack)],
            max_flows: 64,
            ..Config::default()
        };
        let alone = move |direction| move || Gateway::new(config(direction));
        let hooked = move |direction| move || Steered::new(config(direction));
        let forms = vec![
            Form::new("alone, out", LAN, traits, alone(Direction::Out)),
            Form::new("alone, in", WAN, traits, alone(Direction::In)),
            Form::new("hooks, out", LAN, Traits { in_kernel: true, ..traits }, hooked(Direction::Out)),
            Form::new("hooks, in", WAN, Traits { in_kernel: true, ..traits }, hooked(Direction::In)),
        ];
        Subject::new(name, forms)
    }

    /// Puts all forms through a case; the first that fails says why.
    pub fn judge(&self, case: &Case) -> Verdict {
        let named = |form: &Form, e| if form.name.is_empty() { e } else { format!("{}: {e}", form.name) };
        self.forms.iter().try_for_each(|form| form.judge(case).map_err(|e| named(form, e)))
    }
}

/// Every preset of ACK control, and a class whose flows share a rate.
pub fn subjects() -> Vec<Subject> {
    let presets = PRESETS.iter().map(|preset| Subject::controlled(preset.name, (preset.policy)(RATE)));
    presets.chain([Subject::controlled("class-rate", AckControl::ack_share(RATE))]).collect()
}
