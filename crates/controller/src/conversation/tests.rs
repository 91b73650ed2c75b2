//! Tests with bytes as input and output.

use testbed::Stamp;

use super::*;

fn at(micros: u64) -> Arrival {
    Arrival {
        at: Instant::from_nanos(micros * 1000),
        by: Stamp::Read,
    }
}

/// Returns the end of a device that has sent its hello.
fn device(version: Version) -> Channel {
    let options = ChannelOptions {
        versions: VersionSet::only(version),
        ..ChannelOptions::default()
    };
    Channel::new(ChannelSide::Switch, options, Instant::START)
}

fn carry(from: &mut Channel) -> Vec<u8> {
    let bytes = from.pending().to_vec();
    from.transmitted(bytes.len());
    bytes
}

fn agreed(version: Version) -> (Conversation, Channel) {
    let mut conversation = Conversation::new(VersionSet::only(version), Instant::START);
    let mut device = device(version);
    device.handle_input(conversation.pending(), Instant::START);
    conversation.transmitted(conversation.pending().len(), Instant::START);
    conversation.handle_input(&carry(&mut device), at(0));
    assert!(conversation.next_message().unwrap().is_none());
    assert_eq!(conversation.version(), Some(version));
    assert_eq!(device.version(), Some(version));
    (conversation, device)
}

#[test]
fn messages_are_reassembled_from_any_fragmentation() {
    for version in Version::ALL {
        let (mut conversation, mut device) = agreed(version);
        device
            .send(Xid(7), &Message::EchoReply(vec![1, 2, 3]))
            .unwrap();
        device.send(Xid(8), &Message::BarrierReply).unwrap();
        let bytes = carry(&mut device);
        let mut incoming = Vec::new();
        for (position, byte) in bytes.iter().enumerate() {
            conversation.handle_input(&[*byte], at(position as u64));
            while let Some(message) = conversation.next_message().unwrap() {
                incoming.push((message.kind, message.xid, message.arrival.at));
            }
        }
        let last = |end: usize| at(end as u64 - 1).at;
        let expected = [
            (IncomingKind::EchoReply, Xid(7), last(11)),
            (IncomingKind::Barrier, Xid(8), last(19)),
        ];
        assert_eq!(incoming, expected, "{version}");
    }
}

#[test]
fn message_counts_as_handed_over_with_its_last_byte() {
    let (mut conversation, _) = agreed(Version::V13);
    let first = conversation.send(&Message::BarrierRequest).unwrap();
    let second = conversation.send(&Message::BarrierRequest).unwrap();
    assert_eq!(conversation.handed_at(first), None);
    conversation.transmitted(9, Instant::from_secs(1));
    assert_eq!(conversation.handed_at(first), Some(Instant::from_secs(1)));
    assert_eq!(conversation.handed_at(second), None);
    conversation.transmitted(7, Instant::from_secs(2));
    assert_eq!(conversation.handed_at(second), Some(Instant::from_secs(2)));
    assert_eq!(conversation.handed_at(Xid(99)), None);
}

#[test]
fn times_are_stored_for_a_bounded_number_of_messages() {
    let (mut conversation, _) = agreed(Version::V10);
    let first = conversation.send(&Message::BarrierRequest).unwrap();
    for _ in 0..TIMES_MAX {
        conversation.send(&Message::BarrierRequest).unwrap();
        let pending = conversation.pending().len();
        conversation.transmitted(pending, Instant::from_secs(1));
    }
    assert_eq!(conversation.times.len(), TIMES_MAX);
    assert_eq!(conversation.handed_at(first), None);
    let last = conversation.last_xid();
    assert_eq!(conversation.handed_at(last), Some(Instant::from_secs(1)));
    assert!(conversation.output.capacity() < 4 * BACKLOG_MAX);
}

#[test]
fn echo_requests_are_answered_internally() {
    let (mut conversation, mut device) = agreed(Version::V13);
    device
        .send(Xid(5), &Message::EchoRequest(b"there?".to_vec()))
        .unwrap();
    conversation.handle_input(&carry(&mut device), at(1));
    assert!(conversation.next_message().unwrap().is_none());
    device.handle_input(conversation.pending(), Instant::START);
    assert!(matches!(device.poll_event(), Some(ChannelEvent::Up(_))));
    let Some(ChannelEvent::Received(reply)) = device.poll_event() else {
        panic!("no answer");
    };
    assert_eq!(reply.xid, Xid(5));
    assert_eq!(reply.message, Message::EchoReply(b"there?".to_vec()));
    assert_eq!(conversation.tally().echo_requests(), 1);
}

#[test]
fn statistics_parts_are_recognized_in_every_version() {
    for version in Version::ALL {
        let (mut conversation, mut device) = agreed(version);
        for more in [true, false] {
            let reply = openflow::MultipartReply::Flow(openflow::FlowFormat::Standard, Vec::new());
            let message = Message::MultipartReply { reply, more };
            device.send(Xid(1), &message).unwrap();
        }
        conversation.handle_input(&carry(&mut device), at(1));
        let mut kinds = Vec::new();
        while let Some(incoming) = conversation.next_message().unwrap() {
            kinds.push(incoming.kind);
        }
        assert_eq!(
            kinds,
            [IncomingKind::StatisticsPart, IncomingKind::Statistics],
            "{version}"
        );
    }
}

#[test]
fn protocol_violations_end_the_connection_with_a_reason() {
    let (mut conversation, _) = agreed(Version::V13);
    conversation.handle_input(&[4, 21, 0, 7, 0, 0, 0, 0], at(1));
    assert_eq!(
        conversation.next_message().unwrap_err(),
        ProtocolViolation::Length(7)
    );

    let (mut conversation, _) = agreed(Version::V13);
    conversation.handle_input(&[1, 19, 0, 8, 0, 0, 0, 0], at(1));
    let text = conversation.next_message().unwrap_err().to_string();
    assert_eq!(
        text,
        "received a message of wire version 0x01 after negotiation of OpenFlow13"
    );
}

#[test]
fn version_mismatch_is_reported_to_both_ends() {
    let mut conversation = Conversation::new(VersionSet::only(Version::V13), Instant::START);
    let mut device = device(Version::V10);
    conversation.handle_input(&carry(&mut device), at(1));
    let text = conversation.next_message().unwrap_err().to_string();
    assert!(text.starts_with("no version in common"), "{text}");
    device.handle_input(conversation.pending(), Instant::START);
    assert!(device.is_down());
}

#[test]
fn input_buffer_is_bounded_for_random_bytes() {
    let mut random = base::SplitMix64::new(7);
    for _ in 0..2_000 {
        let (mut conversation, _) = agreed(Version::V10);
        for _ in 0..8 {
            let bytes: Vec<u8> = (0..random.next_u64() % 400)
                .map(|_| random.next_u64().to_be_bytes()[0] & 0x13)
                .collect();
            conversation.handle_input(&bytes, at(1));
            let outcome = loop {
                match conversation.next_message() {
                    Ok(Some(incoming)) => drop(incoming.message()),
                    Ok(None) => break true,
                    Err(_) => break false,
                }
            };
            if !outcome {
                break;
            }
            assert!(conversation.input.len() <= 0xffff + 400);
        }
    }
}
