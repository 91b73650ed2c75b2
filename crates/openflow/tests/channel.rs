//! Tests of a channel, both ends, without sockets or a clock.

use std::time::Duration;

use base::{Cookie, Instant, PortNo, TableId, Xid};
use flow::{
    Action, Consistency, Extension, FlowFlags, FlowMod, FlowModCommand, Instructions, Match,
    MetadataWrite, PortDesc, Refusal, SwitchConfig,
};
use openflow::{
    Channel, ChannelEvent, ChannelOptions, ChannelSide, Dialect, DownReason, ErrorCode,
    ErrorMessage, Excerpt, FlowFormat, Hello, Malformed, Message, MultipartReply, MultipartRequest,
    NiciraSetting, ReceivedMessage, Version, VersionSet, split_message,
};
use testkit::channel_pair::{ChannelPair, events};

const SECOND: Duration = Duration::from_secs(1);

fn options_for(versions: VersionSet) -> ChannelOptions {
    ChannelOptions {
        versions,
        ..ChannelOptions::default()
    }
}

/// The switch end of a channel that is up in this version, with nothing pending.
fn switch_up(version: Version) -> Channel {
    let mut channel = Channel::new(
        ChannelSide::Switch,
        ChannelOptions::default(),
        Instant::START,
    );
    channel.handle_input(&hello(VersionSet::only(version)), Instant::START);
    assert_eq!(events(&mut channel), [ChannelEvent::Up(version)]);
    channel.transmitted(channel.backlog());
    channel
}

fn hello(versions: VersionSet) -> Vec<u8> {
    bytes(Xid(1), &Message::Hello(Hello::new(versions)), Version::V13)
}

fn bytes(xid: Xid, message: &Message, dialect: impl Into<Dialect>) -> Vec<u8> {
    let mut out = Vec::new();
    message
        .encode(xid, dialect, &mut out)
        .expect("the version has it");
    out
}

/// Removes and decodes the pending messages.
fn take_sent(channel: &mut Channel, version: Version) -> Vec<(Xid, Message)> {
    let mut rest = channel.pending();
    let mut sent = Vec::new();
    while let Some((message, tail)) = split_message(rest).expect("own lengths are valid") {
        sent.push(Message::decode(message, version).expect("own encoding decodes"));
        rest = tail;
    }
    channel.transmitted(channel.backlog());
    sent
}

// --- negotiation

#[test]
fn channels_negotiate_newest_common_version() {
    for (switch, controller, agreed) in [
        (VersionSet::ALL, VersionSet::ALL, Version::V15),
        (
            VersionSet::ALL,
            VersionSet::only(Version::V13),
            Version::V13,
        ),
        (
            VersionSet::ALL,
            VersionSet::only(Version::V10),
            Version::V10,
        ),
        (
            VersionSet::only(Version::V10),
            VersionSet::ALL,
            Version::V10,
        ),
    ] {
        let mut pair = ChannelPair::new(options_for(switch), options_for(controller));
        pair.drive();
        assert_eq!(events(&mut pair.switch), [ChannelEvent::Up(agreed)]);
        assert_eq!(events(&mut pair.controller), [ChannelEvent::Up(agreed)]);
        assert_eq!(pair.switch.version(), Some(agreed));
    }
}

#[test]
fn version_sets_negotiate_newest_common_or_fail() {
    // Bits 1 to 6 are OpenFlow 1.0 to 1.5.
    for switch in 1..64_u32 {
        for controller in 1..64_u32 {
            let (own, peer_versions) = (VersionSet(switch << 1), VersionSet(controller << 1));
            let mut pair = ChannelPair::new(options_for(own), options_for(peer_versions));
            pair.drive();
            let newest = (1..=6_u8)
                .rev()
                .find(|bit| switch & controller & 1 << (bit - 1) != 0)
                .and_then(Version::from_number);
            assert_eq!(pair.switch.version(), newest, "{own} and {peer_versions}");
            assert_eq!(
                pair.controller.version(),
                newest,
                "{own} and {peer_versions}"
            );
        }
    }
}

