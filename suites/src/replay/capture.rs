//! Frames sent by a dummy port: a growing file in the classic pcap format.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// Bytes of the file header.
const FILE_HEADER: u64 = 24;
/// Bytes of a record header, and the offset of the frame's length in it.
const RECORD_HEADER: usize = 16;
const CAPTURED: usize = 8;

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
            read: FILE_HEADER,
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
        while let Some((frame, behind)) = record(rest) {
            frames.push(frame.to_vec());
            rest = behind;
        }
        self.read += u64::try_from(bytes.len() - rest.len()).expect("a file's length");
        Ok(frames)
    }
}

/// Returns the first frame and the remaining bytes, if the frame is complete.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = bytes.get(CAPTURED..CAPTURED + 4)?.try_into().ok()?;
    let length = usize::try_from(u32::from_ne_bytes(length)).ok()?;
    let rest = bytes.get(RECORD_HEADER..)?;
    Some((rest.get(..length)?, &rest[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capture_returns_complete_frames_only() {
        let mut bytes = vec![0; 8];
        bytes.extend(3_u32.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend([7, 8]);
        assert_eq!(record(&bytes), None);
        bytes.extend([9, 1]);
        assert_eq!(record(&bytes), Some((&[7, 8, 9][..], &[1][..])));
    }
}
