//! The gateway of the core as the engine under test: flows of both directions at a rate each.

use crate::bump::{common, directory, number, prepare};
use crate::clerk::Clerk;
use std::ops::Range;
use weir_core::ack::{AckControl, Release, ShareRelease, Unresponsive};
use weir_core::flow::Record;
use weir_core::gateway::{rescue_ack, ClassConfig, Config, Direction, Gateway, Verdict, MAX_ACK_LEN};
use weir_core::node::Cx;
use weir_core::rate::Rate;
use weir_core::steer::{Fields, Slot};
use weir_io::bpf::Home;
use weir_io::driver::{DriverConfig, Engine, Report, Spin};
use weir_io::supervise::{NoOperator, Records, Senders};

struct Shaper {
    gateway: Gateway,
    stats: std::path::PathBuf,
    /// File that says what is to happen to it, if there is one.
    strike: std::path::PathBuf,
    clerk: Clerk,
}

impl Engine for Shaper {
    type Node = Gateway;
    fn node(&mut self) -> &mut Gateway {
        &mut self.gateway
    }
    fn resync(&mut self, _: &mut Cx<'_>) {
        self.gateway.flows.resync();
    }
    fn stop(&mut self, cx: &mut Cx<'_>) -> bool {
        self.gateway.stop(cx)
    }
    fn verdicts(&mut self, out: &mut Vec<Verdict>) {
        let room = out.capacity() - out.len();
        out.extend(self.gateway.flows.verdicts(room));
    }
    fn change(&mut self, _: &mut Cx<'_>) -> bool {
        match self.clerk.take(&self.strike).as_str() {
            "hang" => std::thread::sleep(std::time::Duration::from_secs(5)),
            "panic" => panic!("as it was told"),
            _ => {}
        }
        false
    }
    fn counted(&self) -> [Fields; 2] {
        self.gateway.flows.counted_fields()
    }
    fn report(&mut self, report: &Report<'_>) {
        let held: u64 = self.gateway.flows.flows().map(|flow| u64::from(flow.held_bytes)).sum();
        let flows = self.gateway.flows.stats().flows;
        let out = self.gateway.flows.others_of(0);
        let others = format!("others={}\nothers_bytes={}\ndropped={}\n", out.packets, out.bytes, out.dropped);
        self.clerk.write(&self.stats, &format!("{}{others}held={held}\nflows={flows}\n", common(report)));
    }
}

/// All flows of a direction together at a rate, policed if that is wanted.
fn shared(rate: Rate) -> Release {
    let unresponsive = if number("POLICE", 0) > 0 { Unresponsive::Police } else { Unresponsive::Count };
    Release::Share(ShareRelease { unresponsive, ..ShareRelease::new(rate) })
}

fn config() -> Config {
    let rate = Rate::kbit(number("SHAPE_KBIT", 20_000).into());
    let ack = match number("SHARE_KBIT", 0) {
        0 => AckControl::ack_shaper(rate),
        kbit => AckControl { release: shared(Rate::kbit(kbit.into())), ..AckControl::ack_share(rate) },
    };
    let class = |direction, name: &str| ClassConfig {
        name: name.into(),
        direction,
        matches: Vec::new(),
        ack: Some(ack),
        share: None,
        nested: None,
    };
    Config {
        classes: vec![class(Direction::Out, "out"), class(Direction::In, "in")],
        max_flows: number("FLOWS", 1024),
        seed: 7,
        ..Config::default()
    }
}

/// The second engine has all addresses of IPv6 on the client's side.
const SECOND: Home =
    Home { address: [0xfd, 9, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], bits: 64, engine: 1 };

/// One ACK for each flow that holds something.
fn rescue(records: &Records<Record>, slots: &[Slot], places: Range<usize>, senders: &Senders) {
    let (mut to_lan, mut to_wan) = (Vec::new(), Vec::new());
    for (i, slot) in places.map(|i| (i, &slots[i])).filter(|(_, slot)| slot.is_open()) {
        let (record, mut buffer) = (records.copy(i), [0; MAX_ACK_LEN]);
        if let Some(len) = rescue_ack(&record, slot, &mut buffer) {
            let inward = record.has(weir_core::flow::flag::INWARD);
            if inward { &mut to_wan } else { &mut to_lan }.push(buffer[..len].to_vec());
        }
    }
    let sent = senders.send(&to_lan, &to_wan);
    let count = sent.lan.iter().chain(&sent.wan).filter(|sent| **sent).count();
    eprintln!("rescued {count} of {} flows", to_lan.len() + to_wan.len());
}

/// Runs until it is told to stop.
pub fn main(args: &[String]) -> i32 {
    let supervisor = match prepare(args) {
        Ok(supervisor) => supervisor,
        Err(code) => return code,
    };
    let config = config();
    let slots = supervisor.slots();
    let each = config.max_flows as usize;
    let records = Records::<Record>::alloc(slots.len()).unwrap();
    let result = supervisor.run(
        |launch| {
            if let Some(homes) = &launch.homes {
                homes.replace(&[SECOND]).unwrap();
            }
            let launches = std::iter::once(&launch).chain(&launch.others);
            let parts = records.take().unwrap().chunks_mut(each).zip(launches);
            let shapers = parts.enumerate().map(|(number, (records, launch))| {
                let gateway = Gateway::with_shared(config.clone(), records, launch.slots);
                let [stats, strike] = ["stats", "strike"].map(|name| match number {
                    0 => directory(args).join(name),
                    _ => directory(args).join(format!("{name}{number}")),
                });
                let gateway = gateway.counted_in(launch.tallies).seen_in(launch.sights);
                Shaper { gateway, stats, strike, clerk: Clerk::start() }
            });
            let shapers = shapers.collect();
            launch.run_all(shapers, DriverConfig { spin: Spin::None, ..DriverConfig::default() })
        },
        |senders, places| rescue(&records, slots, places, senders),
        || records.clear(),
        &mut NoOperator,
    );
    match result {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{error}");
            1
        }
    }
}