#[test]
fn hello_bitmap_overrides_header_version() {
    // A peer with 1.0, 1.3 and a version that does not exist, which its header has.
    let mut channel = Channel::new(
        ChannelSide::Switch,
        ChannelOptions::default(),
        Instant::START,
    );
    let peer = Hello {
        highest: 7,
        versions: Some(VersionSet(1 << 1 | 1 << 4 | 1 << 7)),
    };
    let hello = bytes(Xid(1), &Message::Hello(peer), Version::V13);
    channel.handle_input(&hello, Instant::START);
    assert_eq!(events(&mut channel), [ChannelEvent::Up(Version::V13)]);
}

#[test]
fn hello_without_bitmap_negotiates_lower_header_version() {
    for (highest, agreed) in [
        (1, Some(Version::V10)),
        (4, Some(Version::V13)),
        (6, Some(Version::V14)),
        (7, Some(Version::V14)),
        (2, None),
        (0, None),
    ] {
        let versions = [Version::V10, Version::V13, Version::V14];
        let options = options_for(versions.into_iter().collect());
        let mut channel = Channel::new(ChannelSide::Switch, options, Instant::START);
        let peer = Hello {
            highest,
            versions: None,
        };
        let hello = bytes(Xid(1), &Message::Hello(peer), Version::V13);
        channel.handle_input(&hello, Instant::START);
        assert_eq!(channel.version(), agreed, "{highest}");
    }
}

#[test]
fn version_mismatch_sends_error_text_and_closes_channel() {
    let mut pair = ChannelPair::new(
        options_for(VersionSet::only(Version::V10)),
        options_for(VersionSet::only(Version::V13)),
    );
    let now = pair.now();
    let hello = pair.controller.pending().to_vec();
    let greeting = pair.switch.backlog();
    pair.switch.handle_input(&hello, now);
    let peer_versions = VersionSet::only(Version::V13);
    let down = ChannelEvent::Down(DownReason::Incompatible(peer_versions));
    assert_eq!(events(&mut pair.switch), [down]);
    // The error has the version in the peer's hello.
    let error = pair.switch.pending()[greeting..].to_vec();
    let Ok((_, Message::Error(ErrorMessage { code, data }))) =
        Message::decode(&error, Version::V13)
    else {
        panic!("not an error");
    };
    assert_eq!(code.refusal(Version::V13), Some(Refusal::HelloIncompatible));
    let text = String::from_utf8(data).expect("it is text");
    assert_eq!(text, "no version in common: we speak 0x01, you speak 0x04");
}

#[test]
fn error_instead_of_hello_is_reported_with_text() {
    let mut channel = Channel::new(
        ChannelSide::Controller,
        ChannelOptions::default(),
        Instant::START,
    );
    let error = ErrorMessage::new(Refusal::HelloPermission, Version::V10, b"not you".to_vec());
    let error = bytes(Xid(0), &Message::Error(error), Version::V10);
    channel.handle_input(&error, Instant::START);
    let down = DownReason::HelloRefused {
        code: ErrorCode::Plain { kind: 0, code: 1 },
        text: "not you".to_owned(),
    };
    assert_eq!(events(&mut channel), [ChannelEvent::Down(down)]);
}

#[test]
fn message_before_hello_closes_channel() {
    let mut channel = Channel::new(
        ChannelSide::Switch,
        ChannelOptions::default(),
        Instant::START,
    );
    let request = bytes(Xid(1), &Message::FeaturesRequest, Version::V13);
    channel.handle_input(&request, Instant::START);
    assert_eq!(
        events(&mut channel),
        [ChannelEvent::Down(DownReason::HelloExpected(5))]
    );
}

#[test]
fn hello_timeout_closes_channel() {
    let mut channel = Channel::new(
        ChannelSide::Switch,
        ChannelOptions::default(),
        Instant::START,
    );
    let due = channel.next_timeout().expect("it waits");
    assert_eq!(
        due,
        Instant::START + ChannelOptions::default().hello_timeout
    );
    channel.handle_input(&[4, 0, 0], Instant::START);
    channel.handle_timeout(Instant::from_secs(4));
    assert!(!channel.is_down(), "it was not due yet");
    channel.handle_timeout(due);
    assert_eq!(
        events(&mut channel),
        [ChannelEvent::Down(DownReason::HelloTimeout)]
    );
    assert_eq!(channel.next_timeout(), None);
}

