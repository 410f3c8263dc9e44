//! Result files: one run, or the runs of a sweep with what they have in common.

use super::metric::{Measured, Values};
use super::{RunResult, Settings, SCHEMA};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Several runs of one experiment: a sweep, several seeds, or both, or the same again and again in the lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Runs {
    /// Always [`SCHEMA`].
    pub schema: u32,
    /// In the order of the sweep, the seeds of each setting together. Runs that had not begun when it was interrupted
    /// are left out. `series` holds what the experiment asked for; received bytes are left out.
    pub runs: Vec<RunResult>,
    /// What the seeds of each setting have in common, in the order of the sweep; only with several seeds, or of
    /// the lab. Follows from the runs, and is not read back.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<Summary>,
}

/// What the seeds of one setting have in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// What the sweep set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: Settings,
    /// Seeds of the runs that went to their end; only these are in the means.
    pub seeds: Vec<u64>,
    /// By group of flows, in the order of the plan.
    pub groups: Vec<GroupSummary>,
}

/// A group of flows over several seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupSummary {
    /// The group's name.
    pub group: String,
    /// Flows in it.
    pub flows: u64,
    /// Means over the seeds of what the group has in each run: of a value of flows their mean, of counts their sum.
    #[serde(flatten)]
    pub values: Values<Mean>,
}

/// A mean over runs that differ in their seed only.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// Runs in it.
    pub n: u64,
    /// Their arithmetic mean.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval (Student's t); `null` for a single run, and where all
    /// runs have the same value: seeds that change nothing tell nothing of its spread.
    pub ci95: Option<f64>,
    /// Number of flows of all runs that it is of, if not all that have such a value: the others had not
    /// ended, or had no sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

/// A result file.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    /// `weir lab`, or `weir sim` of one run.
    Run(Box<RunResult>),
    /// A sweep, or several seeds.
    Runs(Runs),
}

impl Document {
    /// Reads a result. Errors say what is wrong with the text, not which file it is.
    pub fn parse(text: &str) -> Result<Document, String> {
        let value: Value = serde_json::from_str(text).map_err(|e| format!("no JSON: {e}"))?;
        match value.get("schema").map(Value::as_u64) {
            Some(Some(n)) if n == u64::from(SCHEMA) => (),
            Some(_) => {
                return Err(format!("a result of another version: \"schema\" is not {SCHEMA}"));
            }
            None => return Err("no result of a run: it has no \"schema\"".to_string()),
        }
        let wrong = |e: serde_json::Error| format!("no result of a run: {e}");
        if value.get("runs").is_some() {
            serde_json::from_value(value).map(Document::Runs).map_err(wrong)
        } else {
            serde_json::from_value(value).map(|run| Document::Run(Box::new(run))).map_err(wrong)
        }
    }

    /// The runs in it.
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
            "no result of a run: invalid type: integer `3`, expected a sequence"
        );
        assert!(said("{\"schema\": 1}").contains("missing field"), "{}", said("{\"schema\": 1}"));
    }
}
