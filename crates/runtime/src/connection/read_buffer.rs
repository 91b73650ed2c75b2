//! The read buffer of a connection, which is larger while its peer sends much.

/// Bytes read from a socket at once. A peer that fills the first size gets the second until it
/// pauses: hundreds of flow-mods, and one wake-up of the control thread for all of them. Thousands
/// of idle peers get by with the first.
pub(super) const READ_LEN: usize = 4 * 1024;
const READ_LEN_MAX: usize = 64 * 1024;

/// The number of consecutive short reads that end a burst: a peer may be slower than the switch for
/// a while.
const SHORT_MAX: usize = 64;

/// The read buffer.
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    /// The number of consecutive reads that would have fit into a smaller buffer.
    short: usize,
}

impl Default for Buffer {
    fn default() -> Self {
        let bytes = vec![0; READ_LEN];
        Self { bytes, short: 0 }
    }
}

impl Buffer {
    /// Adapts the size to the last reads, of which the latest had `count` bytes. Returns true if a
    /// burst is over.
    pub(super) fn fit(&mut self, count: usize) -> bool {
        self.short = if count < READ_LEN { self.short + 1 } else { 0 };
        if count == self.bytes.len() {
            self.bytes.resize(READ_LEN_MAX, 0);
        }
        let is_over = self.short >= SHORT_MAX && self.bytes.len() > READ_LEN;
        if is_over {
            *self = Self::default();
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_buffer_shrinks_after_many_short_reads() {
        let mut buffer = Buffer::default();
        assert!(!buffer.fit(READ_LEN));
        assert_eq!(buffer.bytes.len(), READ_LEN_MAX);
        let short = |buffer: &mut Buffer, reads| (0..reads).any(|_| buffer.fit(READ_LEN - 1));
        assert!(!short(&mut buffer, SHORT_MAX - 1));
        assert!(!buffer.fit(READ_LEN_MAX));
        assert!(!short(&mut buffer, SHORT_MAX - 1));
        assert!(buffer.fit(1));
        assert_eq!(buffer.bytes.len(), READ_LEN);
        assert!(!short(&mut buffer, 2 * SHORT_MAX));
    }
}
