//! Whole messages as text, as `ovs-ofctl ofp-print` of Open vSwitch 3.1 prints
//! them: for people, and for whoever compares two codecs.
//!
//! It reads the bytes, not a [`Message`](crate::Message): what lies on the wire is
//! shown, also what a message leaves out (a kept frame's number, an unknown flag) or
//! what a switch would refuse. Matches, actions and properties are read by the
//! codec's own readers, so that what is printed is what is understood. A row of
//! `rows` names the printer of each kind; each family of messages has a file.
//!
//! The text of matches and actions is in `flow::text`; nothing here is read back.

mod action;
mod bundle;
mod config;
mod controllers;
mod error;
mod error_names;
mod fields;
mod flow;
mod flow_stats;
mod forward;
mod frame;
mod group;
mod hello;
mod ipfix;
mod match10;
mod meter;
mod monitor;
mod multipart;
mod names;
mod packet;
mod packet_nicira;
mod port;
mod port_counters;
mod queue;
mod rows;
mod table;
mod table_features;
mod text;
mod tlv_table;

use ::flow::text::Roster;

use crate::codec::{Malformed, Reader};
use crate::dialect::{Dialect, NiciraSetting};
use crate::header::Header;
use crate::kinds::{Kind, Number};
use crate::message::hello::NUMBER as HELLO;
use crate::message::row_of;
use crate::version::Version;
use ::flow::Refusal;
pub use frame::describe as describe_frame;
use names::Unreadable;
#[cfg(test)]
pub(crate) use names::refusal as name_of;
use text::Text;

/// How much is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Detail(
    /// The number that `ovs-ofctl` takes: from 1 on frames and counts are printed, from
    /// 2 on what an echo carries, from 3 on a frame's bytes, and from 5 on the message's.
    pub u8,
);

impl Detail {
    /// What `ovs-ofctl ofp-print` prints if nothing is said.
    pub const USUAL: Self = Self(2);
    /// What it prints of each message in a file (`ofp-parse`), and of one in another.
    pub const BRIEF: Self = Self(1);
    /// And the bytes of frames.
    const FRAME_BYTES: Self = Self(3);
    /// And the message's bytes.
    const BYTES: Self = Self(5);
}

/// Bundles hold messages, errors quote them, and both may be in each other.
const NESTING_MAX: usize = 8;

/// The message in `bytes` as lines of text. What cannot be read is printed as bytes.
#[must_use]
pub fn print(bytes: &[u8], detail: Detail) -> String {
    print_named(bytes, detail, Roster::nameless())
}

/// As [`print()`]; in groups, and in what ports counted, ports are called by their names.
#[must_use]
pub fn print_named(bytes: &[u8], detail: Detail, names: &Roster) -> String {
    print_within(
        bytes,
        Manner {
            detail,
            names,
            depth: 0,
        },
    )
}

/// How a message is printed.
#[derive(Clone, Copy, Debug)]
struct Manner<'a> {
    detail: Detail,
    /// What ports are called.
    names: &'a Roster,
    /// Within how many other messages it is.
    depth: usize,
}

impl Manner<'_> {
    /// That of a message within.
    const fn within(self, detail: Detail) -> Self {
        let depth = self.depth + 1;
        Self {
            detail,
            depth,
            ..self
        }
    }
}

