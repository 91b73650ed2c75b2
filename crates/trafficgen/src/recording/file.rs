//! The two capture file formats: pcap (draft-ietf-opsawg-pcap) and pcapng
//! (draft-ietf-opsawg-pcapng).

use super::{BadRecording, FRAMES_MAX, RecordedFrame};

/// The link type of frames with an Ethernet header.
const ETHERNET: u32 = 1;

/// The magic numbers of pcap files with microseconds and with nanoseconds.
const MICROS: u32 = 0xa1b2_c3d4;
const NANOS: u32 = 0xa1b2_3c4d;

/// Block types of pcapng.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const SIMPLE: u32 = 3;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const RESOLUTION: u16 = 9;
/// The most interfaces of a section.
const INTERFACES_MAX: usize = 1024;

/// Parses all frames of a file.
pub(super) fn frames(bytes: &[u8]) -> Result<Vec<RecordedFrame>, BadRecording> {
    let little = FileReader {
        bytes,
        is_little: true,
    };
    let big = FileReader {
        bytes,
        is_little: false,
    };
    match (little.word(0), big.word(0)) {
        (Some(SECTION), _) => blocks(bytes),
        (Some(MICROS), _) => pcap(little, 1_000),
        (Some(NANOS), _) => pcap(little, 1),
        (_, Some(MICROS)) => pcap(big, 1_000),
        (_, Some(NANOS)) => pcap(big, 1),
        _ => Err(BadRecording::Unknown),
    }
}

/// Reads numbers in the byte order of the file.
#[derive(Clone, Copy)]
struct FileReader<'a> {
    bytes: &'a [u8],
    is_little: bool,
}

impl<'a> FileReader<'a> {
    fn word(&self, at: usize) -> Option<u32> {
        let word = *self.bytes.get(at..)?.first_chunk::<4>()?;
        Some(match self.is_little {
            true => u32::from_le_bytes(word),
            false => u32::from_be_bytes(word),
        })
    }

    fn half(&self, at: usize) -> Option<u16> {
        let half = *self.bytes.get(at..)?.first_chunk::<2>()?;
        Some(match self.is_little {
            true => u16::from_le_bytes(half),
            false => u16::from_be_bytes(half),
        })
    }

    fn take(&self, at: usize, length: u32) -> Option<&'a [u8]> {
        let end = at.checked_add(usize::try_from(length).ok()?)?;
        self.bytes.get(at..end)
    }
}

/// Parses a pcap file with this unit of second fractions, in nanoseconds.
fn pcap(reader: FileReader<'_>, fraction_ns: u64) -> Result<Vec<RecordedFrame>, BadRecording> {
    let link = reader.word(20).ok_or(BadRecording::Broken)?;
    // The upper half holds the FCS length.
    if link & 0xffff != ETHERNET {
        return Err(BadRecording::NotEthernet);
    }
    let mut frames = Vec::new();
    let mut at = 24;
    while at < reader.bytes.len() {
        let numbers = [0, 4, 8, 12].map(|place| reader.word(at + place));
        let [Some(seconds), Some(fraction), Some(kept), Some(whole)] = numbers else {
            return Err(BadRecording::Broken);
        };
        let bytes = reader.take(at + 16, kept).ok_or(BadRecording::Broken)?;
        let at_ns = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * fraction_ns;
        push(&mut frames, at_ns, bytes, whole)?;
        at += 16 + bytes.len();
    }
    Ok(frames)
}

fn push(
    frames: &mut Vec<RecordedFrame>,
    at_ns: u64,
    bytes: &[u8],
    whole: u32,
) -> Result<(), BadRecording> {
    if (bytes.len() as u64) < u64::from(whole) {
        return Err(BadRecording::Cut);
    }
    if frames.len() == FRAMES_MAX {
        return Err(BadRecording::TooMany);
    }
    let bytes = bytes.to_vec();
    frames.push(RecordedFrame { at_ns, bytes });
    Ok(())
}

/// An interface of a section.
struct CaptureInterface {
    is_ethernet: bool,
    /// Time units in a second.
    units: u128,
}

/// Parses a pcapng file.
fn blocks(bytes: &[u8]) -> Result<Vec<RecordedFrame>, BadRecording> {
    let mut reader = FileReader {
        bytes,
        is_little: true,
    };
    let mut links: Vec<CaptureInterface> = Vec::new();
    let mut frames = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if reader.word(at) == Some(SECTION) {
            links.clear();
            reader.is_little = true;
            if reader.word(at + 8) != Some(BYTE_ORDER) {
                reader.is_little = false;
            }
            if reader.word(at + 8) != Some(BYTE_ORDER) {
                return Err(BadRecording::Broken);
            }
        }
        let length = reader.word(at + 4).ok_or(BadRecording::Broken)?;
        let block = reader.take(at, length).filter(|block| block.len() >= 12);
        let block = FileReader {
            bytes: block.ok_or(BadRecording::Broken)?,
            ..reader
        };
        read(block, &mut links, &mut frames)?;
        at += block.bytes.len().next_multiple_of(4);
    }
    Ok(frames)
}

/// Parses one block; block types other than these three are skipped.
fn read(
    block: FileReader<'_>,
    links: &mut Vec<CaptureInterface>,
    frames: &mut Vec<RecordedFrame>,
) -> Result<(), BadRecording> {
    let word = |at| block.word(at).ok_or(BadRecording::Broken);
    let link = |links: &[CaptureInterface], number: u32| -> Result<u128, BadRecording> {
        let link = usize::try_from(number)
            .ok()
            .and_then(|number| links.get(number));
        let link = link.ok_or(BadRecording::Broken)?;
        match link.is_ethernet {
            true => Ok(link.units),
            false => Err(BadRecording::NotEthernet),
        }
    };
    match word(0)? {
        INTERFACE if links.len() < INTERFACES_MAX => links.push(CaptureInterface {
            is_ethernet: block.half(8).map(u32::from) == Some(ETHERNET),
            units: units(block).unwrap_or(1_000_000),
        }),
        INTERFACE => return Err(BadRecording::TooMany),
        SIMPLE => {
            link(links, 0)?;
            let whole = word(8)?;
            let room = u32::try_from(block.bytes.len() - 12).unwrap_or(u32::MAX);
            let bytes = block.take(12, whole.min(room.saturating_sub(4)));
            push(frames, 0, bytes.ok_or(BadRecording::Broken)?, whole)?;
        }
        PACKET => {
            let units = link(links, word(8)?)?;
            let time = u128::from(word(12)?) << 32 | u128::from(word(16)?);
            let at_ns = u64::try_from(time * 1_000_000_000 / units).unwrap_or(u64::MAX);
            let bytes = block.take(28, word(20)?).ok_or(BadRecording::Broken)?;
            push(frames, at_ns, bytes, word(24)?)?;
        }
        _ => {}
    }
    Ok(())
}

/// The time units in a second of an interface, if its block has `if_tsresol`.
fn units(block: FileReader<'_>) -> Option<u128> {
    let mut at = 16;
    loop {
        let (kind, length) = (block.half(at)?, block.half(at + 2)?);
        let value = block.take(at + 4, u32::from(length))?;
        match (kind, value) {
            (0, _) => return None,
            (RESOLUTION, [power]) => {
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
