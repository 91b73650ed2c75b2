//! Packets of tunnels and of neighbours. No bytes cause a panic, and a frame that is decapsulated,
//! encapsulated again and decapsulated once more is unchanged.

use packet::neighbour::NeighbourMessage;
use packet::tunnel::{TunnelProtocol, VxlanExtension, decapsulate, encapsulate, parse_outer};
use packet::{Checksum, Frame, MacAddr, Pool};

/// Protocols, chosen by the first byte.
const PROTOCOLS: [TunnelProtocol; 8] = [
    TunnelProtocol::Vxlan(VxlanExtension::None),
    TunnelProtocol::Vxlan(VxlanExtension::Gbp),
    TunnelProtocol::Vxlan(VxlanExtension::Gpe),
    TunnelProtocol::Geneve,
    TunnelProtocol::Gre,
    TunnelProtocol::Erspan,
    TunnelProtocol::Gtpu,
    TunnelProtocol::Lisp,
];

/// The longest frame. Longer frames only cost time.
const FRAME_LEN_MAX: usize = 2048;

/// Decapsulates the packet in `data` and encapsulates it again. The first two bytes select the
/// protocol, and whether checksums count as verified.
///
/// # Panics
/// If an invariant of this module is violated.
pub fn tunnel(data: &[u8]) {
    let Some(([kind, is_verified], bytes)) = data.split_first_chunk::<2>() else {
        return;
    };
    let protocol = PROTOCOLS[usize::from(*kind) % PROTOCOLS.len()];
    let mut frame = Frame::from_bytes(&bytes[..bytes.len().min(FRAME_LEN_MAX)]);
    if is_verified & 1 == 1 {
        frame.offload.checksum = Checksum::Verified;
    }
    if let Some(message) = NeighbourMessage::parse(&frame) {
        assert_ne!(message.mac, MacAddr::default(), "zero is no address");
    }
    let Some(outer_headers) = parse_outer(frame.bytes()) else {
        return;
    };
    let before = frame.clone();
    let Ok(shim) = decapsulate(&mut frame, &outer_headers, protocol) else {
        assert_eq!(frame, before, "a refused frame is unchanged");
        return;
    };
    if shim.is_control_message() {
        assert_eq!(frame.bytes(), before.bytes(), "it remains whole");
        return;
    }
    let inner = frame.bytes().to_vec();
    let mut pool = Pool::new(2);
    encapsulate(&mut frame, 0, &outer_headers.outer, &shim, &mut pool)
        .expect("it was encapsulated before");
    let second_headers = parse_outer(frame.bytes()).expect("it is a packet");
    assert_eq!(second_headers.outer, outer_headers.outer);
    let second_shim = decapsulate(&mut frame, &second_headers, protocol).expect("it is whole");
    assert_eq!(second_shim, shim);
    assert_eq!(frame.bytes(), inner);
}
