//! A frame of a slow protocol, or anything: what is read of it is written and read the same.

use packet::MacAddr;
use packet::wire::slow::{SlowPdu, is_slow_protocol};

/// Reads `data` as the frame of a slow protocol.
///
/// # Panics
/// If what was read is not what is read of it when it is written.
pub fn lacp(data: &[u8]) {
    let told = is_slow_protocol(data);
    let Ok(message) = SlowPdu::parse(data) else {
        return;
    };
    let src = MacAddr([2, 0, 0, 0, 0, 1]);
    let written = match message {
        SlowPdu::Lacp(pdu) => pdu.emit(src),
        SlowPdu::Marker(marker) => marker.emit(src),
        SlowPdu::Other(_) => return,
    };
    assert!(is_slow_protocol(&written) || told);
    assert_eq!(SlowPdu::parse(&written), Ok(message));
}
