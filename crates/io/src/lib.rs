//! Weir on Linux: BPF programs that steer frames, packet sockets, the driver loop that runs a
//! [`Node`](weir_core::node::Node) in real time, and the supervisor that keeps traffic flowing
//! when the engine does not.
//!
//! - [`bpf`] loads the programs and mirrors their maps.
//! - [`port`] moves frames between the kernel and the pool of the core.
//! - [`driver`] is the loop: receive, step missed deadlines, hand in, transmit, sleep, spin.
//! - [`supervise`] checks and sets up the host, runs the engine as a child process, follows the interfaces, and
//!   flushes and restores when the engine ends, however it ends.
//! - [`log`] writes lines to standard error for processes that must not wait.
//! - [`sys`] is the thin layer of system calls below them: nearly all `unsafe` of Weir is there.
//!
//! Left out: several engines, receive rings of packet sockets, hardware stamps, packets longer than 64 KiB.
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(not(target_os = "linux"))]
compile_error!("weir-io is Linux only");

pub mod bpf;
pub mod driver;
pub mod log;
pub mod port;
pub mod supervise;
pub mod sys;
