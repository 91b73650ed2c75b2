//! Frames sent by a dummy port: a growing file in the classic pcap format.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use capture_file::pcap::{FILE_HEADER_LEN, PcapHeader};

/// File, and the offset of the next frame.
pub(crate) struct Capture {
    path: PathBuf,
    read: u64,
}

impl Capture {
    /// Returns a capture of the file at `path`, which need not exist yet.
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self {
            path,
            read: FILE_HEADER_LEN as u64,
        }
    }

    /// Returns the frames since the last call.
    pub(crate) fn take(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        file.seek(SeekFrom::Start(self.read))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let (mut frames, mut rest) = (Vec::new(), &bytes[..]);
        while let Some((frame, behind)) = PcapHeader::ETHERNET.split_packet(rest) {
            frames.push(frame.bytes.to_vec());
            rest = behind;
        }
        self.read += u64::try_from(bytes.len() - rest.len()).expect("a file's length");
        Ok(frames)
    }
}
