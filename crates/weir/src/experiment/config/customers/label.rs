//! Identifiers as they can be in the names of classes.

use crate::experiment::config::diag::Fault;
use crate::experiment::config::names;

/// The identifier of a customer or a site with `_` for each character that names of classes cannot have. An
/// identifier of letters, digits, `-` and `_` is its own label.
pub fn label(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// The label of an identifier, which has room for the names of classes: `LABEL-down`.
pub(super) fn checked(id: &str) -> Result<String, Fault> {
    let label = label(id);
    match names::name(format!("{label}-down")) {
        Ok(_) => Ok(label),
        Err(_) => {
            let help = "identifiers have 1 to 59 characters";
            Err(Fault::new(format!("the identifier \"{id}\" is too long"), help))
        }
    }
}

/// Two identifiers with one label.
pub(super) fn taken(kind: &str, id: &str, other: &str) -> Fault {
    let message = format!("the classes of {kind} \"{id}\" would be called as those of {other}");
    Fault::new(message, "in names of classes other characters than letters, digits and `-` become `_`")
}
