//! How bytes are taken and put: a reader that cannot run past its own end, and
//! a writer that corrects lengths afterwards.
//!
//! Nothing here knows a message. All numbers are big-endian.

use flow::{NESTING_MAX, Refusal};

use crate::dialect::Dialect;
use crate::version::Version;

/// A message that breaks the protocol, or asks in it for what we do not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{refusal} (at byte {at})")]
pub struct Malformed {
    /// What to answer.
    pub refusal: Refusal,
    /// Where, in bytes from the start of the message.
    pub at: usize,
}

/// A message for which a version has no words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{version} cannot express {what}")]
pub struct EncodeError {
    /// What cannot be said.
    pub what: &'static str,
    /// The version that lacks the words.
    pub version: Version,
}

/// Reads a part of a message from front to back.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    short: Refusal,
    dialect: Dialect,
    /// How many structures of the same kind this one lies within.
    depth: usize,
}

impl<'a> Reader<'a> {
    /// A reader of a whole message.
    pub(crate) const fn new(bytes: &'a [u8], dialect: Dialect) -> Self {
        Self {
            bytes,
            at: 0,
            short: Refusal::RequestBadLength,
            dialect,
            depth: 0,
        }
    }

    /// How the message is to be understood.
    pub(crate) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The message's version.
    pub(crate) const fn version(&self) -> Version {
        self.dialect.version
    }

    /// Bytes left.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing is left.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// From here on, want of bytes is this fault.
    pub(crate) const fn on_short(mut self, refusal: Refusal) -> Self {
        self.short = refusal;
        self
    }

    /// `fault`, at the place that the reader has come to.
    pub(crate) const fn fail(&self, refusal: Refusal) -> Malformed {
        Malformed {
            refusal,
            at: self.at,
        }
    }

    /// The next `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let Some((head, tail)) = self.bytes.split_at_checked(count) else {
            return Err(self.fail(self.short));
        };
        self.bytes = tail;
        self.at += count;
        Ok(head)
    }

    /// The next `N` bytes.
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let Some((head, _)) = self.bytes.split_first_chunk::<N>() else {
            return Err(self.fail(self.short));
        };
        let head = *head;
        self.bytes(N)?;
        Ok(head)
    }

    /// The next byte.
    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.take().map(u8::from_be_bytes)
    }

    /// The next two bytes.
    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_be_bytes)
    }

    /// The next four bytes.
    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_be_bytes)
    }

    /// The next eight bytes.
    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_be_bytes)
    }

    /// The next `count` bytes, sixteen at most, as one number.
    pub(crate) fn number(&mut self, count: usize) -> Result<u128, Malformed> {
        let bytes = self.bytes(count)?;
        Ok(bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u128::from(*byte)))
    }

    /// Passes over bytes that have to be zero.
    pub(crate) fn zeros(&mut self, count: usize, refusal: Refusal) -> Result<(), Malformed> {
        let place = self.fail(refusal);
        match self.bytes(count)?.iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => Err(place),
        }
    }

    /// Passes over padding, whatever is in it.
    pub(crate) fn skip(&mut self, count: usize) -> Result<(), Malformed> {
        self.bytes(count).map(drop)
    }

    /// A reader of the next `count` bytes alone.
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

    /// A reader of the next `count` bytes alone; want of bytes, now or inside, is
    /// this fault.
    pub(crate) fn sub_or(&mut self, count: usize, refusal: Refusal) -> Result<Self, Malformed> {
        if count > self.bytes.len() {
            return Err(self.fail(refusal));
        }
        Ok(self.sub(count)?.on_short(refusal))
    }

    /// A reader of what is left as a structure within one of its kind; none if that
    /// lies too deep.
    pub(crate) fn nested(&self) -> Option<Self> {
        let depth = self.depth + 1;
        (depth <= NESTING_MAX).then(|| Self {
            depth,
            ..self.clone()
        })
    }

    /// Everything that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        self.at += self.bytes.len();
        std::mem::take(&mut self.bytes)
    }

    /// The end; bytes left over are a wrong length.
    pub(crate) const fn end(&self) -> Result<(), Malformed> {
        if self.bytes.is_empty() {
            Ok(())
        } else {
            Err(self.fail(self.short))
        }
    }

    /// The text in the next `count` bytes, up to the first zero byte. Bytes that
    /// are no UTF-8 are replaced, and what then would not fit `count` bytes with a
    /// zero behind it is cut off.
    pub(crate) fn text(&mut self, count: usize) -> Result<String, Malformed> {
        let bytes = self.bytes(count)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(count);
        let mut text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        text.truncate(text.floor_char_boundary(count - 1));
        Ok(text)
    }
}

/// Appends to a buffer, front to back.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    dialect: Dialect,
}

impl<'a> Writer<'a> {
    /// A writer that appends to `out`.
    pub(crate) const fn new(out: &'a mut Vec<u8>, dialect: Dialect) -> Self {
        let start = out.len();
        Self {
            out,
            start,
            dialect,
        }
    }

    /// How the message is to be understood.
    pub(crate) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The message's version.
    pub(crate) const fn version(&self) -> Version {
        self.dialect.version
    }

    /// Bytes written by this writer.
    pub(crate) const fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// The refusal to say `what`.
    pub(crate) const fn unsupported(&self, what: &'static str) -> EncodeError {
        EncodeError {
            what,
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

    /// Appends the lowest `count` bytes of `number`, sixteen at most.
    pub(crate) fn number(&mut self, count: usize, number: u128) {
        self.bytes(&number.to_be_bytes()[16 - count..]);
    }

    /// Appends `count` zero bytes.
    pub(crate) fn zeros(&mut self, count: usize) {
        self.out.resize(self.out.len() + count, 0);
    }

    /// Appends zero bytes until this writer has written a multiple of `multiple`.
    pub(crate) fn pad_to(&mut self, multiple: usize) {
        self.zeros(self.len().next_multiple_of(multiple) - self.len());
    }

    /// Appends `text` in exactly `count` bytes, cut at a character if it is too
    /// long, with a zero byte behind it in any case.
    pub(crate) fn text(&mut self, count: usize, text: &str) {
        let cut = text.floor_char_boundary(count - 1);
        self.bytes(&text.as_bytes()[..cut]);
        self.zeros(count - cut);
    }

    /// Appends a structure and writes its length, as two bytes, at `length_at`
    /// bytes from its start. Returns the length. Every message is one: it is worth its place.
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

    /// As [`Self::nested`], with zero bytes behind the structure up to a multiple
    /// of eight that its length does not count (as around a match).
    pub(crate) fn nested_padded(
        &mut self,
        length_at: usize,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<usize, EncodeError> {
        let length = self.nested(length_at, write)?;
        self.zeros(length.next_multiple_of(8) - length);
        Ok(length)
    }

    /// Appends a count of bytes, as two bytes, then what comes `between`, then the
    /// bytes that are counted. Returns the count.
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

    /// Takes back what was written beyond the first `length` bytes.
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
