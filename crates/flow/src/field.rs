//! The registry of match fields: one row each, and everything else (codec,
//! text form, prerequisites, documentation) reads the row.
//!
//! Sources: OF 1.3.5, table 12 (OXM); `ovs-fields(7)` of Open vSwitch 3.1 (NXM,
//! masks and names); ONF EXT-109 (`tcp_flags`) and EXT-233 (`actset_output`);
//! OF 1.5.1, 7.2.3.9 (packet registers); RFC 8300 (the network service header).

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

/// A match field. The order is the order of matching and of printing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Field {
    /// The port the frame came in by.
    InPort,
    /// The physical port below a logical one; equal to `InPort` here.
    InPhyPort,
    /// What `write_metadata` left for later tables.
    Metadata,
    /// The tunnel's key; zero where there is no tunnel.
    TunnelId,
    /// The kind of packet: zero for an Ethernet frame (OF 1.5.1, 7.2.3.11). It comes
    /// before all that is in the packet, whose prerequisite it may be.
    PacketType,
    /// Ethernet destination.
    EthDst,
    /// Ethernet source.
    EthSrc,
    /// The type behind all VLAN tags; `0x05ff` for an 802.2 length frame.
    EthType,
    /// VLAN id of the outermost tag in the lower twelve bits, and `0x1000` if there is a tag.
    VlanVid,
    /// Priority of the outermost tag.
    VlanPcp,
    /// Label of the outermost MPLS entry.
    MplsLabel,
    /// Traffic class of the outermost MPLS entry.
    MplsTc,
    /// Bottom-of-stack bit of the outermost MPLS entry.
    MplsBos,
    /// Service instance of the outermost tag of provider backbone bridging.
    PbbIsid,
    /// Whether that tag says to use the customer's addresses as they are (1.4).
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
    /// The protocol above IP, behind all extension headers.
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
    /// Which extension headers there are, as `OFPIEH_*` bits.
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
    /// A mark that goes with the frame through the switch; zero at first.
    PktMark,
    /// IPv4 source of the tunnel; zero where there is none.
    TunSrc,
    /// IPv4 destination of the tunnel; zero where there is none.
    TunDst,
    /// IPv6 source of the tunnel; zero where there is none.
    TunIpv6Src,
    /// IPv6 destination of the tunnel; zero where there is none.
    TunIpv6Dst,
    /// The conjunction that the lookup has satisfied; zero for none (`ovs-fields(7)`).
    ConjId,
    /// The port that the action set outputs to; `0xfffffff7` for none (ONF EXT-233).
    ActsetOutput,
    /// The tunnel's group policy; zero where there is none (`ovs-fields(7)`).
    TunGbpId,
    /// Flags of the tunnel's group policy; zero where there is none.
    TunGbpFlags,
    /// The two flags of the network service header.
    NshFlags,
    /// Its time to live.
    NshTtl,
    /// The type of its metadata.
    NshMdtype,
    /// What follows it: 1 IPv4, 2 IPv6, 3 Ethernet, 4 another such header.
    NshNp,
    /// The service path.
    NshSpi,
    /// Where on the service path it is.
    NshSi,
    /// The first word of context; zero if the metadata are of another type.
    NshC1,
    /// The second word of context.
    NshC2,
    /// The third word of context.
    NshC3,
    /// The fourth word of context.
    NshC4,
    /// The flags and zeros before the target of a neighbour solicitation or advertisement.
    NdReserved,
    /// The type of its first link-layer option; zero without one.
    NdOptionsType,
    /// Whether the tunnel says that the frame is for operations and maintenance.
    TunFlags,
    /// The version of ERSPAN; zero where there is no such tunnel.
    TunErspanVer,
    /// The port of the mirrored traffic.
    TunErspanIdx,
    /// Its direction: 0 ingress, 1 egress.
    TunErspanDir,
    /// What has mirrored it.
    TunErspanHwid,
    /// Flags of the tunnel of GTP; zero where there is none.
    TunGtpuFlags,
    /// The type of its message.
    TunGtpuMsgtype,
    /// A hash of the frame that another data path would have made: zero. No rule may match it.
    DpHash,
    /// The round through another data path: zero. No rule may match it.
    RecircId,
    /// Register 0; zero when the frame arrives.
    Reg0,
    /// Register 1; zero when the frame arrives.
    Reg1,
    /// Register 2; zero when the frame arrives.
    Reg2,
    /// Register 3; zero when the frame arrives.
    Reg3,
    /// Register 4; zero when the frame arrives.
    Reg4,
    /// Register 5; zero when the frame arrives.
    Reg5,
    /// Register 6; zero when the frame arrives.
    Reg6,
    /// Register 7; zero when the frame arrives.
    Reg7,
    /// Register 8; zero when the frame arrives.
    Reg8,
    /// Register 9; zero when the frame arrives.
    Reg9,
    /// Register 10; zero when the frame arrives.
    Reg10,
    /// Register 11; zero when the frame arrives.
    Reg11,
    /// Register 12; zero when the frame arrives.
    Reg12,
    /// Register 13; zero when the frame arrives.
    Reg13,
    /// Register 14; zero when the frame arrives.
    Reg14,
    /// Register 15; zero when the frame arrives.
    Reg15,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata0,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata1,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata2,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata3,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata4,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata5,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata6,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata7,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata8,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata9,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata10,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata11,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata12,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata13,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata14,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata15,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata16,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata17,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata18,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata19,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata20,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata21,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata22,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata23,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata24,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata25,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata26,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata27,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata28,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata29,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata30,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata31,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata32,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata33,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata34,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata35,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata36,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata37,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata38,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata39,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata40,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata41,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata42,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata43,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata44,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata45,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata46,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata47,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata48,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata49,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata50,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata51,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata52,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata53,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata54,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata55,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata56,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata57,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata58,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata59,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata60,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata61,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata62,
    /// The value of the tunnel option that is bound to it; zero without one.
    TunMetadata63,
    /// FieldView: registers 0 and 1, the former above.
    Xreg0,
    /// FieldView: registers 2 and 3, the former above.
    Xreg1,
    /// FieldView: registers 4 and 5, the former above.
    Xreg2,
    /// FieldView: registers 6 and 7, the former above.
    Xreg3,
    /// FieldView: registers 8 and 9, the former above.
    Xreg4,
    /// FieldView: registers 10 and 11, the former above.
    Xreg5,
    /// FieldView: registers 12 and 13, the former above.
    Xreg6,
    /// FieldView: registers 14 and 15, the former above.
    Xreg7,
    /// FieldView: registers 0 to 3, the first above.
    Xxreg0,
    /// FieldView: registers 4 to 7, the first above.
    Xxreg1,
    /// FieldView: registers 8 to 11, the first above.
    Xxreg2,
    /// FieldView: registers 12 to 15, the first above.
    Xxreg3,
    /// FieldView: the port of arrival in the sixteen bits of OpenFlow 1.0.
    NxInPort,
    /// FieldView: the outermost tag whole, `0x1000` saying that there is one; zero without.
    VlanTci,
    /// FieldView: the byte with the DSCP in its upper six bits, the lower two zero.
    IpTos,
}

