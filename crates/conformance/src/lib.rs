//! Limits of a middlebox in TCP, as cases that are put through it packet by packet.
//!
//! A [case](Case) is a script of the segments that the two ends of a connection send, with their times. It
//! does not depend on the way a middlebox works. The frames that come out are held to [laws] for any
//! middlebox: no byte is acknowledged that the receiver has not acknowledged, a right edge never moves left,
//! payload passes once and in order, and so on. A case may demand more, such as that a FIN leaves at once,
//! behind everything that was acknowledged before. Laws and cases are those of the RFCs that they name; none
//! is a record of some middlebox's behaviour.
//!
//! ```
//! use weir_conformance::{Form, Subject, CASES};
//! let wire = Subject::new("wire", vec![Form::wire()]);
//! assert!(CASES.iter().all(|case| wire.judge(case).is_ok()));
//! ```
//!
//! - [`script`]: the frames that are sent; [`cases`]: the cases, by topic;
//! - [`accurate`]: counters of Accurate ECN, and what senders make of them;
//! - [`trace`]: the frames that came out, each with its origin;
//! - [`laws`]: rules of every trace;
//! - [`subject`]: the middleboxes: presets of ACK control in their forms, or any [`Node`].
//!
//! A script does not depend on the frames that come out. So it can be played in virtual time ([`play`]) as
//! well as over two interfaces.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod accurate;
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

/// Result of a case: the first fault, in words.
pub type Verdict = Result<(), String>;

/// Time that a node has after the last frame of a script to pass on the frames that it holds.
pub const SETTLES: Duration = Duration::from_secs(10);

/// Plays a script to a node in virtual time. The data's sender is at port `sender`, and its receiver at the
/// other one of 0 and 1.
///
/// # Panics
/// Panics like [`Rig`] when the node breaks the contract of nodes.
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
