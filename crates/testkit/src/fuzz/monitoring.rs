//! Frames of connectivity monitoring (BFD, CFM, LLDP), or any bytes: a parsed message is emitted
//! and parsed as the same message.

use std::net::Ipv4Addr;

use packet::MacAddr;
use packet::wire::bfd::{BfdAddresses, BfdControl, BfdDatagram};
use packet::wire::cfm::{ContinuityCheck, ContinuityCheckHeader};
use packet::wire::lldp::LldpDataUnit;

const SRC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

/// Parses `data` as a frame with a BFD control packet.
///
/// # Panics
/// If the parsed packet differs after it is emitted and parsed again.
pub fn bfd(data: &[u8]) {
    let payload = BfdDatagram::find(data).map_or(data, |datagram| datagram.payload);
    let Ok(control) = BfdControl::parse(payload) else {
        return;
    };
    let addresses = BfdAddresses {
        eth_dst: SRC,
        eth_src: SRC,
        ip_src: Ipv4Addr::LOCALHOST,
        ip_dst: Ipv4Addr::LOCALHOST,
        udp_src: 49152,
    };
    let frame = addresses.emit(&control);
    let datagram = BfdDatagram::find(&frame).expect("the frame has a control packet");
    assert_eq!(BfdControl::parse(datagram.payload), Ok(control));
}

/// Parses `data` as a frame with a continuity check message.
///
/// # Panics
/// If the parsed message differs after it is emitted and parsed again.
pub fn cfm(data: &[u8]) {
    let found = ContinuityCheckHeader::find(data);
    let bytes = found.map_or(data, |(_, bytes)| bytes);
    if let Ok(message) = ContinuityCheck::parse(bytes) {
        assert_eq!(ContinuityCheck::parse(&message.emit()), Ok(message));
    }
}

/// Parses `data` as an LLDP frame.
///
/// # Panics
/// If the parsed data unit differs after it is emitted and parsed again.
pub fn lldp(data: &[u8]) {
    let Ok(mut unit) = LldpDataUnit::parse(data) else {
        return;
    };
    // Long texts are cut off when they are emitted, and unrecognized TLVs are not emitted.
    let texts = [
        &mut unit.port_description,
        &mut unit.system_name,
        &mut unit.system_description,
    ];
    for text in texts.into_iter().flatten() {
        text.truncate(255);
    }
    unit.unrecognized = 0;
    assert_eq!(LldpDataUnit::parse(&unit.emit(SRC)), Ok(unit));
}