#[test]
fn message_after_hello_is_decoded_in_negotiated_version() {
    let mut channel = Channel::new(
        ChannelSide::Switch,
        ChannelOptions::default(),
        Instant::START,
    );
    let mut input = hello(VersionSet::only(Version::V10));
    input.extend(bytes(Xid(2), &Message::FeaturesRequest, Version::V10));
    channel.handle_input(&input, Instant::START);
    assert!(matches!(
        &events(&mut channel)[..],
        [ChannelEvent::Up(Version::V10), ChannelEvent::Received(received)]
            if matches!(
                **received,
                ReceivedMessage {
                    xid: Xid(2),
                    message: Message::FeaturesRequest,
                    ..
                }
            )
    ));
}

#[test]
fn second_hello_is_ignored() {
    let mut channel = switch_up(Version::V13);
    channel.handle_input(&hello(VersionSet::only(Version::V10)), Instant::START);
    assert_eq!(events(&mut channel), []);
    assert_eq!(channel.version(), Some(Version::V13));
    assert_eq!(channel.backlog(), 0);
}

// --- splitting of the stream

#[test]
fn messages_are_independent_of_input_chunking() {
    for chunk in [1, 3, 7, 8, 64, 1 << 20] {
        let mut pair = ChannelPair::connected(ChannelOptions::default());
        pair.chunk = chunk;
        let requests = [
            Message::FeaturesRequest,
            Message::EchoRequest(vec![7; 300]),
            Message::MultipartRequest(MultipartRequest::Description),
            Message::BarrierRequest,
        ];
        for (xid, request) in (10..).map(Xid).zip(&requests) {
            pair.controller.send(xid, request).expect("1.3 has it");
        }
        pair.drive();
        let received: Vec<_> = events(&mut pair.switch)
            .into_iter()
            .map(|event| match event {
                ChannelEvent::Received(received) => (received.xid, received.message),
                event => panic!("{event:?}"),
            })
            .collect();
        let expected = [
            (Xid(10), requests[0].clone()),
            (Xid(12), requests[2].clone()),
            (Xid(13), requests[3].clone()),
        ];
        assert_eq!(received, expected, "in pieces of {chunk}");
        let [ChannelEvent::Received(echo)] = &events(&mut pair.controller)[..] else {
            panic!("the echo request was answered");
        };
        assert_eq!(echo.message, Message::EchoReply(vec![7; 300]));
    }
}

#[test]
fn length_shorter_than_header_closes_channel() {
    for length in 0..8 {
        let mut channel = switch_up(Version::V13);
        channel.handle_input(&[4, 5, 0, length, 0, 0, 0, 1], Instant::START);
        let down = ChannelEvent::Down(DownReason::BadLength(length.into()));
        assert_eq!(events(&mut channel), [down]);
    }
}

#[test]
fn closed_channel_ignores_input_and_sends_nothing() {
    let mut channel = switch_up(Version::V13);
    let mut input = vec![4, 5, 0, 0, 0, 0, 0, 1];
    input.extend(bytes(Xid(2), &Message::FeaturesRequest, Version::V13));
    channel.handle_input(&input, Instant::START);
    assert_eq!(events(&mut channel).len(), 1);
    channel.handle_input(&input, Instant::START);
    channel
        .send(Xid(1), &Message::BarrierReply)
        .expect("it is ignored");
    channel.refuse(Xid(1), Refusal::RequestBadType, &Excerpt::of(&[]));
    channel.handle_timeout(Instant::from_secs(1_000));
    assert_eq!(events(&mut channel), []);
    assert_eq!(channel.backlog(), 0);
}

// --- refusals

