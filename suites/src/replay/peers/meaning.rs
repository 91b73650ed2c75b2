//! Translation of events to OpenFlow messages, and of messages to the notation of scripts.

use base::{BucketId, Cookie, Xid};
use flow::{
    Consistency, FlowMod, FlowModCommand, GroupMod, GroupModCommand, MeterModCommand, PacketIn,
    PacketInReason,
};
use openflow::{Dialect, Message, Version};
use packet::Frame;
use testkit::case::{CaseEvent, notation};

/// Returns true if this event may remove rules.
pub(crate) fn deletes(event: &CaseEvent) -> bool {
    match event {
        CaseEvent::Flow(command) => matches!(
            command.command,
            FlowModCommand::Delete | FlowModCommand::DeleteStrict
        ),
        CaseEvent::Group(command) => command.command == GroupModCommand::Delete,
        CaseEvent::Meter(command) => command.command == MeterModCommand::Delete,
        CaseEvent::Time(_) => true,
        _ => false,
    }
}

/// Returns the version of a message: 1.0 for flow-mods without consistency checks, 1.5 for groups
/// with bucket numbers, otherwise 1.3 or the first of 1.5 and 1.1 that can encode it.
pub(super) fn version(message: &Message) -> Version {
    let has_words = |version: &&Version| {
        let mut bytes = Vec::new();
        message
            .encode(Xid(0), Dialect::new(**version), &mut bytes)
            .is_ok()
    };
    match message {
        Message::FlowMod(FlowMod {
            consistency: Consistency::Waived,
            ..
        }) => Version::V10,
        Message::GroupMod(command) if has_numbers(command) => Version::V15,
        _ => {
            let versions = [Version::V13, Version::V15, Version::V11];
            versions
                .iter()
                .find(has_words)
                .copied()
                .unwrap_or(Version::V13)
        }
    }
}

/// Returns true if the bucket numbers differ from the default ones.
fn has_numbers(command: &GroupMod) -> bool {
    let ids = command.buckets.iter().map(|bucket| bucket.id);
    ids.zip(0..).any(|(id, place)| id != BucketId(place))
}

/// Returns an asynchronous message in the notation of scripts.
pub(super) fn asynchronous_line(message: &Message) -> Option<String> {
    match message {
        Message::PacketIn(packet_in) => Some(notation::packet_in_line(
            &head(packet_in),
            &Frame::from_bytes(&packet_in.data),
        )),
        Message::FlowRemoved(removed) => Some(notation::flow_removed_line(removed)),
        _ => None,
    }
}

fn head(packet_in: &PacketIn) -> String {
    let reason = match packet_in.reason {
        PacketInReason::NoMatch => "no_match",
        PacketInReason::InvalidTtl => "invalid_ttl",
        PacketInReason::Action
        | PacketInReason::ActionSet
        | PacketInReason::Group
        | PacketInReason::PacketOut => "action",
    };
    let mut head = format!("packet_in reason={reason} table={}", packet_in.table);
    if packet_in.cookie != Cookie::NONE {
        head += &format!(" cookie={:#x}", packet_in.cookie.0);
    }
    head + &notation::registers_text(&packet_in.registers)
}
