//! The admission of peers at listeners: how many there may be of the process and of one address,
//! how many TLS handshakes are done at once, and the memory that all connections share.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use base::MemoryBudget;
use rustix::process::{Resource, getrlimit};
use switch::connection::ConnectionKind;
use tokio::sync::Semaphore;

use crate::connection::ConnectionLimits;

/// The limit of bytes of messages and bundles of all connections together. Configured controllers
/// may use all of it for messages.
const MEMORY_MAX: usize = 768 << 20;

/// The limit for messages of peers that connected to listeners: the rest is reserved for configured
/// controllers.
const SERVICE_MEMORY_MAX: usize = MEMORY_MAX / 6 * 4;

/// The limit for bundles of configured controllers: the rest is reserved for messages.
const BUNDLE_MEMORY_MAX: usize = MEMORY_MAX / 6 * 5;

/// The limit for bundles of peers that connected to listeners.
const SERVICE_BUNDLE_MEMORY_MAX: usize = MEMORY_MAX / 6 * 3;

/// The limit of peers of all listeners, if the process may open twice as many files.
const PEERS_OF_PROCESS_MAX: u64 = 4096;

/// The limit of peers at one remote address. The host itself has no such limit.
const PEERS_OF_ADDRESS_MAX: usize = 256;

/// The limit of TLS handshakes in progress.
const HANDSHAKES_MAX: usize = 64;

/// The limit of TLS handshakes in progress with one address, so that an address that does not
/// finish its own does not delay those of others.
const HANDSHAKES_OF_ADDRESS_MAX: usize = 8;

/// The limit of large read buffers of peers that connected to listeners: 4 MB of memory, and a few
/// milliseconds until each of these peers was read once. Further peers are read in small parts, so
/// that thousands that send at full speed delay one that sends little by milliseconds each time.
const LARGE_BUFFERS_MAX: usize = 64;

/// The state of the admission.
#[derive(Clone)]
pub(crate) struct Admission {
    memory: MemoryBudget,
    large_buffers: Arc<Semaphore>,
    peers: Arc<Semaphore>,
    peers_by_address: AddressCounts,
    /// The handshakes that may be done at once.
    pub(super) handshakes: Arc<Semaphore>,
    handshakes_by_address: AddressCounts,
}

impl Admission {
    pub(super) fn new() -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let peers = (files / 2).min(PEERS_OF_PROCESS_MAX);
        Self {
            memory: MemoryBudget::new(MEMORY_MAX),
            large_buffers: Arc::new(Semaphore::new(LARGE_BUFFERS_MAX)),
            peers: Arc::new(Semaphore::new(usize::try_from(peers).unwrap_or(usize::MAX))),
            peers_by_address: AddressCounts::default(),
            handshakes: Arc::new(Semaphore::new(HANDSHAKES_MAX)),
            handshakes_by_address: AddressCounts::default(),
        }
    }

    /// Returns the limits of a connection.
    pub(crate) fn limits(&self, kind: ConnectionKind) -> ConnectionLimits {
        ConnectionLimits {
            memory: self.message_memory(kind),
            large_buffers: match kind {
                ConnectionKind::Service => Arc::clone(&self.large_buffers),
                ConnectionKind::Primary | ConnectionKind::Auxiliary(_) => {
                    Arc::new(Semaphore::new(1))
                }
            },
        }
    }

    /// Returns the memory for messages of a connection.
    fn message_memory(&self, kind: ConnectionKind) -> MemoryBudget {
        match kind {
            ConnectionKind::Service => self.memory.with_ceiling(SERVICE_MEMORY_MAX),
            ConnectionKind::Primary | ConnectionKind::Auxiliary(_) => self.memory.clone(),
        }
    }

    /// Returns the memory for bundles of a connection.
    pub(crate) fn bundle_memory(&self, kind: ConnectionKind) -> MemoryBudget {
        self.memory.with_ceiling(match kind {
            ConnectionKind::Service => SERVICE_BUNDLE_MEMORY_MAX,
            ConnectionKind::Primary | ConnectionKind::Auxiliary(_) => BUNDLE_MEMORY_MAX,
        })
    }

    /// Returns the number of reservations of memory that were refused.
    pub(crate) fn memory_refused(&self) -> u64 {
        self.memory.refused()
    }

    /// Admits a peer, or returns the reason for its rejection. It is admitted until the slot is
    /// dropped.
    pub(super) fn admit(&self, address: Option<IpAddr>) -> Result<PeerSlot, &'static str> {
        let of_process = Arc::clone(&self.peers).try_acquire_owned();
        let of_process = of_process.map_err(|_| "too many peers of all listeners")?;
        let of_address = match address.filter(|address| !address.is_loopback()) {
            None => None,
            Some(address) => Some(
                self.peers_by_address
                    .enter(address, PEERS_OF_ADDRESS_MAX)
                    .ok_or("too many peers at one address")?,
            ),
        };
        Ok(PeerSlot {
            _of_process: of_process,
            _of_address: of_address,
        })
    }

    /// Admits a handshake with an address until the entry is dropped; `None` if there are too many.
    pub(super) fn admit_handshake(&self, address: IpAddr) -> Option<AddressEntry> {
        self.handshakes_by_address
            .enter(address, HANDSHAKES_OF_ADDRESS_MAX)
    }
}

