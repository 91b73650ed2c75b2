//! Tests of the encoding of actions.

use std::slice;

use base::PortNo;
use flow::{Extension, Match, Subfield};

use super::numbers::ACTIONS;
use super::*;
use crate::codec::{EncodeError, Writer};
use crate::dialect::Dialect;
use crate::fidelity::Fidelity;

fn write(actions: &[Action], matching: &Match, version: Version) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    let context = EncodeContext {
        matching,
        fidelity: Fidelity::Lossless,
    };
    encode(actions, context, &mut Writer::new(&mut out, version.into()))?;
    Ok(out)
}

fn read(bytes: &[u8], version: Version) -> Result<Vec<Action>, Malformed> {
    decode(&mut Reader::new(bytes, Dialect::new(version)))
}

/// One of each action that every version has.
fn common() -> Vec<Action> {
    vec![
        Action::output(PortNo(3)),
        Action::Output {
            port: PortNo::CONTROLLER,
            max_len: MaxLen(64),
        },
        Action::Enqueue {
            port: PortNo(3),
            queue: QueueId(7),
        },
        Action::SetQueue(QueueId(7)),
        Action::Group(GroupId(9)),
        Action::set(Field::EthSrc, 0x0200_0000_0001),
        Action::PopVlan,
        Action::PushMpls(0x8847),
        Action::PopMpls(0x0800),
        Action::SetMplsTtl(3),
        Action::DecMplsTtl,
        Action::DecIpTtl,
        load(Field::IpEcn, 0, 2, 2),
        load(Field::Ipv6Src, 64, 64, 1 << 36),
        Action::set(Field::MplsLabel, 0xf_ffff),
        Action::set(Field::MplsTc, 7),
        Action::set(Field::TunnelId, 5),
        Action::set(Field::TunnelId, 1 << 40),
        load(Field::ArpOp, 0, 16, 2),
        load(Field::Metadata, 4, 4, 5),
    ]
}

/// A load of `bits` bits.
fn load(field: Field, offset: u16, bits: u16, value: u64) -> Action {
    let to = Subfield::new(field, offset, bits).expect("it is within the field");
    Action::Extended(Extension::Load { to, value })
}

#[test]
fn action_numbers_are_unique_and_lengths_are_legal() {
    for version in Version::ALL {
        for row in ACTIONS.iter().filter(|row| row.versions.contains(&version)) {
            let found = ActionRow::by_number(row.number, version).expect("it is there");
            assert_eq!(found.kind, row.kind);
            let (ActionLength::Exactly(length) | ActionLength::AtLeast(length)) = row.length;
            assert!(length >= 8 && length % 8 == 0, "{:?}", row.kind);
        }
    }
}

#[test]
fn action_in_memory_is_at_most_six_times_its_wire_size() {
    // An action has at least eight bytes on the wire: a message of 65,535 bytes decodes to at most
    // 400 kB.
    assert!(size_of::<Action>() <= 6 * 8);
}

/// The form of the action in the version: 1.5 has one action for all writes, and 1.0 has loads of
/// MPLS fields.
fn in_version(action: Action, version: Version) -> Action {
    match action {
        Action::SetField {
            field: field @ (Field::MplsLabel | Field::MplsTc),
            value,
            ..
        } if version == Version::V10 => {
            let bits = field.full_mask().count_ones();
            let bits = u16::try_from(bits).expect("it is narrow");
            load(field, 0, bits, u64::try_from(value).expect("it is narrow"))
        }
        Action::Extended(Extension::Load { to, value }) if version == Version::V15 => {
            Action::SetField {
                field: to.field(),
                value: to.place(value.into()),
                mask: to.mask(),
            }
        }
        action => action,
    }
}

#[test]
fn common_actions_round_trip_in_all_versions() {
    for version in Version::ALL {
        for action in common() {
            let bytes = write(slice::from_ref(&action), &Match::any(), version)
                .unwrap_or_else(|error| panic!("{error}: {action:?}"));
            assert_eq!(bytes.len() % 8, 0);
            assert_eq!(
                read(&bytes, version),
                Ok(vec![in_version(action, version)]),
                "{version}"
            );
        }
    }
}

#[test]
fn version_specific_actions_are_refused_by_other_versions() {
    let old = [
        Action::SetVlanVid(5),
        Action::SetVlanPcp(5),
        Action::SetNwSrc(5),
        Action::SetNwDst(5),
        Action::SetNwTos(0x10),
        Action::SetTpSrc(5),
        Action::SetTpDst(5),
    ];
    for action in old {
        let bytes = write(slice::from_ref(&action), &Match::any(), Version::V10);
        let bytes = bytes.expect("1.0 has it");
        assert_eq!(read(&bytes, Version::V10), Ok(vec![action.clone()]));
        assert!(read(&bytes, Version::V13).is_err(), "{action:?}");
    }
    for action in [
        Action::PushVlan(0x88a8),
        Action::CopyTtlIn,
        Action::CopyTtlOut,
    ] {
        let bytes = write(slice::from_ref(&action), &Match::any(), Version::V13);
        let bytes = bytes.expect("1.3 has it");
        assert_eq!(read(&bytes, Version::V13), Ok(vec![action.clone()]));
        assert!(write(&[action], &Match::any(), Version::V10).is_err());
    }
}

