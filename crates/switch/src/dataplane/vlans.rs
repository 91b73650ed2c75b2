//! In which VLAN a frame is within a bridge, by which ports it may leave, and what its tag is
//! there (IEEE 802.1Q, 6.9 and 8.6; ovs-vswitchd.conf.db(5), the table `Port`, `vlan_mode`).
//!
//! Decisions, and the one change of a frame that follows. Where it goes is `normal`'s business.

use packet::wire::vlan::Tag;
use packet::{Depth, Frame, Packet};

use crate::config::{LogicalPort, PriorityTags, VlanMode};

/// What announces a tag that is put before a frame (IEEE 802.1Q, table 9-1).
const CUSTOMER: u16 = 0x8100;

/// What becomes of a frame's tag at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Retag {
    /// It stays as it is.
    #[default]
    Keep,
    /// The outermost is taken off.
    Pop,
    /// The outermost is of this VLAN from now on.
    Set(u16),
    /// One of this VLAN is put before the frame, without a priority.
    Push(u16),
}

impl Retag {
    /// Does it. Returns whether that could be done: there may be no room for a tag.
    pub(crate) fn change(self, frame: &mut Frame) -> bool {
        if self == Self::Keep {
            return true;
        }
        let Ok(mut packet) = Packet::read(frame, Depth::Link) else {
            return false;
        };
        match self {
            Self::Keep => true,
            Self::Pop => packet.pop_vlan().is_ok(),
            Self::Set(vid) => {
                packet.set_vlan_vid(vid);
                true
            }
            Self::Push(vid) => {
                let pushed = packet.push_vlan(CUSTOMER).is_ok();
                packet.set_vlan_vid(vid);
                pushed
            }
        }
    }
}

/// The VLAN of a frame that came in by `port` with this tag; none if it may not come in. A
/// port of which nothing is said takes all.
pub(crate) fn admit(port: Option<&LogicalPort>, tag: Option<Tag>) -> Option<u16> {
    let vid = tag.map_or(0, |tag| tag.vid);
    let Some(port) = port else {
        return Some(vid);
    };
    match &port.vlans.mode {
        VlanMode::Access { tag } | VlanMode::Tunnel { tag, .. } => (vid == 0).then_some(*tag),
        VlanMode::Trunk { trunks } => trunks.has(vid).then_some(vid),
        VlanMode::Native { tag, trunks, .. } => {
            let vid = if vid == 0 { *tag } else { vid };
            trunks.has(vid).then_some(vid)
        }
    }
}

/// Whether frames of the VLAN `vid` leave by `port`.
pub(crate) fn carries(port: Option<&LogicalPort>, vid: u16) -> bool {
    port.is_none_or(|port| match &port.vlans.mode {
        VlanMode::Access { tag } | VlanMode::Tunnel { tag, .. } => *tag == vid,
        VlanMode::Trunk { trunks } | VlanMode::Native { trunks, .. } => trunks.has(vid),
    })
}

/// What becomes of the tag of a frame of the VLAN `vid` that leaves by `port` and came in with
/// this one.
pub(crate) fn leave(port: Option<&LogicalPort>, tag: Option<Tag>, vid: u16) -> Retag {
    let is_bare = match port.map(|port| &port.vlans.mode) {
        None | Some(VlanMode::Trunk { .. }) => false,
        Some(VlanMode::Access { .. } | VlanMode::Tunnel { .. }) => true,
        Some(VlanMode::Native { tag, is_tagged, .. }) => *tag == vid && !is_tagged,
    };
    let outside = if is_bare { 0 } else { vid };
    match (tag, outside) {
        (None, 0) => Retag::Keep,
        (None, vid) => Retag::Push(vid),
        (Some(tag), 0) => {
            let priority = port.map(|port| port.vlans.priority_tags);
            let keeps = keeps_priority(priority.unwrap_or_default(), tag, is_bare);
            match (keeps, tag.vid) {
                (false, _) => Retag::Pop,
                (true, 0) => Retag::Keep,
                (true, _) => Retag::Set(0),
            }
        }
        (Some(tag), vid) if tag.vid == vid => Retag::Keep,
        (Some(_), vid) => Retag::Set(vid),
    }
}

