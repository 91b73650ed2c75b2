//! Tunnel header: the header between UDP or IP and the payload of the tunnel.

mod erspan;
mod gtpu;
mod lisp;

use super::{OPTIONS_LEN_MAX, TunnelError};
use crate::checksum::InternetSum;
use crate::wire::ethernet::EtherType;
use crate::wire::u16_at;

pub use erspan::{ERSPAN_SESSION_MAX, ErspanHeader};
pub use gtpu::{GTPU_FLAGS, GTPU_USER_PACKET, GtpuHeader};

/// The protocol of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TunnelProtocol {
    /// VXLAN.
    Vxlan(VxlanExtension),
    /// GENEVE.
    Geneve,
    /// GRE.
    Gre,
    /// ERSPAN within GRE.
    Erspan,
    /// GTP-U.
    Gtpu,
    /// LISP.
    Lisp,
}

impl TunnelProtocol {
    /// True if packets have a GRE header directly behind the IP header.
    #[must_use]
    pub const fn is_gre(self) -> bool {
        matches!(self, Self::Gre | Self::Erspan)
    }

    /// Returns the largest key that the header can express.
    #[must_use]
    pub const fn key_max(self) -> u32 {
        match self {
            Self::Gre | Self::Gtpu => u32::MAX,
            Self::Vxlan(_) | Self::Geneve | Self::Lisp => 0x00ff_ffff,
            Self::Erspan => ERSPAN_SESSION_MAX,
        }
    }

    /// Returns the protocol of a packet with a GRE header, by its protocol type; none if the
    /// header is truncated.
    #[must_use]
    pub fn of_gre(header: &[u8]) -> Option<Self> {
        let head = header.first_chunk::<4>()?;
        Some(match u16_at(head, 2) {
            erspan::TYPE_V1 | erspan::TYPE_V2 => Self::Erspan,
            _ => Self::Gre,
        })
    }
}

/// Extension of the VXLAN header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VxlanExtension {
    /// No extension.
    #[default]
    None,
    /// A group policy (draft-smith-vxlan-group-policy).
    Gbp,
    /// Next protocol (draft-ietf-nvo3-vxlan-gpe).
    Gpe,
}

/// Payload of a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TunnelPayload {
    /// An Ethernet frame.
    #[default]
    Ethernet,
    /// A packet of this type.
    Packet(EtherType),
}

/// The group policy of VXLAN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupPolicy {
    /// The group.
    pub id: u16,
    /// Flags: policy applied (0x08), do not learn addresses (0x40).
    pub flags: u8,
}

/// An option of GENEVE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunnelOption {
    /// Option class.
    pub class: u16,
    /// Option type within the class.
    pub kind: u8,
    /// Value; its length is a multiple of four.
    pub value: Vec<u8>,
}

/// A tunnel's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelHeader {
    /// Protocol of the tunnel.
    pub protocol: TunnelProtocol,
    /// Key (VNI, session id, endpoint id): 24 bits for VXLAN, GENEVE and LISP, 32 for GRE and
    /// GTP-U, ten for ERSPAN.
    pub key: Option<u32>,
    /// Payload.
    pub payload: TunnelPayload,
    /// The group policy, of VXLAN with one.
    pub policy: Option<GroupPolicy>,
    /// True for control packets between the tunnel endpoints (`O` of GENEVE and VXLAN-GPE).
    pub oam: bool,
    /// True if GRE has a checksum over header and payload.
    pub summed: bool,
    /// Sequence number of GRE, ERSPAN (zero without one), and GTP-U (16 bits).
    pub sequence: Option<u32>,
    /// ERSPAN's version and its fields.
    pub erspan: Option<ErspanHeader>,
    /// Flags and message type of GTP-U.
    pub gtpu: Option<GtpuHeader>,
    /// GENEVE's options.
    pub options: Vec<TunnelOption>,
}

