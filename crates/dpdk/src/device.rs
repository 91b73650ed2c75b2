//! A DPDK device: probe, start, I/O, and close when the last user drops it.

use std::ffi::CStr;
use std::fmt;
use std::io;

use packet::MacAddr;
use ports::OpenError;

use crate::arguments::Arguments;
use crate::eal::{Eal, Memory, explain, text};
use crate::frames::{MbufBatch, TxBatch};
use crate::shim::{self, BATCH, Losses, RawConfig, RawDevice, RawLink};

/// Descriptors of a queue: some milliseconds of short frames, as with packet sockets.
const DESCRIPTORS: u16 = 1024;

/// The default number of buffers per queue: enough for its own descriptors, for the transmit
/// descriptors of six other queues through which the frames leave, and for a thread's mempool
/// cache.
const BUFFERS_A_QUEUE: u32 = 8192;

/// The bytes of an Ethernet header and two VLAN tags, which an MTU does not include.
const BESIDE_MTU: u32 = 14 + 8;

/// The minimum data room of a buffer in bytes: drivers receive longer frames in several segments.
const ROOM_LEAST: u32 = 2048;

/// Properties of a device, as its driver reports them.
pub(crate) struct DeviceInfo {
    /// Its driver's name.
    pub(crate) driver: String,
    /// Its Ethernet address.
    pub(crate) address: MacAddr,
    /// The maximum payload of a frame in bytes.
    pub(crate) mtu: u16,
    /// The index of the kernel interface behind it, if there is one.
    pub(crate) interface: Option<u32>,
}

/// The numbers of queues with which a device was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceQueues {
    pub(crate) receive: u16,
    pub(crate) transmit: u16,
}

/// A started device, closed on drop.
pub(crate) struct DpdkDevice {
    name: String,
    port: u16,
    memory: Memory,
    /// Properties of the device.
    pub(crate) description: DeviceInfo,
    /// Its queues.
    pub(crate) queues: DeviceQueues,
    /// True if its memory consists of huge pages.
    pub(crate) huge_pages: bool,
}

impl DpdkDevice {
    /// Probes the device and starts it with up to `queues` receive and transmit queues, as far as
    /// the device supports them.
    ///
    /// # Errors
    /// DPDK cannot be initialized, or the device does not exist or cannot be started.
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
        let devargs = text(&arguments.for_dpdk());
        // SAFETY: `devargs` is a C string, and `port` a place for a number.
        let code = unsafe { shim::shim_probe(devargs.as_ptr(), &raw mut port) };
        if code != 0 {
            return Err(failed("probing the device", explain(code)));
        }
        let started = start(&mut eal, port, arguments, queues);
        started.map_err(|(step, problem)| {
            // SAFETY: probing made the device ours, and none of its queues is in use.
            unsafe { shim::shim_close(port) };
            failed(step, problem)
        })
    }

    /// Returns the state of its link.
    pub(crate) fn link(&self) -> io::Result<RawLink> {
        let mut link = RawLink::default();
        // SAFETY: the device is open, and `link` is a place for the result.
        check(unsafe { shim::shim_link(self.port, &raw mut link) })?;
        Ok(link)
    }

    /// Sets its link up or down; some drivers do not support this.
    pub(crate) fn set_link(&self, up: bool) -> io::Result<()> {
        let _leave = Eal::enter().map_err(io::Error::other)?;
        // SAFETY: the device is open, and the lock excludes other configuration calls.
        check(unsafe { shim::shim_set_link(self.port, up.into()) })
    }

    /// Returns the loss counters since the start of the device.
    pub(crate) fn losses(&self) -> io::Result<Losses> {
        let mut losses = Losses::default();
        // SAFETY: the device is open, and `losses` is a place for the result.
        check(unsafe { shim::shim_losses(self.port, &raw mut losses) })?;
        Ok(losses)
    }

    /// Returns whether the driver reports that the device was removed.
    pub(crate) fn is_removed(&self) -> bool {
        // SAFETY: the number of a port that was probed.
        unsafe { shim::shim_is_removed(self.port) != 0 }
    }

    /// Receives from a queue into `frames`, up to a full batch.
    ///
    /// Only the owner of the queue may call this: DPDK's receive function is not thread-safe.
    #[inline]
    pub(crate) fn receive(&self, queue: u16, frames: &mut MbufBatch) {
        debug_assert!(queue < self.queues.receive, "a queue that was set up");
        let len = frames.len;
        let room = u32::try_from(BATCH - len).expect("a batch is small");
        let slot = frames.raw[len..].as_mut_ptr();
        // SAFETY: the queue was set up and has one owner, and `slot` has space for `room` frames.
        let received = unsafe { shim::shim_receive(self.port, queue, self.memory.0, slot, room) };
        frames.len = len + received as usize;
    }

    /// Allocates `count` empty frames from its memory pool. Returns false, and allocates none, if
    /// the pool has fewer.
    #[inline]
    pub(crate) fn allocate(&self, count: usize, frames: &mut MbufBatch) -> bool {
        debug_assert!(frames.len == 0 && count <= BATCH, "a batch of new ones");
        let count32 = u32::try_from(count).expect("a batch is small");
        // SAFETY: the pool lives as long as the device, and `frames.raw` has space for a batch.
        let code = unsafe { shim::shim_allocate(self.memory.0, frames.raw.as_mut_ptr(), count32) };
        frames.len = if code == 0 { count } else { 0 };
        code == 0
    }

    /// Sends frames from the front of `leaving`. Returns the number of frames that the driver
    /// accepted, which it owns from then on.
    ///
    /// Only the owner of the queue or the holder of its lock may call this.
    #[inline]
    pub(crate) fn send(&self, queue: u16, leaving: &TxBatch) -> usize {
        debug_assert!(queue < self.queues.transmit, "a queue that was set up");
        let count = u32::try_from(leaving.len).expect("a batch is small");
        // SAFETY: the queue was set up and no other thread uses it; the frames are lent to the
        // caller or are copies, all in buffers of pools that this crate created.
        let sent = unsafe { shim::shim_send(self.port, queue, leaving.raw.as_ptr(), count) };
        sent as usize
    }

    /// Frees the buffers of transmitted frames of a queue, if the driver supports this.
    ///
    /// The same restriction applies as to [`DpdkDevice::send`].
    pub(crate) fn reap(&self, queue: u16) {
        // SAFETY: the queue was set up and no other thread uses it.
        unsafe { shim::shim_reap(self.port, queue) };
    }
}

