//! The format of Wireshark (draft-ietf-opsawg-pcapng). The writer's files have one section,
//! timestamps in nanoseconds, and optional comments on frames.
//!
//! Frames are written unmodified: with partial checksums, and unsegmented.

mod reader;

use std::io::{self, Write};

use base::Instant;

pub use reader::{BadPcapng, PcapngReader};

/// Direction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameDirection {
    /// Received.
    In,
    /// Sent.
    Out,
}

/// A capture file that is being written.
pub struct PcapngWriter<W> {
    out: W,
}

/// The first four bytes of every file.
pub const MAGIC: [u8; 4] = SECTION_HEADER_BLOCK.to_be_bytes();

const SECTION_HEADER_BLOCK: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION_BLOCK: u32 = 1;
const SIMPLE_PACKET_BLOCK: u32 = 3;
const ENHANCED_PACKET_BLOCK: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Section length: unknown.
const UNKNOWN_LEN: u64 = u64::MAX;
const LINKTYPE_ETHERNET: u16 = 1;
const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const OPTION_IF_NAME: u16 = 2;
const OPTION_IF_TSRESOL: u16 = 9;
const OPTION_EPB_FLAGS: u16 = 2;
/// Timestamp resolution: units of 10^-9 seconds.
const NANOSECONDS: u8 = 9;

impl<W: Write> PcapngWriter<W> {
    /// Writes the header of a file with one interface.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W, interface: &str) -> io::Result<Self> {
        let mut header = Vec::new();
        append_section_header(&mut header);
        append_interface(&mut header, interface);
        out.write_all(&header)?;
        Ok(Self { out })
    }

    /// Writes blocks that [`append_frame`] has encoded.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write(&mut self, blocks: &[u8]) -> io::Result<()> {
        self.out.write_all(blocks)
    }

    /// Flushes the file.
    ///
    /// # Errors
    /// Those of the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Appends a section header block, the first block of a file.
pub fn append_section_header(blocks: &mut Vec<u8>) {
    block(blocks, SECTION_HEADER_BLOCK, |body| {
        body.extend(BYTE_ORDER_MAGIC.to_ne_bytes());
        body.extend(1u16.to_ne_bytes());
        body.extend(0u16.to_ne_bytes());
        body.extend(UNKNOWN_LEN.to_ne_bytes());
    });
}

/// Appends an interface description block. Interfaces are numbered from 0 in the order of their
/// blocks.
pub fn append_interface(blocks: &mut Vec<u8>, name: &str) {
    block(blocks, INTERFACE_DESCRIPTION_BLOCK, |body| {
        body.extend(LINKTYPE_ETHERNET.to_ne_bytes());
        body.extend([0; 2]);
        body.extend(0u32.to_ne_bytes()); // No limit on a frame's original_length.
        option(body, OPTION_IF_NAME, name.as_bytes());
        option(body, OPTION_IF_TSRESOL, &[NANOSECONDS]);
        option(body, OPTION_END, &[]);
    });
}

/// Contents of an enhanced packet block.
#[derive(Clone, Copy, Debug)]
pub struct EnhancedPacket<'a> {
    /// Number of the interface.
    pub interface: u32,
    /// Time in nanoseconds since 1970.
    pub time_ns: u64,
    /// Direction of the frame.
    pub direction: FrameDirection,
    /// The captured bytes: the frame or its beginning.
    pub bytes: &'a [u8],
    /// Original length in bytes.
    pub original_length: usize,
    /// Comment; empty for none.
    pub comment: &'a str,
}

/// Appends the block of a complete frame of interface 0, without a comment. Readers show its time
/// as since 1970, so a caller that needs dates starts its instants there.
///
/// ```
/// use base::Instant;
/// use capture_file::pcapng::{self, FrameDirection};
///
/// let mut file = Vec::new();
/// pcapng::append_section_header(&mut file);
/// pcapng::append_interface(&mut file, "p1");
/// pcapng::append_frame(&mut file, Instant::START, FrameDirection::In, &[0; 60]);
/// assert_eq!(file[..4], 0x0a0d_0d0a_u32.to_ne_bytes());
/// assert_eq!(file.len() % 4, 0);
/// ```
pub fn append_frame(blocks: &mut Vec<u8>, at: Instant, direction: FrameDirection, frame: &[u8]) {
    let packet = EnhancedPacket {
        interface: 0,
        time_ns: at.as_nanos(),
        direction,
        bytes: frame,
        original_length: frame.len(),
        comment: "",
    };
    append_packet(blocks, &packet);
}

/// Appends an enhanced packet block.
pub fn append_packet(blocks: &mut Vec<u8>, packet: &EnhancedPacket<'_>) {
    let flags: u32 = match packet.direction {
        FrameDirection::In => 1,
        FrameDirection::Out => 2,
    };
    let number = |original_length: usize| u32::try_from(original_length).unwrap_or(u32::MAX);
    let [a, b, c, d, low @ ..] = packet.time_ns.to_be_bytes();
    block(blocks, ENHANCED_PACKET_BLOCK, |body| {
        body.extend(packet.interface.to_ne_bytes());
        body.extend(u32::from_be_bytes([a, b, c, d]).to_ne_bytes());
        body.extend(u32::from_be_bytes(low).to_ne_bytes());
        body.extend(number(packet.bytes.len()).to_ne_bytes());
        body.extend(number(packet.original_length).to_ne_bytes());
        body.extend(packet.bytes);
        pad(body, packet.bytes.len());
        if !packet.comment.is_empty() {
            option(body, OPTION_COMMENT, packet.comment.as_bytes());
        }
        option(body, OPTION_EPB_FLAGS, &flags.to_ne_bytes());
        option(body, OPTION_END, &[]);
    });
}

/// Appends a block: type, length, body, and the length again.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_ne_bytes());
    out.extend([0; 4]);
    body(out);
    let len = u32::try_from(out.len() + 4 - start).unwrap_or(u32::MAX);
    out[start + 4..start + 8].copy_from_slice(&len.to_ne_bytes());
    out.extend(len.to_ne_bytes());
}

/// Appends an option: code, length, value, padding.
fn option(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let len = u16::try_from(value.len()).unwrap_or(u16::MAX);
    let value = &value[..usize::from(len)];
    out.extend(kind.to_ne_bytes());
    out.extend(len.to_ne_bytes());
    out.extend(value);
    pad(out, value.len());
}

/// Appends zeros up to a multiple of four behind `len` bytes.
fn pad(out: &mut Vec<u8>, len: usize) {
    out.extend(std::iter::repeat_n(0, len.next_multiple_of(4) - len));
}
