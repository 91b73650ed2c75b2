//! A forwarder with known faults between two interfaces: delay, loss, duplication, modification,
//! reordering and a rate limit, selected by a seed. It counts its faults, so that an instrument can
//! be checked against them. (The kernel's netem has the same purpose.)
//!
//! ```text
//!   frame --> loss? --> modification? --> queue and rate --> delay + jitter --> duplication? --> out
//!                                                            (+ hold: reordering)
//! ```
//!
//! It reads nothing of a frame. [`ImpairedDirection`] decides the fate of each, without a clock; this module is
//! the thread that owns both ends and never sleeps.

mod direction;
mod faults;
mod sampler;

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::io::Errno;

pub use direction::FaultCounts;
pub use faults::{Chance, Faults, Impairments};

use crate::forwarder::HEADER;
use crate::{Clock, Failure, Namespace, RawSocket};
use direction::ImpairedDirection;

/// Maximum number of frames from one end before the other is served.
const BURST: usize = 64;

/// Maximum length of a frame in bytes: the largest MTU of the kernel's devices.
const ROOM: usize = 65_535 + HEADER;

/// A running forwarder with faults. Its drop ends it; frames that it holds are lost.
#[derive(Debug)]
pub struct Impairment {
    stop: Arc<AtomicBool>,
    counts: Arc<Mutex<[FaultCounts; 2]>>,
    thread: Option<JoinHandle<io::Error>>,
}

impl Impairment {
    /// Starts forwarding between two interfaces of `inside` with these faults, on these cores, by
    /// `clock`.
    ///
    /// # Errors
    /// The interfaces do not exist, or the system cannot start a thread.
    pub fn start(
        inside: &Namespace,
        interfaces: [&str; 2],
        impairments: &Impairments,
        clock: &Clock,
        cores: &[usize],
    ) -> Result<Self, Failure> {
        let [first, second] = interfaces;
        let ends = [inside.raw_receiver(first)?, inside.raw_receiver(second)?];
        let lines = impairments.lines();
        let stop = Arc::new(AtomicBool::new(false));
        let counts = Arc::new(Mutex::new([FaultCounts::default(); 2]));
        let (thread_stop, shown) = (Arc::clone(&stop), Arc::clone(&counts));
        let (clock, cores) = (*clock, cores.to_vec());
        let thread = thread::Builder::new()
            .name("impairment".to_owned())
            .spawn(move || {
                if let Err(failure) = crate::pin_current_thread(&cores) {
                    return io::Error::other(failure.to_string());
                }
                forward(&ends, lines, &clock, &thread_stop, &shown)
            })
            .map_err(Failure::to("start a thread"))?;
        Ok(Self {
            stop,
            counts,
            thread: Some(thread),
        })
    }

    /// Returns the counts of faults so far: from the first interface to the second, and back.
    #[must_use]
    pub fn counts(&self) -> [FaultCounts; 2] {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that it is running.
    ///
    /// # Errors
    /// An interface disappeared or is down.
    pub fn check(&self) -> Result<(), Failure> {
        match &self.thread {
            Some(thread) if thread.is_finished() => {
                let ended = io::Error::from(ErrorKind::BrokenPipe);
                Err(Failure::to("forward frames with faults")(ended))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Impairment {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The reason of its end only matters while it is used.
            let _ = thread.join();
        }
    }
}

/// Forwards until it is stopped or fails.
fn forward(
    ends: &[RawSocket; 2],
    mut lines: [ImpairedDirection; 2],
    clock: &Clock,
    stop: &AtomicBool,
    shown: &Mutex<[FaultCounts; 2]>,
) -> io::Error {
    let mut room = vec![0; ROOM];
    let [first, second] = ends;
    while !stop.load(Ordering::Relaxed) {
        let mut is_new = false;
        for ((from, to), line) in [(first, second), (second, first)].iter().zip(&mut lines) {
            match shift(from, to, line, clock, &mut room) {
                Ok(moved) => is_new |= moved,
                Err(error) => return error,
            }
        }
        if is_new {
            let counts = lines.each_ref().map(|line| *line.counts());
            *shown.lock().unwrap_or_else(PoisonError::into_inner) = counts;
        }
    }
    ErrorKind::Interrupted.into()
}

/// Receives frames and sends those that are due. Returns false if there were none.
fn shift(
    from: &RawSocket,
    to: &RawSocket,
    line: &mut ImpairedDirection,
    clock: &Clock,
    room: &mut [u8],
) -> io::Result<bool> {
    let mut moved = false;
    for _ in 0..BURST {
        let Some(length) = from.receive(room)? else {
            break;
        };
        line.handle_frame(&room[..length], clock.now());
        moved = true;
    }
    while let Some(frame) = line.poll_frame(clock.now()) {
        let refused = match to.send(&[&frame]) {
            Ok(_) => false,
            Err(error) if is_full(&error) => true,
            Err(error) => return Err(error),
        };
        line.handle_sent(frame, refused);
        moved = true;
    }
    Ok(moved)
}

fn is_full(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| [Errno::NOBUFS, Errno::AGAIN, Errno::NETDOWN].contains(&errno))
}

#[cfg(test)]
mod tests;
