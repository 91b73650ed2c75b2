//! Frames of a capture file, for replay.

mod file;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::template::{FCS, FRAME_BYTES};

/// The longest accepted file, and the most frames: each exists three times in memory during
/// transmission.
const FILE_BYTES_MAX: u64 = 64 << 20;
const FRAMES_MAX: usize = 200_000;
/// The shortest frame: an Ethernet header.
const FRAME_MIN: usize = 14;

/// Recorded frames with their timestamps.
#[derive(Clone, Debug)]
pub struct Recording {
    frames: Arc<[RecordedFrame]>,
    is_signed: bool,
}

/// A frame of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RecordedFrame {
    /// Nanoseconds of an arbitrary clock.
    at_ns: u64,
    bytes: Vec<u8>,
}

/// The reason why a file cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRecording {
    /// The format is neither pcap nor pcapng.
    #[error("not a pcap or pcapng file")]
    Unknown,
    /// The file is truncated or inconsistent.
    #[error("truncated or corrupt capture file")]
    Broken,
    /// The link type is not Ethernet.
    #[error("the link type is not Ethernet")]
    NotEthernet,
    /// A frame was truncated at capture.
    #[error("frames were truncated at capture")]
    Cut,
    /// A frame is shorter than an Ethernet header or longer than the largest frame.
    #[error("unsupported frame length of {0} bytes")]
    Length(usize),
    /// The file contains no frames.
    #[error("the file contains no frames")]
    Empty,
    /// The file contains too many frames.
    #[error("more than {FRAMES_MAX} frames")]
    TooMany,
}

impl Recording {
    /// Reads a file in the format of libpcap or Wireshark.
    ///
    /// # Errors
    /// The file cannot be read or is longer than 64 MiB, or see [`BadRecording`].
    pub fn read(file: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let file = File::open(file)?;
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(io::Error::other("longer than 64 MiB"));
        }
        Self::parse(&bytes).map_err(io::Error::other)
    }

    /// Parses the bytes of a file.
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

    /// The same frames without signatures, sent byte for byte as recorded. The receiver cannot
    /// identify them.
    #[must_use]
    pub fn untouched(self) -> Self {
        Self {
            is_signed: false,
            ..self
        }
    }

    /// Returns true if a signature replaces the end of each payload that has space for it.
    pub(super) const fn is_signed(&self) -> bool {
        self.is_signed
    }

    /// The longest frame, with FCS.
    #[must_use]
    pub fn longest(&self) -> u16 {
        self.sizes().max().unwrap_or(0)
    }

    /// The number of frames.
    #[must_use]
    pub fn frame_count(&self) -> u64 {
        self.frames.len() as u64
    }

    /// The mean frame size, with FCS.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        let total: f64 = self.sizes().map(f64::from).sum();
        total / self.frames.len() as f64
    }

    pub(super) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.frames.iter().map(|frame| frame.bytes.as_slice())
    }

    /// Frame sizes with FCS.
    pub(super) fn sizes(&self) -> impl Iterator<Item = u16> {
        let size =
            |frame: &RecordedFrame| u16::try_from(frame.bytes.len()).map(|bytes| bytes + FCS);
        self.frames
            .iter()
            .map(move |frame| size(frame).unwrap_or(u16::MAX))
    }

    /// The gap after each frame in nanoseconds, 0 if timestamps decrease; the gap after the last
    /// frame is the mean.
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
