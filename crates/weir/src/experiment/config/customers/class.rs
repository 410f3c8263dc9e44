//! Classes of customers, and of the sites above them.

use super::sites::{most, upwards, Site};
use super::Customer;
use crate::experiment::config::policy;
use weir_core::ack::Unresponsive;
use weir_core::class::Spec;
use weir_core::gateway::{ClassConfig, Direction, Match, Nested, Prefix};
use weir_core::queue;
use weir_core::rate::Rate;

const DIRECTIONS: [(Direction, &str); 2] = [(Direction::Out, "up"), (Direction::In, "down")];

/// Returns a class per direction for each customer, in the customers' order, then for each site with an
/// active customer below it. The upload class comes before the download class.
/// The `queues` of customers, of uploads and of downloads, share their site's rate, each with the discipline
/// that its row names. ACKs hold the rate in a direction without queues.
pub(in crate::experiment::config) fn classes(
    customers: &[Customer],
    sites: &[Site],
    queues: Queues,
) -> Vec<ClassConfig> {
    let used = used(customers, sites);
    // First class of each site's pair.
    let mut next = 2 * customers.len();
    let places: Vec<Option<usize>> = used
        .iter()
        .map(|&used| {
            let place = used.then_some(next);
            next += 2 * usize::from(used);
            place
        })
        .collect();
    let place = |site: Option<usize>, k: usize| places[site?].map(|first| first + k);
    let pair = |c: &Customer| {
        [0, 1].map(|k| {
            let class = of_customer(c, sites, place(c.site, k), DIRECTIONS[k]);
            match queues[k] {
                Some(queue) if !c.off => waits(class, Some(c.sqm[k].map_or(queue, |sqm| sqm.queue(queue)))),
                _ => class,
            }
        })
    };
    let of_customers = customers.iter().flat_map(pair);
    let promised = DIRECTIONS.map(|(direction, _)| promised(customers, sites, direction));
    let pair = |i: usize| {
        [0, 1].map(|k| {
            let class = of_site(i, sites, place(sites[i].parent, k), promised[k][i], DIRECTIONS[k]);
            match queues[k] {
                Some(_) => waits(class, None),
                None => class,
            }
        })
    };
    of_customers.chain((0..sites.len()).filter(|&i| used[i]).flat_map(pair)).collect()
}

/// Queues of customers, of uploads and of downloads.
type Queues = [Option<queue::Config>; 2];

/// Returns the class of a customer or site whose packets wait in a queue, its own or those below it, instead
/// of being held by their ACKs.
fn waits(class: ClassConfig, queue: Option<queue::Config>) -> ClassConfig {
    let spec = match class.nested {
        Some(Nested { parent: Some(parent), rate, ceil, weight, .. }) => {
            Spec { rate, ceil, weight, queue, ..Spec::of(Some(parent)) }
        }
        _ => Spec { rate: class.ack.as_ref().map(|ack| ack.release.rate()), queue, ..Spec::of(None) },
    };
    ClassConfig { ack: None, nested: None, share: Some(spec), ..class }
}

/// Returns the sum of the guarantees below each site, in bits per second.
fn promised(customers: &[Customer], sites: &[Site], direction: Direction) -> Vec<u64> {
    let mut promised = vec![0; sites.len()];
    for customer in customers.iter().filter(|customer| !customer.off) {
        let least = customer.least(direction).map_or(0, Rate::bps);
        upwards(sites, customer.site).for_each(|at| promised[at] += least);
    }
    promised
}

/// Marks the sites with a customer below them that is not off.
fn used(customers: &[Customer], sites: &[Site]) -> Vec<bool> {
    let mut used = vec![false; sites.len()];
    for customer in customers.iter().filter(|customer| !customer.off) {
        upwards(sites, customer.site).for_each(|at| used[at] = true);
    }
    used
}

fn of_customer(
    customer: &Customer,
    sites: &[Site],
    parent: Option<usize>,
    (direction, ending): (Direction, &str),
) -> ClassConfig {
    let rate = most(sites, customer.site, direction)
        .map_or(customer.rate(direction), |most| most.min(customer.rate(direction)));
    let rule = |prefix: &Prefix| match direction {
        Direction::Out => Match { src: Some(*prefix), ..Match::default() },
        Direction::In => Match { dst: Some(*prefix), ..Match::default() },
    };
    let nested =
        Nested { parent, rate: customer.least(direction), ceil: Some(rate), weight: 1, lends: false };
    ClassConfig {
        name: format!("{}-{ending}", customer.label),
        direction,
        matches: customer.prefixes.iter().map(rule).collect(),
        ack: (!customer.off).then(|| policy::of_customer(rate, customer.unresponsive)),
        share: None,
        nested: (parent.is_some() && !customer.off).then_some(nested),
    }
}

/// Returns the class of a site. Its guarantee from the site above it is the sum of its customers' guarantees.
fn of_site(
    site: usize,
    sites: &[Site],
    parent: Option<usize>,
    promised: u64,
    (direction, ending): (Direction, &str),
) -> ClassConfig {
    let rate = most(sites, Some(site), direction).unwrap_or(sites[site].rate(direction));
    let nested = match parent {
        None => Nested { parent, rate: Some(rate), ceil: None, weight: 1, lends: true },
        Some(_) => {
            Nested { parent, rate: Rate::from_bps(promised), ceil: Some(rate), weight: 1, lends: true }
        }
    };
    ClassConfig {
        name: format!("{}-{ending}", sites[site].name),
        direction,
        matches: Vec::new(),
        ack: Some(policy::of_customer(rate, Unresponsive::Bound)),
        share: None,
        nested: Some(nested),
    }
}
