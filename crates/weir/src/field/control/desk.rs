//! The supervisor's side: checks the requests of clients, and refuses them or passes them on to the engine.

use super::difference::{unchangeable, Difference};
use super::letter::{FromEngine, ToEngine};
use super::subject::Subject;
use super::{Answer, Kept, Owner, Running, Version};
use crate::experiment::config::customers::{self, Customer};
use crate::experiment::config::diag::listed;
use crate::experiment::config::{Errors, Source};
use crate::field::lists;
use std::path::Path;
use weir_io::log::shown;
use weir_io::supervise::{Letters, Operator};

/// Requests that clients can make.
const REQUESTS: &str =
    "show, show all, show NAME, show ADDRESS, set class/NAME.KEY=VALUE, set customer/ID.down=RATE, off CUSTOMER, on CUSTOMER, reload";

/// Most bytes shown of an invalid request, and of a request's line in the log.
const SHOWN: usize = 80;
const LOGGED: usize = 200;
/// Most bytes of the reason why nothing is shown.
const MOST_SHOWN: usize = 400;

/// Request that waits for the engine.
struct Asked {
    number: u64,
    /// Version that will run if the request is a change.
    change: Option<(Version, Answer)>,
    /// Customer whose traffic it is.
    owner: Option<Owner>,
}

/// The supervisor's handling of requests.
pub struct Desk<'a> {
    running: &'a Running,
    number: u64,
    asked: Option<Asked>,
}

/// Result of checking a request.
enum Outcome {
    Say(Answer),
    Change(Box<Version>),
    Show(Box<Subject>),
}

/// Returns a setting whose customer is named by its identifier, whatever it was named by. Settings outlive
/// names.
fn by_identifier(setting: &str, list: &[Customer]) -> Result<String, String> {
    let named = setting.split_once('=').and_then(|(place, value)| {
        let (name, key) = place.strip_prefix("customer/")?.rsplit_once('.')?;
        Some((name, key, value))
    });
    let Some((name, key, value)) = named else { return Ok(setting.to_owned()) };
    Ok(format!("customer/{}.{key}={value}", customer(name, list)?.label))
}

/// Returns the customer with this identifier or name.
fn customer<'a>(name: &str, list: &'a [Customer]) -> Result<&'a Customer, String> {
    customers::named::find(list, name)?.ok_or_else(|| {
        let like = customers::named::like(list, name);
        let guess = if like.is_empty() { String::new() } else { format!("; like it: {}", listed(like)) };
        format!("there is no customer \"{name}\"{guess}")
    })
}

/// Returns the path, unless it is a pipe or a device: reading one would block the supervisor.
fn regular(path: &Path) -> Result<&Path, String> {
    match path.metadata() {
        Ok(about) if !about.is_file() => {
            Err(format!("{} is no regular file: it cannot be read again", path.display()))
        }
        _ => Ok(path),
    }
}

