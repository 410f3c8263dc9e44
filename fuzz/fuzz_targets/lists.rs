//! Lists of customers and sites as other programs and people write them: what is accepted means what an
//! independent reader finds in it.
//!
//! Input: a list, perhaps with a list of sites behind a line of `%` (network.json if it begins with a brace).
//! `make fuzz` begins with those of `crates/weir/tests/lists`. `cargo +nightly fuzz run lists`
#![no_main]

#[path = "../../crates/weir/tests/lists/law.rs"]
mod law;

use libfuzzer_sys::{fuzz_target, Corpus};

fuzz_target!(|data: &[u8]| -> Corpus {
    let Ok(text) = core::str::from_utf8(data) else { return Corpus::Reject };
    let (list, sites) = match text.split_once("\n%\n") {
        Some((list, sites)) => (list, Some(sites)),
        None => (text, None),
    };
    let name = |sites: &str| if sites.starts_with('{') { "sites.json" } else { "sites.csv" };
    law::holds(list, sites.map(|sites| (name(sites), sites)));
    Corpus::Keep
});
