//! Events of the soak test, and the gateway's records of them.

use serde::Serialize;
use std::collections::BTreeMap;
use weir_core::rate::Rate;
use weir_core::time::Time;

/// Event of the soak test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The gateway starts.
    Start,
    /// The engine is killed.
    KillEngine,
    /// A reload changes the flows' rate.
    Reload,
    /// The engine hangs.
    StopEngine,
    /// The hosts of the LAN become a customer, with one rate for all their flows.
    AddCustomer,
    /// The link towards the WAN goes down and up again.
    LinkDown,
    /// The customer is removed.
    RemoveCustomer,
    /// The supervisor gets SIGHUP and reads the same file again.
    Hangup,
    /// The supervisor is killed, and another gateway is started.
    KillSupervisor,
    /// Supervisor and engine are killed, and another gateway is started.
    KillBoth,
}

impl Event {
    /// Events of a round, in order.
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

    /// Returns the event in words.
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

    /// Returns whether another gateway must be started afterwards.
    pub const fn ends_the_gateway(self) -> bool {
        matches!(self, Event::KillSupervisor | Event::KillBoth)
    }
}

/// An event that took place.
#[derive(Clone, Copy, Debug)]
pub struct Happened {
    /// The event.
    pub event: Event,
    /// Time at which it began.
    pub from: Time,
    /// Time at which it was over.
    pub until: Time,
    /// Total rate of the uploads from then on.
    pub rate: Rate,
}

/// Resources of supervisor and engine together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Use {
    /// Anonymous resident memory in kB. The pool, which both map, counts once it is touched.
    pub memory_kb: u64,
    /// Number of open descriptors.
    pub descriptors: u64,
}

/// Returns the maximum of the quarter with this number, from 0.
pub fn most(uses: &[Use], quarter: usize) -> Use {
    let part = &uses[uses.len() * quarter / 4..uses.len() * (quarter + 1) / 4];
    let memory_kb = part.iter().map(|u| u.memory_kb).max().unwrap_or(0);
    let descriptors = part.iter().map(|u| u.descriptors).max().unwrap_or(0);
    Use { memory_kb, descriptors }
}

/// Records of a gateway's run.
#[derive(Debug, Default)]
pub struct Endured {
    /// Events in the order of time.
    pub happened: Vec<Happened>,
    /// Resources before each event.
    pub uses: Vec<Use>,
    /// Number of frames that engines dropped or could not take.
    pub lost_frames: u64,
    /// Remains of the gateway on the host.
    pub left: Vec<String>,
}

impl Endured {
    /// Returns how often each event took place.
    pub fn events(&self) -> BTreeMap<Event, u32> {
        let mut events = BTreeMap::new();
        self.happened.iter().for_each(|h| *events.entry(h.event).or_default() += 1);
        events
    }
}
