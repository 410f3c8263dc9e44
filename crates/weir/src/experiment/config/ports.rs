//! Table `[ports]`: the interfaces that an engine attaches to, and the driving of the engine.

use super::addresses;
use super::diag::Fault;
use super::keys::{self, put, Key};
use super::reader::{Refused, Section};
use super::value::{int, FromValue, Positive};
use serde::{Deserialize, Serialize};
use toml::de::DeValue;
use weir_core::time::Duration;

/// Place where frames are taken and given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Attach {
    /// Both directions of one interface; the kernel forwards, routes or uses the frames that pass.
    Dev(String),
    /// Bump in the wire between two interfaces that have no other connection.
    Pair {
        /// Interface towards the LAN.
        lan: String,
        /// Interface towards the WAN; never that of `lan`.
        wan: String,
    },
}

/// Driving of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driving {
    /// Time to wait for interfaces that do not exist yet; by default none.
    pub wait: Option<Duration>,
    /// Real-time priority (SCHED_FIFO) of the engine if it is permitted, 1 to 98. 0 is an ordinary process
    /// with preference (nice −20). The default is 40 for a gateway and 0 for an emulator. An emulator spins,
    /// so it would starve the kernel's own packet processing on its processor, until the kernel takes that
    /// away for 50 ms.
    pub priority: Option<u8>,
    /// Processor that the engine stays on; `None` leaves it to the scheduler.
    pub cpu: Option<u32>,
    /// Time before a deadline at which the engine stops sleeping and spins, at most 1 ms. The default for an
    /// emulator is the lateness of its timers. A gateway does not spin by default, because its releases are
    /// milliseconds apart.
    pub spin: Option<Duration>,
    /// Longest time that ACKs stay in the ring while flows are active, at most 10 ms; by default 200 us.
    /// Gateways only.
    pub batch_delay: Option<Duration>,
    /// Number of engines, each a thread with [classes of its own](super::engines), 1 to [`MOST_ENGINES`]; by
    /// default one. Gateways only.
    pub engines: Option<u32>,
}

/// Most engines of a gateway.
pub const MOST_ENGINES: u32 = 8;

impl Driving {
    /// Returns the number of engines.
    pub fn engines(&self) -> usize {
        self.engines.unwrap_or(1) as usize
    }
}

type DrivingKey = Key<Driving>;

/// Keys of the driving; those from `batch_delay` on are for gateways only.
static KEYS: &[DrivingKey] = &[
    DrivingKey::new("wait", |d, v| put(&mut d.wait, Positive::from_value(v).map(|Positive(d)| d)))
        .words(|d| d.wait.map(|t| format!("waited for {t}"))),
    // 99 is left to the kernel's own migration and watchdog threads.
    DrivingKey::new("priority", |d, v| put(&mut d.priority, int(v, 0..=98).map(|n| n as u8)))
        .words(|d| d.priority.map(|n| format!("real-time priority {n}"))),
    DrivingKey::new("cpu", |d, v| put(&mut d.cpu, int(v, 0..=8191).map(|n| n as u32)))
        .words(|d| d.cpu.map(|n| format!("on CPU {n}"))),
    DrivingKey::new("spin", |d, v| {
        put(&mut d.spin, at_most(v, Duration::from_millis(1), "which would starve other processes"))
    })
    .words(|d| d.spin.map(|t| format!("spins {t}"))),
    DrivingKey::new("batch_delay", |d, v| {
        put(
            &mut d.batch_delay,
            at_most(v, Duration::from_millis(10), "the longest time between two releases"),
        )
    })
    .words(|d| d.batch_delay.map(|t| format!("ACKs looked at every {t}"))),
    DrivingKey::new("engines", |d, v| {
        put(&mut d.engines, int(v, 1..=u64::from(MOST_ENGINES)).map(|n| n as u32))
    })
    .words(|d| d.engines.filter(|n| *n > 1).map(|n| format!("{n} engines"))),
];

