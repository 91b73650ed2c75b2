//! The classic format of libpcap (draft-ietf-opsawg-pcap): a header, and packets of one link type.

use crate::file_reader::FileReader;
use crate::{ByteOrder, CapturePacket, LINKTYPE_ETHERNET};

/// Length of the file header in bytes (section 4).
pub const FILE_HEADER_LEN: usize = 24;
/// Length of a packet header in bytes (section 5).
pub const PACKET_HEADER_LEN: usize = 16;

/// Magic numbers of files with microseconds and with nanoseconds.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Version of the format.
const VERSION: [u16; 2] = [2, 4];
/// Snapshot length of written files.
const SNAP_LEN: u32 = 65_535;
/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// The file header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcapHeader {
    /// Byte order of all numbers.
    pub byte_order: ByteOrder,
    /// True if timestamps have nanoseconds, false for microseconds.
    pub has_nanoseconds: bool,
    /// Link type of all packets, without the length of the frame check sequence.
    pub link_type: u32,
}

/// The defect of a file header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPcapHeader {
    /// The file does not begin with a magic number of pcap.
    #[error("unknown magic number")]
    Magic,
    /// The file ends within its header.
    #[error("the file header is truncated")]
    Truncated,
}

/// The file ends within a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a packet is truncated")]
pub struct TruncatedPacket;

impl PcapHeader {
    /// The header of Ethernet frames in this machine's byte order, with microseconds.
    pub const ETHERNET: Self = Self {
        byte_order: ByteOrder::NATIVE,
        has_nanoseconds: false,
        link_type: LINKTYPE_ETHERNET,
    };

    /// Parses the header at the beginning of a file.
    ///
    /// # Errors
    /// The file is none of pcap, or shorter than its header.
    pub fn parse(file: &[u8]) -> Result<Self, BadPcapHeader> {
        let orders = [ByteOrder::Little, ByteOrder::Big];
        let (reader, has_nanoseconds) = orders
            .into_iter()
            .find_map(|byte_order| {
                let reader = FileReader {
                    bytes: file,
                    byte_order,
                };
                match reader.word(0)? {
                    MICROSECONDS => Some((reader, false)),
                    NANOSECONDS => Some((reader, true)),
                    _ => None,
                }
            })
            .ok_or(BadPcapHeader::Magic)?;
        // The upper half is the length of frame check sequences.
        let link_type = reader.word(20).ok_or(BadPcapHeader::Truncated)? & 0xffff;
        Ok(Self {
            byte_order: reader.byte_order,
            has_nanoseconds,
            link_type,
        })
    }

    /// Encodes the header.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let magic = match self.has_nanoseconds {
            true => NANOSECONDS,
            false => MICROSECONDS,
        };
        let mut header = self.byte_order.encode(magic).to_vec();
        header.extend(
            VERSION
                .map(|half| self.byte_order.encode_half(half))
                .concat(),
        );
        for word in [0, 0, SNAP_LEN, self.link_type] {
            header.extend(self.byte_order.encode(word));
        }
        header
    }

    /// Returns an iterator over the packets in the bytes after the file header. It ends at the
    /// first truncated packet.
    #[must_use]
    pub const fn packets(self, bytes: &[u8]) -> PcapPackets<'_> {
        PcapPackets {
            header: self,
            rest: bytes,
        }
    }

    /// Parses the first packet of `bytes` and returns the bytes after it, if the packet is complete.
    #[must_use]
    pub fn split_packet(self, bytes: &[u8]) -> Option<(CapturePacket<'_>, &[u8])> {
        let (header, rest) = bytes.split_at_checked(PACKET_HEADER_LEN)?;
        let reader = FileReader {
            bytes: header,
            byte_order: self.byte_order,
        };
        let (seconds, fraction) = (reader.word(0)?, reader.word(4)?);
        let captured = usize::try_from(reader.word(8)?).ok()?;
        let (bytes, rest) = rest.split_at_checked(captured)?;
        let packet = CapturePacket {
            link_type: self.link_type,
            time_ns: u64::from(seconds) * SECOND + u64::from(fraction) * self.fraction_ns(),
            original_length: reader.word(12)?,
            bytes,
        };
        Some((packet, rest))
    }

    /// Appends a complete packet to a file. Its time is zero, so that a file depends on its packets
    /// only.
    ///
    /// ```
    /// use capture_file::pcap::PcapHeader;
    ///
    /// let mut file = PcapHeader::ETHERNET.encode();
    /// PcapHeader::ETHERNET.append_packet(&mut file, &[7; 60]);
    /// let header = PcapHeader::parse(&file).unwrap();
    /// let packets = header.packets(&file[24..]).map(|packet| packet.unwrap().bytes.to_vec());
    /// assert!(packets.eq([[7; 60]]));
    /// ```
    ///
    /// # Panics
    /// The packet has 4 GiB or more.
    pub fn append_packet(self, file: &mut Vec<u8>, packet: &[u8]) {
        let length = u32::try_from(packet.len()).expect("a packet is shorter than 4 GiB");
        for word in [0, 0, length, length] {
            file.extend(self.byte_order.encode(word));
        }
        file.extend(packet);
    }

    /// Returns the unit of the second's fraction in nanoseconds.
    const fn fraction_ns(self) -> u64 {
        match self.has_nanoseconds {
            true => 1,
            false => 1_000,
        }
    }
}

/// An iterator over the packets of a file.
#[derive(Clone, Debug)]
pub struct PcapPackets<'a> {
    header: PcapHeader,
    rest: &'a [u8],
}

impl<'a> Iterator for PcapPackets<'a> {
    type Item = Result<CapturePacket<'a>, TruncatedPacket>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match self.header.split_packet(self.rest) {
            Some((packet, rest)) => {
                self.rest = rest;
                Some(Ok(packet))
            }
            None => {
                self.rest = &[];
                Some(Err(TruncatedPacket))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_file_is_read_in_all_variants() {
        for byte_order in [ByteOrder::Little, ByteOrder::Big] {
            for has_nanoseconds in [false, true] {
                let header = PcapHeader {
                    byte_order,
                    has_nanoseconds,
                    link_type: crate::LINKTYPE_RAW,
                };
                let mut file = header.encode();
                header.append_packet(&mut file, &[1; 60]);
                header.append_packet(&mut file, &[2; 14]);
                assert_eq!(PcapHeader::parse(&file), Ok(header));
                let packets = header.packets(&file[FILE_HEADER_LEN..]);
                let packets: Vec<_> = packets.map(|packet| packet.unwrap().bytes).collect();
                assert_eq!(packets, [&[1; 60][..], &[2; 14]]);
                let truncated = header.packets(&file[FILE_HEADER_LEN..file.len() - 1]);
                assert_eq!(truncated.last(), Some(Err(TruncatedPacket)));
            }
        }
    }

    #[test]
    fn header_equals_the_published_layout() {
        let header = PcapHeader {
            byte_order: ByteOrder::Big,
            ..PcapHeader::ETHERNET
        };
        let expected = b"\xa1\xb2\xc3\xd4\0\x02\0\x04\0\0\0\0\0\0\0\0\0\0\xff\xff\0\0\0\x01";
        assert_eq!(header.encode(), expected);
        assert_eq!(
            PcapHeader::parse(&expected[..23]),
            Err(BadPcapHeader::Truncated)
        );
        assert_eq!(PcapHeader::parse(b"hello"), Err(BadPcapHeader::Magic));
    }
}
