//! Targets for the OpenFlow codec and channel. They accept any bytes and panic if an invariant is
//! violated.

use base::{Instant, TableId, Xid};
use flow::{Action, Instructions};
use openflow::{
    Channel, ChannelEvent, ChannelOptions, ChannelSide, Detail, Dialect, Excerpt, FlowFormat,
    Message, MultipartReply, NiciraSetting, PacketInFormat, Version, split_message,
};

/// Decodes the bytes as a message of OpenFlow 1.0, in the dialect that the first byte selects. See
/// [`message`].
pub fn openflow_v10(data: &[u8]) {
    let Some((bits, bytes)) = data.split_first() else {
        return;
    };
    let mut dialect = Dialect::new(Version::V10);
    if bits & 1 == 1 {
        dialect = dialect.after(NiciraSetting::FlowFormat(FlowFormat::Nicira));
    }
    if bits & 2 == 2 {
        dialect = dialect.after(NiciraSetting::TableIds(true));
    }
    message(bytes, dialect);
}

/// Decodes the bytes as a message of OpenFlow 1.1. See [`message`].
pub fn openflow_v11(data: &[u8]) {
    message(data, Dialect::new(Version::V11));
}

/// Decodes the bytes as a message of OpenFlow 1.2. See [`message`].
pub fn openflow_v12(data: &[u8]) {
    message(data, Dialect::new(Version::V12));
}

/// Decodes the bytes as a message of OpenFlow 1.3. See [`message`].
pub fn openflow_v13(data: &[u8]) {
    message(data, Dialect::new(Version::V13));
}

/// Decodes the bytes as a message of OpenFlow 1.4. See [`message`].
pub fn openflow_v14(data: &[u8]) {
    message(data, Dialect::new(Version::V14));
}

/// Decodes the bytes as a message of OpenFlow 1.5. See [`message`].
pub fn openflow_v15(data: &[u8]) {
    message(data, Dialect::new(Version::V15));
}

/// Checks that a message that decodes can be encoded, and decodes again as the same message. The
/// header's length is corrected first: a wrong length is rejected at once and tests nothing.
///
/// Writes of fields are excepted from equality: a Nicira load of arbitrary bits is decoded again as
/// a set action of 1.0 or as several loads; and so is metadata, which 1.0 may write as a field. The
/// second and all later encodings are equal.
///
/// # Panics
/// If a check fails.
pub fn message(bytes: &[u8], dialect: Dialect) {
    let mut bytes = bytes.to_vec();
    bytes.truncate(usize::from(u16::MAX));
    if let Ok(length) = u16::try_from(bytes.len())
        && length >= 8
    {
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
    }
    let Ok((xid, message)) = Message::decode(&bytes, dialect) else {
        return;
    };
    let dialect = dialect_of(&message, &bytes, dialect);
    let mut once = Vec::new();
    if let Err(error) = message.encode(xid, dialect, &mut once) {
        // Fields are sorted and lists translated, so some messages near the maximum length exceed
        // it when they are encoded.
        assert!(bytes.len() > 1 << 14, "{error}: {message:?}");
        return;
    }
    let decoded = decode_all(&once, dialect).expect("an encoded message decodes");
    if !writes_fields(&message) {
        assert_eq!((decoded.0, unquoted(decoded.1)), (xid, unquoted(message)));
        return;
    }
    let mut twice = Vec::new();
    decoded
        .1
        .encode(decoded.0, dialect, &mut twice)
        .expect("it was encoded before");
    assert_eq!(once, twice, "{message:?}");
}

/// Prints the bytes as a message, with the detail that the first byte selects. The text ends with a
/// newline, and its length is bounded by the length of the input.
///
/// # Panics
/// If a check fails.
pub fn print(data: &[u8]) {
    let Some((detail, bytes)) = data.split_first() else {
        return;
    };
    let printed = openflow::print(bytes, Detail(*detail));
    assert!(printed.ends_with('\n'), "{printed:?}");
    // Four bytes of flags print as a line of names, and messages quote one another.
    let length_max = (1 << 12) + bytes.len() * 256;
    assert!(
        printed.len() <= length_max,
        "{} of {}",
        printed.len(),
        bytes.len()
    );
}

/// Removes the quoted bytes of a message, which depend on its encoder.
fn unquoted(mut message: Message) -> Message {
    if let Message::BundleAdd(add) = &mut message {
        (add.excerpt, add.length) = (Excerpt::of(&[]), 0);
    }
    message
}

