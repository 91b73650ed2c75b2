//! UDP/IPv4 frames without a signature: their last four bytes hold a number.

use super::build::{self, Places};
use super::{Encapsulation, Protocol, Template};
use crate::checksum::{checksum, pseudo, sum};
use crate::layers::UDP;

/// The length of the number at the end of a frame.
pub const NUMBER: usize = 4;

/// A frame that is sent repeatedly with different numbers.
#[derive(Clone, Debug)]
pub struct NumberedFrame {
    bytes: Vec<u8>,
    udp: usize,
    /// The sum of the pseudo-header (RFC 768).
    pseudo: u64,
}

impl NumberedFrame {
    /// Frames built from `template`, without its flows.
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

    /// The frame with this number and correct checksums, without FCS.
    pub fn with(&mut self, number: u32) -> &[u8] {
        let end = self.bytes.len() - NUMBER;
        self.bytes[end..].copy_from_slice(&number.to_be_bytes());
        let datagram = &mut self.bytes[self.udp..];
        datagram[6..8].copy_from_slice(&[0, 0]);
        // Zero means "no checksum", so a computed zero is sent as 0xffff (RFC 768).
        let right = match checksum(self.pseudo + sum(datagram)) {
            0 => 0xffff,
            right => right,
        };
        datagram[6..8].copy_from_slice(&right.to_be_bytes());
        &self.bytes
    }

    /// The length without FCS.
    pub fn wire_len(&self) -> usize {
        self.bytes.len()
    }
}
