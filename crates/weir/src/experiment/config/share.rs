//! Keys of a class in the link-sharing tree of its direction: its rates, and the queue of its packets.
//!
//! A class is in the tree if it has a queue, by `queue` or `discipline`, or if another class in the tree
//! names it as its `parent`.

use super::ack_filter;
use super::aqm;
use super::customers::FLOWS_OF_CUSTOMER;
use super::diag::Fault;
use super::keys::{self, put, set, Key};
use super::pace::{self, Defaults};
use super::parents::Parents;
use super::policy;
use super::queue_limit::{self, FULL_FRAME};
use super::reader::Section;
use super::value::{int, one_of, FromValue};
use core::ops::RangeInclusive;
use toml::de::DeValue;
use weir_core::class::{FlowMin, Refusal, Spec, Unsound, PRIORITIES, WEIGHTS};
use weir_core::gateway::{ClassConfig, Config, Direction};
use weir_core::pace::Port;
use weir_core::queue::ack_filter::{Host, Params, Service};
use weir_core::queue::tins::Diffserv;
use weir_core::queue::{self, codel, fq_codel, pfq, Aqm, Kind, QueueLimit};
use weir_core::rate::Rate;
use weir_core::sharing::{self, Why};

/// Keys that give a class a queue.
const QUEUES: [&str; 3] = ["queue", "discipline", "ack_filter"];
/// Numbers of flows that queues for each flow may be made for.
const FLOWS: RangeInclusive<u64> = 8..=1_048_576;

/// Most flows with a queue and an AQM each.
const MOST_MANAGED: u32 = 65_536;

/// Class of the tree being read.
struct Draft {
    spec: Spec,
    limit: QueueLimit,
    per_flow: bool,
    aqm: Aqm,
    pfq: pfq::Params,
    tins: Option<Diffserv>,
    /// Seed of RED's random numbers.
    seed: u64,
}

impl Draft {
    fn new(spec: &Spec) -> Draft {
        let queue = spec.queue.unwrap_or(queue::Config {
            limit: QueueLimit::default(),
            kind: Kind::Fifo,
            tins: None,
        });
        let (mut aqm, mut pfq, mut red_seed) = (Aqm::None, None, pfq::Params::default().seed);
        match queue.kind {
            Kind::Fifo => {}
            Kind::Codel(params) => aqm = Aqm::Codel(params),
            Kind::Pfq(params) => pfq = Some(params),
            Kind::FqCodel { params: fq_codel::Params { flows, quantum, codel }, seed } => {
                (aqm, pfq) = (Aqm::Codel(codel), Some(pfq::Params { flows, quantum, seed }));
            }
            Kind::Red { params, seed } => (aqm, red_seed) = (Aqm::Red(params), seed),
            Kind::DualPi2(params) => aqm = Aqm::DualPi2(params),
            Kind::AckFilter(params) => aqm = Aqm::AckFilter(params),
        }
        Draft {
            spec: *spec,
            limit: queue.limit,
            per_flow: pfq.is_some(),
            aqm,
            pfq: pfq.unwrap_or_default(),
            tins: queue.tins,
            seed: red_seed,
        }
    }

    fn queue(&self) -> queue::Config {
        let kind = match (self.per_flow, self.aqm) {
            (true, Aqm::Codel(codel)) => {
                let pfq::Params { flows, quantum, seed } = self.pfq;
                Kind::FqCodel { params: fq_codel::Params { flows, quantum, codel }, seed }
            }
            (true, _) => Kind::Pfq(self.pfq),
            (false, Aqm::Codel(params)) => Kind::Codel(params),
            (false, Aqm::Red(params)) => Kind::Red { params, seed: self.seed },
            (false, Aqm::DualPi2(params)) => Kind::DualPi2(params),
            (false, Aqm::AckFilter(params)) => Kind::AckFilter(params),
            // `aqm` of a class reads none of the last two.
            (false, Aqm::None | Aqm::FqCodel(_) | Aqm::Own(_)) => Kind::Fifo,
        };
        queue::Config { limit: self.limit, kind, tins: self.tins }
    }
}

type ShareKey = Key<Draft>;

const AQM: &str = "it is told to an `aqm`: \"codel\", \"red\" or \"dualpi2\"";
const PER_FLOW: &str = "it is of queues for each flow: discipline = \"pfq\"";