impl Drop for DpdkDevice {
    fn drop(&mut self) {
        let Ok(mut eal) = Eal::enter() else {
            return;
        };
        // SAFETY: no queue of the device exists any more.
        unsafe { shim::shim_close(self.port) };
        eal.retire(Some(self.memory));
    }
}

impl fmt::Display for DpdkDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Starts a probed device.
fn start(
    eal: &mut Eal,
    port: u16,
    arguments: &Arguments,
    queues: u16,
) -> Result<DpdkDevice, (&'static str, String)> {
    let info = query(port).map_err(|code| ("querying the device", explain(code)))?;
    let mtu = arguments.mtu.map_or(info.mtu, Into::into);
    if info.mtu_max != 0 && mtu > info.mtu_max {
        let problem = format!("MTU {mtu} exceeds the maximum of {}", info.mtu_max);
        return Err(("configuring the device", problem));
    }
    let counts = DeviceQueues {
        receive: queues.min(info.receive_queues_max.max(1)),
        transmit: queues.min(info.transmit_queues_max.max(1)),
    };
    let config = RawConfig {
        receive_queues: counts.receive,
        transmit_queues: counts.transmit,
        descriptors: DESCRIPTORS,
        mtu,
        buffers: arguments
            .buffers
            .map_or_else(|| BUFFERS_A_QUEUE * u32::from(queues), Into::into),
        room: (u32::from(mtu) + BESIDE_MTU).max(ROOM_LEAST),
    };
    let memory = start_queues(port, &config).map_err(|(code, memory)| {
        let problem = explain(code);
        eal.retire(memory);
        ("starting the device", problem)
    })?;
    let now = query(port).unwrap_or(info);
    Ok(DpdkDevice {
        name: arguments.device().to_owned(),
        port,
        memory,
        description: describe(&now),
        queues: counts,
        huge_pages: eal.has_huge_pages(),
    })
}

fn query(port: u16) -> Result<RawDevice, i32> {
    // SAFETY: the type consists of numbers and arrays of numbers, for which zero is valid.
    let mut device: RawDevice = unsafe { std::mem::zeroed() };
    // SAFETY: the number of a port that was probed, and a place for the result.
    match unsafe { shim::shim_look(port, &raw mut device) } {
        0 => Ok(device),
        code => Err(code),
    }
}

/// Starts the device and returns its memory pool. An error includes the pool, if it was created.
fn start_queues(port: u16, config: &RawConfig) -> Result<Memory, (i32, Option<Memory>)> {
    let mut pool = std::ptr::null_mut();
    let name = text(&format!("comporta_{}", next_number()));
    // SAFETY: a port that was probed, a C string, and a place for a pointer.
    let code = unsafe { shim::shim_start(port, config, name.as_ptr(), &raw mut pool) };
    let memory = (!pool.is_null()).then_some(Memory(pool));
    match (code, memory) {
        (0, Some(memory)) => Ok(memory),
        (code, memory) => Err((code, memory)),
    }
}

/// Returns a number for the name of a memory pool that was never used before: the pool of a closed
/// port may still exist.
fn next_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn describe(device: &RawDevice) -> DeviceInfo {
    // SAFETY: the shim terminates the string within its array.
    let driver = unsafe { CStr::from_ptr(device.driver.as_ptr()) };
    DeviceInfo {
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
