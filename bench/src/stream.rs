//! A stream of frames, as libpcap writes them, into a FIFO: what a device of `net_pcap`
//! reads for as long as it likes, since it takes a FIFO for a file. A file that is repeated
//! has so few flows that a cache remembers them all.
//!
//! Not a device, and no clock: frames go as fast as they are read.

mod anew;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::pipe::fcntl_setpipe_size;
use testbed::Clock;

pub(crate) use anew::{Field, Source};

use crate::{Failure, pcap};

/// What is written where.
#[derive(Args)]
pub(crate) struct Stream {
    /// The FIFO.
    fifo: PathBuf,
    /// A file of frames, all of IPv4 without options, that are sent in turn.
    frames: PathBuf,
    /// What of each frame is made anew by chance; checksums follow. Ports are of TCP and UDP
    /// alone.
    #[arg(long, value_delimiter = ',')]
    anew: Vec<Field>,
    /// After how many frames the same ones come again; without it they never do.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    cycle: Option<u64>,
    /// How long it goes on at most, and waits for a reader.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

/// What is written at once, in bytes: a pipe's pages then are full ones.
const CHUNK: usize = 1 << 16;

/// How much of the stream lies ready for the reader, in bytes: as much as the kernel gives
/// to everybody (pipe(7), `pipe-max-size`), a millisecond and more of it.
const READY: usize = 1 << 20;

/// How long a full pipe is left alone. The writer does not wait in the pipe itself, or each
/// page that is read would wake it, and the reader would pay for that.
const PAUSE: Duration = Duration::from_micros(100);

/// Writes until nobody reads any more, or the time is over.
pub(crate) fn run(stream: &Stream) -> Result<(), Failure> {
    let frames = pcap::read(&stream.frames)?;
    let mut source = Source::new(&frames, &stream.anew, stream.cycle)?;
    let (clock, limit) = (Clock::start(), Duration::from_secs(stream.seconds));
    let end = clock.now() + limit;
    let mut pipe = clock.wait_for("a reader", limit, || Ok(opened(&stream.fifo)))??;
    fcntl_setpipe_size(&pipe, READY)?;
    let mut bytes = pcap::file_header();
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

/// The FIFO, as soon as somebody reads from it; it never makes the writer wait.
fn opened(fifo: &Path) -> Option<io::Result<File>> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match open(fifo, flags, Mode::empty()) {
        Err(Errno::NXIO) => None,
        other => Some(other.map(File::from).map_err(io::Error::from)),
    }
}
