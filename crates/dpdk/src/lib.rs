//! Ports of DPDK: its devices, real and virtual, by the words that DPDK itself has
//! for them, as one more backend behind [`ports::Port`].
//!
//! The library is asked for by the feature `dpdk`. Without it this crate has nothing
//! of it, needs nothing of it, and [`open`] refuses in a sentence that says how to
//! build what would not.
//!
//! What DPDK's structures look like is known to `shim/shim.c` alone, which is compiled
//! against its headers; here it is a few functions over plain values. `unsafe` is in
//! `device`, `eal` and `frames` only.

mod arguments;
#[cfg(feature = "dpdk")]
mod device;
#[cfg(feature = "dpdk")]
mod eal;
#[cfg(feature = "dpdk")]
mod frames;
#[cfg(feature = "dpdk")]
mod port;
#[cfg(feature = "dpdk")]
mod queue;
#[cfg(feature = "dpdk")]
mod shim;

use std::num::NonZeroUsize;

pub use arguments::{Arguments, BUFFERS_MAX, BadArguments};
use ports::{OpenError, Port};

/// Whether devices can be opened at all.
pub const IS_THERE: bool = cfg!(feature = "dpdk");

/// Opens the device that `arguments` name, promiscuously, with a receive and a transmit
/// queue for each of so many workers, as far as the device has them.
///
/// The first call starts DPDK in this process: in memory of its own, and without a
/// thread that would be in the workers' way.
///
/// # Errors
/// See [`OpenError`]; each says what to do.
#[cfg(feature = "dpdk")]
pub fn open(arguments: &Arguments, queues: NonZeroUsize) -> Result<Box<dyn Port>, OpenError> {
    Ok(Box::new(port::Dpdk::open(arguments, queues)?))
}

/// Refuses: this was built without DPDK.
///
/// # Errors
/// Always [`OpenError::NoDpdk`].
#[cfg(not(feature = "dpdk"))]
pub fn open(arguments: &Arguments, _: NonZeroUsize) -> Result<Box<dyn Port>, OpenError> {
    Err(OpenError::NoDpdk {
        name: arguments.device().to_owned(),
    })
}
