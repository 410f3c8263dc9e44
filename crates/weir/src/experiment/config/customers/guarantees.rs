//! No site promises more than it has.

use super::entry::Entry;
use super::sites::{upwards, Site};
use super::Faults;
use crate::experiment::config::diag::Fault;
use weir_core::gateway::Direction;
use weir_core::rate::Rate;

/// Notes the customers with whom a site, or one above it, promises more than it has.
pub(super) fn check(entries: &[Entry], sites: &[Site], faults: &mut Faults) {
    for (k, (direction, what)) in [(Direction::In, "down"), (Direction::Out, "up")].into_iter().enumerate() {
        let mut promised = vec![0u64; sites.len()];
        for Entry { customer, least_at, .. } in entries {
            let Some(least) = customer.least(direction) else { continue };
            for at in upwards(sites, customer.site) {
                let has = sites[at].rate(direction);
                let had_room = promised[at] <= has.bps();
                promised[at] += least.bps();
                if let Some(sum) = Rate::from_bps(promised[at]).filter(|&sum| had_room && sum > has) {
                    let message =
                        format!("site \"{}\" promises {sum} {what} up to here, and has {has}", sites[at].id);
                    let help = "the least rates of all customers below a site are at most its own rate";
                    faults.note(least_at[k].clone(), Fault::new(message, help));
                }
            }
        }
    }
}
