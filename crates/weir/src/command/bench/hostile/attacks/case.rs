//! An attack: the configuration that it is played against, the rates that hold there, the connections beside it, and what is forged.

use super::forge::Forger;
use super::site::Party;
use std::time::Duration;
use weir_core::gateway::Direction;
use weir_core::rate::Rate;

/// A rate that all that these parties have together may have, or each of their flows has.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub rate: Rate,
    pub direction: Direction,
    pub parties: &'static [Party],
    /// Each of their connections has it for itself.
    pub each: bool,
}

/// What a connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Data from the LAN.
    Up,
    /// Data to the LAN.
    Down,
    /// Much data to the LAN and a little from it.
    Both,
}

impl Load {
    /// The direction whose rate is looked at.
    pub const fn direction(self) -> Direction {
        match self {
            Load::Up => Direction::Out,
            Load::Down | Load::Both => Direction::In,
        }
    }
}

/// A connection beside the attack.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    pub party: Party,
    pub load: Load,
    pub begins: Duration,
}

/// An attack, and what it is played against.
#[derive(Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    /// The gateway's configuration; `WAN` stands for its interface.
    pub gateway: &'static str,
    pub limits: &'static [Limit],
    pub connections: &'static [Connection],
    /// What is forged, this often while the attack is on.
    pub every: Duration,
    pub forge: fn(&mut Forger, u64) -> std::io::Result<()>,
    /// How long frames take beyond the WAN, each way.
    pub delay: Option<Duration>,
    /// The most that a sender has to send, in bytes a second: what is let go is not the machine's to bear.
    pub most: usize,
    /// The least that the attacker's own connection has while the attack is on.
    pub least: Rate,
    /// Networks are attacked one after the other: the machine does not carry as many floods at once.
    pub in_turn: bool,
}

/// The attack begins.
pub const BEGINS: Duration = Duration::from_millis(1_500);
/// From here on limits must hold.
pub const HOLDS: Duration = Duration::from_millis(2_500);
/// It pauses for a second, goes on for one, and ends.
pub const PAUSES: Duration = Duration::from_millis(4_000);
const RESUMES: Duration = Duration::from_millis(5_000);
const ENDS: Duration = Duration::from_millis(6_000);
/// The case ends.
pub const END: Duration = Duration::from_millis(7_000);

/// Whether the attack is on.
pub fn is_on(at: Duration) -> bool {
    (BEGINS..PAUSES).contains(&at) || (RESUMES..ENDS).contains(&at)
}

/// A newcomer's connection begins under the attack.
const NEWCOMER: Duration = Duration::from_millis(2_500);

const RATE: Rate = Rate::mbit(5);
/// Of TCP beside datagrams: a tenth, less what is retransmitted.
const FLOOR: Rate = Rate::kbit(400);
const LINE: Rate = Rate::mbit(1_000);

/// One connection of each party.
const fn one_each(load: Load) -> [Connection; 3] {
    [
        Connection { party: Party::Attacker, load, begins: Duration::ZERO },
        Connection { party: Party::Neighbour, load, begins: Duration::ZERO },
        Connection { party: Party::Newcomer, load, begins: NEWCOMER },
    ]
}

/// A limit for the flow of each party.
const fn flow_each(direction: Direction) -> [Limit; 3] {
    const fn flow(direction: Direction, parties: &'static [Party]) -> Limit {
        Limit { rate: RATE, direction, parties, each: true }
    }
    [
        flow(direction, &[Party::Attacker]),
        flow(direction, &[Party::Neighbour]),
        flow(direction, &[Party::Newcomer]),
    ]
}

/// A limit for the attacker, and one for the others.
const fn two_classes(direction: Direction, rate: Rate) -> [Limit; 2] {
    [
        Limit { rate, direction, parties: &[Party::Attacker], each: false },
        Limit { rate, direction, parties: &[Party::Neighbour, Party::Newcomer], each: false },
    ]
}

/// Each flow to the LAN has a rate.
const FLOWS_IN: &str = r#"
[ports]
dev = "WAN"
[[gateway.class]]
name = "flows"
direction = "in"
[gateway.class.ack]
preset = "ack-shaper"
flow_rate = "5Mbit"
"#;

/// Two customers, each with a rate for what it sends.
const CLASSES_OUT: &str = r#"
[ports]
dev = "WAN"
[[gateway.class]]
name = "attacker"
direction = "out"
match = [{ src = "10.71.0.0/24" }]
rate = "5Mbit"
[[gateway.class]]
name = "others"
direction = "out"
match = [{ src = "10.71.1.0/24" }, { src = "10.71.2.0/24" }]
rate = "5Mbit"
"#;

/// The same; what ACKs cannot slow is dropped beyond the rate, and there is a rule that looks at ports.
const POLICED_OUT: &str = r#"
[ports]
dev = "WAN"
[[gateway.class]]
name = "dns"
direction = "out"
match = [{ dst_port = 53 }]
rate = "2Mbit"
[[gateway.class]]
name = "attacker"
direction = "out"
match = [{ src = "10.71.0.0/24" }, { src = "fd71::/64" }]
rate = "5Mbit"
police = true
[[gateway.class]]
name = "others"
direction = "out"
match = [{ src = "10.71.1.0/24" }, { src = "10.71.2.0/24" }]
rate = "5Mbit"
police = true
"#;

/// What ACKs cannot slow is dropped beyond the rate, and no rule looks at ports.
const POLICED_WHOLE: &str = r#"
[ports]
dev = "WAN"
[[gateway.class]]
name = "attacker"
direction = "out"
match = [{ src = "10.71.0.0/24" }]
rate = "5Mbit"
police = true
[[gateway.class]]
name = "others"
direction = "out"
match = [{ src = "10.71.1.0/24" }, { src = "10.71.2.0/24" }]
rate = "5Mbit"
police = true
"#;

