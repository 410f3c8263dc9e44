//! Labels: identifiers in the form that names of classes allow.

use crate::experiment::config::diag::Fault;
use crate::experiment::config::names;

/// Returns the label of a customer or a site: its identifier with `_` for each character that names of
/// classes do not allow. An identifier of letters, digits, `-` and `_` is its own label. One with characters
/// outside of ASCII ends with a hash, since names in other scripts would be alike: the same `_` for each
/// letter.
pub fn label(id: &str) -> String {
    let label = id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    if id.is_ascii() {
        return label;
    }
    format!("{label}-{:08x}", fnv(id.as_bytes()))
}

/// Returns the hash FNV-1a of 32 bits. It is the same in every version, since settings keep labels.
fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Returns the label of an identifier, and an error if `LABEL-down` is too long for the name of a class.
pub(super) fn checked(id: &str) -> Result<String, Fault> {
    let label = label(id);
    match names::name(format!("{label}-down")) {
        Ok(_) => Ok(label),
        Err(_) => {
            let help = match id.is_ascii() {
                true => "identifiers have 1 to 59 characters",
                false => "identifiers with characters outside of ASCII have 1 to 50",
            };
            Err(Fault::new(format!("the identifier \"{id}\" is too long"), help))
        }
    }
}

/// Returns the fault of two identifiers that have the same label.
pub(super) fn taken(kind: &str, id: &str, other: &str) -> Fault {
    let message = format!("the classes of {kind} \"{id}\" would be called as those of {other}");
    Fault::new(message, "in names of classes other characters than letters, digits and `-` become `_`")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes: test vectors of draft-eastlake-fnv.
    #[test]
    fn names_in_other_scripts_have_labels_of_their_own() {
        assert_eq!((fnv(b""), fnv(b"a"), fnv(b"foobar")), (0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968));
        assert_eq!(label("12 Main/B"), "12_Main_B");
        let names = ["Север", "Запад", "Šč-1", "Žč-1"].map(label);
        assert!(names.iter().all(|label| label.is_ascii()));
        assert!(names[0].starts_with("_____-") && names[2].starts_with("__-1-"));
        assert!(names[0] != names[1] && names[2] != names[3]);
        assert!(checked(&"я".repeat(50)).is_ok() && checked(&"я".repeat(51)).is_err());
        assert!(checked(&"a".repeat(59)).is_ok() && checked(&"a".repeat(60)).is_err());
    }
}
