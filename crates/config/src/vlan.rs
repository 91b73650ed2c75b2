//! Which VLANs a port carries, and how their frames look on its wire (IEEE 802.1Q;
//! ovs-vswitchd.conf.db(5), the table `Port`, "VLAN Configuration").

use std::fmt;
use std::sync::Arc;

/// The highest VLAN that a port may be in or carry. 4095 is no VLAN (IEEE 802.1Q, table
/// 9-2), but the schema allows it, and so the tables of Open vSwitch carry it.
pub const VID_MAX: u16 = 4095;

/// Words of a set with a bit for each VLAN.
const WORDS: usize = (VID_MAX as usize + 1) / 64;

/// A set of VLANs. Zero stands for frames without a tag.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct VlanSet(Option<Arc<[u64; WORDS]>>);

impl VlanSet {
    /// Without any VLAN.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// With every VLAN.
    #[must_use]
    pub fn all() -> Self {
        Self(Some(Arc::new([u64::MAX; WORDS])))
    }

    /// Whether `vid` is in it.
    #[must_use]
    pub fn has(&self, vid: u16) -> bool {
        let vid = usize::from(vid & VID_MAX);
        let words = self.0.as_deref();
        words.is_some_and(|words| words[vid / 64] >> (vid % 64) & 1 != 0)
    }

    /// Puts `vid` in, or takes it out.
    pub fn set(&mut self, vid: u16, is_in: bool) {
        let vid = usize::from(vid & VID_MAX);
        let words = self.0.get_or_insert_with(|| Arc::new([0; WORDS]));
        let word = &mut Arc::make_mut(words)[vid / 64];
        let bit = 1 << (vid % 64);
        *word = if is_in { *word | bit } else { *word & !bit };
    }

    /// Whether there is no VLAN in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let words = self.0.as_deref();
        words.is_none_or(|words| words.iter().all(|word| *word == 0))
    }

    /// Whether every VLAN is in it.
    #[must_use]
    pub fn is_all(&self) -> bool {
        let words = self.0.as_deref();
        words.is_some_and(|words| words.iter().all(|word| *word == u64::MAX))
    }

    /// The VLANs in it, the lowest first.
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

/// How many of a frame's tags `NORMAL` looks at; what lies deeper is payload to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VlanLimit {
    /// The outermost.
    #[default]
    One,
    /// Two, the most that Open vSwitch looks at.
    Two,
}

/// What tag announces a VLAN of a provider (`other_config:qinq-ethtype`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TagType {
    /// `0x88a8`, a service tag (IEEE 802.1ad).
    #[default]
    Service,
    /// `0x8100`, as for customers' VLANs (IEEE 802.1Q).
    Customer,
}

/// Which frames without a VLAN leave with a tag for their priority (`other_config:priority-tags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PriorityTags {
    /// None.
    #[default]
    No,
    /// Those that have a priority.
    IfNonzero,
    /// Those that came with a tag.
    Always,
}

/// In which VLANs a port takes part, and how (the column `vlan_mode`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VlanMode {
    /// In one, without tags on the wire.
    Access {
        /// The VLAN.
        tag: u16,
    },
    /// In these, with their tags.
    Trunk {
        /// The VLANs; zero lets frames without a tag pass.
        trunks: VlanSet,
    },
    /// As a trunk, but what comes without a tag is in the native VLAN.
    Native {
        /// The native VLAN.
        tag: u16,
        /// The VLANs, with the native one.
        trunks: VlanSet,
        /// Whether frames of the native VLAN leave with its tag.
        is_tagged: bool,
    },
    /// In one, within which customers' tags stay as they are.
    Tunnel {
        /// The VLAN of the provider.
        tag: u16,
        /// The customers' VLANs that pass; zero for frames without a tag.
        customers: VlanSet,
        /// What announces the provider's tag.
        tag_type: TagType,
    },
}

/// The VLANs of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortVlans {
    /// Which, and how.
    pub mode: VlanMode,
    /// Frames of no VLAN that leave with a tag.
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
    /// Whether the port carries every VLAN, tags as they come, as one does of which nothing
    /// is said.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

impl VlanMode {
    /// A port that carries `trunks` and is in the VLAN `tag` beside. The native VLAN is
    /// carried in any case, and what has no tag is in it.
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
    fn sets_hold_what_was_put_in() {
        let mut set: VlanSet = [0, 10, VID_MAX].into_iter().collect();
        assert!(set.iter().eq([0, 10, VID_MAX]) && !set.has(11) && !set.is_all());
        set.set(10, false);
        assert!(!set.has(10) && !set.is_empty());
        assert!(VlanSet::all().is_all() && VlanSet::all().iter().count() == 4096);
        assert!(VlanSet::none().is_empty() && !VlanSet::none().is_all());
    }

    #[test]
    fn the_native_vlan_is_carried_and_stands_for_what_has_no_tag() {
        let VlanMode::Native { trunks, .. } =
            VlanMode::native(5, [0, 7].into_iter().collect(), true)
        else {
            panic!("it is native");
        };
        assert!(trunks.iter().eq([5, 7]));
    }
}
