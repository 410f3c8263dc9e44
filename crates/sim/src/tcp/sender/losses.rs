//! What a sender keeps of its losses and reductions. There is some from the first of them on: most senders of many have none for long.

use super::prr::Prr;
use super::scoreboard::Rack;
use super::Sender;
use weir_core::time::Time;

/// See the [module documentation](self).
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    pub(super) rack: Rack,
    pub(super) prr: Prr,
    /// Segments that the receiver reported to have got twice.
    pub(super) reported: u64,
    /// Bytes above SND.UNA that duplicate ACKs have counted as delivered, without SACK.
    pub(super) told: u64,
    /// Recovery ends when everything below is acknowledged (RecoveryPoint, `recover`).
    pub(super) recover: u64,
    /// The last segment was sent again in vain up to here (RescueRxt).
    pub(super) rescued: u64,
    /// The echo of a mark counts from this SND.UNA on: what was sent after the last reduction for one.
    pub(super) reduced: u64,
    /// When the first was sent again of the segments of which a retransmission may be on its way (Linux: `retrans_stamp`). A
    /// recovery may end before all that it sent again has arrived.
    pub(super) again_since: Time,
    pub(super) retransmits: u64,
    pub(super) rtos: u64,
}

impl Losses {
    const NONE: Losses = Losses {
        rack: Rack::new(),
        prr: Prr::begin(0),
        reported: 0,
        told: 0,
        recover: 0,
        rescued: 0,
        reduced: 0,
        again_since: Time::MAX,
        retransmits: 0,
        rtos: 0,
    };
}

impl Default for Losses {
    fn default() -> Losses {
        Losses::NONE
    }
}

impl Sender {
    pub(super) fn losses(&self) -> &Losses {
        self.losses.as_deref().unwrap_or(&Losses::NONE)
    }

    pub(super) fn losses_mut(&mut self) -> &mut Losses {
        self.losses.get_or_insert_default()
    }
}
