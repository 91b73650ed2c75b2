//! The registry of match fields: one row each, and everything else (codec,
//! text form, prerequisites, documentation) reads the row.
//!
//! Sources: OF 1.3.5, table 12 (OXM); `ovs-fields(7)` of Open vSwitch 3.1 (NXM,
//! masks and names); ONF EXT-109 (`tcp_flags`) and EXT-233 (`actset_output`);
//! OF 1.5.1, 7.2.3.9 (packet registers); RFC 8300 (the network service header).

mod basic;
mod by_number;
mod needs;
mod part_name;
pub(crate) mod view;
mod wire;

use std::fmt;

pub use packet::Depth;

pub use needs::{Maskable, Prerequisite};
pub use wire::{EXPERIMENTER, ONF, WireId};

use wire::{ericsson, et, nsh, nx, of, onf, oxm, xreg};

pub use view::{Masked, REGISTERS, View, widen};

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
    /// View: the port of arrival in the sixteen bits of OpenFlow 1.0.
    NxInPort,
    /// View: the outermost tag whole, `0x1000` saying that there is one; zero without.
    VlanTci,
    /// View: the byte with the DSCP in its upper six bits, the lower two zero.
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
    pub bits: u8,
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

macro_rules! row {
    ($field:ident, $name:literal, $ofctl:literal, $bits:literal, $oxm:expr, $nxm:expr, $mask:ident, $write:literal, $needs:ident, $depth:ident) => {
        FieldInfo {
            field: Field::$field,
            name: $name,
            ofctl: $ofctl,
            bits: $bits,
            oxm: $oxm,
            nxm: $nxm,
            maskable: Maskable::$mask,
            writable: $write,
            needs: Prerequisite::$needs,
            depth: Depth::$depth,
        }
    };
}

