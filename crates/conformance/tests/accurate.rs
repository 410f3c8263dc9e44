//! Marks that a sender counts by Accurate ECN through every middlebox (RFC 9768).

use std::env;
use weir_conformance::accurate::{Codepoint, Counts, Receiver};
use weir_conformance::script::{Opening, MSS};
use weir_conformance::{subjects, Form, Script, Side, Verdict};
use weir_core::node::{Node, Port};
use weir_core::rig::Rig;
use weir_core::rng::Rng;
use weir_core::time::Duration;
use weir_core::wire::Flags;

/// Packets whose ACKs come at once, at most. At the rate of the suite they are released within
/// [`RELEASED`].
const BATCH: u32 = 100;
const RELEASED: Duration = Duration::from_millis(1_500);

/// Marks of a stream of packets.
#[derive(Clone, Copy, Debug)]
enum Marks {
    /// Marked packets of a thousand.
    Permille(u64),
    /// Thirty unmarked packets after thirty marked ones, on average.
    Bursts,
}

const SHARES: [Marks; 4] = [Marks::Permille(0), Marks::Permille(10), Marks::Permille(100), Marks::Bursts];

/// ACKs of a stream with the option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Options {
    /// All.
    All,
    /// Half of them, and the last of a batch.
    Half,
    /// None.
    None,
}

/// ACKs of a stream that are lost. The last of a batch never is. Behind a middlebox an ACK stands for more
/// than seven packets, or the next one does, and counters of bytes alone are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    None,
    /// A third, before the middlebox, in runs.
    Before,
    /// A tenth, behind the middlebox.
    Behind,
}

/// A stream of packets through a middlebox.
#[derive(Clone, Copy, Debug)]
struct Stream {
    marks: Marks,
    options: Options,
    lost: Lost,
    /// Codepoint of unmarked packets.
    other: Codepoint,
}

impl Stream {
    fn all() -> Vec<Stream> {
        let mut all = Vec::new();
        for marks in SHARES {
            for options in [Options::All, Options::Half, Options::None] {
                for lost in [Lost::None, Lost::Before, Lost::Behind] {
                    if (options, lost) == (Options::None, Lost::Behind) {
                        continue;
                    }
                    let other = if all.len() % 2 == 0 { Codepoint::Ect0 } else { Codepoint::Ect1 };
                    all.push(Stream { marks, options, lost, other });
                }
            }
        }
        all
    }

    /// Most packets that an ACK which comes may acknowledge. Without the option a sender takes the counter of
    /// more than seven for one that has gone around (RFC 9768 §3.2.2.5). With the option it is sure of 15:
    /// beyond, nine marked packets of 24 have more than half of the bytes of 17 (appendix A.2.2).
    fn acknowledged(&self) -> u32 {
        match (self.lost, self.options) {
            (Lost::Before, Options::All) => 15,
            _ => 7,
        }
    }
}

/// A connection whose packets cross a middlebox, from its receiver to the sender's counts.
struct Connection {
    rng: Rng,
    script: Script,
    receiver: Receiver,
    counts: Counts,
    rig: Rig<Box<dyn Node>>,
    sender: Port,
    /// The next packet is one of a burst.
    bursts: bool,
}

impl Connection {
    /// Connection whose counters of bytes wrap within the first packets.
    fn open(form: &Form, seed: u64) -> Connection {
        let mut rng = Rng::new(seed);
        let before = [0; 3].map(|_| (1 << 24) - 1 - rng.below(10_000) as u32);
        let mut script = Script::new(0);
        script.always(Flags::of_ace(5));
        script.open(Opening { flags: (Flags::of_ace(7), Flags::of_ace(2)), ..Opening::default() });
        Connection {
            rng,
            script,
            receiver: Receiver::after(before),
            counts: Counts::after(before),
            rig: Rig::new(form.node()),
            sender: form.sender,
            bursts: false,
        }
    }

    fn packet(&mut self, stream: &Stream) {
        let marked = match stream.marks {
            Marks::Permille(permille) => self.rng.below(1_000) < permille,
            Marks::Bursts => {
                self.bursts ^= self.rng.below(30) == 0;
                self.bursts
            }
        };
        self.receiver.packet(if marked { Codepoint::Ce } else { stream.other });
    }

