//! The capture files of a dummy port (draft-ietf-opsawg-pcap). As in Open vSwitch, an existing file
//! is continued. Write errors are ignored: the tests check the file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use capture_file::pcap::{PACKET_HEADER_LEN, PcapHeader};
use packet::Frame;

/// Capture files of a dummy port.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DummyFiles {
    /// File of received frames.
    pub received: Option<PathBuf>,
    /// File of sent frames; may be the same file.
    pub sent: Option<PathBuf>,
}

/// The open capture files of a dummy port.
#[derive(Default)]
pub(super) struct PcapWriters {
    received: Option<PcapWriter>,
    /// None also if the file of received frames contains the sent frames.
    sent: Option<PcapWriter>,
    is_shared: bool,
}

impl PcapWriters {
    /// Opens `files`.
    pub(super) fn open(files: &DummyFiles) -> io::Result<Self> {
        let is_shared = files.sent.is_some() && files.sent == files.received;
        let open = |file: &Option<PathBuf>| file.as_deref().map(PcapWriter::open).transpose();
        Ok(Self {
            received: open(&files.received)?,
            sent: match is_shared {
                true => None,
                false => open(&files.sent)?,
            },
            is_shared,
        })
    }

    /// Writes received frames, if there is a file.
    pub(super) fn write_received(&mut self, frames: &[Frame]) {
        write_frames(self.received.as_mut(), frames);
    }

    /// Writes sent frames, if there is a file.
    pub(super) fn write_sent(&mut self, frames: &[Frame]) {
        let writer = match self.is_shared {
            true => self.received.as_mut(),
            false => self.sent.as_mut(),
        };
        write_frames(writer, frames);
    }
}

/// An open capture file.
struct PcapWriter {
    file: BufWriter<File>,
}

impl PcapWriter {
    /// Opens a file to append to it; an empty file gets the file header.
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        let is_empty = file.metadata()?.len() == 0;
        let mut file = BufWriter::new(file);
        if is_empty {
            file.write_all(&PcapHeader::ETHERNET.encode())?;
            file.flush()?;
        }
        Ok(Self { file })
    }

    fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut packet = Vec::with_capacity(PACKET_HEADER_LEN + frame.len());
        PcapHeader::ETHERNET.append_packet(&mut packet, frame);
        self.file.write_all(&packet)
    }
}

fn write_frames(writer: Option<&mut PcapWriter>, frames: &[Frame]) {
    if frames.is_empty() {
        return;
    }
    if let Some(writer) = writer {
        let written = frames
            .iter()
            .try_for_each(|frame| writer.write(frame.bytes()));
        let _ = written.and_then(|()| writer.file.flush());
    }
}
