//! Flows: who they are, what is kept of each, and a table that stays bounded whatever arrives.

mod key;
mod record;
mod table;
mod wheel;

pub use key::Key;
pub use record::{flag, Record, Template, NONE};
pub use table::Table;
pub use wheel::Wheel;