    /// Sends an ACK of all that has come.
    fn acknowledge(&mut self, stream: &Stream, last: bool) {
        let option = match stream.options {
            Options::All => true,
            Options::Half => last || self.rng.below(2) == 0,
            Options::None => false,
        };
        let backwards = self.rng.below(2) == 0;
        let ack = match option {
            true => self.receiver.ack(&self.script, backwards),
            false => self.receiver.bare_ack(&self.script),
        };
        self.script.put(Side::Receiver, ack);
    }

    /// Sends a batch, and lets the sender hear of it.
    fn batch(&mut self, stream: &Stream) -> Verdict {
        let packets = 1 + self.rng.below(BATCH.into()) as u32;
        self.script.send(self.receiver.bytes() + packets * MSS).wait_ms(20);
        let mut unheard = 0;
        for left in (0..packets).rev() {
            self.packet(stream);
            unheard += 1;
            let due = left == 0 || left % 2 == 0 || self.rng.below(4) == 0;
            let lost = stream.lost == Lost::Before
                && left > 0
                && unheard + 2 < stream.acknowledged()
                && self.rng.below(10) < if unheard > 2 { 9 } else { 3 };
            if due && !lost {
                let pause = [20, 20, 500, 5_000][self.rng.below(4) as usize];
                self.script.wait_us(pause);
                self.acknowledge(stream, left == 0);
                unheard = 0;
            }
        }
        self.play(stream)
    }

    fn play(&mut self, stream: &Stream) -> Verdict {
        let end = self.script.end() + RELEASED;
        for event in self.script.take() {
            let port = if event.from == Side::Sender { self.sender } else { Port(1 - self.sender.0) };
            self.rig.at(event.at).inject(port, event.frame);
        }
        self.script.wait_ms(RELEASED.as_nanos() / 1_000_000);
        let reach: Vec<_> =
            self.rig.run_until(end).into_iter().filter(|sent| sent.port == self.sender).collect();
        for (n, sent) in reach.iter().enumerate() {
            let lost = stream.lost == Lost::Behind && n + 1 < reach.len() && self.rng.below(10) == 0;
            self.counts.take(&self.script, &sent.bytes, &self.receiver, lost)?;
            if stream.lost != Lost::Behind {
                self.counts.have_no_more_marks(&self.receiver)?;
            }
        }
        if stream.lost != Lost::Behind {
            self.counts.have_all_marks(&self.receiver)?;
        }
        match stream.options {
            Options::None => Ok(()),
            _ => self.counts.have_all_bytes(&self.receiver),
        }
    }
}

fn pass(form: &Form, stream: &Stream, seed: u64, packets: u32) -> Verdict {
    let mut connection = Connection::open(form, seed);
    connection.play(stream)?;
    for _ in 0..3 {
        connection.batch(stream)?;
    }
    while connection.receiver.bytes() < packets * MSS {
        connection.batch(stream)?;
    }
    Ok(())
}

/// Each stream passes through one form of each middlebox. `ACCECN_PACKETS=1000000` passes as many packets at
/// each share of marks through each middlebox, in all its forms.
#[test]
#[allow(clippy::disallowed_methods)] // how long a test runs is nothing of the core's
fn a_sender_counts_the_marks_that_its_receiver_got() {
    let packets: Option<u32> = env::var("ACCECN_PACKETS").ok().and_then(|n| n.parse().ok());
    let streams = Stream::all();
    let mut wrong = Vec::new();
    for subject in subjects() {
        let forms: Vec<_> = subject.forms.iter().filter(|form| !form.traits.bounded).collect();
        let count = streams.len() * if packets.is_some() { forms.len() } else { 1 };
        let each = packets.map_or(1, |packets| packets / (count / SHARES.len()) as u32);
        for n in 0..count {
            let (turn, stream) = (n / streams.len(), n % streams.len());
            let (stream, form) = (&streams[stream], forms[(stream + turn) % forms.len()]);
            if let Err(why) = pass(form, stream, n as u64, each) {
                wrong.push(format!("{}, {}, {stream:?}: {why}", subject.name, form.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} streams:\n{}", wrong.len(), wrong.join("\n"));
}