/// The place of an admitted peer.
pub(super) struct PeerSlot {
    _of_process: tokio::sync::OwnedSemaphorePermit,
    _of_address: Option<AddressEntry>,
}

/// Counts by remote address. An address without entries takes no memory.
#[derive(Clone, Default)]
struct AddressCounts(Arc<Mutex<BTreeMap<IpAddr, usize>>>);

impl AddressCounts {
    /// Adds an entry for an address, unless it has `limit` of them.
    fn enter(&self, address: IpAddr, limit: usize) -> Option<AddressEntry> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= limit {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(AddressEntry {
            counts: self.clone(),
            address,
        })
    }
}

/// An entry of an address.
pub(super) struct AddressEntry {
    counts: AddressCounts,
    address: IpAddr,
}

impl Drop for AddressEntry {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    #[test]
    fn peers_of_one_address_are_limited() {
        let admission = Admission::new();
        let admit = |address| admission.admit(Some(address));
        let slots: Vec<_> = (0..PEERS_OF_ADDRESS_MAX).map(|_| admit(ADDRESS)).collect();
        assert!(slots.iter().all(Result::is_ok));
        assert_eq!(admit(ADDRESS).err(), Some("too many peers at one address"));
        assert!(admit(OTHER).is_ok());
        drop(slots);
        assert!(admit(ADDRESS).is_ok());
        assert!(
            admission
                .peers_by_address
                .0
                .lock()
                .expect("sound")
                .is_empty()
        );
    }

    #[test]
    fn handshakes_of_one_address_are_limited() {
        let admission = Admission::new();
        let entries: Vec<_> = (0..HANDSHAKES_OF_ADDRESS_MAX)
            .map(|_| admission.admit_handshake(ADDRESS))
            .collect();
        assert!(entries.iter().all(Option::is_some));
        assert!(admission.admit_handshake(ADDRESS).is_none());
        assert!(admission.admit_handshake(OTHER).is_some());
    }

    #[test]
    fn large_read_buffers_of_listeners_are_limited() {
        let admission = Admission::new();
        let permit = |kind| admission.limits(kind).large_buffers.try_acquire_owned();
        let service = || permit(ConnectionKind::Service);
        let permits: Vec<_> = (0..LARGE_BUFFERS_MAX).map(|_| service()).collect();
        assert!(permits.iter().all(Result::is_ok));
        assert!(service().is_err());
        assert!(permit(ConnectionKind::Primary).is_ok());
        drop(permits);
        assert!(service().is_ok());
    }

    #[test]
    fn peer_has_memory_for_a_bundle_of_200_000_rules() {
        // A rule of OVN, as `ovn-controller` adds it to a bundle.
        let rule = openflow::ReceivedMessage::memory_of(160);
        let bundles = Admission::new().bundle_memory(ConnectionKind::Service);
        assert!(bundles.has_room(200_000 * rule));
    }

    #[test]
    fn controllers_have_memory_when_listeners_have_none() {
        let admission = Admission::new();
        let service = admission.message_memory(ConnectionKind::Service);
        let held = service.reserve_at_most(MEMORY_MAX);
        assert_eq!(held.bytes(), SERVICE_MEMORY_MAX);
        let controller = admission.message_memory(ConnectionKind::Primary);
        assert!(controller.has_room(MEMORY_MAX - SERVICE_MEMORY_MAX));
        let bundles = admission.bundle_memory(ConnectionKind::Service);
        assert!(bundles.reserve(1).is_none());
        assert_eq!(admission.memory_refused(), 1);
    }
}