impl<'a> Desk<'a> {
    /// Returns a desk for the running configuration.
    pub fn new(running: &'a Running) -> Desk<'a> {
        Desk { running, number: 0, asked: None }
    }

    fn look_at(&self, line: &str) -> Outcome {
        let line = line.trim();
        // The rest of a line may be a name with blanks.
        let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let outcome = match (verb, rest.trim()) {
            ("show", "") => Ok(Outcome::Show(Box::default())),
            ("show", name) => match Subject::find(name, &self.running.version()) {
                Ok(subject) => Ok(Outcome::Show(subject.into())),
                Err(why) => Err(Answer::wrong(shown(&why, MOST_SHOWN))),
            },
            ("reload", "") => self.read_again(),
            ("set", settings) if !settings.is_empty() => {
                self.lay_over(&settings.split_whitespace().collect::<Vec<_>>())
            }
            ("off" | "on", name) if !name.is_empty() => self.switch(name, verb == "off"),
            _ => {
                let line = shown(line, SHOWN);
                Err(Answer::wrong(format!("`{line}` is not a request; what can be asked: {REQUESTS}")))
            }
        };
        outcome.unwrap_or_else(Outcome::Say)
    }

    /// Reads the file again, without the settings made since.
    fn read_again(&self) -> Result<Outcome, Answer> {
        let Some(path) = &self.running.path else {
            return Err(Answer::wrong("Weir was started without a file: there is nothing to read again"));
        };
        let source = regular(path).and_then(Source::read).map_err(Answer::wrong)?;
        let list = |name: &str| regular(name.as_ref()).and_then(Source::read_list);
        Ok(Outcome::Change(Version::read_by(source, &list)?.into()))
    }

    /// Returns the running configuration with a customer on or off.
    fn switch(&self, name: &str, off: bool) -> Result<Outcome, Answer> {
        let label = {
            let now = self.running.version();
            let name = name.strip_prefix("customer/").unwrap_or(name);
            customer(name, &now.file.customers).map_err(Answer::wrong)?.label.clone()
        };
        self.lay_over(&[&format!("customer/{label}.off={off}")])
    }

    /// Returns the running configuration with other values.
    fn lay_over(&self, settings: &[&str]) -> Result<Outcome, Answer> {
        let now = self.running.version();
        if now.sources.is_empty() {
            return Err(Answer::wrong("a lab's gateway has no file in which settings could be"));
        }
        let mut all = now.settings.clone();
        let settings = settings.iter().map(|setting| by_identifier(setting, &now.file.customers));
        let settings = settings.collect::<Result<Vec<_>, _>>().map_err(Answer::wrong)?;
        all.add_all(&settings).map_err(|fault| Answer::wrong(fault.to_string()))?;
        let said = Source::new("set", settings.join(" "));
        let version =
            Version::parse(now.sources.clone(), all).map_err(|errors: Errors| errors.about(&said))?;
        Ok(Outcome::Change(version.into()))
    }

    /// Returns what a version changes, or why it cannot run.
    fn compare(&self, version: &Version) -> Result<Answer, Answer> {
        let now = self.running.version();
        let refused = unchangeable(&now.file, &version.file, self.running.steered);
        if !refused.is_empty() {
            return Err(Answer::wrong(refused.join("\n")));
        }
        let difference = Difference::between(&now.file.gateway, &version.file.gateway);
        let mut text = difference.words();
        // Notes are reported after a reload only, because `set` does not change them.
        let read_again = version.settings.is_empty() && !version.file.notes.is_empty();
        let notes = read_again.then(|| lists::first(&version.file.notes));
        if let Some(notes) = &notes {
            let count = notes.count;
            text.push_str(&format!(
                "; {count} {} about its lists",
                if count == 1 { "note" } else { "notes" }
            ));
        }
        let lost = now.settings.without(&version.settings);
        if !lost.is_empty() {
            text.push_str(&format!("; no longer set: {}", lost.join(", ")));
        }
        Ok(Answer { notes, ..Answer::done(text, difference) })
    }

    fn change(&mut self, version: Version, engine: Option<&Letters>) -> Option<Answer> {
        let answer = match self.compare(&version) {
            Ok(answer) => answer,
            Err(answer) => return Some(answer),
        };
        if version.file == self.running.version().file {
            self.running.change(version);
            return Some(answer);
        }
        let (sources, settings) = (version.sources.clone(), version.settings.clone());
        let sent = self.ask(ToEngine::Configure { sources, settings }, engine);
        match sent {
            Ok(number) => {
                self.asked = Some(Asked { number, change: Some((version, answer)), owner: None });
                None
            }
            // The next engine starts with it.
            Err(_) if engine.is_none() => {
                self.running.change(version);
                Some(Answer { text: format!("{}; no engine runs just now", answer.text), ..answer })
            }
            Err(why) => Some(Answer::failed(why)),
        }
    }

    /// Sends a question to the engine and returns its number.
    fn ask(&mut self, question: ToEngine, engine: Option<&Letters>) -> Result<u64, String> {
        self.number += 1;
        let engine = engine.ok_or("no engine runs just now: try again")?;
        let letter = question.write(self.number).map_err(|e| e.to_string())?;
        engine.send(&letter).map_err(|e| format!("the engine cannot be asked: {e}"))?;
        Ok(self.number)
    }

    fn show(&mut self, subject: Subject, engine: Option<&Letters>) -> Option<Answer> {
        let Subject { address, shown, owner } = subject;
        match self.ask(ToEngine::Show { address, shown }, engine) {
            Ok(number) => {
                self.asked = Some(Asked { number, change: None, owner });
                None
            }
            Err(why) => Some(Answer::failed(why)),
        }
    }

    /// Implements [`Operator::request`].
    fn serve(&mut self, line: &str, engine: Option<&Letters>) -> Option<Answer> {
        match self.look_at(line) {
            Outcome::Say(answer) => Some(answer),
            Outcome::Change(version) => self.change(*version, engine),
            Outcome::Show(subject) => self.show(*subject, engine),
        }
    }
}

/// Logs the result of a change.
fn log(answer: &Answer) {
    let text = shown(answer.text.lines().next().unwrap_or_default(), LOGGED);
    match answer.ok {
        true => tracing::info!("configuration: {text}"),
        false => tracing::error!("the configuration stays as it is: {text}"),
    }
    answer.notes.iter().for_each(lists::log);
}

impl Operator for Desk<'_> {
    fn refusal(&mut self, why: &str) -> Vec<u8> {
        Answer::failed(why).write()
    }

    fn done(&mut self, text: &str) -> Vec<u8> {
        Answer { ok: true, text: text.to_owned(), ..Answer::default() }.write()
    }

    fn state(&self) -> Option<String> {
        Kept::write(&self.running.version(), self.running.seed)
    }

    fn request(&mut self, line: &str, engine: Option<&Letters>) -> Option<Vec<u8>> {
        let answer = self.serve(line, engine)?;
        if !line.starts_with("show") {
            log(&answer);
        }
        Some(answer.write())
    }

    fn hangup(&mut self, engine: Option<&Letters>) -> bool {
        let answer = self.serve("reload", engine);
        answer.iter().for_each(log);
        answer.is_none()
    }

    fn heard(&mut self, letter: &[u8]) -> Option<Vec<u8>> {
        let (number, answer) = FromEngine::read(letter)?;
        // A late answer belongs to a question that was given up.
        let asked = self.asked.take_if(|asked| asked.number == number)?;
        let answer = match (answer, asked.change) {
            (FromEngine::Report(json), _) => return Some(Answer::of_report(json, asked.owner.as_ref())),
            (FromEngine::Configured, Some((version, answer))) => {
                self.running.change(version);
                answer
            }
            (FromEngine::Refused(why), _) => Answer::wrong(why),
            (FromEngine::Configured, None) => Answer::failed("the engine has misunderstood"),
        };
        log(&answer);
        Some(answer.write())
    }

    fn unheard(&mut self, gone: bool) -> Vec<u8> {
        let Some((version, answer)) = self.asked.take().and_then(|asked| asked.change) else {
            return Answer::failed("the engine does not answer: try again").write();
        };
        // The accepted version is used by the next engine, or by this one later.
        self.running.change(version);
        let why = if gone { "the engine ended meanwhile" } else { "the engine has not confirmed it yet" };
        let answer = Answer { text: format!("{}; {why}", answer.text), ..answer };
        log(&answer);
        answer.write()
    }
}
