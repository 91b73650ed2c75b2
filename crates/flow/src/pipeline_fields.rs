//! Pipeline fields: values that accompany a frame through the tables besides its bytes (OF 1.5.1,
//! 7.2.3.10), and their representation as a match.

use base::PortNo;

use crate::connection_fields::ConnectionFields;
use crate::extension::PacketType;
use crate::field::{Field, REGISTERS};
use crate::matching::{Match, MatchBuilder};
use crate::options::TunnelOptions;
use crate::wide::Wide;

/// Pipeline fields of a frame.
///
/// ```
/// use flow::PipelineFields;
///
/// let mut fields = PipelineFields::new(base::PortNo(3));
/// fields.general[1] = 7;
/// let matching = fields.to_match();
/// assert_eq!(matching.to_string(), "reg1=0x7,in_port=3");
/// assert_eq!(PipelineFields::from_match(&matching), fields);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineFields {
    /// Ingress port.
    pub in_port: PortNo,
    /// Metadata register.
    pub metadata: u64,
    /// Tunnel key; zero without a tunnel.
    pub tunnel_id: u64,
    /// IPv4 source and destination of the tunnel; zero without one.
    pub tunnel_v4: [u32; 2],
    /// IPv6 source and destination of the tunnel; zero without one.
    pub tunnel_v6: [u128; 2],
    /// Group policy of the tunnel; zero without one.
    pub gbp_id: u16,
    /// Flags of the tunnel's group policy; zero without one.
    pub gbp_flags: u8,
    /// Flags of the tunnel; zero without one.
    pub tunnel_flags: u8,
    /// ERSPAN fields; zero without such a tunnel.
    pub erspan: Erspan,
    /// GTP-U fields; zero without such a tunnel.
    pub gtpu: Gtpu,
    /// Options of the tunnel.
    pub options: TunnelOptions,
    /// Packet type. The buffer of a bare packet contains an Ethernet header with zero addresses and
    /// the packet's EtherType before it.
    pub packet_type: PacketType,
    /// Packet mark.
    pub mark: u32,
    /// Fields of the connection; none for a packet that is not tracked.
    pub connection: Option<Box<ConnectionFields>>,
    /// Id of the conjunctive match that the lookup found; zero for none.
    pub conjunction: u32,
    /// Output port of the action set; [`PortNo::UNSET`] for none.
    pub set_output: PortNo,
    /// The general registers.
    pub general: [u32; REGISTERS],
}

/// ERSPAN fields of a mirrored frame (`ovs-fields(7)`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erspan {
    /// The version, four bits: 1 or 2.
    pub version: u8,
    /// Port that is mirrored, twenty bits.
    pub index: u32,
    /// Zero for ingress, one for egress.
    pub direction: u8,
    /// Hardware id of the mirroring device, six bits.
    pub hardware: u8,
}

/// GTP-U fields (`ovs-fields(7)`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gtpu {
    /// Version, protocol type and flags: the first octet of the header.
    pub flags: u8,
    /// Message type; 255 for a packet of a user.
    pub message: u8,
}

impl PipelineFields {
    /// Returns the fields of a frame that arrives by `in_port`.
    #[must_use]
    pub const fn new(in_port: PortNo) -> Self {
        Self {
            in_port,
            metadata: 0,
            tunnel_id: 0,
            tunnel_v4: [0; 2],
            tunnel_v6: [0; 2],
            gbp_id: 0,
            gbp_flags: 0,
            tunnel_flags: 0,
            erspan: Erspan {
                version: 0,
                index: 0,
                direction: 0,
                hardware: 0,
            },
            gtpu: Gtpu {
                flags: 0,
                message: 0,
            },
            options: TunnelOptions::new(),
            packet_type: PacketType::ETHERNET,
            mark: 0,
            connection: None,
            conjunction: 0,
            set_output: PortNo::UNSET,
            general: [0; REGISTERS],
        }
    }

    /// True if compiled tables do not match the frame: keys have no room for its packet type, which
    /// is the same for all frames of ordinary ports.
    #[inline]
    #[must_use]
    pub fn need_interpreter(&self) -> bool {
        !self.packet_type.is_ethernet()
    }

