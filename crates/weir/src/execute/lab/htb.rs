//! A gateway's queued classes as classes of Linux's HTB (tc-htb(8)), for comparison.

use weir_core::class::Spec;
use weir_core::gateway::{Config, Direction};
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Burst of a class. HTB's default is one frame on kernels with fine timers, which limits high rates.
const BURST: Duration = Duration::from_millis(1);
/// Bytes of a giant segment with its headers.
const GIANT: u64 = 66_000;
/// Bytes of a full frame.
const FULL_FRAME: u64 = 1514;

/// Returns lines of `tc` that set up the classes of outgoing traffic on `dev`. A class without rules takes
/// the rest. Only the servers' ports of rules are used.
pub fn commands(config: &Config, dev: &str) -> Vec<String> {
    let classes = config.classes.iter().enumerate();
    let shares = classes.filter(|(_, c)| c.direction == Direction::Out);
    let shares: Vec<(usize, Spec)> = shares.filter_map(|(i, c)| Some((i, c.share?))).collect();
    let number = |i: usize| format!("1:{:x}", i + 1);
    let rest = shares.iter().find(|(i, s)| s.queue.is_some() && config.classes[*i].matches.is_empty());
    let default = rest.map_or(String::new(), |(i, _)| format!(" default {:x}", i + 1));
    let mut lines = vec![format!("qdisc replace dev {dev} root handle 1: htb{default}")];
    let mut ordered = shares.clone();
    ordered.sort_by_key(|(i, _)| depth(config, *i));
    for (i, spec) in &ordered {
        let parent = spec.parent.map_or("1:".to_string(), number);
        // Every HTB class needs a rate.
        let rate = spec.rate.unwrap_or(Rate::kbit(8));
        let ceil = spec.ceil.or_else(|| most(config, *i)).unwrap_or(rate);
        lines.push(format!(
            "class add dev {dev} parent {parent} classid {} htb rate {}bit ceil {}bit burst {} cburst {} prio {} quantum {}",
            number(*i),
            rate.bps(),
            ceil.bps(),
            burst(rate),
            burst(ceil),
            spec.priority,
            u64::from(spec.weight) * GIANT,
        ));
        if let Some(queue) = spec.queue {
            let bytes = queue.limit.most_bytes(ceil, FULL_FRAME);
            lines.push(format!("qdisc add dev {dev} parent {} bfifo limit {bytes}", number(*i)));
        }
        for port in config.classes[*i].matches.iter().filter_map(|m| m.dst_port.clone()).flatten() {
            lines.push(format!(
                "filter add dev {dev} parent 1: protocol ip u32 match ip dport {port} 0xffff flowid {}",
                number(*i)
            ));
        }
    }
    lines
}

/// Returns the line of `tc` that limits `dev` to the rate of the first paced class (tc-tbf(8)). A bucket of
/// one full frame keeps packets apart.
pub fn one_rate(config: &Config, dev: &str) -> Vec<String> {
    let paced = config.classes.iter().filter_map(|c| c.share?.pace?.rate(config.port.line)).next();
    let line = |rate: Rate| {
        let (bps, limit) = (rate.bps(), 1000 * FULL_FRAME);
        format!("qdisc replace dev {dev} root tbf rate {bps}bit burst {FULL_FRAME} limit {limit}")
    };
    paced.map(line).into_iter().collect()
}

fn burst(rate: Rate) -> u64 {
    rate.bytes_in(BURST).max(GIANT)
}

fn depth(config: &Config, class: usize) -> usize {
    let parent = |&i: &usize| config.classes[i].share?.parent;
    core::iter::successors(Some(class), parent).count()
}

/// Returns the limit of the classes above a class.
fn most(config: &Config, class: usize) -> Option<Rate> {
    let above = config.classes[config.classes[class].share?.parent?].share?;
    match above.parent {
        None => above.rate,
        Some(parent) => above.ceil.or_else(|| most(config, parent)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::config::gateway;
    use crate::experiment::config::Source;

    #[test]
    fn classes_are_those_of_the_gateway() {
        let text = "[ports]\ndev = 'e'\n[[gateway.class]]\nname = 'a'\nparent = 'link'\nrate = '6Mbit'\npriority = 1\nqueue = '100p'\n\
            match = [{ dst_port = 5001 }]\n[[gateway.class]]\nname = 'link'\nrate = '8Gbit'\n[[gateway.class]]\nname = 'b'\nparent = 'link'\n\
            ceil = '4Gbit'\nweight = 2\nqueue = '64KiB'";
        let file = gateway::parse(&Source::new("g.toml", text)).unwrap();
        assert_eq!(
            commands(&file.gateway, "e"),
            [
                "qdisc replace dev e root handle 1: htb default 3",
                "class add dev e parent 1: classid 1:2 htb rate 8000000000bit ceil 8000000000bit burst 1000000 cburst 1000000 prio 0 quantum 66000",
                "class add dev e parent 1:2 classid 1:1 htb rate 6000000bit ceil 8000000000bit burst 66000 cburst 1000000 prio 1 quantum 66000",
                "qdisc add dev e parent 1:1 bfifo limit 151400",
                "filter add dev e parent 1: protocol ip u32 match ip dport 5001 0xffff flowid 1:1",
                "class add dev e parent 1:2 classid 1:3 htb rate 8000bit ceil 4000000000bit burst 66000 cburst 500000 prio 0 quantum 132000",
                "qdisc add dev e parent 1:3 bfifo limit 65536",
            ]
        );
    }
}
