//! Packets of connections in a steady state, without the lock of their shard: both ends of a TCP
//! connection are established, or a UDP connection has had several packets.
//!
//! ```text
//!  packet --> key, hash --> bucket of the index --> entry     found:   state, mark, label
//!                                                             absent:  Conntrack::track
//! ```
//!
//! A connection that reaches a steady state gets an entry here besides its entry in the shard. From
//! then on this entry holds the numbers that packets change: the expiry, and the windows of TCP. All
//! other operations lock the shard, then this entry, and copy those numbers back; a packet locks only
//! this entry, so there is one order of locks. Results are those of
//! `Conntrack::track`: packets that are invalid, end the connection or change its state are left to
//! it, and so are connections with a helper, and translations of IPv6.
//!
//! A packet of UDP writes nothing, but for the expiry once in 64 ms; one of TCP takes one
//! compare-and-swap. The steps of a lookup are separate functions, so that a caller with many packets
//! can prefetch the memory of the next step.
//!
//! Cost: two multiplications for IPv4, a cache line of the index and one of the entry, and the sum of
//! the packet's octets.

mod entry;
mod index;
mod key_words;
#[cfg(all(test, feature = "model"))]
mod model;
mod table;
#[cfg(all(test, not(feature = "model")))]
mod weak_memory;

pub(crate) use entry::{SteadyKind, SteadySnapshot, SteadyState, SteadyWriter};
pub(crate) use key_words::{KeyWords, KeyWordsV4};
pub(crate) use table::{FreeSlots, SteadyTable, WIDE, is_wide};
