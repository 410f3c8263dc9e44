//! Files that commands write: each whole or not at all.

#[cfg(feature = "linux")]
mod linux;
#[cfg(not(feature = "linux"))]
mod portable;

#[cfg(feature = "linux")]
pub use linux::Target;
#[cfg(not(feature = "linux"))]
pub use portable::Target;