#[test]
fn malformed_message_is_answered_with_all_of_it() {
    let mut channel = switch_up(Version::V13);
    let mut bad = vec![4, 99, 0, 200, 0, 0, 0, 42];
    bad.resize(200, 0xab);
    channel.handle_input(&bad, Instant::START);
    let malformed = Malformed {
        refusal: Refusal::RequestBadType,
        at: 0,
    };
    assert_eq!(events(&mut channel), [ChannelEvent::Refused(malformed)]);
    let error = ErrorMessage::new(Refusal::RequestBadType, Version::V13, bad);
    assert_eq!(
        take_sent(&mut channel, Version::V13),
        [(Xid(42), Message::Error(error))]
    );
}

#[test]
fn wrong_version_is_refused_and_channel_stays_up() {
    let mut channel = switch_up(Version::V13);
    let request = bytes(Xid(7), &Message::FeaturesRequest, Version::V10);
    channel.handle_input(&request, Instant::START);
    // The error has the version of the request.
    let error = ErrorMessage::new(Refusal::RequestBadVersion, Version::V10, request);
    assert_eq!(
        take_sent(&mut channel, Version::V10),
        [(Xid(7), Message::Error(error))]
    );
    assert_eq!(channel.version(), Some(Version::V13));
}

#[test]
fn error_for_longest_message_is_truncated_to_longest_message() {
    for version in Version::ALL {
        let mut channel = switch_up(version);
        let mut bad = vec![version.number(), 99, 0xff, 0xff, 0, 0, 0, 42];
        bad.resize(usize::from(u16::MAX), 0xab);
        channel.handle_input(&bad, Instant::START);
        let length = Excerpt::LENGTH_MAX;
        let error = ErrorMessage::new(Refusal::RequestBadType, version, bad[..length].to_vec());
        assert_eq!(
            take_sent(&mut channel, version),
            [(Xid(42), Message::Error(error))]
        );
    }
}

#[test]
fn switch_refuses_messages_only_switch_may_send() {
    let mut channel = switch_up(Version::V13);
    let reply = bytes(Xid(7), &Message::BarrierReply, Version::V13);
    channel.handle_input(&reply, Instant::START);
    let [(Xid(7), Message::Error(error))] = &take_sent(&mut channel, Version::V13)[..] else {
        panic!("it is refused");
    };
    assert_eq!(
        error.code.refusal(Version::V13),
        Some(Refusal::RequestBadType)
    );
}

#[test]
fn debug_actions_are_accepted_by_option() {
    let actions = [Extension::DebugSlow, Extension::DebugRecirc].map(Action::Extended);
    for (version, action) in [Version::V10, Version::V13].into_iter().zip(actions) {
        let instructions = Instructions::apply(vec![action]);
        let command = FlowMod::new(FlowModCommand::Add, 5, Match::any(), instructions);
        let message = bytes(Xid(7), &Message::FlowMod(command), version);
        for debug_actions in [true, false] {
            let options = ChannelOptions {
                debug_actions,
                ..options_for(VersionSet::only(version))
            };
            let mut channel = Channel::new(ChannelSide::Switch, options, Instant::START);
            channel.handle_input(&hello(VersionSet::only(version)), Instant::START);
            channel.transmitted(channel.backlog());
            channel.handle_input(&message, Instant::START);
            let refusal = match &take_sent(&mut channel, version)[..] {
                [(Xid(7), Message::Error(error))] => error.code.refusal(version),
                _ => None,
            };
            let expected = (!debug_actions).then_some(Refusal::ActionBadExperimenterType);
            assert_eq!(refusal, expected, "{version:?}");
        }
    }
}

#[test]
fn controller_reports_malformed_message_without_answering() {
    let mut pair = ChannelPair::connected(ChannelOptions::default());
    let now = pair.now();
    pair.controller
        .handle_input(&[4, 99, 0, 8, 0, 0, 0, 1], now);
    assert!(matches!(
        events(&mut pair.controller)[..],
        [ChannelEvent::Refused(_)]
    ));
    assert_eq!(pair.controller.backlog(), 0);
}

#[test]
fn error_is_not_answered_with_error() {
    let mut channel = switch_up(Version::V13);
    channel.handle_input(&[4, 1, 0, 8, 0, 0, 0, 1], Instant::START);
    assert!(matches!(
        events(&mut channel)[..],
        [ChannelEvent::Refused(_)]
    ));
    assert_eq!(channel.backlog(), 0);
}

