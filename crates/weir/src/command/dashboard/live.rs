//! State of the page: the newest rows, what has changed since a client last heard, events, and history.

use super::history::History;
use crate::result::running::GatewayReport;
use crate::result::traffic::{Kind, Traffic, BUSIEST};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Rows of one message, at most: a browser reads a message in one go.
const OF_MESSAGE: usize = 2_000;
/// Flows of one message, at most.
const FLOWS: usize = 200;
/// Events that are kept.
const EVENTS: usize = 200;

/// An event of the gateway, as far as reports tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Seconds since 1970.
    pub unix_s: u64,
    /// Description.
    pub text: String,
}

struct Row {
    traffic: Traffic,
    json: String,
    version: u64,
}

/// Answer of the gateway, without its rows.
#[derive(Debug, Default, Serialize)]
struct State<'a> {
    schema: u32,
    wall_s: f64,
    degraded: Option<&'a str>,
    restarts: u32,
    /// True if every frame passes as it came.
    observes: bool,
    /// Reason why the gateway does not answer, if it does not.
    failure: Option<&'a str>,
    rows: usize,
    events: Vec<&'a Event>,
}

/// Everything that clients see.
#[derive(Default)]
pub struct Live {
    rows: Vec<Row>,
    places: HashMap<(Kind, String, String), usize>,
    /// Number of the last change.
    version: u64,
    /// Number of the change with which rows went.
    shape: u64,
    report: GatewayReport,
    failure: Option<String>,
    events: VecDeque<Event>,
    history: History,
}

/// Part of the state that a client has heard.
#[derive(Debug, Default)]
pub struct Heard {
    rows: Vec<u64>,
    shape: Option<u64>,
}

impl Live {
    /// Takes an answer of the gateway at this time since the beginning. `all`: every row is in it.
    pub fn heard(&mut self, answer: Result<GatewayReport, String>, all: bool, now: Duration) {
        match answer {
            Err(why) => {
                if self.failure.as_ref() != Some(&why) {
                    self.tell(format!("no answer: {why}"));
                }
                self.failure = Some(why);
            }
            Ok(mut report) => {
                self.tell_changes(&report);
                let rows = std::mem::take(&mut report.traffic);
                if all {
                    self.history.look(&rows, now);
                }
                self.take(rows, all);
                self.report = report;
                self.failure = None;
            }
        }
    }

    fn tell(&mut self, text: String) {
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(Event { unix_s, text });
    }

    fn tell_changes(&mut self, report: &GatewayReport) {
        let (restarts, before) = (report.steering.restarts, self.report.steering.restarts);
        let had = self.report.schema > 0;
        if self.failure.is_some() {
            self.tell("the gateway answers".into());
        }
        if had && report.wall_s < self.report.wall_s {
            self.tell("another gateway runs".into());
        } else if had && restarts > before {
            self.tell(format!("the engine was restarted ({restarts} so far)"));
        }
        if report.degraded != self.report.degraded {
            let text = report.degraded.as_ref().map(|why| format!("degraded: {why}"));
            self.tell(text.unwrap_or_else(|| "no longer degraded".into()));
        }
        if had && report.notes.count != self.report.notes.count {
            self.tell(format!("{} rows of lists without effect", report.notes.count));
        }
    }

    fn take(&mut self, rows: Vec<Traffic>, all: bool) {
        self.version += 1;
        let few = rows.len() < BUSIEST;
        let mut met = vec![false; self.rows.len()];
        for row in rows {
            let place = self.put(row);
            if let Some(met) = met.get_mut(place) {
                *met = true;
            }
        }
        let gone = |(_, met): &(usize, bool)| !met;
        let unmet: Vec<usize> = met.into_iter().enumerate().filter(gone).map(|(place, _)| place).collect();
        if all && !unmet.is_empty() {
            return self.forget(&unmet);
        }
        if !all && few {
            // All that are active are in a short answer.
            unmet.into_iter().for_each(|place| self.fall_silent(place));
        }
    }

