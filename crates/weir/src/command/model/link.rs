//! `weir model link`: drives one link of the simulator by a list of arrivals, so that other programs can
//! compare it with their own references.
//!
//! Each line of standard input is an arrival: its time in nanoseconds, the bytes of its IP packet, the number
//! of its flow and its ECN field, in the order of times. Each line of the output is a frame that leaves: its
//! number, counted from 0, the time in nanoseconds, and its ECN field. Frames that are not there were
//! dropped; lines that begin with `#` count them by their reasons.

use crate::command::error::Failure;
use crate::command::link_options::LinkOptions;
use crate::experiment::config::diag::Fault;
use std::fmt::Write;
use std::io::Read;
use weir_core::frame::Frames;
use weir_core::link::Link;
use weir_core::node::{Cx, Node, PortSet};
use weir_core::time::Time;

/// Arguments of `weir model link`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  printf '0 1500 1 0\\n100 1500 1 0\\n' | weir model link --rate 10Mbit --overhead 0 --aqm codel")]
pub struct Args {
    /// The link.
    #[command(flatten)]
    link: LinkOptions,
    /// Seed of random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// A frame that arrives.
struct Arrival {
    at: Time,
    bytes: u16,
    flow: u16,
    ecn: u8,
}

/// Length of the headers of Ethernet, IPv4 and TCP. Links read nothing else of a frame.
const HEADERS: usize = 54;
const ETHERNET: usize = 14;
/// Offset of the byte with the ECN field.
const TOS: usize = ETHERNET + 1;
/// Bytes that carry a frame's number.
const NUMBER: core::ops::Range<usize> = 38..42;

/// Reads arrivals and prints departures.
pub fn run(args: &Args) -> Result<(), Failure> {
    let said = |faults: Vec<Fault>| faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n");
    let path = args.link.path(None).map_err(|faults| Failure::Input(said(faults)))?;
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|e| Failure::Input(e.to_string()))?;
    let arrivals = arrivals(&text).map_err(Failure::Input)?;
    let config = weir_core::link::Config { seed: args.seed, ..path.wan_out };
    super::super::print(&Driven::new(config).all(&arrivals))
}

fn arrivals(text: &str) -> Result<Vec<Arrival>, String> {
    let mut last = Time::ZERO;
    let one = |(i, line): (usize, &str)| {
        let wrong =
            || format!("line {}: a time that is no earlier, bytes from 40 to 65535, flow, ECN", i + 1);
        let words: Vec<u64> =
            line.split(' ').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let [at, bytes @ 40..=65_535, flow @ 0..=60_000, ecn @ 0..=3] = words[..] else {
            return Err(wrong());
        };
        let at = Time::from_nanos(at);
        if at < std::mem::replace(&mut last, at) {
            return Err(wrong());
        }
        Ok(Arrival { at, bytes: bytes as u16, flow: flow as u16, ecn: ecn as u8 })
    };
    text.lines().enumerate().map(one).collect()
}

impl Arrival {
    /// Returns the headers of the frame, a segment with this number. Disciplines with queues for flows read
    /// those of valid headers.
    fn headers(&self, number: u32) -> [u8; HEADERS] {
        let mut headers = [0; HEADERS];
        let mut put = |at: usize, bytes: &[u8]| headers[at..at + bytes.len()].copy_from_slice(bytes);
        put(12, &[0x08, 0x00, 0x45, self.ecn]);
        put(ETHERNET + 2, &self.bytes.to_be_bytes());
        put(ETHERNET + 8, &[64, 6]);
        put(ETHERNET + 12, &[10, 0, 0, 1, 10, 0, 0, 2]);
        put(34, &(1000 + self.flow).to_be_bytes());
        put(36, &80u16.to_be_bytes());
        put(NUMBER.start, &number.to_be_bytes());
        // Data offset, ACK, window.
        put(46, &[0x50, 0x10, 0xff, 0xff]);
        let sum = internet_checksum(&headers[ETHERNET..34]);
        headers[24..26].copy_from_slice(&sum.to_be_bytes());
        headers
    }
}

/// Returns the checksum of RFC 1071.
fn internet_checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// A link, and the frames that have left it.
struct Driven {
    link: Link,
    frames: Frames,
    out: String,
}

impl Driven {
    fn new(config: weir_core::link::Config) -> Driven {
        Driven { link: Link::new(config), frames: Frames::growing(256), out: String::new() }
    }

    fn all(mut self, arrivals: &[Arrival]) -> String {
        for (number, arrival) in (0..).zip(arrivals) {
            self.until(arrival.at);
            let len = ETHERNET + usize::from(arrival.bytes);
            let frame = self.frames.receive_copy(&arrival.headers(number), len, arrival.at);
            let mut cx = Cx { now: arrival.at, frames: &mut self.frames };
            // The pool grows.
            if let Some(frame) = frame {
                self.link.handle_frame(&mut cx, Link::IN, frame);
            }
        }
        self.until(Time::from_nanos(u64::MAX / 4));
        let drops = self.frames.drops();
        for (reason, count) in drops.iter().filter(|&(_, count)| count > 0) {
            let _ = writeln!(self.out, "# {} {count}", reason.name());
        }
        self.out
    }

    /// Prints the frames that leave until then.
    fn until(&mut self, then: Time) {
        while let Some(due) = self.link.next_deadline(PortSet::ALL).filter(|&due| due <= then) {
            let mut cx = Cx { now: due, frames: &mut self.frames };
            while let Some(sent) = self.link.poll_transmit(&mut cx, PortSet::ALL) {
                let bytes = cx.frames.bytes(&sent.frame);
                let number = bytes[NUMBER].iter().fold(0u32, |number, &byte| number << 8 | u32::from(byte));
                // Writing to a string does not fail.
                let _ = writeln!(self.out, "{number} {} {}", sent.at.as_nanos(), bytes[TOS] & 3);
                cx.frames.transmitted(sent.frame);
            }
        }
    }
}
