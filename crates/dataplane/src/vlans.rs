//! In which VLAN a frame is within a bridge, by which ports it may leave, and what its tags are
//! there (IEEE 802.1Q, 6.9 and 8.6; ovs-vswitchd.conf.db(5), the table `Port`, `vlan_mode`).
//!
//! Decisions, and what of a frame's tags follows (`retag`). Where it goes is `normal`'s business.

mod retag;

use packet::Link;
use packet::wire::vlan::VlanTag;

use config::{LogicalPort, PriorityTags, TagType, VlanLimit, VlanMode};
pub use retag::TagRewrite;
use retag::TagStack;

/// What announces a tag that is put before a frame (IEEE 802.1Q, table 9-1).
const CUSTOMER: u16 = 0x8100;

/// The same of a provider's tag (IEEE 802.1Q, table 9-1).
const SERVICE: u16 = 0x88a8;

/// The tags of a frame that are looked at, the outermost first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArrivalTags(Option<VlanTag>, Option<VlanTag>);

impl ArrivalTags {
    /// Those of a frame. What lies deeper is its payload.
    pub(crate) fn of(link: &Link, bytes: &[u8], seen: VlanLimit) -> Self {
        match seen {
            VlanLimit::Two if link.tags() > 1 => Self(link.tag, link.inner_tag(bytes)),
            VlanLimit::One | VlanLimit::Two => Self::outermost(link),
        }
    }

    /// Only the first.
    pub(crate) const fn outermost(link: &Link) -> Self {
        Self(link.tag, None)
    }
}

/// The VLANs that a frame is in, within a bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameVlans {
    /// The one that ports carry, and in which stations are known; zero is none.
    pub vid: u16,
    came: ArrivalTags,
    /// What announces its tag, if it is a provider's, around the tags that the frame came with.
    around: Option<u16>,
}

impl FrameVlans {
    /// A VLAN, of a frame without tags that the bridge itself sends.
    pub const fn of_vlan(vid: u16) -> Self {
        Self {
            vid,
            came: ArrivalTags(None, None),
            around: None,
        }
    }

    /// The same frame in another VLAN.
    pub const fn moved(self, vid: u16) -> Self {
        Self { vid, ..self }
    }

    /// The VLAN within the one that ports carry; zero if none is seen.
    fn customer(&self) -> u16 {
        let tag = match self.around {
            Some(_) => self.came.0,
            None => self.came.1,
        };
        tag.map_or(0, |tag| tag.vid)
    }
}

/// The VLANs of a frame that came in by `port` with these tags; none if it may not come in. A
/// port of which nothing is said takes all.
pub(crate) fn admit(port: Option<&LogicalPort>, came: ArrivalTags) -> Option<FrameVlans> {
    let vid = came.0.map_or(0, |tag| tag.vid);
    let plain = FrameVlans {
        vid,
        came,
        around: None,
    };
    let Some(port) = port else {
        return Some(plain);
    };
    match &port.vlans.mode {
        VlanMode::Access { tag } => (vid == 0).then_some(FrameVlans {
            vid: *tag,
            // What is behind a tag for a priority only is nothing to such a port.
            came: ArrivalTags(came.0, None),
            around: None,
        }),
        VlanMode::Trunk { trunks } => trunks.has(vid).then_some(plain),
        VlanMode::Native { tag, trunks, .. } => {
            let vid = if vid == 0 { *tag } else { vid };
            trunks.has(vid).then_some(plain.moved(vid))
        }
        VlanMode::Tunnel {
            tag,
            customers,
            tag_type,
        } => customers.has(vid).then_some(FrameVlans {
            vid: *tag,
            came,
            around: Some(match tag_type {
                TagType::Service => SERVICE,
                TagType::Customer => CUSTOMER,
            }),
        }),
    }
}

/// Whether frames of these VLANs leave by `port`.
pub(crate) fn carries(port: Option<&LogicalPort>, within: &FrameVlans) -> bool {
    port.is_none_or(|port| match &port.vlans.mode {
        VlanMode::Access { tag } => *tag == within.vid && within.customer() == 0,
        VlanMode::Trunk { trunks } | VlanMode::Native { trunks, .. } => trunks.has(within.vid),
        VlanMode::Tunnel { tag, customers, .. } => {
            *tag == within.vid && customers.has(within.customer())
        }
    })
}

/// What becomes of the tags of a frame that leaves by `port`.
pub fn leave(port: Option<&LogicalPort>, within: &FrameVlans) -> TagRewrite {
    let FrameVlans { vid, came, around } = *within;
    let vlans = port.map(|port| &port.vlans);
    let wanted = vlans.map_or(PriorityTags::No, |vlans| vlans.priority_tags);
    // Most frames.
    if let (None, ArrivalTags(tag, None), PriorityTags::No) = (around, came, wanted)
        && is_trunk(port)
        && tag.map_or(vid == 0, |tag| vid != 0 && tag.vid == vid)
    {
        return TagRewrite::KEEP;
    }
    let mut tags = TagStack::of([came.0, came.1]);
    match (around, came.0) {
        (Some(tpid), _) => tags.push(new_tag(tpid, vid)),
        (None, Some(tag)) => tags.set_first(VlanTag { vid, ..tag }),
        (None, None) if vid != 0 => tags.push(new_tag(CUSTOMER, vid)),
        (None, None) => {}
    }
    match vlans.map(|vlans| &vlans.mode) {
        None | Some(VlanMode::Trunk { .. }) => {}
        Some(VlanMode::Access { .. }) => tags.pop_with_empty(),
        Some(VlanMode::Tunnel { .. }) => tags.pop(),
        Some(VlanMode::Native { tag, is_tagged, .. }) => {
            if *tag == vid && !is_tagged {
                tags.pop();
            }
        }
    }
    if wanted != PriorityTags::No {
        let pcp = came.0.map_or(0, |tag| tag.pcp);
        tags.give_priority(pcp);
    }
    tags.drop_empty(wanted == PriorityTags::Always);
    TagRewrite::between(TagStack::of([came.0, came.1]), tags)
}

/// Whether tags are by `port` as they are within.
fn is_trunk(port: Option<&LogicalPort>) -> bool {
    port.is_none_or(|port| matches!(port.vlans.mode, VlanMode::Trunk { .. }))
}

const fn new_tag(tpid: u16, vid: u16) -> VlanTag {
    VlanTag {
        tpid,
        pcp: 0,
        dei: false,
        vid,
    }
}

#[cfg(test)]
mod tests;
