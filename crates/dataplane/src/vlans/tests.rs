//! Tests of frames between ports of all VLAN modes, by the text of the manual.

use packet::Frame;
use proptest::prelude::*;

use super::*;
use config::{PortVlans, VlanSet};

fn port(mode: VlanMode, priority_tags: PriorityTags) -> LogicalPort {
    LogicalPort {
        vlans: PortVlans {
            mode,
            priority_tags,
        },
        ..LogicalPort::default()
    }
}

fn tag(vid: u16, pcp: u8) -> Option<VlanTag> {
    Some(VlanTag {
        tpid: CUSTOMER,
        pcp,
        dei: false,
        vid,
    })
}

/// Returns the tag protocol identifier of a dot1q-tunnel port.
const fn announced(tag_type: TagType) -> u16 {
    match tag_type {
        TagType::Service => SERVICE,
        TagType::Customer => CUSTOMER,
    }
}

fn modes() -> impl Strategy<Value = VlanMode> {
    let set = || prop::collection::vec(0_u16..6, 0..4);
    let native = (0_u16..6, set(), any::<bool>());
    let tag_types = prop::sample::select(vec![TagType::Service, TagType::Customer]);
    prop_oneof![
        (0_u16..6).prop_map(|tag| VlanMode::Access { tag }),
        set().prop_map(|vids| VlanMode::Trunk {
            trunks: vids.into_iter().collect()
        }),
        native.prop_map(|(tag, vids, is_tagged)| VlanMode::native(
            tag,
            vids.into_iter().collect(),
            is_tagged
        )),
        (1_u16..6, set(), tag_types).prop_map(|(tag, vids, tag_type)| VlanMode::Tunnel {
            tag,
            customers: vids.into_iter().collect(),
            tag_type,
        }),
    ]
}

/// Generates the tags of a frame, outermost first: no tag has neither a VLAN nor a priority, and a
/// tag before others has a VLAN.
fn stacks() -> impl Strategy<Value = Vec<VlanTag>> {
    let tpid = prop::sample::select(vec![CUSTOMER, SERVICE]);
    let one = (tpid, 0_u8..8, 1_u16..7).prop_map(|(tpid, pcp, vid)| VlanTag {
        tpid,
        pcp,
        dei: false,
        vid,
    });
    let last = prop_oneof![
        3 => Just(None),
        1 => (1_u8..8).prop_map(|pcp| tag(0, pcp)),
    ];
    (prop::collection::vec(one, 0..4), last).prop_map(|(mut tags, last)| {
        tags.extend(last.filter(|_| tags.is_empty()));
        tags
    })
}

/// The manual's text, sentence by sentence: returns the tags on egress of a frame received with
/// these tags, of which `seen` are examined; none if it does not leave.
fn by_the_book(
    from: &VlanMode,
    to: &VlanMode,
    ingress_tags: &[VlanTag],
    seen: usize,
) -> Option<Vec<VlanTag>> {
    let vid_of = |tags: &[VlanTag], place: usize| {
        let tag = tags.get(place).filter(|_| place < seen);
        tag.map_or(0, |tag| tag.vid)
    };
    let vid = vid_of(ingress_tags, 0);
    let mut tags = ingress_tags.to_vec();
    let put_in = |tags: &mut Vec<VlanTag>, vid: u16| match tags.first_mut() {
        Some(tag) => tag.vid = vid,
        None if vid != 0 => tags.push(new_tag(CUSTOMER, vid)),
        None => {}
    };
    let (inside, customer) = match from {
        // "Packets that arrive with a nonzero VLAN are dropped."
        VlanMode::Access { .. } if vid != 0 => return None,
        VlanMode::Access { tag } => {
            put_in(&mut tags, *tag);
            (*tag, 0)
        }
        // "A packet that ingresses on a trunk port is in the VLAN specified in its header,
        // or VLAN 0 if it has no 802.1Q header."
        VlanMode::Trunk { .. } => (vid, vid_of(ingress_tags, 1)),
        // "A packet without an 802.1Q header that ingresses on a native port is in the
        // native VLAN."
        VlanMode::Native { tag, .. } if vid == 0 => {
            put_in(&mut tags, *tag);
            (*tag, 0)
        }
        VlanMode::Native { .. } => (vid, vid_of(ingress_tags, 1)),
        // "A dot1q-tunnel port treats these as double-tagged with the outer service VLAN tag
        // and the inner customer VLAN taken from the 802.1Q header." "If cvlans is set, only
        // allows packets in the specified customer VLANs."
        VlanMode::Tunnel { customers, .. } if !customers.has(vid) => return None,
        VlanMode::Tunnel { tag, tag_type, .. } => {
            tags.insert(0, new_tag(announced(*tag_type), *tag));
            (*tag, vid)
        }
    };
    let is_in = |mode: &VlanMode, is_exit: bool| match mode {
        VlanMode::Access { tag } => *tag == inside && (!is_exit || customer == 0),
        VlanMode::Trunk { trunks } | VlanMode::Native { trunks, .. } => trunks.has(inside),
        // "A packet outer VLAN (or only VLAN) must be tag."
        VlanMode::Tunnel { tag, customers, .. } => {
            *tag == inside && (!is_exit || customers.has(customer))
        }
    };
    if !is_in(from, false) || !is_in(to, true) {
        return None;
    }
    // "Which is removed before egress, which exposes the inner (customer) VLAN if one is present."
    let pops = match to {
        VlanMode::Access { .. } | VlanMode::Tunnel { .. } => true,
        VlanMode::Native { tag, is_tagged, .. } => *tag == inside && !is_tagged,
        VlanMode::Trunk { .. } => false,
    };
    if pops && !tags.is_empty() {
        tags.remove(0);
    }
    // Without a VLAN there is no tag on such a port.
    if matches!(to, VlanMode::Access { .. }) && tags.first().is_some_and(|tag| tag.vid == 0) {
        tags.remove(0);
    }
    Some(tags)
}

