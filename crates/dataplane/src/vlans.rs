//! VLANs of a frame within a bridge: ingress classification, egress filtering and tags on egress
//! (IEEE 802.1Q, 6.9 and 8.6; ovs-vswitchd.conf.db(5), the table `Port`, `vlan_mode`).
//!
//! Decisions, and the resulting change of tags (`retag`). `normal` chooses the egress ports.

mod retag;

use packet::Link;
use packet::wire::vlan::VlanTag;

use config::{LogicalPort, PriorityTags, TagType, VlanLimit, VlanMode};
pub use retag::TagRewrite;
use retag::TagStack;

/// The tag protocol identifier of a C-tag (IEEE 802.1Q, table 9-1).
const CUSTOMER: u16 = 0x8100;

/// The tag protocol identifier of an S-tag (IEEE 802.1Q, table 9-1).
const SERVICE: u16 = 0x88a8;

/// The examined tags of a frame on ingress, outermost first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArrivalTags(Option<VlanTag>, Option<VlanTag>);

impl ArrivalTags {
    /// Returns the tags of a frame; deeper tags are payload.
    pub(crate) fn of(link: &Link, bytes: &[u8], seen: VlanLimit) -> Self {
        match seen {
            VlanLimit::Two if link.tags() > 1 => Self(link.tag, link.inner_tag(bytes)),
            VlanLimit::One | VlanLimit::Two => Self::outermost(link),
        }
    }

    /// Returns only the outermost tag.
    pub(crate) const fn outermost(link: &Link) -> Self {
        Self(link.tag, None)
    }
}

/// The VLANs of a frame within a bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameVlans {
    /// The VLAN of egress filtering and of the forwarding database; zero for none.
    pub vid: u16,
    ingress_tags: ArrivalTags,
    /// The tag protocol identifier of the service tag that a dot1q-tunnel port adds around the tags
    /// of the frame.
    service_tpid: Option<u16>,
}

impl FrameVlans {
    /// Returns the VLAN of an untagged frame that the bridge itself sends.
    pub const fn of_vlan(vid: u16) -> Self {
        Self {
            vid,
            ingress_tags: ArrivalTags(None, None),
            service_tpid: None,
        }
    }

    /// Returns the same frame in another VLAN.
    pub const fn moved(self, vid: u16) -> Self {
        Self { vid, ..self }
    }

    /// Returns the customer VLAN; zero if there is none.
    fn customer(&self) -> u16 {
        let tag = match self.service_tpid {
            Some(_) => self.ingress_tags.0,
            None => self.ingress_tags.1,
        };
        tag.map_or(0, |tag| tag.vid)
    }
}

/// Returns the VLANs of a frame with these tags that was received on `port`; none if the port
/// refuses it. A port without a configuration accepts all.
pub(crate) fn admit(port: Option<&LogicalPort>, ingress_tags: ArrivalTags) -> Option<FrameVlans> {
    let vid = ingress_tags.0.map_or(0, |tag| tag.vid);
    let plain = FrameVlans {
        vid,
        ingress_tags,
        service_tpid: None,
    };
    let Some(port) = port else {
        return Some(plain);
    };
    match &port.vlans.mode {
        VlanMode::Access { tag } => (vid == 0).then_some(FrameVlans {
            vid: *tag,
            // An access port ignores tags behind a priority tag.
            ingress_tags: ArrivalTags(ingress_tags.0, None),
            service_tpid: None,
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
            ingress_tags,
            service_tpid: Some(match tag_type {
                TagType::Service => SERVICE,
                TagType::Customer => CUSTOMER,
            }),
        }),
    }
}

/// Returns whether frames in these VLANs may leave by `port`.
pub(crate) fn carries(port: Option<&LogicalPort>, within: &FrameVlans) -> bool {
    port.is_none_or(|port| match &port.vlans.mode {
        VlanMode::Access { tag } => *tag == within.vid && within.customer() == 0,
        VlanMode::Trunk { trunks } | VlanMode::Native { trunks, .. } => trunks.has(within.vid),
        VlanMode::Tunnel { tag, customers, .. } => {
            *tag == within.vid && customers.has(within.customer())
        }
    })
}

/// Returns the change of the tags of a frame that leaves by `port`.
pub fn leave(port: Option<&LogicalPort>, within: &FrameVlans) -> TagRewrite {
    let FrameVlans {
        vid,
        ingress_tags,
        service_tpid,
    } = *within;
    let vlans = port.map(|port| &port.vlans);
    let wanted = vlans.map_or(PriorityTags::No, |vlans| vlans.priority_tags);
    // The shortcut for most frames.
    if let (None, ArrivalTags(tag, None), PriorityTags::No) = (service_tpid, ingress_tags, wanted)
        && is_trunk(port)
        && tag.map_or(vid == 0, |tag| vid != 0 && tag.vid == vid)
    {
        return TagRewrite::KEEP;
    }
    let mut tags = TagStack::of([ingress_tags.0, ingress_tags.1]);
    match (service_tpid, ingress_tags.0) {
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
        let pcp = ingress_tags.0.map_or(0, |tag| tag.pcp);
        tags.give_priority(pcp);
    }
    tags.drop_empty(wanted == PriorityTags::Always);
    TagRewrite::between(TagStack::of([ingress_tags.0, ingress_tags.1]), tags)
}

/// Returns whether tags on `port` are those within the bridge.
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
