//! A process of a lab, which is started in a namespace, monitored, and always ended.

use super::namespace::Namespace;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Number of lines of standard error that are kept for a message.
const LAST_WORDS: usize = 20;

/// A running process. Dropping it kills it.
pub struct Child {
    name: String,
    process: std::process::Child,
    output: Receiver<String>,
    words: Arc<Mutex<VecDeque<String>>>,
}

impl Child {
    /// Starts `command` in `namespace`; `name` is for messages.
    pub fn start(name: &str, namespace: &Namespace, mut command: Command) -> Result<Child, String> {
        // The child has a process group of its own, so that Ctrl-C reaches only the lab, which ends its
        // processes in order.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        namespace.start_inside(&mut command).map_err(|e| format!("{name}: {e}"))?;
        let mut process = command
            .spawn()
            .map_err(|e| format!("{name}: cannot start {}: {e}", command.get_program().to_string_lossy()))?;
        let (lines, output) = mpsc::channel();
        if let Some(stdout) = process.stdout.take() {
            std::thread::spawn(move || {
                let all = BufReader::new(stdout).lines().map_while(Result::ok);
                all.map(|line| lines.send(line)).take_while(Result::is_ok).for_each(drop);
            });
        }
        let words = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(stderr) = process.stderr.take() {
            let words = words.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    let mut kept = words.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.push_back(line);
                    if kept.len() > LAST_WORDS {
                        kept.pop_front();
                    }
                }
            });
        }
        Ok(Child { name: name.to_string(), process, output, words })
    }

    /// Returns the process number.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns the name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes a line to the child's standard input.
    pub fn tell(&mut self, line: &str) -> Result<(), String> {
        let Some(input) = self.process.stdin.as_mut() else { return Err(self.gone()) };
        let written = writeln!(input, "{line}").and_then(|()| input.flush());
        written.map_err(|_| self.gone())
    }

    /// Reads the next line of the child's standard output. Returns `None` if none arrives within `patience`.
    pub fn hear(&mut self, patience: Duration) -> Result<Option<String>, String> {
        match self.output.recv_timeout(patience) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.gone()),
        }
    }

    /// Waits for a line of the child's standard output that begins with `word`.
    pub fn wait_for(&mut self, word: &str, patience: Duration) -> Result<(), String> {
        let until = Instant::now() + patience;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if self.hear(left)?.is_some_and(|line| line.starts_with(word)) {
                return Ok(());
            }
        }
        Err(format!("{}: not ready after {} s{}", self.name, patience.as_secs(), self.last_words()))
    }

    /// Waits for a line of the child's standard error that contains `word`.
    pub fn wait_for_word(&mut self, word: &str, patience: Duration) -> Result<(), String> {
        let until = Instant::now() + patience;
        while Instant::now() < until {
            self.check()?;
            let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
            if words.iter().any(|line| line.contains(word)) {
                return Ok(());
            }
            drop(words);
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(format!("{}: not ready after {} s{}", self.name, patience.as_secs(), self.last_words()))
    }

    /// Returns an error that says how the child ended, unless it still runs.
    pub fn check(&mut self) -> Result<(), String> {
        match self.process.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.ended(status)),
            Err(e) => Err(format!("{}: {e}", self.name)),
        }
    }

    /// Asks the child to end with SIGTERM, and kills it after `patience`. Returns an error if it failed.
    pub fn end(mut self, patience: Duration) -> Result<(), String> {
        let pid = i32::try_from(self.process.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let (Ok(None), Some(pid)) = (self.process.try_wait(), pid) {
            // The child has not been reaped, so its number is still its own.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let until = Instant::now() + patience;
        while Instant::now() < until {
            match self.process.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(self.ended(status)),
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Err(e) => return Err(format!("{}: {e}", self.name)),
            }
        }
        Err(format!("{}: still there {} s after SIGTERM: killed", self.name, patience.as_secs()))
    }

    /// Returns the error message for closed pipes.
    fn gone(&mut self) -> String {
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until {
            if let Err(how) = self.check() {
                return how;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        format!("{}: closed its output{}", self.name, self.last_words())
    }

    fn ended(&self, status: ExitStatus) -> String {
        // Its last lines may still be in the pipe.
        std::thread::sleep(Duration::from_millis(20));
        format!("{}: {status}{}", self.name, self.last_words())
    }

    fn last_words(&self) -> String {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        words.iter().map(|line| format!("\n  {line}")).collect()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both calls fail if the child has ended, which is fine.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
