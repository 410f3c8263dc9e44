//! Messages of any length between two processes. The text of a message is a file in memory, and its
//! descriptor crosses over. Neither side ever waits for the other, and messages arrive whole.

use rustix::fs::{memfd_create, MemfdFlags};
use rustix::io::Errno;
use rustix::net::{
    recvmsg, sendmsg, socketpair, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

/// Longest message that is accepted.
const LONGEST: u64 = 1 << 28;

/// One end of a connection between two processes. It holds some ten messages under way.
#[derive(Debug)]
pub struct Letters {
    fd: OwnedFd,
}

impl Letters {
    /// Creates both ends.
    pub fn pair() -> io::Result<(Letters, Letters)> {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Letters { fd: a }, Letters { fd: b }))
    }

    /// Sends a message without waiting. Fails if too many are under way or the other end is gone.
    pub fn send(&self, text: &[u8]) -> io::Result<()> {
        let mut file = File::from(memfd_create("letter", MemfdFlags::CLOEXEC)?);
        file.write_all(text)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = [file.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&files));
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(&self.fd, &[IoSlice::new(b"!")], &mut control, flags)?;
        Ok(())
    }

    /// Takes the next message, `None` without one. Fails if the other end is gone.
    pub fn take(&self) -> io::Result<Option<Vec<u8>>> {
        match self.receive(RecvFlags::DONTWAIT) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            letter => letter.map(Some),
        }
    }

    /// Waits for the next message. Fails if the other end is gone.
    pub fn wait(&self) -> io::Result<Vec<u8>> {
        self.receive(RecvFlags::empty())
    }

    fn receive(&self, flags: RecvFlags) -> io::Result<Vec<u8>> {
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut mark = [0];
            let flags = flags | RecvFlags::CMSG_CLOEXEC;
            match recvmsg(&self.fd, &mut [IoSliceMut::new(&mut mark)], &mut control, flags) {
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(message) if message.bytes == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
            }
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(mut files) = message {
                    return files.next().ok_or(io::ErrorKind::InvalidData.into()).and_then(read);
                }
            }
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// Reads the whole file. The descriptor's offset is the writer's, at the end.
fn read(file: OwnedFd) -> io::Result<Vec<u8>> {
    let file = File::from(file);
    let length = file.metadata()?.len();
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length as usize];
    file.read_exact_at(&mut text, 0)?;
    Ok(text)
}

impl AsFd for Letters {
    /// Readable when a message has come or the other end is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_letters_arrive_whole_and_in_order() {
        let (here, there) = Letters::pair().unwrap();
        assert_eq!(there.take().unwrap(), None);
        let long = vec![7; 3_000_000];
        here.send(&long).unwrap();
        here.send(b"").unwrap();
        assert_eq!(there.wait().unwrap(), long);
        assert_eq!(there.take().unwrap().unwrap(), b"");
        assert_eq!(there.take().unwrap(), None);
    }

    #[test]
    fn a_reader_that_is_stuck_or_gone_holds_nobody_up() {
        let (here, there) = Letters::pair().unwrap();
        let sent = (0..10_000).take_while(|_| here.send(b"x").is_ok()).count();
        assert!((1..10_000).contains(&sent), "{sent}");
        drop(there);
        assert!(here.send(b"x").is_err());
        assert_eq!(here.take().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
