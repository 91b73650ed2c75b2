//! Packets without an Ethernet header: the actions `encap` and `decap` (`ovs-actions(7)`).

use flow::{Encap, NshProperty, PacketType};
use packet::wire::ethernet::EtherType;
use packet::wire::nsh::{self, Nsh};
use packet::{EncapPayload, Network, Packet};

use super::Execution;
use super::actions::{drop_reason_of, mpls_labels};
use crate::limits::MPLS_LABELS_MAX;
use crate::verdict::DropReason;

/// Maximum metadata of a network service header, in bytes.
const METADATA_MAX: usize = nsh::LEN_MAX - nsh::BASE_LEN;

impl Execution<'_> {
    /// Adds a header before the packet.
    pub(crate) fn encap(
        &mut self,
        packet: &mut Packet<'_>,
        encap: &Encap,
    ) -> Result<(), DropReason> {
        self.preserve_state(packet)?;
        self.mark_modified();
        let inside = match self.registers.packet_type.is_ethernet() {
            true => EncapPayload::Frame,
            false => EncapPayload::Packet,
        };
        let is_mpls = matches!(encap, Encap::Mpls | Encap::MplsMulticast);
        if is_mpls && mpls_labels(packet) >= MPLS_LABELS_MAX {
            return Err(DropReason::TooManyMplsLabels);
        }
        let is_done = match encap {
            // The stored Ethernet header has zero addresses already.
            Encap::Ethernet => inside == EncapPayload::Packet,
            Encap::Nsh(properties) => push_nsh(packet, inside, properties)?,
            Encap::Mpls => push_mpls(packet, inside, EtherType::MPLS)?,
            Encap::MplsMulticast => push_mpls(packet, inside, EtherType::MPLS_MULTICAST)?,
        };
        self.set_packet_type(is_done.then(|| encap.makes()))
    }

    /// Removes the outermost header. `left` is the type of the inner packet, for a header that does
    /// not contain it.
    pub(crate) fn decap(
        &mut self,
        packet: &mut Packet<'_>,
        left: Option<PacketType>,
    ) -> Result<(), DropReason> {
        self.preserve_state(packet)?;
        self.mark_modified();
        if self.registers.packet_type.is_ethernet() {
            let bare = packet.strip_ethernet();
            return self.set_packet_type(bare.map(|bare| PacketType::of_ether_type(bare.0)));
        }
        let left = match packet.headers().network {
            Network::Nsh(_) => {
                let left = packet.pop_nsh().map_err(drop_reason_of)?;
                left.ok().map(|left| match left {
                    Some(bare) => PacketType::of_ether_type(bare.0),
                    None => PacketType::ETHERNET,
                })
            }
            Network::Mpls(_) => left.filter(|left| is_storable(*left)),
            _ => None,
        };
        if let (Network::Mpls(_), Some(left)) = (&packet.headers().network, left) {
            let bare = left.ether_type().map(EtherType);
            packet.decap_mpls(bare).map_err(drop_reason_of)?;
        }
        self.set_packet_type(left)
    }

    fn set_packet_type(&mut self, kind: Option<PacketType>) -> Result<(), DropReason> {
        self.has_own_fields = true;
        self.registers.packet_type = kind.ok_or(DropReason::UnsupportedPacketType)?;
        Ok(())
    }

    /// True if the packet has no Ethernet header.
    pub(crate) const fn is_bare(&self) -> bool {
        !self.registers.packet_type.is_ethernet()
    }
}

/// True if packets of this type can be stored.
fn is_storable(kind: PacketType) -> bool {
    kind.is_ethernet() || kind.ether_type().is_some()
}

fn push_mpls(
    packet: &mut Packet<'_>,
    inside: EncapPayload,
    eth_type: EtherType,
) -> Result<bool, DropReason> {
    packet
        .encap_mpls(inside, eth_type)
        .map_err(drop_reason_of)?;
    Ok(true)
}

fn push_nsh(
    packet: &mut Packet<'_>,
    inside: EncapPayload,
    properties: &[NshProperty],
) -> Result<bool, DropReason> {
    let mut header = Nsh {
        ttl: nsh::TTL_DEFAULT,
        md_type: nsh::MD_TYPE1,
        index: nsh::INDEX_DEFAULT,
        ..Nsh::default()
    };
    let mut metadata = [0; METADATA_MAX];
    let mut len = 0;
    for property in properties {
        match property {
            NshProperty::MdType(kind) => header.md_type = *kind,
            NshProperty::Tlv { class, kind, value } => {
                let [high, low] = class.to_be_bytes();
                let bytes = u8::try_from(value.len()).unwrap_or(u8::MAX);
                let end = len + property.bytes();
                metadata[len..len + 4].copy_from_slice(&[high, low, *kind, bytes]);
                metadata[len + 4..len + 4 + value.len()].copy_from_slice(value);
                len = end;
            }
        }
    }
    let metadata = match header.md_type {
        nsh::MD_TYPE1 => &[0; nsh::LEN_MD1 - nsh::BASE_LEN][..],
        _ => &metadata[..len],
    };
    packet
        .push_nsh(inside, header, metadata)
        .map_err(drop_reason_of)
}
