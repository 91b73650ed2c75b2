//! A reply as several messages, where one cannot hold it.

use base::Xid;

use super::{MORE, encode_head};
use crate::codec::{EncodeError, Writer};
use crate::dialect::Dialect;
use crate::header::Header;
use crate::kinds::{Kind, Part};
use crate::message;

/// The longest message there can be.
const MESSAGE_MAX: usize = u16::MAX as usize;

/// A reply that is being written: the message that is open, behind those that
/// are full.
pub(super) struct Parts<'a> {
    part: Part,
    xid: Xid,
    dialect: Dialect,
    out: &'a mut Vec<u8>,
    /// Where the open message starts.
    start: usize,
    /// Where its body starts.
    body: usize,
}

impl<'a> Parts<'a> {
    /// Opens the first message.
    pub(super) fn new(
        part: Part,
        xid: Xid,
        dialect: Dialect,
        out: &'a mut Vec<u8>,
    ) -> Result<Self, EncodeError> {
        let mut parts = Self {
            part,
            xid,
            dialect,
            out,
            start: 0,
            body: 0,
        };
        parts.open()?;
        Ok(parts)
    }

    fn open(&mut self) -> Result<(), EncodeError> {
        self.start = self.out.len();
        let part = self.part;
        message::frame(
            Kind::MultipartReply,
            self.xid,
            self.dialect,
            self.out,
            |w| encode_head(part, false, w),
        )?;
        self.body = self.out.len();
        Ok(())
    }

    /// Ends the open message: its length, and whether another goes on with it.
    pub(super) fn close(&mut self, more: bool) {
        let length = self.out.len() - self.start;
        let length = u16::try_from(length).expect("no entry was left that did not fit");
        let message = &mut self.out[self.start..];
        message[2..4].copy_from_slice(&length.to_be_bytes());
        let flags = Header::LENGTH + 2;
        let bits = if more { MORE } else { 0 };
        message[flags..flags + 2].copy_from_slice(&bits.to_be_bytes());
    }

    /// Appends each entry, in the open message or else the next.
    pub(super) fn all<T>(
        &mut self,
        list: &[T],
        encode: impl Fn(&T, &mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        list.iter()
            .try_for_each(|entry| self.one(|w| encode(entry, w)))
    }

    /// Appends an entry, in the open message or else the next.
    pub(super) fn one(
        &mut self,
        encode: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let before = self.out.len();
        encode(&mut Writer::new(self.out, self.dialect))?;
        if self.out.len() - self.start > MESSAGE_MAX && before > self.body {
            let entry = self.out.split_off(before);
            self.close(true);
            self.open()?;
            self.out.extend(entry);
        }
        if self.out.len() - self.start > MESSAGE_MAX {
            let w = Writer::new(self.out, self.dialect);
            return Err(w.cannot("an entry that no message can hold"));
        }
        Ok(())
    }
}
