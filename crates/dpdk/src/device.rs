//! One device of DPDK: looked at, started, and closed when nobody has it any more.

use std::ffi::CStr;
use std::fmt;
use std::io;

use packet::MacAddr;
use ports::OpenError;

use crate::arguments::Arguments;
use crate::eal::{Eal, Memory, explain, text};
use crate::frames::{Frames, Leaving};
use crate::shim::{self, BATCH, Losses, RawDevice, RawLink, RawWish};

/// Descriptors of a queue: as with packet sockets, some milliseconds of short frames.
const DESCRIPTORS: u16 = 1024;

/// Frames that a device's memory holds if nobody says otherwise, for each queue: what its
/// own descriptors hold, what those of six others do by which they leave, and what a thread
/// keeps for itself.
const BUFFERS_A_QUEUE: u32 = 8192;

/// An Ethernet header and two tags, which an MTU does not count.
const BESIDE_MTU: u32 = 14 + 8;

/// The room of a buffer at least: drivers cut what comes into pieces of it.
const ROOM_LEAST: u32 = 2048;

/// How a device is, as it says itself.
pub(crate) struct Description {
    /// Its driver's name.
    pub(crate) driver: String,
    /// Its Ethernet address.
    pub(crate) address: MacAddr,
    /// The longest payload of a frame.
    pub(crate) mtu: u16,
    /// The kernel's number of the interface behind it, if there is one.
    pub(crate) interface: Option<u32>,
}

/// How many queues it was started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueCounts {
    pub(crate) receive: u16,
    pub(crate) transmit: u16,
}

/// A device that was started. It is closed with the last who has it.
pub(crate) struct Device {
    name: String,
    port: u16,
    memory: Memory,
    /// What it is.
    pub(crate) description: Description,
    /// Its queues.
    pub(crate) queues: QueueCounts,
    /// Whether its memory is of huge pages.
    pub(crate) huge_pages: bool,
}

