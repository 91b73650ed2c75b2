//! Headers around packets that are no Ethernet frames (`ovs-actions(7)`, encap, decap).
//!
//! A bare packet, one of another kind than Ethernet, is kept behind an Ethernet header
//! all the same: with its type, and addresses of zero, as of a new header. So headers go
//! in and out behind it, and whoever knows that the packet is bare does not look at it.
//! That is not told here.

use super::checksum_update::Coverage;
use super::{Packet, RewriteError};
use crate::MacAddr;
use crate::headers::Network;
use crate::wire::ethernet::{self, EtherType, Ethernet};
use crate::wire::mpls::{self, Mpls};
use crate::wire::nsh::{self, Nsh};

/// Bytes of an Ethernet header without tags.
const HEADER: u16 = 14;

/// The TTL of a new MPLS entry before a packet that has none (`ovs-actions(7)`, push_mpls).
const MPLS_TTL: u8 = 64;

/// What a new header stands before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncapPayload {
    /// The whole Ethernet frame.
    Frame,
    /// The bare packet.
    Packet,
}

/// There is nothing that could be taken off, or nothing that could be found behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsupportedDecap;

impl Packet<'_> {
    /// Takes the Ethernet header off: what is left is a bare packet of this type. None
    /// of a frame with VLAN tags, or without a type; it is unchanged.
    pub fn strip_ethernet(&mut self) -> Option<EtherType> {
        let link = self.headers.link;
        if link.type_at != ethernet::TYPE || link.eth_type == EtherType::LLC {
            return None;
        }
        self.set_eth_dst(MacAddr::default());
        self.set_eth_src(MacAddr::default());
        Some(link.eth_type)
    }

    /// Puts a network service header before the frame, or the bare packet: `header`,
    /// whose length and next protocol are made right, and its metadata. The packet is
    /// bare then. Answers false, and does nothing, if the header could not say what
    /// it stands before.
    ///
    /// # Errors
    /// There is no room.
    ///
    /// # Panics
    /// If the header would be longer than [`nsh::LEN_MAX`], or not of whole words.
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
            "a whole header"
        );
        let len = u8::try_from(len).expect("252 bytes at most");
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

    /// Takes the network service header off a bare packet. Answers the type of the bare
    /// packet that is left, or that it is a whole frame.
    ///
    /// # Errors
    /// What is left is damaged.
    pub fn pop_nsh(&mut self) -> Result<Result<Option<EtherType>, UnsupportedDecap>, RewriteError> {
        let Network::Nsh(header) = self.headers.network else {
            return Ok(Err(UnsupportedDecap));
        };
        let left = match header.next {
            nsh::next::IPV4 => Some(EtherType::IPV4),
            nsh::next::IPV6 => Some(EtherType::IPV6),
            nsh::next::NSH => Some(EtherType::NSH),
            nsh::next::ETHERNET => None,
            _ => return Ok(Err(UnsupportedDecap)),
        };
        self.remove_header(left, header.len.into())?;
        Ok(Ok(left))
    }

    /// Puts an MPLS entry of this type before the frame, or the bare packet, which is
    /// bare then. Label, class and TTL are as `ovs-actions(7)` has them for push_mpls.
    ///
    /// # Errors
    /// There is no room.
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

    /// Takes the outermost MPLS entry off a bare packet. What is left is a bare packet
    /// of this type, or else a whole frame: the controller knows. Answers false, and
    /// does nothing, if there is no entry.
    ///
    /// # Errors
    /// What is left is damaged.
    pub fn decap_mpls(&mut self, left: Option<EtherType>) -> Result<bool, RewriteError> {
        if !matches!(self.headers.network, Network::Mpls(_)) {
            return Ok(false);
        }
        self.remove_header(left, 4)?;
        Ok(true)
    }

    /// Makes room for a header of `len` bytes, and announces it by its type. Answers
    /// where it begins.
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

    /// Takes `len` bytes of a header out that stands first in a bare packet, and all
    /// before it, if a whole frame is left.
    fn remove_header(&mut self, left: Option<EtherType>, len: u16) -> Result<(), RewriteError> {
        match left {
            Some(eth_type) => {
                self.remove_bytes(self.headers.network_at(), len);
                self.set_type(eth_type.0, 0);
            }
            None => {
                let before = self.headers.network_at() + usize::from(len);
                self.remove_bytes(
                    0,
                    u16::try_from(before).expect("headers of a hundred bytes"),
                );
            }
        }
        Ok(self.reparse()?)
    }
}

const _: () = assert!(
    ethernet::LEN == HEADER as usize && mpls::LEN == 4,
    "both are put in"
);
