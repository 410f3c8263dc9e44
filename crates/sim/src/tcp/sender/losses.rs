//! State of a sender's losses and reductions. It is allocated with the first of them, since most of many
//! senders have none for long.

use super::frto::Frto;
use super::prr::Prr;
use super::scoreboard::Rack;
use super::Sender;
use weir_core::time::Time;

/// Loss state. See the [module documentation](self).
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    pub(super) rack: Rack,
    pub(super) prr: Prr,
    pub(super) frto: Frto,
    /// Segments that the receiver reported to have received twice.
    pub(super) reported: u64,
    /// Bytes above SND.UNA that duplicate ACKs have counted as delivered, without SACK.
    pub(super) told: u64,
    /// Recovery point: recovery ends when everything below is acknowledged (RecoveryPoint, `recover`).
    pub(super) recover: u64,
    /// Stream offset that must be acknowledged before another rescue retransmission (RescueRxt).
    pub(super) rescued: u64,
    /// SND.UNA from which the echo of a mark counts: the start of the data sent after the last reduction for
    /// a mark.
    pub(super) reduced: u64,
    /// Time of the first retransmission among those that may be in flight (Linux: `retrans_stamp`). A
    /// recovery may end before all its retransmissions have arrived.
    pub(super) again_since: Time,
    pub(super) retransmits: u64,
    pub(super) rtos: u64,
}

impl Losses {
    const NONE: Losses = Losses {
        rack: Rack::new(),
        prr: Prr::begin(0),
        frto: Frto::Off,
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
