//! Frames in pcap files.

use std::fs;
use std::io;
use std::path::Path;

use capture_file::pcap::{FILE_HEADER_LEN, PcapHeader};

/// Writes `frames` to `path`.
pub(crate) fn write(path: &Path, frames: &[Vec<u8>]) -> io::Result<()> {
    let mut bytes = PcapHeader::ETHERNET.encode();
    for frame in frames {
        PcapHeader::ETHERNET.append_packet(&mut bytes, frame);
    }
    fs::write(path, bytes)
}

/// Reads the frames that were written to `path`.
pub(crate) fn read(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    let bytes = fs::read(path)?;
    let broken = || io::Error::other("not a pcap file of this program");
    let header = PcapHeader::parse(&bytes).map_err(|_| broken())?;
    let packets = header.packets(&bytes[FILE_HEADER_LEN..]);
    packets
        .map(|packet| Ok(packet.map_err(|_| broken())?.bytes.to_vec()))
        .collect()
}
