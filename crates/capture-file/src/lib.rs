//! Capture files of libpcap and Wireshark: readers and writers of [`pcap`]
//! (draft-ietf-opsawg-pcap) and [`pcapng`] (draft-ietf-opsawg-pcapng).
//!
//! The crate parses and encodes bytes. It opens no file, reads no clock, and does not interpret
//! packets.

mod file_reader;
pub mod pcap;
pub mod pcapng;

pub use file_reader::ByteOrder;

/// Link type of frames with an Ethernet header, without frame check sequence.
pub const LINKTYPE_ETHERNET: u32 = 1;

/// Link type of IPv4 and IPv6 packets without a link-layer header.
pub const LINKTYPE_RAW: u32 = 101;

/// A packet of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturePacket<'a> {
    /// Link type of the packet's interface.
    pub link_type: u32,
    /// Time in nanoseconds since 1970; 0 if the file has none.
    pub time_ns: u64,
    /// Length in bytes on the wire. Larger than the number of captured bytes if the packet was
    /// truncated at capture.
    pub original_length: u32,
    /// Captured bytes.
    pub bytes: &'a [u8],
}
