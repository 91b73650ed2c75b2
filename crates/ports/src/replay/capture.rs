//! Reader of capture files in libpcap's format (draft-ietf-opsawg-pcap), which keeps the file in
//! memory.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use packet::Frame;

/// Maximum length of a file: three million small frames. All of it stays in memory.
const FILE_LEN_MAX: u64 = 256 << 20;

/// Lengths of the file header and of a record header (sections 4 and 5), in bytes.
const FILE_HEADER: usize = 24;
const FRAME_HEADER: usize = 16;

/// Magic numbers of files with microseconds and with nanoseconds.
const MAGIC: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];

/// Link type of Ethernet.
const ETHERNET: u32 = 1;

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
        const TRUNCATED: &str = "the last frame is truncated";
        let word = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk::<4>);
        let magic = word(0).ok_or("not a capture file of libpcap")?;
        let is_magic = |value: &u32| MAGIC.contains(value);
        let number: fn([u8; 4]) -> u32 = match () {
            () if is_magic(&u32::from_le_bytes(*magic)) => u32::from_le_bytes,
            () if is_magic(&u32::from_be_bytes(*magic)) => u32::from_be_bytes,
            () => return Err("not a capture file of libpcap (`editcap -F pcap` converts it)"),
        };
        let length = |at| word(at).and_then(|word| usize::try_from(number(*word)).ok());
        // The upper half is the length of frame check sequences (section 4).
        if word(20).map(|link| number(*link) & 0xffff) != Some(ETHERNET) {
            return Err("its frames are not Ethernet frames");
        }
        let mut frames = Vec::new();
        let mut at = FILE_HEADER;
        while at < bytes.len() {
            let (captured_len, original_len) = (length(at + 8), length(at + 12));
            let (captured_len, original_len) = captured_len.zip(original_len).ok_or(TRUNCATED)?;
            match captured_len {
                _ if captured_len < original_len => {
                    return Err("its frames were truncated by the snap length");
                }
                0..FRAME_LEN_MIN => return Err("a frame is shorter than an Ethernet header"),
                _ if captured_len > Frame::LEN_MAX => {
                    return Err("a frame is longer than the maximum");
                }
                _ => {}
            }
            let frame = at + FRAME_HEADER..at + FRAME_HEADER + captured_len;
            at = frame.end;
            if at > bytes.len() {
                return Err(TRUNCATED);
            }
            frames.push(frame);
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
