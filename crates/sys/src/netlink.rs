//! Synchronous requests to the kernel's routing socket (netlink(7), rtnetlink(7)): one request is
//! sent, and its replies are read before the next.
//!
//! A message is a header, the fixed header of its family (`struct tcmsg` for queueing disciplines)
//! and attributes. An attribute may nest others. All numbers are in host byte order, and messages
//! and attributes are padded to four bytes.
//!
//! ```text
//!  0       4    6     8    12   16             16+n
//!  +-------+----+-----+----+----+---------------+-----------+-----------+--
//!  |length |type|flags|seq |port| family header | attribute | attribute | ...
//!  +-------+----+-----+----+----+---------------+-----------+-----------+--
//!                                                \         /
//!                                      +------+----+-------+---+
//!                                      |length|type| value |pad|
//!                                      +------+----+-------+---+
//! ```
//!
//! Every request sets `NLM_F_ACK`, so every exchange ends with an `NLMSG_ERROR` (error 0 is
//! success) or, for a dump, with `NLMSG_DONE`. Sequence numbers stay 0: the socket is used for one
//! request at a time and joins no multicast group, so no notification can be mistaken for a reply.
//!
//! Not here: the meaning of messages, and notifications.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// Length of the receive buffer, in bytes: the maximum size of the kernel's own buffers.
const RECEIVE_BUFFER_LEN: usize = 32 * 1024;

/// Length of a message header and of an attribute header, and alignment of both, in bytes.
const HEADER: usize = 16;
const ATTRIBUTE: usize = 4;
const ALIGNMENT: usize = 4;

/// An rtnetlink socket for the interfaces and queueing disciplines of one network namespace.
pub(crate) struct RouteSocket {
    socket: OwnedFd,
}

impl RouteSocket {
    /// Opens a socket in the calling thread's namespace.
    pub(crate) fn open() -> io::Result<Self> {
        let (family, of) = (AddressFamily::NETLINK, SocketType::RAW);
        // Protocol 0 of the family is `NETLINK_ROUTE`.
        let socket = socket_with(family, of, SocketFlags::CLOEXEC, None)?;
        Ok(Self { socket })
    }

    /// Sends `request` and returns the bodies of the replies: none if the kernel only acknowledges.
    pub(crate) fn transact(&self, request: NetlinkRequest) -> io::Result<Vec<Vec<u8>>> {
        send(&self.socket, &request.finish(), SendFlags::empty())?;
        let mut bodies = Vec::new();
        let mut buffer = vec![0; RECEIVE_BUFFER_LEN];
        loop {
            let (length, _) = recv(&self.socket, buffer.as_mut_slice(), RecvFlags::empty())?;
            let mut remaining = buffer.get(..length).unwrap_or_default();
            while let Some((kind, body)) = next_message(&mut remaining) {
                match kind {
                    DONE | ERROR => return acknowledgement(body).map(|()| bodies),
                    _ => bodies.push(body.to_vec()),
                }
            }
        }
    }
}

/// `NLMSG_DONE` ends a dump, `NLMSG_ERROR` is an acknowledgement.
const DONE: u16 = 3;
const ERROR: u16 = 2;

/// Decodes an acknowledgement: the first four bytes are a negated errno, or zero.
pub(crate) fn acknowledgement(body: &[u8]) -> io::Result<()> {
    let number = body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes));
    match number {
        Some(0) => Ok(()),
        Some(number) => Err(io::Error::from_raw_os_error(number.saturating_neg())),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Splits the first message off `remaining`, and returns its type and its body.
pub(crate) fn next_message<'a>(remaining: &mut &'a [u8]) -> Option<(u16, &'a [u8])> {
    let length = u32::from_ne_bytes(*remaining.first_chunk()?);
    let length = usize::try_from(length).ok()?;
    let kind = u16::from_ne_bytes(*remaining.get(4..)?.first_chunk()?);
    let body = remaining.get(HEADER..length)?;
    *remaining = remaining.get(aligned(length)..).unwrap_or_default();
    Some((kind, body))
}

const fn aligned(length: usize) -> usize {
    length.next_multiple_of(ALIGNMENT)
}

/// A request under construction.
pub(crate) struct NetlinkRequest {
    bytes: Vec<u8>,
}

impl NetlinkRequest {
    /// Starts a request of this type with the family's header. `flags` are added to
    /// [`COMMON_FLAGS`](Self::new).
    pub(crate) fn new(kind: u16, flags: u16, header: &[u8]) -> Self {
        /// `NLM_F_REQUEST`, and `NLM_F_ACK`: the kernel replies in any case.
        const COMMON_FLAGS: u16 = 1 | 4;
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | COMMON_FLAGS).to_ne_bytes());
        bytes.extend_from_slice(header);
        Self { bytes }
    }

    /// Appends an attribute.
    pub(crate) fn put(&mut self, kind: u16, value: &[u8]) {
        self.nest(kind, |request| request.bytes.extend_from_slice(value));
    }

    /// Appends an attribute whose value is appended by `write`.
    pub(crate) fn nest(&mut self, kind: u16, write: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 2]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        write(self);
        let length = u16::try_from(self.bytes.len() - start);
        let length = length.expect("an attribute has a few kilobytes");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.bytes.resize(aligned(self.bytes.len()), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).expect("a message has a few kilobytes");
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes
    }
}

/// Returns the complete attributes in `bytes`, each with its type.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER`, bits of the type that describe the encoding.
    const TYPE_FLAGS: u16 = 0xc000;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?);
        let value = bytes.get(ATTRIBUTE..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some((kind & !TYPE_FLAGS, value))
    })
}

/// Returns the value of the first attribute of this type, or `None` if there is none.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes)
        .find(|(found, _)| *found == kind)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_roundtrip_and_truncated_ones_are_skipped() {
        let mut request = NetlinkRequest::new(36, 0x600, &[7; 20]);
        request.put(1, b"htb\0");
        request.nest(2, |options| options.put(5, &[1, 2, 3]));
        let bytes = request.finish();
        assert_eq!(bytes.len(), 16 + 20 + 8 + 4 + 8);
        let mut remaining = &bytes[..];
        let (kind, body) = next_message(&mut remaining).expect("the message is complete");
        assert_eq!((kind, remaining.len()), (36, 0));
        let of = &body[20..];
        assert_eq!(attribute(of, 1), Some(&b"htb\0"[..]));
        assert_eq!(
            attribute(attribute(of, 2).expect("nested attribute 2"), 5),
            Some(&[1, 2, 3][..])
        );
        for cut in 0..of.len() {
            assert!(attributes(&of[..cut]).count() < 2);
        }
        assert!(next_message(&mut &bytes[..40]).is_none());
        assert_eq!(next_message(&mut &[0; 16][..]), None);
    }

    #[test]
    fn acknowledgement_returns_error_number() {
        assert!(acknowledgement(&0_i32.to_ne_bytes()).is_ok());
        let error =
            acknowledgement(&(-libc::ENOENT).to_ne_bytes()).expect_err("the number is not zero");
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        assert!(acknowledgement(&[1]).is_err());
    }
}
