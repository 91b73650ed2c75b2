//! Fields of the connection of a tracked packet (`ovs-fields(7)`, "Conntrack Fields").

use packet::wire::ethernet::EtherType;

use crate::field::Field;

/// Fields of a tracked packet. All are zero before the first `ct`, and after `ct_clear`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionFields {
    /// `ct_state`.
    pub state: u8,
    /// `ct_zone`.
    pub zone: u16,
    /// `ct_mark`.
    pub mark: u32,
    /// `ct_label`.
    pub label: u128,
    /// Protocol of the original direction: `ct_nw_proto`.
    pub protocol: u8,
    /// IPv4 source and destination of the original direction; zero for IPv6.
    pub v4: [u32; 2],
    /// IPv6 source and destination of the original direction; zero for IPv4.
    pub v6: [u128; 2],
    /// Ports of the original direction, or type and code of ICMP.
    pub ports: [u16; 2],
    /// EtherType of the packet, without which a match on the original direction has no meaning.
    pub eth_type: u16,
}

impl ConnectionFields {
    /// Flags of `ct_state`, from bit 0 (`ovs-fields(7)`, ct_state).
    pub const STATES: [&str; 8] = ["new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"];

    /// All fields of connections.
    pub const ALL: [Field; 11] = [
        Field::CtState,
        Field::CtZone,
        Field::CtMark,
        Field::CtLabel,
        Field::CtNwProto,
        Field::CtNwSrc,
        Field::CtNwDst,
        Field::CtIpv6Src,
        Field::CtIpv6Dst,
        Field::CtTpSrc,
        Field::CtTpDst,
    ];

    /// Fields of the original direction of an IPv4 and of an IPv6 connection, the protocol first.
    const ORIGINAL_V4: [Field; 5] = [
        Field::CtNwProto,
        Field::CtNwSrc,
        Field::CtNwDst,
        Field::CtTpSrc,
        Field::CtTpDst,
    ];
    const ORIGINAL_V6: [Field; 5] = [
        Field::CtNwProto,
        Field::CtIpv6Src,
        Field::CtIpv6Dst,
        Field::CtTpSrc,
        Field::CtTpDst,
    ];

    /// Returns the fields of the original direction; none without a connection.
    pub(crate) fn original(&self) -> &'static [Field] {
        match EtherType(self.eth_type) {
            _ if self.protocol == 0 => &[],
            EtherType::IPV4 => &Self::ORIGINAL_V4,
            EtherType::IPV6 => &Self::ORIGINAL_V6,
            _ => &[],
        }
    }

    /// Returns the value of a field, or `None` if it is no field of a connection.
    #[must_use]
    pub fn value(&self, field: Field) -> Option<u128> {
        Some(match field {
            Field::CtState => u128::from(self.state),
            Field::CtZone => u128::from(self.zone),
            Field::CtMark => u128::from(self.mark),
            Field::CtLabel => self.label,
            Field::CtNwProto => u128::from(self.protocol),
            Field::CtNwSrc => u128::from(self.v4[0]),
            Field::CtNwDst => u128::from(self.v4[1]),
            Field::CtIpv6Src => self.v6[0],
            Field::CtIpv6Dst => self.v6[1],
            Field::CtTpSrc => u128::from(self.ports[0]),
            Field::CtTpDst => u128::from(self.ports[1]),
            _ => return None,
        })
    }

    /// Sets a field; bits beyond its width are dropped. Returns false if it is no field of a
    /// connection.
    pub const fn set(&mut self, field: Field, value: u128) -> bool {
        let [.., a, b, c, d] = value.to_be_bytes();
        let (short, long) = (u16::from_be_bytes([c, d]), u32::from_be_bytes([a, b, c, d]));
        match field {
            Field::CtState => self.state = d,
            Field::CtZone => self.zone = short,
            Field::CtMark => self.mark = long,
            Field::CtLabel => self.label = value,
            Field::CtNwProto => self.protocol = d,
            Field::CtNwSrc => self.v4[0] = long,
            Field::CtNwDst => self.v4[1] = long,
            Field::CtIpv6Src => self.v6[0] = value,
            Field::CtIpv6Dst => self.v6[1] = value,
            Field::CtTpSrc => self.ports[0] = short,
            Field::CtTpDst => self.ports[1] = short,
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_fields_keep_their_values() {
        let mut fields = ConnectionFields::default();
        for (number, field) in (1..).zip(ConnectionFields::ALL) {
            assert!(fields.set(field, number), "{field}");
        }
        for (number, field) in (1..).zip(ConnectionFields::ALL) {
            assert_eq!(fields.value(field), Some(number), "{field}");
        }
        assert!(!fields.set(Field::EthDst, 1));
        assert_eq!(fields.value(Field::EthDst), None);
    }
}
