//! Frames of UDP over IPv4 without a signature: their last four bytes number them.

use super::build::{self, Places};
use super::{Encapsulation, Protocol, Template};
use crate::checksum::{checksum, pseudo, sum};
use crate::layers::UDP;

/// Bytes at the end of a frame that number it.
pub const NUMBER: usize = 4;

/// A frame that is sent many times, each time with another number.
#[derive(Clone, Debug)]
pub struct Numbered {
    bytes: Vec<u8>,
    udp: usize,
    /// The sum of what counts in the checksum and is not in the datagram (RFC 768).
    pseudo: u64,
}

impl Numbered {
    /// Frames after `template`, whose flows are none of theirs.
    pub fn new(template: &Template) -> Self {
        let is_plain = matches!(
            template.encapsulation,
            Encapsulation::Plain | Encapsulation::Vlan(_)
        );
        assert!(is_plain && template.protocol == Protocol::Udp);
        let (bytes, Places { ip, transport, .. }) = build::frame(template);
        let addresses = &bytes[ip + 12..ip + 20];
        Self {
            pseudo: pseudo(addresses, UDP, bytes.len() - transport),
            udp: transport,
            bytes,
        }
    }

    /// The frame of this number, without its FCS, its checksums right.
    pub fn with(&mut self, number: u32) -> &[u8] {
        let end = self.bytes.len() - NUMBER;
        self.bytes[end..].copy_from_slice(&number.to_be_bytes());
        let datagram = &mut self.bytes[self.udp..];
        datagram[6..8].copy_from_slice(&[0, 0]);
        // None is told from one that happens to be zero (RFC 768).
        let right = match checksum(self.pseudo + sum(datagram)) {
            0 => 0xffff,
            right => right,
        };
        datagram[6..8].copy_from_slice(&right.to_be_bytes());
        &self.bytes
    }

    /// Its length without its FCS.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}
