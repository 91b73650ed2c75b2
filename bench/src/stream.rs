//! A pcap stream of frames into a FIFO, which a `net_pcap` device reads as a file of unlimited
//! length. A file that the device repeats has so few flows that a cache holds all of them.
//!
//! It is not a device and has no schedule: frames are written as fast as they are read.

mod randomize;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use capture_file::pcap::PcapHeader;
use clap::Args;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::pipe::fcntl_setpipe_size;
use testbed::Clock;

pub(crate) use randomize::{Field, RandomStream};

use crate::{Failure, pcap};

/// Content and destination of a stream.
#[derive(Args)]
pub(crate) struct Stream {
    /// The FIFO.
    fifo: PathBuf,
    /// A file of frames that are sent in turn, all of IPv4 without options.
    frames: PathBuf,
    /// Fields that are random in each frame; checksums are updated. Ports are those of TCP and UDP
    /// only.
    #[arg(long, value_delimiter = ',')]
    anew: Vec<Field>,
    /// The number of frames after which the sequence repeats; it never does by default.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    cycle: Option<u64>,
    /// The frames are one session: random fields are the same in all frames of it, and those of the
    /// sender are the receiver's in replies.
    #[arg(long, conflicts_with = "cycle")]
    sessions: bool,
    /// Longest duration of the stream, and of the wait for a reader, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

/// Bytes of a write: the pages of a pipe are then full.
const CHUNK: usize = 1 << 16;

/// Size of the pipe's buffer in bytes, more than a millisecond of the stream: the kernel's limit
/// for unprivileged processes (pipe(7), `pipe-max-size`).
const READY: usize = 1 << 20;

/// Pause when the pipe is full. The writer does not block on the pipe: each page that is read would
/// wake it, at the cost of the reader.
const PAUSE: Duration = Duration::from_micros(100);

/// Writes until the reader closes the FIFO or the time is over.
pub(crate) fn run(stream: &Stream) -> Result<(), Failure> {
    let frames = pcap::read(&stream.frames)?;
    let mut source = match stream.sessions {
        true => RandomStream::sessions(&frames, &stream.anew)?,
        false => RandomStream::new(&frames, &stream.anew, stream.cycle)?,
    };
    let (clock, limit) = (Clock::start(), Duration::from_secs(stream.seconds));
    let end = clock.now() + limit;
    let mut pipe = clock.wait_for("a reader", limit, || Ok(opened(&stream.fifo)))??;
    fcntl_setpipe_size(&pipe, READY)?;
    let mut bytes = PcapHeader::ETHERNET.encode();
    while clock.now() < end {
        source.fill(CHUNK, &mut bytes);
        match pipe.write(&bytes[..CHUNK]) {
            Ok(written) => drop(bytes.drain(..written)),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => clock.sleep_until(clock.now() + PAUSE),
                ErrorKind::BrokenPipe => return Ok(()),
                ErrorKind::Interrupted => {}
                _ => return Err(error.into()),
            },
        }
    }
    Ok(())
}

/// Opens the FIFO non-blocking; `None` until it has a reader.
fn opened(fifo: &Path) -> Option<io::Result<File>> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match open(fifo, flags, Mode::empty()) {
        Err(Errno::NXIO) => None,
        other => Some(other.map(File::from).map_err(io::Error::from)),
    }
}
