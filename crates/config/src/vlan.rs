//! The VLANs of a port, and the tags of its frames (IEEE 802.1Q; ovs-vswitchd.conf.db(5), the table
//! `Port`, "VLAN Configuration").

use std::fmt;
use std::sync::Arc;

/// The maximum VLAN of a port. 4095 is not a VLAN (IEEE 802.1Q, table 9-2), but the schema allows
/// it, and Open vSwitch therefore carries it.
pub const VID_MAX: u16 = 4095;

/// Number of words of a set with one bit per VLAN.
const WORDS: usize = (VID_MAX as usize + 1) / 64;

/// A set of VLANs. Zero represents untagged frames.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct VlanSet(Option<Arc<[u64; WORDS]>>);

impl VlanSet {
    /// Returns the empty set.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns the set of all VLANs.
    #[must_use]
    pub fn all() -> Self {
        Self(Some(Arc::new([u64::MAX; WORDS])))
    }

    /// Returns whether the set contains `vid`.
    #[must_use]
    pub fn has(&self, vid: u16) -> bool {
        let vid = usize::from(vid & VID_MAX);
        let words = self.0.as_deref();
        words.is_some_and(|words| words[vid / 64] >> (vid % 64) & 1 != 0)
    }

    /// Adds or removes `vid`.
    pub fn set(&mut self, vid: u16, is_in: bool) {
        let vid = usize::from(vid & VID_MAX);
        let words = self.0.get_or_insert_with(|| Arc::new([0; WORDS]));
        let word = &mut Arc::make_mut(words)[vid / 64];
        let bit = 1 << (vid % 64);
        *word = if is_in { *word | bit } else { *word & !bit };
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let words = self.0.as_deref();
        words.is_none_or(|words| words.iter().all(|word| *word == 0))
    }

    /// Returns whether the set contains every VLAN.
    #[must_use]
    pub fn is_all(&self) -> bool {
        let words = self.0.as_deref();
        words.is_some_and(|words| words.iter().all(|word| *word == u64::MAX))
    }

    /// Returns the VLANs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u16> {
        (0..=VID_MAX).filter(|vid| self.has(*vid))
    }
}

impl FromIterator<u16> for VlanSet {
    fn from_iter<I: IntoIterator<Item = u16>>(vids: I) -> Self {
        let mut set = Self::none();
        vids.into_iter().for_each(|vid| set.set(vid, true));
        set
    }
}

impl fmt::Debug for VlanSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_all() {
            true => f.write_str("all"),
            false => f.debug_set().entries(self.iter()).finish(),
        }
    }
}

/// Number of VLAN tags that `NORMAL` parses; further tags are payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VlanLimit {
    /// The outermost tag.
    #[default]
    One,
    /// Two tags, the maximum of Open vSwitch.
    Two,
}

/// The EtherType of a provider tag (`other_config:qinq-ethtype`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TagType {
    /// `0x88a8`, a service tag (IEEE 802.1ad).
    #[default]
    Service,
    /// `0x8100`, the type of customer tags (IEEE 802.1Q).
    Customer,
}

/// Frames without a VLAN that are sent with a priority tag (`other_config:priority-tags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PriorityTags {
    /// No frames.
    #[default]
    No,
    /// Frames with a priority other than zero.
    IfNonzero,
    /// Frames that were received with a tag.
    Always,
}

/// The VLAN mode of a port (the column `vlan_mode`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VlanMode {
    /// An access port: one VLAN, untagged.
    Access {
        /// The VLAN.
        tag: u16,
    },
    /// A trunk port: these VLANs, tagged.
    Trunk {
        /// The VLANs; zero permits untagged frames.
        trunks: VlanSet,
    },
    /// A trunk port whose untagged frames belong to the native VLAN.
    Native {
        /// The native VLAN.
        tag: u16,
        /// The VLANs, including the native one.
        trunks: VlanSet,
        /// Frames of the native VLAN are sent with its tag.
        is_tagged: bool,
    },
    /// A dot1q-tunnel port: one provider VLAN, which carries customer tags unchanged.
    Tunnel {
        /// The provider VLAN.
        tag: u16,
        /// The customer VLANs that pass; zero for untagged frames.
        customers: VlanSet,
        /// The EtherType of the provider tag.
        tag_type: TagType,
    },
}

/// The VLAN configuration of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortVlans {
    /// The VLAN mode.
    pub mode: VlanMode,
    /// Priority tags of frames without a VLAN.
    pub priority_tags: PriorityTags,
}

impl Default for PortVlans {
    fn default() -> Self {
        Self {
            mode: VlanMode::Trunk {
                trunks: VlanSet::all(),
            },
            priority_tags: PriorityTags::No,
        }
    }
}

impl PortVlans {
    /// Returns whether the configuration is the default: a trunk of all VLANs.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

impl VlanMode {
    /// Returns a native mode. Its trunks always include the native VLAN, to which untagged frames
    /// belong.
    #[must_use]
    pub fn native(tag: u16, mut trunks: VlanSet, is_tagged: bool) -> Self {
        if tag != 0 {
            trunks.set(tag, true);
            trunks.set(0, false);
        }
        Self::Native {
            tag,
            trunks,
            is_tagged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vlan_sets_contain_the_added_vlans() {
        let mut set: VlanSet = [0, 10, VID_MAX].into_iter().collect();
        assert!(set.iter().eq([0, 10, VID_MAX]) && !set.has(11) && !set.is_all());
        set.set(10, false);
        assert!(!set.has(10) && !set.is_empty());
        assert!(VlanSet::all().is_all() && VlanSet::all().iter().count() == 4096);
        assert!(VlanSet::none().is_empty() && !VlanSet::none().is_all());
    }

    #[test]
    fn native_vlan_is_a_trunk_and_replaces_untagged() {
        let VlanMode::Native { trunks, .. } =
            VlanMode::native(5, [0, 7].into_iter().collect(), true)
        else {
            panic!("it is native");
        };
        assert!(trunks.iter().eq([5, 7]));
    }
}
