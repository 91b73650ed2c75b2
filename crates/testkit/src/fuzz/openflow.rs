//! Targets of the OpenFlow codec and channel. They accept any bytes and panic
//! where a promise is broken.

use base::{Instant, TableId, Xid};
use flow::{Action, Instructions};
use openflow::{
    Channel, ChannelEvent, ChannelOptions, ChannelSide, Detail, Dialect, Excerpt, FlowFormat,
    Message, MultipartReply, NiciraSetting, PacketInFormat, Version,
};

/// Decodes the bytes as a message of OpenFlow 1.0, in the dialect that the first
/// of them names. See [`message`].
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

/// What decodes can be encoded and means the same when it is decoded again. The
/// header's length is corrected first: what a wrong one does is soon known.
///
/// Writes of fields are excepted from the last: Nicira loads any bits at once,
/// and they come back as a setter of 1.0 or as several loads; and so is metadata,
/// which 1.0 may write as a field. But they come back the same from then on.
///
/// # Panics
/// If it does not hold.
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
        // Fields are put in order and lists translated, which makes some of the
        // longest messages longer than any may be.
        assert!(bytes.len() > 1 << 14, "{error}: {message:?}");
        return;
    }
    let again = decode_all(&once, dialect).expect("we understand ourselves");
    if !writes_fields(&message) {
        assert_eq!((again.0, unquoted(again.1)), (xid, unquoted(message)));
        return;
    }
    let mut twice = Vec::new();
    again
        .1
        .encode(again.0, dialect, &mut twice)
        .expect("it was encoded before");
    assert_eq!(once, twice, "{message:?}");
}

/// Prints the bytes as a message, in as much detail as the first of them says: it
/// ends in a whole line and is no longer than the bytes account for.
///
/// # Panics
/// If it does not hold.
pub fn print(data: &[u8]) {
    let Some((detail, bytes)) = data.split_first() else {
        return;
    };
    let printed = openflow::print(bytes, Detail(*detail));
    assert!(printed.ends_with('\n'), "{printed:?}");
    // Four bytes of flags are a line of names, and messages quote one another.
    let most = (1 << 12) + bytes.len() * 256;
    assert!(
        printed.len() <= most,
        "{} of {}",
        printed.len(),
        bytes.len()
    );
}

/// A message without what it quotes of its own bytes, which differ if another wrote it.
fn unquoted(mut message: Message) -> Message {
    if let Message::BundleAdd(add) = &mut message {
        (add.excerpt, add.length) = (Excerpt::of(&[]), 0);
    }
    message
}

/// The dialect in which a message was written: Nicira's flow-removed, which 1.0
/// tells by the table in it, and its packet-ins are read whether they were asked for
/// or not.
fn dialect_of(message: &Message, bytes: &[u8], dialect: Dialect) -> Dialect {
    /// What stands in the header of an experimenter's message, and the numbers of
    /// Nicira's packet-ins.
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
        Message::FlowRemoved(told) if told.table != TableId::ALL => {
            dialect.after(NiciraSetting::FlowFormat(FlowFormat::Nicira))
        }
        _ => dialect,
    }
}

/// Whether a message has an action that writes bits of a field, or of metadata.
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

/// Messages that follow each other, put together if they are parts of one.
fn decode_all(mut bytes: &[u8], dialect: Dialect) -> Option<(Xid, Message)> {
    let mut whole: Option<(Xid, Message)> = None;
    while let Some(length) = bytes.get(2..4) {
        let length = u16::from_be_bytes([length[0], length[1]]);
        let (first, rest) = bytes.split_at_checked(usize::from(length))?;
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

/// Any chunks of bytes, to a switch's and a controller's channel at once, with
/// time passing: nothing panics, and neither memory nor output grows beyond what
/// the input accounts for. Of each chunk, the first byte says how long it is and
/// the second what comes before it.
///
/// # Panics
/// If it does not hold.
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

/// Gives one end a chunk and takes everything from it.
fn step(end: &mut Channel, chunk: &[u8], now: Instant) {
    let was_down = end.is_down();
    end.handle_timeout(now);
    let before = end.backlog();
    end.handle_input(chunk, now);
    // The shortest message has eight bytes, and the longest answer to it is an error
    // that quotes 64 (or an echo as long as the request, which may have begun earlier).
    let grown = end.backlog() - before;
    assert!(
        grown <= (1 << 17) + chunk.len() * 16,
        "{grown} bytes for {}",
        chunk.len()
    );
    let mut downs = 0;
    while let Some(event) = end.poll_event() {
        assert!(!was_down, "a channel that is down tells {event:?}");
        downs += usize::from(matches!(event, ChannelEvent::Down(_)));
        if let ChannelEvent::Received(received) = event {
            end.refuse(
                received.xid,
                flow::Refusal::RequestBadType,
                &received.excerpt,
            );
            // What one side can read, the other could have sent.
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
