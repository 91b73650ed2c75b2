//! Frames of a file as libpcap writes it (draft-ietf-opsawg-pcap), kept one behind the
//! other.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use packet::Frame;

/// The longest file that is read: three million small frames. All of it stays in memory.
const FILE_LEN_MAX: u64 = 256 << 20;

/// The file's header, and that of each frame (sections 4 and 5).
const FILE_HEADER: usize = 24;
const FRAME_HEADER: usize = 16;

/// How a file begins that counts microseconds, and one that counts nanoseconds.
const MAGIC: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];

/// The type of links whose frames begin with an Ethernet header.
const ETHERNET: u32 = 1;

/// The shortest frame: its Ethernet header.
const FRAME_LEN_MIN: usize = 14;

/// Frames.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Capture {
    bytes: Vec<u8>,
    frames: Vec<Range<usize>>,
}

impl Capture {
    /// Reads `file`.
    pub(super) fn read(file: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let file = File::open(file)?;
        file.take(FILE_LEN_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_LEN_MAX {
            return Err(io::Error::other("it is longer than 256 MiB"));
        }
        Self::parse(bytes).map_err(io::Error::other)
    }

    /// Finds the frames in a file's bytes, or says what is wrong with these.
    pub(super) fn parse(bytes: Vec<u8>) -> Result<Self, &'static str> {
        const BROKEN: &str = "it ends in the middle of a frame";
        let word = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk::<4>);
        let magic = word(0).ok_or("it is no capture file of libpcap")?;
        let is_magic = |value: &u32| MAGIC.contains(value);
        let number: fn([u8; 4]) -> u32 = match () {
            () if is_magic(&u32::from_le_bytes(*magic)) => u32::from_le_bytes,
            () if is_magic(&u32::from_be_bytes(*magic)) => u32::from_be_bytes,
            () => return Err("it is no capture file of libpcap (`editcap -F pcap` makes one)"),
        };
        let length = |at| word(at).and_then(|word| usize::try_from(number(*word)).ok());
        // The upper half says how long checksums are (section 4).
        if word(20).map(|link| number(*link) & 0xffff) != Some(ETHERNET) {
            return Err("its frames are not those of Ethernet");
        }
        let mut frames = Vec::new();
        let mut at = FILE_HEADER;
        while at < bytes.len() {
            let (kept, whole) = (length(at + 8), length(at + 12));
            let (kept, whole) = kept.zip(whole).ok_or(BROKEN)?;
            match kept {
                _ if kept < whole => {
                    return Err("its frames were cut short when they were captured");
                }
                0..FRAME_LEN_MIN => return Err("a frame is shorter than an Ethernet header"),
                _ if kept > Frame::LEN_MAX => {
                    return Err("a frame is longer than any that is sent");
                }
                _ => {}
            }
            let frame = at + FRAME_HEADER..at + FRAME_HEADER + kept;
            at = frame.end;
            if at > bytes.len() {
                return Err(BROKEN);
            }
            frames.push(frame);
        }
        match frames.is_empty() {
            true => Err("it has no frames"),
            false => Ok(Self { bytes, frames }),
        }
    }

    /// How many frames there are.
    pub(super) const fn len(&self) -> usize {
        self.frames.len()
    }

    /// The bytes of the frame of this number.
    pub(super) fn frame(&self, index: usize) -> &[u8] {
        &self.bytes[self.frames[index].clone()]
    }
}
