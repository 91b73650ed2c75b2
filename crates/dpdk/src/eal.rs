//! DPDK itself, once in a process: started when the first port is opened, and never
//! ended, for nothing of it is left outside of the process.
//!
//! Whoever sets devices up holds [`Eal`]: DPDK does not allow two at a time. What
//! workers do, receiving and sending, needs no such leave.

use std::cell::Cell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::fs;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::thread::CpuSet;

use crate::shim;

/// Memory for frames where there are no huge pages, in megabytes: 400,000 short frames.
/// It is taken from the system page by page as it is used.
const MEMORY_MB: &str = "1024";

/// Where the kernel says which huge pages there are.
const HUGE_PAGES: &str = "/sys/kernel/mm/hugepages";

/// An address at which there is no device. DPDK would take every device that is bound
/// to a driver for userspace; allowed this one only, it takes those that are asked for.
const NO_DEVICE: &str = "0000:00:00.0";

/// The most bytes kept of what drivers say.
const SAID_MAX: usize = 2048;

/// The one who may set devices up.
pub(crate) struct Eal {
    _leave: MutexGuard<'static, State>,
}

/// What became of starting DPDK, which cannot be done twice in a process.
enum State {
    NotYet,
    Started(Started),
    Failed(String),
}

/// DPDK as it was started.
pub(crate) struct Started {
    /// Whether its memory is of huge pages.
    huge_pages: bool,
    /// Memory of ports that are closed, of which some frame is still under way.
    retired: Vec<Memory>,
}

static STATE: Mutex<State> = Mutex::new(State::NotYet);

/// The memory that the frames of a device lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory(pub(crate) *mut c_void);

// SAFETY: DPDK's pools may be used by all threads at once; the pointer is only handed to it.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Eal {
    /// Starts DPDK, if it is not yet, and waits for whoever else sets a device up.
    ///
    /// # Errors
    /// It could not be started, now or before: what it said of that.
    pub(crate) fn enter() -> Result<Self, String> {
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::NotYet = *state {
            *state = match start() {
                Ok(started) => State::Started(started),
                Err(problem) => State::Failed(problem),
            };
        }
        match &*state {
            State::Failed(problem) => Err(problem.clone()),
            State::NotYet | State::Started(_) => Ok(Self { _leave: state }),
        }
    }

    fn started(&mut self) -> &mut Started {
        match &mut *self._leave {
            State::Started(started) => started,
            State::NotYet | State::Failed(_) => unreachable!("nobody enters then"),
        }
    }

    /// Whether its memory is of huge pages.
    pub(crate) fn has_huge_pages(&mut self) -> bool {
        self.started().huge_pages
    }

    /// Frees memory that no device uses any more, once all frames are back in it: frames
    /// go from one device's memory into the rings of another.
    pub(crate) fn retire(&mut self, memory: Option<Memory>) {
        let retired = &mut self.started().retired;
        retired.extend(memory);
        retired.retain(|memory| {
            // SAFETY: it is a pool until it is freed, and then it is kept no more.
            let in_use = unsafe { shim::shim_out(memory.0) } > 0;
            if !in_use {
                // SAFETY: no device has it, no frame of it is out, and nobody else keeps it.
                unsafe { shim::shim_free(memory.0) };
            }
            in_use
        });
    }
}

/// What a negative error number says, and what drivers said before it: all that is
/// known of a failure.
pub(crate) fn explain(code: c_int) -> String {
    let error = io::Error::from_raw_os_error(code.saturating_neg());
    match said().trim() {
        "" => error.to_string(),
        said => format!("{error} ({})", said.replace('\n', "; ")),
    }
}

/// What drivers have said since this was last asked.
fn said() -> String {
    let mut text = [0_u8; SAID_MAX];
    let room = u32::try_from(SAID_MAX).expect("2048");
    // SAFETY: it writes at most `room` bytes, which is how many there are.
    let len = unsafe { shim::shim_said(text.as_mut_ptr().cast(), room) };
    String::from_utf8_lossy(&text[..len as usize]).into_owned()
}

fn start() -> Result<Started, String> {
    let huge_pages = has_free_huge_pages();
    let cores = own_cores().map_err(|error| format!("asking for the cores: {error}"))?;
    let lcores = format!("0@({cores})");
    let mut words = vec![
        "comporta",
        "--no-telemetry",
        "--log-level=warning",
        "--allow",
        NO_DEVICE,
        "--lcores",
        &lcores,
    ];
    // Each of them leaves no file anywhere; DPDK does not take both.
    match huge_pages {
        true => words.push("--in-memory"),
        false => words.extend(["--no-shconf", "--no-huge", "-m", MEMORY_MB]),
    }
    // DPDK keeps pointers to them, so they stay.
    let words: &'static [CString] = Vec::leak(words.into_iter().map(text).collect());
    let mut pointers: Vec<*mut c_char> =
        words.iter().map(|word| word.as_ptr().cast_mut()).collect();
    pointers.push(std::ptr::null_mut());
    let pointers = Vec::leak(pointers);
    let count = c_int::try_from(words.len()).expect("there are few");
    // SAFETY: `pointers` are `count` texts that end in zero, and a null behind them, as
    // for `main`; they are never freed. DPDK moves the pointers about, not the bytes.
    let code = unsafe { shim::shim_init(count, pointers.as_mut_ptr()) };
    match code {
        0 => Ok(Started {
            huge_pages,
            retired: Vec::new(),
        }),
        code => Err(explain(code)),
    }
}

/// The text as C has it.
pub(crate) fn text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).expect("there is no zero in it")
}

/// Whether there are huge pages that nobody has taken.
fn has_free_huge_pages() -> bool {
    let sizes = fs::read_dir(HUGE_PAGES).into_iter().flatten().flatten();
    let free = sizes.filter_map(|size| fs::read_to_string(size.path().join("free_hugepages")).ok());
    free.into_iter()
        .any(|free| free.trim().parse::<u64>().is_ok_and(|free| free > 0))
}

/// The cores of the calling thread, as DPDK writes them: it is to run where it ran.
fn own_cores() -> rustix::io::Result<String> {
    let set = rustix::thread::sched_getaffinity(None)?;
    let cores = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
    let cores: Vec<_> = cores.map(|core| core.to_string()).collect();
    Ok(cores.join(","))
}

/// A thread's leave to keep frames of a pool for itself; it is given up when the thread
/// ends.
struct Membership(bool);

impl Drop for Membership {
    fn drop(&mut self) {
        if self.0 {
            // SAFETY: this thread entered, and is about to end.
            unsafe { shim::shim_leave_thread() };
        }
    }
}

thread_local! {
    static MEMBERSHIP: Cell<Option<Membership>> = const { Cell::new(None) };
    static IS_MEMBER: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread one of DPDK's, if it is not yet: it then keeps some frames of
/// each pool for itself. Without it all is the same, but slower.
#[inline]
pub(crate) fn join() {
    if !IS_MEMBER.get() {
        enter_thread();
    }
}

#[cold]
fn enter_thread() {
    // SAFETY: DPDK was started before there was a queue to call this.
    let entered = unsafe { shim::shim_enter_thread() } == 0;
    MEMBERSHIP.set(Some(Membership(entered)));
    IS_MEMBER.set(true);
}
