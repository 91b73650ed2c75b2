//! Text to messages: parses the input of `ovs-ofctl` commands, and prints the encoded bytes and the
//! messages.

use base::{PortNo, Xid};
use flow::text::{self, NameMap, ParseError};
use flow::{Instructions, Match, PacketOut, PipelineFields};
use openflow::{
    Detail, Dialect, EncodeError, FlowFormat, Message, MessagePart, MultipartRequest,
    NiciraSetting, Version, encode_actions, encode_instructions, encode_match, parse_oxm_text,
    print, print_part,
};

use crate::error::ToolError;
use crate::hex;

/// The subject of a line of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineSubject {
    /// A change to rules: a line of a flow file.
    Flow,
    /// A change to a group.
    Group,
    /// A change to a meter.
    Meter,
    /// A match: a request for rule statistics.
    Match,
    /// Actions: a packet-out with an empty frame.
    Actions,
}

/// The commands with which a line of a file may begin.
const COMMANDS: [&str; 8] = [
    "add",
    "modify",
    "modify_strict",
    "delete",
    "delete_strict",
    "add_or_mod",
    "insert_bucket",
    "remove_bucket",
];

/// Parses each line of `lines` as a message, and prints its bytes in hexadecimal, followed by its
/// text. Without a version, the oldest that can encode the message is used. Empty lines and
/// comments (`#`) are ignored.
///
/// # Errors
/// A line is malformed, or the version cannot encode it; or there are no lines.
pub fn parse_lines(
    subject: LineSubject,
    lines: &str,
    version: Option<Version>,
) -> Result<String, ToolError> {
    let mut output = String::new();
    let mut xid = Xid(0);
    for (line, message) in read_lines(subject, lines, NameMap::empty())? {
        xid.0 += 1;
        let bytes = encode(&message, xid, version);
        let bytes = bytes.map_err(|error| ToolError::Encode { line, error })?;
        output += &format!("{}\n{}", hex::digits(&bytes), print(&bytes, Detail::BRIEF));
    }
    Ok(output)
}

/// Parses each line of `lines` as a part of a message, and prints its bytes in `version` in
/// hexadecimal, followed by its text. A match may have the syntax of flows, or of OXM entries
/// (`NXM_OF_IN_PORT(0001)`). Empty lines and comments (`#`) are ignored.
///
/// # Errors
/// As for [`parse_lines`].
pub fn parse_parts(part: MessagePart, lines: &str, version: Version) -> Result<String, ToolError> {
    let mut output = String::new();
    for (line, text) in content_lines(lines) {
        let bytes = encode_part(part, line, text, version)?;
        output += &format!(
            "{}\n{}",
            hex::digits(&bytes),
            print_part(part, &bytes, version)
        );
    }
    if output.is_empty() {
        Err(ToolError::Empty)
    } else {
        Ok(output)
    }
}

/// Encodes the part of a message in a line.
fn encode_part(
    part: MessagePart,
    line: usize,
    text: &str,
    version: Version,
) -> Result<Vec<u8>, ToolError> {
    let wrong = |error| ToolError::Text { line, error };
    let bytes = match part {
        MessagePart::Actions => encode_actions(&text::parse_actions(text).map_err(wrong)?, version),
        MessagePart::Instructions => {
            let text = text.strip_prefix("actions=").unwrap_or(text);
            let instructions: Instructions = text.parse().map_err(wrong)?;
            encode_instructions(&instructions, version)
        }
        MessagePart::Match if text.contains('(') || text.trim() == "<any>" => {
            return parse_oxm_text(text).map_err(|error| ToolError::Entry { line, error });
        }
        MessagePart::Match => {
            let matching: Match = text.parse().map_err(wrong)?;
            encode_match(&matching, version)
        }
    };
    bytes.map_err(|error| ToolError::Encode { line, error })
}

/// Returns the lines other than empty lines and comments, with their numbers from one.
fn content_lines(lines: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = (1..).zip(lines.lines());
    numbered.filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    })
}