/// The text of a list of actions, or the name of what is wrong with it.
pub(crate) fn actions(r: Reader<'_>) -> Result<String, &'static str> {
    action::list(r, Roster::nameless()).map_err(|Unreadable(name)| name)
}

/// The text of what a rule does, or the name of what is wrong with it.
pub(crate) fn instructions(mut r: Reader<'_>) -> Result<String, &'static str> {
    action::instructions(&mut r).map_err(|Unreadable(name)| name)
}

/// Open vSwitch's name for what is wrong.
pub(crate) fn reason(malformed: Malformed) -> &'static str {
    Unreadable::from(malformed).0
}

/// As `print`, within so many other messages.
fn print_within(bytes: &[u8], manner: Manner<'_>) -> String {
    if bytes.is_empty() {
        return "OpenFlow message is empty\n".to_owned();
    }
    let mut text = Text::new(bytes, manner);
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
        if let Ok(told) = Told::of(&header, bytes) {
            told.write_title(&header, &mut text);
            text.line();
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
        Ok(()) if manner.detail < Detail::BYTES => text.finish(),
        Ok(()) => text.with_dump(),
        Err(Unreadable(name)) => {
            text.part();
            write!(text, "***decode error: {name}***");
            text.with_dump()
        }
    }
}

/// What a message is, and the reader that stands at its body.
struct Told<'a> {
    kind: Kind,
    row: &'static rows::Row,
    number: Number,
    least: usize,
    body: Reader<'a>,
}

impl<'a> Told<'a> {
    /// What the message is that begins with `header`.
    fn of(header: &Header, bytes: &'a [u8]) -> Result<Self, Malformed> {
        let hello = header.kind == HELLO && header.version != 0;
        let unknown = Malformed {
            refusal: Refusal::RequestBadType,
            at: 0,
        };
        // A hello and an error are the same in versions to come.
        let newest = Version::ALL[Version::ALL.len() - 1];
        let version = Version::from_number(header.version);
        let lasting = header.version > newest.number() && header.kind <= error::NUMBER;
        let version = version
            .or_else(|| lasting.then_some(newest))
            .ok_or(unknown)?;
        let dialect = Dialect::new(version).after(NiciraSetting::TableIds(true));
        let mut body = Reader::new(bytes, dialect);
        Header::decode(&mut body)?;
        let found = row_of(header, &mut body)?;
        Ok(Self {
            kind: found.kind,
            row: rows::of(found.kind),
            number: found.number,
            least: if hello { 0 } else { found.least },
            body,
        })
    }

    /// Writes what the message is called, its version and its transaction.
    fn write_title(&self, header: &Header, text: &mut Text<'_>) {
        match self.kind {
            Kind::MultipartRequest | Kind::MultipartReply => {
                multipart::write_name(self.kind, self.body.clone(), text);
            }
            _ => write!(text, "{}", self.row.name(self.number)),
        }
        match header.version {
            1 => {}
            version @ 2..=6 => write!(text, " (OF1.{})", version - 1),
            version => write!(text, " (OF 0x{version:02x})"),
        }
        write!(text, " (xid=0x{:x}):", header.xid.0);
    }
}

/// Writes the whole of a message that has the length which its header says.
fn print_whole(header: &Header, bytes: &[u8], text: &mut Text<'_>) -> Result<(), Unreadable> {
    let mut told = Told::of(header, bytes)?;
    let least = told.row.least(told.least, told.body.version());
    if !told
        .row
        .body
        .takes(least, told.body.len(), told.body.version())
    {
        return Err(told.body.fail(Refusal::RequestBadLength).into());
    }
    if matches!(told.kind, Kind::MultipartRequest | Kind::MultipartReply) {
        multipart::check(told.kind, told.body.clone())?;
    }
    told.write_title(header, text);
    text.titled();
    (told.row.print)(&mut told.body, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_bundle_is_told() {
        let bytes = [
            6, 33, 0, 40, 0, 0, 0, 0, 0, 0, 0, 7, 0, 4, 0, 6, 0, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0,
            0x65, 0x53, 0xf1, 0, 0, 0, 1, 0xf4, 0, 0, 0, 0,
        ];
        let wanted = "OFPT_BUNDLE_CONTROL (OF1.5) (xid=0x0):\n bundle_id=0x7 type=COMMIT_REQUEST \
                      flags=ordered time\n time=1700000000.000000500s\n";
        assert_eq!(print(&bytes, Detail::USUAL), wanted);
    }

    #[test]
    fn messages_in_messages_are_printed_so_deep_and_no_deeper() {
        // Errors of 1.3, each about the one within; a bad type of an echo request within all.
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
