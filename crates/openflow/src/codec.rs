//! Byte-level encoding: a bounds-checked reader, and a writer that fills in lengths afterwards.
//!
//! This module knows no message. All numbers are big-endian.

use flow::{NESTING_MAX, Refusal};

use crate::dialect::Dialect;
use crate::version::Version;

/// A message that violates the protocol or requests an unsupported feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{refusal} (at byte {at})")]
pub struct Malformed {
    /// The error to answer with.
    pub refusal: Refusal,
    /// The offset of the error, in bytes from the start of the message.
    pub at: usize,
}

/// A message that a version cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{version} cannot express {part}")]
pub struct EncodeError {
    /// The part that cannot be encoded.
    pub part: &'static str,
    /// The version that lacks it.
    pub version: Version,
}

/// Reads a part of a message sequentially.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    short: Refusal,
    dialect: Dialect,
    /// The number of structures of the same kind around this one.
    depth: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader of a whole message.
    pub(crate) const fn new(bytes: &'a [u8], dialect: Dialect) -> Self {
        Self {
            bytes,
            at: 0,
            short: Refusal::RequestBadLength,
            dialect,
            depth: 0,
        }
    }

    /// The dialect of the message.
    pub(crate) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The version of the message.
    pub(crate) const fn version(&self) -> Version {
        self.dialect.version
    }

    /// The number of remaining bytes.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns true if no byte remains.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Sets the error of reads past the end.
    pub(crate) const fn on_short(mut self, refusal: Refusal) -> Self {
        self.short = refusal;
        self
    }

    /// `refusal` at the current offset.
    pub(crate) const fn fail(&self, refusal: Refusal) -> Malformed {
        Malformed {
            refusal,
            at: self.at,
        }
    }

    /// Reads the next `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let Some((head, tail)) = self.bytes.split_at_checked(count) else {
            return Err(self.fail(self.short));
        };
        self.bytes = tail;
        self.at += count;
        Ok(head)
    }

    /// Reads the next `N` bytes.
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let Some((head, _)) = self.bytes.split_first_chunk::<N>() else {
            return Err(self.fail(self.short));
        };
        let head = *head;
        self.bytes(N)?;
        Ok(head)
    }

    /// Reads a byte.
    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.take().map(u8::from_be_bytes)
    }

    /// Reads two bytes.
    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_be_bytes)
    }

    /// Reads four bytes.
    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_be_bytes)
    }

    /// Reads eight bytes.
    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_be_bytes)
    }

    /// Reads `count` bytes, at most sixteen, as one number.
    pub(crate) fn number(&mut self, count: usize) -> Result<u128, Malformed> {
        let bytes = self.bytes(count)?;
        Ok(bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u128::from(*byte)))
    }

    /// Skips bytes that must be zero.
    pub(crate) fn zeros(&mut self, count: usize, refusal: Refusal) -> Result<(), Malformed> {
        let place = self.fail(refusal);
        match self.bytes(count)?.iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => Err(place),
        }
    }

    /// Skips padding without a check.
    pub(crate) fn skip(&mut self, count: usize) -> Result<(), Malformed> {
        self.bytes(count).map(drop)
    }

    /// Splits off a reader of the next `count` bytes.
    pub(crate) fn sub(&mut self, count: usize) -> Result<Self, Malformed> {
        let at = self.at;
        let bytes = self.bytes(count)?;
        Ok(Self {
            bytes,
            at,
            short: self.short,
            dialect: self.dialect,
            depth: self.depth,
        })
    }

    /// Splits off a reader of the next `count` bytes. `refusal` is the error if they are missing,
    /// and of reads past their end.
    pub(crate) fn sub_or(&mut self, count: usize, refusal: Refusal) -> Result<Self, Malformed> {
        if count > self.bytes.len() {
            return Err(self.fail(refusal));
        }
        Ok(self.sub(count)?.on_short(refusal))
    }

    /// A reader of the remaining bytes as a structure nested in one of its own kind; none if the
    /// nesting is too deep.
    pub(crate) fn nested(&self) -> Option<Self> {
        let depth = self.depth + 1;
        (depth <= NESTING_MAX).then(|| Self {
            depth,
            ..self.clone()
        })
    }

    /// Reads all remaining bytes.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        self.at += self.bytes.len();
        std::mem::take(&mut self.bytes)
    }

    /// Checks that no byte remains; remaining bytes are a length error.
    pub(crate) const fn end(&self) -> Result<(), Malformed> {
        if self.bytes.is_empty() {
            Ok(())
        } else {
            Err(self.fail(self.short))
        }
    }

    /// Reads `count` bytes as text up to the first zero byte. Replaces invalid UTF-8 and truncates
    /// the result to `count - 1` bytes, so that it fits with a terminating zero.
    pub(crate) fn text(&mut self, count: usize) -> Result<String, Malformed> {
        let bytes = self.bytes(count)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(count);
        let mut text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        text.truncate(text.floor_char_boundary(count - 1));
        Ok(text)
    }
}

/// Appends to a buffer sequentially.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    dialect: Dialect,
}

impl<'a> Writer<'a> {
    /// Creates a writer that appends to `out`.
    pub(crate) const fn new(out: &'a mut Vec<u8>, dialect: Dialect) -> Self {
        let start = out.len();
        Self {
            out,
            start,
            dialect,
        }
    }

    /// The dialect of the message.
    pub(crate) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The version of the message.
    pub(crate) const fn version(&self) -> Version {
        self.dialect.version
    }

