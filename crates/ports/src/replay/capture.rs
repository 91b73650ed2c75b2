//! Reader of capture files in libpcap's format (draft-ietf-opsawg-pcap), which keeps the file in
//! memory.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use capture_file::pcap::{
    BadPcapHeader, FILE_HEADER_LEN, PACKET_HEADER_LEN, PcapHeader, TruncatedPacket,
};
use capture_file::{CapturePacket, LINKTYPE_ETHERNET};
use packet::Frame;

/// Maximum length of a file: three million small frames. All of it stays in memory.
const FILE_LEN_MAX: u64 = 256 << 20;

/// Minimum length of a frame: an Ethernet header.
const FRAME_LEN_MIN: usize = 14;

/// A parsed capture file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct PcapFile {
    bytes: Vec<u8>,
    frames: Vec<Range<usize>>,
}

impl PcapFile {
    /// Reads `file`.
    pub(super) fn read(file: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let file = File::open(file)?;
        file.take(FILE_LEN_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_LEN_MAX {
            return Err(io::Error::other("the file is longer than 256 MiB"));
        }
        Self::parse(bytes).map_err(io::Error::other)
    }

    /// Locates the frames in the bytes of a file, or returns the defect.
    pub(super) fn parse(bytes: Vec<u8>) -> Result<Self, &'static str> {
        const NOT_ETHERNET: &str = "its frames are not Ethernet frames";
        let header = PcapHeader::parse(&bytes).map_err(|error| match error {
            _ if bytes.len() < 4 => "not a capture file of libpcap",
            BadPcapHeader::Magic => "not a capture file of libpcap (`editcap -F pcap` converts it)",
            BadPcapHeader::Truncated => NOT_ETHERNET,
        })?;
        if header.link_type != LINKTYPE_ETHERNET {
            return Err(NOT_ETHERNET);
        }
        let mut frames = Vec::new();
        let mut end = FILE_HEADER_LEN;
        for packet in header.packets(&bytes[FILE_HEADER_LEN..]) {
            let CapturePacket {
                bytes,
                original_length,
                ..
            } = packet.map_err(|TruncatedPacket| "the last frame is truncated")?;
            match bytes.len() {
                len if (len as u64) < u64::from(original_length) => {
                    return Err("its frames were truncated by the snap length");
                }
                0..FRAME_LEN_MIN => return Err("a frame is shorter than an Ethernet header"),
                len if len > Frame::LEN_MAX => return Err("a frame is longer than the maximum"),
                _ => {}
            }
            let start = end + PACKET_HEADER_LEN;
            end = start + bytes.len();
            frames.push(start..end);
        }
        match frames.is_empty() {
            true => Err("the file has no frames"),
            false => Ok(Self { bytes, frames }),
        }
    }

    /// Number of frames.
    pub(super) const fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns the bytes of the frame with this index.
    pub(super) fn frame(&self, index: usize) -> &[u8] {
        &self.bytes[self.frames[index].clone()]
    }
}