/// Parses lines with `command` before each. If `allow_commands`, a line may begin with its own
/// command instead.
pub(crate) fn read_with_command(
    subject: LineSubject,
    command: &str,
    allow_commands: bool,
    lines: &str,
    names: &NameMap,
) -> Result<Vec<Message>, ToolError> {
    let read = content_lines(lines).map(|(line, text)| {
        let text = text.trim();
        let first = text.split([' ', ',', '\t']).next().unwrap_or_default();
        let (line_with_command, before) = match text {
            text if allow_commands && COMMANDS.contains(&first) => (text.to_owned(), 0),
            // `all` selects the same objects as an empty line.
            "all" => (command.to_owned(), 0),
            text => (format!("{command} {text}"), command.len() + 1),
        };
        read(subject, &line_with_command, names).map_err(|mut error| {
            error.at = error.at.saturating_sub(before);
            ToolError::Text { line, error }
        })
    });
    let read = read.collect::<Result<Vec<_>, _>>()?;
    if read.is_empty() {
        Err(ToolError::Empty)
    } else {
        Ok(read)
    }
}

/// Parses lines as messages. Returns them with their line numbers from one.
pub(crate) fn read_lines(
    subject: LineSubject,
    lines: &str,
    names: &NameMap,
) -> Result<Vec<(usize, Message)>, ToolError> {
    let read = content_lines(lines).map(|(number, line)| match read(subject, line, names) {
        Ok(message) => Ok((number, message)),
        Err(error) => Err(ToolError::Text {
            line: number,
            error,
        }),
    });
    let read = read.collect::<Result<Vec<_>, _>>()?;
    if read.is_empty() {
        Err(ToolError::Empty)
    } else {
        Ok(read)
    }
}

fn read(subject: LineSubject, line: &str, names: &NameMap) -> Result<Message, ParseError> {
    Ok(match subject {
        LineSubject::Flow => Message::FlowMod(names.parse_flow_line(line)?),
        LineSubject::Group => Message::GroupMod(names.parse_group_line(line)?),
        LineSubject::Meter => Message::MeterMod(text::parse_meter_line(line)?),
        LineSubject::Match => {
            let request = names.parse_flow_stats_request(line)?;
            Message::MultipartRequest(MultipartRequest::Flow(FlowFormat::Standard, request))
        }
        LineSubject::Actions => Message::PacketOut(PacketOut {
            buffer: None,
            registers: PipelineFields::new(PortNo::CONTROLLER),
            actions: text::parse_actions(line)?,
            data: Vec::new(),
        }),
    })
}

/// Encodes the message in `version`, or in the oldest that can encode it.
fn encode(message: &Message, xid: Xid, version: Option<Version>) -> Result<Vec<u8>, EncodeError> {
    let versions = version.map_or_else(|| Version::ALL.to_vec(), |version| vec![version]);
    let mut first = None;
    for version in versions {
        // The dialect of `ovs-ofctl` with OpenFlow 1.0.
        let dialect = Dialect::new(version).after(NiciraSetting::TableIds(true));
        let mut bytes = Vec::new();
        match message.encode(xid, dialect, &mut bytes) {
            Ok(()) => return Ok(bytes),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.expect("at least one version was tried"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(subject: LineSubject, line: &str, version: Option<Version>) -> String {
        parse_lines(subject, line, version).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn line_becomes_bytes_and_text() {
        let output = parsed(LineSubject::Match, "tcp", Some(Version::V13));
        let (bytes, text) = output.split_once('\n').expect("two lines");
        assert!(bytes.starts_with("0412004000000001"), "{bytes}");
        assert_eq!(text, "OFPST_FLOW request (OF1.3) (xid=0x1): tcp\n");
    }

    #[test]
    fn oldest_sufficient_version_is_chosen() {
        let output = parsed(LineSubject::Flow, "actions=write_actions(output:2)", None);
        assert!(output.starts_with("02"), "{output}");
        let output = parsed(
            LineSubject::Meter,
            "meter=1 kbps bands=type=drop,rate=1",
            None,
        );
        assert!(output.starts_with("04"), "{output}");
        let output = parsed(
            LineSubject::Meter,
            "meter=1 kbps bands=type=drop,rate=1",
            Some(Version::V10),
        );
        assert!(
            output.starts_with("line 1: OpenFlow10 cannot express"),
            "{output}"
        );
    }

    #[test]
    fn lines_are_separate_messages_and_error_names_line() {
        let output = parsed(
            LineSubject::Flow,
            "# two\nactions=drop\n\ntcp,actions=drop\n",
            None,
        );
        assert!(
            output.contains("(xid=0x1)") && output.contains("(xid=0x2)"),
            "{output}"
        );
        let output = parsed(LineSubject::Flow, "actions=drop\nactions=dorp", None);
        assert!(
            output.starts_with("line 2, column 9, `dorp`: unknown action"),
            "{output}"
        );
    }
}
