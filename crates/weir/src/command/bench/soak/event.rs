//! Events of the soak, and what the gateway did in each.

use serde::Serialize;
use std::collections::BTreeMap;
use weir_core::rate::Rate;
use weir_core::time::Time;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The gateway begins.
    Start,
    /// The engine is killed.
    KillEngine,
    /// Flows get another rate.
    Reload,
    /// The engine hangs.
    StopEngine,
    /// The hosts of the LAN become a customer, with one rate for all their flows.
    AddCustomer,
    /// The link towards the WAN goes down, and up again.
    LinkDown,
    /// And are none any more.
    RemoveCustomer,
    /// SIGHUP to the supervisor: it reads the same file again.
    Hangup,
    /// The supervisor is killed; another gateway is started.
    KillSupervisor,
    /// Supervisor and engine are killed; another gateway is started.
    KillBoth,
}

impl Event {
    /// Those that make a round, in their order.
    pub const ALL: [Event; 9] = [
        Event::KillEngine,
        Event::Reload,
        Event::StopEngine,
        Event::AddCustomer,
        Event::LinkDown,
        Event::RemoveCustomer,
        Event::Hangup,
        Event::KillSupervisor,
        Event::KillBoth,
    ];

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Event::Start => "start",
            Event::KillEngine => "engine killed",
            Event::Reload => "reload",
            Event::StopEngine => "engine stopped",
            Event::AddCustomer => "customer added",
            Event::LinkDown => "link down",
            Event::RemoveCustomer => "customer removed",
            Event::Hangup => "SIGHUP",
            Event::KillSupervisor => "supervisor killed",
            Event::KillBoth => "both killed",
        }
    }

    /// Does another gateway have to be started afterwards?
    pub const fn ends_the_gateway(self) -> bool {
        matches!(self, Event::KillSupervisor | Event::KillBoth)
    }
}

/// Something that happened.
#[derive(Clone, Copy, Debug)]
pub struct Happened {
    /// What.
    pub event: Event,
    /// When it began.
    pub from: Time,
    /// When it was over.
    pub until: Time,
    /// What the uploads are set to together from then on.
    pub rate: Rate,
}

/// What supervisor and engine use together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Use {
    /// Resident memory of their own, in kB: the pool, which both see, counts once it is touched.
    pub memory_kb: u64,
    /// Open descriptors.
    pub descriptors: u64,
}

/// The most of the quarter with this number, from 0.
pub fn most(uses: &[Use], quarter: usize) -> Use {
    let part = &uses[uses.len() * quarter / 4..uses.len() * (quarter + 1) / 4];
    let memory_kb = part.iter().map(|u| u.memory_kb).max().unwrap_or(0);
    let descriptors = part.iter().map(|u| u.descriptors).max().unwrap_or(0);
    Use { memory_kb, descriptors }
}

/// What a gateway went through.
#[derive(Debug, Default)]
pub struct Endured {
    /// In the order of time.
    pub happened: Vec<Happened>,
    /// Before each event.
    pub uses: Vec<Use>,
    /// Frames that engines dropped or could not take.
    pub lost_frames: u64,
    /// What was left of it on the host.
    pub left: Vec<String>,
}

impl Endured {
    /// How often what happened.
    pub fn events(&self) -> BTreeMap<Event, u32> {
        let mut events = BTreeMap::new();
        self.happened.iter().for_each(|h| *events.entry(h.event).or_default() += 1);
        events
    }
}
