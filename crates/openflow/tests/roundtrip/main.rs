//! Tests that messages decode to the values that were encoded, and that a best-effort encoding
//! omits only parts that the version cannot express.

mod extensions;
mod groups;
mod monitors;
mod packet_in;
mod strategies;

use base::Xid;
use flow::{Field, FlowStats, Match};
use openflow::{
    Dialect, FlowFormat, Message, MultipartReply, NiciraSetting, PacketInFormat, Version,
};
use proptest::prelude::*;

/// The dialects of a message.
fn dialect() -> impl Strategy<Value = Dialect> {
    let plain = Dialect::new(Version::V10);
    let nicira = plain
        .after(NiciraSetting::FlowFormat(FlowFormat::Nicira))
        .after(NiciraSetting::TableIds(true));
    let later = Version::ALL[1..].iter().copied().map(Dialect::new);
    let mut dialects = vec![plain, nicira];
    dialects.extend(later);
    let forms = [PacketInFormat::Nicira, PacketInFormat::Nicira2];
    let with_packet_in_format = dialects
        .clone()
        .into_iter()
        .flat_map(|dialect| forms.map(|form| dialect.after(NiciraSetting::PacketInFormat(form))));
    dialects.extend(with_packet_in_format);
    prop::sample::select(dialects)
}

fn write(message: &Message, xid: Xid, dialect: Dialect) -> Vec<u8> {
    let mut out = vec![0xee];
    message
        .encode(xid, dialect, &mut out)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(out.remove(0), 0xee, "it is appended");
    out
}

/// Encodes and decodes the rules of a reply.
fn reencode_rules(rules: &[FlowStats], form: FlowFormat, dialect: Dialect) -> Vec<FlowStats> {
    let message = Message::reply(MultipartReply::Flow(form, rules.to_vec()));
    match Message::decode(&write(&message, Xid(0), dialect), dialect) {
        Ok((
            _,
            Message::MultipartReply {
                reply: MultipartReply::Flow(_, decoded),
                more: false,
            },
        )) => decoded,
        other => panic!("{other:?}"),
    }
}

/// Returns true if `decoded` accepts everything that `original` accepts. A rule may match some bits
/// of a missing tag; 1.0 then matches all of them.
fn is_as_wide(decoded: &Match, original: &Match) -> bool {
    let untagged = |matching: &Match| {
        matching
            .term(Field::VlanVid)
            .is_some_and(|term| term.value == 0 && term.mask & 0x1000 != 0)
    };
    let both_untagged = untagged(decoded) && untagged(original);
    decoded
        .terms()
        .filter(|term| !(both_untagged && term.field == Field::VlanVid))
        .all(|term| {
            original.term(term.field).is_some_and(|original| {
                original.mask & term.mask == term.mask && original.value & term.mask == term.value
            })
        })
}

proptest! {
    #[test]
    fn message_round_trips(
        (dialect, message) in dialect()
            .prop_flat_map(|dialect| (Just(dialect), strategies::message(dialect))),
        xid: u32,
    ) {
        let bytes = write(&message, Xid(xid), dialect);
        prop_assert_eq!(Message::decode(&bytes, dialect), Ok((Xid(xid), message)));
    }

    #[test]
    fn continuations_round_trip(continuation in packet_in::continuation_state()) {
        let of = base::DatapathId(7);
        let encoded = openflow::continuation::encode(&continuation, of);
        // A continuation up to the interpreter's limit can be encoded.
        prop_assert!(encoded.is_some() || continuation.bytes() > flow::CONTINUATION_BYTES_MAX);
        if let Some(encoded) = encoded {
            prop_assert!(encoded.len() <= continuation.bytes());
            prop_assert_eq!(openflow::continuation::decode(&encoded, of), Ok(continuation));
        }
    }

    #[test]
    fn random_bytes_do_not_panic_codec(
        mut bytes in prop::collection::vec(any::<u8>(), 8..200),
        kind in 0..36_u8,
        dialect in dialect(),
    ) {
        bytes[0] = dialect.version.number();
        bytes[1] = kind;
        testkit::fuzz::openflow::message(&bytes, dialect);
    }

    #[test]
    fn corrupted_message_does_not_panic_codec(
        (dialect, message) in dialect()
            .prop_flat_map(|dialect| (Just(dialect), strategies::message(dialect))),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = write(&message, Xid(0), dialect);
        for (index, byte) in changes {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        testkit::fuzz::openflow::message(&bytes, dialect);
    }

    #[test]
    fn rules_encode_best_effort_in_all_versions(
        rules in strategies::any_rules(),
    ) {
        for version in Version::ALL {
            let decoded = reencode_rules(&rules, FlowFormat::Standard, Dialect::new(version));
            prop_assert_eq!(decoded.len(), rules.len());
            for (decoded, rule) in decoded.iter().zip(&rules) {
                prop_assert_eq!(
                    (decoded.table, decoded.priority, decoded.cookie, decoded.packets, decoded.bytes),
                    (rule.table, rule.priority, rule.cookie, rule.packets, rule.bytes)
                );
                prop_assert!(is_as_wide(&decoded.matching, &rule.matching));
            }
        }
    }
}