/// Returns the dialect in which a message was encoded. Nicira's flow-removed, which in 1.0 is
/// recognized by its table, and Nicira's packet-ins are decoded even if no setting enabled them.
fn dialect_of(message: &Message, bytes: &[u8], dialect: Dialect) -> Dialect {
    /// The type in the header of an experimenter message, and the subtype of Nicira's packet-in.
    const EXPERIMENTER: u8 = 4;
    const PACKET_IN: u8 = 17;
    match message {
        Message::PacketIn(_) => {
            let number = bytes.get(15).copied().unwrap_or_default();
            dialect.after(NiciraSetting::PacketInFormat(match bytes[1] {
                EXPERIMENTER if number == PACKET_IN => PacketInFormat::Nicira,
                EXPERIMENTER => PacketInFormat::Nicira2,
                _ => PacketInFormat::Standard,
            }))
        }
        Message::FlowRemoved(removed) if removed.table != TableId::ALL => {
            dialect.after(NiciraSetting::FlowFormat(FlowFormat::Nicira))
        }
        _ => dialect,
    }
}

/// Returns whether a message has an action that writes bits of a field, or of metadata.
fn writes_fields(message: &Message) -> bool {
    let writes = |action: &Action| matches!(action, Action::SetField { .. });
    let any = |instructions: &Instructions| {
        instructions.metadata.is_some() || instructions.actions().any(writes)
    };
    match message {
        Message::FlowMod(flow_mod) => any(&flow_mod.instructions),
        Message::PacketOut(packet_out) => packet_out.actions.iter().any(writes),
        Message::BundleAdd(add) => writes_fields(&add.message),
        Message::GroupMod(group_mod) => group_mod
            .buckets
            .iter()
            .any(|bucket| bucket.actions.iter().any(writes)),
        Message::MultipartReply {
            reply: MultipartReply::Flow(_, rules),
            ..
        } => rules.iter().any(|rule| any(&rule.instructions)),
        _ => false,
    }
}

/// Decodes consecutive messages and joins the parts of a multipart reply.
fn decode_all(mut bytes: &[u8], dialect: Dialect) -> Option<(Xid, Message)> {
    let mut whole: Option<(Xid, Message)> = None;
    while !bytes.is_empty() {
        let (first, rest) = split_message(bytes).ok()??;
        bytes = rest;
        let decoded = Message::decode(first, dialect).ok()?;
        whole = match (whole, decoded) {
            (None, decoded) => Some(decoded),
            (
                Some((xid, Message::MultipartReply { mut reply, .. })),
                (_, Message::MultipartReply { reply: part, more }),
            ) => {
                reply.append(part).ok()?;
                Some((xid, Message::MultipartReply { reply, more }))
            }
            _ => return None,
        };
    }
    whole
}

/// Feeds arbitrary chunks to a switch's and a controller's channel at once, with time passing.
/// Nothing panics, and the growth of memory and output is bounded by the length of the input. The
/// first byte of each chunk is its length, the second the time before it in units of 20 ms.
///
/// # Panics
/// If a check fails.
pub fn channel(data: &[u8]) {
    let mut now = Instant::START;
    let mut ends = [ChannelSide::Switch, ChannelSide::Controller]
        .map(|side| Channel::new(side, ChannelOptions::default(), now));
    let mut rest = data;
    while let [length, before, tail @ ..] = rest {
        let (chunk, tail) = tail.split_at(tail.len().min(usize::from(*length)));
        rest = tail;
        now += std::time::Duration::from_millis(u64::from(*before) * 20);
        for end in &mut ends {
            step(end, chunk, now);
        }
    }
}

/// Feeds one end a chunk and drains its events and output.
fn step(end: &mut Channel, chunk: &[u8], now: Instant) {
    let was_down = end.is_down();
    end.handle_timeout(now);
    let before = end.backlog();
    end.handle_input(chunk, now);
    // The shortest message has eight bytes, and the longest reply to it is an error that quotes 64
    // (or an echo as long as the request, which may have begun earlier).
    let growth = end.backlog() - before;
    assert!(
        growth <= (1 << 17) + chunk.len() * 16,
        "{growth} bytes for {}",
        chunk.len()
    );
    let mut downs = 0;
    while let Some(event) = end.poll_event() {
        assert!(!was_down, "a channel that is down reports {event:?}");
        downs += usize::from(matches!(event, ChannelEvent::Down(_)));
        if let ChannelEvent::Received(received) = event {
            end.refuse(
                received.xid,
                flow::Refusal::RequestBadType,
                &received.excerpt,
            );
            // Either side can send every message that the other side decodes.
            let _ = end.send(received.xid, &received.message);
        }
    }
    assert_eq!(usize::from(end.is_down() && !was_down), downs);
    assert_eq!(
        end.version().is_some(),
        end.next_timeout().is_some() && end.version().is_some()
    );
    let pending = end.pending().len();
    end.transmitted(pending / 2);
}