/// Two customers, each with a rate for what it receives.
const CLASSES_IN: &str = r#"
[ports]
dev = "WAN"
[[gateway.class]]
name = "attacker"
direction = "in"
match = [{ dst = "10.71.0.0/24" }]
rate = "5Mbit"
[[gateway.class]]
name = "others"
direction = "in"
match = [{ dst = "10.71.1.0/24" }, { dst = "10.71.2.0/24" }]
rate = "5Mbit"
"#;

/// Few flows have a place, and each has a rate.
const FEW_FLOWS_IN: &str = r#"
[ports]
dev = "WAN"
[gateway]
max_flows = 1024
[[gateway.class]]
name = "flows"
direction = "in"
[gateway.class.ack]
preset = "ack-shaper"
flow_rate = "5Mbit"
"#;

/// Connections have a guaranteed rate, and there is room for five.
const GUARANTEED_OUT: &str = r#"
[ports]
dev = "WAN"
[[gateway.class]]
name = "all"
direction = "out"
rate = "5Mbit"
queue = "200p"
discipline = "pfq"
flow_min = "1Mbit"
admission = "drop"
"#;

/// All leaves as far apart as windows say.
const PACED_OUT: &str = r#"
[ports]
dev = "WAN"
[gateway]
pace = "clock"
line = "1Gbit"
[[gateway.class]]
name = "all"
direction = "out"
rate = "window"
queue = "200p"
"#;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// All attacks.
pub fn cases() -> Vec<Case> {
    const DOWN: &[Connection] = &one_each(Load::Down);
    const UP: &[Connection] = &one_each(Load::Up);
    const IN: &[Limit] = &flow_each(Direction::In);
    const OUT: &[Limit] = &two_classes(Direction::Out, RATE);
    const CLASS_IN: &[Limit] = &two_classes(Direction::In, RATE);
    const BOTH: &[Connection] = &one_each(Load::Both);
    // Whether a flood meets a SYN is chance.
    const MANY: &[Connection] = &[BOTH[0], BOTH[1], BOTH[2], BOTH[2], BOTH[2], BOTH[2]];
    const FIRST_UNDER_ATTACK: &[Connection] =
        &[Connection { party: Party::Attacker, load: Load::Down, begins: BEGINS }, DOWN[1], DOWN[2]];
    const EVERYBODY: &[Limit] = &[Limit {
        rate: RATE,
        direction: Direction::Out,
        parties: &[Party::Attacker, Party::Neighbour, Party::Newcomer],
        each: false,
    }];
    const NO_LIMIT: &[Limit] = &[
        Limit { rate: LINE, direction: Direction::Out, parties: &[Party::Attacker], each: false },
        Limit {
            rate: LINE,
            direction: Direction::Out,
            parties: &[Party::Neighbour, Party::Newcomer],
            each: false,
        },
    ];
    let base = Case {
        name: "",
        gateway: FLOWS_IN,
        limits: IN,
        connections: DOWN,
        every: MS(1),
        forge: Forger::nothing,
        delay: None,
        most: 12_500_000,
        least: Rate::kbit(8),
        in_turn: false,
    };
    let flows = |name, every, forge| Case { name, every, forge, ..base };
    let classes = |name, every, forge| Case {
        gateway: CLASSES_OUT,
        limits: OUT,
        connections: UP,
        ..flows(name, every, forge)
    };
    let policed = |name, every, forge| Case { gateway: POLICED_OUT, ..classes(name, every, forge) };
    vec![
        flows("odd ACKs", MS(100), Forger::odd_ack),
        flows("odd ACKs that end on the way", MS(100), Forger::odd_ack_with_few_hops),
        Case {
            connections: FIRST_UNDER_ATTACK,
            ..flows("an ACK before the first", MS(10), Forger::ack_before_the_first)
        },
        Case { gateway: FEW_FLOWS_IN, ..flows("a full flow table", MS(10), Forger::fill) },
        Case {
            gateway: GUARANTEED_OUT,
            limits: EVERYBODY,
            connections: UP,
            ..flows("guarantees for nobody", MS(100), Forger::data_of_nobody)
        },
        policed("UDP, a port each", MS(1), Forger::udp_of_many_ports),
        policed("UDP, an IPv6 address each", MS(1), Forger::udp_of_many_addresses),
        Case {
            gateway: PACED_OUT,
            limits: NO_LIMIT,
            connections: UP,
            delay: Some(MS(10)),
            most: 1_250_000,
            ..flows("an ACK far ahead, paced", MS(100), Forger::far_ahead)
        },
        Case { connections: MANY, in_turn: true, ..flows("SYN flood", MS(1), Forger::syns) },
        Case { connections: BOTH, ..flows("wrong checksum, TSval ahead", MS(100), Forger::wrong_checksum) },
        classes("FIN that nobody gets", MS(200), Forger::fin),
        Case { least: FLOOR, ..classes("UDP at the rate", MS(1), Forger::udp_at_the_rate) },
        Case {
            gateway: POLICED_WHOLE,
            least: FLOOR,
            ..classes("UDP at the rate, policed", MS(1), Forger::udp_at_the_rate)
        },
        Case { least: FLOOR, ..classes("UDP beyond the rate", MS(1), Forger::udp_beyond_the_rate) },
        Case {
            gateway: CLASSES_IN,
            limits: CLASS_IN,
            connections: DOWN,
            ..flows("odd ACKs, class", MS(100), Forger::odd_ack)
        },
    ]
}
