//! Splits a reply into several messages if one cannot hold it.

use base::Xid;

use super::{MORE, encode_head};
use crate::codec::{EncodeError, Writer};
use crate::dialect::Dialect;
use crate::header::Header;
use crate::kinds::{MessageKind, MultipartKind};
use crate::message;

/// The maximum length of a message.
const MESSAGE_MAX: usize = u16::MAX as usize;

/// A reply under construction: the complete messages and the current one.
pub(super) struct ReplyWriter<'a> {
    kind: MultipartKind,
    xid: Xid,
    dialect: Dialect,
    out: &'a mut Vec<u8>,
    /// The offset of the current message.
    start: usize,
    /// The offset of its body.
    body: usize,
}

impl<'a> ReplyWriter<'a> {
    /// Starts the first message.
    pub(super) fn new(
        kind: MultipartKind,
        xid: Xid,
        dialect: Dialect,
        out: &'a mut Vec<u8>,
    ) -> Result<Self, EncodeError> {
        let mut writer = Self {
            kind,
            xid,
            dialect,
            out,
            start: 0,
            body: 0,
        };
        writer.open()?;
        Ok(writer)
    }

    fn open(&mut self) -> Result<(), EncodeError> {
        self.start = self.out.len();
        let kind = self.kind;
        message::encode_framed(
            MessageKind::MultipartReply,
            self.xid,
            self.dialect,
            self.out,
            |w| encode_head(kind, false, w),
        )?;
        self.body = self.out.len();
        Ok(())
    }

    /// Completes the current message: its length, and the flag that another continues it.
    pub(super) fn close(&mut self, more: bool) {
        let length = self.out.len() - self.start;
        let length = u16::try_from(length).expect("every entry fits");
        let message = &mut self.out[self.start..];
        message[2..4].copy_from_slice(&length.to_be_bytes());
        let flags = Header::LENGTH + 2;
        let bits = if more { MORE } else { 0 };
        message[flags..flags + 2].copy_from_slice(&bits.to_be_bytes());
    }

    /// Appends each entry to the current message or, if it is full, to a new one.
    pub(super) fn write_all<T>(
        &mut self,
        list: &[T],
        encode: impl Fn(&T, &mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        list.iter()
            .try_for_each(|entry| self.write_entry(|w| encode(entry, w)))
    }

    /// Appends an entry to the current message or, if it is full, to a new one.
    pub(super) fn write_entry(
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
            return Err(w.unsupported("an entry beyond the maximum length of a message"));
        }
        Ok(())
    }
}
