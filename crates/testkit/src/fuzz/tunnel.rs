//! Packets of tunnels. No bytes cause a panic, and a frame that is decapsulated, encapsulated again
//! and decapsulated once more is unchanged.

use packet::tunnel::{TunnelProtocol, VxlanExtension, decapsulate, encapsulate, parse_outer};
use packet::{Checksum, Frame, Pool};

/// Protocols, chosen by the first byte.
const PROTOCOLS: [TunnelProtocol; 5] = [
    TunnelProtocol::Vxlan(VxlanExtension::None),
    TunnelProtocol::Vxlan(VxlanExtension::Gbp),
    TunnelProtocol::Vxlan(VxlanExtension::Gpe),
    TunnelProtocol::Geneve,
    TunnelProtocol::Gre,
];

/// The longest frame. Longer frames only cost time.
const FRAME_LEN_MAX: usize = 2048;

/// Decapsulates the packet in `data` and encapsulates it again. The first two bytes select the
/// protocol, and whether checksums count as verified.
///
/// # Panics
/// If an invariant of this module is violated.
pub fn tunnel(data: &[u8]) {
    let Some(([kind, believed], bytes)) = data.split_first_chunk::<2>() else {
        return;
    };
    let protocol = PROTOCOLS[usize::from(*kind) % PROTOCOLS.len()];
    let mut frame = Frame::from_bytes(&bytes[..bytes.len().min(FRAME_LEN_MAX)]);
    if believed & 1 == 1 {
        frame.offload.checksum = Checksum::Verified;
    }
    let Some(found) = parse_outer(frame.bytes()) else {
        return;
    };
    let before = frame.clone();
    let Ok(shim) = decapsulate(&mut frame, &found, protocol) else {
        assert_eq!(frame, before, "what is refused is left alone");
        return;
    };
    let within = frame.bytes().to_vec();
    let mut pool = Pool::new(2);
    encapsulate(&mut frame, 0, &found.outer, &shim, &mut pool).expect("it was within one");
    let again = parse_outer(frame.bytes()).expect("it is a packet");
    assert_eq!(again.outer, found.outer);
    let told = decapsulate(&mut frame, &again, protocol).expect("it is whole");
    assert_eq!(told, shim);
    assert_eq!(frame.bytes(), within);
}
