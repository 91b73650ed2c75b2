//! TCP, UDP, SCTP, ICMP, ICMPv6 and neighbour discovery.

use std::net::Ipv6Addr;

use super::layer::{Layer, LayerFields};
use super::network::pseudo;
use super::text::{FieldVisitor, HexBytes, TcpFlags};
use super::{LayerContext, saturate_u16};
use crate::MacAddr;
use crate::checksum::{InternetSum, crc32c};
use crate::wire::{IpProto, icmpv4, icmpv6, sctp, tcp, udp};

/// Content of a checksum field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChecksumFill {
    /// The correct checksum.
    #[default]
    Correct,
    /// The sum of the pseudo-header: the device completes the checksum.
    Partial,
    /// This value.
    Value(u32),
}

/// A TCP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Source port.
    pub src: u16,
    /// Destination port.
    pub dst: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Flags.
    pub flags: TcpFlags,
    /// Window.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options, a multiple of four bytes.
    pub options: HexBytes,
    /// Data offset in units of four bytes; by default the correct one.
    pub offset: Option<u8>,
    /// The checksum.
    pub checksum: ChecksumFill,
}

/// A UDP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Udp {
    /// Source port.
    pub src: u16,
    /// Destination port.
    pub dst: u16,
    /// The length; by default the right one.
    pub length: Option<u16>,
    /// The checksum.
    pub checksum: ChecksumFill,
}

/// An SCTP common header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sctp {
    /// Source port.
    pub src: u16,
    /// Destination port.
    pub dst: u16,
    /// Verification tag.
    pub tag: u32,
    /// Checksum; a number in network byte order.
    pub checksum: ChecksumFill,
}

/// An ICMP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// The type.
    pub kind: u8,
    /// The code.
    pub code: u8,
    /// Four bytes after the checksum.
    pub rest: u32,
    /// The checksum.
    pub checksum: ChecksumFill,
}

/// An ICMPv6 header and four more bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icmpv6 {
    /// The type.
    pub kind: u8,
    /// The code.
    pub code: u8,
    /// Four bytes after the checksum.
    pub rest: u32,
    /// The checksum.
    pub checksum: ChecksumFill,
}

/// A neighbour solicitation or advertisement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nd {
    /// 135 for a solicitation, 136 for an advertisement.
    pub kind: u8,
    /// The code.
    pub code: u8,
    /// The flags of an advertisement, in the upper bits.
    pub flags: u32,
    /// The target.
    pub target: Ipv6Addr,
    /// The source link-layer option.
    pub sll: Option<MacAddr>,
    /// The target link-layer option.
    pub tll: Option<MacAddr>,
    /// The checksum.
    pub checksum: ChecksumFill,
}

impl Default for Tcp {
    fn default() -> Self {
        Self {
            src: 1000,
            dst: 80,
            seq: 0,
            ack: 0,
            flags: TcpFlags(tcp::ACK),
            window: 8192,
            urgent: 0,
            options: HexBytes::default(),
            offset: None,
            checksum: ChecksumFill::Correct,
        }
    }
}

impl Default for Udp {
    fn default() -> Self {
        Self {
            src: 1000,
            dst: 2000,
            length: None,
            checksum: ChecksumFill::Correct,
        }
    }
}

impl Default for Sctp {
    fn default() -> Self {
        Self {
            src: 1000,
            dst: 2905,
            tag: 0,
            checksum: ChecksumFill::Correct,
        }
    }
}

impl Default for Icmp {
    /// An echo request.
    fn default() -> Self {
        Self {
            kind: 8,
            code: 0,
            rest: 0,
            checksum: ChecksumFill::Correct,
        }
    }
}

impl Default for Icmpv6 {
    /// An echo request.
    fn default() -> Self {
        Self {
            kind: 128,
            code: 0,
            rest: 0,
            checksum: ChecksumFill::Correct,
        }
    }
}

impl Default for Nd {
    /// A solicitation.
    fn default() -> Self {
        Self {
            kind: icmpv6::SOLICITATION,
            code: 0,
            flags: 0,
            target: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2),
            sll: None,
            tll: None,
            checksum: ChecksumFill::Correct,
        }
    }
}

