//! Room in a result for what flows received over time. How long flows that end by their bytes live is known
//! only after the run, so a file alone cannot bound it.

use crate::experiment::plan::{MOST_BINS, MOST_INTERVALS};
use crate::result::{FlowResult, Series};
use std::collections::BTreeMap;

/// Rows of one kind.
#[derive(Clone, Debug)]
struct Rows {
    /// Name in messages, and the key that makes them fewer.
    what: (&'static str, &'static str),
    most: u64,
    kept: u64,
    /// First flow whose rows are left out, and the number of such flows.
    out: Option<(String, u64)>,
}

impl Rows {
    fn new(what: (&'static str, &'static str), most: u64) -> Rows {
        Rows { what, most, kept: 0, out: None }
    }

    /// Returns whether there is room for the rows of a flow.
    fn takes(&mut self, rows: usize, flow: &str) -> bool {
        let all = self.kept + rows as u64;
        if all <= self.most {
            self.kept = all;
            return true;
        }
        self.out.get_or_insert_with(|| (flow.to_string(), 0)).1 += 1;
        false
    }

    fn fault(&self) -> Option<String> {
        let (first, flows) = self.out.as_ref()?;
        let (most, (what, key)) = (self.most, self.what);
        let flows = if *flows == 1 { String::new() } else { format!(" and of {} more", flows - 1) };
        Some(format!(
            "a result has at most {most} {what} in all: those of {first}{flows} are left out; choose a longer `{key}`"
        ))
    }
}

/// Room that is left in a result.
#[derive(Clone, Debug)]
pub struct Room {
    bins: Rows,
    intervals: Rows,
}

impl Default for Room {
    /// Returns the room of an empty result.
    fn default() -> Room {
        Room::new(MOST_BINS, MOST_INTERVALS)
    }
}

impl Room {
    /// Returns room for so many bins and intervals.
    pub fn new(bins: u64, intervals: u64) -> Room {
        Room {
            bins: Rows::new(("bins of received bytes", "bin"), bins),
            intervals: Rows::new(("intervals", "interval"), intervals),
        }
    }

    /// Adds the received bytes of a flow to the `series` under a name, and leaves the intervals in its row,
    /// as far as there is room for all of each.
    pub fn keep(
        &mut self,
        row: &mut FlowResult,
        series: &mut BTreeMap<String, Series>,
        (name, received): (String, Series),
    ) {
        if self.bins.takes(received.t_s.len(), &row.id) {
            series.insert(name, received);
        }
        if !self.intervals.takes(row.intervals.len(), &row.id) {
            row.intervals = Vec::new();
        }
    }

    /// Says what was left out, if anything was.
    pub fn faults(&self) -> Vec<String> {
        [&self.bins, &self.intervals].into_iter().filter_map(Rows::fault).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Interval;
    use weir_core::time::Duration;

    /// Flows with 6 bins and 3 intervals each, and room for 15 and 7.
    #[test]
    fn what_has_no_room_is_left_out_and_named() {
        let (mut room, mut series) = (Room::new(15, 7), BTreeMap::new());
        let interval = Interval { t_s: 0.0, len_s: 1.0, bytes: 0, bps: 0.0 };
        let mut rows: Vec<FlowResult> = (0..4)
            .map(|k| FlowResult {
                id: format!("web.{k}"),
                intervals: vec![interval; 3],
                ..FlowResult::default()
            })
            .collect();
        assert_eq!(room.faults(), [""; 0]);
        for row in &mut rows {
            let received = (row.id.clone(), Series::received(Duration::from_millis(1), &[7; 6]));
            room.keep(row, &mut series, received);
        }
        assert_eq!(series.keys().collect::<Vec<_>>(), ["web.0", "web.1"]);
        assert_eq!(rows.iter().map(|row| row.intervals.len()).collect::<Vec<_>>(), [3, 3, 0, 0]);
        let said = "those of web.2 and of 1 more are left out; choose a longer";
        assert_eq!(
            room.faults(),
            [
                format!("a result has at most 15 bins of received bytes in all: {said} `bin`"),
                format!("a result has at most 7 intervals in all: {said} `interval`")
            ]
        );
    }
}