impl Device {
    /// Has DPDK make or take the device, and starts it with one queue each way for every
    /// one of `queues`, if it has so many.
    ///
    /// # Errors
    /// DPDK cannot be started, knows no such device, or cannot start it.
    pub(crate) fn open(arguments: &Arguments, queues: u16) -> Result<Self, OpenError> {
        let name = arguments.device();
        let failed = |step: &'static str, problem: String| OpenError::Dpdk {
            name: name.to_owned(),
            step,
            problem,
        };
        let mut eal = Eal::enter().map_err(|problem| failed("starting DPDK", problem))?;
        eal.retire(None);
        let mut port = 0;
        let words = text(&arguments.for_dpdk());
        // SAFETY: a text that ends in zero, and a place for a number.
        let code = unsafe { shim::shim_probe(words.as_ptr(), &raw mut port) };
        if code != 0 {
            return Err(failed("probing the device", explain(code)));
        }
        let started = start(&mut eal, port, arguments, queues);
        started.map_err(|(step, problem)| {
            // SAFETY: the device is ours since it was probed, and has no queues that run.
            unsafe { shim::shim_close(port) };
            failed(step, problem)
        })
    }

    /// How its link is.
    pub(crate) fn link(&self) -> io::Result<RawLink> {
        let mut link = RawLink::default();
        // SAFETY: a device that is open, and a place for its answer.
        check(unsafe { shim::shim_link(self.port, &raw mut link) })?;
        Ok(link)
    }

    /// Takes its link up or down; not every device can.
    pub(crate) fn set_link(&self, up: bool) -> io::Result<()> {
        let _leave = Eal::enter().map_err(io::Error::other)?;
        // SAFETY: a device that is open, set up by one at a time.
        check(unsafe { shim::shim_set_link(self.port, up.into()) })
    }

    /// What it has lost since it was started.
    pub(crate) fn losses(&self) -> io::Result<Losses> {
        let mut losses = Losses::default();
        // SAFETY: a device that is open, and a place for its answer.
        check(unsafe { shim::shim_losses(self.port, &raw mut losses) })?;
        Ok(losses)
    }

    /// Whether its driver says that it was taken out.
    pub(crate) fn is_removed(&self) -> bool {
        // SAFETY: the number of a port that was once found.
        unsafe { shim::shim_is_removed(self.port) != 0 }
    }

    /// Receives from a queue into `frames`, until they are a batch.
    ///
    /// Not for two at once on one queue: whoever calls is its owner.
    #[inline]
    pub(crate) fn receive(&self, queue: u16, frames: &mut Frames) {
        debug_assert!(queue < self.queues.receive, "a queue that was set up");
        let len = frames.len;
        let room = u32::try_from(BATCH - len).expect("a batch is small");
        let place = frames.raw[len..].as_mut_ptr();
        // SAFETY: the queue was set up, has one owner, and `place` has room for so many.
        let got = unsafe { shim::shim_receive(self.port, queue, self.memory.0, place, room) };
        frames.len = len + got as usize;
    }

    /// Empty frames of its memory, as many as are wanted; none if it has not so many left.
    #[inline]
    pub(crate) fn allocate(&self, count: usize, frames: &mut Frames) -> bool {
        debug_assert!(frames.len == 0 && count <= BATCH, "a batch of new ones");
        let count32 = u32::try_from(count).expect("a batch is small");
        // SAFETY: the memory lives as long as the device, and there is room for a batch.
        let code = unsafe { shim::shim_allocate(self.memory.0, frames.raw.as_mut_ptr(), count32) };
        frames.len = if code == 0 { count } else { 0 };
        code == 0
    }

    /// Sends what is about to leave, from the front; how many the device has taken, which
    /// are its own from then on.
    ///
    /// Not for two at once on one queue: whoever calls is its owner, or has the lock.
    #[inline]
    pub(crate) fn send(&self, queue: u16, leaving: &Leaving) -> usize {
        debug_assert!(queue < self.queues.transmit, "a queue that was set up");
        let count = u32::try_from(leaving.len).expect("a batch is small");
        // SAFETY: the queue was set up and nobody else is in it; the frames are lent to whoever
        // sends or are copies, all in buffers of memory that is made as ours.
        let sent = unsafe { shim::shim_send(self.port, queue, leaving.raw.as_ptr(), count) };
        sent as usize
    }

    /// Has the driver give back what it has sent by a queue, if it can.
    ///
    /// Not for two at once on one queue, as [`Device::send`].
    pub(crate) fn reap(&self, queue: u16) {
        // SAFETY: the queue was set up and nobody else is in it.
        unsafe { shim::shim_reap(self.port, queue) };
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let Ok(mut eal) = Eal::enter() else {
            return;
        };
        // SAFETY: whoever had a queue of it is gone.
        unsafe { shim::shim_close(self.port) };
        eal.retire(Some(self.memory));
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Starts a device that was found.
fn start(
    eal: &mut Eal,
    port: u16,
    arguments: &Arguments,
    queues: u16,
) -> Result<Device, (&'static str, String)> {
    let found = look(port).map_err(|code| ("asking what it is", explain(code)))?;
    let mtu = arguments.mtu.map_or(found.mtu, Into::into);
    if found.mtu_max != 0 && mtu > found.mtu_max {
        let problem = format!("an MTU of {mtu}, and {} is its most", found.mtu_max);
        return Err(("setting it up", problem));
    }
    let counts = QueueCounts {
        receive: queues.min(found.receive_queues_max.max(1)),
        transmit: queues.min(found.transmit_queues_max.max(1)),
    };
    let wish = RawWish {
        receive_queues: counts.receive,
        transmit_queues: counts.transmit,
        descriptors: DESCRIPTORS,
        mtu,
        buffers: arguments
            .buffers
            .map_or_else(|| BUFFERS_A_QUEUE * u32::from(queues), Into::into),
        room: (u32::from(mtu) + BESIDE_MTU).max(ROOM_LEAST),
    };
    let memory = begin(port, &wish).map_err(|(code, memory)| {
        let problem = explain(code);
        eal.retire(memory);
        ("starting it", problem)
    })?;
    let now = look(port).unwrap_or(found);
    Ok(Device {
        name: arguments.device().to_owned(),
        port,
        memory,
        description: describe(&now),
        queues: counts,
        huge_pages: eal.has_huge_pages(),
    })
}

fn look(port: u16) -> Result<RawDevice, i32> {
    // SAFETY: numbers and arrays of numbers, which may all be zero.
    let mut device: RawDevice = unsafe { std::mem::zeroed() };
    // SAFETY: the number of a port that was found, and a place for the answer.
    match unsafe { shim::shim_look(port, &raw mut device) } {
        0 => Ok(device),
        code => Err(code),
    }
}

/// Starts the device; an error, and the memory that was made before it.
fn begin(port: u16, wish: &RawWish) -> Result<Memory, (i32, Option<Memory>)> {
    let mut pool = std::ptr::null_mut();
    let name = text(&format!("comporta_{}", next_number()));
    // SAFETY: a port that was found, a text that ends in zero, and a place for a pointer.
    let code = unsafe { shim::shim_start(port, wish, name.as_ptr(), &raw mut pool) };
    let memory = (!pool.is_null()).then_some(Memory(pool));
    match (code, memory) {
        (0, Some(memory)) => Ok(memory),
        (code, memory) => Err((code, memory)),
    }
}

/// A number that no memory has had: one of a port that is closed may be there still.
fn next_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn describe(device: &RawDevice) -> Description {
    // SAFETY: the shim ends the text within its array.
    let driver = unsafe { CStr::from_ptr(device.driver.as_ptr()) };
    Description {
        driver: driver.to_string_lossy().into_owned(),
        address: MacAddr(device.address),
        mtu: device.mtu,
        interface: (device.interface != 0).then_some(device.interface),
    }
}

fn check(code: i32) -> io::Result<()> {
    match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
    }
}
