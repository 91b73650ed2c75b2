//! The signature of each frame: twelve bytes at the end of its payload, which is the end of the IP
//! packet.
//!
//! It is this short because the shortest tagged frame has no more space: 64 bytes with FCS, of
//! which the IPv4/UDP headers and a tag leave 14.
//!
//! ```text
//!  0       2               6                       12
//!  | magic | sequence      | time                   |     all of them big-endian
//! ```

/// A constant that is exclusive-ored with the stream's number.
const MAGIC: u16 = 0x9e4d;

/// The transmitted bits of the time: nanoseconds wrap after 78 hours.
const TIME: u64 = (1 << 48) - 1;

/// The content of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The stream's number within its measurement.
    pub stream: u8,
    /// The lower 32 bits of the frame's number within its stream, from zero.
    pub sequence: u32,
    /// The send timestamp: the lower 48 bits of nanoseconds of the sender's clock.
    pub time_ns: u64,
}

impl Signature {
    /// The length in bytes.
    pub const LEN: usize = 12;

    /// The encoding as big-endian words.
    #[must_use]
    #[inline]
    pub(super) fn to_words(self) -> [u32; 3] {
        let magic = MAGIC ^ u16::from(self.stream);
        let [s0, s1, s2, s3] = self.sequence.to_be_bytes();
        let [_, _, t0, t1, t2, t3, t4, t5] = self.time_ns.to_be_bytes();
        [
            u32::from(magic) << 16 | u32::from_be_bytes([0, 0, s0, s1]),
            u32::from_be_bytes([s2, s3, t0, t1]),
            u32::from_be_bytes([t2, t3, t4, t5]),
        ]
    }

    /// Parses the last bytes of a payload; `None` if they are not a signature.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Option<Self> {
        let [m0, m1, s0, s1, s2, s3, time @ ..] = *bytes;
        let [t0, t1, t2, t3, t4, t5] = time;
        let stream = u8::try_from(u16::from_be_bytes([m0, m1]) ^ MAGIC).ok()?;
        Some(Self {
            stream,
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            time_ns: u64::from_be_bytes([0, 0, t0, t1, t2, t3, t4, t5]),
        })
    }

    /// The signature of a frame, independent of the headers before its IP packet.
    #[must_use]
    pub fn of(frame: &[u8]) -> Option<Self> {
        let end = super::layers::outermost_ip(frame)?.end;
        let bytes = frame.get(..end)?.last_chunk()?;
        Self::from_bytes(bytes)
    }

    /// The delay from the send timestamp to `at_ns`; `None` if it is negative, which unsynchronized
    /// clocks make possible.
    #[must_use]
    pub const fn age_ns(self, at_ns: u64) -> Option<u64> {
        let age = at_ns.wrapping_sub(self.time_ns) & TIME;
        if age > TIME / 2 { None } else { Some(age) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_parses_as_written() {
        let signature = Signature {
            stream: 7,
            sequence: 0xfedc_ba98,
            time_ns: TIME - 1,
        };
        let bytes = signature.to_words().map(u32::to_be_bytes);
        let bytes = bytes.as_flattened().first_chunk().unwrap();
        assert_eq!(Signature::from_bytes(bytes), Some(signature));
        assert_eq!(bytes[2..6], [0xfe, 0xdc, 0xba, 0x98]);
        assert_eq!(Signature::from_bytes(&[0; 12]), None);
    }

    #[test]
    fn signature_time_wraps() {
        let signature = Signature {
            stream: 0,
            sequence: 0,
            time_ns: TIME - 9,
        };
        assert_eq!(signature.age_ns(TIME + 1 + 5), Some(15));
        assert_eq!(signature.age_ns(TIME - 10), None);
    }
}