/// Keys of a class's rates.
static RATES: [ShareKey; 4] = [
    ShareKey::new("rate", |d, v| put(&mut d.spec.rate, Rate::from_value(v))).words(|d| {
        let own = |rate| format!("{rate} of its own");
        Some(d.spec.rate.map_or("nothing of its own".to_string(), own))
    }),
    ShareKey::new("ceil", |d, v| put(&mut d.spec.ceil, Rate::from_value(v)))
        .words(|d| d.spec.ceil.map(|ceil| format!("at most {ceil}"))),
    ShareKey::new("priority", |d, v| {
        set(&mut d.spec.priority, int(v, 0..=u64::from(PRIORITIES - 1)).map(|n| n as u8))
    })
    .words(|d| (d.spec.priority > 0).then(|| format!("priority {}", d.spec.priority))),
    ShareKey::new("weight", |d, v| {
        let range = u64::from(*WEIGHTS.start())..=u64::from(*WEIGHTS.end());
        set(&mut d.spec.weight, int(v, range).map(|n| n as u32))
    })
    .words(|d| (d.spec.weight > 1).then(|| format!("weight {}", d.spec.weight))),
];

/// Keys of a class's queue.
static QUEUE: [ShareKey; 17] = [
    ShareKey::new("discipline", |d, v| {
        set(&mut d.per_flow, one_of(v, &[("fifo", false), ("pfq", true)], &["fq-codel"]))
    })
    .words(|d| {
        let pfq = || format!("a queue for each of {} flows", d.pfq.flows);
        Some(match filter(d).map(|params| params.service) {
            _ if d.per_flow => pfq(),
            Some(Service::RoundRobin) => "a queue for each flow".to_string(),
            _ => "one queue".to_string(),
        })
    }),
    ShareKey::new("queue", |d, v| set(&mut d.limit, queue_limit::read(v)))
        .words(|d| Some(format!("holds {}", queue_limit::counted(d.limit)))),
    ShareKey::new("aqm", |d, v| {
        let aqm = aqm::read_of_one_queue(v)?;
        match (d.per_flow, aqm) {
            (true, Aqm::Red(_) | Aqm::DualPi2(_)) => Err(Fault::new(
                format!(
                    "`{}` cannot be combined with discipline = \"pfq\"",
                    aqm::name(&aqm).unwrap_or_default()
                ),
                "with a queue for each flow there is aqm = \"codel\"; leave `discipline` out for one queue",
            )),
            _ => set(&mut d.aqm, Ok(aqm)),
        }
    })
    .words(|d| aqm::words(&d.aqm)),
    ShareKey::new("ack_filter", |d, v| {
        let params = ack_filter::read(v, d.spec.ceil.or(d.spec.rate), FULL_FRAME as u32)?;
        let codel = with_filter(&d.aqm, &params)?;
        set(&mut d.aqm, Ok(Aqm::AckFilter(Params { codel, ..params })))
    })
    .instead_of(&["discipline"], "a queue has one discipline")
    .words(|d| filter(d).map(|params| ack_filter::words(&params))),
    ShareKey::new("hosts", |d, v| {
        let hosts = bool::from_value(v)?;
        match &mut d.aqm {
            Aqm::AckFilter(params) if params.service == Service::RoundRobin => {
                set(&mut params.hosts, Ok(hosts.then_some(Host::Source)))
            }
            _ => Err(Fault::new("flows of this queue take no turns", IN_TURN)),
        }
    })
    .needs(&["ack_filter"], IN_TURN)
    .words(|d| filter(d)?.hosts.map(|_| "hosts in turn, and the flows of each".to_string())),
    ShareKey::new("target", |d, v| aqm::target(&mut d.aqm, v)).needs(&["aqm"], AQM),
    ShareKey::new("interval", |d, v| aqm::interval(&mut d.aqm, v)).needs(&["aqm"], AQM),
    ShareKey::new("ecn", |d, v| aqm::ecn(&mut d.aqm, v)).needs(&["aqm"], AQM),
    ShareKey::new("red_min", |d, v| aqm::red_min(&mut d.aqm, threshold(v)?)).needs(&["aqm"], AQM),
    ShareKey::new("red_max", |d, v| aqm::red_max(&mut d.aqm, threshold(v)?)).needs(&["aqm"], AQM),
    ShareKey::new("red_p", |d, v| aqm::red_p(&mut d.aqm, v)).needs(&["aqm"], AQM),
    ShareKey::new("red_weight", |d, v| aqm::red_weight(&mut d.aqm, v)).needs(&["aqm"], AQM),
    ShareKey::new("step", |d, v| aqm::step(&mut d.aqm, v)).needs(&["aqm"], AQM),
    ShareKey::new("coupling", |d, v| aqm::coupling(&mut d.aqm, v)).needs(&["aqm"], AQM),
    ShareKey::new("flows", |d, v| {
        let managed = d.aqm != Aqm::None;
        set(per_flow(d)?, int(v, FLOWS).map(|n| (n as u32).next_power_of_two()))?;
        match d.pfq.flows > MOST_MANAGED && managed {
            true => Err(Fault::bare(format!("with an `aqm` there are at most {MOST_MANAGED} queues"))),
            false => Ok(()),
        }
    })
    .needs(&["discipline"], PER_FLOW)
    .words(|_| None),
    ShareKey::new("quantum", |d, v| {
        per_flow(d)?;
        set(&mut d.pfq.quantum, int(v, 64..=65_536).map(|n| n as u32))
    })
    .needs(&["discipline"], PER_FLOW)
    .words(|d| d.per_flow.then(|| format!("{} bytes each in turn", d.pfq.quantum))),
    ShareKey::new("tins", |d, v| set(&mut d.tins, one_of(v, &TINS, &[])))
        .instead_of(&["ack", "flow_min"], "tins have shares of a class, whatever flows are in them")
        .words(|d| {
            let (name, _) = TINS.iter().find(|(_, tins)| *tins == d.tins)?;
            d.tins.map(|_| format!("a queue like this for each tin of {name}"))
        }),
];

