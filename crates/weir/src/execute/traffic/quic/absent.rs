//! QUIC in a program that was built without it.

use super::{Control, FlowReport, Spec};
use std::io;
use weir_core::time::Time;

/// Ends of QUIC flows, which do not exist.
pub(super) enum Quic {}

impl Quic {
    /// Refuses the specification.
    pub fn open(_: &Spec) -> Result<Quic, String> {
        Err("this program was built without QUIC".into())
    }

    /// Never runs.
    pub fn run(self, _: Time, _: &Control) -> io::Result<Vec<FlowReport>> {
        match self {}
    }
}
