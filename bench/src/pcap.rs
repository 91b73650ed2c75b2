//! A file of frames as libpcap writes it (draft-ietf-opsawg-pcap), in this machine's order
//! of bytes.

use std::fs;
use std::io;
use std::path::Path;

/// Writes `frames` to `path`.
pub(crate) fn write(path: &Path, frames: &[Vec<u8>]) -> io::Result<()> {
    // Magic number, version 2.4, no corrections, the longest frame, Ethernet.
    let mut bytes = Vec::new();
    bytes.extend(0xa1b2_c3d4_u32.to_ne_bytes());
    bytes.extend(2_u16.to_ne_bytes());
    bytes.extend(4_u16.to_ne_bytes());
    for word in [0, 0, 65_535, 1_u32] {
        bytes.extend(word.to_ne_bytes());
    }
    for frame in frames {
        let len = u32::try_from(frame.len()).map_err(io::Error::other)?;
        for word in [0, 0, len, len] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(frame);
    }
    fs::write(path, bytes)
}
