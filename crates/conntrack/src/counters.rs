//! Counters of the tracker. Each refusal and each reason of invalidity has a name.

use base::sync::atomic::{AtomicU64, Ordering};

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CtCounter {
    /// Connections that were committed.
    Committed,
    /// Connections whose life ended.
    Expired,
    /// Connections that a flush, `force` or a new connection with the same key removed.
    Removed,
    /// Embryonic connections that were given up for a new connection.
    EmbryonicEvicted,
    /// New connections that were refused because the table was full.
    TableFull,
    /// New connections that were refused because their zone had reached its limit.
    ZoneFull,
    /// New connections that were refused because a chain was full.
    ChainFull,
    /// New connections that were refused because their reply key belongs to a translated connection.
    ReplyInUse,
    /// New connections that were refused because no port or address was free.
    NatExhausted,
    /// Packets that no connection of their protocol can have, and ICMP errors about none.
    InvalidPacket,
    /// Control messages of FTP that are malformed.
    InvalidAlgMessage,
    /// Connections that a helper expected, but that had no room.
    ExpectationsFull,
}

/// Number of counters.
const COUNT: usize = 12;

impl CtCounter {
    /// All counters with their names.
    pub const ALL: [(Self, &'static str); COUNT] = [
        (Self::Committed, "ct_committed"),
        (Self::Expired, "ct_expired"),
        (Self::Removed, "ct_removed"),
        (Self::EmbryonicEvicted, "ct_embryonic_evicted"),
        (Self::TableFull, "ct_table_full"),
        (Self::ZoneFull, "ct_zone_full"),
        (Self::ChainFull, "ct_chain_full"),
        (Self::ReplyInUse, "ct_reply_in_use"),
        (Self::NatExhausted, "ct_nat_exhausted"),
        (Self::InvalidPacket, "ct_invalid_packet"),
        (Self::InvalidAlgMessage, "ct_invalid_alg_message"),
        (Self::ExpectationsFull, "ct_expectations_full"),
    ];
}

/// A number that workers write, in a cache line of its own: what they only read is not evicted.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct OwnLine<T>(pub(crate) T);

/// Counters that all workers share. None is on the path of an
/// established connection's packet, and those of [`CtCounter::Committed`] are counted by the shards.
#[derive(Debug, Default)]
pub(crate) struct CtCounters {
    counts: OwnLine<[AtomicU64; COUNT]>,
}

impl CtCounters {
    pub(crate) fn add(&self, counter: CtCounter, count: u64) {
        self.counts.0[counter as usize].fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self, counter: CtCounter) -> u64 {
        self.counts.0[counter as usize].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_in_the_order_of_their_numbers() {
        for (number, (counter, _)) in CtCounter::ALL.into_iter().enumerate() {
            assert_eq!(counter as usize, number);
        }
    }
}
