//! Hashes, and actions that add and remove tags and MPLS entries.

use flow::HashFields;

use super::super::key::{KeyField, is_ip, is_mpls};
use super::{BOTTOM, DSCP, LABELS, MegaflowBuilder, SCTP, TAG_PRESENT, TCP, UDP, VID_BITS};

impl MegaflowBuilder {
    /// Records a hash of these fields.
    pub(super) fn hash(&mut self, fields: HashFields) {
        let eth_type = self.current.get(KeyField::ETH_TYPE);
        let protocol = self.current.get(KeyField::NW_PROTO);
        let is_fragment = self.current.get(KeyField::NW_FRAG) != 0;
        let (src, dst) = match eth_type {
            0x0800 => (Some(KeyField::NW_SRC), Some(KeyField::NW_DST)),
            0x86dd => (Some(KeyField::IPV6_SRC), Some(KeyField::IPV6_DST)),
            _ => (None, None),
        };
        let mut parts: Vec<KeyField> = Vec::new();
        match fields {
            HashFields::EthSrc => parts.push(KeyField::ETH_SRC),
            HashFields::NwSrc => parts.extend(src),
            HashFields::NwDst => parts.extend(dst),
            HashFields::SymmetricL3 => parts.extend(src.into_iter().chain(dst)),
            HashFields::SymmetricL4 => {
                parts.extend([KeyField::ETH_SRC, KeyField::ETH_DST]);
                self.examine(KeyField::VLAN_TCI, VID_BITS);
                self.examine(KeyField::VLAN_TCI_2, VID_BITS);
                parts.extend(src.into_iter().chain(dst));
                if is_ip(eth_type) {
                    parts.push(KeyField::NW_PROTO);
                    if protocol != UDP && !is_fragment {
                        parts.extend([KeyField::TP_SRC, KeyField::TP_DST]);
                    }
                }
            }
            HashFields::SymmetricL3L4 | HashFields::SymmetricL3L4Udp => {
                parts.extend(src.into_iter().chain(dst));
                let with_udp = fields == HashFields::SymmetricL3L4Udp && protocol == UDP;
                if is_ip(eth_type) {
                    parts.push(KeyField::NW_PROTO);
                    if (matches!(protocol, TCP | SCTP) || with_udp) && !is_fragment {
                        parts.extend([KeyField::TP_SRC, KeyField::TP_DST]);
                    }
                }
            }
        }
        parts.into_iter().for_each(|at| self.examine(at, u128::MAX));
    }

    pub(super) fn push_vlan(&mut self, tpid: u16) {
        for (tci, at) in [
            (KeyField::VLAN_TCI, KeyField::VLAN_TPID),
            (KeyField::VLAN_TCI_2, KeyField::VLAN_TPID_2),
        ] {
            if self.current.get(tci) != 0 {
                self.examine(tci, 0xffff);
                self.examine(at, 0xffff);
            }
        }
        let (tci, old_tpid) = (
            self.current.get(KeyField::VLAN_TCI),
            self.current.get(KeyField::VLAN_TPID),
        );
        self.current.set(KeyField::VLAN_TCI_2, tci);
        self.current.set(KeyField::VLAN_TPID_2, old_tpid);
        self.current.set(KeyField::VLAN_TCI, TAG_PRESENT);
        self.current.set(KeyField::VLAN_TPID, u128::from(tpid));
    }

    pub(super) fn pop_vlan(&mut self) {
        let inner = self.current.get(KeyField::VLAN_TCI_2);
        if inner != 0 {
            self.examine(KeyField::VLAN_TCI_2, 0xffff);
            self.examine(KeyField::VLAN_TPID_2, 0xffff);
        }
        self.current.set(KeyField::VLAN_TCI, inner);
        let tpid = self.current.get(KeyField::VLAN_TPID_2);
        self.current.set(KeyField::VLAN_TPID, tpid);
        self.current.set(KeyField::VLAN_TCI_2, 0);
        self.current.set(KeyField::VLAN_TPID_2, 0);
    }

    /// Returns the number of MPLS entries, and records the search for the last.
    fn count_labels(&mut self) -> usize {
        if !is_mpls(self.current.get(KeyField::ETH_TYPE)) {
            return 0;
        }
        let mut count = 0;
        for (place, at) in LABELS.into_iter().enumerate() {
            self.examine(at, BOTTOM);
            let entry = self.current.get(at);
            if entry & BOTTOM != 0 {
                return place + 1;
            }
            count += usize::from(entry != 0);
        }
        count
    }

    pub(super) fn push_mpls(&mut self, eth_type: u16) {
        let count = self.count_labels();
        if count > 0 {
            for at in &LABELS[..count] {
                self.examine(*at, u128::MAX);
            }
        } else if is_ip(self.current.get(KeyField::ETH_TYPE)) {
            self.examine(KeyField::NW_TOS, DSCP);
            self.examine(KeyField::NW_TTL, u128::MAX);
        }
        let [first, second, third] = LABELS;
        let outer = self.current.get(first);
        self.current.set(third, self.current.get(second));
        self.current.set(second, outer);
        self.current.set(
            first,
            if count > 0 {
                outer & !BOTTOM
            } else {
                BOTTOM | 64
            },
        );
        self.current.set(KeyField::ETH_TYPE, u128::from(eth_type));
    }

    pub(super) fn pop_mpls(&mut self, eth_type: u16) {
        let count = self.count_labels();
        if count == 0 {
            return;
        }
        for at in &LABELS[1..count] {
            self.examine(*at, u128::MAX);
        }
        let [first, second, third] = LABELS;
        self.current.set(first, self.current.get(second));
        self.current.set(second, self.current.get(third));
        self.current.set(third, 0);
        self.current.set(KeyField::ETH_TYPE, u128::from(eth_type));
    }
}
