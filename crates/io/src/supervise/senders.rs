//! Senders that bypass the engine, for the acknowledgements that it held.

use crate::bpf::{role, Hooks};
use crate::sys::packet::{Device, PacketSender};
use std::cell::RefCell;
use std::io;
use std::time::Duration;

/// Most attempts for a frame without room. The next constant is the pause between them.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(1);

/// Senders of frames while no engine sends. The programs in the kernel bring the frames up to date on their
/// way, and discard those that newer ones have overtaken.
#[derive(Debug)]
pub struct Senders {
    lan: RefCell<PacketSender>,
    wan: RefCell<PacketSender>,
    cookies: [u64; 2],
}

/// Result of sending, for the frames in their given order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// True for each frame sent to the LAN.
    pub lan: Vec<bool>,
    /// True for each frame sent to the WAN.
    pub wan: Vec<bool>,
}

impl Senders {
    /// Opens senders towards the LAN and the WAN; `inward` is the role of those for the LAN.
    pub(super) fn open(hooks: &Hooks, lan: Device, wan: Device, inward: u32) -> io::Result<Senders> {
        let (lan, wan) = (PacketSender::open(lan, false)?, PacketSender::open(wan, false)?);
        let cookies = [lan.cookie()?, wan.cookie()?];
        hooks.register_sender(cookies[0], inward | role::RESTAMP)?;
        let registered = hooks.register_sender(cookies[1], role::RESTAMP);
        registered.inspect_err(|_| hooks.forget_sender(cookies[0]))?;
        Ok(Senders { lan: lan.into(), wan: wan.into(), cookies })
    }

    /// Returns whether the interfaces are still those that the sockets were opened on.
    pub(super) fn are_bound(&self) -> bool {
        self.lan.borrow().is_bound() && self.wan.borrow().is_bound()
    }

    pub(super) fn close(self, hooks: &Hooks) {
        self.cookies.into_iter().for_each(|cookie| hooks.forget_sender(cookie));
    }

    /// Sends frames towards the LAN and the WAN.
    pub fn send(&self, to_lan: &[Vec<u8>], to_wan: &[Vec<u8>]) -> Sent {
        Sent { lan: send(&self.lan, to_lan), wan: send(&self.wan, to_wan) }
    }
}

fn send(sender: &RefCell<PacketSender>, frames: &[Vec<u8>]) -> Vec<bool> {
    let mut sent = Vec::with_capacity(frames.len());
    let mut attempts = 0;
    while let Some(rest) = frames.get(sent.len()..).filter(|rest| !rest.is_empty()) {
        match sender.borrow_mut().send(&rest[..rest.len().min(64)]) {
            Ok(count) if count > 0 => {
                sent.resize(sent.len() + count, true);
                attempts = 0;
            }
            Err(error) if attempts >= ATTEMPTS => {
                tracing::debug!("a held acknowledgement could not be sent: {error}");
                sent.push(false);
                // Without room for one frame, there is none for the next.
                if error.raw_os_error() != Some(libc::EMSGSIZE) {
                    sent.resize(frames.len(), false);
                }
            }
            _ => {
                attempts += 1;
                std::thread::sleep(PAUSE);
            }
        }
    }
    sent
}
