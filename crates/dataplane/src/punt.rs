//! Punt: control frames of other switches that a port takes out of the data path before the tables.
//!
//! The bridge handles them on the control thread. A bridge without such ports has none of this.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::PortNo;
use packet::wire::{ethernet, slow};

/// The destination address of BPDUs (IEEE 802.1D, table 7-10).
pub const BRIDGE_GROUP_ADDRESS: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0];

/// The LLC header of spanning tree frames: both service access points, and the control byte for
/// unnumbered information (IEEE 802.1D, 9.2).
const SPANNING: [u8; 3] = [0x42, 0x42, 0x03];

/// The maximum value of a length field in place of an EtherType (IEEE 802.3, 3.2.6).
const LENGTH_MAX: u16 = 1500;

/// The protocols that a port punts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PuntedProtocols {
    /// The slow protocols of IEEE 802.3, among them LACP.
    pub slow: bool,
    /// STP and RSTP.
    pub spanning: bool,
}

impl PuntedProtocols {
    /// Returns whether the port punts this frame.
    #[inline]
    pub fn takes(self, frame: &[u8]) -> bool {
        (self.slow && slow::is_slow_protocol(frame)) || (self.spanning && is_bpdu(frame))
    }

    const fn is_nothing(self) -> bool {
        !self.slow && !self.spanning
    }
}

/// Returns whether a frame is a BPDU; [`bpdu`] returns its bytes.
#[inline]
pub fn is_bpdu(frame: &[u8]) -> bool {
    let begins = frame.first_chunk() == Some(&BRIDGE_GROUP_ADDRESS);
    begins && bpdu(frame).is_some()
}

/// Returns the LLC header and the BPDU of a spanning tree frame, by its length field.
pub fn bpdu(frame: &[u8]) -> Option<&[u8]> {
    let (header, rest) = frame.split_first_chunk::<{ ethernet::LEN }>()?;
    let length = u16::from_be_bytes([header[12], header[13]]);
    let rest = rest.get(..usize::from(length))?;
    (length <= LENGTH_MAX && rest.starts_with(&SPANNING)).then_some(rest)
}

/// The punted protocols of each port of a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PuntTable(BTreeMap<PortNo, PuntedProtocols>);

impl PuntTable {
    /// Compiles the table; none if no port punts.
    pub fn compile(
        ports: impl IntoIterator<Item = (PortNo, PuntedProtocols)>,
    ) -> Option<Arc<Self>> {
        let some = ports.into_iter().filter(|(_, what)| !what.is_nothing());
        let some: BTreeMap<_, _> = some.collect();
        (!some.is_empty()).then(|| Arc::new(Self(some)))
    }

    /// Returns the protocols that a port punts; none if it punts none.
    pub fn of(&self, port: PortNo) -> Option<PuntedProtocols> {
        self.0.get(&port).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(dst: [u8; 6], rest: &[u8]) -> Vec<u8> {
        [&dst[..], &[2, 0, 0, 0, 0, 1], rest, &[0; 46]].concat()
    }

    #[test]
    fn punt_takes_configured_protocols_only() {
        let bpdu_frame = frame(BRIDGE_GROUP_ADDRESS, &[0, 7, 0x42, 0x42, 3, 1, 2, 3, 4]);
        let slow_frame = frame([0x01, 0x80, 0xc2, 0, 0, 2], &[0x88, 0x09, 1]);
        let others = [
            frame(BRIDGE_GROUP_ADDRESS, &[0x42, 0x42, 0x42, 0x42, 3]),
            frame(BRIDGE_GROUP_ADDRESS, &[0, 7, 0xaa, 0xaa, 3]),
            frame([2; 6], &[0, 7, 0x42, 0x42, 3, 1, 2, 3, 4]),
            frame([0x01, 0x80, 0xc2, 0, 0, 2], &[0x88, 0xcc]),
            Vec::new(),
        ];
        let (slow, spanning) = (true, true);
        let both = PuntedProtocols { slow, spanning };
        let speaks_lacp = PuntedProtocols {
            slow,
            ..PuntedProtocols::default()
        };
        assert!(both.takes(&bpdu_frame) && both.takes(&slow_frame));
        assert!(!speaks_lacp.takes(&bpdu_frame) && speaks_lacp.takes(&slow_frame));
        assert!(!others.iter().any(|frame| both.takes(frame)));
        assert_eq!(bpdu(&bpdu_frame), Some(&[0x42, 0x42, 3, 1, 2, 3, 4][..]));
        assert_eq!(bpdu(&bpdu_frame[..20]), None, "it is cut off");
    }

    #[test]
    fn punt_table_without_protocols_compiles_to_none() {
        let nothing = PuntedProtocols::default();
        assert_eq!(PuntTable::compile([(PortNo(1), nothing)]), None);
        let slow = PuntedProtocols {
            slow: true,
            ..nothing
        };
        let compiled = PuntTable::compile([(PortNo(1), nothing), (PortNo(2), slow)]);
        let compiled = compiled.expect("one takes something");
        assert_eq!(compiled.of(PortNo(1)), None);
        assert_eq!(compiled.of(PortNo(2)), Some(slow));
    }
}
