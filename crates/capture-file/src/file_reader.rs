//! Numbers in the byte order of a file.

/// Byte order of the numbers in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// The byte order of this machine.
    pub const NATIVE: Self = match cfg!(target_endian = "big") {
        true => Self::Big,
        false => Self::Little,
    };

    /// Returns the bytes of a number.
    pub(crate) const fn encode(self, word: u32) -> [u8; 4] {
        match self {
            Self::Little => word.to_le_bytes(),
            Self::Big => word.to_be_bytes(),
        }
    }

    /// Returns the bytes of a 16-bit number.
    pub(crate) const fn encode_half(self, half: u16) -> [u8; 2] {
        match self {
            Self::Little => half.to_le_bytes(),
            Self::Big => half.to_be_bytes(),
        }
    }
}

/// Reader of numbers in the byte order of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileReader<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) byte_order: ByteOrder,
}

impl<'a> FileReader<'a> {
    pub(crate) fn word(&self, at: usize) -> Option<u32> {
        let word = *self.bytes.get(at..)?.first_chunk::<4>()?;
        Some(match self.byte_order {
            ByteOrder::Little => u32::from_le_bytes(word),
            ByteOrder::Big => u32::from_be_bytes(word),
        })
    }

    pub(crate) fn half(&self, at: usize) -> Option<u16> {
        let half = *self.bytes.get(at..)?.first_chunk::<2>()?;
        Some(match self.byte_order {
            ByteOrder::Little => u16::from_le_bytes(half),
            ByteOrder::Big => u16::from_be_bytes(half),
        })
    }

    pub(crate) fn take(&self, at: usize, length: u32) -> Option<&'a [u8]> {
        let end = at.checked_add(usize::try_from(length).ok()?)?;
        self.bytes.get(at..end)
    }
}
