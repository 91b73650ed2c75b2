//! Patterns: a template's prebuilt bytes, and the fields that differ in each frame.

use super::build::{self, Places};
use super::{FlowField, Flows, Protocol, Template, UdpChecksum};
use crate::Signature;
use crate::checksum::{checksum, fold, pseudo, sum};
use crate::layers::{ICMP, TCP, UDP, signature_space};

/// The values that differ in each frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameStamp {
    /// The stream's number.
    pub(crate) stream: u8,
    /// The frame's number within its stream.
    pub(crate) number: u64,
    /// The send timestamp.
    pub(crate) time_ns: u64,
}

/// The prebuilt bytes of a template.
#[derive(Clone, Debug)]
pub(crate) struct FramePattern {
    bytes: Vec<u8>,
    places: Places,
    /// The number of bytes that the receiver compares.
    headers: usize,
    /// The offset of the signature; `None` in a frame without space for it.
    signature: Option<usize>,
    flows: Flows,
    bits_each: u32,
    edits: Vec<Edit>,
    /// The offset of the IPv4 header checksum, and the sum of its constant words.
    header: Option<(usize, u64)>,
    /// The same for the transport checksum.
    transport: Option<(usize, u64)>,
    /// True if the transport checksum must not be zero (RFC 768).
    never_zero: bool,
}

/// A field that differs between flows: the bytes that hold its lowest bits.
#[derive(Clone, Copy, Debug)]
struct Edit {
    at: usize,
    width: EditWidth,
    value: u32,
    /// The position of its bits in the flow's number.
    shift: u32,
    /// The checksums that cover it: IPv4 header, transport.
    in_header: bool,
    in_transport: bool,
}

/// The number of bytes written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EditWidth {
    Two,
    Four,
}

impl Edit {
    #[inline]
    fn write(&self, frame: &mut [u8], value: u32) {
        let bytes = value.to_be_bytes();
        match self.width {
            EditWidth::Two => frame[self.at..self.at + 2].copy_from_slice(&bytes[2..]),
            EditWidth::Four => frame[self.at..self.at + 4].copy_from_slice(&bytes),
        }
    }
}

impl FramePattern {
    /// The pattern of a validated template.
    pub(super) fn new(template: &Template) -> Self {
        let (bytes, places) = build::frame(template);
        let flows = template.flows.clone();
        let bits_each = flows.bits_each();
        let shifts = (0..).step_by(bits_each.max(1) as usize);
        let edits = flows.fields.iter().zip(shifts);
        let edits = edits.map(|(&field, shift)| edit(template, &bytes, &places, field, shift));
        let mut pattern = Self {
            edits: edits.collect(),
            headers: build::headers_length(template),
            signature: Some(bytes.len() - Signature::LEN),
            bytes,
            places,
            flows,
            bits_each,
            header: None,
            transport: None,
            never_zero: matches!(template.protocol, Protocol::Udp | Protocol::Udp6),
        };
        pattern.sum_up(template);
        pattern
    }