mod vxlan {
    pub(super) const LEN: usize = 8;
    pub(super) const KEY: u8 = 0x08;
    pub(super) const POLICY: u8 = 0x80;
    pub(super) const VERSION: u8 = 0x30;
    pub(super) const NEXT: u8 = 0x04;
    pub(super) const OAM: u8 = 0x01;
    /// Group policy flags: policy applied, do not learn.
    pub(super) const POLICY_FLAGS: u8 = 0x48;
}

mod geneve {
    pub(super) const LEN: usize = 8;
    pub(super) const OAM: u8 = 0x80;
    pub(super) const CRITICAL: u8 = 0x40;
    /// Critical bit of an option type: a receiver that does not support the option drops the
    /// packet.
    pub(super) const CRITICAL_KIND: u8 = 0x80;
}

mod gre {
    pub(super) const CHECKSUM: u16 = 0x8000;
    pub(super) const KEY: u16 = 0x2000;
    pub(super) const SEQUENCE: u16 = 0x1000;
    /// Supported flags; the version must be zero.
    pub(super) const KNOWN: u16 = CHECKSUM | KEY | SEQUENCE;
}

/// Transparent Ethernet bridging (RFC 1701; RFC 7637, 3.2; RFC 8926, 3.4).
const BRIDGING: u16 = 0x6558;

/// Next protocol numbers of VXLAN-GPE.
const NEXT_PROTOCOLS: [(u8, TunnelPayload); 5] = [
    (1, TunnelPayload::Packet(EtherType::IPV4)),
    (2, TunnelPayload::Packet(EtherType::IPV6)),
    (3, TunnelPayload::Ethernet),
    (4, TunnelPayload::Packet(EtherType::NSH)),
    (5, TunnelPayload::Packet(EtherType::MPLS)),
];

impl TunnelPayload {
    const fn from_ether_type(number: u16) -> Self {
        match number {
            BRIDGING => Self::Ethernet,
            other => Self::Packet(EtherType(other)),
        }
    }

    const fn ether_type(self) -> u16 {
        match self {
            Self::Ethernet => BRIDGING,
            Self::Packet(EtherType(number)) => number,
        }
    }
}

impl TunnelHeader {
    /// Returns a header for an Ethernet payload, without options.
    #[must_use]
    pub const fn new(protocol: TunnelProtocol) -> Self {
        Self {
            protocol,
            key: None,
            payload: TunnelPayload::Ethernet,
            policy: None,
            oam: false,
            summed: false,
            sequence: None,
            erspan: None,
            gtpu: None,
            options: Vec::new(),
        }
    }

    /// Parses the header at the front of `bytes`, which end where the packet ends. The checksum is
    /// not verified if `trusted`. Returns the header and its length.
    ///
    /// # Errors
    /// The header is truncated or unsupported, or its checksum is wrong.
    pub fn parse(
        protocol: TunnelProtocol,
        bytes: &[u8],
        trusted: bool,
    ) -> Result<(Self, usize), TunnelError> {
        match protocol {
            TunnelProtocol::Vxlan(extension) => parse_vxlan(extension, bytes),
            TunnelProtocol::Geneve => parse_geneve(bytes),
            TunnelProtocol::Gre => parse_gre(bytes, trusted),
            TunnelProtocol::Erspan => erspan::parse_erspan(bytes),
            TunnelProtocol::Gtpu => gtpu::parse_gtpu(bytes),
            TunnelProtocol::Lisp => lisp::parse_lisp(bytes),
        }
    }

    /// Encodes the header. Values that exceed their field are truncated.
    pub(super) fn emit(&self, into: &mut Vec<u8>) {
        match self.protocol {
            TunnelProtocol::Vxlan(extension) => self.emit_vxlan(extension, into),
            TunnelProtocol::Geneve => self.emit_geneve(into),
            TunnelProtocol::Gre => self.emit_gre(into),
            TunnelProtocol::Erspan => self.emit_erspan(into),
            TunnelProtocol::Gtpu => self.emit_gtpu(into),
            TunnelProtocol::Lisp => self.emit_lisp(into),
        }
    }

