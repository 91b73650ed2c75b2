//! The buffer of outgoing bytes.

/// A byte queue with contiguous contents.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendBuffer {
    bytes: Vec<u8>,
    /// The number of sent bytes at the front.
    sent: usize,
}

impl SendBuffer {
    /// The buffer to append to. The caller must not change its present contents.
    pub(crate) fn back(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The unsent bytes.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Marks `count` more bytes as sent.
    pub(crate) fn transmitted(&mut self, count: usize) {
        assert!(
            count <= self.pending().len(),
            "more bytes sent than pending"
        );
        self.sent += count;
        // Moving the remaining bytes costs at most as much as sending the bytes before them.
        if self.sent >= self.pending().len() {
            self.bytes.drain(..self.sent);
            self.sent = 0;
            // A reply as long as a table is rare; do not keep its capacity.
            self.bytes.shrink_to(CAPACITY_KEPT);
        }
    }
}

/// The capacity to keep when the buffer is empty: two messages of the maximum length.
const CAPACITY_KEPT: usize = 1 << 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_sent_in_order_for_any_chunk_size() {
        let mut output = SendBuffer::default();
        let mut taken = Vec::new();
        for round in 0..100_u8 {
            output.back().extend([round; 7]);
            for count in [3, 2] {
                taken.extend_from_slice(&output.pending()[..count]);
                output.transmitted(count);
            }
        }
        taken.extend_from_slice(output.pending());
        let all: Vec<u8> = (0..100).flat_map(|round| [round; 7]).collect();
        assert_eq!(taken, all);
    }

    #[test]
    fn capacity_of_long_reply_is_released() {
        let mut output = SendBuffer::default();
        output.back().resize(1 << 24, 0);
        output.transmitted(1 << 24);
        assert!(output.bytes.capacity() <= CAPACITY_KEPT);
    }
}
