//! Customers by identifier or by name, as people ask for them.

use super::{label, Customer};
use crate::experiment::config::diag::{listed, near};

/// Most customers of one name that an error lists.
const MOST_LISTED: usize = 8;

/// Finds the customer with this identifier, or else the only one with this name. `None` if none has either.
/// An error lists the identifiers of several customers with the name.
pub fn find<'a>(list: &'a [Customer], word: &str) -> Result<Option<&'a Customer>, String> {
    let asked = label(word);
    if let Some(customer) = list.iter().find(|customer| customer.label == asked) {
        return Ok(Some(customer));
    }
    let named: Vec<&Customer> =
        list.iter().filter(|customer| !customer.name.is_empty() && label(&customer.name) == asked).collect();
    if named.len() < 2 {
        return Ok(named.first().copied());
    }
    let more = named.len().saturating_sub(MOST_LISTED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let ids = listed(named.iter().take(MOST_LISTED).map(|customer| customer.id.as_str()));
    Err(format!("{} customers have the name `{word}`: {ids}{more}; ask by identifier", named.len()))
}

/// Returns the identifiers and names that are like this word, the nearest first.
pub fn like<'a>(list: &'a [Customer], word: &str) -> Vec<&'a str> {
    near(word, list.iter().flat_map(|customer| [customer.id.as_str(), customer.name.as_str()]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::config::customers::read;
    use crate::experiment::config::{Settings, Source};

    fn list(rows: &str) -> Vec<Customer> {
        let source = Source::new("c.csv", format!("id,name,prefixes,down,up\n{rows}"));
        read(&source, None, [false; 2], &Settings::default()).unwrap().0
    }

    #[test]
    fn an_identifier_comes_before_a_name() {
        let list =
            list("17,Ada,10.0.0.1,5Mbit,1Mbit\nAda,Ben Ox,10.0.0.2,5Mbit,1Mbit\n9,,10.0.0.3,5Mbit,1Mbit\n");
        let id = |word: &str| find(&list, word).unwrap().map(|customer| customer.id.as_str());
        assert_eq!(["Ada", "17", "Ben Ox", "Ben_Ox"].map(id), ["Ada", "17", "Ada", "Ada"].map(Some));
        assert_eq!(["Ben", ""].map(id), [None, None]);
    }

    #[test]
    fn a_name_of_several_is_told_with_their_identifiers() {
        let rows: String = (1..=10).map(|n| format!("{n},Ada,10.0.0.{n},5Mbit,1Mbit\n")).collect();
        assert_eq!(
            find(&list(&rows), "Ada").unwrap_err(),
            "10 customers have the name `Ada`: `1`, `2`, `3`, `4`, `5`, `6`, `7` and `8`, and 2 more; ask by \
             identifier"
        );
    }
}