    /// Sets a field of the connection. A packet whose fields are all zero is not tracked.
    fn set_connection(&mut self, field: Field, value: u128) -> bool {
        let mut fields = self.connection.as_deref().copied().unwrap_or_default();
        let is_set = fields.set(field, value);
        if is_set {
            let is_tracked = fields != ConnectionFields::default();
            self.connection = is_tracked.then(|| Box::new(fields));
        }
        is_set
    }

    /// Fields that are neither numbered registers nor tunnel options.
    const NAMED: [Field; 21] = [
        Field::Metadata,
        Field::TunnelId,
        Field::TunSrc,
        Field::TunDst,
        Field::TunIpv6Src,
        Field::TunIpv6Dst,
        Field::TunGbpId,
        Field::TunGbpFlags,
        Field::PacketType,
        Field::TunFlags,
        Field::TunErspanVer,
        Field::TunErspanIdx,
        Field::TunErspanDir,
        Field::TunErspanHwid,
        Field::TunGtpuFlags,
        Field::TunGtpuMsgtype,
        Field::PktMark,
        Field::CtState,
        Field::CtZone,
        Field::CtMark,
        Field::CtLabel,
    ];

    /// Fields that a match with one term represents. Port, output of the action set and tunnel
    /// options are converted separately.
    fn plain() -> impl Iterator<Item = Field> {
        Self::NAMED
            .into_iter()
            .chain((0..REGISTERS).map(Field::from_register))
    }

    /// True if [`PipelineFields::to_match`] includes `field`.
    #[must_use]
    pub fn contains(field: Field) -> bool {
        let beside = field == Field::InPort || field.option().is_some();
        beside || Self::plain().any(|plain| plain == field)
    }

    /// Returns the fields that a match specifies; others are as on arrival, without a port.
    #[must_use]
    pub fn from_match(matching: &Match) -> Self {
        let value = |field| matching.term(field).map(|term| term.value);
        let port = |field| value(field).and_then(|value| u32::try_from(value).ok());
        let mut registers = Self::new(PortNo(port(Field::InPort).unwrap_or(0)));
        let mut terms = matching.terms();
        for term in terms.by_ref() {
            let is_plain = || Self::plain().any(|plain| plain == term.field);
            let is_connection = || ConnectionFields::ALL.contains(&term.field);
            if term.field == Field::ConjId || is_plain() || is_connection() {
                registers.set(term.field, term.value);
            }
        }
        if let Some(connection) = &mut registers.connection {
            let eth_type = value(Field::EthType).and_then(|value| u16::try_from(value).ok());
            connection.eth_type = eth_type.unwrap_or(0);
        }
        for term in terms.options() {
            registers.options.set(term.field, term.value);
        }
        if let Some(output) = port(Field::ActsetOutput) {
            registers.set_output = PortNo(output);
        }
        registers
    }

    /// Returns a match on the port, all registers that are not zero, and the tunnel options.
    ///
    /// # Panics
    /// Never: no register has a prerequisite.
    #[must_use]
    pub fn to_match(&self) -> Match {
        let mut told = MatchBuilder::default();
        let mut add = |field, value| {
            told.add_exact(field, value)
                .expect("no register needs another field");
        };
        add(Field::InPort, u128::from(self.in_port.0));
        for field in Self::NAMED {
            let value = self.value(field);
            if value != 0 {
                add(field, value);
            }
        }
        if let Some(connection) = self
            .connection
            .as_deref()
            .filter(|fields| fields.eth_type != 0)
        {
            // The fields of the original direction require the type.
            add(Field::EthType, connection.eth_type.into());
            for field in connection.original() {
                add(*field, connection.value(*field).unwrap_or(0));
            }
        }
        for (number, value) in self.general.iter().enumerate() {
            if *value != 0 {
                add(Field::from_register(number), u128::from(*value));
            }
        }
        for (field, value) in self.options.iter() {
            told.add_option(field, value, Wide::ONES)
                .expect("each is there once");
        }
        told.build()
    }

