//! Hooks of boxes whose engine has beaten, and will have for an hour.

use crate::turns::{FIRST_PORT, FLOWS, OF_CLASS};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_core::ack::AckControl;
use weir_core::flow::Key;
use weir_core::gateway::{ClassConfig, Compiled, Config, Direction, Match, Prefix, Verdict};
use weir_core::rate::Rate;
use weir_core::steer::slot_flag::SCALED;
use weir_core::steer::{FlowLimit, Limit};
use weir_core::time::Duration;
use weir_core::wire::{TCP, UDP};
use weir_io::bpf::{Acks, AcksOptions, RuleBook};
use weir_io::sys::clock;

/// Directions that have classes, and those whose flows have a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Downloads, without any bound.
    Unbounded,
    /// Downloads, whose classes have a rate that their flows share.
    Downloads,
    /// Downloads, whose classes have a rate and whose flows have one each.
    Flows,
    /// Both directions, whose classes have a rate.
    Both,
}

/// The customer's address, of 16 bits, and a server's.
pub const CUSTOMER: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(10, 0, 0, 0), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0));
pub const SERVER: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(8, 0, 0, 1), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
/// The server's port of flows that are controlled, and of those that pass.
pub const CONTROLLED: u16 = 80;
pub const PASSES: u16 = 81;

/// First sequence number, and bytes that receivers allow.
pub const FIRST: u32 = 1000;
const WINDOW: u32 = 1 << 20;
/// More than any test run sends.
const RATE: Rate = Rate::mbit(10_000_000);

fn customer(v6: bool, class: u32) -> IpAddr {
    let (four, six) = CUSTOMER;
    if v6 {
        Ipv6Addr::from_bits(six.to_bits() | u128::from(class)).into()
    } else {
        Ipv4Addr::from_bits(four.to_bits() | class).into()
    }
}

fn server(v6: bool) -> IpAddr {
    if v6 {
        SERVER.1.into()
    } else {
        SERVER.0.into()
    }
}

/// Loaded hooks.
pub struct Hooks {
    pub acks: Acks,
    kind: Kind,
    v6: bool,
    flows: u32,
    /// Slots of flows that there are.
    slots: usize,
}

impl Hooks {
    pub fn new(kind: Kind, v6: bool, many: bool) -> Hooks {
        let (flows, classes) = if many { (FLOWS, FLOWS / OF_CLASS) } else { (1, 1) };
        let slots = if kind == Kind::Both { 2 * flows } else { flows };
        let options = AcksOptions {
            tallies: 2 * classes,
            passing: 1 << 18,
            shape_in: kind == Kind::Both,
            ..AcksOptions::new(slots.max(4096))
        };
        let acks = Acks::load(&options).expect("programs load, as root");
        acks.hooks_of(0).beat(clock::now() + Duration::from_secs(3600));
        let hooks = Hooks { acks, kind, v6, flows, slots: slots as usize };
        if kind != Kind::Unbounded {
            hooks.classify(classes);
        }
        hooks.begin();
        hooks.name_flows();
        hooks
    }

    /// All of the slots' flows begin, and their senders may send more than any row does.
    pub fn begin(&self) {
        let at = weir_core::steer::ticks(clock::now());
        for (slot, tag) in self.acks.slots().iter().zip(1..) {
            slot.open(tag, SCALED, FIRST, FIRST, 1000, FIRST + WINDOW, FIRST + WINDOW, 100, at);
        }
        for sight in self.acks.sights_of(0) {
            sight.begin();
            sight.open(FIRST);
        }
        self.permit();
    }

    /// The flows' senders may send more than a run does.
    pub fn permit(&self) {
        let flows = self.acks.flow_bounds_of(0).iter().take(self.slots);
        flows.for_each(|flow| flow.queue().restart(1 << 30));
    }

    /// The flow as it goes out, to this port of the server.
    fn key(&self, flow: u32, to: u16) -> Key {
        let (host, port) = (customer(self.v6, flow / OF_CLASS), FIRST_PORT + (flow % OF_CLASS) as u16);
        Key::new(TCP, (host, port).into(), (server(self.v6), to).into())
    }

    fn name_flows(&self) {
        let shape = |slot: u32, ack_key| Verdict::Shape { ack_key, slot, tag: slot + 1 };
        let each = |verdict: &dyn Fn(u32) -> Verdict| (0..self.flows).map(verdict).collect::<Vec<_>>();
        let mut verdicts = each(&|flow| shape(flow, self.key(flow, CONTROLLED)));
        if self.kind == Kind::Both {
            verdicts.extend(each(&|flow| {
                let key = self.key(flow, CONTROLLED);
                shape(self.flows + flow, key.reversed())
            }));
        }
        verdicts.extend(each(&|flow| Verdict::Pass { ack_key: self.key(flow, PASSES) }));
        self.acks.apply(&verdicts).expect("verdicts");
    }

    /// A class for each customer and direction.
    fn classify(&self, classes: u32) {
        let ack = AckControl::ack_share(RATE);
        let prefix = |class| Some(Prefix::host(customer(self.v6, class)));
        let of =
            |direction, m| ClassConfig { matches: vec![m], ..ClassConfig::controlled("", direction, ack) };
        let mut all: Vec<_> = (0..classes)
            .map(|class| of(Direction::In, Match { dst: prefix(class), ..Match::default() }))
            .collect();
        if self.kind == Kind::Both {
            all.extend(
                (0..classes)
                    .map(|class| of(Direction::Out, Match { src: prefix(class), ..Match::default() })),
            );
        }
        let config: Compiled = Config { classes: all, ..Config::default() }.into();
        self.acks
            .hooks_of(0)
            .count([Direction::Out, Direction::In].map(|direction| config.fields(direction)));
        self.bound(&config);
        let datagrams = (0..classes).map(|class| {
            let key = Key::new(
                UDP,
                (server(self.v6), CONTROLLED).into(),
                (customer(self.v6, class), FIRST_PORT).into(),
            );
            Verdict::Count { key: config.fields(Direction::In).of(&key), tally: Some(class) }
        });
        self.acks.apply(&datagrams.collect::<Vec<_>>()).expect("verdicts");
    }

    fn bound(&self, config: &Compiled) {
        let flow =
            (self.kind == Kind::Flows).then_some(FlowLimit { rate: RATE, ahead: Duration::ZERO, burst: 0 });
        let limit = Limit { most: Some(RATE), flow, permits: true, ..Limit::NONE };
        let bounds = self.acks.bounds_of(0);
        bounds.iter().for_each(|bound| bound.set(Some(limit)));
        let [out, inward] = [Direction::Out, Direction::In].map(|direction| config.rules(direction));
        let book = RuleBook::of(&self.acks, 0).expect("the maps of rules");
        let staged = book.stage([&out, &inward]).expect("rules");
        book.hold(staged, 0..bounds.len() as u32, [self.kind == Kind::Both, true]);
    }
}
