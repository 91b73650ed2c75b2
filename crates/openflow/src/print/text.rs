//! The output buffer, and the formatting of bytes and numbers.

use std::fmt;

use super::PrintContext;

/// Bytes in a line of a dump.
const LINE: usize = 16;

/// The output for a message.
#[derive(Debug)]
pub(super) struct PrintBuffer<'a> {
    out: String,
    /// All bytes of the message.
    pub(super) message: &'a [u8],
    /// The options of the output.
    pub(super) context: PrintContext<'a>,
    /// The length of the title.
    title: usize,
}

impl<'a> PrintBuffer<'a> {
    pub(super) const fn new(message: &'a [u8], context: PrintContext<'a>) -> Self {
        Self {
            out: String::new(),
            message,
            context,
            title: 0,
        }
    }

    /// The function that `write!` calls. Writing to a string cannot fail.
    pub(super) fn write_fmt(&mut self, text: fmt::Arguments<'_>) {
        let _ = fmt::Write::write_fmt(&mut self.out, text);
    }

    /// Appends text.
    pub(super) fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Ends the current line, if it is not empty.
    pub(super) fn end_line(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }

    /// Marks the present output as the title.
    pub(super) const fn mark_title(&mut self) {
        self.title = self.out.len();
    }

    /// Separates an error from the output: by a new line, or by a space if there is only the title.
    pub(super) fn separate_error(&mut self) {
        if self.out.len() > self.title {
            self.end_line();
        } else if self.title > 0 {
            self.out.push(' ');
        }
    }

    /// Appends a space, unless the output ends with one.
    pub(super) fn ensure_space(&mut self) {
        if !self.out.ends_with(' ') {
            self.out.push(' ');
        }
    }

    /// Appends the names of the set bits in order, separated by spaces. Unnamed bits follow as a
    /// number; without any bit the output is a zero.
    pub(super) fn bits(&mut self, bits: u32, names: &[(u32, &str)]) {
        let mut list = Vec::new();
        let mut rest = bits;
        for (bit, name) in names.iter().filter(|(bit, _)| bits & bit != 0) {
            list.push((*name).to_owned());
            rest &= !bit;
        }
        if rest != 0 {
            list.push(format!("0x{rest:x}"));
        }
        let list = list.join(" ");
        self.push(if list.is_empty() { "0" } else { &list });
    }

    /// Appends a dump of bytes with their ASCII characters.
    pub(super) fn dump(&mut self, bytes: &[u8]) {
        self.end_line();
        for (index, line) in bytes.chunks(LINE).enumerate() {
            let hex = hex(line);
            let letters: String = line.iter().map(|byte| letter(*byte)).collect();
            writeln!(self, "{:08x}  {hex:<48}|{letters:<16}|", index * LINE);
        }
    }

    /// Appends a dump of bytes.
    pub(super) fn plain_dump(&mut self, bytes: &[u8]) {
        self.end_line();
        for (index, line) in bytes.chunks(LINE).enumerate() {
            let hex = hex(line);
            writeln!(self, "{:08x}  {}", index * LINE, hex.trim_end_matches(' '));
        }
    }

    /// Returns the text, followed by the bytes of the message.
    pub(super) fn with_dump(mut self) -> String {
        self.dump(self.message);
        self.finish()
    }

    /// Returns the text in whole lines.
    pub(super) fn finish(mut self) -> String {
        self.end_line();
        self.out
    }
}

/// Formats the bytes of a line in hexadecimal, with their separators.
fn hex(line: &[u8]) -> String {
    let numbered = line.iter().enumerate();
    numbered
        .map(|(index, byte)| format!("{byte:02x}{}", if index == 7 { '-' } else { ' ' }))
        .collect()
}

/// The ASCII character of a byte, or a dot.
const fn letter(byte: u8) -> char {
    match byte {
        b' '..=b'~' => byte as char,
        _ => '.',
    }
}

/// A counter; all ones is unknown.
pub(super) struct OptionalCount(pub(super) u64);

impl fmt::Display for OptionalCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => f.write_str("?"),
            number => write!(f, "{number}"),
        }
    }
}

/// A time in seconds and nanoseconds as on the wire, even if the nanoseconds exceed a second.
/// Printed with three decimals if that is exact, otherwise with as many as necessary.
pub(super) struct Seconds(pub(super) u32, pub(super) u32);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        match self.1 {
            0 => {}
            nanos if nanos % 1_000_000 == 0 => write!(f, ".{:03}", nanos / 1_000_000)?,
            nanos => f.write_str(format!(".{nanos:09}").trim_end_matches('0'))?,
        }
        f.write_str("s")
    }
}

/// A number in C's `%#x` format: a zero has no 0x.
pub(super) struct AlternateHex(pub(super) u64);

impl fmt::Display for AlternateHex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0"),
            number => write!(f, "0x{number:x}"),
        }
    }
}
