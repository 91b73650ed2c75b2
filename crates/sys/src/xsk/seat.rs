//! A socket's share of a memory: the free chunks that it has at hand, and how many are under
//! way.

use std::io;
use std::sync::Arc;

use super::Spot;
use super::memory::{Line, Memory, STOCK_MAX};

/// A socket's share of a memory.
pub(super) struct Seat {
    pub(super) memory: Arc<Memory>,
    pub(super) line: Line,
    pub(super) at: Spot,
    /// Whether the kernel may know any of its chunks.
    pub(super) bound: bool,
    /// Whether the memory was registered by this socket.
    pub(super) registered: bool,
    /// Free chunks at hand.
    pub(super) stock: Vec<u32>,
    /// How many chunks the kernel has to send.
    pub(super) in_flight: u32,
}

impl Seat {
    /// A share of `memory`, for a socket at this queue.
    ///
    /// # Errors
    /// `ENOSPC`: all are taken.
    pub(super) fn take(memory: &Arc<Memory>, at: Spot) -> io::Result<Self> {
        let going = memory.layout().going.get() as usize;
        Ok(Self {
            line: memory.sit(at)?,
            memory: Arc::clone(memory),
            at,
            bound: false,
            registered: false,
            stock: Vec::with_capacity(STOCK_MAX + going),
            in_flight: 0,
        })
    }

    /// Has so many free chunks at hand, if there are.
    #[inline]
    pub(super) fn stock_up(&mut self, count: usize) {
        if let Some(missing) = count
            .checked_sub(self.stock.len())
            .filter(|count| *count > 0)
        {
            // A few more, so that who asks for one at a time need not each time.
            let most = (STOCK_MAX - self.stock.len().min(STOCK_MAX)).min(STOCK_MAX / 4);
            self.memory.take(missing.max(most), &mut self.stock);
        }
    }

    /// Leaves the chunks to others that are not needed at hand.
    #[inline]
    pub(super) fn trim(&mut self) {
        if self.stock.len() > STOCK_MAX {
            self.memory.free(&self.stock[STOCK_MAX..]);
            self.stock.truncate(STOCK_MAX);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.memory.free(&self.stock);
        self.memory.settle(self.in_flight as usize);
        self.memory.leave(self.line, self.bound.then_some(self.at));
    }
}
