//! Frames in pcap files (draft-ietf-opsawg-pcap), in native byte order.
//!
//! The reader only accepts files of this writer: no other byte order, and no other units.

use std::fs;
use std::io;
use std::path::Path;

/// The file header: magic number, version 2.4, no corrections, the snapshot length, Ethernet.
pub(crate) fn file_header() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(0xa1b2_c3d4_u32.to_ne_bytes());
    bytes.extend(2_u16.to_ne_bytes());
    bytes.extend(4_u16.to_ne_bytes());
    for word in [0, 0, 65_535, 1_u32] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes
}

/// The length of a record header: a time, and the frame's length twice.
pub(crate) const FRAME_HEADER: usize = 16;

/// A frame with its record header.
pub(crate) fn record(frame: &[u8]) -> io::Result<Vec<u8>> {
    let len = u32::try_from(frame.len()).map_err(io::Error::other)?;
    let header = [0, 0, len, len].into_iter().flat_map(u32::to_ne_bytes);
    Ok(header.chain(frame.iter().copied()).collect())
}

/// Writes `frames` to `path`.
pub(crate) fn write(path: &Path, frames: &[Vec<u8>]) -> io::Result<()> {
    let mut bytes = file_header();
    for frame in frames {
        bytes.extend(record(frame)?);
    }
    fs::write(path, bytes)
}

/// Reads the frames that were written to `path`.
pub(crate) fn read(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    let bytes = fs::read(path)?;
    let broken = || io::Error::other("not a pcap file of this program");
    let mut rest = bytes.strip_prefix(&*file_header()).ok_or_else(broken)?;
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let (header, behind) = rest.split_at_checked(FRAME_HEADER).ok_or_else(broken)?;
        let len = header.last_chunk().copied().map(u32::from_ne_bytes);
        let len = len.and_then(|len| usize::try_from(len).ok());
        let split = len.and_then(|len| behind.split_at_checked(len));
        let (frame, behind) = split.ok_or_else(broken)?;
        frames.push(frame.to_vec());
        rest = behind;
    }
    Ok(frames)
}
