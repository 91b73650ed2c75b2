//! The memory that a worker's AF_XDP sockets share.

use std::io;
use std::num::NonZeroU32;
use std::sync::{Arc, Weak};

use rustix::io::Errno;
use sys::xsk::{ChunkCounts, DeviceQueue, Umem, UmemLayout, XskSocket};

/// For how many sockets memory is made at least: forwarding takes two.
const SOCKETS_MIN: NonZeroU32 = NonZeroU32::new(2).expect("not zero");

/// For how many sockets memory is made at most, 200 MB of short chunks: beyond, there are
/// several.
const SOCKETS_MAX: NonZeroU32 = NonZeroU32::new(32).expect("not zero");

/// The memory of each worker. A frame that came by one of a worker's AF_XDP ports leaves by
/// another as it lies there, if both have chunks of one length.
///
/// Umem is made when a port is opened that finds no room in what there is, and freed with
/// the last socket and the last frame in it.
#[derive(Default)]
pub struct Memories {
    made: Vec<Made>,
    sockets: Option<NonZeroU32>,
}

/// One memory of a worker.
struct Made {
    worker: usize,
    memory: Weak<Umem>,
}

impl Memories {
    /// From now on makes memory for so many ports.
    pub fn make_for(&mut self, ports: usize) {
        let ports = u32::try_from(ports).unwrap_or(u32::MAX);
        self.sockets = NonZeroU32::new(ports);
    }

    /// How many chunks who has in the memory of a worker, while nothing moves.
    #[must_use]
    pub fn chunk_counts(&self, worker: usize) -> ChunkCounts {
        let counts = self.of(worker).map(|memory| memory.chunk_counts());
        counts.fold(ChunkCounts::default(), |sum, counts| ChunkCounts {
            free: sum.free + counts.free,
            detached: sum.detached + counts.detached,
            kernel: sum.kernel + counts.kernel,
        })
    }

    /// How many pieces of memory a worker has.
    #[must_use]
    pub fn count(&self, worker: usize) -> usize {
        self.of(worker).count()
    }

    /// A socket for a worker, with chunks of this layout.
    pub(super) fn open(
        &mut self,
        worker: usize,
        layout: UmemLayout,
        device: DeviceQueue,
    ) -> io::Result<XskSocket> {
        for memory in self.of(worker).filter(|memory| memory.layout() == layout) {
            match XskSocket::open(&memory, device) {
                // All shares of it are taken.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::NOSPC) => {}
                opened => return opened,
            }
        }
        let sockets = self.sockets.unwrap_or(SOCKETS_MIN);
        let memory = Umem::new(layout, sockets.clamp(SOCKETS_MIN, SOCKETS_MAX))?;
        self.made.retain(|made| made.memory.strong_count() > 0);
        self.made.push(Made {
            worker,
            memory: Arc::downgrade(&memory),
        });
        XskSocket::open(&memory, device)
    }

    /// A socket is bound. The queue may have had one of another worker's memory before.
    pub(super) fn note_bound(&self, socket: &XskSocket) {
        let memories = self.made.iter().filter_map(|made| made.memory.upgrade());
        memories.for_each(|memory| socket.reclaim_in(&memory));
    }

    fn of(&self, worker: usize) -> impl Iterator<Item = Arc<Umem>> {
        let its = self.made.iter().filter(move |made| made.worker == worker);
        its.filter_map(|made| made.memory.upgrade())
    }
}
