//! Match fields: one table row each, which the codec, the text form, the prerequisite check and the
//! documentation share.
//!
//! A [`Field`] is a row number. Its row ([`FieldInfo`]) contains the names, the width in bits, the
//! OXM and NXM headers, the permitted masks, whether set-field may write it, the prerequisite, and
//! the parse depth it requires. To add a field means to add a row, a line in the flow key, and a
//! name for the text form.
//!
//! The fields form three groups, in the order of the enumeration:
//!
//! 1. ordinary fields, of at most 128 bits: headers of the frame and pipeline fields. A match stores terms on these.
//! 2. `tun_metadata0` to `tun_metadata63`, the tunnel options, of up to 992 bits. A controller maps them to Geneve options ([`crate::TlvTable`]).
//! 3. views ([`FieldView`]): other representations of ordinary fields, such as `xreg0` of `reg0` and `reg1`. A match never stores a term on a view.
//!
//! Sources: OF 1.3.5, table 12 (OXM); `ovs-fields(7)` of Open vSwitch 3.1 (NXM, masks and names);
//! ONF EXT-109 (`tcp_flags`) and EXT-233 (`actset_output`); OF 1.5.1, 7.2.3.9 (packet registers);
//! RFC 8300 (the network service header).
//!
//! ```
//! use flow::Field;
//! use flow::field::{Maskable, Prerequisite};
//!
//! let row = Field::Ipv4Dst.info();
//! assert_eq!((row.name, row.ofctl, row.bits), ("ipv4_dst", "nw_dst", 32));
//! assert_eq!((row.maskable, row.prerequisite), (Maskable::Any, Prerequisite::Ipv4));
//! assert_eq!(row.oxm.and_then(Field::from_oxm), Some(Field::Ipv4Dst));
//! ```

mod by_class;
mod by_number;
mod nxm_name;
mod prerequisite;
mod rows;
mod tunnel_options;
pub(crate) mod view;
mod wire;

use std::fmt;

pub use packet::Depth;

pub use tunnel_options::{TUNNEL_OPTION_BYTES, TUNNEL_OPTIONS};

pub use prerequisite::{Maskable, Prerequisite};
pub use wire::{EXPERIMENTER, ONF, WireId};

pub(crate) use rows::FIELDS;
pub use view::{FieldView, MaskedValue, REGISTERS, widen};

