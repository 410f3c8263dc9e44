//! Rows that a command line means.

use super::rows::{unknown, Paper};
use crate::experiment::config::diag::Fault;

/// Keeps the rows of `papers` that `paper` and `row` name, or all of them. Errors name those that exist, the
/// nearest first.
pub fn choose(papers: Vec<Paper>, paper: Option<&str>, row: Option<&str>) -> Result<Vec<Paper>, Fault> {
    let Some(name) = paper else { return Ok(papers) };
    let names: Vec<String> = papers.iter().map(|p| p.name.clone()).collect();
    let found = papers.into_iter().find(|p| p.name == name);
    let mut found = found.ok_or_else(|| unknown("paper", name, names.iter().map(String::as_str)))?;
    if let Some(id) = row {
        let ids: Vec<String> = found.rows.iter().map(|r| r.id.get_ref().clone()).collect();
        found.rows.retain(|r| r.id.get_ref() == id);
        if found.rows.is_empty() {
            return Err(unknown(&format!("row of `{name}`"), id, ids.iter().map(String::as_str)));
        }
    }
    Ok(vec![found])
}

/// Keeps rows that take at most `minutes`.
pub fn within(papers: &mut Vec<Paper>, minutes: f64) {
    papers.iter_mut().for_each(|p| p.rows.retain(|r| r.minutes <= minutes));
    papers.retain(|p| !p.rows.is_empty());
}
