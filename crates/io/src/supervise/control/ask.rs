//! Asking an instance that runs.

use crate::supervise::state::Directory;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long an answer may take. The instance itself gives up earlier.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the instance on `dev` answers, or the only one in this network namespace, whose state is in this directory. `request` is
/// a line without its end. Fails if none runs, or several do and none is named.
pub fn ask(state: &Path, dev: Option<&str>, request: &str) -> io::Result<Vec<u8>> {
    if !state.exists() {
        return Err(none(dev));
    }
    let directory = Directory::open(state)?;
    let name = match (dev, directory.sockets()?.as_slice()) {
        (Some(dev), _) => dev.to_owned(),
        (None, [one]) => one.clone(),
        (None, []) => return Err(none(None)),
        (None, several) => {
            let message = format!("several gateways run: name one with --dev, of {}", several.join(", "));
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
    };
    let mut stream = UnixStream::connect(directory.socket(&name)).map_err(|error| match error.kind() {
        // It has ended, or was killed.
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => none(Some(&name)),
        _ => error,
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{request}\n").as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    match answer.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the gateway gave no answer")),
        false => Ok(answer),
    }
}

fn none(dev: Option<&str>) -> io::Error {
    let place = dev.map_or(String::new(), |dev| format!(" on {dev}"));
    io::Error::new(io::ErrorKind::NotFound, format!("no gateway runs{place} in this network namespace"))
}