#[test]
fn refuse_encodes_code_of_negotiated_version() {
    for (version, kind, code) in [(Version::V10, 4, 0), (Version::V13, 7, 0)] {
        let mut channel = switch_up(version);
        channel.refuse(Xid(3), Refusal::PortModBadPort, &Excerpt::of(b"message"));
        let error = ErrorMessage {
            code: ErrorCode::Plain { kind, code },
            data: b"message".to_vec(),
        };
        assert_eq!(
            take_sent(&mut channel, version),
            [(Xid(3), Message::Error(error))]
        );
    }
}

// --- liveness

#[test]
fn silent_peer_is_probed_then_declared_unresponsive() {
    let mut pair = ChannelPair::connected(ChannelOptions::default());
    pair.cut = true;
    pair.advance(5 * SECOND);
    assert_eq!(
        take_sent(&mut pair.switch, Version::V15),
        [(Xid(0), Message::EchoRequest(Vec::new()))]
    );
    assert_eq!(events(&mut pair.switch), []);
    pair.advance(5 * SECOND);
    assert_eq!(
        events(&mut pair.switch),
        [ChannelEvent::Down(DownReason::Unresponsive)]
    );
}

#[test]
fn answered_probes_keep_channel_up_without_events() {
    let mut pair = ChannelPair::connected(ChannelOptions::default());
    pair.advance(3_600 * SECOND);
    assert_eq!(events(&mut pair.switch), []);
    assert_eq!(events(&mut pair.controller), []);
    assert_eq!(pair.switch.version(), Some(Version::V15));
}

#[test]
fn partial_message_does_not_reset_liveness() {
    let mut channel = switch_up(Version::V13);
    let message = bytes(Xid(1), &Message::EchoRequest(vec![0; 100]), Version::V13);
    for (second, byte) in (0..9).zip(&message) {
        channel.handle_input(&[*byte], Instant::from_secs(second));
        channel.handle_timeout(Instant::from_secs(second));
    }
    channel.handle_timeout(Instant::from_secs(10));
    assert_eq!(
        events(&mut channel),
        [ChannelEvent::Down(DownReason::Unresponsive)]
    );
}

#[test]
fn message_after_probe_counts_as_answer() {
    let mut channel = switch_up(Version::V13);
    channel.handle_timeout(Instant::from_secs(5));
    let request = bytes(Xid(1), &Message::BarrierRequest, Version::V13);
    channel.handle_input(&request, Instant::from_secs(9));
    channel.handle_timeout(Instant::from_secs(10));
    assert!(!channel.is_down());
    assert_eq!(channel.next_timeout(), Some(Instant::from_secs(14)));
}

#[test]
fn echo_reply_with_own_xid_is_reported() {
    let mut pair = ChannelPair::connected(ChannelOptions::default());
    pair.controller
        .send(Xid(77), &Message::EchoRequest(b"mine".to_vec()))
        .expect("every version has echoes");
    pair.drive();
    let [ChannelEvent::Received(received)] = &events(&mut pair.controller)[..] else {
        panic!("not one message");
    };
    let ReceivedMessage { xid, message, .. } = &**received;
    assert_eq!(
        (*xid, message),
        (Xid(77), &Message::EchoReply(b"mine".to_vec()))
    );
}

// --- limits

#[test]
fn longest_message_is_received() {
    let mut channel = switch_up(Version::V13);
    let longest = bytes(
        Xid(1),
        &Message::EchoRequest(vec![1; usize::from(u16::MAX) - 8]),
        Version::V13,
    );
    assert_eq!(longest.len(), usize::from(u16::MAX));
    channel.handle_input(&longest, Instant::START);
    assert_eq!(channel.backlog(), longest.len());
}