/// Whether a frame of no VLAN that came with `tag` leaves with one, for its priority. By a port
/// without tags, that `is_bare`, only one whose priority is not zero does, if they are wanted
/// there; by others it does in any case, as with Open vSwitch.
const fn keeps_priority(wanted: PriorityTags, tag: Tag, is_bare: bool) -> bool {
    match (wanted, is_bare) {
        (PriorityTags::No, true) => false,
        (PriorityTags::Always, false) => true,
        (PriorityTags::IfNonzero | PriorityTags::Always, true)
        | (PriorityTags::No | PriorityTags::IfNonzero, false) => tag.pcp != 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::{PortVlans, VlanSet};

    fn port(mode: VlanMode, priority_tags: PriorityTags) -> LogicalPort {
        LogicalPort {
            vlans: PortVlans {
                mode,
                priority_tags,
            },
            ..LogicalPort::default()
        }
    }

    fn tag(vid: u16, pcp: u8) -> Option<Tag> {
        Some(Tag {
            tpid: CUSTOMER,
            pcp,
            dei: false,
            vid,
        })
    }

    fn modes() -> impl Strategy<Value = VlanMode> {
        let trunks = prop::collection::vec(0_u16..6, 0..4);
        let native = (0_u16..6, trunks.clone(), any::<bool>());
        prop_oneof![
            (0_u16..6).prop_map(|tag| VlanMode::Access { tag }),
            trunks.prop_map(|vids| VlanMode::Trunk {
                trunks: vids.into_iter().collect()
            }),
            native.prop_map(|(tag, vids, is_tagged)| VlanMode::native(
                tag,
                vids.into_iter().collect(),
                is_tagged
            )),
        ]
    }

    /// The manual's own words, one after the other.
    fn by_the_book(from: &VlanMode, to: &VlanMode, vid: u16) -> Option<u16> {
        let inside = match from {
            // "Packets that arrive with a nonzero VLAN are dropped."
            VlanMode::Access { .. } if vid != 0 => return None,
            VlanMode::Access { tag } => *tag,
            // "A packet that ingresses on a trunk port is in the VLAN specified in its header,
            // or VLAN 0 if it has no 802.1Q header."
            VlanMode::Trunk { .. } => vid,
            // "A packet without an 802.1Q header that ingresses on a native port is in the
            // native VLAN."
            VlanMode::Native { tag, .. } if vid == 0 => *tag,
            _ => vid,
        };
        let is_in = |mode: &VlanMode| match mode {
            VlanMode::Access { tag } => *tag == inside,
            VlanMode::Trunk { trunks } | VlanMode::Native { trunks, .. } => trunks.has(inside),
            VlanMode::Tunnel { .. } => false,
        };
        if !is_in(from) || !is_in(to) {
            return None;
        }
        match to {
            VlanMode::Access { .. } => Some(0),
            VlanMode::Native { tag, is_tagged, .. } if *tag == inside && !is_tagged => Some(0),
            _ => Some(inside),
        }
    }

    fn frame(tag: Option<Tag>) -> Frame {
        let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        bytes.extend(tag.map(|tag| tag.emit()).into_iter().flatten());
        bytes.extend([0x08, 0x06]);
        bytes.resize(64, 7);
        Frame::from_bytes(&bytes)
    }

    proptest! {
        #[test]
        fn frames_pass_between_ports_of_all_modes_as_the_manual_has_it(
            from in modes(), to in modes(), vid in 0_u16..7, is_tagged: bool, pcp in 0_u8..8,
        ) {
            let came = (is_tagged || vid != 0).then(|| tag(vid, pcp)).flatten();
            let expected = by_the_book(&from, &to, vid);
            let (from, to) = (port(from, PriorityTags::No), port(to, PriorityTags::No));
            let inside = admit(Some(&from), came).filter(|vid| carries(Some(&to), *vid));
            let left = inside.map(|inside| {
                let mut frame = frame(came);
                assert!(leave(Some(&to), came, inside).change(&mut frame));
                let link = packet::Link::parse(frame.bytes()).expect("whole");
                // What carries a priority keeps it wherever it keeps a tag.
                assert!(link.tag.is_none_or(|tag| tag.pcp == came.map_or(0, |tag| tag.pcp)));
                assert!(link.tag.is_none_or(|tag| tag.vid != 0 || tag.pcp != 0));
                link.tag.map_or(0, |tag| tag.vid)
            });
            prop_assert_eq!(left, expected);
        }
    }

    #[test]
    fn tags_for_priorities_are_kept_where_they_are_wanted() {
        let access = |priority| port(VlanMode::Access { tag: 5 }, priority);
        let cases = [
            (PriorityTags::No, 3, Retag::Pop),
            (PriorityTags::IfNonzero, 3, Retag::Set(0)),
            (PriorityTags::IfNonzero, 0, Retag::Pop),
            (PriorityTags::Always, 3, Retag::Set(0)),
            (PriorityTags::Always, 0, Retag::Pop),
        ];
        for (priority, pcp, expected) in cases {
            assert_eq!(leave(Some(&access(priority)), tag(5, pcp), 5), expected);
        }
        let trunk = |priority| {
            let trunks = VlanSet::all();
            port(VlanMode::Trunk { trunks }, priority)
        };
        let cases = [
            (PriorityTags::No, 3, Retag::Keep),
            (PriorityTags::No, 0, Retag::Pop),
            (PriorityTags::IfNonzero, 0, Retag::Pop),
            (PriorityTags::Always, 0, Retag::Keep),
        ];
        for (priority, pcp, expected) in cases {
            assert_eq!(leave(Some(&trunk(priority)), tag(0, pcp), 0), expected);
        }
        assert_eq!(
            leave(Some(&access(PriorityTags::Always)), None, 5),
            Retag::Keep
        );
    }

    #[test]
    fn a_port_of_which_nothing_is_said_takes_frames_as_they_are() {
        assert_eq!(admit(None, tag(9, 0)), Some(9));
        assert_eq!(leave(None, tag(0, 3), 0), Retag::Keep);
        assert_eq!(leave(None, tag(0, 0), 0), Retag::Pop, "it says nothing");
        assert_eq!(leave(None, None, 9), Retag::Push(9));
        assert!(carries(None, 9));
        let none = port(
            VlanMode::Trunk {
                trunks: VlanSet::none(),
            },
            PriorityTags::No,
        );
        assert_eq!(admit(Some(&none), None), None);
    }
}
