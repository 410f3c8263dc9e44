//! Labels: identifiers in the form that names of classes allow.

use crate::experiment::config::diag::Fault;
use crate::experiment::config::names;

/// Returns the label of a customer or a site: its identifier with `_` for each character that names of
/// classes do not allow. An identifier of letters, digits, `-` and `_` is its own label.
pub fn label(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// Returns the label of an identifier, and an error if `LABEL-down` is too long for the name of a class.
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

/// Returns the fault of two identifiers that have the same label.
pub(super) fn taken(kind: &str, id: &str, other: &str) -> Fault {
    let message = format!("the classes of {kind} \"{id}\" would be called as those of {other}");
    Fault::new(message, "in names of classes other characters than letters, digits and `-` become `_`")
}
