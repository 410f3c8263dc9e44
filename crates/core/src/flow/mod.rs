//! Flows: their keys, their records, and a table that stays bounded under any traffic.

mod age;
mod id;
mod index;
mod law;
mod owners;
mod place;
mod record;
mod table;

pub use crate::base::{Timers, NONE};
pub use crate::tcp::track::Key;
pub use age::Ages;
pub use id::{ClassId, FlowId};
pub use index::Index;
pub(crate) use law::law_state;
pub use law::LawState;
pub(crate) use place::Place;
pub use record::{flag, Record, Template};
pub use table::Table;
