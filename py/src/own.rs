//! Congestion controls and queue disciplines that are Python classes.
//!
//! Each call takes the interpreter's lock. An exception ends the run, with its traceback as the reason.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use std::panic::resume_unwind;
use weir_core::queue::own::{self, Arrival, Length, Packet, QueueDiscipline};
use weir_core::registry::Fault;
use weir_core::time::{Duration, Time};
use weir_sim::cc::{self, Ack, Congestion, CongestionControl, Departure};

/// Ends the run with an exception's traceback.
fn ended(py: Python<'_>, name: &str, error: &PyErr) -> ! {
    let traceback = error.traceback(py).and_then(|traceback| traceback.format().ok()).unwrap_or_default();
    resume_unwind(Box::new(Fault(format!("`{name}` raised {error}\n{traceback}"))))
}

/// Object of a class, with those of its methods that are called.
struct Object {
    name: &'static str,
    object: Py<PyAny>,
}

impl Object {
    /// Makes an object. A method counts that the class has and does not inherit from `base`.
    fn new<const N: usize>(
        name: &'static str,
        class: &Py<PyAny>,
        seed: u64,
        base: &Py<PyAny>,
        methods: [&str; N],
    ) -> (Object, [bool; N]) {
        Python::attach(|py| {
            let made = class.call1(py, (seed,)).and_then(|object| {
                let kind = object.bind(py).get_type();
                let mut has = [false; N];
                for (has, method) in has.iter_mut().zip(methods) {
                    let own = kind.getattr_opt(method)?;
                    let inherited = base.bind(py).getattr_opt(method)?;
                    *has = own.is_some_and(|own| !inherited.is_some_and(|inherited| own.is(&inherited)));
                }
                Ok((Object { name, object }, has))
            });
            made.unwrap_or_else(|error| ended(py, name, &error))
        })
    }

    /// Calls a method.
    fn call<'py, A: pyo3::call::PyCallArgs<'py>>(
        &self,
        py: Python<'py>,
        method: &str,
        arguments: A,
    ) -> Bound<'py, PyAny> {
        let name = PyString::intern(py, method);
        let returned = self.object.bind(py).call_method1(name, arguments);
        returned.unwrap_or_else(|error| ended(py, self.name, &error))
    }

    /// Calls a method for its value.
    fn ask<'py, A: pyo3::call::PyCallArgs<'py>, T: FromPyObjectOwned<'py>>(
        &self,
        py: Python<'py>,
        method: &str,
        arguments: A,
    ) -> T {
        let value = self.call(py, method, arguments).extract().map_err(Into::into);
        value.unwrap_or_else(|error| ended(py, self.name, &error))
    }

    fn attribute<T: for<'py> FromPyObjectOwned<'py>>(&self, name: &str) -> T {
        Python::attach(|py| {
            let value = self.object.bind(py).getattr(name);
            let value = value.and_then(|value| value.extract().map_err(Into::into));
            value.unwrap_or_else(|error| ended(py, self.name, &error))
        })
    }
}

/// Congestion window and slow-start threshold of the sender, in bytes. Assigning changes them.
#[pyclass(module = "weir")]
pub struct Window {
    /// Congestion window in bytes.
    #[pyo3(get, set)]
    cwnd: u64,
    /// Slow-start threshold in bytes; 2**64 - 1 until the first congestion.
    #[pyo3(get, set)]
    ssthresh: u64,
    /// Payload bytes of a full segment.
    #[pyo3(get)]
    mss: u32,
}

/// Information of one ACK. Times are nanoseconds, quantities bytes.
#[pyclass(frozen, get_all, module = "weir")]
pub struct AckInfo {
    /// Time of arrival.
    now_ns: u64,
    /// Bytes newly acknowledged cumulatively; 0 for a duplicate or a SACK alone.
    acked: u64,
    /// Bytes newly known to be delivered.
    delivered: u64,
    /// Bytes by which this ACK may grow a window.
    growth: u64,
    /// Total bytes ever delivered, including these.
    total_delivered: u64,
    /// Bytes newly found lost by this ACK.
    lost: u64,
    /// Bytes in flight after this ACK.
    in_flight: u64,
    /// Round-trip time sample; None without one.
    rtt_ns: Option<u64>,
    /// Smoothed round-trip time; 0 before the first sample.
    srtt_ns: u64,
    /// Smallest round-trip time ever sampled; 0 before the first sample.
    min_rtt_ns: u64,
    /// True if the congestion window limited the sender since the last ACK.
    cwnd_limited: bool,
    /// True if the ACK echoes a mark.
    ece: bool,
    /// True while the sender sets the window itself.
    reduces: bool,
    /// Delivery rate over the flight that this ACK ends, in bytes per second; None without a sample.
    delivery_rate: Option<f64>,
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos()
}

