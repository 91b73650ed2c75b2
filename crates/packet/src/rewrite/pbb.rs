//! Provider backbone bridging: a whole frame encapsulated in another (OF 1.3.5, 5.12). No checksum
//! covers it.

use super::checksum_update::Coverage;
use super::{Packet, RewriteError};
use crate::headers::Network;
use crate::wire::ethernet::{self, Ethernet};
use crate::wire::pbb::{self, Pbb};

/// Bytes of a backbone header: addresses, type, tag.
const HEADER: u16 = 18;

impl Packet<'_> {
    /// Sets the service instance to the lower twenty-four bits of `isid`.
    pub fn set_pbb_isid(&mut self, isid: u32) {
        self.set_pbb(|tag| tag.isid = isid & 0x00ff_ffff);
    }

    /// Sets the bit "use customer address".
    pub fn set_pbb_uca(&mut self, uca: bool) {
        self.set_pbb(|tag| tag.uca = uca);
    }

    fn set_pbb(&mut self, set: impl FnOnce(&mut Pbb)) {
        if let Network::Pbb(tag) = &mut self.headers.network {
            set(tag);
            let bytes = tag.emit();
            self.write(self.headers.network_at(), bytes, Coverage::Nothing);
        }
    }

    /// Encapsulates the frame in a backbone header with the same addresses. Service instance and
    /// priority are those of the outermost service instance tag and VLAN tag, or zero (OF 1.3.5,
    /// 5.12.1).
    ///
    /// # Errors
    /// The headroom is exhausted.
    pub fn push_pbb(&mut self, eth_type: u16) -> Result<(), RewriteError> {
        let link = self.headers.link;
        let isid = match &self.headers.network {
            Network::Pbb(outer) => outer.isid,
            _ => 0,
        };
        let tag = Pbb {
            pcp: link.tag.map_or(0, |tag| tag.pcp),
            isid,
            ..Pbb::default()
        };
        let backbone = Ethernet {
            dst: link.dst,
            src: link.src,
        };
        self.frame.insert_zeros(0, HEADER)?;
        self.write(0, backbone.emit(eth_type), Coverage::Nothing);
        self.write(ethernet::LEN, tag.emit(), Coverage::Nothing);
        Ok(self.reparse()?)
    }

    /// Removes the outermost service instance tag and the backbone addresses; the customer's
    /// addresses replace them. VLAN tags of the backbone stay and are popped separately.
    ///
    /// # Errors
    /// A header of the customer frame is malformed.
    pub fn pop_pbb(&mut self) -> Result<(), RewriteError> {
        if matches!(self.headers.network, Network::Pbb(_)) {
            let link = self.headers.link;
            let [dst, src] = Pbb::customer(&self.frame.bytes()[link.payload_at()..]);
            self.write(ethernet::DST, dst.0, Coverage::Nothing);
            self.write(ethernet::SRC, src.0, Coverage::Nothing);
            // From the EtherType before the tag to the EtherType of the customer's payload.
            self.remove_bytes(link.type_at, HEADER);
            self.reparse()?;
        }
        Ok(())
    }
}

const _: () = assert!(
    ethernet::LEN + pbb::LEN == HEADER as usize,
    "both are put in"
);
const _: () = assert!(
    2 + pbb::CUSTOMER_TYPE == HEADER as usize,
    "both are taken out"
);
