//! Plain data: types that consist only of their bytes.

/// A type shared with the kernel or with another process as bytes.
///
/// # Safety
/// Any bit pattern is a value of the type, and it has no padding. It holds neither references nor
/// descriptors: another process may write it at any time.
pub unsafe trait Pod: Copy + 'static {}

// SAFETY: integers have no padding and no invalid values.
unsafe impl Pod for u8 {}
// SAFETY: integers have no padding and no invalid values.
unsafe impl Pod for u32 {}
// SAFETY: integers have no padding and no invalid values.
unsafe impl Pod for i32 {}
// SAFETY: integers have no padding and no invalid values.
unsafe impl Pod for u64 {}
// SAFETY: an array has no padding between elements.
unsafe impl<T: Pod, const N: usize> Pod for [T; N] {}
// SAFETY: a `repr(C)` structure of integers and arrays of integers. The assertion below adds up their sizes,
// so there is no padding.
unsafe impl Pod for weir_core::flow::Record {}
const _: () = {
    // Numbers; pace and count; key and template; echoes and doubt.
    let fields = 64 + 56 + 8 + 40 + 24 + 44 + 20;
    assert!(size_of::<weir_core::flow::Record>() == fields);
};

// SAFETY: `repr(C)` structures of `u64` and arrays of it. The assertion below adds up their sizes, so there
// is no padding.
unsafe impl Pod for weir_core::gateway::GatewayStats {}
// SAFETY: as for `GatewayStats`.
unsafe impl Pod for weir_core::gateway::ClassAccount {}
const _: () = {
    use weir_core::gateway::{ClassAccount, GatewayStats, PassReason};
    use weir_core::stats::DropReason;
    // The ledger with drops by reason; passed packets by reason; eight more.
    assert!(size_of::<GatewayStats>() == 8 * (4 + DropReason::ALL.len() + PassReason::ALL.len() + 8));
    // The identity; the totals of a class, three of them for packets that are only scheduled.
    assert!(size_of::<ClassAccount>() == 8 * (1 + 29 + 2 * 14));
};

// SAFETY: a `repr(C)` structure of integers and arrays of integers. The assertion below adds up their sizes.
unsafe impl Pod for weir_core::gateway::Condition {}
const _: () = assert!(size_of::<weir_core::gateway::Condition>() == 4 * 16 + 2 * 4 + 2 + 1 + 1 + 4);

/// The bytes of a value.
pub fn bytes_of<T: Pod>(value: &T) -> &[u8] {
    // SAFETY: `value` is valid for reads of its size and has no padding (`Pod`). The result borrows it.
    unsafe { std::slice::from_raw_parts((value as *const T).cast(), size_of::<T>()) }
}

/// Reads the value at the start of `bytes`, `None` if they are too few.
pub fn read<T: Pod>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: the slice has the size of the type, any pattern is a value (`Pod`), and the read needs no
    // alignment.
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