impl From<&Ack> for AckInfo {
    fn from(ack: &Ack) -> AckInfo {
        AckInfo {
            now_ns: ack.now.as_nanos(),
            acked: ack.acked,
            delivered: ack.delivered,
            growth: ack.growth(),
            total_delivered: ack.total_delivered,
            lost: ack.lost,
            in_flight: ack.in_flight,
            rtt_ns: ack.rtt.map(nanos),
            srtt_ns: nanos(ack.srtt),
            min_rtt_ns: nanos(ack.min_rtt),
            cwnd_limited: ack.cwnd_limited,
            ece: ack.ece,
            reduces: ack.phase.reduces(),
            delivery_rate: ack.sample.map(|s| s.delivered as f64 * 1e9 / nanos(s.interval).max(1) as f64),
        }
    }
}

/// Methods of a congestion control that are called only if its class has them.
const METHODS: [&str; 7] =
    ["on_established", "on_timeout", "on_recovered", "on_undo", "on_restart", "on_lost", "on_send"];

/// Congestion control of a flow.
struct Control {
    object: Object,
    window: Py<Window>,
    /// Methods of [`METHODS`] that the class has.
    has: [bool; METHODS.len()],
    owns_recovery: bool,
    dctcp_ecn: bool,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Control({})", self.object.name)
    }
}

impl Control {
    fn new(name: &'static str, class: &Py<PyAny>, base: &Py<PyAny>, seed: u64) -> Control {
        let (object, has) = Object::new(name, class, seed, base, METHODS);
        let window = Python::attach(|py| {
            Py::new(py, Window { cwnd: 0, ssthresh: 0, mss: 0 })
                .unwrap_or_else(|error| ended(py, name, &error))
        });
        let owns_recovery = object.attribute("owns_recovery");
        let dctcp_ecn = object.attribute("wants_dctcp_ecn");
        Control { object, window, has, owns_recovery, dctcp_ecn }
    }

    fn wants(&self, method: &str) -> bool {
        METHODS.iter().zip(self.has).any(|(name, has)| has && *name == method)
    }

    /// Calls a method with the window, and takes over what it assigned.
    fn with_window<R>(
        &self,
        w: &mut cc::Window,
        call: impl FnOnce(Python<'_>, &Object, &Py<Window>) -> R,
    ) -> R {
        Python::attach(|py| {
            *self.window.borrow_mut(py) = Window { cwnd: w.cwnd, ssthresh: w.ssthresh, mss: w.mss };
            let returned = call(py, &self.object, &self.window);
            let window = self.window.borrow(py);
            (w.cwnd, w.ssthresh) = (window.cwnd, window.ssthresh);
            returned
        })
    }
}

impl CongestionControl for Control {
    fn on_established(&mut self, w: &mut cc::Window, now: Time, rtt: Option<Duration>) {
        if self.wants("on_established") {
            self.with_window(w, |py, object, window| {
                object.call(py, "on_established", (window, now.as_nanos(), rtt.map(nanos)));
            })
        }
    }

    fn on_ack(&mut self, w: &mut cc::Window, ack: &Ack) {
        self.with_window(w, |py, object, window| {
            object.call(py, "on_ack", (window, AckInfo::from(ack)));
        })
    }

    fn on_congestion(&mut self, w: &mut cc::Window, now: Time, in_flight: u64, congestion: Congestion) {
        let reason = match congestion {
            Congestion::Loss => "loss",
            Congestion::Ecn => "ecn",
            Congestion::Timeout => "timeout",
        };
        self.with_window(w, |py, object, window| {
            object.call(py, "on_congestion", (window, now.as_nanos(), in_flight, reason));
        })
    }