    /// Returns the encoded header, with zero for fields that depend on the payload.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.emit(&mut bytes);
        bytes
    }

    /// True for a control message of the tunnel itself, which is delivered with its outer headers:
    /// the payload is no packet of a user.
    #[must_use]
    pub fn is_control_message(&self) -> bool {
        self.gtpu
            .is_some_and(|header| header.message != GTPU_USER_PACKET)
    }

    /// Writes checksum and length into `bytes`, which begin with this header and end where the packet
    /// ends.
    pub(super) fn finalize(&self, bytes: &mut [u8]) {
        match self.protocol {
            TunnelProtocol::Gre if self.summed => {
                let sum = InternetSum::of(bytes).checksum();
                bytes[4..6].copy_from_slice(&sum.to_be_bytes());
            }
            TunnelProtocol::Gtpu => gtpu::finalize_gtpu(bytes),
            _ => {}
        }
    }

    fn emit_vxlan(&self, extension: VxlanExtension, into: &mut Vec<u8>) {
        let mut head = [vxlan::KEY, 0, 0, 0];
        match extension {
            VxlanExtension::None => {}
            VxlanExtension::Gbp => {
                if let Some(policy) = self.policy {
                    head[0] |= vxlan::POLICY;
                    head[1] = policy.flags & vxlan::POLICY_FLAGS;
                    head[2..].copy_from_slice(&policy.id.to_be_bytes());
                }
            }
            VxlanExtension::Gpe => {
                let next = NEXT_PROTOCOLS
                    .iter()
                    .find(|(_, payload)| *payload == self.payload);
                head[0] |= vxlan::NEXT | u8::from(self.oam);
                head[3] = next.map_or(0, |(number, _)| *number);
            }
        }
        into.extend(head);
        into.extend((self.key.unwrap_or(0) << 8).to_be_bytes());
    }

    fn emit_geneve(&self, into: &mut Vec<u8>) {
        let mut flags = if self.oam { geneve::OAM } else { 0 };
        let mut options = Vec::new();
        for option in &self.options {
            let words = option.value.len() / 4;
            if options.len() + 4 + option.value.len() > OPTIONS_LEN_MAX || words > 31 {
                break;
            }
            if option.kind & geneve::CRITICAL_KIND != 0 {
                flags |= geneve::CRITICAL;
            }
            options.extend(option.class.to_be_bytes());
            options.extend([option.kind, u8::try_from(words).unwrap_or(0)]);
            options.extend(&option.value[..4 * words]);
        }
        let words = u8::try_from(options.len() / 4).unwrap_or(0);
        into.extend([words, flags]);
        into.extend(self.payload.ether_type().to_be_bytes());
        into.extend((self.key.unwrap_or(0) << 8).to_be_bytes());
        into.extend(options);
    }

    fn emit_gre(&self, into: &mut Vec<u8>) {
        let flag = |is_set: bool, flag: u16| if is_set { flag } else { 0 };
        let flags = flag(self.summed, gre::CHECKSUM)
            | flag(self.key.is_some(), gre::KEY)
            | flag(self.sequence.is_some(), gre::SEQUENCE);
        into.extend(flags.to_be_bytes());
        into.extend(self.payload.ether_type().to_be_bytes());
        if self.summed {
            into.extend([0; 4]);
        }
        into.extend(self.key.iter().flat_map(|key| key.to_be_bytes()));
        into.extend(self.sequence.iter().flat_map(|number| number.to_be_bytes()));
    }
}

