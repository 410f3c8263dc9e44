//! `acks.bpf.c` run by the kernel (`BPF_PROG_TEST_RUN`): each row of the table of what a hook does, and the
//! same random segments through it and through the functions of [`weir_core::steer`].

mod absence;
mod bound;
mod count;
mod differential;
mod giants;
mod many;
mod observe;
mod openings;
mod random;
pub mod rig;
mod rows;
mod several;
mod sight;
