//! Table of the passed and failed cases of the conformance suite.

use super::grid::{Column, Grid};
use super::WIDTH;

/// Case: its name, and for each subject the reason of a failure, if it failed.
pub type CaseRow<'a> = (&'a str, Vec<Option<&'a str>>);

/// Formats cases by subjects, and below them the reasons of failures.
pub fn conformance(subjects: &[String], cases: &[CaseRow]) -> String {
    let heads = subjects.iter().map(|name| Column::words(name.as_str()));
    let mut grid = Grid::new([Column::words("case")].into_iter().chain(heads).collect());
    for (case, verdicts) in cases {
        let cells = verdicts.iter().map(|v| if v.is_some() { "FAILS" } else { "ok" }.to_string());
        grid.row([case.to_string()].into_iter().chain(cells).collect());
    }
    let blocks = grid.blocks(WIDTH);
    let text = |(heads, rows): &(Vec<String>, Vec<String>)| [heads.join("\n"), rows.join("\n")].join("\n");
    let tables: Vec<String> = blocks.iter().map(text).collect();
    let mut out = tables.join("\n\n") + "\n\n";
    for (case, verdicts) in cases {
        for (subject, why) in subjects.iter().zip(verdicts) {
            if let Some(why) = why {
                out.push_str(&format!("{case}, {subject}: {why}\n"));
            }
        }
    }
    let all: usize = cases.iter().map(|c| c.1.len()).sum();
    let failed = cases.iter().flat_map(|c| &c.1).flatten().count();
    out.push_str(&format!("{} passed, {failed} failed\n", all - failed));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_shown_with_their_reasons() {
        let subjects = ["wire", "shaper"].map(String::from);
        let text = conformance(&subjects, &[("fin", vec![None, Some("lost")]), ("sack", vec![None, None])]);
        let want = "case  wire  shaper\nfin   ok    FAILS\nsack  ok    ok\n\nfin, shaper: lost\n3 passed, 1 failed\n";
        assert_eq!(text, want);
    }
}
