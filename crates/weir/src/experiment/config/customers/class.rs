//! The classes of a customer.

use super::Customer;
use crate::experiment::config::policy;
use weir_core::gateway::{ClassConfig, Direction, Match, Prefix};
use weir_core::rate::Rate;

/// The classes of customers, in their order: first what each sends, then what it receives.
pub(in crate::experiment::config) fn classes(customers: &[Customer]) -> Vec<ClassConfig> {
    let pair = |customer| [of(customer, Direction::Out), of(customer, Direction::In)];
    customers.iter().flat_map(pair).collect()
}

fn of(customer: &Customer, direction: Direction) -> ClassConfig {
    let (ending, rate): (&str, Rate) = match direction {
        Direction::Out => ("up", customer.up),
        Direction::In => ("down", customer.down),
    };
    let rule = |prefix: &Prefix| match direction {
        Direction::Out => Match { src: Some(*prefix), ..Match::default() },
        Direction::In => Match { dst: Some(*prefix), ..Match::default() },
    };
    ClassConfig {
        name: format!("{}-{ending}", customer.id),
        direction,
        matches: customer.prefixes.iter().map(rule).collect(),
        ack: (!customer.off).then(|| policy::policed(rate, customer.police)),
        share: None,
        nested: None,
    }
}
