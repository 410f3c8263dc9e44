//! Test runs in which each repetition is of another flow, as `turns.bpf.c` chooses it.

use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput, ProgramMut};
use std::error::Error;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Instant;

#[repr(C, align(8))]
struct Aligned<B: ?Sized>(B);
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/turns.bpf.o")));

/// Flows, and those of each class: as in `turns.bpf.c`.
pub const FLOWS: u32 = 100_000;
pub const OF_CLASS: u32 = 10;
pub const FIRST_PORT: u16 = 1000;

/// `struct turns`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    /// There are many flows.
    pub many: bool,
    /// Offset of the last 16 bits of the customer's address.
    pub host: u32,
    /// Offset of the customer's port.
    pub port: u32,
    /// Offset of TCP's header; 0: there is none.
    pub tcp: u32,
    /// Bytes that a flow's sequence number grows by from turn to turn.
    pub each: u32,
    /// First sequence number.
    pub from: u32,
}

impl Turns {
    fn bytes(&self) -> Vec<u8> {
        let words = [u32::from(self.many), self.host, self.port, self.tcp, self.each, self.from];
        words.into_iter().flat_map(u32::to_ne_bytes).collect()
    }
}

/// The loaded programs.
pub struct Driver {
    object: Object,
}

impl Driver {
    /// Loads them for these turns.
    pub fn load(turns: Turns) -> Result<Driver, Box<dyn Error>> {
        let mut open = ObjectBuilder::default().open_memory(&OBJECT.0)?;
        let mut words = open.maps_mut().find(|map| map.name().to_string_lossy().ends_with(".rodata"));
        words.as_mut().ok_or("no constants")?.set_initial_value(&turns.bytes())?;
        Ok(Driver { object: open.load()? })
    }

    fn named(&self, name: &str) -> ProgramMut<'_> {
        self.object.progs_mut().find(|p| p.name() == name).expect("the object has this program")
    }

    /// Nanoseconds of each of this many turns with `frame`, and of `program` or nothing behind it.
    pub fn time(
        &self,
        program: Option<BorrowedFd<'_>>,
        frame: &[u8],
        times: u32,
    ) -> Result<f64, Box<dyn Error>> {
        let measured = self.object.maps().find(|map| map.name() == "measured").ok_or("no programs")?;
        let nothing = self.named("nothing");
        let program = program.unwrap_or(nothing.as_fd());
        measured.update(&0u32.to_ne_bytes(), &program.as_raw_fd().to_ne_bytes(), MapFlags::ANY)?;
        let input = ProgramInput { data_in: Some(frame), repeat: times, ..ProgramInput::default() };
        let from = Instant::now();
        self.named("turns_take").test_run(input)?;
        // The kernel says how long each took in whole nanoseconds.
        Ok(from.elapsed().as_nanos() as f64 / f64::from(times))
    }
}
