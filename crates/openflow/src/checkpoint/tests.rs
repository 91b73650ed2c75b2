//! Round trips of checkpoints, and files that are truncated, damaged or of another version.

use base::Cookie;
use flow::text::{parse_flow_line, parse_group_line, parse_meter_line};
use flow::{TlvMapping, TlvTableMod};

use super::*;

/// Rules with matches and actions of several versions and extensions.
const RULES: [&str; 9] = [
    "table=0,priority=7,cookie=0x1234,idle_timeout=10,hard_timeout=20,tcp,tp_dst=80,actions=output:2",
    "table=3,in_port=1,dl_vlan=5,actions=pop_vlan,set_field:02:00:00:00:00:01->eth_dst,group:7",
    "table=1,importance=9,send_flow_rem,ipv6,ipv6_dst=fe80::/10,actions=dec_ttl,controller:65535",
    "table=2,reg3=5,metadata=0x10/0xf0,actions=load:0x7->NXM_NX_REG0[0..7],resubmit(,4)",
    "table=4,conj_id=9,ip,actions=learn(table=5,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[])",
    "table=4,ip,nw_src=10.0.0.1,actions=conjunction(9,1/2)",
    "table=5,tun_metadata0=0x12345678,actions=set_field:0x9->tun_id,output:3",
    "table=6,priority=0,actions=NORMAL",
    "table=6,priority=0xffff,arp,actions=drop",
];

fn messages() -> Vec<Message> {
    let mapping = TlvMapping {
        class: 0xffff,
        kind: 1,
        length: 4,
        index: 0,
    };
    let mut messages = vec![
        Message::TlvTableMod(TlvTableMod {
            command: TlvCommand::Add,
            mappings: vec![mapping],
        }),
        Message::MeterMod(
            parse_meter_line("meter=1,pktps,bands=type=drop,rate=10").expect("legal"),
        ),
        Message::GroupMod(
            parse_group_line("group_id=7,type=select,bucket=bucket_id:1,weight:3,output:2")
                .expect("legal"),
        ),
    ];
    let rules = RULES.map(|line| Message::FlowMod(parse_flow_line(line).expect(line)));
    messages.extend(rules);
    messages
}

fn checkpoint() -> Checkpoint {
    let address = CheckpointAddress {
        vid: 5,
        mac: MacAddr([2, 0, 0, 0, 0, 9]),
        port: PortNo(3),
        is_static: true,
    };
    let bridge = |name: &str, messages| CheckpointBridge {
        name: name.to_owned(),
        datapath_id: DatapathId(0xabc),
        messages,
        addresses: vec![
            address,
            CheckpointAddress {
                is_static: false,
                ..address
            },
        ],
    };
    Checkpoint {
        bridges: vec![bridge("br0", messages()), bridge("br1", Vec::new())],
    }
}

#[test]
fn checkpoint_round_trip_loses_nothing() {
    let before = checkpoint();
    let (file, counts) = before.encode();
    let exact = messages().len();
    assert_eq!(
        counts,
        CheckpointCounts {
            exact,
            ..CheckpointCounts::default()
        }
    );
    let after = Checkpoint::parse(&file).expect("a whole file");
    assert_eq!(after.bridges.len(), 2);
    for (before, after) in before.bridges.iter().zip(&after.bridges) {
        assert_eq!(
            (&before.name, before.datapath_id),
            (&after.name, after.datapath_id)
        );
        assert_eq!(before.addresses, after.addresses);
        assert_eq!(before.messages.len(), after.messages.len());
        for (before, after) in before.messages.iter().zip(&after.messages) {
            assert!(is_equivalent(before, after), "{before:?} {after:?}");
        }
    }
    let Message::FlowMod(first) = &after.bridges[0].messages[3] else {
        panic!("a rule");
    };
    assert_eq!((first.cookie, first.hard_timeout_s), (Cookie(0x1234), 20));
    assert_eq!(after.encode(), (file, counts));
}

#[test]
fn empty_checkpoint_is_valid() {
    let (file, _) = Checkpoint::default().encode();
    assert_eq!(file.len(), HEADER_LEN);
    assert_eq!(Checkpoint::parse(&file), Ok(Checkpoint::default()));
}

#[test]
fn truncated_checkpoint_is_refused_at_every_length() {
    let (file, _) = checkpoint().encode();
    for length in 0..file.len() {
        let error = Checkpoint::parse(&file[..length]).expect_err("truncated");
        let is_expected = match length {
            0..8 => error == CheckpointError::NoCheckpoint,
            _ => matches!(error, CheckpointError::Length { .. }),
        };
        assert!(is_expected, "{length}: {error}");
    }
    let mut longer = file;
    longer.push(0);
    assert!(matches!(
        Checkpoint::parse(&longer),
        Err(CheckpointError::Length { .. })
    ));
}

#[test]
fn damaged_checkpoint_is_refused_at_every_byte() {
    let (file, _) = checkpoint().encode();
    for place in 0..file.len() {
        let mut damaged = file.clone();
        damaged[place] ^= 0x20;
        Checkpoint::parse(&damaged).expect_err("damaged");
    }
}

#[test]
fn checkpoint_of_another_format_is_refused() {
    let (mut file, _) = checkpoint().encode();
    file[11] = 2;
    assert_eq!(Checkpoint::parse(&file), Err(CheckpointError::Format(2)));
    assert_eq!(
        Checkpoint::parse(b"ovsdb").map_err(|error| error.to_string()),
        Err("not a checkpoint".to_owned())
    );
}

/// Returns the problem of records that a valid header precedes.
fn problem(records: &[(u8, Vec<u8>)]) -> Option<RecordProblem> {
    let mut writer = CheckpointWriter::default();
    for (kind, payload) in records {
        writer.push(*kind, payload);
    }
    let (file, _) = writer.finish();
    match Checkpoint::parse(&file) {
        Err(CheckpointError::Record { problem, .. }) => Some(problem),
        _ => None,
    }
}

#[test]
fn malformed_records_are_refused() {
    let bridge = (BRIDGE, [&[0; 8][..], b"br0"].concat());
    let with = |kind, payload: &[u8]| problem(&[bridge.clone(), (kind, payload.to_vec())]);
    assert_eq!(with(9, b""), Some(RecordProblem::Kind(9)));
    assert_eq!(with(BRIDGE, &[0; 8]), Some(RecordProblem::Length(8)));
    assert_eq!(with(BRIDGE, &[0xff; 9]), Some(RecordProblem::Name));
    assert_eq!(with(ADDRESS, &[0; 12]), Some(RecordProblem::Length(12)));
    assert_eq!(with(MESSAGE, &[5, 0, 0]), Some(RecordProblem::Length(3)));
    let mut barrier = Vec::new();
    let encoded = Message::BarrierRequest.encode(Xid(0), Version::V14, &mut barrier);
    encoded.expect("every version has it");
    assert_eq!(with(MESSAGE, &barrier), Some(RecordProblem::Purpose));
    let delete = Message::FlowMod(parse_flow_line("delete tcp").expect("legal"));
    let mut bytes = Vec::new();
    delete
        .encode(Xid(0), Version::V14, &mut bytes)
        .expect("every version has it");
    assert_eq!(with(MESSAGE, &bytes), Some(RecordProblem::Purpose));
    assert_eq!(
        problem(&[(ADDRESS, vec![0; 13])]),
        Some(RecordProblem::NoBridge)
    );
    assert_eq!(problem(&[bridge]), None);
    let records = [BRIDGE, 0, 0, 1, 0];
    assert!(Checkpoint::parse_records(&records).is_err());
}