/// One row of the registry.
#[derive(Debug)]
pub struct FieldInfo {
    /// The field that the row describes.
    pub field: Field,
    /// The specification's name without prefix, in lower case.
    pub name: &'static str,
    /// The name that `ovs-ofctl` prints.
    pub ofctl: &'static str,
    /// Bits of the value.
    pub bits: u16,
    /// Its OXM header, if it has one. `tcp_flags` is ONF's experimenter field in 1.3.
    pub oxm: Option<WireId>,
    /// Its NXM header, if it has one with the same bits in the same places.
    pub nxm: Option<WireId>,
    /// Which masks it takes.
    pub maskable: Maskable,
    /// Whether set-field may change it.
    pub writable: bool,
    /// What it needs.
    pub needs: Prerequisite,
    /// How deep the frame must be read for it.
    pub depth: Depth,
}

impl Field {
    /// How many fields there are.
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

    /// Whole bytes that the value takes on the wire. Twenty bits take four of
    /// them (OF 1.3.5, table 12: `mpls_label`, `ipv6_flabel`), and some fields are
    /// wider there than any value of them (`ovs-fields(7)`).
    #[must_use]
    pub fn bytes(self) -> usize {
        match (self, self.info().bits) {
            (Self::NshSpi, _) | (_, 20) => 4,
            (Self::TunFlags, _) => 2,
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

    /// The field with this NXM header, if the row's own bits are what it carries.
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

/// `OFPVID_PRESENT`: the bit of `vlan_vid` that says that there is a tag.
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
