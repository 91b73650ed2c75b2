//! What has to be zero: each zero byte of each vector is made a one, and where `ovs-ofctl`
//! then sees a message that nobody may send, so do we. It asks less of what switches tell
//! than of what controllers ask, and so only the latter count.

use std::fs;

use openflow::{Detail, Message, Version};

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::ofp_print::all_vectors;
use crate::rig::Rig;

pub(crate) const RULES: &[Rule] =
    rules![what_is_to_be_zero_and_is_not_is_refused_as_by_open_vswitch,];

/// Messages that one run of the tool reads.
const BATCH: usize = 5_000;

/// What both make of a message that cannot be read.
const REFUSED: &str = "***decode error";

/// A message with one byte that was zero, and where that is.
struct Changed {
    name: String,
    at: usize,
    bytes: Vec<u8>,
}

fn what_is_to_be_zero_and_is_not_is_refused_as_by_open_vswitch(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    // Where we see a difference it is no padding, and what it means others show.
    let changed: Vec<_> = vectors(&rig, ground)?.iter().flat_map(unheeded).collect();
    assert!(changed.len() > 1_000, "only {} bytes", changed.len());
    let mut wrong = Vec::new();
    for batch in changed.chunks(BATCH) {
        let messages = batch.iter().map(|changed| &changed.bytes);
        let read = read_by_open_vswitch(&rig, ground, messages)?;
        for (changed, theirs) in batch.iter().zip(read) {
            let line = theirs.lines().next().unwrap_or_default();
            if theirs.contains(REFUSED) && !line.contains(" reply ") {
                wrong.push(format!("{}, byte {}: {line}", changed.name, changed.at));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    Ok(())
}

/// Messages and their names.
type Vectors = Vec<(String, Vec<u8>)>;

/// The vectors that both can read.
fn vectors(rig: &Rig<'_>, ground: &Ground) -> Result<Vectors, Box<dyn std::error::Error>> {
    let mut vectors = all_vectors();
    // The tool reads on behind a message by its length.
    vectors.retain(|(_, bytes)| {
        let length = bytes.get(2..4).map(|length| [length[0], length[1]]);
        length.is_some_and(|length| usize::from(u16::from_be_bytes(length)) == bytes.len())
    });
    let messages = vectors.iter().map(|(_, bytes)| bytes);
    let mut read = read_by_open_vswitch(rig, ground, messages)?.into_iter();
    vectors.retain(|(_, bytes)| {
        let theirs = read.next().unwrap_or_default();
        let ours = openflow::print(bytes, Detail::USUAL);
        !theirs.contains(REFUSED) && !ours.contains(REFUSED)
    });
    Ok(vectors)
}

/// A vector with a one for each zero that we do not heed.
fn unheeded((name, bytes): &(String, Vec<u8>)) -> Vec<Changed> {
    let text = openflow::print(bytes, Detail::USUAL);
    let zeros = (8..bytes.len()).filter(|at| bytes[*at] == 0);
    let changed = zeros.map(|at| {
        let mut changed = bytes.clone();
        changed[at] = 1;
        Changed {
            name: name.clone(),
            at,
            bytes: changed,
        }
    });
    changed
        .filter(|changed| openflow::print(&changed.bytes, Detail::USUAL) == text)
        .collect()
}

/// What the tool prints of each.
fn read_by_open_vswitch<'a>(
    rig: &Rig<'_>,
    ground: &Ground,
    messages: impl ExactSizeIterator<Item = &'a Vec<u8>>,
) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let file = ground.file("changed");
    let (count, mut bytes) = (messages.len(), Vec::new());
    for message in messages {
        bytes.extend(message);
        let between = Message::EchoRequest(Vec::new());
        between.encode(base::Xid(BETWEEN), Version::V10, &mut bytes)?;
    }
    fs::write(&file, bytes)?;
    let ran = rig.ran(&format!("ovs-ofctl -voff ofp-parse {}", file.display()))?;
    let between = format!("OFPT_ECHO_REQUEST (xid={BETWEEN:#x}): 0 bytes of payload\n");
    let read: Vec<_> = ran.output.split(&between).map(str::to_owned).collect();
    // Nothing stands behind the last.
    assert_eq!(read.len(), count + 1, "the tool read other messages");
    Ok(read)
}

/// The transaction between two of them, which none of them has.
const BETWEEN: u32 = 0x00be_be00;
