//! The environment abstraction layer (EAL) of DPDK, once per process: initialized when the first
//! port is opened, and never cleaned up, because it leaves nothing behind outside the process.
//!
//! Configuration of devices requires [`Eal`], a lock: DPDK does not allow concurrent configuration.
//! Receiving and sending by workers needs no lock.

use std::cell::Cell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::fs;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::thread::CpuSet;

use crate::shim;

/// Memory for frames without huge pages, in megabytes: 400,000 short frames. The kernel allocates
/// its pages when they are first used.
const MEMORY_MB: &str = "1024";

/// The directory in which the kernel lists its huge pages.
const HUGE_PAGES: &str = "/sys/kernel/mm/hugepages";

/// A PCI address without a device. DPDK would probe every device that is bound to a userspace
/// driver; with only this address allowed, it probes only devices that are opened.
const NO_DEVICE: &str = "0000:00:00.0";

/// The maximum length of recorded driver messages in bytes.
const DRIVER_LOG_MAX: usize = 2048;

/// The lock for configuration of devices.
pub(crate) struct Eal {
    _leave: MutexGuard<'static, EalState>,
}

/// The state of DPDK, which can be initialized only once in a process.
enum EalState {
    Uninitialized,
    Initialized(EalContext),
    Failed(String),
}

/// DPDK after its initialization.
pub(crate) struct EalContext {
    /// True if its memory consists of huge pages.
    huge_pages: bool,
    /// Memory pools of closed ports with frames that are still in use.
    retired: Vec<Memory>,
}

static STATE: Mutex<EalState> = Mutex::new(EalState::Uninitialized);

/// The memory pool that contains the frames of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory(pub(crate) *mut c_void);

// SAFETY: DPDK's memory pools are thread-safe; the pointer is only passed to DPDK.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Eal {
    /// Initializes DPDK on the first call, and acquires the lock.
    ///
    /// # Errors
    /// The initialization failed, now or before: the messages of DPDK.
    pub(crate) fn enter() -> Result<Self, String> {
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        if let EalState::Uninitialized = *state {
            *state = match start() {
                Ok(context) => EalState::Initialized(context),
                Err(problem) => EalState::Failed(problem),
            };
        }
        match &*state {
            EalState::Failed(problem) => Err(problem.clone()),
            EalState::Uninitialized | EalState::Initialized(_) => Ok(Self { _leave: state }),
        }
    }

    fn context(&mut self) -> &mut EalContext {
        match &mut *self._leave {
            EalState::Initialized(context) => context,
            EalState::Uninitialized | EalState::Failed(_) => {
                unreachable!("enter() initializes DPDK")
            }
        }
    }

    /// Returns whether its memory consists of huge pages.
    pub(crate) fn has_huge_pages(&mut self) -> bool {
        self.context().huge_pages
    }

    /// Frees the memory pools of closed devices when all their frames are back: frames of one
    /// device may be in the rings of another.
    pub(crate) fn retire(&mut self, memory: Option<Memory>) {
        let retired = &mut self.context().retired;
        retired.extend(memory);
        retired.retain(|memory| {
            // SAFETY: it is a pool until it is freed, and then removed from the list.
            let in_use = unsafe { shim::shim_out(memory.0) } > 0;
            if !in_use {
                // SAFETY: no device uses it, no frame of it is out, and no other reference exists.
                unsafe { shim::shim_free(memory.0) };
            }
            in_use
        });
    }
}

/// Returns the message of a negative error number with the driver messages before it: all
/// information about a failure.
pub(crate) fn explain(code: c_int) -> String {
    let error = io::Error::from_raw_os_error(code.saturating_neg());
    match driver_log().trim() {
        "" => error.to_string(),
        driver_log => format!("{error} ({})", driver_log.replace('\n', "; ")),
    }
}

/// Returns the driver messages since the last call.
fn driver_log() -> String {
    let mut text = [0_u8; DRIVER_LOG_MAX];
    let room = u32::try_from(DRIVER_LOG_MAX).expect("2048");
    // SAFETY: it writes at most `room` bytes, which is the size of the array.
    let len = unsafe { shim::shim_said(text.as_mut_ptr().cast(), room) };
    String::from_utf8_lossy(&text[..len as usize]).into_owned()
}

fn start() -> Result<EalContext, String> {
    let huge_pages = has_free_huge_pages();
    let cores = own_cores().map_err(|error| format!("reading the CPU affinity: {error}"))?;
    let lcores = format!("0@({cores})");
    let mut arguments = vec![
        "comporta",
        "--no-telemetry",
        "--log-level=warning",
        "--allow",
        NO_DEVICE,
        "--lcores",
        &lcores,
    ];
    // Either option avoids files outside the process; DPDK does not accept both.
    match huge_pages {
        true => arguments.push("--in-memory"),
        false => arguments.extend(["--no-shconf", "--no-huge", "-m", MEMORY_MB]),
    }
    // DPDK keeps pointers to the arguments, so they are leaked.
    let arguments: &'static [CString] = Vec::leak(arguments.into_iter().map(text).collect());
    let mut pointers: Vec<*mut c_char> = arguments
        .iter()
        .map(|word| word.as_ptr().cast_mut())
        .collect();
    pointers.push(std::ptr::null_mut());
    let pointers = Vec::leak(pointers);
    let count = c_int::try_from(arguments.len()).expect("there are few");
    // SAFETY: `pointers` are `count` C strings and a terminating null, as for `main`; they are
    // never freed. DPDK reorders the pointers but does not write the bytes.
    let code = unsafe { shim::shim_init(count, pointers.as_mut_ptr()) };
    match code {
        0 => Ok(EalContext {
            huge_pages,
            retired: Vec::new(),
        }),
        code => Err(explain(code)),
    }
}

/// Converts a text to a C string.
pub(crate) fn text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).expect("there is no zero in it")
}

/// Returns whether there are free huge pages.
fn has_free_huge_pages() -> bool {
    let sizes = fs::read_dir(HUGE_PAGES).into_iter().flatten().flatten();
    let free = sizes.filter_map(|size| fs::read_to_string(size.path().join("free_hugepages")).ok());
    free.into_iter()
        .any(|free| free.trim().parse::<u64>().is_ok_and(|free| free > 0))
}

/// Returns the cores of the calling thread in the syntax of DPDK, which keeps its affinity.
fn own_cores() -> rustix::io::Result<String> {
    let set = rustix::thread::sched_getaffinity(None)?;
    let cores = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
    let cores: Vec<_> = cores.map(|core| core.to_string()).collect();
    Ok(cores.join(","))
}

/// The registration of a thread with DPDK, which gives it a mempool cache; unregistered when the
/// thread ends.
struct Membership(bool);

impl Drop for Membership {
    fn drop(&mut self) {
        if self.0 {
            // SAFETY: this thread is registered, and is about to end.
            unsafe { shim::shim_leave_thread() };
        }
    }
}

thread_local! {
    static MEMBERSHIP: Cell<Option<Membership>> = const { Cell::new(None) };
    static IS_MEMBER: Cell<bool> = const { Cell::new(false) };
}

/// Registers the calling thread with DPDK once: it then has a cache of each memory pool. Without
/// the registration everything works, but more slowly.
#[inline]
pub(crate) fn join() {
    if !IS_MEMBER.get() {
        enter_thread();
    }
}

#[cold]
fn enter_thread() {
    // SAFETY: DPDK was initialized before the queue that calls this existed.
    let entered = unsafe { shim::shim_enter_thread() } == 0;
    MEMBERSHIP.set(Some(Membership(entered)));
    IS_MEMBER.set(true);
}
