//! Text while it is made, and bytes as text.

use std::fmt;

use super::PrintContext;

/// Bytes in a line of a dump.
const LINE: usize = 16;

/// What has been printed of a message.
#[derive(Debug)]
pub(super) struct PrintBuffer<'a> {
    out: String,
    /// The message that is printed, all its bytes.
    pub(super) message: &'a [u8],
    /// How it is to be printed.
    pub(super) context: PrintContext<'a>,
    /// How much of it is the title.
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

    /// What `write!` calls. Writing to a string cannot fail.
    pub(super) fn write_fmt(&mut self, text: fmt::Arguments<'_>) {
        let _ = fmt::Write::write_fmt(&mut self.out, text);
    }

    /// Appends text as it is.
    pub(super) fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Ends the line, if one has begun.
    pub(super) fn end_line(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }

    /// Remembers that what has been printed is the title.
    pub(super) const fn mark_title(&mut self) {
        self.title = self.out.len();
    }

    /// Parts a complaint from what has been printed: in a line of its own, or behind
    /// the title if that is all.
    pub(super) fn separate_error(&mut self) {
        if self.out.len() > self.title {
            self.end_line();
        } else if self.title > 0 {
            self.out.push(' ');
        }
    }

    /// A space, unless there is one.
    pub(super) fn ensure_space(&mut self) {
        if !self.out.ends_with(' ') {
            self.out.push(' ');
        }
    }

    /// Appends the names of the bits that are set, in order, with spaces between them.
    /// Those that have no name follow as a number; no bits at all are a zero.
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

    /// Appends bytes, sixteen in a line, with the letters that they may be.
    pub(super) fn dump(&mut self, bytes: &[u8]) {
        self.end_line();
        for (index, line) in bytes.chunks(LINE).enumerate() {
            let hex = hex(line);
            let letters: String = line.iter().map(|byte| letter(*byte)).collect();
            writeln!(self, "{:08x}  {hex:<48}|{letters:<16}|", index * LINE);
        }
    }

    /// Appends bytes, sixteen in a line.
    pub(super) fn plain_dump(&mut self, bytes: &[u8]) {
        self.end_line();
        for (index, line) in bytes.chunks(LINE).enumerate() {
            let hex = hex(line);
            writeln!(self, "{:08x}  {}", index * LINE, hex.trim_end_matches(' '));
        }
    }

    /// The text, with the bytes of the message behind it.
    pub(super) fn with_dump(mut self) -> String {
        self.dump(self.message);
        self.finish()
    }

    /// The text, in whole lines.
    pub(super) fn finish(mut self) -> String {
        self.end_line();
        self.out
    }
}

/// Bytes of a line in hexadecimal, each with what parts it from the next.
fn hex(line: &[u8]) -> String {
    let numbered = line.iter().enumerate();
    numbered
        .map(|(index, byte)| format!("{byte:02x}{}", if index == 7 { '-' } else { ' ' }))
        .collect()
}

/// The letter that a byte is, or a dot.
const fn letter(byte: u8) -> char {
    match byte {
        b' '..=b'~' => byte as char,
        _ => '.',
    }
}

/// A number that says by all ones that it is not known.
pub(super) struct OptionalCount(pub(super) u64);

impl fmt::Display for OptionalCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => f.write_str("?"),
            number => write!(f, "{number}"),
        }
    }
}

/// A time in seconds and nanoseconds as the wire has them, though these be too many:
/// with three decimals where that is exact, else with as many as it takes.
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

/// A number as C's `%#x` has it: no 0x before a zero.
pub(super) struct AlternateHex(pub(super) u64);

impl fmt::Display for AlternateHex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0"),
            number => write!(f, "0x{number:x}"),
        }
    }
}