fn frame(tags: &[VlanTag]) -> Frame {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    bytes.extend(tags.iter().flat_map(|tag| tag.emit()));
    bytes.extend([0x08, 0x06]);
    bytes.resize(64, 7);
    Frame::from_bytes(&bytes)
}

/// Returns all tags of a frame, outermost first.
fn tags_of(frame: &Frame) -> Vec<VlanTag> {
    let link = Link::parse(frame.bytes()).expect("whole");
    let bytes = &frame.bytes()[12..12 + 4 * link.tags()];
    let tags = bytes.chunks_exact(4).map(|bytes| {
        let bytes = bytes.try_into().expect("four bytes");
        VlanTag::parse(bytes)
    });
    tags.collect()
}

fn ingress_tags(tags: &[VlanTag], seen: VlanLimit) -> ArrivalTags {
    let frame = frame(tags);
    let link = Link::parse(frame.bytes()).expect("whole");
    ArrivalTags::of(&link, frame.bytes(), seen)
}

fn tags_on_egress(port: Option<&LogicalPort>, tag: Option<VlanTag>, vid: u16) -> Vec<VlanTag> {
    let mut frame = frame(tag.as_slice());
    let within = FrameVlans {
        vid,
        ingress_tags: ArrivalTags(tag, None),
        service_tpid: None,
    };
    assert!(leave(port, &within).change(&mut frame));
    tags_of(&frame)
}

proptest! {
    #[test]
    fn vlan_modes_follow_the_manual(
        from in modes(), to in modes(), tags in stacks(), sees_two: bool,
    ) {
        let (seen, count) = match sees_two {
            true => (VlanLimit::Two, 2),
            false => (VlanLimit::One, 1),
        };
        let expected = by_the_book(&from, &to, &tags, count);
        let (from, to) = (port(from, PriorityTags::No), port(to, PriorityTags::No));
        let inside = admit(Some(&from), ingress_tags(&tags, seen));
        let inside = inside.filter(|within| carries(Some(&to), within));
        let left = inside.map(|within| {
            let mut frame = frame(&tags);
            assert!(leave(Some(&to), &within).change(&mut frame));
            tags_of(&frame)
        });
        prop_assert_eq!(left, expected);
    }
}

#[test]
fn priority_tags_are_kept_if_configured() {
    let access = |priority| port(VlanMode::Access { tag: 5 }, priority);
    let cases = [
        (PriorityTags::No, 3, None),
        (PriorityTags::IfNonzero, 3, tag(0, 3)),
        (PriorityTags::IfNonzero, 0, None),
        (PriorityTags::Always, 3, tag(0, 3)),
        (PriorityTags::Always, 0, None),
    ];
    for (priority, pcp, expected) in cases {
        let left = tags_on_egress(Some(&access(priority)), tag(5, pcp), 5);
        assert_eq!(left, expected.as_slice());
    }
    let trunk = |priority| {
        let trunks = VlanSet::all();
        port(VlanMode::Trunk { trunks }, priority)
    };
    let cases = [
        (PriorityTags::No, 3, tag(0, 3)),
        (PriorityTags::No, 0, None),
        (PriorityTags::IfNonzero, 0, None),
        (PriorityTags::Always, 0, tag(0, 0)),
    ];
    for (priority, pcp, expected) in cases {
        let left = tags_on_egress(Some(&trunk(priority)), tag(0, pcp), 0);
        assert_eq!(left, expected.as_slice());
    }
    assert!(tags_on_egress(Some(&access(PriorityTags::Always)), None, 5).is_empty());
}

