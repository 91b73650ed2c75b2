//! The configuration of a tunnel: protocol, endpoints, keys, and the outer header
//! (ovs-vswitchd.conf.db(5), "Tunnel Options").

mod parse;
mod text;

use std::net::IpAddr;

use packet::tunnel::{
    GENEVE_PORT, GTPU_PORT, LISP_PORT, TunnelProtocol, VXLAN_PORT, VxlanExtension,
};

pub(super) use parse::from_words;

/// Default TTL of the outer header (`options:ttl`).
const TTL_DEFAULT: u8 = 64;

/// The type of a tunnel's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TunnelType {
    /// VXLAN.
    Vxlan,
    /// GENEVE.
    Geneve,
    /// GRE, over IPv4 or IPv6.
    Gre,
    /// GRE over IPv6. It differs from `gre` in its name only.
    Ip6Gre,
    /// ERSPAN, over IPv4 or IPv6.
    Erspan,
    /// ERSPAN over IPv6. It differs from `erspan` in its name only.
    Ip6Erspan,
    /// GTP-U.
    Gtpu,
    /// LISP.
    Lisp,
}

/// The payloads that a type of tunnel can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TunnelLayers {
    /// Ethernet frames.
    Frames,
    /// Packets without an Ethernet header.
    Packets,
    /// Both.
    Both,
}

/// A row of the table of types: the name in the database, the name of the port of Open vSwitch's
/// datapath that all tunnels of the type share, and the default UDP port, which is zero without UDP.
type TunnelTypeRow = (TunnelType, &'static str, &'static str, u16);

#[rustfmt::skip]
const TYPE_ROWS: [TunnelTypeRow; 8] = [
    (TunnelType::Vxlan,     "vxlan",     "vxlan_sys",     VXLAN_PORT),
    (TunnelType::Geneve,    "geneve",    "genev_sys",     GENEVE_PORT),
    (TunnelType::Gre,       "gre",       "gre_sys",       0),
    (TunnelType::Ip6Gre,    "ip6gre",    "ip6gre_sys",    0),
    (TunnelType::Erspan,    "erspan",    "erspan_sys",    0),
    (TunnelType::Ip6Erspan, "ip6erspan", "ip6erspan_sys", 0),
    (TunnelType::Gtpu,      "gtpu",      "gtpu_sys",      GTPU_PORT),
    (TunnelType::Lisp,      "lisp",      "lisp_sys",      LISP_PORT),
];

impl TunnelType {
    /// Returns the type with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let row = TYPE_ROWS.iter().find(|(_, known, ..)| *known == name);
        row.map(|(kind, ..)| *kind)
    }

    fn row(self) -> &'static TunnelTypeRow {
        let row = TYPE_ROWS.iter().find(|(kind, ..)| *kind == self);
        row.expect("each type has a row")
    }

    /// Returns the name in the database and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the default UDP port; zero for types without UDP.
    fn default_port(self) -> u16 {
        self.row().3
    }

    /// True if a packet may have a checksum besides that of IP.
    const fn may_be_summed(self) -> bool {
        matches!(self, Self::Vxlan | Self::Geneve | Self::Gre | Self::Ip6Gre)
    }

    /// True if packets may have sequence numbers by choice.
    const fn may_be_sequenced(self) -> bool {
        matches!(self, Self::Gre | Self::Ip6Gre)
    }

    const fn is_erspan(self) -> bool {
        matches!(self, Self::Erspan | Self::Ip6Erspan)
    }
}

/// An endpoint of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TunnelEndpoint {
    /// A configured address.
    Given(IpAddr),
    /// Any local address: that of the route to the remote endpoint.
    Any,
    /// Set by rules for sent packets, and matched by rules for received packets.
    Flow,
}

/// The key of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TunnelKey {
    /// No key; zero in protocols that always have one.
    None,
    /// A configured key.
    Given(u32),
    /// Set by rules for sent packets, and matched by rules for received packets.
    Flow,
}

/// A field of the outer IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OuterField {
    /// A configured value.
    Given(u8),
    /// The value of the inner packet if it is IP, and this value otherwise.
    Inherit(u8),
}

/// The packets that a tunnel port exchanges with its bridge (`options:packet_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PacketTypeMode {
    /// The tunnel carries Ethernet frames.
    LegacyL2,
    /// The tunnel carries packets without an Ethernet header; the bridge sees them after an Ethernet
    /// header with zero addresses.
    LegacyL3,
    /// The tunnel carries both, and the bridge sees them with their packet type.
    Aware,
}