#[test]
fn channel_with_unread_output_is_congested() {
    let options = ChannelOptions {
        backlog_max: 1_000,
        ..ChannelOptions::default()
    };
    let mut pair = ChannelPair::connected(options);
    assert!(!pair.switch.is_congested());
    pair.cut = true;
    while !pair.switch.is_congested() {
        pair.switch
            .send(Xid(1), &Message::BarrierReply)
            .expect("1.3 has it");
    }
    assert_eq!(pair.switch.backlog(), 1_000);
    pair.cut = false;
    pair.drive();
    assert!(!pair.switch.is_congested());
    assert_eq!(events(&mut pair.controller).len(), 125);
}

// --- messages that the channel handles itself

#[test]
fn oversized_reply_is_sent_in_parts() {
    for version in Version::ALL {
        let mut pair = ChannelPair::connected(options_for(VersionSet::only(version)));
        let ports: Vec<_> = (1..=3_000).map(port).collect();
        let reply = MultipartReply::PortDesc(ports.clone());
        pair.switch
            .send(Xid(5), &reply.into())
            .expect("both versions have it");
        pair.drive();
        let (mut collected, mut parts) = (Vec::new(), 0);
        let mut more_expected = true;
        for event in events(&mut pair.controller) {
            let ChannelEvent::Received(received) = event else {
                panic!("{event:?}");
            };
            let ReceivedMessage { xid, message, .. } = *received;
            let Message::MultipartReply { reply, more } = message else {
                panic!("{message:?}");
            };
            assert!(more_expected, "nothing follows the last part");
            assert_eq!(xid, Xid(5));
            more_expected = more;
            parts += 1;
            let MultipartReply::PortDesc(part) = reply else {
                panic!("{reply:?}");
            };
            collected.extend(part);
        }
        assert!(!more_expected && parts > 1, "{parts} parts");
        assert_eq!(collected, ports);
    }
}

fn port(number: u32) -> PortDesc {
    PortDesc {
        number: PortNo(number),
        hw_addr: packet::MacAddr::from_u64(number.into()),
        name: format!("port{number}"),
        config: flow::PortConfig::default(),
        state: flow::PortState::default(),
        current: flow::PortFeatures::FD_10G,
        advertised: flow::PortFeatures::default(),
        supported: flow::PortFeatures::default(),
        peer: flow::PortFeatures::default(),
        speed_kbps: 0,
        speed_kbps_max: 0,
    }
}

#[test]
fn unsupported_message_is_not_sent() {
    let mut pair = ChannelPair::connected(options_for(VersionSet::only(Version::V10)));
    let error = pair
        .controller
        .send(Xid(1), &Message::GetAsyncRequest)
        .expect_err("1.0 lacks it");
    assert_eq!(error.to_string(), "OpenFlow10 cannot express this message");
    assert_eq!(pair.controller.backlog(), 0);
}

#[test]
fn nicira_settings_apply_to_both_ends() {
    let mut pair = ChannelPair::connected(options_for(VersionSet::only(Version::V10)));
    let delete = FlowMod {
        consistency: Consistency::Waived,
        table: TableId(3),
        ..FlowMod::new(
            FlowModCommand::Delete,
            0,
            Match::any(),
            Instructions::default(),
        )
    };
    let message = Message::FlowMod(delete);
    assert!(
        pair.controller.send(Xid(1), &message).is_err(),
        "there are no tables in plain 1.0"
    );
    for extension in [
        NiciraSetting::TableIds(true),
        NiciraSetting::FlowFormat(FlowFormat::Nicira),
    ] {
        pair.controller
            .send(Xid(2), &Message::NiciraSetting(extension))
            .expect("1.0 has it");
    }
    pair.controller
        .send(Xid(3), &message)
        .expect("the settings enable it");
    pair.drive();
    let [ChannelEvent::Received(received)] = &events(&mut pair.switch)[..] else {
        panic!("settings cause no event");
    };
    assert_eq!(received.message, message);

    // Flow-removed messages now have the table.
    let removed = Message::FlowRemoved(flow::FlowRemoved {
        matching: Match::any(),
        cookie: Cookie(1),
        priority: 2,
        reason: flow::FlowRemovedReason::Delete,
        table: TableId(3),
        duration: SECOND,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        packets: 4,
        bytes: 5,
    });
    pair.switch.send(Xid(0), &removed).expect("1.0 has it");
    pair.drive();
    let [ChannelEvent::Received(received)] = &events(&mut pair.controller)[..] else {
        panic!("not one message");
    };
    assert_eq!(received.message, removed);
}

