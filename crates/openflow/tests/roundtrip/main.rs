//! Whatever a version can say is read as it was written, and whatever it cannot
//! is left out where that is promised.

mod extensions;
mod groups;
mod monitors;
mod packet_in;
mod strategies;

use base::Xid;
use flow::{Field, FlowStats, Match};
use openflow::{
    Dialect, FlowFormat, Message, MultipartReply, NiciraSetting, PacketInFormat, Version,
    continuation,
};
use proptest::prelude::*;

/// The dialects that a message may be in.
fn dialect() -> impl Strategy<Value = Dialect> {
    let plain = Dialect::new(Version::V10);
    let nicira = plain
        .after(NiciraSetting::FlowFormat(FlowFormat::Nicira))
        .after(NiciraSetting::TableIds(true));
    let later = Version::ALL[1..].iter().copied().map(Dialect::new);
    let mut dialects = vec![plain, nicira];
    dialects.extend(later);
    let forms = [PacketInFormat::Nicira, PacketInFormat::Nicira2];
    let asked = dialects
        .clone()
        .into_iter()
        .flat_map(|dialect| forms.map(|form| dialect.after(NiciraSetting::PacketInFormat(form))));
    dialects.extend(asked);
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

/// The rules that a reply tells.
fn told(rules: &[FlowStats], form: FlowFormat, dialect: Dialect) -> Vec<FlowStats> {
    let message = Message::reply(MultipartReply::Flow(form, rules.to_vec()));
    match Message::decode(&write(&message, Xid(0), dialect), dialect) {
        Ok((
            _,
            Message::MultipartReply {
                reply: MultipartReply::Flow(_, told),
                more: false,
            },
        )) => told,
        other => panic!("{other:?}"),
    }
}

/// Whether `told` leaves out nothing that `meant` accepts. That there is no tag,
/// which a rule may ask of some bits of it, 1.0 says of all.
fn is_as_wide(told: &Match, meant: &Match) -> bool {
    let untagged = |matching: &Match| {
        matching
            .term(Field::VlanVid)
            .is_some_and(|term| term.value == 0 && term.mask & 0x1000 != 0)
    };
    let both_untagged = untagged(told) && untagged(meant);
    told.terms()
        .filter(|term| !(both_untagged && term.field == Field::VlanVid))
        .all(|term| {
            meant.term(term.field).is_some_and(|meant| {
                meant.mask & term.mask == term.mask && meant.value & term.mask == term.value
            })
        })
}

proptest! {
    #[test]
    fn a_message_is_read_as_it_was_written(
        (dialect, message) in dialect()
            .prop_flat_map(|dialect| (Just(dialect), strategies::message(dialect))),
        xid: u32,
    ) {
        let bytes = write(&message, Xid(xid), dialect);
        prop_assert_eq!(Message::decode(&bytes, dialect), Ok((Xid(xid), message)));
    }

    #[test]
    fn what_is_left_to_be_done_comes_back_whatever_it_is(left in packet_in::left()) {
        let of = base::DatapathId(7);
        let told = continuation::encode(&left, of);
        // As long as the interpreter thinks that it may be, it can be told.
        prop_assert!(told.is_some() || left.bytes() > flow::CONTINUATION_BYTES_MAX);
        if let Some(told) = told {
            prop_assert!(told.len() <= left.bytes());
            prop_assert_eq!(continuation::decode(&told, of), Ok(left));
        }
    }

    #[test]
    fn no_bytes_make_the_codec_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 8..200),
        kind in 0..36_u8,
        dialect in dialect(),
    ) {
        bytes[0] = dialect.version.number();
        bytes[1] = kind;
        testkit::fuzz::openflow::message(&bytes, dialect);
    }

    #[test]
    fn a_message_with_a_few_bytes_changed_never_makes_the_codec_panic(
        (dialect, message) in dialect()
            .prop_flat_map(|dialect| (Just(dialect), strategies::message(dialect))),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = write(&message, Xid(0), dialect);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        testkit::fuzz::openflow::message(&bytes, dialect);
    }

    #[test]
    fn every_rule_is_told_in_every_version_though_not_all_of_it(
        rules in strategies::any_rules(),
    ) {
        for version in Version::ALL {
            let told = told(&rules, FlowFormat::Standard, Dialect::new(version));
            prop_assert_eq!(told.len(), rules.len());
            for (told, rule) in told.iter().zip(&rules) {
                prop_assert_eq!(
                    (told.table, told.priority, told.cookie, told.packets, told.bytes),
                    (rule.table, rule.priority, rule.cookie, rule.packets, rule.bytes)
                );
                prop_assert!(is_as_wide(&told.matching, &rule.matching));
            }
        }
    }
}
