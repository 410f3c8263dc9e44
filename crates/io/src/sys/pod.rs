//! Plain data: types that are nothing but their bytes.

/// A type shared with the kernel or with another process as bytes.
///
/// # Safety
/// Any bit pattern is a value of the type, it has no padding, and it holds neither references nor
/// descriptors: another process may write it at any time.
pub unsafe trait Pod: Copy + 'static {}

// SAFETY: integers have no padding and no invalid values.
unsafe impl Pod for u8 {}
// SAFETY: as above.
unsafe impl Pod for u32 {}
// SAFETY: as above.
unsafe impl Pod for i32 {}
// SAFETY: as above.
unsafe impl Pod for u64 {}
// SAFETY: an array has no padding between elements.
unsafe impl<T: Pod, const N: usize> Pod for [T; N] {}
// SAFETY: a `repr(C)` structure of integers and arrays of integers; the assertion below adds up their
// sizes, so there is no padding.
unsafe impl Pod for weir_core::flow::Record {}
const _: () = {
    // Numbers; pace and count; key and template; echoes and doubt.
    let fields = 64 + 56 + 8 + 40 + 24 + 44 + 20;
    assert!(size_of::<weir_core::flow::Record>() == fields);
};

// SAFETY: `repr(C)` structures of `u64` and arrays of it; the assertion below adds up their sizes, so there is no padding.
unsafe impl Pod for weir_core::gateway::GatewayStats {}
// SAFETY: as above.
unsafe impl Pod for weir_core::gateway::ClassAccount {}
const _: () = {
    use weir_core::gateway::{ClassAccount, GatewayStats, PassReason};
    use weir_core::stats::DropReason;
    // The ledger with drops by reason; what passed by reason; eight more.
    assert!(size_of::<GatewayStats>() == 8 * (4 + DropReason::ALL.len() + PassReason::ALL.len() + 8));
    // The identity; the totals of a class, three of which are of packets that are only scheduled.
    assert!(size_of::<ClassAccount>() == 8 * (1 + 25));
};

// SAFETY: a `repr(C)` structure of integers and arrays of integers; the assertion below adds up their sizes.
unsafe impl Pod for weir_core::gateway::Condition {}
const _: () = assert!(size_of::<weir_core::gateway::Condition>() == 4 * 16 + 2 * 4 + 2 + 1 + 1 + 4);

/// The bytes of a value.
pub fn bytes_of<T: Pod>(value: &T) -> &[u8] {
    // SAFETY: `value` is valid for reads of its size, has no padding (`Pod`), and the result
    // borrows it.
    unsafe { std::slice::from_raw_parts((value as *const T).cast(), size_of::<T>()) }
}

/// The value at the start of `bytes`, `None` if they are too few.
pub fn read<T: Pod>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: the slice holds as many bytes as the type; any pattern is a value (`Pod`); the read
    // does not need alignment.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_way_through_bytes() {
        let value = [1u32, 2, 3];
        assert_eq!(read::<[u32; 3]>(bytes_of(&value)), Some(value));
        assert_eq!(read::<u64>(&[0; 7]), None);
    }
}
