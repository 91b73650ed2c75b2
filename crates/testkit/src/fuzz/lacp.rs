//! A frame of a slow protocol, or anything: what is read of it is written and read the same.

use packet::MacAddr;
use packet::wire::slow::{Slow, is_slow};

/// Reads `data` as the frame of a slow protocol.
///
/// # Panics
/// If what was read is not what is read of it when it is written.
pub fn lacp(data: &[u8]) {
    let told = is_slow(data);
    let Ok(message) = Slow::parse(data) else {
        return;
    };
    let src = MacAddr([2, 0, 0, 0, 0, 1]);
    let written = match message {
        Slow::Lacp(pdu) => pdu.emit(src),
        Slow::Marker(marker) => marker.emit(src),
        Slow::Other(_) => return,
    };
    assert!(is_slow(&written) || told);
    assert_eq!(Slow::parse(&written), Ok(message));
}
