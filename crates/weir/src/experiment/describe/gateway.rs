//! The gateway in words.

use super::{counted, direction};
use crate::experiment::config::customers::Customer;
use crate::experiment::config::gateway::GatewayFile;
use crate::experiment::config::{class, gateway, nested, policy, share};
use weir_core::gateway::{ClassConfig, Config};
use weir_core::pace::Spread;
use weir_core::rate::Rate;

/// Describes the number of customers and their total rates.
pub(super) fn customers(file: &GatewayFile) -> Option<String> {
    let rate =
        |of: fn(&Customer) -> Rate| file.customers.iter().map(|c| u128::from(of(c).bps())).sum::<u128>();
    let mbit = |bps: u128| format!("{} Mbit/s", bps as f64 / 1e6);
    let count = counted(file.customers.len() as u64, "customer", "customers");
    let (down, up) = (mbit(rate(|c| c.down)), mbit(rate(|c| c.up)));
    let sites = match file.sites.len() {
        0 => String::new(),
        n => format!(", below {}", counted(n as u64, "site", "sites")),
    };
    (!file.customers.is_empty())
        .then(|| format!("{count}{sites}, together {down} down and {up} up; two classes each"))
}

/// Most classes that are described.
const MOST: usize = 100;

pub(super) fn lines(g: &Config) -> Vec<String> {
    // Further lanes are said with the first.
    let lane = |c: &&ClassConfig| c.share.and_then(|share| share.spread) == Some(Spread::Lane);
    let own = || g.classes.iter().filter(|c| !lane(c));
    let count = own().count();
    let classes = counted(count as u64, "class", "classes");
    let mut out = vec![format!("gateway: {classes}, {}", gateway::words(g))];
    for c in own().take(MOST) {
        out.push(format!("  {}: {}", c.name, takes(c)));
        let share = c.share.iter().flat_map(|spec| share::words(spec, &g.classes));
        let nested = c.nested.iter().map(|nested| nested::words(nested, &g.classes));
        let ack = c.ack.as_ref().filter(|_| c.takes_flows()).map(policy::words);
        let mut said: Vec<String> = share.chain(nested).chain(ack).collect();
        if said.is_empty() {
            said.push("passed untouched".to_string());
        }
        out.extend(said.into_iter().map(|line| format!("    {line}")));
    }
    if count > MOST {
        out.push(format!("  and {} more", counted((count - MOST) as u64, "class", "classes")));
    }
    out.push("  everything else passes untouched".to_string());
    out
}

fn takes(c: &ClassConfig) -> String {
    let all = direction(c.direction);
    if !c.takes_flows() {
        return format!("{all} of its children");
    }
    if c.matches.is_empty() {
        return format!("all {all}");
    }
    let rules: Vec<String> = c.matches.iter().map(class::rule_words).collect();
    format!("{all} with {}", rules.join("; or "))
}
