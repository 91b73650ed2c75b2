//! Ethernet addresses and VLAN tags. No checksum covers them.

use super::checksum_update::Coverage;
use super::{Packet, RewriteError};
use crate::MacAddr;
use crate::wire::ethernet::{self, EtherType};
use crate::wire::u16_at;
use crate::wire::vlan::{self, VlanTag};

impl Packet<'_> {
    /// Sets the destination.
    pub fn set_eth_dst(&mut self, address: MacAddr) {
        self.headers.link.dst = address;
        self.write(ethernet::DST, address.0, Coverage::Nothing);
    }

    /// Sets the source.
    pub fn set_eth_src(&mut self, address: MacAddr) {
        self.headers.link.src = address;
        self.write(ethernet::SRC, address.0, Coverage::Nothing);
    }

    /// Sets the VLAN of the outermost tag to the lower twelve bits of `vid`.
    pub fn set_vlan_vid(&mut self, vid: u16) {
        self.change_tag(|tag| tag.vid = vid & 0x0fff);
    }

    /// Sets the priority of the outermost tag to the lower three bits of `pcp`.
    pub fn set_vlan_pcp(&mut self, pcp: u8) {
        self.change_tag(|tag| tag.pcp = pcp & 7);
    }

    fn change_tag(&mut self, change: impl FnOnce(&mut VlanTag)) {
        if let Some(mut tag) = self.headers.link.tag {
            change(&mut tag);
            self.headers.link.tag = Some(tag);
            self.write(ethernet::TYPE, tag.emit(), Coverage::Nothing);
        }
    }

    /// Inserts a tag before all others. VLAN and priority are those of the previous outermost tag,
    /// or zero (OF 1.3.5, 5.12.1).
    ///
    /// # Errors
    /// The headroom is exhausted.
    pub fn push_vlan(&mut self, tpid: u16) -> Result<(), RewriteError> {
        let tag = VlanTag {
            tpid,
            dei: false,
            ..self.headers.link.tag.unwrap_or_default()
        };
        self.frame.insert_zeros(ethernet::TYPE, 4)?;
        self.write(ethernet::TYPE, tag.emit(), Coverage::Nothing);
        Ok(self.reparse()?)
    }

    /// Removes the outermost tag.
    ///
    /// # Errors
    /// A header that the parser now reaches is malformed. (Possible for a frame with more tags than
    /// the parser skips.)
    pub fn pop_vlan(&mut self) -> Result<(), RewriteError> {
        if self.headers.link.tag.is_some() {
            self.remove_bytes(ethernet::TYPE, 4);
            self.reparse()?;
        }
        Ok(())
    }

    /// Sets the EtherType after all tags. A frame with a length in its place is unchanged.
    ///
    /// # Errors
    /// The new type is that of a VLAN tag, and the frame ends within the tag.
    pub fn set_eth_type(&mut self, eth_type: u16) -> Result<(), RewriteError> {
        if self.headers.link.eth_type != EtherType::LLC {
            self.set_type(eth_type, 0);
            self.reparse_leniently()?;
        }
        Ok(())
    }

    /// Sets the EtherType and increases the length of an 802.3 frame, if it has one, by `growth`
    /// bytes.
    pub(super) fn set_type(&mut self, eth_type: u16, growth: i16) {
        let link = self.headers.link;
        if link.type_at != link.tags_end {
            let length = u16_at(self.frame.bytes(), link.tags_end);
            let length = length.saturating_add_signed(growth);
            self.write(link.tags_end, length.to_be_bytes(), Coverage::Nothing);
        }
        self.write(link.type_at, eth_type.to_be_bytes(), Coverage::Nothing);
    }
}

const _: () = assert!(vlan::LEN == 4, "a tag has four bytes");
