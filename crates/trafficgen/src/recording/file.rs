//! The frames of a capture file, pcap or pcapng, of Ethernet.

use capture_file::pcap::{BadPcapHeader, FILE_HEADER_LEN, PcapHeader, TruncatedPacket};
use capture_file::pcapng::{self, BadPcapng, PcapngReader};
use capture_file::{CapturePacket, LINKTYPE_ETHERNET};

use super::{BadRecording, FRAMES_MAX, RecordedFrame};

/// Parses all frames of a file.
pub(super) fn frames(bytes: &[u8]) -> Result<Vec<RecordedFrame>, BadRecording> {
    if bytes.starts_with(&pcapng::MAGIC) {
        return recorded(PcapngReader::new(bytes));
    }
    let header = PcapHeader::parse(bytes)?;
    if header.link_type != LINKTYPE_ETHERNET {
        return Err(BadRecording::NotEthernet);
    }
    recorded(header.packets(&bytes[FILE_HEADER_LEN..]))
}

/// Copies the packets, which must be complete Ethernet frames.
fn recorded<'a, E: Into<BadRecording>>(
    packets: impl Iterator<Item = Result<CapturePacket<'a>, E>>,
) -> Result<Vec<RecordedFrame>, BadRecording> {
    let mut frames = Vec::new();
    for packet in packets {
        let packet = packet.map_err(Into::into)?;
        if packet.link_type != LINKTYPE_ETHERNET {
            return Err(BadRecording::NotEthernet);
        }
        if (packet.bytes.len() as u64) < u64::from(packet.original_length) {
            return Err(BadRecording::Cut);
        }
        if frames.len() == FRAMES_MAX {
            return Err(BadRecording::TooMany);
        }
        frames.push(RecordedFrame {
            at_ns: packet.time_ns,
            bytes: packet.bytes.to_vec(),
        });
    }
    Ok(frames)
}

impl From<BadPcapHeader> for BadRecording {
    fn from(error: BadPcapHeader) -> Self {
        match error {
            BadPcapHeader::Magic => Self::Unknown,
            BadPcapHeader::Truncated => Self::Broken,
        }
    }
}

impl From<TruncatedPacket> for BadRecording {
    fn from(TruncatedPacket: TruncatedPacket) -> Self {
        Self::Broken
    }
}

impl From<BadPcapng> for BadRecording {
    fn from(error: BadPcapng) -> Self {
        match error {
            BadPcapng::Malformed => Self::Broken,
            BadPcapng::TooManyInterfaces => Self::TooMany,
        }
    }
}