/// Returns the differences between two drivings: key, old and new value; "none" stands for a missing one.
pub fn differences(old: &Driving, new: &Driving) -> Vec<(&'static str, String, String)> {
    let time = |time: Option<Duration>| time.map_or("none".into(), |time| format!("\"{time}\""));
    let number = |n: Option<u32>| n.map_or("none".into(), |n| n.to_string());
    let values = |d: &Driving| {
        let priority = number(d.priority.map(u32::from));
        [time(d.wait), priority, number(d.cpu), time(d.spin), time(d.batch_delay), number(d.engines)]
    };
    let all = KEYS.iter().zip(values(old)).zip(values(new));
    all.filter(|((_, old), new)| old != new).map(|((key, old), new)| (key.name, old, new)).collect()
}

/// Describes the driving of an engine, in words that begin with a comma each.
pub fn words(driving: &Driving) -> String {
    keys::words(KEYS, driving).iter().map(|words| format!(", {words}")).collect()
}

/// Keys of former gateways between two interfaces.
const NOT_OF_A_GATEWAY: [Refused; 4] = [
    (
        "lan",
        "is not a key of a gateway, which needs one interface",
        "write dev = \"eth1\", the interface towards the WAN; what is behind it may be a bridge, a router or this host",
    ),
    ("wan", "is not a key of a gateway, which needs one interface", "write dev = \"eth1\" for it"),
    GONE[0],
    GONE[1],
];

const NOT_OF_AN_EMULATOR: [Refused; 4] = [
    ("batch_delay", "is for gateways", "an emulator looks at every frame when it comes"),
    ("engines", "is for gateways", "an emulator is one engine"),
    GONE[0],
    GONE[1],
];

const GONE: [Refused; 2] = [
    ("mode", "no longer exists", "tc programs take frames, whatever the driver: leave it out"),
    ("zero_copy", "no longer exists", "tc programs take frames, whatever the driver: leave it out"),
];

/// Reads the `[ports]` of a gateway: its interface.
pub(super) fn of_gateway(mut s: Section) -> Option<(String, Driving)> {
    s.refuse(&NOT_OF_A_GATEWAY);
    if !["lan", "wan"].into_iter().any(|key| s.is_there(key)) {
        s.need("dev", "\"eth1\"");
    }
    let dev = interface(&s, "dev");
    let mut driving = Driving::default();
    keys::read(KEYS, &[&s], &mut driving);
    s.finish();
    Some((dev?, driving))
}

/// Reads the `[ports]` of an emulator.
pub(super) fn of_emulator(mut s: Section) -> Option<(Attach, Driving)> {
    s.refuse(&NOT_OF_AN_EMULATOR);
    let help =
        "`dev` is for both directions of one interface, `lan` and `wan` for what goes from one to the other";
    for key in ["lan", "wan"] {
        s.at_most_one(&["dev", key], help);
    }
    if s.has("lan") || s.has("wan") {
        s.need("lan", "\"eth0\"");
        s.need("wan", "\"eth1\"");
    } else {
        s.need("dev", "\"eth1\", or lan = \"eth0\" and wan = \"eth1\"");
    }
    let [dev, lan, wan] = ["dev", "lan", "wan"].map(|key| interface(&s, key));
    let mut driving = Driving::default();
    keys::read(&KEYS[..4], &[&s], &mut driving);
    s.check_done();
    let attach = match (dev, lan.zip(wan)) {
        (Some(dev), _) => Attach::Dev(dev),
        (None, pair) => {
            let (lan, wan) = pair?;
            if lan == wan {
                let message = format!("`ports.wan` is the same interface as `ports.lan`: \"{wan}\"");
                s.fault("wan", Fault::new(message, "for both directions of one interface write dev = \"…\""));
                return None;
            }
            Attach::Pair { lan, wan }
        }
    };
    Some((attach, driving))
}

fn interface(s: &Section, key: &'static str) -> Option<String> {
    s.parsed(key, |name: String| addresses::interface(&name))
}

fn at_most(value: &DeValue, most: Duration, why: &str) -> Result<Duration, Fault> {
    match Duration::from_value(value)? {
        d if d > most => Err(Fault::bare(format!("{d} is more than {most}, {why}"))),
        d => Ok(d),
    }
}
