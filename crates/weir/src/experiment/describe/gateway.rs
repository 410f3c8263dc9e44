//! The gateway in words.

use super::{counted, direction};
use crate::experiment::config::{class, gateway, policy};
use weir_core::gateway::{ClassConfig, Config};

pub(super) fn lines(g: &Config) -> Vec<String> {
    let classes = counted(g.classes.len() as u64, "class", "classes");
    let mut out = vec![format!("gateway: {classes}, {}", gateway::words(g))];
    for c in &g.classes {
        out.push(format!("  {}: {}", c.name, takes(c)));
        out.push(format!("    {}", c.ack.as_ref().map_or("passed untouched".to_string(), policy::words)));
    }
    out.push("  everything else passes untouched".to_string());
    out
}

fn takes(c: &ClassConfig) -> String {
    let all = direction(c.direction);
    if c.matches.is_empty() {
        return format!("all {all}");
    }
    let rules: Vec<String> = c.matches.iter().map(class::rule_words).collect();
    format!("{all} with {}", rules.join("; or "))
}
