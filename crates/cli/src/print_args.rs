//! The arguments of `comporta ofp-print`: what was typed, and where the bytes are.

use std::error::Error;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use tools::{Detail, print_lines, print_stream};

/// What stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Print an OpenFlow message of any version, as ovs-ofctl does.
#[derive(Args)]
#[command(after_help = "Example:\n  comporta ofp-print 0105000800000002")]
pub(crate) struct PrintArgs {
    /// Its bytes in hexadecimal, or - for messages on standard input, one a line.
    #[arg(required_unless_present = "stream")]
    message: Option<String>,
    /// How much: 1 frames and counts, 2 echoes, 3 frames' bytes, 5 all [default: 2, for files 1].
    verbosity: Option<u8>,
    /// Messages one behind the other, as bytes, in a file (- for standard input).
    #[arg(long, value_name = "FILE")]
    stream: Option<PathBuf>,
}

impl PrintArgs {
    /// The text to show.
    pub(crate) fn print(self) -> Result<String, Box<dyn Error>> {
        if let Some(path) = self.stream {
            let detail = self.verbosity.map_or(Detail::BRIEF, Detail);
            return Ok(print_stream(&bytes_of(&path)?, detail)?);
        }
        let detail = self.verbosity.map_or(Detail::USUAL, Detail);
        let message = self.message.unwrap_or_default();
        if message != STANDARD_INPUT {
            return Ok(print_lines(&message, detail)?);
        }
        let mut text = String::new();
        io::stdin().read_to_string(&mut text)?;
        Ok(print_lines(&text, detail)?)
    }
}

/// What is in a file.
fn bytes_of(path: &Path) -> Result<Vec<u8>, String> {
    let read = if path == Path::new(STANDARD_INPUT) {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    read.map_err(|error| format!("{}: {error}", path.display()))
}
