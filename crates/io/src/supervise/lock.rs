//! One Weir per interface: a socket in the abstract name space, which the kernel keeps per network
//! namespace and frees when the last process that holds it ends.

use crate::sys::clock;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use weir_core::time::Duration;

/// Holds an interface.
#[derive(Debug)]
pub(super) struct Lock {
    _socket: UnixListener,
}

/// How long one that was told to end, or was killed, may take to be gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// Takes the interface numbered `index`; what to say if someone has it and keeps it.
pub(super) fn take(name: &str, index: u32) -> io::Result<Lock> {
    let address = SocketAddr::from_abstract_name(format!("weir/interface/{index}"))?;
    let until = clock::now() + PATIENCE;
    loop {
        match UnixListener::bind_addr(&address) {
            Ok(socket) => return Ok(Lock { _socket: socket }),
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(error),
            Err(error) if clock::now() >= until => {
                return Err(io::Error::new(error.kind(), format!("{name} is in use by another Weir")));
            }
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn second_taker_is_refused() {
        let lock = super::take("x", u32::MAX).unwrap();
        assert_eq!(super::take("x", u32::MAX).unwrap_err().to_string(), "x is in use by another Weir");
        drop(lock);
        super::take("x", u32::MAX).unwrap();
    }
}
