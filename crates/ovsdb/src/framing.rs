//! Framing of messages in a stream of bytes: consecutive JSON objects without delimiters or lengths
//! (RFC 7047, 4). Each byte is examined once until its object is complete.

use serde_json::Value;

use crate::Malformed;

/// The maximum length of a message in bytes: four times the size of a whole database with ten
/// thousand ports.
pub const MESSAGE_LEN_MAX: usize = 64 << 20;

/// A message framer.
#[derive(Debug, Default)]
pub struct Framing {
    bytes: Vec<u8>,
    /// The start of the next message.
    start: usize,
    /// The end of the examined bytes.
    examined: usize,
    /// The number of open braces and brackets.
    depth: usize,
    in_string: bool,
    after_backslash: bool,
}

impl Framing {
    /// Appends received bytes.
    pub fn handle_input(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.examined -= self.start;
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next message, if it is complete.
    ///
    /// # Errors
    /// The message is not a JSON object, or is longer than [`MESSAGE_LEN_MAX`]. Later messages
    /// cannot be read.
    pub fn poll_message(&mut self) -> Result<Option<Value>, Malformed> {
        while let Some(byte) = self.bytes.get(self.examined) {
            self.examined += 1;
            if self.examined - self.start > MESSAGE_LEN_MAX {
                return Err(Malformed::new("message too long"));
            }
            if self.in_string {
                self.in_string = self.after_backslash || *byte != b'"';
                self.after_backslash = !self.after_backslash && *byte == b'\\';
                continue;
            }
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 => {
                    self.start = self.examined;
                    continue;
                }
                b'{' => self.depth += 1,
                _ if self.depth == 0 => return Err(Malformed::new("message is not an object")),
                b'[' => self.depth += 1,
                b'}' | b']' => self.depth -= 1,
                b'"' => self.in_string = true,
                _ => {}
            }
            if self.depth == 0 {
                let message = &self.bytes[self.start..self.examined];
                let message = serde_json::from_slice(message);
                self.start = self.examined;
                return message
                    .map(Some)
                    .map_err(|error| Malformed(error.to_string()));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn all(framing: &mut Framing) -> Result<Vec<Value>, Malformed> {
        std::iter::from_fn(|| framing.poll_message().transpose()).collect()
    }

    #[test]
    fn non_object_json_is_refused() {
        for wrong in ["7", "[{}]", "}", "\"x\" ", "{]", "{\"a\":}", "nonsense"] {
            let mut framing = Framing::default();
            framing.handle_input(wrong.as_bytes());
            let received = all(&mut framing);
            assert!(received.is_err(), "{wrong}: {received:?}");
        }
    }

    #[test]
    fn braces_in_strings_are_ignored() {
        let mut framing = Framing::default();
        let text = r#" {"a":"}{\"\\"} {"b":["]"]}{"c""#;
        framing.handle_input(text.as_bytes());
        let received = all(&mut framing).expect("legal so far");
        assert_eq!(received, [json!({"a": "}{\"\\"}), json!({"b": ["]"]})]);
    }

    #[test]
    fn message_beyond_length_limit_is_refused() {
        let mut framing = Framing::default();
        framing.handle_input(b"{\"a\":\"");
        let piece = vec![b'x'; MESSAGE_LEN_MAX / 4];
        let mut received = Ok(None);
        for _ in 0..5 {
            framing.handle_input(&piece);
            received = framing.poll_message();
        }
        assert!(received.is_err());
    }

    proptest! {
        #[test]
        fn rpc_messages_are_independent_of_input_chunking(
            texts in proptest::collection::vec(".{0,20}", 1..6),
            cuts in proptest::collection::vec(1_usize..30, 0..60),
        ) {
            let messages: Vec<_> = texts.iter().map(|text| json!({"text": [text]})).collect();
            let stream: String = messages.iter().map(|message| format!("{message}\n")).collect();
            let (mut framing, mut received, mut rest) = (Framing::default(), Vec::new(), stream.as_bytes());
            for cut in cuts {
                let (piece, behind) = rest.split_at(cut.min(rest.len()));
                framing.handle_input(piece);
                received.extend(all(&mut framing).expect("legal"));
                rest = behind;
            }
            framing.handle_input(rest);
            received.extend(all(&mut framing).expect("legal"));
            prop_assert_eq!(received, messages);
        }
    }
}
