//! The body of the fuzz target of netlink messages: arbitrary bytes as the kernel's replies.

use crate::netlink::{acknowledgement, attributes, next_message};
use crate::traffic_control::read_class;

/// The depth of nested attributes. The kernel's own are less deep.
const DEPTH_MAX: usize = 4;

/// Reads `data` as messages, and each as an acknowledgement, a class and attributes.
///
/// # Panics
/// If a message or an attribute is outside of `data`.
pub fn netlink(data: &[u8]) {
    let mut remaining = data;
    while let Some((_, body)) = next_message(&mut remaining) {
        assert!(body.len() + remaining.len() <= data.len());
        let _ = acknowledgement(body);
        let _ = read_class(body);
    }
    read(data, DEPTH_MAX);
}

fn read(bytes: &[u8], depth: usize) {
    let mut total = 0;
    for (_, value) in attributes(bytes) {
        total += value.len();
        if depth > 0 {
            read(value, depth - 1);
        }
    }
    assert!(total <= bytes.len());
}

#[cfg(test)]
mod tests {
    use std::fs;

    #[test]
    fn corpus_of_netlink_messages_passes() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/netlink");
        for file in fs::read_dir(corpus).expect("the corpus exists") {
            let path = file.expect("it can be listed").path();
            super::netlink(&fs::read(path).expect("it can be read"));
        }
    }
}
