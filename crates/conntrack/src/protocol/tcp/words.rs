//! The numbers of an established connection in three words.
//!
//! ```text
//!   sent_max | permitted_max          of the end that began the connection
//!   sent_max | permitted_max          of the other one
//!   window | scale                    of both
//! ```

use super::{StoredScale, TcpConnection, TcpEnd, TcpEndState};

/// An established connection.
pub(crate) type TcpWords = [u64; 3];

impl TcpConnection {
    /// True if both ends are established.
    #[inline]
    pub(crate) fn is_established(&self) -> bool {
        let is_established = |end: &TcpEnd| end.state == TcpEndState::Established;
        self.ends.iter().all(is_established)
    }

    /// Returns the words of a connection whose ends are established.
    #[inline]
    pub(crate) fn to_words(self) -> TcpWords {
        let [first, second] = self.ends;
        [
            first.numbers(),
            second.numbers(),
            u64::from(first.window()) << 32 | u64::from(second.window()),
        ]
    }

    /// Returns the connection with these words.
    #[inline]
    pub(crate) fn from_words([first, second, windows]: TcpWords) -> Self {
        let (window, other) = halves(windows);
        Self {
            ends: [TcpEnd::new(first, window), TcpEnd::new(second, other)],
        }
    }
}

impl TcpEnd {
    #[inline]
    fn numbers(&self) -> u64 {
        u64::from(self.sent_max) << 32 | u64::from(self.permitted_max)
    }

    #[inline]
    fn window(&self) -> u32 {
        u32::from(self.window_max) << 16 | u32::from(self.scale.0)
    }

    #[inline]
    fn new(numbers: u64, window: u32) -> Self {
        let (sent_max, permitted_max) = halves(numbers);
        let [high, low, _, scale] = window.to_be_bytes();
        Self {
            state: TcpEndState::Established,
            scale: StoredScale(scale),
            window_max: u16::from_be_bytes([high, low]),
            sent_max,
            permitted_max,
        }
    }
}

#[inline]
const fn halves(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_be_bytes();
    (
        u32::from_be_bytes([a, b, c, d]),
        u32::from_be_bytes([e, f, g, h]),
    )
}

#[cfg(test)]
mod tests {
    use super::super::WindowScale;
    use super::*;

    #[test]
    fn words_hold_an_established_connection() {
        let scales = [
            WindowScale::Absent,
            WindowScale::Unknown,
            WindowScale::Shift(14),
        ];
        for scale in scales {
            let end = |number: u32| TcpEnd {
                state: TcpEndState::Established,
                scale: StoredScale::of(scale),
                window_max: 0xfedc,
                sent_max: 0xdead_beef + number,
                permitted_max: 0xface_feed - number,
            };
            let connection = TcpConnection {
                ends: [end(0), end(1)],
            };
            assert!(connection.is_established());
            let words = connection.to_words();
            assert_eq!(TcpConnection::from_words(words), connection);
        }
    }
}
