//! The smallest forwarder there is: what comes in by one interface leaves by the other,
//! by one system call for up to 64 frames each way. What a switch on packet sockets can
//! come near and not, on these links, exceed.
//!
//! Not a switch: it reads nothing of a frame. A thread of this process, in place of a
//! process of its own, since there is nothing to set up.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::io::Errno;

use crate::{Failure, Namespace, RawSocket};

/// Frames a system call.
const BURST: usize = 64;

/// What a frame has beside what its MTU counts: a header with two tags. Hosts are asked to
/// leave no segmentation to a forwarder.
pub(crate) const HEADER: usize = 22;

/// A running forwarder. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Forwarder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Error>>,
}

impl Forwarder {
    /// Forwards between two interfaces of `inside`, on these cores.
    pub(crate) fn start(
        inside: &Namespace,
        interfaces: [&str; 2],
        mtu: u32,
        cores: &[usize],
    ) -> Result<Self, Failure> {
        let [first, second] = interfaces;
        let ends = [inside.raw_receiver(first)?, inside.raw_receiver(second)?];
        let stop = Arc::new(AtomicBool::new(false));
        let (told, cores) = (Arc::clone(&stop), cores.to_vec());
        let room = HEADER + usize::try_from(mtu).unwrap_or(usize::MAX - HEADER);
        let thread = thread::Builder::new()
            .name("forwarder".to_owned())
            .spawn(move || {
                if let Err(failure) = crate::pin_current_thread(&cores) {
                    return io::Error::other(failure.to_string());
                }
                forward(&ends, room, &told)
            })
            .map_err(Failure::to("start a thread"))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Whether it still forwards.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match &self.thread {
            Some(thread) if thread.is_finished() => {
                let gone = io::Error::from(ErrorKind::BrokenPipe);
                Err(Failure::to("forward frames")(gone))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Why it ended is of interest only while it is used.
            let _ = thread.join();
        }
    }
}

/// Forwards until it is told to stop, or cannot.
fn forward(ends: &[RawSocket; 2], room: usize, stop: &AtomicBool) -> io::Error {
    let mut rooms = vec![vec![0; room]; BURST];
    let mut lengths = [0; BURST];
    let [first, second] = ends;
    while !stop.load(Ordering::Relaxed) {
        for (from, to) in [(first, second), (second, first)] {
            if let Err(error) = shift(from, to, &mut rooms, &mut lengths) {
                return error;
            }
        }
    }
    ErrorKind::Interrupted.into()
}

fn shift(
    from: &RawSocket,
    to: &RawSocket,
    rooms: &mut [Vec<u8>],
    lengths: &mut [usize; BURST],
) -> io::Result<()> {
    let count = from.receive_burst(rooms, lengths)?;
    let frames: [&[u8]; BURST] = std::array::from_fn(|index| &rooms[index][..lengths[index]]);
    let mut rest = &frames[..count];
    while !rest.is_empty() {
        match to.send(rest) {
            Ok(sent) => rest = &rest[sent..],
            // What finds no room is dropped: it would have to wait for the far end.
            Err(error) if is_full(&error) => rest = &rest[1..],
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_full(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| [Errno::NOBUFS, Errno::AGAIN, Errno::NETDOWN].contains(&errno))
}
