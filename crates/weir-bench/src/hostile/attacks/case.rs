//! Attacks: the configuration under attack, the limits that must hold, the connections beside the attack, and
//! the forged packets.

use super::gateways;
use std::net::Ipv4Addr;
use std::time::Duration;
use weir_core::gateway::Direction;
use weir_core::rate::Rate;

/// Owner of a prefix on the LAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The attacker.
    Attacker,
    /// An honest customer with one connection from the beginning.
    Neighbour,
    /// An honest customer whose connection begins during the attack.
    Newcomer,
}

impl Party {
    /// All parties.
    pub const ALL: [Party; 3] = [Party::Attacker, Party::Neighbour, Party::Newcomer];

    /// Returns the party's `n`-th address. The second is that of its host.
    pub const fn address(self, n: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 71, self as u8, n)
    }
    /// Returns the address of the party's host.
    pub const fn host(self) -> Ipv4Addr {
        self.address(2)
    }
    /// Returns the party's prefix of IPv4.
    pub fn prefix(self) -> String {
        format!("{}/24", self.address(0))
    }
    /// Returns the party's prefix of IPv6.
    pub fn prefix6(self) -> String {
        format!("fd71:0:0:{}::/64", self as u8)
    }
}

/// A limit on the rate of these parties together, or of each of their connections.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub rate: Rate,
    pub direction: Direction,
    pub parties: &'static [Party],
    /// True if the limit applies to each connection on its own.
    pub each: bool,
}

/// Traffic of a connection.
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
    /// Returns the direction whose rate is judged.
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

/// Packets that the attacker forges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    Nothing,
    OddAck,
    OddAckWithFewHops,
    AckBeforeTheFirst,
    Fill,
    DataOfNobody,
    UdpOfManyPorts,
    UdpOfManyAddresses,
    FarAhead,
    Syns,
    WrongChecksum,
    Fin,
    UdpAtTheRate,
    UdpBeyondTheRate,
    /// Copies of the last segment with data.
    Repeats,
    /// Data ahead of the last segment, ever further.
    RunsOn,
}

/// An attack and its setting.
#[derive(Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    /// Returns the gateway's configuration on this interface.
    pub gateway: fn(&str) -> String,
    pub limits: &'static [Limit],
    pub connections: &'static [Connection],
    /// Interval of forging while the attack is on.
    pub every: Duration,
    pub forgery: Forgery,
    /// One-way delay beyond the WAN.
    pub delay: Option<Duration>,
    /// Largest rate of a sender, in bytes a second, so that unlimited traffic does not overload the machine.
    pub most: usize,
    /// Smallest rate of the attacker's own connection that is accepted while the attack is on.
    pub least: Rate,
    /// Smallest rate of the neighbour's connection while the attack is on, if it shares the attacker's rate.
    pub neighbour: Option<Rate>,
    /// True if networks are attacked one after the other, because floods at the same time overload the
    /// machine.
    pub in_turn: bool,
}

/// Start of the attack.
pub const BEGINS: Duration = Duration::from_millis(1_500);
/// Time from which limits must hold.
pub const HOLDS: Duration = Duration::from_millis(2_500);
/// Start of a pause of a second. The attack then resumes for a second, and ends.
pub const PAUSES: Duration = Duration::from_millis(4_000);
const RESUMES: Duration = Duration::from_millis(5_000);
const ENDS: Duration = Duration::from_millis(6_000);
/// End of the case.
pub const END: Duration = Duration::from_millis(7_000);

/// Returns whether the attack is on.
pub fn is_on(at: Duration) -> bool {
    (BEGINS..PAUSES).contains(&at) || (RESUMES..ENDS).contains(&at)
}

/// Start of a newcomer's connection, during the attack.
const NEWCOMER: Duration = Duration::from_millis(2_500);

const RATE: Rate = Rate::mbit(5);
/// Smallest goodput of TCP beside datagrams: a tenth of the rate, less retransmissions.
const FLOOR: Rate = Rate::kbit(400);
/// 0.8 of a third of the rate.
const SHARE: Rate = Rate::kbit(1_333);
const LINE: Rate = Rate::mbit(1_000);

const DOWN: &[Connection] = &one_each(Load::Down);
const UP: &[Connection] = &one_each(Load::Up);
const BOTH: &[Connection] = &one_each(Load::Both);
/// Several newcomers: a flood meets the SYN of one of them only by chance.
const MANY: &[Connection] = &[BOTH[0], BOTH[1], BOTH[2], BOTH[2], BOTH[2], BOTH[2]];
/// The attacker's own connection begins under its attack.
const FIRST_UNDER_ATTACK: &[Connection] =
    &[Connection { party: Party::Attacker, load: Load::Down, begins: BEGINS }, DOWN[1], DOWN[2]];

/// A limit for all parties together.
const ALL_TOGETHER: &[Limit] = &[Limit {
    rate: RATE,
    direction: Direction::Out,
    parties: &[Party::Attacker, Party::Neighbour, Party::Newcomer],
    each: false,
}];

