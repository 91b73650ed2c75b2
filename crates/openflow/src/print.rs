//! Formats whole messages as `ovs-ofctl ofp-print` of Open vSwitch 3.1 does, for users and for
//! comparisons of two codecs.
//!
//! The printer reads bytes, not a [`Message`](crate::Message): it prints the wire format, including
//! parts that a message omits (a buffer id, an unknown flag) or that a switch would refuse. It
//! decodes matches, actions and properties with the codec's own readers, so that the text shows how
//! the switch reads them. `messages` maps each kind to its printer; each family of messages has a
//! file.
//!
//! `flow::text` formats matches and actions. This module parses no text.

mod action;
mod bundle;
mod config;
mod controllers;
mod error;
mod error_names;
mod field_names;
mod flow;
mod flow_stats;
mod forward;
mod frame;
mod group;
mod hello;
mod ipfix;
mod match10;
mod messages;
mod meter;
mod monitor;
mod multipart;
mod packet;
mod packet_nicira;
mod port;
mod port_counters;
mod queue;
mod refusal_names;
mod table;
mod table_features;
mod text;
mod tlv_table;

use ::flow::text::NameMap;

use crate::codec::{Malformed, Reader};
use crate::dialect::{Dialect, NiciraSetting};
use crate::header::Header;
use crate::kinds::{MessageKind, TypeNumber};
use crate::message::hello::NUMBER as HELLO;
use crate::message::message_row;
use crate::version::Version;
use ::flow::Refusal;
pub use frame::describe as describe_frame;
use refusal_names::DecodeErrorName;
#[cfg(test)]
pub(crate) use refusal_names::refusal_name as name_of;
use text::PrintBuffer;

/// The verbosity of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Detail(
    /// The verbosity of `ovs-ofctl`: from 1 on it includes frames and counters, from 2 on the data
    /// of an echo, from 3 on the bytes of a frame, and from 5 on the bytes of the message.
    pub u8,
);

impl Detail {
    /// The default of `ovs-ofctl ofp-print`.
    pub const USUAL: Self = Self(2);
    /// The verbosity for each message in a file (`ofp-parse`), and for a nested message.
    pub const BRIEF: Self = Self(1);
    /// Includes the bytes of frames.
    const FRAME_BYTES: Self = Self(3);
    /// Includes the bytes of the message.
    const BYTES: Self = Self(5);
}

/// The maximum nesting: bundles contain messages and errors quote them, each in the other.
const NESTING_MAX: usize = 8;

/// Formats the message in `bytes` as lines of text. Undecodable bytes are dumped.
#[must_use]
pub fn print(bytes: &[u8], detail: Detail) -> String {
    print_named(bytes, detail, NameMap::empty())
}

/// Like [`print()`], but with port names in groups and in port statistics.
#[must_use]
pub fn print_named(bytes: &[u8], detail: Detail, names: &NameMap) -> String {
    print_within(
        bytes,
        PrintContext {
            detail,
            names,
            depth: 0,
        },
    )
}

/// The options and the nesting of a printed message.
#[derive(Clone, Copy, Debug)]
struct PrintContext<'a> {
    detail: Detail,
    /// The names of ports.
    names: &'a NameMap,
    /// The number of messages around this one.
    depth: usize,
}

impl PrintContext<'_> {
    /// The context of a nested message.
    const fn within(self, detail: Detail) -> Self {
        let depth = self.depth + 1;
        Self {
            detail,
            depth,
            ..self
        }
    }
}

/// Formats a list of actions, or returns the name of its error.
pub(crate) fn actions(r: Reader<'_>) -> Result<String, &'static str> {
    action::list(r, NameMap::empty()).map_err(|DecodeErrorName(name)| name)
}

/// Formats instructions, or returns the name of their error.
pub(crate) fn instructions(mut r: Reader<'_>) -> Result<String, &'static str> {
    action::instructions(&mut r).map_err(|DecodeErrorName(name)| name)
}

/// Open vSwitch's name of the error.
pub(crate) fn reason(malformed: Malformed) -> &'static str {
    DecodeErrorName::from(malformed).0
}

/// Like [`print()`], for a message at some depth.
fn print_within(bytes: &[u8], context: PrintContext<'_>) -> String {
    if bytes.is_empty() {
        return "OpenFlow message is empty\n".to_owned();
    }
    let mut text = PrintBuffer::new(bytes, context);
    let Some(header) = Header::peek(bytes) else {
        write!(
            text,
            "OpenFlow packet too short (only {} bytes):",
            bytes.len()
        );
        return text.with_dump();
    };
    let length = usize::from(header.length);
    if length > bytes.len() {
        if let Ok(info) = MessageInfo::of(&header, bytes) {
            info.write_title(&header, &mut text);
            text.end_line();
        }
        write!(
            text,
            "(***truncated to {} bytes from {length}***)",
            bytes.len()
        );
        return text.with_dump();
    }
    if length < bytes.len() {
        write!(
            text,
            "(***only uses {length} bytes out of {}***)",
            bytes.len()
        );
        return text.with_dump();
    }
    match print_whole(&header, bytes, &mut text) {
        Ok(()) if context.detail < Detail::BYTES => text.finish(),
        Ok(()) => text.with_dump(),
        Err(DecodeErrorName(name)) => {
            text.separate_error();
            write!(text, "***decode error: {name}***");
            text.with_dump()
        }
    }
}

/// The type of a message, and a reader of its body.
struct MessageInfo<'a> {
    kind: MessageKind,
    printer: &'static messages::MessagePrinter,
    number: TypeNumber,
    body_min: usize,
    body: Reader<'a>,
}

