//! Every field is somewhere; that it is where lookups look, the lookups prove.

use base::PortNo;
use flow::text::parse_flow_line;
use packet::build::Stack;
use packet::{Depth, Headers};

use super::*;

#[test]
fn every_field_has_a_place() {
    for row in Field::all() {
        assert_eq!(
            place(row.field).is_none(),
            row.field.view().is_some() || row.field.option().is_some(),
            "{}",
            row.name
        );
    }
}

#[test]
fn a_wide_field_has_two_words() {
    for row in Field::all().filter(|row| place(row.field).is_some()) {
        let is_wide = row.bits > 64;
        assert_eq!(place_of(row.field).is_wide, is_wide, "{}", row.name);
    }
}

/// What is wanted by rules that come one after the other is what each wants by itself.
#[test]
fn rules_on_the_same_fields_are_of_one_shape() {
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
    let (mut alike, mut read_alike) = (0, 0);
    for (one, other) in lines
        .iter()
        .flat_map(|one| lines.iter().map(move |other| (one, other)))
    {
        let (one, other) = (matching(one), matching(other));
        if let Some(reading) = Reading::of(&other) {
            let walked = Lanes::wanted(&one, &other);
            let read = reading.told(&one, |read| read.0);
            assert_eq!(read, walked.map(|walked| walked.0));
            read_alike += 1;
        }
        let Some(wanted) = Lanes::wanted(&one, &other) else {
            continue;
        };
        let (one, other) = (Conditions::of(&one), Conditions::of(&other));
        let mut rooms = [[(0, 0); LANES]; 2];
        let [first, second] = &mut rooms;
        assert_eq!(one.masks(first), other.masks(second));
        assert_eq!(wanted.0, one.values.0);
        alike += 1;
    }
    // Each but the masked is like itself, and three pairs are alike both ways.
    assert_eq!(alike, 9 + 6);
    // All but the masked and the long can be read so.
    assert_eq!(read_alike, 6 * lines.len());
}

/// Whether `line` is a match that the frame fits.
fn fits(line: &str, frame: &str) -> bool {
    let matching = parse_flow_line(&format!("{line},actions=drop")).expect(line);
    let stack: Stack = frame.parse().expect(frame);
    let headers = Headers::parse(&stack.build(), Depth::Transport).expect(frame);
    let mut lanes = Lanes::new();
    lanes.fill_frame(&headers, PortNo(1));
    lanes.fit(&matching.matching)
}

#[test]
fn terms_of_every_kind_fit_wherever_they_stand() {
    let four = "eth / ipv4(src=10.0.0.1,dst=10.0.0.2) / tcp(src=1000,dst=80)";
    let twelve = "in_port=1,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,dl_vlan=0xffff,tcp,\
                  nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,tp_src=1000,tp_dst=";
    for (line, wanted) in [
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
        assert_eq!(fits(line, four), wanted, "{line}");
    }
    for (port, wanted) in [("80", true), ("81", false), ("0x50/0xfff0", true)] {
        assert_eq!(fits(&format!("{twelve}{port}"), four), wanted, "{port}");
    }
    let six = "eth / ipv6(src=2001:db8::1,dst=2001:db8::2) / udp";
    for (line, wanted) in [
        ("ipv6,ipv6_src=2001:db8::1", true),
        ("ipv6,ipv6_src=2001:db8::2", false),
        ("ipv6,ipv6_dst=2001:db8::/32", true),
        ("ipv6,ipv6_dst=2001:db9::/32", false),
        ("ipv6,ipv6_src=2001:db8::1,ipv6_dst=2001:db8::/64", true),
        ("ipv6,ipv6_src=2001:db8::1,ipv6_dst=::3/::7", false),
    ] {
        assert_eq!(fits(line, six), wanted, "{line}");
    }
}