/// Returns one connection for each party.
const fn one_each(load: Load) -> [Connection; 3] {
    [
        Connection { party: Party::Attacker, load, begins: Duration::ZERO },
        Connection { party: Party::Neighbour, load, begins: Duration::ZERO },
        Connection { party: Party::Newcomer, load, begins: NEWCOMER },
    ]
}

/// Returns a limit for the flow of each party.
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

/// Returns a limit for the attacker, and one for the others together.
const fn two_classes(direction: Direction, rate: Rate) -> [Limit; 2] {
    [
        Limit { rate, direction, parties: &[Party::Attacker], each: false },
        Limit { rate, direction, parties: &[Party::Neighbour, Party::Newcomer], each: false },
    ]
}

/// Each flow to the LAN has a rate of its own.
const FLOWS: Case = Case {
    name: "",
    gateway: gateways::flows_in,
    limits: &flow_each(Direction::In),
    connections: DOWN,
    every: Duration::ZERO,
    forgery: Forgery::Nothing,
    delay: None,
    most: 12_500_000,
    least: Rate::kbit(8),
    neighbour: None,
    in_turn: false,
};
const FIRST: Case = Case { connections: FIRST_UNDER_ATTACK, ..FLOWS };
const TWO_WAY: Case = Case { connections: BOTH, ..FLOWS };
const FLOODED: Case = Case { connections: MANY, in_turn: true, ..FLOWS };
const FEW_FLOWS: Case = Case { gateway: gateways::few_flows_in, ..FLOWS };
const GUARANTEED: Case =
    Case { gateway: gateways::guaranteed_out, limits: ALL_TOGETHER, connections: UP, ..FLOWS };
/// Traffic is paced at windows, without a limit on the rate.
const PACED: Case = Case {
    gateway: gateways::paced_out,
    limits: &two_classes(Direction::Out, LINE),
    connections: UP,
    delay: Some(Duration::from_millis(10)),
    most: 1_250_000,
    ..FLOWS
};

/// Two customers, each with a rate for uploads.
const CLASSES: Case = Case {
    gateway: gateways::classes_out,
    limits: &two_classes(Direction::Out, RATE),
    connections: UP,
    ..FLOWS
};
/// All in one class for uploads. What the attacker forges is of its own connection.
const ONE_CLASS: Case = Case {
    gateway: gateways::one_class_out,
    limits: ALL_TOGETHER,
    connections: UP,
    neighbour: Some(SHARE),
    ..FLOWS
};
const BESIDE_UDP: Case = Case { least: FLOOR, ..CLASSES };
const POLICED_BY_PORT: Case = Case { gateway: gateways::policed_by_port, ..CLASSES };
const POLICED: Case = Case { gateway: gateways::policed, ..BESIDE_UDP };
/// Two customers, each with a rate for downloads.
const CLASSES_IN: Case =
    Case { gateway: gateways::classes_in, limits: &two_classes(Direction::In, RATE), ..FLOWS };

/// Name, setting, interval in milliseconds, and forged packets of every attack.
const ATTACKS: [(&str, Case, u64, Forgery); 17] = [
    ("odd ACKs", FLOWS, 100, Forgery::OddAck),
    ("odd ACKs that end on the way", FLOWS, 100, Forgery::OddAckWithFewHops),
    ("an ACK before the first", FIRST, 10, Forgery::AckBeforeTheFirst),
    ("a full flow table", FEW_FLOWS, 10, Forgery::Fill),
    ("guarantees for nobody", GUARANTEED, 100, Forgery::DataOfNobody),
    ("UDP, a port each", POLICED_BY_PORT, 1, Forgery::UdpOfManyPorts),
    ("UDP, an IPv6 address each", POLICED_BY_PORT, 1, Forgery::UdpOfManyAddresses),
    ("an ACK far ahead, paced", PACED, 100, Forgery::FarAhead),
    ("SYN flood", FLOODED, 1, Forgery::Syns),
    ("wrong checksum, TSval ahead", TWO_WAY, 100, Forgery::WrongChecksum),
    ("FIN that nobody gets", CLASSES, 200, Forgery::Fin),
    ("UDP at the rate", BESIDE_UDP, 1, Forgery::UdpAtTheRate),
    ("UDP at the rate, policed", POLICED, 1, Forgery::UdpAtTheRate),
    ("UDP beyond the rate", BESIDE_UDP, 1, Forgery::UdpBeyondTheRate),
    ("odd ACKs, class", CLASSES_IN, 100, Forgery::OddAck),
    ("repeated data, one class", ONE_CLASS, 1, Forgery::Repeats),
    ("data beyond the window, one class", ONE_CLASS, 1, Forgery::RunsOn),
];

/// Returns all attacks.
pub fn cases() -> Vec<Case> {
    let case = |(name, setting, every, forgery)| {
        let every = Duration::from_millis(every);
        Case { name, every, forgery, ..setting }
    };
    ATTACKS.map(case).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::experiment::config::{gateway, Source};

    #[test]
    fn every_configuration_is_valid() {
        for case in cases() {
            let parsed = gateway::parse(&Source::new(case.name, (case.gateway)("wan-w")));
            assert!(parsed.is_ok(), "{}: {:?}", case.name, parsed.err());
        }
    }
}
