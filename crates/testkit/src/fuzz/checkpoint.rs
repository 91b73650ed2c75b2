//! Checkpoints: arbitrary bytes, as a whole file or as the records of a valid one. A checkpoint that
//! is parsed can be written and parsed again.

use openflow::Checkpoint;

/// Parses `data` as a file if the first byte is even, else as records, which no checksum protects.
///
/// # Panics
/// If a parsed checkpoint cannot be written and parsed again.
pub fn checkpoint(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else {
        return;
    };
    let parsed = match kind % 2 {
        0 => Checkpoint::parse(data),
        _ => Checkpoint::parse_records(data),
    };
    let Ok(checkpoint) = parsed else {
        return;
    };
    let (file, counts) = checkpoint.encode();
    let again = Checkpoint::parse(&file).expect("a written checkpoint is valid");
    assert_eq!(again.bridges.len(), checkpoint.bridges.len());
    let messages = |checkpoint: &Checkpoint| -> usize {
        let bridges = checkpoint.bridges.iter();
        bridges.map(|bridge| bridge.messages.len()).sum()
    };
    assert_eq!(messages(&again) + counts.omitted, messages(&checkpoint));
}
