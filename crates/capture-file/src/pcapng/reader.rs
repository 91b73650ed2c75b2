//! Reader of pcapng files: interface description, simple packet and enhanced packet blocks. Other
//! blocks are skipped.

use super::{
    BYTE_ORDER_MAGIC, ENHANCED_PACKET_BLOCK, INTERFACE_DESCRIPTION_BLOCK, OPTION_END,
    OPTION_IF_TSRESOL, SECTION_HEADER_BLOCK, SIMPLE_PACKET_BLOCK,
};
use crate::file_reader::FileReader;
use crate::{ByteOrder, CapturePacket};

/// Maximum number of interfaces of a section.
const INTERFACES_MAX: usize = 1024;

/// Time units in a second of an interface without `if_tsresol`.
const UNITS: u128 = 1_000_000;

/// The defect of a pcapng file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPcapng {
    /// The file is truncated or inconsistent.
    #[error("truncated or corrupt capture file")]
    Malformed,
    /// A section has more than 1024 interfaces.
    #[error("more than {INTERFACES_MAX} interfaces")]
    TooManyInterfaces,
}

/// An interface of a section.
#[derive(Clone, Copy, Debug)]
struct CaptureInterface {
    link_type: u32,
    /// Time units in a second.
    units: u128,
}

/// An iterator over the packets of a file. It ends at the first defect.
#[derive(Debug)]
pub struct PcapngReader<'a> {
    file: FileReader<'a>,
    /// Offset of the next block.
    at: usize,
    /// Interfaces of the current section.
    interfaces: Vec<CaptureInterface>,
}

impl<'a> PcapngReader<'a> {
    /// Returns a reader of the bytes of a file.
    #[must_use]
    pub const fn new(file: &'a [u8]) -> Self {
        Self {
            file: FileReader {
                bytes: file,
                byte_order: ByteOrder::Little,
            },
            at: 0,
            interfaces: Vec::new(),
        }
    }

    /// Parses the next block; `None` if it has no packet.
    fn next_block(&mut self) -> Result<Option<CapturePacket<'a>>, BadPcapng> {
        if self.file.word(self.at) == Some(SECTION_HEADER_BLOCK) {
            self.interfaces.clear();
            let orders = [ByteOrder::Little, ByteOrder::Big];
            let order = orders.into_iter().find(|&byte_order| {
                let file = FileReader {
                    byte_order,
                    ..self.file
                };
                file.word(self.at + 8) == Some(BYTE_ORDER_MAGIC)
            });
            self.file.byte_order = order.ok_or(BadPcapng::Malformed)?;
        }
        let length = self.file.word(self.at + 4).ok_or(BadPcapng::Malformed)?;
        let block = self.file.take(self.at, length);
        let block = FileReader {
            bytes: block
                .filter(|block| block.len() >= 12)
                .ok_or(BadPcapng::Malformed)?,
            ..self.file
        };
        self.at += block.bytes.len().next_multiple_of(4);
        self.parse_block(block)
    }

    fn parse_block(
        &mut self,
        block: FileReader<'a>,
    ) -> Result<Option<CapturePacket<'a>>, BadPcapng> {
        let word = |at| block.word(at).ok_or(BadPcapng::Malformed);
        match word(0)? {
            INTERFACE_DESCRIPTION_BLOCK if self.interfaces.len() < INTERFACES_MAX => {
                self.interfaces.push(CaptureInterface {
                    link_type: block.half(8).ok_or(BadPcapng::Malformed)?.into(),
                    units: units(block).unwrap_or(UNITS),
                });
                Ok(None)
            }
            INTERFACE_DESCRIPTION_BLOCK => Err(BadPcapng::TooManyInterfaces),
            SIMPLE_PACKET_BLOCK => {
                let original_length = word(8)?;
                let room = u32::try_from(block.bytes.len() - 12).unwrap_or(u32::MAX);
                let bytes = block.take(12, original_length.min(room.saturating_sub(4)));
                Ok(Some(CapturePacket {
                    link_type: self.interface(0)?.link_type,
                    time_ns: 0,
                    original_length,
                    bytes: bytes.ok_or(BadPcapng::Malformed)?,
                }))
            }
            ENHANCED_PACKET_BLOCK => {
                let interface = self.interface(word(8)?)?;
                let time = u128::from(word(12)?) << 32 | u128::from(word(16)?);
                let time_ns = time * 1_000_000_000 / interface.units;
                Ok(Some(CapturePacket {
                    link_type: interface.link_type,
                    time_ns: u64::try_from(time_ns).unwrap_or(u64::MAX),
                    original_length: word(24)?,
                    bytes: block.take(28, word(20)?).ok_or(BadPcapng::Malformed)?,
                }))
            }
            _ => Ok(None),
        }
    }

    /// Returns the interface with this number.
    fn interface(&self, number: u32) -> Result<CaptureInterface, BadPcapng> {
        let index = usize::try_from(number).ok();
        let interface = index.and_then(|index| self.interfaces.get(index));
        interface.copied().ok_or(BadPcapng::Malformed)
    }
}

impl<'a> Iterator for PcapngReader<'a> {
    type Item = Result<CapturePacket<'a>, BadPcapng>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.file.bytes.len() {
            let packet = self.next_block();
            if packet.is_err() {
                self.at = self.file.bytes.len();
            }
            if let Some(packet) = packet.transpose() {
                return Some(packet);
            }
        }
        None
    }
}

/// Returns the time units in a second of an interface, if its block has `if_tsresol`.
fn units(block: FileReader<'_>) -> Option<u128> {
    let mut at = 16;
    loop {
        let (kind, length) = (block.half(at)?, block.half(at + 2)?);
        let value = block.take(at + 4, u32::from(length))?;
        match (kind, value) {
            (OPTION_END, _) => return None,
            (OPTION_IF_TSRESOL, [power]) => {
                let (base, power) = match power & 0x80 {
                    0 => (10_u128, *power),
                    _ => (2, power & 0x7f),
                };
                // A finer resolution is not used in practice.
                return base.checked_pow(u32::from(power).min(30));
            }
            _ => at += 4 + usize::from(length).next_multiple_of(4),
        }
    }
}
