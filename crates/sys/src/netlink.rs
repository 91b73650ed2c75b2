//! Requests to the kernel's routing socket and its answers (netlink(7), rtnetlink(7)), one after
//! the other: a request is sent, and what the kernel says to it is read at once.
//!
//! What messages mean is known to those who make them. News that nobody asked for are not
//! heard here.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// Bytes that a part of an answer has room in: as the kernel's own buffers are large at most.
const RECEIVE_BUFFER_LEN: usize = 32 * 1024;

/// Bytes of a message's header, of an attribute's, and what both are aligned to.
const HEADER: usize = 16;
const ATTRIBUTE: usize = 4;
const ALIGNMENT: usize = 4;

/// A handle on the routing tables, interfaces and disciplines of one network namespace.
pub(crate) struct RouteSocket {
    socket: OwnedFd,
}

impl RouteSocket {
    /// That of the calling thread's namespace.
    pub(crate) fn open() -> io::Result<Self> {
        let (family, of) = (AddressFamily::NETLINK, SocketType::RAW);
        // The family's first protocol is that of routing (`NETLINK_ROUTE`).
        let socket = socket_with(family, of, SocketFlags::CLOEXEC, None)?;
        Ok(Self { socket })
    }

    /// Asks, and answers with the bodies of what the kernel says: none, if it only agrees.
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

/// What an answer begins with that ends a list, and one that says how a request went.
const DONE: u16 = 3;
const ERROR: u16 = 2;

/// How it went: the first four bytes are an error number, negated, or zero.
fn acknowledgement(body: &[u8]) -> io::Result<()> {
    let number = body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes));
    match number {
        Some(0) => Ok(()),
        Some(number) => Err(io::Error::from_raw_os_error(number.saturating_neg())),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn next_message<'a>(remaining: &mut &'a [u8]) -> Option<(u16, &'a [u8])> {
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

/// A message to the kernel while it is put together.
pub(crate) struct NetlinkRequest {
    bytes: Vec<u8>,
}

impl NetlinkRequest {
    /// One of this kind, with these flags beside those of each request, and the family's own
    /// header.
    pub(crate) fn new(kind: u16, flags: u16, header: &[u8]) -> Self {
        /// `NLM_F_REQUEST`, and `NLM_F_ACK`: it is answered in any case.
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

    /// Appends an attribute that is made of what `write` appends.
    pub(crate) fn nest(&mut self, kind: u16, write: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 2]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        write(self);
        let length = u16::try_from(self.bytes.len() - start);
        let length = length.expect("attributes are made of a few kilobytes");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.bytes.resize(aligned(self.bytes.len()), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).expect("messages are of a few kilobytes");
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes
    }
}

/// The attributes in `bytes`, those that are whole, each with its kind.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// Bits of a kind that say how its value is written.
    const TYPE_FLAGS: u16 = 0xc000;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?);
        let value = bytes.get(ATTRIBUTE..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some((kind & !TYPE_FLAGS, value))
    })
}

/// The first attribute of this kind.
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
        let (kind, body) = next_message(&mut remaining).expect("it is whole");
        assert_eq!((kind, remaining.len()), (36, 0));
        let of = &body[20..];
        assert_eq!(attribute(of, 1), Some(&b"htb\0"[..]));
        assert_eq!(
            attribute(attribute(of, 2).expect("there"), 5),
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
        let error = acknowledgement(&(-libc::ENOENT).to_ne_bytes()).expect_err("it is one");
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        assert!(acknowledgement(&[1]).is_err());
    }
}