    /// The pattern of any frame, without changing fields.
    pub(crate) fn untouched(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            places: Places::default(),
            headers: bytes.len(),
            signature: None,
            flows: Flows::ONE,
            bits_each: 0,
            edits: Vec::new(),
            header: None,
            transport: None,
            never_zero: false,
        }
    }

    /// The pattern of any frame, in which only the signature changes. It is at the end of the IP
    /// packet, if that carries enough UDP, TCP or ICMP payload and is neither a fragment nor a
    /// tunnel.
    pub(crate) fn of_frame(bytes: &[u8]) -> Self {
        let mut pattern = Self::untouched(bytes);
        if let Some(space) = signature_space(bytes) {
            let start = space.end - Signature::LEN;
            let mut constant = bytes[..space.end].to_vec();
            constant[start..].fill(0);
            constant[space.checksum..space.checksum + 2].fill(0);
            let total = space.pseudo + sum(&constant[space.transport..]);
            pattern.headers = start;
            pattern.signature = Some(start);
            pattern.places.transport = space.transport;
            pattern.never_zero = space.never_zero;
            pattern.transport = space.has_checksum.then_some((space.checksum, total));
        }
        pattern
    }

    /// Returns true if frames carry a signature.
    #[inline]
    pub(crate) const fn is_signed(&self) -> bool {
        self.signature.is_some()
    }

    /// The number of compared bytes: those before the payload or, in a recorded frame, before the
    /// signature.
    pub(crate) const fn headers(&self) -> usize {
        self.headers
    }

    /// Computes the sums of the constant words, with zeros in place of the changing fields.
    fn sum_up(&mut self, template: &Template) {
        let mut constant = self.bytes.clone();
        let end = constant.len();
        constant[end - Signature::LEN..].fill(0);
        for edit in &self.edits {
            edit.write(&mut constant, 0);
        }
        let Places { ip, transport, .. } = self.places;
        let (at, protocol) = match template.protocol {
            Protocol::Udp | Protocol::Udp6 => (transport + 6, UDP),
            Protocol::Tcp => (transport + 16, TCP),
            Protocol::Icmp => (transport + 2, ICMP),
        };
        let is_v4 = template.protocol != Protocol::Udp6;
        let addresses = match is_v4 {
            true => ip + 12..ip + 20,
            false => ip + 8..ip + 40,
        };
        let mut total = sum(&constant[transport..]);
        if template.protocol != Protocol::Icmp {
            total += pseudo(&constant[addresses], protocol, end - transport);
        }
        if template.udp_checksum == UdpChecksum::Computed || !self.never_zero {
            self.transport = Some((at, total));
        }
        if is_v4 {
            constant[ip + 10..ip + 12].fill(0);
            self.header = Some((ip + 10, sum(&constant[ip..ip + 20])));
        }
    }

    /// The frame before the changing fields are written.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The offsets of the checksums that change with each frame.
    pub(crate) fn checksums(&self) -> impl Iterator<Item = usize> {
        [self.header, self.transport]
            .into_iter()
            .flatten()
            .map(|(at, _)| at)
    }

    /// Writes the changing fields to `frame`, which holds this pattern's bytes.
    #[inline]
    pub(crate) fn write(&self, frame: &mut [u8], stamp: FrameStamp) {
        let FrameStamp {
            stream,
            number,
            time_ns,
        } = stamp;
        let (header, transport) = self.write_flow(frame, number);
        let [.., s0, s1, s2, s3] = number.to_be_bytes();
        let signature = Signature {
            stream,
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            time_ns,
        };
        let words = signature.to_words();
        let Some(start) = self.signature else {
            return;
        };
        // Stores full words: a wide load after narrower stores would miss store-to-load forwarding.
        for (place, word) in frame[start..].as_chunks_mut().0.iter_mut().zip(words) {
            *place = word.to_be_bytes();
        }
        if let Some((at, constant)) = self.header {
            put(frame, at, checksum(constant + header));
        }
        if let Some((at, constant)) = self.transport {
            let halves = words.map(|word| u64::from(word >> 16) + u64::from(word & 0xffff));
            let mut signed = u64::from(fold(halves.iter().sum()));
            // Words at odd offsets contribute with swapped bytes.
            if !(start - self.places.transport).is_multiple_of(2) {
                signed = (signed & 0xff) << 8 | signed >> 8;
            }
            let checksum = checksum(constant + transport + signed);
            let is_zero = checksum == 0 && self.never_zero;
            put(frame, at, if is_zero { 0xffff } else { checksum });
        }
    }

    /// Writes the fields of the frame's flow, and returns their contribution to the sums of the
    /// IPv4 header and the transport.
    #[inline]
    pub(crate) fn write_flow(&self, frame: &mut [u8], number: u64) -> (u64, u64) {
        let (mut header, mut transport) = (0, 0);
        if self.edits.is_empty() {
            return (header, transport);
        }
        let flow = self.flows.of(number);
        if let Some(at) = self.places.tunnel_port {
            // From the dynamic ports, as RFC 7348 recommends.
            let port = 0xc000 | u16::try_from(flow & 0x3fff).expect("fourteen bits");
            put(frame, at, port);
        }
        let mask = (1 << self.bits_each) - 1;
        for edit in &self.edits {
            let part = flow.checked_shr(edit.shift).unwrap_or(0) & mask;
            let value = edit.value ^ part;
            edit.write(frame, value);
            let words = u64::from(value >> 16) + u64::from(value & 0xffff);
            header += if edit.in_header { words } else { 0 };
            transport += if edit.in_transport { words } else { 0 };
        }
        (header, transport)
    }
}

/// The offset of a field, and its value in the template.
fn edit(template: &Template, bytes: &[u8], places: &Places, field: FlowField, shift: u32) -> Edit {
    let Places {
        ethernet,
        ip,
        transport,
        ..
    } = *places;
    let is_v4 = template.protocol != Protocol::Udp6;
    let at = match (field, is_v4) {
        (FlowField::DestinationMac, _) => ethernet + 2,
        (FlowField::SourceMac, _) => ethernet + 8,
        (FlowField::SourceAddress, true) => ip + 12,
        (FlowField::DestinationAddress, true) => ip + 16,
        (FlowField::SourceAddress, false) => ip + 8 + 12,
        (FlowField::DestinationAddress, false) => ip + 24 + 12,
        (FlowField::SourcePort, _) => transport,
        (FlowField::DestinationPort, _) => transport + 2,
    };
    let is_address = matches!(
        field,
        FlowField::SourceAddress | FlowField::DestinationAddress
    );
    let is_port = matches!(field, FlowField::SourcePort | FlowField::DestinationPort);
    let first: [u8; 4] = *bytes[at..].first_chunk().expect("a header is longer");
    let [high, low, ..] = first;
    let (width, value) = match is_port {
        true => (EditWidth::Two, u32::from_be_bytes([0, 0, high, low])),
        false => (EditWidth::Four, u32::from_be_bytes(first)),
    };
    Edit {
        at,
        width,
        value,
        shift,
        in_header: is_address && is_v4,
        in_transport: is_port || (is_address && template.protocol != Protocol::Icmp),
    }
}

fn put(frame: &mut [u8], at: usize, word: u16) {
    frame[at..at + 2].copy_from_slice(&word.to_be_bytes());
}
