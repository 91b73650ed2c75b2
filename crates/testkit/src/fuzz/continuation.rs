//! Continuations, which a controller sends back: arbitrary bytes, with or without a valid beginning. A
//! decoded continuation is encoded and decoded as the same one.

use base::DatapathId;
use openflow::continuation::{decode, encode};

const DATAPATH: DatapathId = DatapathId(7);

/// The property of the bridge, with which each continuation begins.
const BRIDGE: [u8; 24] = [
    0x80, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0,
];

/// Decodes `data` without its first byte, after a valid beginning if that byte is odd.
///
/// # Panics
/// If a decoded continuation differs after it is encoded and decoded again.
pub fn continuation(data: &[u8]) {
    let Some((options, rest)) = data.split_first() else {
        return;
    };
    let bytes = match options % 2 {
        0 => rest.to_vec(),
        _ => [&BRIDGE, rest].concat(),
    };
    let Ok(continuation) = decode(&bytes, DATAPATH) else {
        return;
    };
    // The text of its instructions may be longer than the bytes.
    if let Some(encoded) = encode(&continuation, DATAPATH) {
        assert!(encoded.len() <= continuation.bytes().next_multiple_of(8));
        assert_eq!(decode(&encoded, DATAPATH), Ok(continuation));
    }
}