/// Tins by CAKE's names.
const TINS: [(&str, Option<Diffserv>); 3] =
    [("besteffort", None), ("diffserv3", Some(Diffserv::Three)), ("diffserv4", Some(Diffserv::Four))];

/// Keys of what a class with a queue guarantees its flows.
static GUARANTEE: [ShareKey; 2] = [
    ShareKey::new("flow_min", |d, v| {
        let rate = Rate::from_value(v)?;
        d.spec.flow_min = Some(FlowMin { rate, refusal: REFUSALS[0].1 });
        Ok(())
    })
    .words(|d| {
        let FlowMin { rate, refusal } = d.spec.flow_min?;
        let refused = match refusal {
            Refusal::Drop => "SYNs dropped",
            Refusal::Reset => "connections reset",
        };
        Some(format!("each flow at least {rate}, {refused} where that is not there"))
    }),
    ShareKey::new("admission", |d, v| {
        let refusal = one_of(v, &REFUSALS, &[])?;
        d.spec.flow_min.iter_mut().for_each(|min| min.refusal = refusal);
        Ok(())
    })
    .needs(&["flow_min"], "it is what becomes of a connection beyond those that have their `flow_min`"),
];

const IN_TURN: &str = "hosts and flows take turns with ack_filter = \"delayed-per-flow\"";

/// Returns the CoDel of a queue with an ACK filter.
fn with_filter(aqm: &Aqm, filter: &Params) -> Result<Option<codel::Params>, Fault> {
    match aqm {
        Aqm::None => Ok(None),
        Aqm::Codel(_) if filter.service == Service::Fifo => Err(Fault::new(
            "aqm = \"codel\" judges flows by themselves, and this filter serves in the order of arrival",
            IN_TURN,
        )),
        Aqm::Codel(codel) => Ok(Some(*codel)),
        other => {
            let name = aqm::name(other).unwrap_or_default();
            let message = format!("`ack_filter` cannot be combined with aqm = \"{name}\"");
            Err(Fault::new(message, "beside an ACK filter there is aqm = \"codel\""))
        }
    }
}

/// Returns the ACK filter of a queue.
fn filter(draft: &Draft) -> Option<Params> {
    match draft.aqm {
        Aqm::AckFilter(params) => Some(params),
        _ => None,
    }
}

/// Kinds of refusal of connections, the default first.
const REFUSALS: [(&str, Refusal); 2] = [("drop", Refusal::Drop), ("reset", Refusal::Reset)];

fn per_flow(d: &mut Draft) -> Result<&mut u32, Fault> {
    match d.per_flow {
        true => Ok(&mut d.pfq.flows),
        false => Err(Fault::new("discipline = \"fifo\" has one queue for all flows", PER_FLOW)),
    }
}

/// Reads a threshold of RED in bytes; a number of packets counts full frames.
fn threshold(value: &DeValue) -> Result<u64, Fault> {
    aqm::threshold(queue_limit::read(value)?.most_bytes(Rate::mbit(1), FULL_FRAME))
}

/// Classes of a file that share links, and those that are paced.
pub(super) struct Tree(Parents, Defaults);

