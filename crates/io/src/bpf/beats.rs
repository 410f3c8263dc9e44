//! Beats of the engines whose programs are on an interface, whichever process they belong to.

use super::attach::programs_of_ours;
use crate::sys::check_fd;
use libbpf_rs::libbpf_sys as sys;
use std::os::fd::{AsRawFd, OwnedFd};
use weir_core::time::Time;

/// Most maps of a program that are looked at.
const MAPS: usize = 64;
/// Largest entry of a map that is read.
const ENTRY: usize = 4096;
/// Name of the map whose entries begin with an engine's last beat (`struct hooks`).
const NAME: &[u8] = b"hooks";

/// Returns the last beat of any engine whose programs are on the interface. `None` if there is none, or
/// asking is not permitted.
pub fn last_beat_on(ifindex: u32) -> Option<Time> {
    let maps = programs_of_ours(ifindex).into_iter().flat_map(maps_of);
    maps.filter_map(beat_in).max().filter(|beat| *beat > Time::ZERO)
}

/// Numbers of the maps of a program.
fn maps_of(program: u32) -> Vec<u32> {
    // SAFETY: the result is a new descriptor if not negative.
    let Ok(program) = (unsafe { check_fd(sys::bpf_prog_get_fd_by_id(program).max(-1)) }) else {
        return Vec::new();
    };
    let mut numbers = [0u32; MAPS];
    // SAFETY: zero is a valid value of this structure of integers.
    let mut info: sys::bpf_prog_info = unsafe { std::mem::zeroed() };
    (info.nr_map_ids, info.map_ids) = (MAPS as u32, numbers.as_mut_ptr() as u64);
    let mut len = size_of_val(&info) as u32;
    // SAFETY: `info` is valid for writes of `len` bytes, and `map_ids` for as many numbers as it says.
    let told = unsafe { sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &mut info, &mut len) };
    let count = if told == 0 { MAPS.min(info.nr_map_ids as usize) } else { 0 };
    numbers[..count].to_vec()
}

/// Returns the latest beat in the map, if it is one of beats.
fn beat_in(map: u32) -> Option<Time> {
    // SAFETY: the result is a new descriptor if not negative.
    let map: OwnedFd = unsafe { check_fd(sys::bpf_map_get_fd_by_id(map).max(-1)) }.ok()?;
    // SAFETY: zero is a valid value of this structure of integers.
    let mut info: sys::bpf_map_info = unsafe { std::mem::zeroed() };
    let mut len = size_of_val(&info) as u32;
    // SAFETY: `info` is valid for writes of `len` bytes.
    let told = unsafe { sys::bpf_map_get_info_by_fd(map.as_raw_fd(), &mut info, &mut len) };
    let name = info.name.iter().map(|&c| c as u8).take_while(|&c| c != 0);
    let size = info.value_size as usize;
    if told != 0 || !name.eq(NAME.iter().copied()) || !(8..=ENTRY).contains(&size) {
        return None;
    }
    (0..info.max_entries).filter_map(|entry| first_word(&map, entry)).max().map(Time::from_nanos)
}

fn first_word(map: &OwnedFd, entry: u32) -> Option<u64> {
    let mut value = [0u8; ENTRY];
    // SAFETY: the key is valid for reads of four bytes, and the value for writes of the map's entries, which
    // the caller has found to be no longer.
    let found = unsafe {
        sys::bpf_map_lookup_elem(map.as_raw_fd(), (&raw const entry).cast(), value.as_mut_ptr().cast())
    };
    (found == 0).then(|| u64::from_ne_bytes(std::array::from_fn(|i| value[i])))
}
