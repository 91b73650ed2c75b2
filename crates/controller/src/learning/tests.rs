//! Tests of learning, and of the answers to packet-ins.

use flow::{FlowMod, PacketInReason, PipelineFields};

use super::*;

const ONE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 2];
const ALL: [u8; 6] = [0xff; 6];

/// Returns a UDP frame of 64 bytes.
fn udp(from: [u8; 6], to: [u8; 6], tag: Option<u16>) -> Vec<u8> {
    let mut frame = [to, from].concat();
    if let Some(control) = tag {
        frame.extend([0x81, 0x00]);
        frame.extend(control.to_be_bytes());
    }
    frame.extend([0x08, 0x00]);
    frame.extend([0x45, 0x24, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x03, 0xe8, 0x07, 0xd0, 0, 26, 0, 0]);
    frame.resize(64, 0);
    frame
}

fn up(data: Vec<u8>, port: u32) -> PacketIn {
    PacketIn {
        reason: PacketInReason::NoMatch,
        table: base::TableId::FIRST,
        cookie: base::Cookie::NONE,
        registers: PipelineFields::new(PortNo(port)),
        total_len: u16::try_from(data.len()).unwrap(),
        data,
        userdata: Vec::new(),
        continuation: Vec::new(),
    }
}

fn outputs(message: &Message) -> PortNo {
    let Message::PacketOut(out) = message else {
        panic!("no packet-out: {message:?}");
    };
    let [Action::Output { port, .. }] = out.actions[..] else {
        panic!("{out:?}");
    };
    port
}

fn rule(message: &Message) -> &FlowMod {
    let Message::FlowMod(rule) = message else {
        panic!("no rule: {message:?}");
    };
    rule
}

#[test]
fn unknown_stations_are_flooded_and_known_ones_get_a_rule() {
    for version in [Version::V10, Version::V13] {
        let mut learning = Learning::default();
        let replies = learning.packet_in(&up(udp(ONE, ALL, None), 1), version);
        assert_eq!(
            replies.iter().map(outputs).collect::<Vec<_>>(),
            [PortNo::FLOOD]
        );
        let replies = learning.packet_in(&up(udp(OTHER, ONE, None), 2), version);
        let [first, second] = &replies[..] else {
            panic!("{replies:?}");
        };
        let rule = rule(first);
        assert_eq!((rule.idle_timeout_s, rule.hard_timeout_s), (60, 0));
        assert_eq!(
            rule.matching.to_string(),
            "udp,in_port=2,vlan_tci=0x0000/0x1fff,dl_src=02:00:00:00:00:02,dl_dst=02:00:00:00:00:01,\
             nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=36,tp_src=1000,tp_dst=2000"
        );
        assert_eq!(outputs(second), PortNo(1));
        for message in &replies {
            message
                .encode(base::Xid(1), version, &mut Vec::new())
                .unwrap();
        }
    }
}

#[test]
fn moved_station_is_relearned_and_its_own_port_gets_no_rule() {
    let mut learning = Learning::default();
    learning.packet_in(&up(udp(ONE, ALL, None), 1), Version::V10);
    assert_eq!(learning.port_of(ONE), Some(PortNo(1)));
    learning.packet_in(&up(udp(ONE, ALL, None), 3), Version::V10);
    assert_eq!(learning.port_of(ONE), Some(PortNo(3)));
    let replies = learning.packet_in(&up(udp(OTHER, ONE, None), 3), Version::V10);
    assert_eq!(
        replies.iter().map(outputs).collect::<Vec<_>>(),
        [PortNo::FLOOD]
    );
}

#[test]
fn tags_and_arp_fields_are_matched_exactly() {
    let tagged = Headers::of(&udp(ONE, OTHER, Some(0x6005))).unwrap();
    assert_eq!((tagged.tag, tagged.kind), (Some((3, 5)), 0x0800));
    let matching = tagged.exact(PortNo(1)).to_string();
    assert!(matching.contains("dl_vlan=5,dl_vlan_pcp=3"), "{matching}");
    let mut request = [ALL, ONE].concat();
    request.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]);
    request.extend(ONE);
    request.extend([10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
    let headers = Headers::of(&request).unwrap();
    let matching = headers.exact(PortNo(1)).to_string();
    assert!(
        matching.contains("arp_spa=10.0.0.1,arp_tpa=10.0.0.2,arp_op=1"),
        "{matching}"
    );
}

#[test]
fn later_fragments_have_no_ports() {
    let mut frame = udp(ONE, OTHER, None);
    frame[14 + 7] = 1;
    let network = Headers::of(&frame).unwrap().network.unwrap();
    assert_eq!(network.transport, None);
}

#[test]
fn truncated_packet_ins_are_not_forwarded() {
    let mut frame = up(udp(ONE, ALL, None), 1);
    frame.total_len += 1;
    let replies = Learning::default().packet_in(&frame, Version::V10);
    assert!(replies.is_empty());
}

#[test]
fn lldp_and_malformed_frames_are_ignored_without_panic() {
    let mut lldp = udp(ONE, ALL, None);
    lldp[12..14].copy_from_slice(&[0x88, 0xcc]);
    let mut learning = Learning::default();
    assert!(learning.packet_in(&up(lldp, 1), Version::V10).is_empty());
    assert_eq!(learning.port_of(ONE), None);
    let whole = udp(ONE, OTHER, Some(5));
    for length in 0..whole.len() {
        learning.packet_in(&up(whole[..length].to_vec(), 1), Version::V10);
    }
    let mut random = base::SplitMix64::new(1);
    for _ in 0..20_000 {
        let mut frame = whole.clone();
        let position = usize::try_from(random.next_u64() % frame.len() as u64).unwrap();
        frame[position] = random.next_u64().to_be_bytes()[0];
        learning.packet_in(&up(frame, 1), Version::V13);
    }
}

#[test]
fn learned_stations_are_bounded() {
    let mut learning = Learning::default();
    for number in 0..u32::try_from(STATIONS_MAX).unwrap() + 10 {
        let [_, a, b, c] = number.to_be_bytes();
        let station = [2, 1, 0, a, b, c];
        learning.packet_in(&up(udp(station, ALL, None), 1), Version::V10);
    }
    assert_eq!(learning.stations.len(), STATIONS_MAX);
    // A known station may move.
    learning.packet_in(&up(udp([2, 1, 0, 0, 0, 0], ALL, None), 2), Version::V10);
    assert_eq!(learning.port_of([2, 1, 0, 0, 0, 0]), Some(PortNo(2)));
}
