//! Checks that no site guarantees more than its rate.

use super::entry::Entry;
use super::sites::{upwards, Site};
use super::Faults;
use crate::experiment::config::diag::Fault;
use weir_core::gateway::Direction;
use weir_core::rate::Rate;

const DIRECTIONS: [(Direction, &str); 2] = [(Direction::In, "down"), (Direction::Out, "up")];

/// Notes each customer whose guarantee makes the sum at one of its sites exceed that site's rate.
pub(super) fn check(entries: &[Entry], sites: &[Site], faults: &mut Faults) {
    for (k, (direction, what)) in DIRECTIONS.into_iter().enumerate() {
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

/// Reduces the guarantees below each oversubscribed site in proportion, and remarks on it. LibreQoS's
/// programs write 98 % of a circuit's rate as its guarantee, so their sites are usually oversubscribed, and
/// LibreQoS's queues divide the rate in this proportion.
pub(super) fn fit(entries: &mut [Entry], sites: &[Site], faults: &mut Faults) {
    for (k, (direction, what)) in DIRECTIONS.into_iter().enumerate() {
        let mut promised = vec![0u64; sites.len()];
        for Entry { customer, .. } in &*entries {
            let least = customer.least(direction).map_or(0, Rate::bps);
            upwards(sites, customer.site).for_each(|at| promised[at] += least);
        }
        let exceeds = |at: &usize| promised[*at] > sites[*at].rate(direction).bps();
        // The smallest ratio of all sites above a customer applies: it satisfies each of these sites.
        let scaled = |least: Rate, at: usize| {
            let scaled = u128::from(least.bps()) * u128::from(sites[at].rate(direction).bps());
            Rate::from_bps((scaled / u128::from(promised[at])) as u64)
        };
        let mut said = vec![false; sites.len()];
        for Entry { customer, least_at, .. } in entries.iter_mut() {
            let Some(least) = customer.least(direction) else { continue };
            let above: Vec<usize> = upwards(sites, customer.site).filter(exceeds).collect();
            for &at in above.iter().filter(|&&at| !std::mem::replace(&mut said[at], true)) {
                let (site, sum) = (&sites[at], Rate::from_bps(promised[at]).unwrap_or(least));
                let message =
                    format!("site \"{}\" promises {sum} {what}, and has {}", site.id, site.rate(direction));
                let help = "the least rates of its circuits are reduced in proportion";
                faults.remark(least_at[k].clone(), Fault::new(message, help));
            }
            let fitted = above.iter().map(|&at| scaled(least, at)).min();
            let fitted = fitted.unwrap_or(Some(least));
            match direction {
                Direction::In => customer.down_min = fitted,
                Direction::Out => customer.up_min = fitted,
            }
        }
    }
}