#[test]
fn best_effort_encoding_omits_unsupported_actions() {
    let mut out = Vec::new();
    let context = EncodeContext {
        matching: &Match::any(),
        fidelity: Fidelity::BestEffort,
    };
    let actions = [
        Action::CopyTtlIn,
        Action::output(PortNo(1)),
        Action::output(PortNo(0x1_0000)),
        Action::PushVlan(0x8100),
        Action::set(Field::VlanVid, 0x1005),
    ];
    encode(
        &actions,
        context,
        &mut Writer::new(&mut out, Version::V10.into()),
    )
    .expect("best effort");
    assert_eq!(
        read(&out, Version::V10),
        Ok(vec![Action::output(PortNo(1)), Action::SetVlanVid(5)])
    );
}

#[test]
fn masked_set_field_becomes_one_load_per_run_of_ones() {
    let action = Action::SetField {
        field: Field::EthDst,
        value: 0x0100_0000_0005,
        mask: 0xff00_0000_00ff,
    };
    let bytes = write(&[action], &Match::any(), Version::V13).expect("Nicira's extension has it");
    assert_eq!(bytes.len(), 2 * 24);
    let loads = vec![load(Field::EthDst, 0, 8, 5), load(Field::EthDst, 40, 8, 1)];
    assert_eq!(read(&bytes, Version::V13), Ok(loads));
}

#[test]
fn pop_queue_after_single_output_folds_into_enqueue() {
    let set = || Action::SetQueue(QueueId(7));
    let out = || Action::output(PortNo(2));
    let pop = [0xff, 0xff, 0, 16, 0, 0, 0x23, 0x20, 0, 5, 0, 0, 0, 0, 0, 0];
    let with_pop = |actions: &[Action]| {
        let mut bytes = write(actions, &Match::any(), Version::V13).expect("1.3 has it");
        bytes.extend(pop);
        read(&bytes, Version::V13).map_err(|malformed| malformed.refusal)
    };
    let enqueue = Action::Enqueue {
        port: PortNo(2),
        queue: QueueId(7),
    };
    assert_eq!(with_pop(&[out(), set(), out()]), Ok(vec![out(), enqueue]));
    for others in [
        vec![],
        vec![set(), out(), out()],
        vec![set(), out(), set(), out()],
    ] {
        let mut read = others.clone();
        read.push(Action::Extended(flow::Extension::PopQueue));
        assert_eq!(with_pop(&others), Ok(read));
    }
}

#[test]
fn reg_load2_accepts_mask() {
    // NXAST_REG_LOAD2 of a masked eth_src: 10 + 4 + 12 bytes, and padding.
    let mut bytes = vec![0xff, 0xff, 0, 32, 0, 0, 0x23, 0x20, 0, 33];
    bytes.extend([0, 0, 5, 12, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0xff]);
    bytes.extend([0; 6]);
    let set = Action::SetField {
        field: Field::EthSrc,
        value: 5,
        mask: 0xff,
    };
    assert_eq!(read(&bytes, Version::V10), Ok(vec![set.clone()]));
    assert_eq!(read(&bytes, Version::V13), Ok(vec![set]));
    bytes[19] = 6;
    bytes[25] = 1;
    let refusal = read(&bytes, Version::V13).map_err(|malformed| malformed.refusal);
    assert_eq!(refusal, Err(Refusal::ActionBadSetArgument));
}

#[test]
fn header_of_a_mapped_tunnel_option_has_its_length() {
    let part = |field| Subfield::new(field, 0, 32).expect("it is within the field");
    let from = part(Field::TunMetadata0);
    let copy = |from| {
        let to = part(Field::Reg0);
        let action = Action::Extended(Extension::Move { from, to });
        write(&[action], &Match::any(), Version::V10).expect("Nicira's extension has it")
    };
    // NXAST_REG_MOVE: 16 bytes precede the header of the source.
    assert_eq!(copy(from)[16..20], [0, 1, 0x50, 124]);
    let mapped = from.with_option_bytes(4);
    assert_eq!(copy(mapped)[16..20], [0, 1, 0x50, 4]);
    let read = read(&copy(mapped), Version::V10).expect("it decodes");
    let expected = Extension::Move {
        from,
        to: part(Field::Reg0),
    };
    assert_eq!(read, [Action::Extended(expected)]);
}