    fn on_timeout(&mut self, w: &mut cc::Window, now: Time) {
        if self.wants("on_timeout") {
            self.with_window(w, |py, object, window| {
                object.call(py, "on_timeout", (window, now.as_nanos()));
            })
        }
    }

    fn on_recovered(&mut self, w: &mut cc::Window, now: Time) {
        if self.wants("on_recovered") {
            self.with_window(w, |py, object, window| {
                object.call(py, "on_recovered", (window, now.as_nanos()));
            })
        }
    }

    fn on_undo(&mut self, w: &mut cc::Window, now: Time) {
        if self.wants("on_undo") {
            self.with_window(w, |py, object, window| {
                object.call(py, "on_undo", (window, now.as_nanos()));
            })
        }
    }

    fn on_restart(&mut self, w: &mut cc::Window, now: Time, idle: Duration, _by_application: bool) {
        if self.wants("on_restart") {
            self.with_window(w, |py, object, window| {
                object.call(py, "on_restart", (window, now.as_nanos(), nanos(idle)));
            })
        }
    }

    fn on_lost(&mut self, bytes: u64) {
        if self.wants("on_lost") {
            Python::attach(|py| drop(self.object.call(py, "on_lost", (bytes,))))
        }
    }

    fn on_send(&mut self, w: &mut cc::Window, segment: &Departure) -> Option<Duration> {
        if !self.wants("on_send") {
            return None;
        }
        let Departure { now, len, in_flight, .. } = *segment;
        let gap: Option<u64> = self.with_window(w, |py, object, window| {
            object.ask(py, "on_send", (window, now.as_nanos(), len, in_flight))
        });
        gap.map(Duration::from_nanos)
    }

    fn owns_recovery(&self) -> bool {
        self.owns_recovery
    }

    fn wants_dctcp_ecn(&self) -> bool {
        self.dctcp_ecn
    }
}

/// Packet, as a discipline sees it.
#[pyclass(frozen, get_all, module = "weir")]
pub struct PacketInfo {
    /// Bytes, as the queue charges them.
    bytes: u64,
    /// Number of packets that it stands for.
    packets: u32,
    /// Hash of addresses, ports and protocol.
    flow: u64,
    /// ECN field: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced.
    ecn: u8,
    /// Time of its arrival in nanoseconds.
    since_ns: u64,
}

impl From<&Packet> for PacketInfo {
    fn from(packet: &Packet) -> PacketInfo {
        let Packet { bytes, packets, flow, ecn, since } = *packet;
        PacketInfo { bytes, packets, flow, ecn, since_ns: since.as_nanos() }
    }
}

/// Length of a queue.
#[pyclass(frozen, get_all, module = "weir")]
pub struct QueueLength {
    /// Waiting packets.
    packets: u64,
    /// Waiting bytes, as charged.
    bytes: u64,
    /// Waiting packets of each band.
    band_packets: Vec<u64>,
    /// Waiting bytes of each band, as charged.
    band_bytes: Vec<u64>,
}

impl From<&Length<'_>> for QueueLength {
    fn from(length: &Length<'_>) -> QueueLength {
        QueueLength {
            packets: length.packets,
            bytes: length.bytes,
            band_packets: length.bands.iter().map(|band| band.packets).collect(),
            band_bytes: length.bands.iter().map(|band| band.bytes).collect(),
        }
    }
}

/// Most bands of a queue.
const MOST_BANDS: usize = 65_536;

/// Discipline of a queue.
struct Queueing {
    object: Object,
    bands: usize,
    chooses: bool,
    judges_departures: bool,
}

impl std::fmt::Debug for Queueing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queueing({})", self.object.name)
    }
}

impl Queueing {
    fn new(name: &'static str, class: &Py<PyAny>, base: &Py<PyAny>, seed: u64) -> Queueing {
        let (object, has) = Object::new(name, class, seed, base, ["next", "on_departure"]);
        let [chooses, judges_departures] = has;
        let bands = object.attribute("bands");
        if !(1..=MOST_BANDS).contains(&bands) {
            let error = PyValueError::new_err(format!("{bands} bands: 1 to {MOST_BANDS} are possible"));
            Python::attach(|py| ended(py, name, &error));
        }
        Queueing { object, bands, chooses, judges_departures }
    }

