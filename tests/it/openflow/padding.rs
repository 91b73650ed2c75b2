//! Padding: each zero byte of each test vector is set to one. Where `ovs-ofctl` then reports a
//! decode error, Comporta does so too. The comparison leaves out replies, which `ovs-ofctl` checks
//! less strictly than requests.

use std::fs;

use openflow::{Detail, Message, Version};

use crate::openflow::ofp_print::all_vectors;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![nonzero_padding_is_refused_like_open_vswitch,];

/// Number of messages that one run of the tool decodes.
const BATCH: usize = 5_000;

/// Text that both print for a message that they cannot decode.
const DECODE_ERROR: &str = "***decode error";

/// A message with one changed byte, and the byte's offset.
struct ChangedByte {
    name: String,
    offset: usize,
    bytes: Vec<u8>,
}

fn nonzero_padding_is_refused_like_open_vswitch(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    // A byte that changes Comporta's text is no padding; other tests cover it.
    let changes: Vec<_> = vectors(&network, context)?
        .iter()
        .flat_map(ignored_changes)
        .collect();
    assert!(changes.len() > 1_000, "only {} bytes", changes.len());
    let mut differences = Vec::new();
    for batch in changes.chunks(BATCH) {
        let messages = batch.iter().map(|changes| &changes.bytes);
        let read = decode_with_ovs_ofctl(&network, context, messages)?;
        for (changes, ovs) in batch.iter().zip(read) {
            let line = ovs.lines().next().unwrap_or_default();
            if ovs.contains(DECODE_ERROR) && !line.contains(" reply ") {
                differences.push(format!("{}, byte {}: {line}", changes.name, changes.offset));
            }
        }
    }
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
    Ok(())
}

/// Messages and their names.
type NamedMessages = Vec<(String, Vec<u8>)>;

/// Test vectors that both can decode.
fn vectors(
    network: &TestNetwork<'_>,
    context: &TestContext,
) -> Result<NamedMessages, Box<dyn std::error::Error>> {
    let mut vectors = all_vectors();
    // The tool splits a file into messages by their lengths.
    vectors.retain(|(_, bytes)| {
        let length = bytes.get(2..4).map(|length| [length[0], length[1]]);
        length.is_some_and(|length| usize::from(u16::from_be_bytes(length)) == bytes.len())
    });
    let messages = vectors.iter().map(|(_, bytes)| bytes);
    let mut read = decode_with_ovs_ofctl(network, context, messages)?.into_iter();
    vectors.retain(|(_, bytes)| {
        let ovs = read.next().unwrap_or_default();
        let comporta = openflow::print(bytes, Detail::USUAL);
        !ovs.contains(DECODE_ERROR) && !comporta.contains(DECODE_ERROR)
    });
    Ok(vectors)
}

/// Copies of a vector, each with one zero byte set to one that does not change Comporta's text.
fn ignored_changes((name, bytes): &(String, Vec<u8>)) -> Vec<ChangedByte> {
    let text = openflow::print(bytes, Detail::USUAL);
    let zeros = (8..bytes.len()).filter(|offset| bytes[*offset] == 0);
    let changes = zeros.map(|offset| {
        let mut changes = bytes.clone();
        changes[offset] = 1;
        ChangedByte {
            name: name.clone(),
            offset,
            bytes: changes,
        }
    });
    changes
        .filter(|changes| openflow::print(&changes.bytes, Detail::USUAL) == text)
        .collect()
}

/// Output of `ovs-ofctl` for each message.
fn decode_with_ovs_ofctl<'a>(
    network: &TestNetwork<'_>,
    context: &TestContext,
    messages: impl ExactSizeIterator<Item = &'a Vec<u8>>,
) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let file = context.unique_path("changed");
    let (count, mut bytes) = (messages.len(), Vec::new());
    for message in messages {
        bytes.extend(message);
        let separator = Message::EchoRequest(Vec::new());
        separator.encode(base::Xid(SEPARATOR_XID), Version::V10, &mut bytes)?;
    }
    fs::write(&file, bytes)?;
    let output = network.run(&format!("ovs-ofctl -voff ofp-parse {}", file.display()))?;
    let separator = format!("OFPT_ECHO_REQUEST (xid={SEPARATOR_XID:#x}): 0 bytes of payload\n");
    let read: Vec<_> = output.stdout.split(&separator).map(str::to_owned).collect();
    // The last message is followed by an empty text.
    assert_eq!(
        read.len(),
        count + 1,
        "the tool splits the file differently"
    );
    Ok(read)
}

/// Transaction id of the messages in between, which no vector has.
const SEPARATOR_XID: u32 = 0x00be_be00;
