//! Frames of slow protocols (LACP and marker), or any bytes: a parsed PDU is emitted and parsed as
//! the same PDU.

use packet::MacAddr;
use packet::wire::slow::{SlowPdu, is_slow_protocol};

/// Parses `data` as the frame of a slow protocol.
///
/// # Panics
/// If the parsed PDU differs after it is emitted and parsed again.
pub fn lacp(data: &[u8]) {
    let is_slow = is_slow_protocol(data);
    let Ok(message) = SlowPdu::parse(data) else {
        return;
    };
    let src = MacAddr([2, 0, 0, 0, 0, 1]);
    let emitted = match message {
        SlowPdu::Lacp(pdu) => pdu.emit(src),
        SlowPdu::Marker(marker) => marker.emit(src),
        SlowPdu::Other(_) => return,
    };
    assert!(is_slow_protocol(&emitted) || is_slow);
    assert_eq!(SlowPdu::parse(&emitted), Ok(message));
}
