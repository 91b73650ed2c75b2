//! Link layer: addresses, outermost VLAN tag, and the EtherType after all tags.

use crate::wire::ethernet::{self, EtherType, Ethernet};
use crate::wire::u16_at;
use crate::wire::vlan::{self, VlanTag};
use crate::{MacAddr, Malformed};

/// The link layer of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Destination address.
    pub dst: MacAddr,
    /// Source address.
    pub src: MacAddr,
    /// The outermost VLAN tag.
    pub tag: Option<VlanTag>,
    /// EtherType after all tags; [`EtherType::LLC`] for a length without SNAP.
    pub eth_type: EtherType,
    /// Offset of the end of the tags: of the EtherType, or of the length before LLC.
    pub(crate) tags_end: usize,
    /// Offset of the type.
    pub(crate) type_at: usize,
}

impl Link {
    /// Parses the link layer of a frame.
    ///
    /// # Errors
    /// The frame ends within the Ethernet header or within a VLAN tag.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let Ethernet { dst, src } = Ethernet::parse(bytes)?;
        let mut tags_end = ethernet::TYPE;
        let mut tag = None;
        if EtherType(u16_at(bytes, ethernet::TYPE)).is_vlan() {
            let outermost = bytes[ethernet::TYPE..].first_chunk();
            tag = Some(VlanTag::parse(*outermost.ok_or(Malformed::VlanTruncated)?));
            tags_end = find_tags_end(bytes)?;
        }
        let (eth_type, type_at) = ethernet::payload_type(bytes, tags_end);
        Ok(Self {
            dst,
            src,
            tag,
            eth_type,
            tags_end,
            type_at,
        })
    }

    /// Returns the second tag; `bytes` is the frame that was parsed.
    #[must_use]
    pub fn inner_tag(&self, bytes: &[u8]) -> Option<VlanTag> {
        let inner = bytes.get(ethernet::TYPE + vlan::LEN..self.tags_end)?;
        inner.first_chunk().copied().map(VlanTag::parse)
    }

    /// Number of tags.
    #[must_use]
    pub const fn tags(&self) -> usize {
        (self.tags_end - ethernet::TYPE) / vlan::LEN
    }

    /// Offset of the payload from the start of the frame, in bytes.
    #[must_use]
    pub const fn payload_at(&self) -> usize {
        self.type_at + 2
    }
}

/// Returns the offset of the end of the tags, of which at most [`vlan::COUNT_MAX`] are skipped.
fn find_tags_end(bytes: &[u8]) -> Result<usize, Malformed> {
    let mut at = ethernet::TYPE;
    for _ in 0..vlan::COUNT_MAX {
        if !EtherType(u16_at(bytes, at)).is_vlan() {
            break;
        }
        at += vlan::LEN;
        if bytes.len() < at + 2 {
            return Err(Malformed::VlanTruncated);
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(rest: &[u8]) -> Vec<u8> {
        [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], rest].concat()
    }

    #[test]
    fn untagged_frame_has_no_tag() {
        let link = Link::parse(&frame(&[0x08, 0x00])).expect("well formed");
        assert_eq!(link.eth_type, EtherType::IPV4);
        assert_eq!((link.tag, link.tags(), link.payload_at()), (None, 0, 14));
    }

    #[test]
    fn ether_type_is_after_all_tags() {
        let bytes = frame(&[0x88, 0xa8, 0x60, 5, 0x81, 0x00, 0, 6, 0x86, 0xdd]);
        let link = Link::parse(&bytes).expect("well formed");
        assert_eq!(link.tag.map(|tag| (tag.vid, tag.pcp)), Some((5, 3)));
        assert_eq!(link.inner_tag(&bytes).map(|tag| tag.vid), Some(6));
        assert_eq!(link.eth_type, EtherType::IPV6);
        assert_eq!((link.tags(), link.payload_at()), (2, 22));
    }

    #[test]
    fn tag_beyond_limit_is_reported_as_ether_type() {
        let bytes = frame(&[0x81, 0x00, 0, 1].repeat(10));
        let link = Link::parse(&bytes).expect("well formed");
        assert_eq!(link.tags(), usize::from(vlan::COUNT_MAX));
        assert_eq!(link.eth_type, EtherType::VLAN);
    }

    #[test]
    fn malformed_link_layer_is_refused() {
        let cut = |len| Link::parse(&frame(&[0x81, 0x00, 0, 1, 8, 0])[..len]);
        assert_eq!(cut(13), Err(Malformed::Runt));
        for len in 14..18 {
            assert_eq!(cut(len), Err(Malformed::VlanTruncated));
        }
        assert!(cut(18).is_ok());
    }
}