fn parse_vxlan(
    extension: VxlanExtension,
    bytes: &[u8],
) -> Result<(TunnelHeader, usize), TunnelError> {
    let [flags, more, high, low, k0, k1, k2, _] = *bytes
        .first_chunk::<{ vxlan::LEN }>()
        .ok_or(TunnelError::Truncated)?;
    if flags & vxlan::KEY == 0 {
        return Err(TunnelError::Unknown);
    }
    let mut shim = TunnelHeader::new(TunnelProtocol::Vxlan(extension));
    shim.key = Some(u32::from_be_bytes([0, k0, k1, k2]));
    match extension {
        VxlanExtension::None => {}
        VxlanExtension::Gbp if flags & vxlan::POLICY != 0 => {
            shim.policy = Some(GroupPolicy {
                id: u16::from_be_bytes([high, low]),
                flags: more & vxlan::POLICY_FLAGS,
            });
        }
        VxlanExtension::Gbp => {}
        VxlanExtension::Gpe => {
            if flags & vxlan::VERSION != 0 {
                return Err(TunnelError::Unknown);
            }
            shim.oam = flags & vxlan::OAM != 0;
            if flags & vxlan::NEXT != 0 {
                let next = NEXT_PROTOCOLS.iter().find(|(number, _)| *number == low);
                shim.payload = next.ok_or(TunnelError::Payload)?.1;
            }
        }
    }
    Ok((shim, vxlan::LEN))
}

fn parse_geneve(bytes: &[u8]) -> Result<(TunnelHeader, usize), TunnelError> {
    let [head, flags, t0, t1, k0, k1, k2, _] = *bytes
        .first_chunk::<{ geneve::LEN }>()
        .ok_or(TunnelError::Truncated)?;
    if head >> 6 != 0 {
        return Err(TunnelError::Unknown);
    }
    let len = geneve::LEN + 4 * usize::from(head & 0x3f);
    let mut rest = bytes.get(geneve::LEN..len).ok_or(TunnelError::Truncated)?;
    let mut shim = TunnelHeader::new(TunnelProtocol::Geneve);
    shim.key = Some(u32::from_be_bytes([0, k0, k1, k2]));
    shim.oam = flags & geneve::OAM != 0;
    shim.payload = TunnelPayload::from_ether_type(u16::from_be_bytes([t0, t1]));
    while let Some(([c0, c1, kind, words], rest_after)) = rest.split_first_chunk::<4>() {
        let value = 4 * usize::from(words & 0x1f);
        let (value, rest_after) = rest_after
            .split_at_checked(value)
            .ok_or(TunnelError::Truncated)?;
        shim.options.push(TunnelOption {
            class: u16::from_be_bytes([*c0, *c1]),
            kind: *kind,
            value: value.to_vec(),
        });
        rest = rest_after;
    }
    Ok((shim, len))
}

fn parse_gre(bytes: &[u8], trusted: bool) -> Result<(TunnelHeader, usize), TunnelError> {
    let head = bytes.first_chunk::<4>().ok_or(TunnelError::Truncated)?;
    let flags = u16_at(head, 0);
    if flags & !gre::KNOWN != 0 {
        return Err(TunnelError::Unknown);
    }
    let mut shim = TunnelHeader::new(TunnelProtocol::Gre);
    shim.payload = TunnelPayload::from_ether_type(u16_at(head, 2));
    let mut at = 4;
    let mut word = || {
        let word = bytes.get(at..)?.first_chunk::<4>()?;
        at += 4;
        Some(u32::from_be_bytes(*word))
    };
    if flags & gre::CHECKSUM != 0 {
        shim.summed = true;
        word().ok_or(TunnelError::Truncated)?;
        if !trusted && InternetSum::of(bytes).checksum() != 0 {
            return Err(TunnelError::Checksum);
        }
    }
    if flags & gre::KEY != 0 {
        shim.key = Some(word().ok_or(TunnelError::Truncated)?);
    }
    if flags & gre::SEQUENCE != 0 {
        shim.sequence = Some(word().ok_or(TunnelError::Truncated)?);
    }
    Ok((shim, at))
}

impl TunnelOption {
    /// True if a receiver that does not support the option must drop the packet (RFC 8926, 3.5).
    #[must_use]
    pub const fn is_critical(&self) -> bool {
        self.kind & geneve::CRITICAL_KIND != 0
    }
}
