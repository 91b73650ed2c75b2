//! The arguments of `comporta ofp-print` and `comporta ofp-parse`.

use std::error::Error;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tools::{Detail, LineSubject, MessagePart, PORTS, Version};
use tools::{parse_lines, parse_parts, print_capture, print_lines, print_parts, print_stream};

use crate::input::{bytes_of, text_of, typed_or_read};

/// Print an OpenFlow message of any version, as ovs-ofctl does.
#[derive(Args)]
#[command(after_help = "Example:\n  comporta ofp-print 0105000800000002")]
pub(crate) struct PrintArgs {
    /// The bytes of a message in hexadecimal, or - for messages on standard input, one per line
    /// (@FILE for a file of them).
    #[arg(required_unless_present_any = ["stream", "pcap"])]
    message: Option<String>,
    /// Level of detail: 1 frames and counters, 2 echoes, 3 the bytes of frames, 5 all [default: 2,
    /// for files 1].
    verbosity: Option<u8>,
    /// A binary file of consecutive messages, instead of an argument (- for standard input).
    #[arg(long, value_name = "FILE", conflicts_with = "message")]
    stream: Option<PathBuf>,
    /// A file of tcpdump or Wireshark (pcap), instead of an argument.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["message", "stream"])]
    pcap: Option<PathBuf>,
    /// A TCP port of OpenFlow in that file [default: 6633 and 6653].
    #[arg(long = "port", value_name = "PORT", requires = "pcap")]
    ports: Vec<u16>,
    /// The kind of the bytes, if they are a part of a message.
    #[arg(long = "as", value_name = "PART", requires = "version", conflicts_with_all = ["stream", "pcap"])]
    piece: Option<Part>,
    /// The version of that part, OpenFlow10 to OpenFlow15.
    #[arg(
        short = 'O',
        long = "protocol",
        value_name = "VERSION",
        requires = "piece"
    )]
    version: Option<Version>,
}

/// A part of a message.
#[derive(Clone, Copy, ValueEnum)]
enum Part {
    /// A list of actions.
    Actions,
    /// Instructions of a rule.
    Instructions,
    /// A match as a list of entries, OXM or NXM.
    Match,
}

impl Part {
    const fn piece(self) -> MessagePart {
        match self {
            Self::Actions => MessagePart::Actions,
            Self::Instructions => MessagePart::Instructions,
            Self::Match => MessagePart::Match,
        }
    }
}

impl PrintArgs {
    /// Returns the output.
    pub(crate) fn print(self) -> Result<String, Box<dyn Error>> {
        if let Some(path) = self.stream {
            return Ok(print_stream(&bytes_of(&path)?, Detail::BRIEF)?);
        }
        if let Some(path) = self.pcap {
            let ports = Some(self.ports).filter(|ports| !ports.is_empty());
            let ports = ports.unwrap_or_else(|| PORTS.to_vec());
            let text = print_capture(&bytes_of(&path)?, &ports, Detail::BRIEF);
            return Ok(text.map_err(|error| format!("{}: {error}", path.display()))?);
        }
        if let (Some(part), Some(version)) = (self.piece, self.version) {
            let bytes = typed_or_read(self.message.unwrap_or_default())?;
            return Ok(print_parts(part.piece(), &bytes, version)?);
        }
        let detail = self.verbosity.map_or(Detail::USUAL, Detail);
        let message = typed_or_read(self.message.unwrap_or_default())?;
        Ok(print_lines(&message, detail)?)
    }
}

/// The kind of a line of text.
#[derive(Clone, Copy, ValueEnum)]
enum TextKind {
    /// A rule, or a change of rules that begins with its command.
    Flow,
    /// A group, or a change of groups.
    Group,
    /// A meter, or a change of meters.
    Meter,
    /// A match, encoded as a flow statistics request.
    Match,
    /// Actions, encoded as a packet-out.
    Actions,
    /// Instructions of a rule.
    Instructions,
    /// A match in text form or as a list of entries, encoded as OXM.
    Oxm,
    /// As oxm, encoded as NXM.
    NxMatch,
}

/// Print the message for a line of text: its bytes, and its text form.
#[derive(Args)]
#[command(
    after_help = "Example:\n  comporta ofp-parse flow tcp,tp_dst=23,actions=drop -O OpenFlow13"
)]
pub(crate) struct ParseArgs {
    /// The kind of the text.
    kind: TextKind,
    /// The text in the syntax of ovs-ofctl, or - for lines of it on standard input (@FILE for a
    /// file).
    #[arg(required_unless_present = "file")]
    text: Option<String>,
    /// A file of lines instead of an argument.
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    file: Option<PathBuf>,
    /// The version, OpenFlow10 to OpenFlow15 [default: the oldest that can express the text].
    #[arg(short = 'O', long = "protocol", value_name = "VERSION")]
    version: Option<Version>,
}

impl ParseArgs {
    /// Returns the output.
    pub(crate) fn parse(self) -> Result<String, Box<dyn Error>> {
        let lines = match self.file {
            Some(path) => text_of(&path)?,
            None => typed_or_read(self.text.unwrap_or_default())?,
        };
        let subject = match self.kind {
            TextKind::Flow => LineSubject::Flow,
            TextKind::Group => LineSubject::Group,
            TextKind::Meter => LineSubject::Meter,
            TextKind::Match => LineSubject::Match,
            TextKind::Actions => LineSubject::Actions,
            TextKind::Instructions => {
                let version = self.version.unwrap_or(Version::V13);
                return Ok(parse_parts(MessagePart::Instructions, &lines, version)?);
            }
            TextKind::Oxm => {
                let version = self.version.unwrap_or(Version::V12);
                return Ok(parse_parts(MessagePart::Match, &lines, version)?);
            }
            TextKind::NxMatch => return Ok(parse_parts(MessagePart::Match, &lines, Version::V10)?),
        };
        Ok(parse_lines(subject, &lines, self.version)?)
    }
}
