//! Column `sqm` of LibreQoS's ShapedDevices.csv: queue disciplines of a circuit.

use crate::experiment::config::diag::Fault;
use weir_core::queue::ack_filter::{self, Service};
use weir_core::queue::{self, codel, fq_codel, pfq, Kind};

/// Queue discipline of a circuit in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sqm {
    /// A queue with CoDel for each flow, and what else the list's queues have of CAKE: hosts in turn, an ACK
    /// filter, and tins.
    Cake,
    /// A queue with CoDel for each flow.
    FqCodel,
    /// One queue for all packets.
    None,
}

const NAMES: [(&str, Sqm); 3] = [("cake", Sqm::Cake), ("fq_codel", Sqm::FqCodel), ("none", Sqm::None)];

/// Reads a field: one name, or two as `down/up`, of which either may be empty. Returns those of uploads and
/// of downloads; `None` is that of the list. LibreQoS heeds neither case nor blanks.
pub(super) fn read(text: &str) -> Result<[Option<Sqm>; 2], Fault> {
    let (down, up) = text.split_once('/').unwrap_or((text, text));
    Ok([one(up)?, one(down)?])
}

fn one(text: &str) -> Result<Option<Sqm>, Fault> {
    let name = text.trim();
    let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, sqm)| *sqm);
    if known.is_none() && !name.is_empty() {
        let help =
            "\"cake\", \"fq_codel\" or \"none\", or two of them, of downloads and of uploads: \"cake/none\"";
        return Err(Fault::new(format!("\"{name}\" is no queue discipline"), help));
    }
    Ok(known)
}

impl Sqm {
    /// Returns the queue of a customer, made of the queue that its list has.
    pub(super) fn queue(self, list: queue::Config) -> queue::Config {
        let kind = match (self, list.kind) {
            (Sqm::None, _) => Kind::Fifo,
            (Sqm::Cake, Kind::AckFilter(params)) if params.service == Service::RoundRobin => {
                let codel = params.codel.or(Some(codel::Params::default()));
                Kind::AckFilter(ack_filter::Params { codel, ..params })
            }
            (Sqm::Cake | Sqm::FqCodel, kind) => per_flow(kind),
        };
        let tins = list.tins.filter(|_| self == Sqm::Cake);
        queue::Config { kind, tins, ..list }
    }
}

/// Returns the discipline with a queue and CoDel for each flow, with the numbers that this one has.
fn per_flow(kind: Kind) -> Kind {
    let numbers = pfq::Params { flows: super::FLOWS_OF_CUSTOMER, ..pfq::Params::default() };
    let (pfq, codel) = match kind {
        Kind::FqCodel { .. } => return kind,
        Kind::Pfq(pfq) => (pfq, None),
        Kind::Codel(codel) => (numbers, Some(codel)),
        Kind::AckFilter(params) => (numbers, params.codel),
        _ => (numbers, None),
    };
    let pfq::Params { flows, quantum, seed } = pfq;
    let params = fq_codel::Params { flows, quantum, codel: codel.unwrap_or_default() };
    Kind::FqCodel { params, seed }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that LibreQoS documents (INTEGRATION_HOWTO.md, "Per-Circuit SQM Overrides"), and their
    /// meanings.
    #[test]
    fn fields_are_read_as_libreqos_reads_them() {
        use Sqm::{Cake, FqCodel};
        let none = Some(Sqm::None);
        for (text, down, up) in [
            ("", None, None),
            ("cake", Some(Cake), Some(Cake)),
            ("none", none, none),
            ("cake/fq_codel", Some(Cake), Some(FqCodel)),
            ("fq_codel/", Some(FqCodel), None),
            ("/none", None, none),
            (" CAKE / Fq_Codel ", Some(Cake), Some(FqCodel)),
            ("/", None, None),
        ] {
            assert_eq!(read(text), Ok([up, down]), "{text}");
        }
        for text in ["pie", "cake/pie", "cake diffserv4", "cake/none/", "fq-codel"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_of_the_list_hold() {
        let limit = queue::QueueLimit::default();
        let own = codel::Params { ecn: true, ..codel::Params::default() };
        let pfq = pfq::Params { flows: 16, quantum: 300, seed: 7 };
        let managed = |flows, quantum, codel, seed| Kind::FqCodel {
            params: fq_codel::Params { flows, quantum, codel },
            seed,
        };
        let turns = ack_filter::Params::default();
        let fifo = ack_filter::Params { service: Service::Fifo, ..turns };
        let judged = |codel| Kind::AckFilter(ack_filter::Params { codel: Some(codel), ..turns });
        let usual = managed(64, 1514, codel::Params::default(), 1);
        for (list, cake, fq_codel) in [
            (Kind::Fifo, usual, usual),
            (Kind::Codel(own), managed(64, 1514, own, 1), managed(64, 1514, own, 1)),
            (
                Kind::Pfq(pfq),
                managed(16, 300, codel::Params::default(), 7),
                managed(16, 300, codel::Params::default(), 7),
            ),
            (managed(8, 64, own, 3), managed(8, 64, own, 3), managed(8, 64, own, 3)),
            (Kind::AckFilter(turns), judged(codel::Params::default()), usual),
            (judged(own), judged(own), managed(64, 1514, own, 1)),
            (Kind::AckFilter(fifo), usual, usual),
        ] {
            let queue = queue::Config { limit, kind: list, tins: None };
            let of = |sqm: Sqm| sqm.queue(queue);
            assert_eq!((of(Sqm::Cake).kind, of(Sqm::FqCodel).kind), (cake, fq_codel), "{list:?}");
            assert_eq!((of(Sqm::None).kind, of(Sqm::None).limit), (Kind::Fifo, limit));
            let tins = Some(queue::tins::Diffserv::Three);
            let with_tins = |sqm: Sqm| sqm.queue(queue::Config { tins, ..queue }).tins;
            assert_eq!([Sqm::Cake, Sqm::FqCodel, Sqm::None].map(with_tins), [tins, None, None]);
        }
    }
}