#[test]
fn port_without_vlan_configuration_keeps_tags() {
    let plain = admit(None, ArrivalTags(tag(9, 0), None)).expect("all are taken");
    assert_eq!(plain.vid, 9);
    assert!(carries(None, &plain));
    assert_eq!(tags_on_egress(None, tag(0, 3), 0), tag(0, 3).as_slice());
    assert!(
        tags_on_egress(None, tag(0, 0), 0).is_empty(),
        "an empty tag"
    );
    assert_eq!(tags_on_egress(None, None, 9), tag(9, 0).as_slice());
    let none = port(
        VlanMode::Trunk {
            trunks: VlanSet::none(),
        },
        PriorityTags::No,
    );
    assert_eq!(admit(Some(&none), ArrivalTags::default()), None);
}

/// Results of Open vSwitch 3.1 for these frames, with priority tags enabled too: a letter for the
/// tag protocol identifier, the VLAN, the priority.
#[rustfmt::skip]
const BESIDE: [(&str, VlanLimit, &str, &str, Option<&str>); 14] = {
    use VlanLimit::{One, Two};
    [
        ("tunnel", One, "trunk",  "C5p3",     Some("S10 C5p3")),
        ("tunnel", One, "trunk!", "C5p3",     Some("S10p3 C5p3")),
        ("tunnel", One, "trunk",  "C0p3",     Some("S10 C0p3")),
        ("tunnel", One, "trunk",  "C0",       Some("S10")),
        ("tunnel", Two, "access", "C0p3",     Some("")),
        ("tunnel", Two, "access", "C5",       None),
        ("trunk",  One, "access", "S10 C5",   Some("C5")),
        ("trunk",  Two, "access", "S10 C5",   None),
        ("trunk",  Two, "access", "S10 C0p3", Some("")),
        ("trunk",  One, "tunnel", "S10 C0",   Some("C0")),
        ("trunk",  Two, "tunnel", "S10 C0",   Some("")),
        ("trunk",  One, "tunnel!", "S10p4 C5p3", Some("C0p4 C5p3")),
        ("trunk",  Two, "tunnel!", "S10p4 C5p3", Some("C5p4")),
        ("trunk",  Two, "access!", "S10p4 C0p3", Some("C0p4")),
    ]
};

#[test]
fn dot1q_tunnel_ports_match_open_vswitch_for_priority_tags() {
    let read = |text: &str| -> Vec<VlanTag> {
        let tags = text.split_whitespace().map(|word| {
            let (vid, pcp) = word[1..]
                .split_once('p')
                .unwrap_or_else(|| (&word[1..], "0"));
            VlanTag {
                tpid: if word.starts_with('S') {
                    SERVICE
                } else {
                    CUSTOMER
                },
                pcp: pcp.parse().expect("a priority"),
                dei: false,
                vid: vid.parse().expect("a VLAN"),
            }
        });
        tags.collect()
    };
    let named = |name: &str| {
        let priority = match name.ends_with('!') {
            true => PriorityTags::IfNonzero,
            false => PriorityTags::No,
        };
        let mode = match name.trim_end_matches('!') {
            "access" => VlanMode::Access { tag: 10 },
            "tunnel" => VlanMode::Tunnel {
                tag: 10,
                customers: VlanSet::all(),
                tag_type: TagType::Service,
            },
            _ => VlanMode::Trunk {
                trunks: VlanSet::all(),
            },
        };
        port(mode, priority)
    };
    for (from, seen, to, tags, expected) in BESIDE {
        let (from, to, tags) = (named(from), named(to), read(tags));
        let within = admit(Some(&from), ingress_tags(&tags, seen)).expect("it may come in");
        let left = carries(Some(&to), &within).then(|| {
            let mut frame = frame(&tags);
            assert!(leave(Some(&to), &within).change(&mut frame));
            tags_of(&frame)
        });
        assert_eq!(left, expected.map(read), "{tags:?}");
    }
}
