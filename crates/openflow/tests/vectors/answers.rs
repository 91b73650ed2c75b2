//! Tests the error replies of a switch to every refused vector: the numbers of the refusal in that
//! version, and the refused message.

use base::{Instant, Xid};
use flow::Refusal;
use openflow::{
    Channel, ChannelEvent, ChannelOptions, ChannelSide, Dialect, ErrorMessage, Hello, Message,
};
use openflow::{Version, VersionSet};

use crate::{Vector, dialect, files_of, parse, setting};

/// `OFPT_ERROR`.
const ERROR: u8 = 1;

#[test]
fn refused_vectors_are_answered_with_code_and_excerpt() {
    let mut count = 0;
    for version in Version::ALL {
        for vector in vectors(version) {
            let dialect = dialect(&vector, version);
            let Err(malformed) = Message::decode(&vector.bytes, dialect) else {
                continue;
            };
            // An error is never answered with an error.
            if vector.bytes[1] == ERROR {
                continue;
            }
            // In a stream the length of a message is always its header's.
            if vector.bytes[2..4]
                != u16::try_from(vector.bytes.len())
                    .expect("fits")
                    .to_be_bytes()
            {
                continue;
            }
            let mut channel = switch_up(&vector, version);
            channel.handle_input(&vector.bytes, Instant::START);
            let head = &vector.head;
            let Some(ChannelEvent::Refused(reported)) = channel.poll_event() else {
                panic!("{version}: {head}: not refused");
            };
            assert_eq!(reported, malformed, "{version}: {head}");
            let data = vector.bytes.clone();
            // An error for a bad version has the version of its request.
            let (version, dialect) = match (malformed.refusal, vector.bytes[0]) {
                (Refusal::RequestBadVersion, number) => {
                    let version = Version::from_number(number).unwrap_or(Version::V10);
                    (version, version.into())
                }
                _ => (version, dialect),
            };
            let error = Message::Error(ErrorMessage::new(malformed.refusal, version, data));
            let xid = u32::from_be_bytes(vector.bytes[4..8].try_into().expect("four bytes"));
            assert_eq!(channel.pending(), bytes(xid, &error, dialect), "{head}");
            count += 1;
        }
    }
    assert!(count > 0);
}

/// All vectors of a version.
fn vectors(version: Version) -> Vec<Vector> {
    let files = files_of(&format!("v1{}", version as u8));
    let text = |path| std::fs::read_to_string(path).expect("the file can be read");
    files.iter().flat_map(|path| parse(&text(path)).1).collect()
}

/// The switch end of a channel that is up and has the settings of the vector, with nothing pending.
fn switch_up(vector: &Vector, version: Version) -> Channel {
    let mut channel = Channel::new(
        ChannelSide::Switch,
        ChannelOptions::default(),
        Instant::START,
    );
    let hello = Message::Hello(Hello::new(VersionSet::only(version)));
    channel.handle_input(&bytes(1, &hello, version.into()), Instant::START);
    for word in &vector.dialect {
        let message = Message::NiciraSetting(setting(word));
        channel.handle_input(&bytes(2, &message, version.into()), Instant::START);
    }
    while channel.poll_event().is_some() {}
    channel.transmitted(channel.backlog());
    channel
}

fn bytes(xid: u32, message: &Message, dialect: Dialect) -> Vec<u8> {
    let mut out = Vec::new();
    let encoded = message.encode(Xid(xid), dialect, &mut out);
    encoded.expect("the version has it");
    out
}
