//! What a middlebox may do to TCP, as cases that are put through it packet by packet.
//!
//! A [case](Case) says what the two ends of a connection send, and when. It says nothing of how a middlebox works: what comes out
//! is held to [laws] that hold for any middlebox (no byte is acknowledged that the receiver has not acknowledged, a right
//! edge never moves left, payload passes once and in order, …) and to what the case itself asks for (this FIN leaves at once, behind all that was
//! acknowledged before). Laws and cases are those of the RFCs that they name; none is a record of what some middlebox did.
//!
//! ```
//! use weir_conformance::{Form, Subject, CASES};
//! let wire = Subject::new("wire", vec![Form::wire()]);
//! assert!(CASES.iter().all(|case| wire.judge(case).is_ok()));
//! ```
//!
//! - [`script`]: what is sent; [`cases`]: the cases, by topic;
//! - [`trace`]: what came out, each frame beside the one that it was;
//! - [`laws`]: what holds for every trace;
//! - [`subject`]: who is put through: the presets of ACK control in their forms, or any [`Node`](weir_core::node::Node).
//!
//! A script does not depend on what comes out. So it can be played in virtual time ([`play`]) as well as over two interfaces.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod cases;
pub mod laws;
pub mod script;
pub mod subject;
pub mod trace;

mod seg;
mod wire;

pub use cases::{Case, CASES};
pub use script::{Event, Script, Side};
pub use seg::{Flow, Seg};
pub use subject::{judge, subjects, Form, Subject};
pub use trace::{Crossed, Limit, Trace, Traits};
pub use wire::Wire;

use weir_core::node::{Node, Port};
use weir_core::rig::Rig;
use weir_core::time::Duration;

/// What a case finds: the first thing that is wrong, in words.
pub type Verdict = Result<(), String>;

/// How long a node has, behind the last frame of a script, to pass on what it holds.
pub const SETTLES: Duration = Duration::from_secs(10);

/// Plays a script to a node in virtual time, the data's sender at port `sender` and its receiver at the other one of 0 and 1.
///
/// # Panics
/// As [`Rig`], when the node breaks the contract of nodes.
pub fn play(script: &Script, node: impl Node, sender: Port) -> Vec<Crossed> {
    let receiver = Port(1 - sender.0);
    let port = |side| if side == Side::Sender { sender } else { receiver };
    let mut rig = Rig::new(node);
    for event in script.events() {
        rig.at(event.at).inject(port(event.from), event.frame.clone());
    }
    let sent = rig.run_until(script.end() + SETTLES);
    let side = |p| if p == sender { Side::Sender } else { Side::Receiver };
    sent.into_iter()
        .map(|s| Crossed { at: s.at, to: side(s.port), bytes: s.bytes, checksum: s.checksum })
        .collect()
}