impl Tree {
    /// Finds the classes of these sections.
    pub(super) fn of(sections: &[Section], paced: Defaults) -> Tree {
        let mut parents = Parents::of(sections);
        let in_tree = |&i: &usize| has_queue(&sections[i]) || paced.paces(&sections[i], false);
        for queued in (0..sections.len()).filter(in_tree) {
            let mut class = queued;
            while parents.join(class) {
                let Some(parent) = parents.peek(&sections[class]) else { break };
                parents.add_child(parent, class);
                class = parent;
            }
        }
        Tree(parents, paced)
    }

    /// Returns whether the class is in the tree.
    pub(super) fn has(&self, class: usize) -> bool {
        self.0.has(class)
    }

    /// Reads the rates of a class of the tree, and its queue.
    pub(super) fn read(&self, s: &Section, class: usize) -> Spec {
        let alone = self.0.child(class).is_none();
        if alone && self.1.paces(s, has_queue(s)) {
            let spec = Spec { spread: self.1.spread(s), ..pace::spec(self.1.class(s)) };
            let mut draft = Draft::new(&spec);
            keys::read(&QUEUE, &[s], &mut draft);
            keys::read(&GUARANTEE, &[s], &mut draft);
            return Spec { queue: Some(draft.queue()), ..draft.spec };
        }
        s.choice("pace", &[("none", ())], &[]);
        let mut draft = Draft::new(&Spec::of(self.0.read(s)));
        keys::read(&RATES, &[s], &mut draft);
        if alone {
            keys::read(&QUEUE, &[s], &mut draft);
            keys::read(&GUARANTEE, &[s], &mut draft);
            return Spec { queue: Some(draft.queue()), ..draft.spec };
        }
        let why = "it takes no flows itself: its children do, and they have the queues";
        let keys = QUEUE.iter().chain(&GUARANTEE).map(|key| key.name).chain(["match", "ack"]);
        self.0.refuse(s, class, keys, why);
        draft.spec
    }
}

/// Returns the queue of a class of this direction: hosts that take turns are those of the LAN.
pub(super) fn towards(direction: Direction, queue: queue::Config) -> queue::Config {
    let host = match direction {
        Direction::Out => Host::Source,
        Direction::In => Host::Destination,
    };
    match queue.kind {
        Kind::AckFilter(params) => {
            let kind = Kind::AckFilter(Params { hosts: params.hosts.map(|_| host), ..params });
            queue::Config { kind, ..queue }
        }
        _ => queue,
    }
}

/// Directions in which the customers of a list have queues, uploads first, by name.
const QUEUED: [(&str, [bool; 2]); 3] =
    [("up", [true, false]), ("down", [false, true]), ("both", [true, true])];

/// Reads the queues that the customers of a list have, of uploads and of downloads.
pub(super) fn of_customers(s: &Section) -> [Option<queue::Config>; 2] {
    let Some(queued) = s.choice("queues", &QUEUED, &[]) else {
        let help = "`queues` says in which directions customers have one: \"up\", \"down\" or \"both\"";
        for key in QUEUE.iter().map(|key| key.name).filter(|key| s.has(key)) {
            s.key_fault(key, Fault::new(format!("`{key}` is of customers with queues"), help));
        }
        return [None; 2];
    };
    if queued == [true; 2] {
        for key in ["police", "unresponsive"].into_iter().filter(|key| s.has(key)) {
            let help = "what waits in a queue needs no other bound";
            s.key_fault(key, Fault::new(format!("`{key}` cannot be combined with queues both ways"), help));
        }
    }
    let mut draft = Draft::new(&Spec::of(None));
    draft.pfq.flows = FLOWS_OF_CUSTOMER;
    keys::read(&QUEUE, &[s], &mut draft);
    let queue = draft.queue();
    let of = |direction, queued: bool| queued.then(|| towards(direction, queue));
    [of(Direction::Out, queued[0]), of(Direction::In, queued[1])]
}

fn has_queue(s: &Section) -> bool {
    QUEUES.iter().any(|key| s.is_there(key))
}

/// Refuses keys without a meaning for a class without a queue. If it is `nested` among classes that control
/// ACKs, most of them are refused.
pub(super) fn refuse(s: &Section, nested: bool) {
    let keys = RATES.iter().chain(&QUEUE).chain(&GUARANTEE).map(|key| key.name).chain(["parent"]);
    let has_use = |key: &str| match key {
        "rate" | "weight" | "flow_min" => true,
        "ceil" | "parent" => nested,
        _ => false,
    };
    for key in keys.filter(|&key| !has_use(key) && s.has(key)) {
        let help = match key {
            "tins" => "a codepoint is of a packet, and ACKs hold flows: give the class a queue, discipline = \"pfq\"",
            _ => "a class has a queue with `queue` or `discipline`: queue = \"100p\"",
        };
        s.key_fault(
            key,
            Fault::new(format!("`{}` cannot be combined with a class without a queue", s.full(key)), help),
        );
    }
}