    /// Sets a register, except for a tunnel option; bits beyond its width are dropped. Returns
    /// false if `field` is no register.
    pub fn set(&mut self, field: Field, value: u128) -> bool {
        let value = value & field.full_mask();
        let short = u32::try_from(value & u128::from(u32::MAX)).expect("32 bits");
        let octet = u8::try_from(value & u128::from(u8::MAX)).expect("8 bits");
        let long = u64::try_from(value & u128::from(u64::MAX)).expect("64 bits");
        match (field, field.register()) {
            (_, Some(number)) => self.general[number] = short,
            (Field::Metadata, _) => self.metadata = long,
            (Field::TunnelId, _) => self.tunnel_id = long,
            (Field::TunSrc, _) => self.tunnel_v4[0] = short,
            (Field::TunDst, _) => self.tunnel_v4[1] = short,
            (Field::TunIpv6Src, _) => self.tunnel_v6[0] = value,
            (Field::TunIpv6Dst, _) => self.tunnel_v6[1] = value,
            (Field::TunGbpId, _) => self.gbp_id = u16::try_from(short & 0xffff).expect("16 bits"),
            (Field::TunGbpFlags, _) => self.gbp_flags = octet,
            (Field::PacketType, _) => self.packet_type = PacketType(short),
            (Field::TunFlags, _) => self.tunnel_flags = octet,
            (Field::TunErspanVer, _) => self.erspan.version = octet,
            (Field::TunErspanIdx, _) => self.erspan.index = short,
            (Field::TunErspanDir, _) => self.erspan.direction = octet,
            (Field::TunErspanHwid, _) => self.erspan.hardware = octet,
            (Field::TunGtpuFlags, _) => self.gtpu.flags = octet,
            (Field::TunGtpuMsgtype, _) => self.gtpu.message = octet,
            (Field::PktMark, _) => self.mark = short,
            (Field::ConjId, _) => self.conjunction = short,
            _ => return self.set_connection(field, value),
        }
        true
    }

    /// Returns the value of a register, or zero for other fields.
    #[must_use]
    pub fn value(&self, field: Field) -> u128 {
        match (field, field.register()) {
            (_, Some(number)) => self.general[number].into(),
            (Field::Metadata, _) => self.metadata.into(),
            (Field::TunnelId, _) => self.tunnel_id.into(),
            (Field::TunSrc, _) => self.tunnel_v4[0].into(),
            (Field::TunDst, _) => self.tunnel_v4[1].into(),
            (Field::TunIpv6Src, _) => self.tunnel_v6[0],
            (Field::TunIpv6Dst, _) => self.tunnel_v6[1],
            (Field::TunGbpId, _) => self.gbp_id.into(),
            (Field::TunGbpFlags, _) => self.gbp_flags.into(),
            (Field::PacketType, _) => self.packet_type.0.into(),
            (Field::TunFlags, _) => self.tunnel_flags.into(),
            (Field::TunErspanVer, _) => self.erspan.version.into(),
            (Field::TunErspanIdx, _) => self.erspan.index.into(),
            (Field::TunErspanDir, _) => self.erspan.direction.into(),
            (Field::TunErspanHwid, _) => self.erspan.hardware.into(),
            (Field::TunGtpuFlags, _) => self.gtpu.flags.into(),
            (Field::TunGtpuMsgtype, _) => self.gtpu.message.into(),
            (Field::PktMark, _) => self.mark.into(),
            _ => {
                let connection = self.connection.as_deref();
                connection
                    .and_then(|fields| fields.value(field))
                    .unwrap_or(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipeline_fields_round_trip_through_match() {
        let mut registers = PipelineFields::new(PortNo(7));
        assert_eq!(registers.to_match().to_string(), "in_port=7");
        for (number, field) in (1..).zip(PipelineFields::plain()) {
            assert!(registers.set(field, number * 2 + 1));
        }
        registers.options.set(Field::TunMetadata0, Wide::ZERO);
        registers.options.set(Field::TunMetadata63, Wide::ONES);
        let told = registers.to_match();
        assert_eq!(PipelineFields::from_match(&told), registers);
        assert!(
            told.terms()
                .all(|term| PipelineFields::contains(term.field))
        );
        assert!(
            !PipelineFields::contains(Field::EthDst) && !PipelineFields::contains(Field::Xreg0)
        );
    }
}
