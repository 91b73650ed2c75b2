//! Capture files in the pcap format.

use capture_file::pcap::{FILE_HEADER_LEN, PcapHeader};
use packet::build::Stack;

/// Encodes a capture file of these frames in the machine's byte order.
pub(crate) fn pcap_file(stacks: &[&str]) -> Vec<u8> {
    let mut bytes = PcapHeader::ETHERNET.encode();
    for stack in stacks {
        let frame = stack.parse::<Stack>().expect(stack).build();
        PcapHeader::ETHERNET.append_packet(&mut bytes, frame.bytes());
    }
    bytes
}

/// Decodes the complete frames of a capture file.
pub(crate) fn pcap_frames(file: &[u8]) -> Vec<Vec<u8>> {
    let Ok(header) = PcapHeader::parse(file) else {
        return Vec::new();
    };
    let packets = header.packets(&file[FILE_HEADER_LEN..]);
    packets
        .map_while(Result::ok)
        .map(|packet| packet.bytes.to_vec())
        .collect()
}