/// Checks that each tree is sound, that its guarantees fit, and that paced classes can be paced at this port.
/// An inline gateway's interface may report the rate of its line. Each class by itself must be valid.
pub(super) fn check(sections: &[Section], classes: &[ClassConfig], port: Port, inline: bool) {
    let config = Config { classes: classes.to_vec(), port, ..Config::default() };
    let later = |why: &Why| matches!(why, Why::Pace(why) if inline && pace::is_about_the_line(why));
    let Err(refused) = sharing::check(&config).or_else(|refused| match later(&refused.why) {
        true => Ok(()),
        false => Err(refused),
    }) else {
        return check_flow_min(sections, &config);
    };
    let (key, help) = match &refused.why {
        Why::Tree(why) => help(why),
        Why::Pace(why) => pace::help(why),
    };
    let message = format!("class \"{}\": {}", classes[refused.class].name, refused.why);
    sections[refused.class].fault(key, Fault::new(message, help));
}

/// Checks that the trees of customers with queues are sound.
pub(super) fn check_customers(s: &Section, classes: &[ClassConfig]) {
    if classes.iter().all(|class| class.share.is_none()) {
        return;
    }
    let config = Config { classes: classes.to_vec(), ..Config::default() };
    if let Err(refused) = sharing::check(&config) {
        let message = format!("class \"{}\": {}", classes[refused.class].name, refused.why);
        s.key_fault("customers", Fault::new(message, "change the rates of the list"));
    }
}

/// Checks that the guarantee of each flow fits the limits of its class and of the classes above.
fn check_flow_min(sections: &[Section], config: &Config) {
    for (s, spec) in sections.iter().zip(&config.classes).filter_map(|(s, c)| Some((s, c.share?))) {
        let above = |spec: &Spec| spec.parent.and_then(|parent| config.classes[parent].share);
        let up = core::iter::successors(Some(spec), above);
        let bound = |spec: Spec| if spec.parent.is_none() { spec.rate } else { spec.ceil };
        let most = up.filter_map(bound).min();
        if let (Some(FlowMin { rate, .. }), Some(most)) = (spec.flow_min, most) {
            policy::check_flow_min(s, rate, most);
        }
    }
}

/// Returns the faulty key of an unsound tree, and the accepted values.
pub(super) fn help(why: &Unsound) -> (&'static str, &'static str) {
    let key = match why {
        Unsound::TopCeil(_) | Unsound::CeilBelowRate(_) | Unsound::CeilAboveParent(..) => "ceil",
        Unsound::NoParent(_) | Unsound::ParentQueues(_) | Unsound::Depth(..) => "parent",
        Unsound::Overcommitted(..) => "rate",
        Unsound::Empty(_) | Unsound::TopWithoutRate(_) | Unsound::OutOfRange(_) => "name",
    };
    let help = match why {
        Unsound::Overcommitted(..) => {
            "what is guaranteed to the children of a class is at most its own `rate`"
        }
        Unsound::TopWithoutRate(_) => "give it the rate of the link: rate = \"100Mbit\"",
        Unsound::TopCeil(_) => "leave `ceil` out",
        Unsound::CeilAboveParent(..) => "leave `ceil` out: without, it may send what those above it may",
        Unsound::CeilBelowRate(_) => "`ceil` is the most that it may send, with what it borrows",
        _ => "a parent is a class of the same direction without a queue",
    };
    (key, help)
}

/// Describes the rates and the queue of a class of the tree, in words.
pub fn words(spec: &Spec, classes: &[ClassConfig]) -> Vec<String> {
    let draft = Draft::new(spec);
    let from = match spec.parent {
        Some(parent) => format!("borrows from {}", classes[parent].name),
        None => "the top, which borrows from nobody".to_string(),
    };
    let rates = match &spec.pace {
        Some(class) => pace::words(class, spec.spread),
        None => [keys::words(&RATES, &draft), vec![from]].concat(),
    };
    let rates = rates.join(", ");
    let waits = || [keys::words(&QUEUE, &draft), keys::words(&GUARANTEE, &draft)].concat().join(", ");
    let queue = spec.queue.map(|_| format!("waits: {}", waits()));
    [Some(rates), queue].into_iter().flatten().collect()
}
