//! Result files: one run, or several runs with a summary of those that share settings.

use super::metric::{Measured, Values};
use super::{RunResult, Settings, SCHEMA};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Several runs of one experiment: a sweep, several seeds, both, or repeated runs in the lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Runs {
    /// Always [`SCHEMA`].
    pub schema: u32,
    /// Runs in the order of the sweep; the seeds of each setting stand together. Runs that had not begun at
    /// an interruption are left out. `series` holds the series that the experiment asked for, without
    /// received bytes.
    pub runs: Vec<RunResult>,
    /// Summary of the seeds of each setting, in the order of the sweep. Present only with several seeds, or
    /// with repeated runs in the lab. It follows from the runs and is not read back.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<Summary>,
}

/// Summary of the seeds of one setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Settings made by the sweep.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: Settings,
    /// Seeds of the completed runs; the means cover only these.
    pub seeds: Vec<u64>,
    /// Summaries of the groups of flows, in the order of the plan.
    pub groups: Vec<GroupSummary>,
}

/// A group of flows over several seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupSummary {
    /// The group's name.
    pub group: String,
    /// Flows in it, in the run with the fewest.
    pub flows: u64,
    /// Flows in the run with the most, if runs differ: how many there are may be drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows_most: Option<u64>,
    /// Means over the seeds. A run contributes the mean of its flows' values, or the sum of their counts.
    #[serde(flatten)]
    pub values: Values<Mean>,
}

/// A mean over runs that differ in their seed only.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// Number of runs.
    pub n: u64,
    /// Arithmetic mean of the runs.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval (Student's t). `null` for a single run. Also `null`
    /// where all runs have the same value: seeds that change nothing give no estimate of the spread.
    pub ci95: Option<f64>,
    /// Number of flows with a known value, over all runs, if some flows lack it. Those flows had not ended,
    /// or had no sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

/// A result file.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    /// Output of `weir lab`, or of `weir sim` for one run.
    Run(Box<RunResult>),
    /// Output of a sweep, or of a run with several seeds.
    Runs(Runs),
}

impl Document {
    /// Reads a result. Errors describe the fault in the text; they do not name the file.
    pub fn parse(text: &str) -> Result<Document, String> {
        /// Fields that tell the kinds of documents apart. Series are long, so the rest is read once only.
        #[derive(Deserialize)]
        struct Head {
            schema: Option<Value>,
            runs: Option<IgnoredAny>,
        }
        let none = || "no result of a run: it has no \"schema\"".to_string();
        let head: Head =
            serde_json::from_str(text)
                .map_err(|e| if e.is_data() { none() } else { format!("no JSON: {e}") })?;
        let other = || format!("a result of another version: \"schema\" is not {SCHEMA}");
        if head.schema.ok_or_else(none)?.as_u64() != Some(SCHEMA.into()) {
            return Err(other());
        }
        let wrong = |e: serde_json::Error| format!("no result of a run: {e}");
        if head.runs.is_some() {
            let runs: Runs = serde_json::from_str(text).map_err(wrong)?;
            match runs.runs.iter().all(|run| run.schema == SCHEMA) {
                true => Ok(Document::Runs(runs)),
                false => Err(other()),
            }
        } else {
            serde_json::from_str(text).map(|run| Document::Run(Box::new(run))).map_err(wrong)
        }
    }

    /// Returns the runs of the file.
    pub fn runs(self) -> Vec<RunResult> {
        match self {
            Document::Run(run) => vec![*run],
            Document::Runs(runs) => runs.runs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_or_several() {
        let run = RunResult { experiment: "a".into(), ..RunResult::default() };
        let one = serde_json::to_string(&run).unwrap();
        assert_eq!(Document::parse(&one).unwrap(), Document::Run(Box::new(run.clone())));
        let runs = Runs { schema: SCHEMA, runs: vec![run.clone(), run.clone()], summary: Vec::new() };
        let several = serde_json::to_string(&runs).unwrap();
        assert!(!several.contains("summary"), "{several}");
        assert_eq!(Document::parse(&several).unwrap().runs(), [run.clone(), run]);
    }

    #[test]
    fn what_is_no_result_is_refused() {
        let said = |text: &str| Document::parse(text).unwrap_err();
        assert!(said("{").starts_with("no JSON: "));
        assert_eq!(said("[]"), "no result of a run: it has no \"schema\"");
        assert_eq!(said("{\"schema\": 2}"), "a result of another version: \"schema\" is not 1");
        assert_eq!(
            said("{\"schema\": 1, \"runs\": 3}"),
            "no result of a run: invalid type: integer `3`, expected a sequence at line 1 column 23"
        );
        let old = RunResult { schema: SCHEMA + 1, ..RunResult::default() };
        let runs = Runs { schema: SCHEMA, runs: vec![RunResult::default(), old], summary: Vec::new() };
        let several = serde_json::to_string(&runs).unwrap();
        assert_eq!(said(&several), "a result of another version: \"schema\" is not 1");
        assert!(said("{\"schema\": 1}").contains("missing field"), "{}", said("{\"schema\": 1}"));
    }
}
