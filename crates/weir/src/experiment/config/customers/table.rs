//! Rows of a CSV file. Rows may differ in length, and the file may have comments.

use super::split::{split, Split};
use super::Faults;
use crate::experiment::config::diag::{Fault, Source};
use core::ops::Range;

/// A row that is well formed by RFC 4180.
pub(super) struct Row {
    /// Fields of the row.
    pub fields: csv::StringRecord,
    /// Place of each field.
    places: Vec<Range<usize>>,
    /// Line in which the row begins.
    pub line: u64,
}

impl Row {
    /// Returns the place of a field, or that of the row's first field if there is no such field.
    pub fn place(&self, field: usize) -> Range<usize> {
        self.places.get(field).or(self.places.first()).cloned().unwrap_or_default()
    }
}

/// Reads the rows that are not empty. Rows that violate RFC 4180 are noted.
pub(super) fn rows(source: &Source, faults: &mut Faults) -> Vec<Row> {
    let mut builder = csv::ReaderBuilder::new();
    builder.has_headers(false).flexible(true).trim(csv::Trim::All).comment(Some(b'#'));
    let mut reader = builder.from_reader(source.text.as_bytes());
    let mut rows = Vec::new();
    for record in reader.records() {
        match record {
            Ok(fields) => rows.extend(row(source, fields, faults)),
            Err(error) => {
                let at = error.position().map_or(0, |at| at.byte() as usize);
                faults.note(at..at, Fault::bare(error.to_string()));
            }
        }
    }
    rows
}

fn row(source: &Source, fields: csv::StringRecord, faults: &mut Faults) -> Option<Row> {
    let (start, line) = fields.position().map_or((0, 0), |at| (at.byte() as usize, at.line()));
    let Split { places, fault } = split(&source.text, start);
    if let Some((at, fault)) = fault {
        faults.note(at, fault);
        return None;
    }
    // Spreadsheets leave rows of commas.
    let empty = fields.iter().all(str::is_empty);
    (!empty).then_some(Row { fields, places, line })
}
