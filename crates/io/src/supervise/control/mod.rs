//! Requests to a running Weir: from clients of a socket that only root can reach, and SIGHUP.
//!
//! All of this happens between two looks at the engine, and nothing waits. A client that hangs or sends no
//! valid request occupies one of few places for a few seconds, or until another client needs it. Clients
//! without a place are told so. Requests are answered one after the other, because each may depend on the
//! changes of the one before.

mod ask;
mod clients;

pub use ask::{ask, within};
pub(super) use clients::Listener;

use super::handover::{Handover, LeftClient};
use super::state::Directory;
use crate::sys::clock;
use crate::sys::epoll::Waiter;
use crate::sys::inherit::Heir;
use crate::sys::letters::Letters;
use clients::{Client, Clients};
use std::io;
use std::os::fd::AsFd;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use weir_core::time::{Duration, Time};

/// Longest time that an engine may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// Token of the descriptors that are waited for here.
pub(super) const TOKEN: u64 = 8;

/// Interpreter of requests. None of its methods may wait.
pub trait Operator {
    /// Handles a request: a line without its end, and the connection to the engine, if one runs. `None` if
    /// the engine has to answer first ([`Operator::heard`]).
    fn request(&mut self, line: &str, engine: Option<&Letters>) -> Option<Vec<u8>>;
    /// Handles SIGHUP, which needs no answer. True if the engine has to answer first.
    fn hangup(&mut self, engine: Option<&Letters>) -> bool;
    /// Handles a message of the engine about the waiting request. Returns the answer to the request once it
    /// is complete.
    fn heard(&mut self, letter: &[u8]) -> Option<Vec<u8>>;
    /// Answers the waiting request without the engine, which is gone or silent for too long.
    fn unheard(&mut self, gone: bool) -> Vec<u8>;
    /// Returns the answer that refuses a request for this reason.
    fn refusal(&mut self, why: &str) -> Vec<u8>;
    /// Returns the answer to a request that was carried out.
    fn done(&mut self, text: &str) -> Vec<u8>;
    /// Returns the running configuration for the next program of this process ([`Inherited::operator`]).
    /// `None` if it takes none.
    ///
    /// [`Inherited::operator`]: crate::supervise::Inherited::operator
    fn state(&self) -> Option<String>;
}

/// Answer to a client without a place.
const BUSY: &str = "busy: too many requests at once, try again";
/// Answer to a request over which the operator panicked.
const PANICKED: &str = "the request failed by a fault of Weir itself, which the log tells";

/// Answer to a client that has sent more than a line.
const SEVERAL: &str = "one request for each connection: a line, and nothing after it";

/// Operator that answers no requests.
#[derive(Debug)]
pub struct NoOperator;

impl Operator for NoOperator {
    fn request(&mut self, _: &str, _: Option<&Letters>) -> Option<Vec<u8>> {
        Some(Vec::new())
    }
    fn hangup(&mut self, _: Option<&Letters>) -> bool {
        tracing::info!("SIGHUP: nothing to do, there is no configuration to read again");
        false
    }
    fn heard(&mut self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
    fn unheard(&mut self, _: bool) -> Vec<u8> {
        Vec::new()
    }
    fn refusal(&mut self, _: &str) -> Vec<u8> {
        Vec::new()
    }
    fn done(&mut self, _: &str) -> Vec<u8> {
        Vec::new()
    }
    fn state(&self) -> Option<String> {
        None
    }
}

/// A request that waits for the engine.
#[derive(Debug)]
struct Waiting {
    /// Client that gets the answer; `None` for a signal.
    client: Option<Client>,
    until: Time,
}

/// The supervisor's side of all requests.
#[derive(Debug)]
pub(super) struct Control {
    listener: Option<Listener>,
    clients: Clients,
    letters: Option<Letters>,
    waiting: Option<Waiting>,
    hangup: bool,
    upgrade: Option<Upgrade>,
}

/// Request for another program in this process. Other requests are served meanwhile.
#[derive(Debug)]
enum Upgrade {
    /// The program at this path is to take over.
    Asked { client: Client, path: PathBuf },
    /// This program has taken over, and says this to the client once its engine runs.
    Done { client: Option<Client>, words: String },
}

impl Control {
    /// Creates the state. Without a listener there are no clients.
    pub fn new(listener: Option<Listener>) -> Control {
        let clients = Clients::default();
        Control { listener, clients, letters: None, waiting: None, hangup: false, upgrade: None }
    }

