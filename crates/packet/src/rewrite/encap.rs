//! Encapsulation and decapsulation of packets other than Ethernet frames (`ovs-actions(7)`, encap,
//! decap).
//!
//! A bare packet (one without an Ethernet header) is stored after an Ethernet header with zero
//! addresses and the packet's type. Headers are inserted and removed after it, and callers that
//! track the packet type ignore it. This module does not record the packet type.

use super::checksum_update::Coverage;
use super::{Packet, RewriteError};
use crate::MacAddr;
use crate::headers::Network;
use crate::wire::ethernet::{self, EtherType, Ethernet};
use crate::wire::mpls::{self, Mpls};
use crate::wire::nsh::{self, Nsh};

/// Bytes of an Ethernet header without tags.
const HEADER: u16 = 14;

/// TTL of a new MPLS entry before a packet without a TTL (`ovs-actions(7)`, push_mpls).
const MPLS_TTL: u8 = 64;

/// Payload of a new header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncapPayload {
    /// The whole Ethernet frame.
    Frame,
    /// The bare packet.
    Packet,
}

/// Error: the packet has no header to remove, or one whose payload is not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsupportedDecap;

impl Packet<'_> {
    /// Removes the Ethernet header and returns the type of the bare packet. Returns `None`, and
    /// changes nothing, for a frame with VLAN tags or without a type.
    pub fn strip_ethernet(&mut self) -> Option<EtherType> {
        let link = self.headers.link;
        if link.type_at != ethernet::TYPE || link.eth_type == EtherType::LLC {
            return None;
        }
        self.set_eth_dst(MacAddr::default());
        self.set_eth_src(MacAddr::default());
        Some(link.eth_type)
    }

    /// Inserts a network service header before the frame or the bare packet: `header` with
    /// corrected length and next protocol, then its metadata. The result is a bare packet. Returns
    /// false, and changes nothing, if NSH has no next protocol number for the packet.
    ///
    /// # Errors
    /// The headroom is exhausted.
    ///
    /// # Panics
    /// If the header would exceed [`nsh::LEN_MAX`] or its length is no multiple of four.
    pub fn push_nsh(
        &mut self,
        inside: EncapPayload,
        header: Nsh,
        metadata: &[u8],
    ) -> Result<bool, RewriteError> {
        let next = match (inside, self.headers.link.eth_type) {
            (EncapPayload::Frame, _) => nsh::next::ETHERNET,
            (EncapPayload::Packet, EtherType::IPV4) => nsh::next::IPV4,
            (EncapPayload::Packet, EtherType::IPV6) => nsh::next::IPV6,
            (EncapPayload::Packet, EtherType::NSH) => nsh::next::NSH,
            (EncapPayload::Packet, _) => return Ok(false),
        };
        let len = nsh::BASE_LEN + metadata.len();
        assert!(
            len <= nsh::LEN_MAX && len.is_multiple_of(4),
            "the header has a legal length"
        );
        let len = u8::try_from(len).expect("a header has at most 252 bytes");
        let header = Nsh {
            len,
            next,
            ..header
        };
        let at = self.insert_before(inside, EtherType::NSH, len.into())?;
        self.write(at, header.emit(), Coverage::Nothing);
        let context = at + nsh::CONTEXT;
        self.frame.bytes_mut()[context..context + metadata.len()].copy_from_slice(metadata);
        self.reparse()?;
        Ok(true)
    }

    /// Removes the network service header of a bare packet. Returns the type of the remaining bare
    /// packet, or `None` for an Ethernet frame.
    ///
    /// # Errors
    /// The remaining packet is malformed.
    pub fn pop_nsh(&mut self) -> Result<Result<Option<EtherType>, UnsupportedDecap>, RewriteError> {
        let Network::Nsh(header) = self.headers.network else {
            return Ok(Err(UnsupportedDecap));
        };
        let inner = match header.next {
            nsh::next::IPV4 => Some(EtherType::IPV4),
            nsh::next::IPV6 => Some(EtherType::IPV6),
            nsh::next::NSH => Some(EtherType::NSH),
            nsh::next::ETHERNET => None,
            _ => return Ok(Err(UnsupportedDecap)),
        };
        self.remove_header(inner, header.len.into())?;
        Ok(Ok(inner))
    }

    /// Inserts an MPLS entry of this type before the frame or the bare packet. The result is a bare
    /// packet. Label, class and TTL are those of push_mpls in `ovs-actions(7)`.
    ///
    /// # Errors
    /// The headroom is exhausted.
    pub fn encap_mpls(
        &mut self,
        inside: EncapPayload,
        eth_type: EtherType,
    ) -> Result<(), RewriteError> {
        let first = |label, tos: u8, ttl| Mpls {
            label,
            tc: tos >> 2 & 7,
            bottom: true,
            ttl,
        };
        let entry = match (&self.headers.network, inside) {
            (Network::Mpls(outer), EncapPayload::Packet) => Mpls {
                bottom: false,
                ..*outer
            },
            (Network::Ipv4(ip), EncapPayload::Packet) => first(0, ip.tos, ip.ttl),
            (Network::Ipv6(ip), EncapPayload::Packet) => first(2, ip.traffic_class, ip.hop_limit),
            _ => first(0, 0, MPLS_TTL),
        };
        let at = self.insert_before(inside, eth_type, 4)?;
        self.write(at, entry.emit(), Coverage::Nothing);
        Ok(self.reparse()?)
    }

    /// Removes the outermost MPLS entry of a bare packet. The controller states the rest: a bare
    /// packet of type `inner`, or an Ethernet frame. Returns false, and changes nothing, if there is
    /// no entry.
    ///
    /// # Errors
    /// The remaining packet is malformed.
    pub fn decap_mpls(&mut self, inner: Option<EtherType>) -> Result<bool, RewriteError> {
        if !matches!(self.headers.network, Network::Mpls(_)) {
            return Ok(false);
        }
        self.remove_header(inner, 4)?;
        Ok(true)
    }

    /// Inserts space for a header of `len` bytes and sets the type that announces it. Returns its
    /// offset.
    fn insert_before(
        &mut self,
        inside: EncapPayload,
        eth_type: EtherType,
        len: u16,
    ) -> Result<usize, RewriteError> {
        match inside {
            EncapPayload::Frame => {
                self.frame.insert_zeros(0, HEADER + len)?;
                let bare = Ethernet::default();
                self.write(0, bare.emit(eth_type.0), Coverage::Nothing);
                Ok(ethernet::LEN)
            }
            EncapPayload::Packet => {
                let at = self.headers.network_at();
                self.frame.insert_zeros(at, len)?;
                self.set_type(eth_type.0, 0);
                Ok(at)
            }
        }
    }

    /// Removes the first `len` bytes of a bare packet, and the Ethernet header before them if an
    /// Ethernet frame remains.
    fn remove_header(&mut self, inner: Option<EtherType>, len: u16) -> Result<(), RewriteError> {
        match inner {
            Some(eth_type) => {
                self.remove_bytes(self.headers.network_at(), len);
                self.set_type(eth_type.0, 0);
            }
            None => {
                let before = self.headers.network_at() + usize::from(len);
                self.remove_bytes(0, u16::try_from(before).expect("the headers are short"));
            }
        }
        Ok(self.reparse()?)
    }
}

const _: () = assert!(
    ethernet::LEN == HEADER as usize && mpls::LEN == 4,
    "both are put in"
);
