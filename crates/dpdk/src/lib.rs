//! DPDK ports: physical and virtual devices, named by DPDK's device arguments, as a backend behind
//! [`ports::Port`].
//!
//! The feature `dpdk` enables the library. Without it, this crate does not depend on DPDK, and
//! [`open`] returns an error that explains the build.
//!
//! Only `shim/shim.c`, compiled against DPDK's headers, depends on the layout of DPDK's structures;
//! Rust sees a few functions with plain values. Only `device`, `eal` and `frames` contain `unsafe`.

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

/// True if the program was built with DPDK.
pub const IS_ENABLED: bool = cfg!(feature = "dpdk");

/// Opens the device that `arguments` name in promiscuous mode, with a receive and a transmit queue
/// for each of `queues` workers, as far as the device supports them.
///
/// The first call initializes DPDK in this process, with its own memory and without threads that
/// would compete with the workers.
///
/// # Errors
/// See [`OpenError`]; each message includes the remedy.
#[cfg(feature = "dpdk")]
pub fn open(arguments: &Arguments, queues: NonZeroUsize) -> Result<Box<dyn Port>, OpenError> {
    Ok(Box::new(port::Dpdk::open(arguments, queues)?))
}

/// Returns an error: this program was built without DPDK.
///
/// # Errors
/// Always [`OpenError::NoDpdk`].
#[cfg(not(feature = "dpdk"))]
pub fn open(arguments: &Arguments, _: NonZeroUsize) -> Result<Box<dyn Port>, OpenError> {
    Err(OpenError::NoDpdk {
        name: arguments.device().to_owned(),
    })
}