    fn fall_silent(&mut self, place: usize) {
        let mut traffic = self.rows[place].traffic.clone();
        if traffic.load.bps > 0.0 {
            traffic.load.bps = 0.0;
            self.put(traffic);
        }
    }

    /// Returns the place of a row, which is there from now on.
    fn put(&mut self, traffic: Traffic) -> usize {
        let key = (traffic.kind, traffic.name.clone(), traffic.direction.clone());
        let place = *self.places.entry(key).or_insert(self.rows.len());
        let known = self.rows.get(place).is_some_and(|row| row.traffic == traffic);
        if !known {
            let json = serde_json::to_string(&traffic).unwrap_or_default();
            let row = Row { traffic, json, version: self.version };
            match self.rows.get_mut(place) {
                Some(old) => *old = row,
                None => self.rows.push(row),
            }
        }
        place
    }

    fn forget(&mut self, gone: &[usize]) {
        let mut place = 0;
        self.rows.retain(|_| {
            place += 1;
            gone.binary_search(&(place - 1)).is_err()
        });
        let key = |(place, row): (usize, &Row)| {
            ((row.traffic.kind, row.traffic.name.clone(), row.traffic.direction.clone()), place)
        };
        self.places = self.rows.iter().enumerate().map(key).collect();
        self.shape = self.version;
    }

    /// Returns the state without rows, as JSON.
    pub fn state(&self) -> String {
        let state = State {
            schema: self.report.schema,
            wall_s: self.report.wall_s,
            degraded: self.report.degraded.as_deref(),
            restarts: self.report.steering.restarts,
            observes: self.report.observes,
            failure: self.failure.as_deref(),
            rows: self.rows.len(),
            events: self.events.iter().rev().collect(),
        };
        serde_json::to_string(&state).unwrap_or_default()
    }

    /// Returns what is new to a client, as JSON with the keys of reports. `begins`: the client forgets all
    /// rows that it knows.
    pub fn news(&self, heard: &mut Heard) -> String {
        let begins = heard.shape != Some(self.shape);
        if begins {
            *heard = Heard { rows: Vec::new(), shape: Some(self.shape) };
        }
        heard.rows.resize(self.rows.len(), 0);
        let new = self.rows.iter().zip(&mut heard.rows).filter(|(row, heard)| row.version > **heard);
        let rows = new.take(OF_MESSAGE).map(|(row, heard)| {
            *heard = row.version;
            row.json.as_str()
        });
        let rows: Vec<&str> = rows.collect();
        let flows = &self.report.flows[..self.report.flows.len().min(FLOWS)];
        let flows = serde_json::to_string(flows).unwrap_or_default();
        let passed = serde_json::to_string(&self.report.passed).unwrap_or_default();
        let state = self.state();
        format!(
            "{{\"begins\":{begins},\"state\":{state},\"traffic\":[{}],\"flows\":{flows},\"passed\":{passed}}}",
            rows.join(",")
        )
    }

    /// Returns all rows with the rest of the report, as JSON; `None` if the gateway has never answered.
    pub fn report(&self) -> Option<String> {
        (self.report.schema > 0).then_some(())?;
        let traffic = self.rows.iter().map(|row| row.traffic.clone()).collect();
        let mut json = serde_json::to_value(&self.report).ok()?;
        json["traffic"] = serde_json::to_value::<Vec<Traffic>>(traffic).ok()?;
        serde_json::to_string(&json).ok()
    }

    /// Returns the history of a thing, as JSON; `None` if the gateway has told of no such thing.
    pub fn history(&self, kind: Kind, name: &str) -> Option<String> {
        let is_known = |way: &str| self.places.contains_key(&(kind, name.to_owned(), way.to_owned()));
        (is_known("in") || is_known("out")).then_some(())?;
        serde_json::to_string(&self.history.of(kind, name)).ok()
    }
}
