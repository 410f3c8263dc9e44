//! Capture files of headers only, with times in nanoseconds (draft-ietf-opsawg-pcap).

use std::io::{self, Write};
use weir_core::time::Time;
use weir_core::wire::checksum;

/// Magic number for times in nanoseconds; it also tells the byte order.
const MAGIC: u32 = 0xa1b2_3c4d;
/// Version of the format, 2.4.
const VERSION: [u16; 2] = [2, 4];
/// Upper limit of a frame's length.
const SNAP_LENGTH: u32 = 262_144;
/// Link type of frames that begin with an Ethernet header.
const ETHERNET: u32 = 1;

/// Capture file being written.
pub struct Pcap<W> {
    to: W,
    whole: Vec<u8>,
}

impl<W: Write> Pcap<W> {
    /// Writes the file header.
    pub fn begin(mut to: W) -> io::Result<Pcap<W>> {
        let version = VERSION.map(u16::to_le_bytes).concat();
        // Time zone and accuracy are always 0.
        let rest = [0, 0, SNAP_LENGTH, ETHERNET].map(u32::to_le_bytes).concat();
        to.write_all(&[&MAGIC.to_le_bytes()[..], &version, &rest].concat())?;
        Ok(Pcap { to, whole: Vec::new() })
    }

    /// Writes a frame of `len` bytes of which `head` is present. The payload has only a length, and counts as
    /// zeros in the checksum.
    pub fn frame(&mut self, at: Time, head: &[u8], len: usize) -> io::Result<()> {
        self.whole.clear();
        self.whole.extend(head);
        self.whole.resize(len.max(head.len()), 0);
        checksum::complete(&mut self.whole, len);
        let (s, ns) = (at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000);
        let record = [s as u32, ns as u32, head.len() as u32, len as u32].map(u32::to_le_bytes).concat();
        self.to.write_all(&record)?;
        self.to.write_all(&self.whole[..head.len()])
    }

    /// Ends the file.
    pub fn end(mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Verifies a segment from 10.0.0.1:1 to 10.0.0.2:2 with one byte of payload, summed by hand.
    #[test]
    fn a_frame_by_hand() {
        // The IP header sums 4500 + 0029 + 4000 + 4006 + 0a00 + 0001 + 0a00 + 0002 to 0xd932, its complement
        // 0x26cd.
        let mut head = vec![2; 12];
        head.extend([8, 0, 0x45, 0, 0, 41, 0, 0, 0x40, 0, 64, 6, 0x26, 0xcd, 10, 0, 0, 1, 10, 0, 0, 2]);
        head.extend([0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0xff, 0xff, 0, 0]);
        let mut out = Vec::new();
        let mut file = Pcap::begin(&mut out).unwrap();
        file.frame(Time::from_nanos(3_000_000_007), &head, 55).unwrap();
        file.end().unwrap();
        assert_eq!(&out[..4], [0x4d, 0x3c, 0xb2, 0xa1]);
        assert_eq!(out.len(), 24 + 16 + 54);
        assert_eq!(&out[24..40], [3, 0, 0, 0, 7, 0, 0, 0, 54, 0, 0, 0, 55, 0, 0, 0]);
        // The pseudo-header is 0a00 + 0001 + 0a00 + 0002 + 0006 + 0015 (21 bytes), the header 0001 + 0002 +
        // 5010. The sum is 0x6431, its complement 0x9bce.
        assert_eq!(&out[40 + 50..40 + 52], [0x9b, 0xce]);
        assert_eq!(&out[40..40 + 50], &head[..50]);
    }
}
