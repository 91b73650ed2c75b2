//! An end of the device: where frames go in, and where they come out.

use std::io;

use super::Arrivals;

/// Where frames go in. Nothing waits.
pub trait Transmit: Send {
    /// Sends from the front of `frames` and says how many were taken: none where there is no room now. It
    /// is done with all that it took before it returns.
    ///
    /// # Errors
    /// The interface is gone or down, or refuses such a frame.
    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize>;

    /// How many frames were taken since this was last asked and could not be sent. A measurement with
    /// any of these is void.
    fn take_drops(&mut self) -> u64 {
        0
    }

    /// By which way they go.
    fn way(&self) -> Way;
}

/// By which way frames are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Packet sockets, by sendmmsg(2).
    Packet,
    /// An AF_XDP socket, by copies.
    Xdp,
    /// Memory, in a test.
    Memory,
}

impl Way {
    /// What it is, as records and people are told.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packet => "by packet sockets (sendmmsg)",
            Self::Xdp => "by AF_XDP (copies)",
            Self::Memory => "by memory",
        }
    }
}

/// Where frames come out. Nothing waits.
pub trait Receive: Send {
    /// Adds what has come to `arrivals`, as far as there is room.
    ///
    /// # Errors
    /// The interface is gone or down.
    fn receive(&mut self, arrivals: &mut Arrivals) -> io::Result<()>;

    /// How many frames the tester itself has lost here since this was last asked: they came, and it
    /// was too slow. A measurement with any of these is void.
    ///
    /// # Errors
    /// The interface is gone.
    fn take_drops(&mut self) -> io::Result<u64> {
        Ok(0)
    }

    /// By which clock arrivals are stamped, and how far it was off at most.
    fn stamps(&self) -> Stamps;
}

/// Where the time of an arrival comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    /// The kernel took it when the frame came to the interface. Its clock is another, and was set
    /// against ours again and again.
    Kernel {
        /// The largest step between two settings, beyond what the clocks drift.
        step_ns_max: u64,
    },
    /// The program took it when it looked: later by how long it had not looked.
    Program,
    /// The test's own.
    Simulated,
}

impl Stamps {
    /// Where they come from, as records and people are told.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel { .. } => "stamped by the kernel (software)",
            Self::Program => "stamped by the program",
            Self::Simulated => "stamped by the simulation",
        }
    }
}

/// An end of the device.
pub struct End {
    /// Where frames go in.
    pub transmit: Box<dyn Transmit>,
    /// Where frames come out.
    pub receive: Box<dyn Receive>,
}
