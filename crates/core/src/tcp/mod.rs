//! TCP connections as a middlebox sees them: which segments to believe ([`track`]), and the state of a flow
//! that is shared with the hooks in the kernel ([`steer`]).

mod echo;
mod marks;
mod news;
pub mod steer;
pub mod track;
pub mod window;

pub use echo::Echoes;
pub use marks::{Counters, Marks, MarksOfFlows};
pub use news::{Kind, ACE_MOST};
