//! One Weir per interface: a socket in the abstract name space, which the kernel keeps per network
//! namespace and frees when the last process that holds it ends.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Holds an interface.
#[derive(Debug)]
pub(super) struct Lock {
    _socket: UnixListener,
}

/// Takes the interface numbered `index`; what to say if someone has it.
pub(super) fn take(name: &str, index: u32) -> io::Result<Lock> {
    let address = SocketAddr::from_abstract_name(format!("weir/interface/{index}"))?;
    match UnixListener::bind_addr(&address) {
        Ok(socket) => Ok(Lock { _socket: socket }),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let message = format!("{name} is in use by another Weir");
            Err(io::Error::new(io::ErrorKind::AddrInUse, message))
        }
        Err(error) => Err(error),
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
