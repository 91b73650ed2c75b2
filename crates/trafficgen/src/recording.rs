//! Frames of a capture file, to be sent again.

mod file;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::template::{FCS, FRAME_BYTES};

/// The longest file that is read, and the most frames: each is kept three times while it is sent.
const FILE_BYTES_MAX: u64 = 64 << 20;
const FRAMES_MAX: usize = 200_000;
/// The shortest frame: its Ethernet header.
const FRAME_MIN: usize = 14;

/// Frames that were recorded, and when.
#[derive(Clone, Debug)]
pub struct Recording {
    frames: Arc<[Recorded]>,
    is_signed: bool,
}

/// A frame of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Recorded {
    /// Nanoseconds of whatever clock.
    at_ns: u64,
    bytes: Vec<u8>,
}

/// Why a file cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRecording {
    /// It is neither pcap nor pcapng.
    #[error("it is no capture file of libpcap or Wireshark")]
    Unknown,
    /// It is cut, or contradicts itself.
    #[error("it ends in the middle of something, or says what cannot be")]
    Broken,
    /// Its frames are those of other links.
    #[error("its frames are not those of Ethernet")]
    NotEthernet,
    /// A frame was not captured whole.
    #[error("its frames were cut short when they were captured")]
    Cut,
    /// A frame is shorter than a header or longer than is offered.
    #[error("a frame has {0} bytes")]
    Length(usize),
    /// There is nothing in it.
    #[error("it has no frames")]
    Empty,
    /// There is too much in it.
    #[error("it has more than {FRAMES_MAX} frames")]
    TooMany,
}

impl Recording {
    /// Reads a file as libpcap or Wireshark writes it.
    ///
    /// # Errors
    /// It cannot be read, or is longer than 64 MiB, or see [`BadRecording`].
    pub fn read(file: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let file = File::open(file)?;
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(io::Error::other("it is longer than 64 MiB"));
        }
        Self::parse(&bytes).map_err(io::Error::other)
    }

    /// Finds the frames in a file's bytes.
    ///
    /// # Errors
    /// See [`BadRecording`].
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRecording> {
        let frames = file::frames(bytes)?;
        let longest = usize::from(*FRAME_BYTES.end() - FCS);
        let mut lengths = frames.iter().map(|frame| frame.bytes.len());
        match lengths.find(|length| !(FRAME_MIN..=longest).contains(length)) {
            Some(length) => Err(BadRecording::Length(length)),
            None if frames.is_empty() => Err(BadRecording::Empty),
            None => Ok(Self {
                frames: frames.into(),
                is_signed: true,
            }),
        }
    }

    /// The same frames, to be sent byte for byte as they were recorded: nothing is known of those that
    /// come.
    #[must_use]
    pub fn untouched(self) -> Self {
        Self {
            is_signed: false,
            ..self
        }
    }

    /// Whether the end of a frame's payload, where there is room, becomes its signature.
    pub(super) const fn is_signed(&self) -> bool {
        self.is_signed
    }

    /// The longest frame, with its checksum.
    #[must_use]
    pub fn longest(&self) -> u16 {
        self.sizes().max().unwrap_or(0)
    }

    /// How many frames there are.
    #[must_use]
    pub fn frame_count(&self) -> u64 {
        self.frames.len() as u64
    }

    /// The mean size of frames, with their checksums.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        let total: f64 = self.sizes().map(f64::from).sum();
        total / self.frames.len() as f64
    }

    pub(super) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.frames.iter().map(|frame| frame.bytes.as_slice())
    }

    /// Sizes with checksums.
    pub(super) fn sizes(&self) -> impl Iterator<Item = u16> {
        let size = |frame: &Recorded| u16::try_from(frame.bytes.len()).map(|bytes| bytes + FCS);
        self.frames
            .iter()
            .map(move |frame| size(frame).unwrap_or(u16::MAX))
    }

    /// Nanoseconds from each frame to the next, none where clocks went back; from the last to the first
    /// as much as on average.
    pub(super) fn gaps(&self) -> Vec<u64> {
        let pairs = self.frames.windows(2);
        let mut gaps: Vec<u64> = pairs
            .map(|two| two[1].at_ns.saturating_sub(two[0].at_ns))
            .collect();
        let total: u128 = gaps.iter().map(|&gap| u128::from(gap)).sum();
        let mean = total / (gaps.len() as u128).max(1);
        gaps.push(u64::try_from(mean).unwrap_or(u64::MAX));
        gaps
    }
}
