//! Names in files: those of classes, flows and hosts, which users choose, and those of directions.

use super::diag::Fault;
use weir_core::gateway::Direction;

/// Parses a name that can stand in paths of results: letters, digits, `-`, `_`.
pub(super) fn name(text: String) -> Result<String, Fault> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if text.is_empty() || text.len() > 64 || !text.chars().all(good) {
        return Err(Fault::new(
            format!("\"{text}\" is not a name"),
            "names are 1 to 64 letters, digits, `-` and `_`",
        ));
    }
    Ok(text)
}

/// Names of directions.
pub(super) const DIRECTIONS: [(&str, Direction); 2] = [("out", Direction::Out), ("in", Direction::In)];
