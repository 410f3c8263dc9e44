//! Memory that the kernel takes for maps.

use libbpf_rs::{MapType, OpenMapMut};

/// Bytes of an entry of a hash map beside its key and its value, and of a bucket.
const ELEMENT: u64 = 48;
const BUCKET: u64 = 16;

/// Returns the bytes that the kernel allocates for a map when it is made. Maps that allocate their entries
/// one by one take next to nothing then, and those with a value for each processor are small here.
pub(super) fn of_map(map: &OpenMapMut<'_>) -> u64 {
    let entries = u64::from(map.max_entries());
    let [key, value] = [map.key_size(), map.value_size()].map(|size| u64::from(size).next_multiple_of(8));
    match map.map_type() {
        MapType::Array => entries * value,
        MapType::Hash | MapType::LruHash => {
            entries * (ELEMENT + key + value) + entries.next_power_of_two() * BUCKET
        }
        MapType::RingBuf => entries,
        _ => 0,
    }
}
