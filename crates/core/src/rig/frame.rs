//! Frames to hand in.

use crate::frame::Checksum;

/// A frame to hand in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestFrame {
    /// The bytes present, from the Ethernet header on.
    pub head: Vec<u8>,
    /// Length of the frame in bytes, at least `head.len()`.
    pub len: usize,
    /// Segment size, see [`Frame::gso_size`](crate::frame::Frame::gso_size).
    pub gso_size: u16,
    /// Checksum state, see [`Frame::checksum`](crate::frame::Frame::checksum).
    pub checksum: Checksum,
}

impl TestFrame {
    /// Returns a frame of these bytes.
    pub fn bytes(head: &[u8]) -> TestFrame {
        TestFrame { head: head.to_vec(), len: head.len(), gso_size: 0, checksum: Checksum::Unknown }
    }
    /// Returns a frame of `n` zero bytes.
    pub fn zeros(n: usize) -> TestFrame {
        TestFrame::bytes(&vec![0; n])
    }
    /// Makes the frame `len` bytes long. Bytes beyond those present are absent.
    #[must_use]
    pub fn long(mut self, len: usize) -> TestFrame {
        self.len = len.max(self.head.len());
        self
    }
    /// Makes it stand for segments of `size` payload bytes each.
    #[must_use]
    pub fn gso(mut self, size: u16) -> TestFrame {
        self.gso_size = size;
        self
    }
    /// Sets the state of its transport checksum.
    #[must_use]
    pub fn checksum(mut self, checksum: Checksum) -> TestFrame {
        self.checksum = checksum;
        self
    }
}

impl From<&[u8]> for TestFrame {
    fn from(bytes: &[u8]) -> TestFrame {
        TestFrame::bytes(bytes)
    }
}

impl From<&Vec<u8>> for TestFrame {
    fn from(bytes: &Vec<u8>) -> TestFrame {
        TestFrame::bytes(bytes)
    }
}

impl From<Vec<u8>> for TestFrame {
    fn from(bytes: Vec<u8>) -> TestFrame {
        TestFrame::bytes(&bytes)
    }
}

impl<const N: usize> From<&[u8; N]> for TestFrame {
    fn from(bytes: &[u8; N]) -> TestFrame {
        TestFrame::bytes(bytes)
    }
}
