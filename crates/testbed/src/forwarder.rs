//! A minimal forwarder: frames received from one interface are sent by the other, with one system
//! call for up to 64 frames in each direction. It is the upper bound for switches on packet sockets
//! over these links.
//!
//! It reads nothing of a frame, and runs as a thread of this process, since it needs no setup.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::io::Errno;

use crate::{Failure, Namespace, RawSocket};

/// Maximum number of frames of a system call.
const BURST: usize = 64;

/// Bytes of a frame beyond the MTU: a header with two tags. Hosts leave no segmentation to a
/// forwarder.
pub(crate) const HEADER: usize = 22;

/// A running forwarder. Its drop ends it.
#[derive(Debug)]
pub(crate) struct Forwarder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Error>>,
}

impl Forwarder {
    /// Starts forwarding between two interfaces of `inside`, on these cores.
    pub(crate) fn start(
        inside: &Namespace,
        interfaces: [&str; 2],
        mtu: u32,
        cores: &[usize],
    ) -> Result<Self, Failure> {
        let [first, second] = interfaces;
        let ends = [inside.raw_receiver(first)?, inside.raw_receiver(second)?];
        let stop = Arc::new(AtomicBool::new(false));
        let (thread_stop, cores) = (Arc::clone(&stop), cores.to_vec());
        let room = HEADER + usize::try_from(mtu).unwrap_or(usize::MAX - HEADER);
        let thread = thread::Builder::new()
            .name("forwarder".to_owned())
            .spawn(move || {
                if let Err(failure) = crate::pin_current_thread(&cores) {
                    return io::Error::other(failure.to_string());
                }
                forward(&ends, room, &thread_stop)
            })
            .map_err(Failure::to("start a thread"))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Checks that it is running.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match &self.thread {
            Some(thread) if thread.is_finished() => {
                let ended = io::Error::from(ErrorKind::BrokenPipe);
                Err(Failure::to("forward frames")(ended))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The reason of its end only matters while it is used.
            let _ = thread.join();
        }
    }
}

/// Forwards until it is stopped or fails.
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
            // A frame without space is dropped; otherwise it would wait for the peer.
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