impl<'a> MessageInfo<'a> {
    /// The type of the message that begins with `header`.
    fn of(header: &Header, bytes: &'a [u8]) -> Result<Self, Malformed> {
        let hello = header.kind == HELLO && header.version != 0;
        let unknown = Malformed {
            refusal: Refusal::RequestBadType,
            at: 0,
        };
        // A hello and an error have the same format in future versions.
        let newest = Version::ALL[Version::ALL.len() - 1];
        let version = Version::from_number(header.version);
        let lasting = header.version > newest.number() && header.kind <= error::NUMBER;
        let version = version
            .or_else(|| lasting.then_some(newest))
            .ok_or(unknown)?;
        let dialect = Dialect::new(version).after(NiciraSetting::TableIds(true));
        let mut body = Reader::new(bytes, dialect);
        Header::decode(&mut body)?;
        let found = message_row(header, &mut body)?;
        Ok(Self {
            kind: found.kind,
            printer: messages::printer(found.kind),
            number: found.number,
            body_min: if hello { 0 } else { found.body_min },
            body,
        })
    }

    /// Writes the name, the version and the transaction id.
    fn write_title(&self, header: &Header, text: &mut PrintBuffer<'_>) {
        match self.kind {
            MessageKind::MultipartRequest | MessageKind::MultipartReply => {
                multipart::write_name(self.kind, self.body.clone(), text);
            }
            _ => write!(text, "{}", self.printer.name(self.number)),
        }
        match header.version {
            1 => {}
            version @ 2..=6 => write!(text, " (OF1.{})", version - 1),
            version => write!(text, " (OF 0x{version:02x})"),
        }
        write!(text, " (xid=0x{:x}):", header.xid.0);
    }
}

/// Writes a message that has the length of its header.
fn print_whole(
    header: &Header,
    bytes: &[u8],
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let mut info = MessageInfo::of(header, bytes)?;
    let body_min = info.printer.body_min(info.body_min, info.body.version());
    if !info
        .printer
        .body
        .takes(body_min, info.body.len(), info.body.version())
    {
        return Err(info.body.fail(Refusal::RequestBadLength).into());
    }
    if matches!(
        info.kind,
        MessageKind::MultipartRequest | MessageKind::MultipartReply
    ) {
        multipart::check(info.kind, info.body.clone())?;
    }
    info.write_title(header, text);
    text.mark_title();
    (info.printer.print)(&mut info.body, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundle_time_is_printed() {
        let bytes = [
            6, 33, 0, 40, 0, 0, 0, 0, 0, 0, 0, 7, 0, 4, 0, 6, 0, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0,
            0x65, 0x53, 0xf1, 0, 0, 0, 1, 0xf4, 0, 0, 0, 0,
        ];
        let expected = "OFPT_BUNDLE_CONTROL (OF1.5) (xid=0x0):\n bundle_id=0x7 type=COMMIT_REQUEST \
                      flags=ordered time\n time=1700000000.000000500s\n";
        assert_eq!(print(&bytes, Detail::USUAL), expected);
    }

    #[test]
    fn nested_messages_print_up_to_nesting_limit() {
        // Nested errors of 1.3, the innermost about an echo request with a bad type.
        let mut bytes = vec![4, 2, 0, 8, 0, 0, 0, 1];
        for _ in 0..2 * NESTING_MAX {
            let length = u16::try_from(12 + bytes.len()).expect("short");
            let mut around = vec![4, 1];
            around.extend(length.to_be_bytes());
            around.extend([0, 0, 0, 1, 0, 1, 0, 1]);
            around.append(&mut bytes);
            bytes = around;
        }
        let printed = print(&bytes, Detail::USUAL);
        assert_eq!(printed.matches("OFPT_ERROR").count(), 1 + NESTING_MAX);
        assert!(!printed.contains("OFPT_ECHO_REQUEST"));
    }
}