/// Match field. The order is that of matching and of printing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Field {
    /// Ingress port.
    InPort,
    /// Physical port below a logical one; equal to `InPort` here.
    InPhyPort,
    /// Metadata register, written by `write_metadata`.
    Metadata,
    /// Tunnel key; zero without a tunnel.
    TunnelId,
    /// Packet type: zero for an Ethernet frame (OF 1.5.1, 7.2.3.11). It precedes all header fields,
    /// whose prerequisite it may be.
    PacketType,
    /// Ethernet destination.
    EthDst,
    /// Ethernet source.
    EthSrc,
    /// EtherType after all VLAN tags; `0x05ff` for an 802.2 frame with a length.
    EthType,
    /// VLAN id of the outermost tag in the lower twelve bits; `0x1000` is set if there is a tag.
    VlanVid,
    /// Priority of the outermost tag.
    VlanPcp,
    /// Label of the outermost MPLS entry.
    MplsLabel,
    /// Traffic class of the outermost MPLS entry.
    MplsTc,
    /// Bottom-of-stack bit of the outermost MPLS entry.
    MplsBos,
    /// Service instance of the outermost PBB tag.
    PbbIsid,
    /// Bit "use customer address" of that tag (1.4).
    PbbUca,
    /// ARP opcode.
    ArpOp,
    /// ARP sender's protocol address.
    ArpSpa,
    /// ARP target's protocol address.
    ArpTpa,
    /// ARP sender's hardware address.
    ArpSha,
    /// ARP target's hardware address.
    ArpTha,
    /// Differentiated services code point: the upper six bits of ToS or traffic class.
    IpDscp,
    /// Explicit congestion notification: the lower two bits of ToS or traffic class.
    IpEcn,
    /// Protocol above IP, after all extension headers.
    IpProto,
    /// Time to live, or hop limit.
    IpTtl,
    /// Bit 0: any fragment; bit 1: not the first.
    IpFrag,
    /// IPv4 source.
    Ipv4Src,
    /// IPv4 destination.
    Ipv4Dst,
    /// IPv6 source.
    Ipv6Src,
    /// IPv6 destination.
    Ipv6Dst,
    /// IPv6 flow label.
    Ipv6Flabel,
    /// Extension headers that are present, as `OFPIEH_*` bits.
    Ipv6Exthdr,
    /// TCP source port.
    TcpSrc,
    /// TCP destination port.
    TcpDst,
    /// TCP flags, `NS` being bit 8.
    TcpFlags,
    /// UDP source port.
    UdpSrc,
    /// UDP destination port.
    UdpDst,
    /// SCTP source port.
    SctpSrc,
    /// SCTP destination port.
    SctpDst,
    /// ICMP type.
    Icmpv4Type,
    /// ICMP code.
    Icmpv4Code,
    /// ICMPv6 type.
    Icmpv6Type,
    /// ICMPv6 code.
    Icmpv6Code,
    /// Target address of a neighbour solicitation or advertisement.
    Ipv6NdTarget,
    /// Source link-layer option of a neighbour solicitation.
    Ipv6NdSll,
    /// Target link-layer option of a neighbour advertisement.
    Ipv6NdTll,
    /// Time to live of the outermost MPLS entry.
    MplsTtl,
    /// Packet mark inside the switch; zero on arrival.
    PktMark,
    /// IPv4 source of the tunnel; zero without one.
    TunSrc,
    /// IPv4 destination of the tunnel; zero without one.
    TunDst,
    /// IPv6 source of the tunnel; zero without one.
    TunIpv6Src,
    /// IPv6 destination of the tunnel; zero without one.
    TunIpv6Dst,
    /// Id of the conjunctive match that the lookup found; zero for none (`ovs-fields(7)`).
    ConjId,
    /// Output port of the action set; `0xfffffff7` for none (ONF EXT-233).
    ActsetOutput,
    /// Group policy of the tunnel; zero without one (`ovs-fields(7)`).
    TunGbpId,
    /// Flags of the tunnel's group policy; zero without one.
    TunGbpFlags,
    /// The two flags of the network service header.
    NshFlags,
    /// Time to live.
    NshTtl,
    /// The type of its metadata.
    NshMdtype,
    /// Next protocol: 1 IPv4, 2 IPv6, 3 Ethernet, 4 another NSH.
    NshNp,
    /// The service path.
    NshSpi,
    /// Service index.
    NshSi,
    /// First word of context; zero if the metadata have another type.
    NshC1,
    /// The second word of context.
    NshC2,
    /// The third word of context.
    NshC3,
    /// The fourth word of context.
    NshC4,
    /// Flags and reserved bits before the target of a neighbour solicitation or advertisement.
    NdReserved,
    /// Type of the first link-layer option; zero without one.
    NdOptionsType,
    /// OAM flag of the tunnel.
    TunFlags,
    /// ERSPAN version; zero without such a tunnel.
    TunErspanVer,
    /// Port of the mirrored traffic.
    TunErspanIdx,
    /// Direction of the mirrored traffic: 0 ingress, 1 egress.
    TunErspanDir,
    /// Hardware id of the mirroring device.
    TunErspanHwid,
    /// Flags of the GTP-U tunnel; zero without one.
    TunGtpuFlags,
    /// Message type of the GTP-U tunnel.
    TunGtpuMsgtype,
    /// Flow hash of Open vSwitch's data path: always zero. No rule may match it.
    DpHash,
    /// Recirculation id of Open vSwitch's data path: always zero. No rule may match it.
    RecircId,
    /// State of the connection, as `CS_*` bits; zero for an untracked packet.
    CtState,
    /// Zone of the connection; zero for an untracked packet.
    CtZone,
    /// Mark of the connection; zero for an untracked packet.
    CtMark,
    /// Label of the connection; zero for an untracked packet.
    CtLabel,
    /// IP protocol in the original direction of the connection; zero for an untracked packet.
    CtNwProto,
    /// IPv4 source in the original direction of the connection; zero for an untracked packet.
    CtNwSrc,
    /// IPv4 destination in the original direction of the connection; zero for an untracked packet.
    CtNwDst,
    /// IPv6 source in the original direction of the connection; zero for an untracked packet.
    CtIpv6Src,
    /// IPv6 destination in the original direction of the connection; zero for an untracked packet.
    CtIpv6Dst,
    /// Source port in the original direction of the connection; zero for an untracked packet.
    CtTpSrc,
    /// Destination port in the original direction of the connection; zero for an untracked packet.
    CtTpDst,
    /// Register 0; zero on arrival.
    Reg0,
    /// Register 1; zero on arrival.
    Reg1,
    /// Register 2; zero on arrival.
    Reg2,
    /// Register 3; zero on arrival.
    Reg3,
    /// Register 4; zero on arrival.
    Reg4,
    /// Register 5; zero on arrival.
    Reg5,
    /// Register 6; zero on arrival.
    Reg6,
    /// Register 7; zero on arrival.
    Reg7,
    /// Register 8; zero on arrival.
    Reg8,
    /// Register 9; zero on arrival.
    Reg9,
    /// Register 10; zero on arrival.
    Reg10,
    /// Register 11; zero on arrival.
    Reg11,
    /// Register 12; zero on arrival.
    Reg12,
    /// Register 13; zero on arrival.
    Reg13,
    /// Register 14; zero on arrival.
    Reg14,
    /// Register 15; zero on arrival.
    Reg15,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata0,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata1,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata2,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata3,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata4,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata5,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata6,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata7,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata8,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata9,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata10,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata11,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata12,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata13,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata14,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata15,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata16,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata17,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata18,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata19,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata20,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata21,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata22,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata23,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata24,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata25,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata26,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata27,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata28,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata29,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata30,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata31,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata32,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata33,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata34,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata35,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata36,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata37,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata38,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata39,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata40,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata41,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata42,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata43,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata44,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata45,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata46,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata47,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata48,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata49,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata50,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata51,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata52,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata53,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata54,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata55,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata56,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata57,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata58,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata59,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata60,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata61,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata62,
    /// Value of the tunnel option mapped to this field; zero without one.
    TunMetadata63,
    /// View: registers 0 and 1, the former above.
    Xreg0,
    /// View: registers 2 and 3, the former above.
    Xreg1,
    /// View: registers 4 and 5, the former above.
    Xreg2,
    /// View: registers 6 and 7, the former above.
    Xreg3,
    /// View: registers 8 and 9, the former above.
    Xreg4,
    /// View: registers 10 and 11, the former above.
    Xreg5,
    /// View: registers 12 and 13, the former above.
    Xreg6,
    /// View: registers 14 and 15, the former above.
    Xreg7,
    /// View: registers 0 to 3, the first above.
    Xxreg0,
    /// View: registers 4 to 7, the first above.
    Xxreg1,
    /// View: registers 8 to 11, the first above.
    Xxreg2,
    /// View: registers 12 to 15, the first above.
    Xxreg3,
    /// View: the ingress port in the sixteen bits of OpenFlow 1.0.
    NxInPort,
    /// View: the outermost tag's control information with `0x1000` set; zero without a tag.
    VlanTci,
    /// View: the ToS byte with the DSCP in its upper six bits; the lower two are zero.
    IpTos,
}

