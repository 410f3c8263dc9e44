//! Memory for what a flow's law keeps of it.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of a flow's record that belong to the law by which it is held and released. Each law has a struct of
/// its own for them (`law_state!`). A flow that comes to another law begins with that law's state.
#[derive(Clone, Copy, Debug, Default, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(transparent)]
pub struct LawState([u64; 7]);

/// Declares a law's struct for the bytes of [`LawState`], and the names under which they are seen as such.
macro_rules! law_state {
    ($vis:vis $state:ty, $get:ident, $get_mut:ident) => {
        impl From<$state> for crate::flow::LawState {
            fn from(state: $state) -> crate::flow::LawState {
                zerocopy::transmute!(state)
            }
        }
        impl crate::flow::LawState {
            #[doc = concat!("Returns the state as a [`", stringify!($state), "`].")]
            #[inline(always)]
            $vis fn $get(&self) -> &$state {
                zerocopy::transmute_ref!(self)
            }
            #[doc = concat!("Returns the state as a [`", stringify!($state), "`], for changes.")]
            #[inline(always)]
            $vis fn $get_mut(&mut self) -> &mut $state {
                zerocopy::transmute_mut!(self)
            }
        }
    };
}
pub(crate) use law_state;