    /// Hands the socket and its clients over to the next program of this process.
    pub fn leave(&self, heir: &mut Heir) -> Handover {
        let asker = match &self.upgrade {
            Some(Upgrade::Asked { client, .. }) => Some(client.leave(heir).fd),
            _ => None,
        };
        let listener = self.listener.as_ref().map(|listener| heir.gets(listener));
        Handover { listener, asker, clients: self.clients.leave(heir), ..Handover::default() }
    }

    /// Takes over the socket and its clients. `words` are the answer to the request for the upgrade.
    pub fn adopt(left: &Handover, directory: Directory, words: String) -> io::Result<Control> {
        let listener = left.listener.map(|fd| Listener::adopt(fd, directory, &left.instance)).transpose()?;
        let client = left.asker.map(|fd| Client::adopt(&LeftClient { fd, asked: Vec::new() })).transpose()?;
        let upgrade = Some(Upgrade::Done { client, words });
        Ok(Control { clients: Clients::adopt(&left.clients)?, upgrade, ..Control::new(listener) })
    }

    /// Returns the path of the program that a client wants in this process.
    pub fn upgrade(&self) -> Option<PathBuf> {
        match &self.upgrade {
            Some(Upgrade::Asked { path, .. }) => Some(path.clone()),
            _ => None,
        }
    }

    /// Refuses the request for another program.
    pub fn refuse_upgrade(&mut self, operator: &mut impl Operator, why: &str) {
        if let Some(Upgrade::Asked { client, .. }) = self.upgrade.take() {
            tracing::error!("no upgrade: {why}");
            self.clients.answer(client, operator.refusal(why), clock::now());
        }
    }

    /// Answers the request for this program, whose engine runs now.
    pub fn upgraded(&mut self, operator: &mut impl Operator) {
        if let Some(Upgrade::Done { client, words }) =
            self.upgrade.take_if(|it| matches!(it, Upgrade::Done { .. }))
        {
            tracing::info!("{words}");
            let answer = operator.done(&words);
            client.into_iter().for_each(|client| self.clients.answer(client, answer.clone(), clock::now()));
        }
    }

    /// Returns whether a request waits for the engine.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Opens a connection to another engine, and returns the engine's end. The engine before is gone.
    pub fn connect(&mut self, operator: &mut impl Operator) -> io::Result<Option<Letters>> {
        self.disconnect(operator);
        if self.listener.is_none() {
            return Ok(None);
        }
        let (ours, theirs) = Letters::pair()?;
        self.letters = Some(ours);
        Ok(Some(theirs))
    }

    /// Records that there is no engine.
    pub fn disconnect(&mut self, operator: &mut impl Operator) {
        self.letters = None;
        self.give_up(operator, true);
    }

    /// Drops what belongs only to the supervisor, in a forked process.
    pub fn leave_to_parent(&mut self) {
        self.listener.iter_mut().for_each(Listener::leave_to_parent);
        *self = Control::new(None);
    }

    /// Makes the waiter wake for requests and answers.
    pub fn wakes(&self, waiter: &Waiter) -> io::Result<()> {
        self.listener.iter().try_for_each(|listener| waiter.add(listener.as_fd(), TOKEN))?;
        self.letters.iter().try_for_each(|letters| waiter.add(letters.as_fd(), TOKEN))
    }

    /// Returns whether clients find the socket, if there is one.
    pub fn is_there(&self) -> bool {
        self.listener.as_ref().is_none_or(Listener::is_there)
    }

