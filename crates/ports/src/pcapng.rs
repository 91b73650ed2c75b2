//! Writes frames to a capture file that Wireshark and tcpdump read
//! (draft-ietf-opsawg-pcapng): one section, nanoseconds, and what is said of frames.
//!
//! Frames are written as they are: with an unfinished checksum, and a large one in one piece.

use std::io::{self, Write};

use base::Instant;

/// Which way a frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It was received.
    In,
    /// It was sent.
    Out,
}

/// A capture file under way.
pub struct Writer<W> {
    out: W,
}

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// The section's length is not known.
const UNKNOWN_LEN: u64 = u64::MAX;
const ETHERNET: u16 = 1;
const OPTION_COMMENT: u16 = 1;
const OPTION_NAME: u16 = 2;
const OPTION_RESOLUTION: u16 = 9;
const OPTION_FLAGS: u16 = 2;
/// Times are in units of ten to the minus nine seconds.
const NANOSECONDS: u8 = 9;

impl<W: Write> Writer<W> {
    /// Begins a file of the frames of one interface.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W, interface: &str) -> io::Result<Self> {
        let mut head = Vec::new();
        section(&mut head);
        self::interface(&mut head, interface);
        out.write_all(&head)?;
        Ok(Self { out })
    }

    /// Writes blocks that [`packet()`] has made.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write(&mut self, blocks: &[u8]) -> io::Result<()> {
        self.out.write_all(blocks)
    }

    /// Hands everything to the file.
    ///
    /// # Errors
    /// Those of the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Appends the block that begins a file.
pub fn section(blocks: &mut Vec<u8>) {
    block(blocks, SECTION, |body| {
        body.extend(BYTE_ORDER.to_ne_bytes());
        body.extend(1u16.to_ne_bytes());
        body.extend(0u16.to_ne_bytes());
        body.extend(UNKNOWN_LEN.to_ne_bytes());
    });
}

/// Appends the block of an interface. The first of a file is interface 0, and so on.
pub fn interface(blocks: &mut Vec<u8>, name: &str) {
    block(blocks, INTERFACE, |body| {
        body.extend(ETHERNET.to_ne_bytes());
        body.extend([0; 2]);
        body.extend(0u32.to_ne_bytes()); // No limit on a frame's length.
        option(body, OPTION_NAME, name.as_bytes());
        option(body, OPTION_RESOLUTION, &[NANOSECONDS]);
        option(body, 0, &[]);
    });
}

/// A frame for a file.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its interface.
    pub interface: u32,
    /// When it passed: nanoseconds since 1970.
    pub time_ns: u64,
    /// Which way it went.
    pub direction: Direction,
    /// Its bytes, or the first of them.
    pub bytes: &'a [u8],
    /// How many it had.
    pub length: usize,
    /// What is said of it; nothing if it is empty.
    pub comment: &'a str,
}

/// Appends the block of a frame of the first interface, uncut and without a comment. Its time
/// is shown as since 1970, so a caller that wants dates lets its instants start there.
pub fn packet(blocks: &mut Vec<u8>, at: Instant, direction: Direction, frame: &[u8]) {
    let packet = Packet {
        interface: 0,
        time_ns: at.as_nanos(),
        direction,
        bytes: frame,
        length: frame.len(),
        comment: "",
    };
    add(blocks, &packet);
}

/// Appends the block of a frame.
pub fn add(blocks: &mut Vec<u8>, packet: &Packet<'_>) {
    let flags: u32 = match packet.direction {
        Direction::In => 1,
        Direction::Out => 2,
    };
    let number = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let [a, b, c, d, low @ ..] = packet.time_ns.to_be_bytes();
    block(blocks, PACKET, |body| {
        body.extend(packet.interface.to_ne_bytes());
        body.extend(u32::from_be_bytes([a, b, c, d]).to_ne_bytes());
        body.extend(u32::from_be_bytes(low).to_ne_bytes());
        body.extend(number(packet.bytes.len()).to_ne_bytes());
        body.extend(number(packet.length).to_ne_bytes());
        body.extend(packet.bytes);
        pad(body, packet.bytes.len());
        if !packet.comment.is_empty() {
            option(body, OPTION_COMMENT, packet.comment.as_bytes());
        }
        option(body, OPTION_FLAGS, &flags.to_ne_bytes());
        option(body, 0, &[]);
    });
}

/// Appends a block: its kind, its length before and behind its body.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_ne_bytes());
    out.extend([0; 4]);
    body(out);
    let len = u32::try_from(out.len() + 4 - start).unwrap_or(u32::MAX);
    out[start + 4..start + 8].copy_from_slice(&len.to_ne_bytes());
    out.extend(len.to_ne_bytes());
}

/// Appends an option: its kind, its length, its value, padding.
fn option(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let len = u16::try_from(value.len()).unwrap_or(u16::MAX);
    let value = &value[..usize::from(len)];
    out.extend(kind.to_ne_bytes());
    out.extend(len.to_ne_bytes());
    out.extend(value);
    pad(out, value.len());
}

/// Appends zeros to the next multiple of four behind `len` bytes.
fn pad(out: &mut Vec<u8>, len: usize) {
    out.extend(std::iter::repeat_n(0, len.next_multiple_of(4) - len));
}
