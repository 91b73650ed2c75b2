//! UMEMs of the workers' AF_XDP sockets.

use std::io;
use std::num::NonZeroU32;
use std::sync::{Arc, Weak};

use rustix::io::Errno;
use sys::xsk::{ChunkCounts, DeviceQueue, Umem, UmemLayout, XskSocket};

/// Minimum number of sockets that a UMEM is allocated for: forwarding requires two.
const SOCKETS_MIN: NonZeroU32 = NonZeroU32::new(2).expect("not zero");

/// Maximum number of sockets that a UMEM is allocated for: 200 MB of short chunks. Further sockets
/// use another UMEM.
const SOCKETS_MAX: NonZeroU32 = NonZeroU32::new(32).expect("not zero");

/// The UMEMs of each worker. A frame received through one AF_XDP port of a worker leaves through
/// another in place if both have chunks of the same length.
///
/// A UMEM is allocated when a port finds no free share, and freed with its last socket and its last
/// frame.
#[derive(Default)]
pub struct UmemPools {
    umems: Vec<WorkerUmem>,
    sockets: Option<NonZeroU32>,
}

/// One UMEM of a worker.
struct WorkerUmem {
    worker: usize,
    umem: Weak<Umem>,
}

impl UmemPools {
    /// Allocates further UMEMs for `ports` ports.
    pub fn reserve_for(&mut self, ports: usize) {
        let ports = u32::try_from(ports).unwrap_or(u32::MAX);
        self.sockets = NonZeroU32::new(ports);
    }

    /// Counts the chunks of a worker's UMEMs by owner; exact only while no frame moves.
    #[must_use]
    pub fn chunk_counts(&self, worker: usize) -> ChunkCounts {
        let counts = self.of(worker).map(|umem| umem.chunk_counts());
        counts.fold(ChunkCounts::default(), |sum, counts| ChunkCounts {
            free: sum.free + counts.free,
            detached: sum.detached + counts.detached,
            kernel: sum.kernel + counts.kernel,
        })
    }

    /// Number of UMEMs of a worker.
    #[must_use]
    pub fn umem_count(&self, worker: usize) -> usize {
        self.of(worker).count()
    }

    /// Opens a socket for a worker, with chunks of this layout.
    pub(super) fn open(
        &mut self,
        worker: usize,
        layout: UmemLayout,
        device: DeviceQueue,
    ) -> io::Result<XskSocket> {
        for umem in self.of(worker).filter(|umem| umem.layout() == layout) {
            match XskSocket::open(&umem, device) {
                // All shares of this UMEM are taken.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::NOSPC) => {}
                opened => return opened,
            }
        }
        let sockets = self.sockets.unwrap_or(SOCKETS_MIN);
        let umem = Umem::new(layout, sockets.clamp(SOCKETS_MIN, SOCKETS_MAX))?;
        self.umems.retain(|umems| umems.umem.strong_count() > 0);
        self.umems.push(WorkerUmem {
            worker,
            umem: Arc::downgrade(&umem),
        });
        XskSocket::open(&umem, device)
    }

    /// Notifies all UMEMs of a bound socket: its queue may have had a socket in another worker's
    /// UMEM before.
    pub(super) fn reclaim_in_other_umems(&self, socket: &XskSocket) {
        let pools = self.umems.iter().filter_map(|umems| umems.umem.upgrade());
        pools.for_each(|umem| socket.reclaim_in(&umem));
    }

    fn of(&self, worker: usize) -> impl Iterator<Item = Arc<Umem>> {
        let umems = self
            .umems
            .iter()
            .filter(move |umems| umems.worker == worker);
        umems.filter_map(|umems| umems.umem.upgrade())
    }
}