/// Writes the checksum of a header into its field at `at`.
fn fill(
    header: &mut [u8],
    at: usize,
    fill: ChecksumFill,
    protocol: IpProto,
    context: &LayerContext<'_>,
) {
    let len = header.len() + context.payload.len();
    let covers_pseudo = protocol != IpProto::ICMPV4;
    let pseudo = pseudo(context.outer, protocol, len)
        .filter(|_| covers_pseudo)
        .unwrap_or_default();
    let whole = [&*header, context.payload].concat();
    let value = match fill {
        ChecksumFill::Value(value) => saturate_u16(value as usize),
        ChecksumFill::Partial => pseudo.value(),
        ChecksumFill::Correct => match pseudo.plus(InternetSum::of(&whole)).checksum() {
            0 if protocol == IpProto::UDP => 0xffff,
            checksum => checksum,
        },
    };
    header[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

impl LayerFields for Tcp {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("src", &mut self.src);
        visit("dst", &mut self.dst);
        visit("seq", &mut self.seq);
        visit("ack", &mut self.ack);
        visit("flags", &mut self.flags);
        visit("window", &mut self.window);
        visit("urgent", &mut self.urgent);
        visit("options", &mut self.options);
        visit("offset", &mut self.offset);
        visit("checksum", &mut self.checksum);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        let words = self.offset.map_or_else(
            || (tcp::LEN_MIN + self.options.0.len()).div_ceil(4),
            usize::from,
        );
        let fixed = tcp::Tcp {
            src: self.src,
            dst: self.dst,
            flags: self.flags.0,
        };
        let len = u8::try_from(words * 4).unwrap_or(u8::MAX);
        let mut header = [&fixed.emit(len)[..], &self.options.0].concat();
        header[tcp::SEQUENCE..][..4].copy_from_slice(&self.seq.to_be_bytes());
        header[tcp::ACKNOWLEDGMENT..][..4].copy_from_slice(&self.ack.to_be_bytes());
        header[tcp::WINDOW..][..2].copy_from_slice(&self.window.to_be_bytes());
        header[tcp::CHECKSUM + 2..][..2].copy_from_slice(&self.urgent.to_be_bytes());
        fill(
            &mut header,
            tcp::CHECKSUM,
            self.checksum,
            IpProto::TCP,
            context,
        );
        header
    }
}

impl LayerFields for Udp {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("src", &mut self.src);
        visit("dst", &mut self.dst);
        visit("length", &mut self.length);
        visit("checksum", &mut self.checksum);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        let length = self
            .length
            .unwrap_or_else(|| saturate_u16(udp::LEN + context.payload.len()));
        let fixed = udp::Udp {
            src: self.src,
            dst: self.dst,
        };
        let mut header = fixed.emit(length).to_vec();
        fill(
            &mut header,
            udp::CHECKSUM,
            self.checksum,
            IpProto::UDP,
            context,
        );
        header
    }
}

impl LayerFields for Sctp {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("src", &mut self.src);
        visit("dst", &mut self.dst);
        visit("tag", &mut self.tag);
        visit("checksum", &mut self.checksum);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        let fixed = sctp::Sctp {
            src: self.src,
            dst: self.dst,
        };
        let mut header = fixed.emit(self.tag).to_vec();
        let value = match self.checksum {
            ChecksumFill::Value(value) => value,
            ChecksumFill::Partial => 0,
            ChecksumFill::Correct => crc32c(&[&header, context.payload].concat()).swap_bytes(),
        };
        header[sctp::CHECKSUM..].copy_from_slice(&value.to_be_bytes());
        header
    }
}

impl LayerFields for Icmp {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("type", &mut self.kind);
        visit("code", &mut self.code);
        visit("rest", &mut self.rest);
        visit("checksum", &mut self.checksum);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        let fixed = icmpv4::Icmpv4 {
            kind: self.kind,
            code: self.code,
        };
        let mut header = fixed.emit(self.rest).to_vec();
        fill(
            &mut header,
            icmpv4::CHECKSUM,
            self.checksum,
            IpProto::ICMPV4,
            context,
        );
        header
    }
}

impl LayerFields for Icmpv6 {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("type", &mut self.kind);
        visit("code", &mut self.code);
        visit("rest", &mut self.rest);
        visit("checksum", &mut self.checksum);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        let rest = self.rest.to_be_bytes();
        let mut header = [&[self.kind, self.code, 0, 0], &rest[..]].concat();
        fill(
            &mut header,
            icmpv6::CHECKSUM,
            self.checksum,
            IpProto::ICMPV6,
            context,
        );
        header
    }
}

impl LayerFields for Nd {
    fn fields(&mut self, visit: &mut FieldVisitor<'_>) {
        visit("type", &mut self.kind);
        visit("code", &mut self.code);
        visit("flags", &mut self.flags);
        visit("target", &mut self.target);
        visit("sll", &mut self.sll);
        visit("tll", &mut self.tll);
        visit("checksum", &mut self.checksum);
    }

    fn emit(&self, context: &LayerContext<'_>) -> Vec<u8> {
        let mut header = vec![self.kind, self.code, 0, 0];
        header.extend(self.flags.to_be_bytes());
        header.extend(self.target.octets());
        for (option, address) in [
            (icmpv6::OPTION_SOURCE, self.sll),
            (icmpv6::OPTION_TARGET, self.tll),
        ] {
            if let Some(address) = address {
                header.extend([option, 1]);
                header.extend(address.0);
            }
        }
        fill(
            &mut header,
            icmpv6::CHECKSUM,
            self.checksum,
            IpProto::ICMPV6,
            context,
        );
        header
    }
}

impl Layer {
    /// Returns the checksum content of this layer, if it has a checksum.
    pub(super) const fn fill(&mut self) -> Option<&mut ChecksumFill> {
        match self {
            Self::Tcp(layer) => Some(&mut layer.checksum),
            Self::Udp(layer) => Some(&mut layer.checksum),
            Self::Sctp(layer) => Some(&mut layer.checksum),
            Self::Icmp(layer) => Some(&mut layer.checksum),
            Self::Icmpv6(layer) => Some(&mut layer.checksum),
            Self::Nd(layer) => Some(&mut layer.checksum),
            _ => None,
        }
    }
}