    /// Ends the run for a value that is no decision.
    fn refuse(&self, py: Python<'_>, method: &str, found: impl std::fmt::Debug, accepted: &str) -> ! {
        let error = PyValueError::new_err(format!("{method} returned {found:?}: it returns {accepted}"));
        ended(py, self.object.name, &error)
    }

    /// Returns a band that a method returned. One that there is not ends the run.
    fn band(&self, py: Python<'_>, method: &str, band: usize) -> usize {
        match band < self.bands {
            true => band,
            false => self.refuse(py, method, band, &format!("a band below {}", self.bands)),
        }
    }
}

impl QueueDiscipline for Queueing {
    fn bands(&self) -> usize {
        self.bands
    }

    fn on_arrival(&mut self, now: Time, packet: &Packet, queue: &Length<'_>) -> Arrival {
        Python::attach(|py| {
            let arguments = (now.as_nanos(), PacketInfo::from(packet), QueueLength::from(queue));
            let returned = self.object.call(py, "on_arrival", arguments);
            let both = match returned.is_instance_of::<PyTuple>() {
                true => returned.extract::<(String, usize)>(),
                false => returned.extract::<String>().map(|decision| (decision, 0)),
            };
            let (decision, band) = both.unwrap_or_else(|error| ended(py, self.object.name, &error));
            match decision.as_str() {
                "keep" => Arrival::Keep(self.band(py, "on_arrival", band)),
                "mark" => Arrival::Mark(self.band(py, "on_arrival", band)),
                "drop" => Arrival::Drop,
                other => self.refuse(py, "on_arrival", other, "\"keep\", \"mark\" or \"drop\""),
            }
        })
    }

    fn next(&self, queue: &Length<'_>) -> usize {
        match self.chooses {
            true => Python::attach(|py| {
                self.band(py, "next", self.object.ask(py, "next", (QueueLength::from(queue),)))
            }),
            false => queue.first(),
        }
    }

    fn on_departure(&mut self, now: Time, packet: &Packet, queue: &Length<'_>) -> own::Departure {
        if !self.judges_departures {
            return own::Departure::Send;
        }
        Python::attach(|py| {
            let arguments = (now.as_nanos(), PacketInfo::from(packet), QueueLength::from(queue));
            let decision: String = self.object.ask(py, "on_departure", arguments);
            match decision.as_str() {
                "send" => own::Departure::Send,
                "mark" => own::Departure::Mark,
                "drop" => own::Departure::Drop,
                other => self.refuse(py, "on_departure", other, "\"send\", \"mark\" or \"drop\""),
            }
        })
    }
}

/// Adds what a class makes to a registry, which keeps the name for good.
fn add<E: std::fmt::Display>(
    py: Python<'_>,
    name: String,
    make: &Py<PyAny>,
    register: impl FnOnce(&'static str) -> Result<(), E>,
) -> PyResult<()> {
    if !make.bind(py).is_callable() {
        return Err(PyTypeError::new_err(
            "a class is expected, or a function of a seed that makes an object",
        ));
    }
    let added = register(Box::leak(name.into_boxed_str()));
    added.map_err(|refused| PyValueError::new_err(refused.to_string()))
}

/// Adds a congestion control. `base` is the class whose methods do nothing.
#[pyfunction]
#[pyo3(signature = (name, make, base, version=None))]
pub fn add_congestion_control(
    py: Python<'_>,
    name: String,
    make: Py<PyAny>,
    base: Py<PyAny>,
    version: Option<&str>,
) -> PyResult<()> {
    add(py, name, &make.clone_ref(py), |name| {
        cc::register(name, version, move |options| Box::new(Control::new(name, &make, &base, options.seed)))
    })
}

/// Adds a queue discipline. `base` is the class whose methods do nothing.
#[pyfunction]
#[pyo3(signature = (name, make, base, version=None))]
pub fn add_queue_discipline(
    py: Python<'_>,
    name: String,
    make: Py<PyAny>,
    base: Py<PyAny>,
    version: Option<&str>,
) -> PyResult<()> {
    add(py, name, &make.clone_ref(py), |name| {
        own::register(name, version, move |place| Box::new(Queueing::new(name, &make, &base, place.seed)))
    })
}
