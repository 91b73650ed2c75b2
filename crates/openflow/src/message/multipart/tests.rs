//! Tests of replies that consist of several messages.

use std::time::Duration;

use base::{Cookie, TableId};
use flow::{Action, FlowFlags, Instructions, Match};

use super::*;
use crate::message::Message;

fn rule(priority: u16, actions: usize) -> FlowStats {
    FlowStats {
        table: TableId::FIRST,
        priority,
        cookie: Cookie(0),
        matching: Match::any(),
        instructions: Instructions::apply(vec![Action::SetNwSrc(1); actions]),
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        importance: 0,
        flags: FlowFlags::default(),
        duration: Duration::ZERO,
        idle_age: Duration::ZERO,
        hard_age: Duration::ZERO,
        packets: 0,
        bytes: 0,
    }
}

/// The messages of a reply, each with its more flag.
fn parts(message: &Message, version: Version) -> Vec<(MultipartReply, bool)> {
    let mut out = Vec::new();
    message
        .encode(Xid(7), version, &mut out)
        .expect("the version has the message");
    let mut rest = &out[..];
    let mut parts = Vec::new();
    while let Some(header) = Header::peek(rest) {
        let (part, behind) = rest.split_at(header.length.into());
        rest = behind;
        match Message::decode(part, version) {
            Ok((Xid(7), Message::MultipartReply { reply, more })) => parts.push((reply, more)),
            other => panic!("{other:?}"),
        }
    }
    parts
}

#[test]
fn parts_are_full_and_carry_more_flag_except_last() {
    let rules: Vec<_> = (0..2_000).map(|priority| rule(priority, 0)).collect();
    let reply = MultipartReply::Flow(FlowFormat::Standard, rules);
    // 56 bytes each in 1.3, 88 in 1.0.
    for (version, count) in [(Version::V13, 2), (Version::V10, 3)] {
        let parts = parts(&reply.clone().into(), version);
        assert_eq!(parts.len(), count, "{version}");
        let more: Vec<_> = parts.iter().map(|(_, more)| *more).collect();
        assert_eq!(more.last(), Some(&false));
        assert!(more[..count - 1].iter().all(|more| *more));
        let mut parts = parts.into_iter().map(|(reply, _)| reply);
        let mut whole = parts.next().expect("there is one");
        for part in parts {
            whole.append(part).expect("parts of one reply");
        }
        assert_eq!(whole, reply);
    }
}

#[test]
fn part_of_longer_reply_carries_more_flag() {
    let message = Message::MultipartReply {
        reply: MultipartReply::Port(Vec::new()),
        more: true,
    };
    assert_eq!(
        parts(&message, Version::V13),
        [(MultipartReply::Port(Vec::new()), true)]
    );
}

#[test]
fn empty_reply_is_one_message() {
    let empty = MultipartReply::Flow(FlowFormat::Standard, Vec::new());
    assert_eq!(parts(&empty.clone().into(), Version::V10), [(empty, false)]);
}

#[test]
fn oversized_rule_is_refused() {
    // An action has eight bytes in 1.0 and sixteen in 1.3.
    let rules = vec![rule(1, 1), rule(2, 8_000), rule(3, 1)];
    let reply = MultipartReply::Flow(FlowFormat::Standard, rules);
    let [(stats, false)] = &parts(&reply.clone().into(), Version::V10)[..] else {
        panic!("it fits in 1.0");
    };
    assert_eq!(stats, &reply);
    let mut out = Vec::new();
    let refused = Message::from(reply).encode(Xid(7), Version::V13, &mut out);
    assert!(refused.is_err() && out.is_empty());
}

#[test]
fn replies_of_different_kinds_are_not_appended() {
    let mut ports = MultipartReply::Port(Vec::new());
    let tables = MultipartReply::Table(Vec::new());
    assert_eq!(ports.append(tables.clone()), Err(tables));
}

#[test]
fn requests_encode_in_versions_that_have_their_kind() {
    for (request, version, has) in [
        (MultipartRequest::Meter(MeterId::ALL), Version::V10, false),
        (
            MultipartRequest::TableFeatures(Vec::new()),
            Version::V10,
            false,
        ),
        (MultipartRequest::PortDesc(PortNo::ANY), Version::V10, true),
        (MultipartRequest::GroupDesc(GroupId(7)), Version::V10, true),
        (MultipartRequest::GroupDesc(GroupId(7)), Version::V13, false),
        (MultipartRequest::GroupDesc(GroupId(7)), Version::V15, true),
        (
            MultipartRequest::Flow(FlowFormat::Nicira, FlowStatsRequest::all()),
            Version::V13,
            false,
        ),
    ] {
        let mut out = Vec::new();
        let message = Message::MultipartRequest(request);
        let done = message.encode(Xid(1), version, &mut out);
        assert_eq!(done.is_ok(), has, "{message:?} in {version}");
        if has {
            assert_eq!(Message::decode(&out, version), Ok((Xid(1), message)));
        } else {
            assert!(out.is_empty(), "a failed encoding leaves no bytes");
        }
    }
}

#[test]
fn group_features_include_group_and_meter_actions() {
    let features = MultipartReply::GroupFeatures(GroupFeatures {
        capabilities: flow::GroupCapabilities::default(),
        groups_max: [1; 4],
    });
    let mut out = Vec::new();
    let written = Message::from(features).encode(Xid(1), Version::V15, &mut out);
    assert_eq!(written, Ok(()));
    let actions: [u8; 4] = out[out.len() - 4..].try_into().expect("four bytes");
    let actions = u32::from_be_bytes(actions);
    // OFPAT_GROUP is 22, OFPAT_METER 29 (OF 1.5.1, 7.2.6).
    assert_eq!((actions >> 22 & 1, actions >> 29 & 1), (1, 1));
}