    /// Replaces the socket, whose file was removed.
    pub fn listen_again(&mut self, listener: Option<Listener>, waiter: &Waiter) -> io::Result<()> {
        // The file has the same name, and is the new socket's.
        self.listener.iter_mut().for_each(Listener::leave_to_parent);
        self.listener = listener;
        self.listener.iter().try_for_each(|listener| waiter.add(listener.as_fd(), TOKEN))
    }

    /// Records a SIGHUP, which is served in its turn.
    pub fn hang_up(&mut self) {
        self.hangup = true;
    }

    /// Returns whether a request is served or waits.
    pub fn is_busy(&self) -> bool {
        self.hangup || self.waiting.is_some() || self.upgrade.is_some() || !self.clients.is_empty()
    }

    /// Does everything that can be done without waiting; `woken` if the waiter was.
    pub fn serve(&mut self, woken: bool, operator: &mut impl Operator) {
        if !woken && !self.is_busy() {
            return;
        }
        let now = clock::now();
        self.hear(operator);
        if self.waiting.as_ref().is_some_and(|waiting| now > waiting.until) {
            self.give_up(operator, false);
        }
        if let Some(listener) = &mut self.listener {
            self.clients.accept(listener, now, || operator.refusal(BUSY));
        }
        self.clients.work(now, || operator.refusal(BUSY));
        while self.waiting.is_none() && self.next(operator, now) {}
        self.clients.work(now, || operator.refusal(BUSY));
    }

    /// Serves the next request; false if there is none.
    fn next(&mut self, operator: &mut impl Operator, now: Time) -> bool {
        let waiting = |client| Some(Waiting { client, until: now + PATIENCE });
        if std::mem::take(&mut self.hangup) {
            if guarded(|| operator.hangup(self.letters.as_ref())).unwrap_or(false) {
                self.waiting = waiting(None);
            }
            return true;
        }
        let Some((client, line)) = self.clients.next() else { return false };
        let Some(line) = line else {
            self.clients.answer(client, operator.refusal(SEVERAL), now);
            return true;
        };
        if let Some(path) = path_of(&line) {
            match &self.upgrade {
                None => self.upgrade = Some(Upgrade::Asked { client, path }),
                Some(_) => self.clients.answer(client, operator.refusal("an upgrade is under way"), now),
            }
            return true;
        }
        let answer = guarded(|| operator.request(&line, self.letters.as_ref()));
        match answer.unwrap_or_else(|| Some(operator.refusal(PANICKED))) {
            Some(answer) => self.clients.answer(client, answer, now),
            None => self.waiting = waiting(Some(client)),
        }
        true
    }

    /// Reads the messages of the engine.
    fn hear(&mut self, operator: &mut impl Operator) {
        while let Some(letters) = &self.letters {
            match letters.take() {
                Ok(None) => return,
                Ok(Some(letter)) => {
                    if let Some(answer) = guarded(|| operator.heard(&letter)).flatten() {
                        self.answer(answer);
                    }
                }
                // The end of the engine is noticed elsewhere.
                Err(_) => self.disconnect(operator),
            }
        }
    }

    fn give_up(&mut self, operator: &mut impl Operator, gone: bool) {
        if self.waiting.is_some() {
            let answer = guarded(|| operator.unheard(gone));
            self.answer(answer.unwrap_or_default());
        }
    }

    fn answer(&mut self, answer: Vec<u8>) {
        if let Some(client) = self.waiting.take().and_then(|waiting| waiting.client) {
            self.clients.answer(client, answer, clock::now());
        }
    }
}

/// Runs the work of a request; `None` if it panicked. The supervisor goes on, because the gateway matters
/// more than an answer.
pub(super) fn guarded<T>(what: impl FnOnce() -> T) -> Option<T> {
    // Half-made changes are seen only by the next request, which starts afresh.
    catch_unwind(AssertUnwindSafe(what)).ok()
}

/// Path that a request for an upgrade names.
fn path_of(line: &str) -> Option<PathBuf> {
    line.strip_prefix("upgrade ").map(str::trim).filter(|path| path.starts_with('/')).map(PathBuf::from)
}

#[cfg(test)]
mod tests;
