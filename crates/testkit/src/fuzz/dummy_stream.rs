//! The stream between two dummies, or any bytes: the frames are the same however the bytes arrive.
//! The first byte is the size of the parts; the text of a connection is parsed, too.

use ports::dummy::{Deframer, DummyConnection};

/// Returns the frames in `bytes`, which arrive in parts, and whether the stream is malformed.
fn deframe(bytes: &[u8], part: usize) -> (Vec<Vec<u8>>, bool) {
    let (mut deframer, mut frames) = (Deframer::default(), Vec::new());
    for part in bytes.chunks(part.max(1)) {
        deframer.append(part);
        loop {
            match deframer.next_frame() {
                Ok(Some(frame)) => frames.push(frame.to_vec()),
                Ok(None) => break,
                Err(_) => return (frames, true),
            }
        }
    }
    (frames, false)
}

/// Reads `data` as a stream of frames, and as the text of a connection.
///
/// # Panics
/// If the frames depend on the parts in which the bytes arrive, or the text of a connection is
/// parsed as another one after it is printed.
pub fn dummy_stream(data: &[u8]) {
    let Some((part, bytes)) = data.split_first() else {
        return;
    };
    assert_eq!(deframe(bytes, (*part).into()), deframe(bytes, bytes.len()));
    let text = std::str::from_utf8(bytes).ok();
    if let Some(Ok(connection)) = text.map(str::parse::<DummyConnection>) {
        assert_eq!(connection.to_string().parse(), Ok(connection));
    }
}
