//! The supervisor's side of requests to a running emulator: checks them, and passes them on to the engine.

use super::remote::{Letter, Question, Reply};
use crate::experiment::config::diag::Fault;
use crate::experiment::config::wan::{laid_over, WanFile};
use crate::experiment::config::{link::words, ports::Attach};
use crate::experiment::plan;
use crate::field::control::Answer;
use crate::field::setup;
use crate::result::running::EmulatorReport;
use serde::Serialize;
use std::cell::Cell;
use weir_core::link::Config;
use weir_io::log::shown;
use weir_io::supervise::{Letters, Operator};

/// Requests that clients can make.
const REQUESTS: &str =
    "show, set path.wan.KEY=VALUE, set path.wan.out.KEY=VALUE, set path.wan.back.KEY=VALUE";
/// Most bytes shown of an invalid request, and of a request's line in the log.
const SHOWN: usize = 80;
const LOGGED: usize = 200;

/// The running path.
pub(super) struct Running<'a> {
    file: &'a WanFile,
    path: Cell<plan::Path>,
}

impl<'a> Running<'a> {
    /// Returns the path of a file.
    pub fn new(file: &'a WanFile) -> Running<'a> {
        Running { file, path: Cell::new(file.path) }
    }

    /// Returns the path that runs now.
    pub fn path(&self) -> plan::Path {
        self.path.get()
    }

    /// Returns the path with settings laid over it, or why it cannot run.
    fn with(&self, settings: &[&str]) -> Result<plan::Path, String> {
        let now = self.path();
        let lines = |faults: Vec<Fault>| faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n");
        let next = laid_over(&now, settings).map_err(lines)?;
        let taken = self.file.taken();
        let sides =
            [("out", taken.0, now.wan_out, next.wan_out), ("back", taken.1, now.wan_back, next.wan_back)];
        for (side, taken, now, next) in sides.into_iter().filter(|(_, _, now, next)| now != next) {
            if !taken && matches!(self.file.attach, Attach::Dev(_)) {
                return Err(format!("path.wan.{side} passes in the kernel, since it emulated nothing at the start: restart it"));
            }
            if let Some(key) = now.fixed(&next) {
                return Err(format!("path.wan.{side}.{key} cannot be changed while it runs: restart it"));
            }
        }
        let file = WanFile { path: next, ..self.file.clone() };
        if setup::pool(&file).bytes() > setup::pool(self.file).bytes() {
            return Err(
                "rate and delay hold more frames than there is memory for since the start: restart it".into(),
            );
        }
        Ok(next)
    }
}

/// Request that waits for the engine.
struct Asked {
    number: u64,
    /// Path that runs if the request is a change, and its words.
    change: Option<(plan::Path, String)>,
}

/// The supervisor's handling of requests.
pub(super) struct EmulatorDesk<'a> {
    running: &'a Running<'a>,
    number: u64,
    asked: Option<Asked>,
}

/// Answer with a report.
#[derive(Serialize)]
struct Shown<'a> {
    ok: bool,
    text: &'a str,
    emulator: &'a EmulatorReport,
}

/// Text of answers that have a report, for readers that expect a gateway's.
const EMULATOR: &str = "an emulator runs here, and no gateway";

