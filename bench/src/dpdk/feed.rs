//! The input of a `net_pcap` device: a file that it repeats, or a stream from a separate process,
//! one for each device.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use rustix::fs::{CWD, Mode, mkfifoat};
use testbed::{Process, Program, pin_current_thread};

use super::tables::{FrameSource, TrafficTable};
use super::{FORWARDING, OTHERS};
use crate::stream::{Field, RandomStream};
use crate::switch::{Site, word};
use crate::{Failure, pcap};

/// The file with the frames, and the FIFO of a stream.
const FILE: &str = "frames.pcap";
const FIFO: &str = "frames.fifo";

/// The file with the frames of port 2.
const REPLIES: &str = "replies.pcap";

/// Longest duration of a stream in seconds: the warm-ups of all settings of a slow peer.
const SECONDS: &str = "600";

/// The prepared frames of a table.
pub(super) struct FeedTrace<'a> {
    site: &'a Site,
    source: FrameSource,
    /// The number of frames that the device keeps in its memory.
    pub(super) kept: usize,
    /// The mean length of a frame with its record header in a stream, in bytes.
    mean_len: f64,
}

/// Frames that a second device repeats.
pub(super) struct ReplyTrace {
    /// The device arguments.
    pub(super) words: String,
    /// The number of frames that the device keeps in its memory.
    pub(super) kept: usize,
}

impl ReplyTrace {
    /// Writes the frames to the file that the device reads.
    pub(super) fn write(site: &Site, frames: &[Vec<u8>]) -> Result<Self, Failure> {
        let path = site.directory.join(REPLIES);
        pcap::write(&path, frames)?;
        Ok(Self {
            words: format!("rx_pcap={},infinite_rx=1", word(&path)),
            kept: frames.len(),
        })
    }
}

/// The input of a device; dropping it ends the stream.
pub(super) struct Feed {
    /// The device arguments.
    pub(super) words: String,
    /// The process that writes the stream, if there is one.
    _writer: Option<Process>,
}

impl<'a> FeedTrace<'a> {
    /// Writes the frames of `table` to the file that devices and stream processes read.
    pub(super) fn write(
        site: &'a Site,
        table: &TrafficTable,
        frames: &[Vec<u8>],
    ) -> Result<Self, Failure> {
        pcap::write(&site.directory.join(FILE), frames)?;
        let (kept, mean_len) = match table.source {
            FrameSource::Repeated => (frames.len(), 0.0),
            FrameSource::Streamed { fields, cycle } => {
                (0, RandomStream::new(frames, fields, cycle)?.mean_len())
            }
            FrameSource::Sessions { fields } => {
                (0, RandomStream::sessions(frames, fields)?.mean_len())
            }
        };
        Ok(Self {
            site,
            source: table.source,
            kept,
            mean_len,
        })
    }

    /// Returns true if the frames are streamed.
    pub(super) const fn is_streamed(&self) -> bool {
        !matches!(self.source, FrameSource::Repeated)
    }

    /// Prepares the input of a device.
    pub(super) fn feed(&self) -> Result<Feed, Failure> {
        let writer = match self.source {
            FrameSource::Repeated => {
                return Ok(Feed {
                    words: format!("rx_pcap={},infinite_rx=1", self.path(FILE)),
                    _writer: None,
                });
            }
            FrameSource::Streamed { fields, cycle } => {
                let cycle = cycle.map(|cycle| ["--cycle".to_owned(), cycle.to_string()]);
                self.stream(fields, cycle.into_iter().flatten().collect())?
            }
            FrameSource::Sessions { fields } => {
                self.stream(fields, vec!["--sessions".to_owned()])?
            }
        };
        Ok(Feed {
            words: format!("rx_pcap={}", self.path(FIFO)),
            _writer: Some(writer),
        })
    }

    /// Measures for `millis` milliseconds the frames a second that a stream delivers to a reader
    /// that discards them; `None` without a stream.
    pub(super) fn limit(&self, millis: u32) -> Result<Option<f64>, Failure> {
        if !self.is_streamed() {
            return Ok(None);
        }
        let feed = self.feed()?;
        let (clock, fifo) = (self.site.clock, self.site.directory.join(FIFO));
        let reader = thread::spawn(move || -> io::Result<f64> {
            pin_current_thread(&[FORWARDING]).map_err(io::Error::other)?;
            let (mut fifo, mut bytes) = (File::open(fifo)?, vec![0; 1 << 16]);
            let (start, time) = (clock.now(), Duration::from_millis(millis.into()));
            let mut read = 0;
            while clock.now().since(start) < time {
                read += fifo.read(&mut bytes)?;
            }
            Ok(read as f64 / clock.now().since(start).as_secs_f64())
        });
        let bytes_a_second = reader.join().map_err(|_| "the reader ended")??;
        drop(feed);
        Ok(Some(bytes_a_second / self.mean_len))
    }

    /// Starts the process that writes the stream into a new FIFO.
    fn stream(&self, fields: &[Field], options: Vec<String>) -> Result<Process, Failure> {
        let fifo = self.site.directory.join(FIFO);
        match fs::remove_file(&fifo) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR)?;
        let own: PathBuf = std::env::current_exe()?;
        let fields = fields.iter().filter_map(Field::to_possible_value);
        let fields: Vec<String> = fields.map(|value| value.get_name().to_owned()).collect();
        let program = Program::new(own)
            .arg("stream")
            .args([self.path(FIFO), self.path(FILE)])
            .args(["--seconds", SECONDS, "--anew", &fields.join(",")])
            .args(options)
            .on_cores(&[OTHERS])
            .log(self.site.directory.join("stream.log"));
        Ok(self.site.spawner.start(program)?)
    }

    fn path(&self, name: &str) -> String {
        word(&self.site.directory.join(name))
    }
}