#[rustfmt::skip]
pub(crate) static FIELDS: [FieldInfo; Field::COUNT] = [
//       field         name             ovs-ofctl      bits OXM      NXM      mask  write  needs            depth
    row!(InPort,       "in_port",       "in_port",      32, oxm(0),  None,    No,   false, None,            Link),
    row!(InPhyPort,    "in_phy_port",   "in_phy_port",  32, oxm(1),  None,    No,   false, InPort,          Link),
    row!(Metadata,     "metadata",      "metadata",     64, oxm(2),  None,    Any,  true,  None,            Link),
    row!(TunnelId,     "tunnel_id",     "tun_id",       64, oxm(38), nx(16),  Any,  true,  None,            Link),
    row!(PacketType,   "packet_type",  "packet_type",  32, oxm(44), None,    No,  false, None,            Link),
    row!(EthDst,       "eth_dst",       "dl_dst",       48, oxm(3),  of(1),   Any,  true,  None,            Link),
    row!(EthSrc,       "eth_src",       "dl_src",       48, oxm(4),  of(2),   Any,  true,  None,            Link),
    row!(EthType,      "eth_type",      "dl_type",      16, oxm(5),  of(3),   No,   true,  None,            Link),
    row!(VlanVid,      "vlan_vid",      "dl_vlan",      13, oxm(6),  None,    Any,  true,  None,            Link),
    row!(VlanPcp,      "vlan_pcp",      "dl_vlan_pcp",   3, oxm(7),  None,    No,   true,  VlanTag,         Link),
    row!(MplsLabel,    "mpls_label",    "mpls_label",   20, oxm(34), None,    No,   true,  Mpls,            Network),
    row!(MplsTc,       "mpls_tc",       "mpls_tc",       3, oxm(35), None,    No,   true,  Mpls,            Network),
    row!(MplsBos,      "mpls_bos",      "mpls_bos",      1, oxm(36), None,    No,   true,  Mpls,            Network),
    row!(PbbIsid,      "pbb_isid",      "pbb_isid",     24, oxm(37), None,    Any,  true,  Pbb,             Network),
    row!(PbbUca,       "pbb_uca",       "pbb_uca",       1, oxm(41), None,    No,   true,  Pbb,             Network),
    row!(ArpOp,        "arp_op",        "arp_op",       16, oxm(21), of(15),  No,   true,  Arp,             Network),
    row!(ArpSpa,       "arp_spa",       "arp_spa",      32, oxm(22), of(16),  Any,  true,  Arp,             Network),
    row!(ArpTpa,       "arp_tpa",       "arp_tpa",      32, oxm(23), of(17),  Any,  true,  Arp,             Network),
    row!(ArpSha,       "arp_sha",       "arp_sha",      48, oxm(24), nx(17),  Any,  true,  Arp,             Network),
    row!(ArpTha,       "arp_tha",       "arp_tha",      48, oxm(25), nx(18),  Any,  true,  Arp,             Network),
    row!(IpDscp,       "ip_dscp",       "nw_tos",        6, oxm(8),  None,    No,   true,  Ip,              Network),
    row!(IpEcn,        "ip_ecn",        "nw_ecn",        2, oxm(9),  nx(28),  No,   true,  Ip,              Network),
    row!(IpProto,      "ip_proto",      "nw_proto",      8, oxm(10), of(6),   No,   true,  Ip,              Network),
    row!(IpTtl,        "nw_ttl",        "nw_ttl",        8, None,    nx(29),  No,   true,  Ip,              Network),
    row!(IpFrag,       "ip_frag",       "ip_frag",       2, None,    nx(26),  Any,  false, Ip,              Network),
    row!(Ipv4Src,      "ipv4_src",      "nw_src",       32, oxm(11), of(7),   Any,  true,  Ipv4,            Network),
    row!(Ipv4Dst,      "ipv4_dst",      "nw_dst",       32, oxm(12), of(8),   Any,  true,  Ipv4,            Network),
    row!(Ipv6Src,      "ipv6_src",      "ipv6_src",    128, oxm(26), nx(19),  Any,  true,  Ipv6,            Network),
    row!(Ipv6Dst,      "ipv6_dst",      "ipv6_dst",    128, oxm(27), nx(20),  Any,  true,  Ipv6,            Network),
    row!(Ipv6Flabel,   "ipv6_flabel",   "ipv6_label",   20, oxm(28), nx(27),  Any,  true,  Ipv6,            Network),
    row!(Ipv6Exthdr,   "ipv6_exthdr",   "ipv6_exthdr",   9, oxm(39), None,    Any,  false, Ipv6,            Network),
    row!(TcpSrc,       "tcp_src",       "tcp_src",      16, oxm(13), of(9),   Any,  true,  Tcp,             Transport),
    row!(TcpDst,       "tcp_dst",       "tcp_dst",      16, oxm(14), of(10),  Any,  true,  Tcp,             Transport),
    row!(TcpFlags,     "tcp_flags",     "tcp_flags",    12, onf(42), nx(34),  Any,  false, Tcp,             Transport),
    row!(UdpSrc,       "udp_src",       "udp_src",      16, oxm(15), of(11),  Any,  true,  Udp,             Transport),
    row!(UdpDst,       "udp_dst",       "udp_dst",      16, oxm(16), of(12),  Any,  true,  Udp,             Transport),
    row!(SctpSrc,      "sctp_src",      "sctp_src",     16, oxm(17), None,    Any,  true,  Sctp,            Transport),
    row!(SctpDst,      "sctp_dst",      "sctp_dst",     16, oxm(18), None,    Any,  true,  Sctp,            Transport),
    row!(Icmpv4Type,   "icmpv4_type",   "icmp_type",     8, oxm(19), of(13),  No,   true,  Icmpv4,          Transport),
    row!(Icmpv4Code,   "icmpv4_code",   "icmp_code",     8, oxm(20), of(14),  No,   true,  Icmpv4,          Transport),
    row!(Icmpv6Type,   "icmpv6_type",   "icmp_type",     8, oxm(29), nx(21),  No,   true,  Icmpv6,          Transport),
    row!(Icmpv6Code,   "icmpv6_code",   "icmp_code",     8, oxm(30), nx(22),  No,   true,  Icmpv6,          Transport),
    row!(Ipv6NdTarget, "ipv6_nd_target","nd_target",   128, oxm(31), nx(23),  Any,  true,  Nd,              Transport),
    row!(Ipv6NdSll,    "ipv6_nd_sll",   "nd_sll",       48, oxm(32), nx(24),  Any,  true,  NdSolicitation,  Transport),
    row!(Ipv6NdTll,    "ipv6_nd_tll",   "nd_tll",       48, oxm(33), nx(25),  Any,  true,  NdAdvertisement, Transport),
    row!(MplsTtl,      "mpls_ttl",     "mpls_ttl",      8, None,    nx(30),  No,  true,  Mpls,            Network),
    row!(PktMark,      "pkt_mark",     "pkt_mark",     32, None,    nx(33),  Any, true,  None,            Link),
    row!(TunSrc,       "tun_src",      "tun_src",      32, None,    nx(31),  Any, true,  None,            Link),
    row!(TunDst,       "tun_dst",      "tun_dst",      32, None,    nx(32),  Any, true,  None,            Link),
    row!(TunIpv6Src,   "tun_ipv6_src", "tun_ipv6_src",128, None,    nx(109), Any, true,  None,            Link),
    row!(TunIpv6Dst,   "tun_ipv6_dst", "tun_ipv6_dst",128, None,    nx(110), Any, true,  None,            Link),
    row!(ConjId,       "conj_id",      "conj_id",      32, None,    nx(37),  No,  false, None,            Link),
    row!(ActsetOutput, "actset_output","actset_output", 32, onf(43), None,    No,  false, None,            Link),
    row!(TunGbpId,     "tun_gbp_id",   "tun_gbp_id",   16, None,    nx(38),  Any, true,  None,            Link),
    row!(TunGbpFlags,  "tun_gbp_flags","tun_gbp_flags", 8, None,    nx(39),  Any, true,  None,            Link),
    row!(NshFlags,      "nsh_flags",      "nsh_flags",       8, None,    nsh(1),      Any, true,  Nsh,             Network),
    row!(NshTtl,        "nsh_ttl",        "nsh_ttl",         8, None,    nsh(10),     No,  true,  Nsh,             Network),
    row!(NshMdtype,     "nsh_mdtype",     "nsh_mdtype",      8, None,    nsh(2),      No,  false, Nsh,             Network),
    row!(NshNp,         "nsh_np",         "nsh_np",          8, None,    nsh(3),      No,  false, Nsh,             Network),
    row!(NshSpi,        "nsh_spi",        "nsh_spi",        24, None,    nsh(4),      No,  true,  Nsh,             Network),
    row!(NshSi,         "nsh_si",         "nsh_si",          8, None,    nsh(5),      No,  true,  Nsh,             Network),
    row!(NshC1,         "nsh_c1",         "nsh_c1",         32, None,    nsh(6),      Any, true,  Nsh,             Network),
    row!(NshC2,         "nsh_c2",         "nsh_c2",         32, None,    nsh(7),      Any, true,  Nsh,             Network),
    row!(NshC3,         "nsh_c3",         "nsh_c3",         32, None,    nsh(8),      Any, true,  Nsh,             Network),
    row!(NshC4,         "nsh_c4",         "nsh_c4",         32, None,    nsh(9),      Any, true,  Nsh,             Network),
    row!(NdReserved,    "nd_reserved",    "nd_reserved",    32, None,    ericsson(1), No,  true,  Nd,              Transport),
    row!(NdOptionsType, "nd_options_type", "nd_options_type",  8, None,    ericsson(2), No,  true,  Nd,              Transport),
    row!(TunFlags,      "tun_flags",      "tun_flags",       1, None,    nx(104),     Any, true,  None,            Link),
    row!(TunErspanVer,  "tun_erspan_ver", "tun_erspan_ver",  4, None,    et(12),      Any, true,  None,            Link),
    row!(TunErspanIdx,  "tun_erspan_idx", "tun_erspan_idx", 20, None,    et(11),      Any, true,  None,            Link),
    row!(TunErspanDir,  "tun_erspan_dir", "tun_erspan_dir",  1, None,    et(13),      Any, true,  None,            Link),
    row!(TunErspanHwid, "tun_erspan_hwid", "tun_erspan_hwid",  6, None,    et(14),      Any, true,  None,            Link),
    row!(TunGtpuFlags,  "tun_gtpu_flags", "gtpu_flags",      8, None,    et(15),      Any, false, None,            Link),
    row!(TunGtpuMsgtype, "tun_gtpu_msgtype", "gtpu_msgtype",    8, None,    et(16),      Any, false, None,            Link),
    row!(DpHash,        "dp_hash",        "dp_hash",        32, None,    nx(35),      Any, false, None,            Link),
    row!(RecircId,      "recirc_id",      "recirc_id",      32, None,    nx(36),      No,  false, None,            Link),
    row!(Reg0,         "reg0",         "reg0",         32, None,    nx(0),   Any, true,  None,            Link),
    row!(Reg1,         "reg1",         "reg1",         32, None,    nx(1),   Any, true,  None,            Link),
    row!(Reg2,         "reg2",         "reg2",         32, None,    nx(2),   Any, true,  None,            Link),
    row!(Reg3,         "reg3",         "reg3",         32, None,    nx(3),   Any, true,  None,            Link),
    row!(Reg4,         "reg4",         "reg4",         32, None,    nx(4),   Any, true,  None,            Link),
    row!(Reg5,         "reg5",         "reg5",         32, None,    nx(5),   Any, true,  None,            Link),
    row!(Reg6,         "reg6",         "reg6",         32, None,    nx(6),   Any, true,  None,            Link),
    row!(Reg7,         "reg7",         "reg7",         32, None,    nx(7),   Any, true,  None,            Link),
    row!(Reg8,         "reg8",         "reg8",         32, None,    nx(8),   Any, true,  None,            Link),
    row!(Reg9,         "reg9",         "reg9",         32, None,    nx(9),   Any, true,  None,            Link),
    row!(Reg10,        "reg10",        "reg10",        32, None,    nx(10),  Any, true,  None,            Link),
    row!(Reg11,        "reg11",        "reg11",        32, None,    nx(11),  Any, true,  None,            Link),
    row!(Reg12,        "reg12",        "reg12",        32, None,    nx(12),  Any, true,  None,            Link),
    row!(Reg13,        "reg13",        "reg13",        32, None,    nx(13),  Any, true,  None,            Link),
    row!(Reg14,        "reg14",        "reg14",        32, None,    nx(14),  Any, true,  None,            Link),
    row!(Reg15,        "reg15",        "reg15",        32, None,    nx(15),  Any, true,  None,            Link),
    row!(Xreg0,        "xreg0",        "xreg0",        64, xreg(0), None,    Any, true,  None,            Link),
    row!(Xreg1,        "xreg1",        "xreg1",        64, xreg(1), None,    Any, true,  None,            Link),
    row!(Xreg2,        "xreg2",        "xreg2",        64, xreg(2), None,    Any, true,  None,            Link),
    row!(Xreg3,        "xreg3",        "xreg3",        64, xreg(3), None,    Any, true,  None,            Link),
    row!(Xreg4,        "xreg4",        "xreg4",        64, xreg(4), None,    Any, true,  None,            Link),
    row!(Xreg5,        "xreg5",        "xreg5",        64, xreg(5), None,    Any, true,  None,            Link),
    row!(Xreg6,        "xreg6",        "xreg6",        64, xreg(6), None,    Any, true,  None,            Link),
    row!(Xreg7,        "xreg7",        "xreg7",        64, xreg(7), None,    Any, true,  None,            Link),
    row!(Xxreg0,       "xxreg0",       "xxreg0",      128, None,    nx(111), Any, true,  None,            Link),
    row!(Xxreg1,       "xxreg1",       "xxreg1",      128, None,    nx(112), Any, true,  None,            Link),
    row!(Xxreg2,       "xxreg2",       "xxreg2",      128, None,    nx(113), Any, true,  None,            Link),
    row!(Xxreg3,       "xxreg3",       "xxreg3",      128, None,    nx(114), Any, true,  None,            Link),
    row!(NxInPort,     "in_port_nxm",  "in_port",      16, None,    of(0),   No,  true,  None,            Link),
    row!(VlanTci,      "vlan_tci",     "vlan_tci",     16, None,    of(4),   Any, true,  None,            Link),
    row!(IpTos,        "ip_tos",       "nw_tos",        8, None,    of(5),   No,  true,  Ip,              Network),
];

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
            (_, bits) => usize::from(bits.div_ceil(8)),
        }
    }

    /// The field with this OXM header.
    #[must_use]
    pub fn from_oxm(id: WireId) -> Option<Self> {
        if id.class == basic::CLASS {
            return basic::field(id.number);
        }
        FIELDS
            .iter()
            .find(|row| row.oxm == Some(id))
            .map(|row| row.field)
    }

    /// The field with this NXM header, if the row's own bits are what it carries.
    #[must_use]
    pub fn from_nxm(id: WireId) -> Option<Self> {
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
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_enum() {
        for (index, row) in Field::all().enumerate() {
            assert_eq!(row.field as usize, index, "{}", row.name);
            assert!((1..=128).contains(&row.bits), "{}", row.name);
        }
    }

    #[test]
    fn wire_ids_and_names_are_unique() {
        for a in Field::all() {
            for b in Field::all().filter(|b| b.field != a.field) {
                assert!(a.oxm.is_none() || a.oxm != b.oxm, "{} {}", a.name, b.name);
                assert!(a.nxm.is_none() || a.nxm != b.nxm, "{} {}", a.name, b.name);
                assert_ne!(a.name, b.name);
            }
        }
    }

    #[test]
    fn a_label_takes_four_bytes() {
        assert_eq!(Field::MplsLabel.bytes(), 4);
        assert_eq!(Field::Ipv6Flabel.bytes(), 4);
        assert_eq!(Field::PbbIsid.bytes(), 3);
        assert_eq!(Field::VlanVid.bytes(), 2);
        assert_eq!(Field::EthSrc.bytes(), 6);
        assert_eq!(Field::Ipv6Src.bytes(), 16);
    }

    #[test]
    fn a_field_is_found_by_its_headers() {
        for row in Field::all() {
            if let Some(id) = row.oxm {
                assert_eq!(Field::from_oxm(id), Some(row.field));
            }
            if let Some(id) = row.nxm {
                assert_eq!(Field::from_nxm(id), Some(row.field));
            }
        }
    }
}
