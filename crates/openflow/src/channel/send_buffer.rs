//! Bytes on their way out: appended behind, taken from the front.

/// A queue of bytes whose front is one slice.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendBuffer {
    bytes: Vec<u8>,
    /// How many of them are sent.
    sent: usize,
}

impl SendBuffer {
    /// The buffer to append to. What is in it already stays as it is.
    pub(crate) fn back(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// What is not sent yet.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Takes note that so many more are sent.
    pub(crate) fn transmitted(&mut self, count: usize) {
        assert!(
            count <= self.pending().len(),
            "more was sent than was pending"
        );
        self.sent += count;
        // Moving the rest to the front costs less than was sent since the last time.
        if self.sent >= self.pending().len() {
            self.bytes.drain(..self.sent);
            self.sent = 0;
            // An answer as long as a table is rare; the next need not find room for it.
            self.bytes.shrink_to(CAPACITY_KEPT);
        }
    }
}

/// Room kept when all is sent: two messages of the greatest length.
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
