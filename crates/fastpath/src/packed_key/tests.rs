//! Every field has a position in the key. That lookups read the same positions is covered by the
//! tests of the lookups.

use base::PortNo;
use flow::text::parse_flow_line;
use packet::build::Stack;
use packet::{Depth, Headers};

use super::*;

#[test]
fn field_has_position_unless_it_is_not_compiled() {
    for row in Field::all() {
        assert_eq!(
            position(row.field).is_none(),
            row.field.view().is_some() || row.field.option().is_some(),
            "{}",
            row.name
        );
    }
}

#[test]
fn tracked_packet_matches_by_its_connection() {
    let mut fields = flow::PipelineFields::new(PortNo(1));
    for (number, field) in (1..).zip(flow::ConnectionFields::ALL) {
        assert!(fields.connection.get_or_insert_default().set(field, number));
    }
    let frame: Stack = "eth / ipv4 / tcp".parse().expect("a stack");
    let headers = Headers::parse(&frame.build(), Depth::Transport).expect("well formed");
    let mut key = PackedKey::new();
    let line = "tcp,ct_state=+new,ct_zone=2,ct_mark=3,ct_label=4,ct_nw_proto=5,ct_nw_src=0.0.0.6,\
                ct_nw_dst=0.0.0.7,ct_tp_src=10,ct_tp_dst=11,actions=drop";
    let matching = parse_flow_line(line).expect(line).matching;
    key.fill(KeyParts::ALL, &headers, &fields);
    assert!(key.satisfies(&matching));
    fields.connection = None;
    key.fill(KeyParts::ALL, &headers, &fields);
    assert!(!key.satisfies(&matching));
}

#[test]
fn wide_field_takes_two_words() {
    for row in Field::all().filter(|row| position(row.field).is_some()) {
        let is_wide = row.bits > 64;
        assert_eq!(position_of(row.field).is_wide, is_wide, "{}", row.name);
    }
}

/// The keys that are derived from a previous match equal those of a complete conversion.
#[test]
fn rules_on_same_fields_have_same_mask() {
    let matching = |line: &str| {
        let rule = parse_flow_line(&format!("{line},actions=drop"));
        rule.expect(line).matching
    };
    let lines = [
        "",
        "in_port=1,tcp,nw_src=10.0.0.1,tp_src=7,tp_dst=9",
        "in_port=2,tcp,nw_src=10.0.0.2,tp_src=8,tp_dst=1",
        "in_port=2,tcp,nw_src=10.0.0.0/8,tp_src=8,tp_dst=1",
        "in_port=2,udp,nw_src=10.0.0.2,tp_src=8,tp_dst=1",
        "tcp6,ipv6_src=::1,ipv6_dst=ff02::2,tp_dst=80",
        "tcp6,ipv6_src=::5,ipv6_dst=2001::2,tp_dst=81",
        "tcp6,ipv6_src=::5,ipv6_dst=2001::2",
        "dl_vlan=5,dl_vlan_pcp=3,dl_dst=02:00:00:00:00:01",
        "dl_vlan=6,dl_vlan_pcp=0,dl_dst=02:00:00:00:00:02",
    ];
    let (mut similar, mut readable) = (0, 0);
    for (one, other) in lines
        .iter()
        .flat_map(|one| lines.iter().map(move |other| (one, other)))
    {
        let (one, other) = (matching(one), matching(other));
        if let Some(reader) = MatchReader::of(&other) {
            let walked = PackedKey::of_similar_match(&one, &other);
            let read = reader.read(&one, |key| key.0);
            assert_eq!(read, walked.map(|walked| walked.0));
            readable += 1;
        }
        let Some(key) = PackedKey::of_similar_match(&one, &other) else {
            continue;
        };
        let (one, other) = (PackedMatch::of(&one), PackedMatch::of(&other));
        let mut buffers = [[(0, 0); KEY_WORDS]; 2];
        let [first, second] = &mut buffers;
        assert_eq!(one.mask(first), other.mask(second));
        assert_eq!(key.0, one.values.0);
        similar += 1;
    }
    // Nine lines without a mask are similar to themselves, and three pairs in both directions.
    assert_eq!(similar, 9 + 6);
    // Six lines have neither a mask nor a long match.
    assert_eq!(readable, 6 * lines.len());
}

/// True if the frame satisfies the match `line`.
fn satisfies(line: &str, frame: &str) -> bool {
    let matching = parse_flow_line(&format!("{line},actions=drop")).expect(line);
    let stack: Stack = frame.parse().expect(frame);
    let headers = Headers::parse(&stack.build(), Depth::Transport).expect(frame);
    let mut key = PackedKey::new();
    key.fill_headers(&headers, PortNo(1));
    key.satisfies(&matching.matching)
}

#[test]
fn terms_of_all_kinds_are_compared_at_any_offset() {
    let ipv4 = "eth / ipv4(src=10.0.0.1,dst=10.0.0.2) / tcp(src=1000,dst=80)";
    let twelve = "in_port=1,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,dl_vlan=0xffff,tcp,\
                  nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,tp_src=1000,tp_dst=";
    for (line, expected) in [
        ("", true),
        ("in_port=1", true),
        ("in_port=2", false),
        ("dl_dst=02:00:00:00:00:02/ff:00:00:00:00:0f", true),
        ("dl_dst=02:00:00:00:00:03/ff:00:00:00:00:0f", false),
        ("ip,nw_src=10.0.0.0/24", true),
        ("ip,nw_src=10.0.1.0/24", false),
        ("tcp,tp_dst=0x40/0xffe0", true),
        ("udp,tp_dst=80", false),
        ("arp,arp_spa=10.0.0.1", false),
        ("ipv6", false),
    ] {
        assert_eq!(satisfies(line, ipv4), expected, "{line}");
    }
    for (port, expected) in [("80", true), ("81", false), ("0x50/0xfff0", true)] {
        assert_eq!(
            satisfies(&format!("{twelve}{port}"), ipv4),
            expected,
            "{port}"
        );
    }
    let ipv6 = "eth / ipv6(src=2001:db8::1,dst=2001:db8::2) / udp";
    for (line, expected) in [
        ("ipv6,ipv6_src=2001:db8::1", true),
        ("ipv6,ipv6_src=2001:db8::2", false),
        ("ipv6,ipv6_dst=2001:db8::/32", true),
        ("ipv6,ipv6_dst=2001:db9::/32", false),
        ("ipv6,ipv6_src=2001:db8::1,ipv6_dst=2001:db8::/64", true),
        ("ipv6,ipv6_src=2001:db8::1,ipv6_dst=::3/::7", false),
    ] {
        assert_eq!(satisfies(line, ipv6), expected, "{line}");
    }
}
