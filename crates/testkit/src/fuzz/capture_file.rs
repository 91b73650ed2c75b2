//! Capture files: arbitrary bytes as pcapng and as pcap. The packets are within the file, and one that
//! is written again is read as the same packet.

use capture_file::pcap::{FILE_HEADER_LEN, PcapHeader};
use capture_file::pcapng::PcapngReader;

/// Reads `data` as a file of both formats.
///
/// # Panics
/// If the packets are longer than the file, or one differs after it is written and read.
pub fn capture_file(data: &[u8]) {
    let packets = PcapngReader::new(data).map_while(Result::ok);
    let bytes: usize = packets.map(|packet| packet.bytes.len()).sum();
    assert!(bytes <= data.len());
    let Ok(header) = PcapHeader::parse(data) else {
        return;
    };
    let rest = data.get(FILE_HEADER_LEN..).unwrap_or_default();
    let mut again = header.encode();
    let packets = header.packets(rest).map_while(Result::ok);
    let packets: Vec<_> = packets.map(|packet| packet.bytes).collect();
    for packet in &packets {
        header.append_packet(&mut again, packet);
    }
    let header = PcapHeader::parse(&again).expect("a written header is valid");
    let read = header.packets(&again[FILE_HEADER_LEN..]);
    let read = read.map(|packet| packet.expect("a written packet is whole").bytes);
    assert!(read.eq(packets), "packets differ");
}