    /// The number of bytes from this writer.
    pub(crate) const fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// The error that the version cannot encode `part`.
    pub(crate) const fn unsupported(&self, part: &'static str) -> EncodeError {
        EncodeError {
            part,
            version: self.dialect.version,
        }
    }

    /// Appends `bytes`.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Appends a byte.
    pub(crate) fn u8(&mut self, number: u8) {
        self.out.push(number);
    }

    /// Appends two bytes.
    pub(crate) fn u16(&mut self, number: u16) {
        self.bytes(&number.to_be_bytes());
    }

    /// Appends four bytes.
    pub(crate) fn u32(&mut self, number: u32) {
        self.bytes(&number.to_be_bytes());
    }

    /// Appends eight bytes.
    pub(crate) fn u64(&mut self, number: u64) {
        self.bytes(&number.to_be_bytes());
    }

    /// Appends the lowest `count` bytes of `number`, at most sixteen.
    pub(crate) fn number(&mut self, count: usize, number: u128) {
        self.bytes(&number.to_be_bytes()[16 - count..]);
    }

    /// Appends `count` zero bytes.
    pub(crate) fn zeros(&mut self, count: usize) {
        self.out.resize(self.out.len() + count, 0);
    }

    /// Appends zero bytes up to a multiple of `multiple`, counted from the start of this writer.
    pub(crate) fn pad_to(&mut self, multiple: usize) {
        self.zeros(self.len().next_multiple_of(multiple) - self.len());
    }

    /// Appends `text` in exactly `count` bytes, truncated at a character boundary and always
    /// terminated by a zero byte.
    pub(crate) fn text(&mut self, count: usize, text: &str) {
        let cut = text.floor_char_boundary(count - 1);
        self.bytes(&text.as_bytes()[..cut]);
        self.zeros(count - cut);
    }

    /// Appends a structure and writes its length, two bytes, at offset `length_at` of it. Returns
    /// the length. Inlined, because every message is such a structure.
    #[inline]
    pub(crate) fn nested(
        &mut self,
        length_at: usize,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<usize, EncodeError> {
        let mut inner = Writer::new(self.out, self.dialect);
        write(&mut inner)?;
        let (start, len) = (inner.start, inner.len());
        let length =
            u16::try_from(len).map_err(|_| self.unsupported("a structure beyond 65,535 bytes"))?;
        self.out[start + length_at..start + length_at + 2].copy_from_slice(&length.to_be_bytes());
        Ok(len)
    }

    /// Like [`Self::nested`], but pads with zero bytes to a multiple of eight, which the length
    /// does not count (as after a match).
    pub(crate) fn nested_padded(
        &mut self,
        length_at: usize,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<usize, EncodeError> {
        let length = self.nested(length_at, write)?;
        self.zeros(length.next_multiple_of(8) - length);
        Ok(length)
    }

    /// Appends a length of two bytes, then the output of `between`, then the bytes that the length
    /// counts. Returns the length.
    pub(crate) fn counted(
        &mut self,
        between: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<usize, EncodeError> {
        let place = self.out.len();
        self.u16(0);
        between(self)?;
        let mut inner = Writer::new(self.out, self.dialect);
        write(&mut inner)?;
        let len = inner.len();
        let count =
            u16::try_from(len).map_err(|_| self.unsupported("a list beyond 65,535 bytes"))?;
        self.out[place..place + 2].copy_from_slice(&count.to_be_bytes());
        Ok(len)
    }

    /// Removes all bytes after the first `length`.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.out.truncate(self.start + length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V13: Dialect = Dialect::new(Version::V13);

    #[test]
    fn sub_reader_stays_within_its_bytes() {
        let mut reader = Reader::new(&[1, 2, 3, 4], V13);
        let mut sub = reader
            .sub(2)
            .expect("there are four")
            .on_short(Refusal::ActionBadLength);
        assert_eq!(sub.u8(), Ok(1));
        let refusal = Malformed {
            refusal: Refusal::ActionBadLength,
            at: 1,
        };
        assert_eq!(sub.u16(), Err(refusal));
        assert_eq!(sub.end(), Err(refusal));
        assert_eq!(reader.u16(), Ok(0x0304));
        assert_eq!(reader.end(), Ok(()));
        assert_eq!(reader.u8().map_err(|e| e.at), Err(4));
    }

    #[test]
    fn nested_length_excludes_padding() {
        let mut out = vec![0xff];
        let mut writer = Writer::new(&mut out, V13);
        writer
            .nested_padded(2, |w| {
                w.u16(1);
                w.u16(0);
                w.u8(9);
                Ok(())
            })
            .expect("it is short");
        assert_eq!(out, [0xff, 0, 1, 0, 5, 9, 0, 0, 0]);
    }

    #[test]
    fn text_is_cut_at_a_character_and_ends_with_a_zero() {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, V13);
        writer.text(4, "ab\u{e9}");
        writer.text(4, "x");
        assert_eq!(out, b"ab\0\0x\0\0\0");
        let mut reader = Reader::new(&out, V13);
        assert_eq!(reader.text(4).as_deref(), Ok("ab"));
    }

    #[test]
    fn text_round_trips_after_lossy_decoding() {
        for bytes in [*b"abcd", *b"a\xff\xffd", *b"\xff\xff\xff\xff"] {
            let text = Reader::new(&bytes, V13).text(4).expect("there are four");
            let mut out = Vec::new();
            Writer::new(&mut out, V13).text(4, &text);
            assert_eq!(Reader::new(&out, V13).text(4), Ok(text));
        }
    }
}
