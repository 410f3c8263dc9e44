//! Charts of rows.

use super::outcome::{RowOutcome, Spread};
use crate::report::chart::{positions, Kind, Positions, Values};

/// Draws a row; `None` if it has no values.
pub fn picture(row: &RowOutcome) -> Result<Option<String>, String> {
    let several = row.series.len() > 1;
    let mut values = Vec::new();
    for (n, series) in row.series.iter().enumerate() {
        // One scheme has a colour for each column, several have a colour for each scheme.
        let colour = |column: usize| if several { n } else { column };
        let published = series.published.iter().map(|p| p.map(|[low, high]| [low, (low + high) / 2.0, high]));
        values.push(Values { colour: colour(2), of: Kind::Reference, values: published.collect() });
        let measured = |v: &[Option<Spread>]| v.iter().map(|v| v.map(|v| [v.low, v.mean, v.high])).collect();
        let both = [(&series.as_published, Kind::Other, 1), (&series.weir, Kind::Own, 0)];
        for (column, of, own) in both {
            let Some(column) = column else { continue };
            values.push(Values { colour: colour(own), of, values: measured(&column.values) });
            values.push(Values { colour: colour(own), of: Kind::Lab, values: measured(&column.lab) });
        }
    }
    if values.iter().all(|v| v.values.iter().all(Option::is_none)) {
        return Ok(None);
    }
    let legend = match several {
        true => row.series.iter().map(|s| s.name.clone()).collect(),
        false => ["Weir", "as published", "published"].map(String::from).to_vec(),
    };
    let names = if row.x.is_empty() { vec![String::new()] } else { row.x.clone() };
    let (across, up) = (non_empty(&row.across), non_empty(&row.unit));
    positions(&Positions { across, up, names, legend, values }).map(Some)
}

/// Returns a text that is not taken for a missing one.
fn non_empty(text: &str) -> String {
    if text.is_empty() {
        " ".into()
    } else {
        text.into()
    }
}