/// Row of the field table.
#[derive(Debug)]
pub struct FieldInfo {
    /// Field of this row.
    pub field: Field,
    /// The specification's name without prefix, in lower case.
    pub name: &'static str,
    /// The name that `ovs-ofctl` prints.
    pub ofctl: &'static str,
    /// Bits of the value.
    pub bits: u16,
    /// OXM header, if any. `tcp_flags` is ONF's experimenter field in 1.3.
    pub oxm: Option<WireId>,
    /// NXM header, if there is one with the same bits in the same positions.
    pub nxm: Option<WireId>,
    /// Permitted masks.
    pub maskable: Maskable,
    /// True if set-field may write the field.
    pub writable: bool,
    /// Prerequisite.
    pub prerequisite: Prerequisite,
    /// Parse depth that the field requires.
    pub depth: Depth,
}

impl Field {
    /// Number of fields.
    pub const COUNT: usize = Self::IpTos as usize + 1;

    /// The field's row.
    #[must_use]
    pub fn info(self) -> &'static FieldInfo {
        &FIELDS[self as usize]
    }

    /// All rows, in order.
    pub fn all() -> impl ExactSizeIterator<Item = &'static FieldInfo> {
        FIELDS.iter()
    }

    /// Length of the value on the wire, in bytes. Fields of twenty bits take four (OF 1.3.5, table
    /// 12: `mpls_label`, `ipv6_flabel`), and some fields are wider there than their values
    /// (`ovs-fields(7)`).
    #[must_use]
    pub fn bytes(self) -> usize {
        match (self, self.info().bits) {
            (Self::NshSpi, _) | (_, 20) => 4,
            (Self::TunFlags, _) => 2,
            (Self::CtState, _) => 4,
            _ if self.option().is_some() => TUNNEL_OPTION_BYTES,
            (_, bits) => usize::from(bits.div_ceil(8)),
        }
    }

    /// The field with this OXM header.
    #[must_use]
    pub fn from_oxm(id: WireId) -> Option<Self> {
        if by_class::BASIC.has(id) {
            return by_class::BASIC.field(id.number);
        }
        if by_class::NXM.iter().any(|class| class.has(id)) {
            return None;
        }
        FIELDS
            .iter()
            .find(|row| row.oxm == Some(id))
            .map(|row| row.field)
    }

    /// Returns the field with this NXM header, if the header carries exactly the bits of the row.
    #[must_use]
    pub fn from_nxm(id: WireId) -> Option<Self> {
        if let Some(class) = by_class::NXM.iter().find(|class| class.has(id)) {
            return class.field(id.number);
        }
        FIELDS
            .iter()
            .find(|row| row.nxm == Some(id))
            .map(|row| row.field)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

/// `OFPVID_PRESENT`: bit of `vlan_vid` that is set if there is a tag.
pub const VID_PRESENT: u16 = 0x1000;

/// Bits of `ip_frag`, as `ovs-fields(7)` defines them.
pub mod frag {
    /// The packet is a fragment.
    pub const ANY: u8 = 1;
    /// The packet is a fragment and not the first.
    pub const LATER: u8 = 2;
}

#[cfg(test)]
mod tests;
