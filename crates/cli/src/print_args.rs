//! The arguments of `comporta ofp-print` and `comporta ofp-parse`: what was typed, and
//! where the rest is.

use std::error::Error;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tools::{Detail, Subject, Version, parse_lines, print_lines, print_stream};

use crate::input::{bytes_of, text_of, typed_or_read};

/// Print an OpenFlow message of any version, as ovs-ofctl does.
#[derive(Args)]
#[command(after_help = "Example:\n  comporta ofp-print 0105000800000002")]
pub(crate) struct PrintArgs {
    /// Its bytes in hexadecimal, or - for messages on standard input, one a line.
    #[arg(required_unless_present = "stream")]
    message: Option<String>,
    /// How much: 1 frames and counts, 2 echoes, 3 frames' bytes, 5 all [default: 2, for files 1].
    verbosity: Option<u8>,
    /// A file of messages one behind the other, as bytes, in place of one typed (- for standard input).
    #[arg(long, value_name = "FILE", conflicts_with = "message")]
    stream: Option<PathBuf>,
}

impl PrintArgs {
    /// The text to show.
    pub(crate) fn print(self) -> Result<String, Box<dyn Error>> {
        if let Some(path) = self.stream {
            return Ok(print_stream(&bytes_of(&path)?, Detail::BRIEF)?);
        }
        let detail = self.verbosity.map_or(Detail::USUAL, Detail);
        let message = typed_or_read(self.message.unwrap_or_default())?;
        Ok(print_lines(&message, detail)?)
    }
}

/// What a line of text is about.
#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// A rule, or a change to rules that begins with its command.
    Flow,
    /// A group, likewise.
    Group,
    /// A meter, likewise.
    Meter,
    /// A match, told as a question after rules.
    Match,
    /// Actions, told as a packet-out.
    Actions,
}

/// Tell the message that a line of text is: its bytes, and how it is printed.
#[derive(Args)]
#[command(
    after_help = "Example:\n  comporta ofp-parse flow tcp,tp_dst=23,actions=drop -O OpenFlow13"
)]
pub(crate) struct ParseArgs {
    /// What the text is about.
    kind: Kind,
    /// The text as ovs-ofctl takes it, or - for lines of it on standard input.
    #[arg(required_unless_present = "file")]
    text: Option<String>,
    /// A file of lines in place of a text that is typed.
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    file: Option<PathBuf>,
    /// The version, OpenFlow10 to OpenFlow15 [default: the oldest that has the words].
    #[arg(short = 'O', long = "protocol", value_name = "VERSION")]
    version: Option<Version>,
}

impl ParseArgs {
    /// The text to show.
    pub(crate) fn parse(self) -> Result<String, Box<dyn Error>> {
        let lines = match self.file {
            Some(path) => text_of(&path)?,
            None => typed_or_read(self.text.unwrap_or_default())?,
        };
        let subject = match self.kind {
            Kind::Flow => Subject::Flow,
            Kind::Group => Subject::Group,
            Kind::Meter => Subject::Meter,
            Kind::Match => Subject::Match,
            Kind::Actions => Subject::Actions,
        };
        Ok(parse_lines(subject, &lines, self.version)?)
    }
}
