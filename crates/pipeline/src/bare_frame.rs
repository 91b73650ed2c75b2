//! Storage of packets without an Ethernet header (OF 1.5.1, 7.2.3.11): as frames with an Ethernet
//! header of zero addresses and the packet's EtherType.

use flow::PacketType;
use packet::Frame;
use packet::wire::ethernet::Ethernet;

/// Returns the frame that stores a controller's packet. A packet of an unknown type is stored as an
/// Ethernet frame; [`frame_of`] has refused it before.
pub(crate) fn stored(data: &[u8], packet_type: PacketType) -> Frame {
    frame_of(data, packet_type).unwrap_or_else(|| Frame::from_bytes(data))
}

/// Returns the frame that stores a controller's packet, or `None` for an unknown packet type.
pub(crate) fn frame_of(data: &[u8], packet_type: PacketType) -> Option<Frame> {
    if packet_type.is_ethernet() {
        return Some(Frame::from_bytes(data));
    }
    let header = Ethernet::default().emit(packet_type.ether_type()?);
    Some(Frame::from_bytes(&[&header[..], data].concat()))
}