#[test]
fn well_formed_message_can_be_refused_with_its_excerpt() {
    let mut pair = ChannelPair::connected(ChannelOptions::default());
    let config = SwitchConfig::default();
    pair.controller
        .send(Xid(9), &Message::SetConfig(config))
        .expect("1.3 has it");
    pair.drive();
    let [ChannelEvent::Received(received)] = &events(&mut pair.switch)[..] else {
        panic!("not one message");
    };
    pair.switch
        .refuse(received.xid, Refusal::ConfigPermission, &received.excerpt);
    pair.drive();
    let [ChannelEvent::Received(collected)] = &events(&mut pair.controller)[..] else {
        panic!("not one message");
    };
    let ReceivedMessage { message, xid, .. } = &**collected;
    let request = bytes(Xid(9), &Message::SetConfig(config), Version::V15);
    let error = ErrorMessage::new(Refusal::ConfigPermission, Version::V15, request);
    assert_eq!((*xid, message), (Xid(9), &Message::Error(error)));
}

// --- recycled messages

/// Flow-mods with all members that the version has, and with none.
fn flow_mods(version: Version) -> Vec<Message> {
    let outputs = |count| (1..=count).map(|port| Action::output(PortNo(port)));
    let matching = |line: &str| line.parse::<Match>().expect(line);
    let mut rich = FlowMod::new(
        FlowModCommand::Add,
        7,
        matching("in_port=1,tcp,nw_src=10.0.0.0/8,tp_dst=80"),
        Instructions::apply(outputs(3).collect()),
    );
    (rich.cookie, rich.idle_timeout_s, rich.hard_timeout_s) = (Cookie(5), 6, 7);
    rich.flags = FlowFlags::SEND_FLOW_REMOVED.with(FlowFlags::CHECK_OVERLAP);
    let mut delete = FlowMod::new(
        FlowModCommand::Delete,
        0,
        Match::any(),
        Instructions::default(),
    );
    (delete.table, delete.out_port) = (TableId::ALL, PortNo(9));
    if version == Version::V10 {
        rich.consistency = Consistency::Waived;
        delete.consistency = Consistency::Waived;
    } else {
        rich.instructions.write = outputs(2).collect();
        rich.instructions.goto = Some(TableId(4));
        let (value, mask) = (1, 3);
        rich.instructions.metadata = Some(MetadataWrite { value, mask });
        rich.instructions.clear = true;
        (delete.cookie, delete.cookie_mask) = (Cookie(1), 2);
    }
    if version <= Version::V11 {
        rich.flags = rich.flags.with(FlowFlags::RESET_COUNTS);
    }
    let mut plain = rich.clone();
    plain.instructions = Instructions::apply(outputs(1).collect());
    plain.matching = Match::any();
    plain.flags = FlowFlags(rich.flags.0 & FlowFlags::RESET_COUNTS.0);
    [rich, plain, delete].map(Message::FlowMod).into()
}

#[test]
fn decoding_into_recycled_message_equals_fresh_decoding() {
    for version in Version::ALL {
        let mut sent = flow_mods(version);
        sent.extend([Message::BarrierRequest, Message::GetConfigRequest]);
        for (first, second) in sent
            .iter()
            .flat_map(|one| sent.iter().map(move |two| (one, two)))
        {
            let mut channel = switch_up(version);
            for message in [first, second, first] {
                let bytes = bytes(Xid(3), message, version);
                channel.handle_input(&bytes, Instant::START);
                let Some(ChannelEvent::Received(received)) = channel.poll_event() else {
                    panic!("{version}: {message:?} is read");
                };
                assert_eq!((received.xid, &received.message), (Xid(3), message));
                assert_eq!(received.excerpt, Excerpt::of(&bytes));
                channel.recycle(vec![received]);
            }
        }
    }
}
