//! Weir on Linux: BPF programs that steer frames, packet sockets, the driver loop that runs a
//! [`Node`](weir_core::node::Node) in real time, and the supervisor that keeps traffic flowing without an
//! engine.
//!
//! - [`bpf`] loads the programs and mirrors their maps.
//! - [`port`] moves frames between the kernel and the pool of the core.
//! - [`driver`] is the loop: receive, step missed deadlines, hand in, transmit, sleep, spin.
//! - [`supervise`] checks and sets up the host, runs the engine as a child process, and follows the
//!   interfaces. It flushes and restores when the engine ends, for whatever reason.
//! - [`log`] writes lines to standard error for processes that must not wait.
//! - [`sys`] is the thin layer of system calls below them. It holds nearly all `unsafe` code of Weir.
//!
//! Left out: receive rings of packet sockets, hardware stamps, packets longer than 64 KiB.
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(not(target_os = "linux"))]
compile_error!("weir-io is Linux only");

pub mod bpf;
pub mod driver;
pub mod log;
pub mod port;
pub mod supervise;
pub mod sys;
