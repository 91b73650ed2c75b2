//! The division of one direction of a connection into OpenFlow messages, for observers that are not
//! part of the protocol. While the observer is absent, bytes are counted to find message boundaries,
//! but not copied.

/// The length of an OpenFlow header, and the end of the length field in it (OF 1.3.5, 7.1).
const HEADER_LEN: usize = 8;
const LENGTH_END: usize = 4;

/// An observer of messages.
pub(crate) trait MessageObserver {
    /// Returns false while messages would be discarded.
    fn is_present(&self) -> bool;

    /// Takes a message.
    fn observe(&mut self, message: Vec<u8>);
}

/// One direction of one connection, split into messages.
pub(crate) struct StreamDecoder<O> {
    observer: O,
    /// The first bytes of the current message's header, up to its length field.
    length: [u8; LENGTH_END],
    /// The number of bytes of the current message so far.
    received: usize,
    /// A copy of these bytes, if the observer was present when the message began.
    copied: Option<Vec<u8>>,
}

impl<O: MessageObserver> StreamDecoder<O> {
    /// Returns the number of bytes of the current message so far.
    #[cfg(test)]
    pub(crate) const fn received(&self) -> usize {
        self.received
    }

    /// Returns a decoder for a connection from its first byte on.
    pub(crate) const fn new(observer: O) -> Self {
        Self {
            observer,
            length: [0; LENGTH_END],
            received: 0,
            copied: None,
        }
    }

    /// Decodes the next bytes.
    pub(crate) fn decode(&mut self, mut bytes: &[u8]) {
        let is_present = self.observer.is_present();
        while !bytes.is_empty() {
            if self.received == 0 {
                self.copied = is_present.then(Vec::new);
            }
            let (now, rest) = bytes.split_at(bytes.len().min(self.next_boundary() - self.received));
            let header = self.length.iter_mut().skip(self.received);
            header.zip(now).for_each(|(to, from)| *to = *from);
            self.received += now.len();
            bytes = rest;
            if let Some(copied) = &mut self.copied {
                copied.extend_from_slice(now);
            }
            if self.received >= LENGTH_END && self.received == self.next_boundary() {
                self.received = 0;
                if let Some(message) = self.copied.take() {
                    self.observer.observe(message);
                }
            }
        }
    }

    /// Returns the number of bytes of the message that are needed for the next decision.
    fn next_boundary(&self) -> usize {
        let [_, _, high, low] = self.length;
        match self.received {
            ..LENGTH_END => LENGTH_END,
            // A length below that of a header ends the connection.
            _ => usize::from(u16::from_be_bytes([high, low])).max(HEADER_LEN),
        }
    }
}
