//! The far side's command: it runs before the program does, and its output is told from the program's.

use super::{end, Signals};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for a port that listens.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval between looks for one.
const LOOK: Duration = Duration::from_millis(10);
/// Tables of sockets of this thread's network namespace, with the state of those that take what comes.
const TABLES: [(&str, &str); 4] = [
    ("/proc/thread-self/net/tcp", "0A"),
    ("/proc/thread-self/net/tcp6", "0A"),
    ("/proc/thread-self/net/udp", "07"),
    ("/proc/thread-self/net/udp6", "07"),
];

/// The command, which is ended with this value.
pub(super) struct Server(Child);

impl Server {
    /// Starts the command in a process group of its own, and waits until a port listens that did not before.
    /// A signal ends it.
    pub(super) fn start(command: &str, signals: &Signals) -> Result<Server, String> {
        use std::os::unix::process::CommandExt;
        let before = listening();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = shell.process_group(0).spawn().map_err(|e| format!("{command}: {e}"))?;
        child.stdout.take().into_iter().for_each(tell);
        child.stderr.take().into_iter().for_each(tell);
        let mut server = Server(child);
        server.wait(&before, command, signals)?;
        Ok(server)
    }

    fn wait(&mut self, before: &HashSet<String>, command: &str, signals: &Signals) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        while listening().is_subset(before) {
            if signals.have_come() {
                return Err("stopped before the program began".into());
            }
            if let Ok(Some(ended)) = self.0.try_wait() {
                return Err(format!("the server ended before the program began ({ended}): {command}"));
            }
            if Instant::now() >= until {
                crate::output::say("weir: no port of the server listens yet: the program begins without");
                break;
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

/// Repeats lines on standard error, each with its origin.
fn tell(output: impl Read + Send + 'static) {
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            crate::output::say(&format!("server: {}", String::from_utf8_lossy(&line)));
        }
    });
}

/// Local addresses that take connections or datagrams, with their protocol.
fn listening() -> HashSet<String> {
    let mut found = HashSet::new();
    for (table, state) in TABLES {
        let text = std::fs::read_to_string(table).unwrap_or_default();
        for line in text.lines().skip(1) {
            let mut words = line.split_whitespace().skip(1);
            if let (Some(local), Some(_), Some(is)) = (words.next(), words.next(), words.next()) {
                if is == state {
                    found.insert(format!("{table} {local}"));
                }
            }
        }
    }
    found
}