impl<'a> EmulatorDesk<'a> {
    /// Returns a desk for the running path.
    pub fn new(running: &'a Running<'a>) -> EmulatorDesk<'a> {
        EmulatorDesk { running, number: 0, asked: None }
    }

    fn serve(&mut self, line: &str, engine: Option<&Letters>) -> Option<Answer> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["show"] | ["show", "all"] => self.ask(Question::Show, None, engine).map(Answer::failed),
            ["set", settings @ ..] if !settings.is_empty() => match self.running.with(settings) {
                Ok(next) => self.change(next, engine),
                Err(why) => Some(Answer::wrong(why)),
            },
            _ => {
                let line = shown(line, SHOWN);
                Some(Answer::wrong(format!("{EMULATOR}: `{line}` cannot be asked of it, but {REQUESTS}")))
            }
        }
    }

    fn change(&mut self, next: plan::Path, engine: Option<&Letters>) -> Option<Answer> {
        let text = format!("out: {}; back: {}", words(&next.wan_out), words(&next.wan_back));
        if engine.is_none() {
            // The next engine starts with it.
            self.running.path.set(next);
            let text = format!("{text}; no engine runs just now");
            return Some(Answer { ok: true, text, ..Answer::default() });
        }
        let links: [Config; 2] = [next.wan_out, next.wan_back];
        self.ask(Question::Change(links.into()), Some((next, text)), engine).map(Answer::failed)
    }

    /// Sends a question to the engine, or returns why it cannot be asked.
    fn ask(
        &mut self,
        question: Question,
        change: Option<(plan::Path, String)>,
        engine: Option<&Letters>,
    ) -> Option<String> {
        self.number += 1;
        let Some(engine) = engine else { return Some("no engine runs just now: try again".into()) };
        if let Err(error) = engine.send(&Letter(self.number, question).write()) {
            return Some(format!("the engine cannot be asked: {error}"));
        }
        self.asked = Some(Asked { number: self.number, change });
        None
    }
}

/// Logs the result of a change.
fn log(answer: &Answer) {
    let text = shown(answer.text.lines().next().unwrap_or_default(), LOGGED);
    match answer.ok {
        true => tracing::info!("path: {text}"),
        false => tracing::error!("the path stays as it is: {text}"),
    }
}

impl Operator for EmulatorDesk<'_> {
    fn refusal(&mut self, why: &str) -> Vec<u8> {
        Answer::failed(why).write()
    }

    fn done(&mut self, text: &str) -> Vec<u8> {
        Answer { ok: true, text: text.to_owned(), ..Answer::default() }.write()
    }

    fn state(&self) -> Option<String> {
        None
    }

    fn request(&mut self, line: &str, engine: Option<&Letters>) -> Option<Vec<u8>> {
        let answer = self.serve(line, engine)?;
        if line.starts_with("set") {
            log(&answer);
        }
        Some(answer.write())
    }

    fn hangup(&mut self, _: Option<&Letters>) -> bool {
        tracing::info!("SIGHUP: nothing to do, there is no configuration to read again");
        false
    }

    fn heard(&mut self, letter: &[u8]) -> Option<Vec<u8>> {
        let Letter(number, reply) = Letter::<Reply>::read(letter)?;
        // A late answer belongs to a question that was given up.
        let asked = self.asked.take_if(|asked| asked.number == number)?;
        let answer = match (reply, asked.change) {
            (Reply::Report(emulator), _) => {
                let shown = Shown { ok: true, text: EMULATOR, emulator: &emulator };
                let mut text = serde_json::to_vec(&shown).unwrap_or_default();
                text.push(b'\n');
                return Some(text);
            }
            (Reply::Changed, Some((path, text))) => {
                self.running.path.set(path);
                Answer { ok: true, text, ..Answer::default() }
            }
            (Reply::Refused(why), _) => Answer::failed(why),
            (Reply::Changed, None) => Answer::failed("the engine has misunderstood"),
        };
        log(&answer);
        Some(answer.write())
    }

    fn unheard(&mut self, gone: bool) -> Vec<u8> {
        let Some((path, text)) = self.asked.take().and_then(|asked| asked.change) else {
            return Answer::failed("the engine does not answer: try again").write();
        };
        // The accepted path is used by the next engine, or by this one later.
        self.running.path.set(path);
        let why = if gone { "the engine ended meanwhile" } else { "the engine has not confirmed it yet" };
        let answer = Answer { ok: true, text: format!("{text}; {why}"), ..Answer::default() };
        log(&answer);
        answer.write()
    }
}
