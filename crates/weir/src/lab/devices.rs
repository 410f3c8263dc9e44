//! The gateway and the emulators as processes of their own, started as in the field: a configuration
//! file, a command, and a JSON report ([`crate::run`]) when SIGTERM ends them.

use super::topology::{Layout, Place, LAN_PORT, WAN_PORT};
use crate::plan::{Link, Loss, Plan, Probability, Queue};
use std::fmt::Write;
use weir_core::time::Duration;

/// Each device stays on a processor of its own as far as there are any: a sender that moves between
/// processors reorders frames on virtual devices, since each processor has its own backlog of them.
fn ports(attach: &str, number: usize) -> String {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    format!("[ports]\n{attach}cpu = {}\n", number % cpus)
}

/// The gateway's configuration: its ports, and the `[gateway]` of the experiment file word for word.
pub fn gateway_config(experiment: &str, layout: &Layout) -> Result<String, String> {
    let fault = |e: &dyn std::fmt::Display| format!("the gateway's configuration: {e}");
    let mut file: toml::Table = experiment.parse().map_err(|e: toml::de::Error| fault(&e))?;
    let gateway = file.remove("gateway").ok_or_else(|| fault(&"there is no [gateway]"))?;
    let table = toml::Table::from_iter([("gateway".to_string(), gateway)]);
    let (_, dev) = layout.gateway();
    Ok(ports(&format!("dev = \"{dev}\"\n"), 0) + "\n" + &toml::to_string(&table).map_err(|e| fault(&e))?)
}

/// The configuration of the emulator at `place`.
pub fn emulator_config(plan: &Plan, place: Place, spin: Option<Duration>) -> String {
    let (out, back) = match place {
        Place::Lan => (plan.path.lan, plan.path.lan),
        _ => (plan.path.wan_out, plan.path.wan_back),
    };
    let pair = format!("lan = \"{LAN_PORT}\"\nwan = \"{WAN_PORT}\"\n");
    let number = if place == Place::Wan { 1 } else { 2 };
    let spin = spin.map_or(String::new(), |d| format!("spin = \"{d}\"\n"));
    let head = format!("seed = {}\n\n{}{spin}", plan.seed, ports(&pair, number));
    head + &direction("out", &out) + &direction("back", &back)
}

/// The configuration of an emulator that takes every frame that leaves by the box's interface and emulates next to nothing:
/// giant segments stay whole at this rate.
pub fn box_config(layout: &Layout) -> String {
    let (_, dev) = layout.gateway();
    ports(&format!("dev = \"{dev}\"\n"), 0) + "\n[path.wan.out]\nrate = \"100Gbit\"\nqueue = \"100000p\"\n"
}

/// A link with the keys that `[path]` has.
fn direction(name: &str, link: &Link) -> String {
    let mut text = format!("\n[path.wan.{name}]\n");
    // Writing to a string cannot fail.
    if let Some(rate) = link.rate {
        let _ = writeln!(text, "rate = \"{rate}\"");
        let _ = writeln!(text, "queue = \"{}\"", limit(link.queue));
        if let Some(mark) = link.mark {
            let _ = writeln!(text, "mark = \"{}\"", limit(mark));
        }
        if link.overhead != Link::default().overhead {
            let _ = writeln!(text, "overhead = {}", link.overhead);
        }
        if link.burst > 0 {
            let _ = writeln!(text, "burst = {}", link.burst);
        }
    }
    let _ = writeln!(text, "delay = \"{}\"", link.delay);
    let _ = match link.loss {
        Loss::None => Ok(()),
        Loss::Random(Probability::ONE) => writeln!(text, "loss = \"1\""),
        Loss::Random(p) => writeln!(text, "loss = \"0.{:012}\"", p.trillionths()),
        Loss::Every(n) => writeln!(text, "loss_every = {n}"),
    };
    text
}

fn limit(queue: Queue) -> String {
    match queue {
        Queue::Packets(n) => format!("{n}p"),
        Queue::Bytes(n) => format!("{n}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;
    use weir_core::rate::Rate;

    #[test]
    fn the_gateway_gets_its_part_of_the_experiment() {
        let text = "name = 'x'\n[gateway]\nmax_flows = 7\n[[gateway.class]]\nname = 'ten'\n";
        let config: toml::Table = gateway_config(text, &Layout::of(&plan())).unwrap().parse().unwrap();
        assert_eq!(config["ports"]["dev"].as_str(), Some("wan"));
        assert_eq!(config["gateway"]["max_flows"].as_integer(), Some(7));
        assert_eq!(config["gateway"]["class"][0]["name"].as_str(), Some("ten"));
        assert_eq!(config.len(), 2);
        assert!(gateway_config("name = 'x'", &Layout::of(&plan())).unwrap_err().contains("no [gateway]"));
    }

    #[test]
    fn an_emulator_on_the_box_takes_what_leaves() {
        let source = crate::config::Source::new("box", box_config(&Layout::of(&plan())));
        let file = crate::config::path::parse_wan(&source).unwrap();
        assert!(!file.path.wan_out.is_bare() && file.path.wan_back.is_bare());
    }

    #[test]
    fn an_emulator_gets_both_directions() {
        let mut p = plan();
        p.path.wan_out.rate = Some(Rate::kbit(1500));
        p.path.wan_out.loss = Loss::Every(100);
        p.path.lan.loss = Loss::Random(Probability::from_trillionths(100_000_000).unwrap());
        p.path.wan_back.delay = Duration::from_micros(1500);
        let config: toml::Table = emulator_config(&p, Place::Wan, None).parse().unwrap();
        assert_eq!(config["path"]["wan"]["out"]["rate"].as_str(), Some("1500kbit"));
        assert_eq!(config["path"]["wan"]["out"]["loss_every"].as_integer(), Some(100));
        assert_eq!(config["path"]["wan"]["out"]["queue"].as_str(), Some("1000p"));
        assert_eq!(config["path"]["wan"]["back"]["delay"].as_str(), Some("1500us"));
        assert!(config["path"]["wan"]["out"].get("overhead").is_none(), "what is usual is not said");
        assert!(config["path"]["wan"]["out"].get("mark").is_none());
        (p.path.wan_out.mark, p.path.wan_out.overhead) = (Some(Queue::Bytes(30_000)), 38);
        let config: toml::Table = emulator_config(&p, Place::Wan, None).parse().unwrap();
        assert_eq!(config["path"]["wan"]["out"]["mark"].as_str(), Some("30000B"));
        assert_eq!(config["path"]["wan"]["out"]["overhead"].as_integer(), Some(38));
        let lan: toml::Table = emulator_config(&p, Place::Lan, None).parse().unwrap();
        assert_eq!(lan["path"]["wan"]["back"]["loss"].as_str(), Some("0.000100000000"));
    }
}