/// A field of the ERSPAN header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErspanOption {
    /// A configured value.
    Given(u32),
    /// Set by rules.
    Flow,
}

/// The ERSPAN header of sent packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErspanConfig {
    /// The version, 1 or 2.
    pub version: ErspanOption,
    /// The port that is mirrored (version 1).
    pub index: ErspanOption,
    /// Zero for ingress, one for egress (version 2).
    pub direction: ErspanOption,
    /// The hardware id (version 2).
    pub hardware: ErspanOption,
}

impl Default for ErspanConfig {
    fn default() -> Self {
        Self {
            version: ErspanOption::Given(1),
            index: ErspanOption::Given(0),
            direction: ErspanOption::Given(0),
            hardware: ErspanOption::Given(0),
        }
    }
}

/// The configuration of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TunnelConfig {
    /// The type of the interface.
    pub kind: TunnelType,
    /// The protocol.
    pub protocol: TunnelProtocol,
    /// The UDP destination port; zero for GRE.
    pub port: u16,
    /// The remote endpoint.
    pub remote: TunnelEndpoint,
    /// The local endpoint.
    pub local: TunnelEndpoint,
    /// The key of received packets.
    pub in_key: TunnelKey,
    /// The key of sent packets.
    pub out_key: TunnelKey,
    /// DSCP and ECN.
    pub tos: OuterField,
    /// The TTL.
    pub ttl: OuterField,
    /// The don't-fragment bit of outer IPv4 headers.
    pub dont_fragment: bool,
    /// Sent packets have a UDP or GRE checksum; UDP over IPv6 always has one.
    pub checksum: bool,
    /// GRE packets have sequence numbers.
    pub sequenced: bool,
    /// The payload.
    pub packet_type: PacketTypeMode,
    /// The packet mark of sent packets; none to keep that of the frame.
    pub egress_mark: Option<u32>,
    /// The header of ERSPAN tunnels.
    pub erspan: ErspanConfig,
}

impl TunnelConfig {
    /// Returns the type in the database and on the command line.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.kind.name()
    }

    /// Returns the name of the datapath port that receives the packets of this tunnel, and of all
    /// others with the same type and UDP port, as in Open vSwitch.
    #[must_use]
    pub fn datapath_port(&self) -> String {
        let name = self.kind.row().2;
        match self.port {
            0 => name.to_owned(),
            port => format!("{name}_{port}"),
        }
    }

    /// True if no UDP packet distinguishes the headers of this tunnel and of `other`, so that they
    /// cannot have the same UDP port: they differ in their protocol, or in the group policy of
    /// VXLAN. The generic protocol extension of VXLAN has a flag in each packet.
    #[must_use]
    pub const fn excludes(&self, other: &Self) -> bool {
        use TunnelProtocol::{Erspan, Geneve, Gre, Gtpu, Lisp, Vxlan};
        use VxlanExtension::Gbp;
        match (self.protocol, other.protocol) {
            (Vxlan(own), Vxlan(other)) => matches!(own, Gbp) != matches!(other, Gbp),
            (Gre | Erspan, Gre | Erspan) | (Geneve, Geneve) | (Gtpu, Gtpu) | (Lisp, Lisp) => false,
            _ => true,
        }
    }

    /// Returns the kinds of payload that the tunnel can carry.
    const fn layers(kind: TunnelType, protocol: TunnelProtocol) -> TunnelLayers {
        match (kind, protocol) {
            (TunnelType::Gtpu | TunnelType::Lisp, _) => TunnelLayers::Packets,
            (TunnelType::Gre, _) | (_, TunnelProtocol::Vxlan(VxlanExtension::Gpe)) => {
                TunnelLayers::Both
            }
            _ => TunnelLayers::Frames,
        }
    }

    /// Returns the payload of a tunnel without `options:packet_type`.
    const fn default_packet_type(kind: TunnelType, protocol: TunnelProtocol) -> PacketTypeMode {
        match Self::layers(kind, protocol) {
            TunnelLayers::Packets => PacketTypeMode::LegacyL3,
            TunnelLayers::Frames | TunnelLayers::Both => PacketTypeMode::LegacyL2,
        }
    }
}

impl PacketTypeMode {
    /// Returns the word in the database.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LegacyL2 => "legacy_l2",
            Self::LegacyL3 => "legacy_l3",
            Self::Aware => "ptap",
        }
    }
}

#[cfg(test)]
mod tests;
