//! Capture files in the pcap format.

use packet::build::Stack;

/// Encodes a capture file of these frames in the machine's byte order.
pub(crate) fn pcap_file(stacks: &[&str]) -> Vec<u8> {
    let words =
        |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_ne_bytes()).collect() };
    let mut bytes = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1]);
    if cfg!(target_endian = "big") {
        bytes[4..8].copy_from_slice(&[0, 2, 0, 4]);
    }
    for stack in stacks {
        let frame = stack.parse::<Stack>().expect(stack).build();
        let len = u32::try_from(frame.len()).expect("a frame is shorter than 4 GB");
        bytes.extend(words(&[0, 0, len, len]));
        bytes.extend(frame.bytes());
    }
    bytes
}

/// Decodes the frames of a little-endian capture file.
pub(crate) fn pcap_frames(file: &[u8]) -> Vec<Vec<u8>> {
    let (mut frames, mut rest) = (Vec::new(), file.get(24..).unwrap_or_default());
    while let Some((header, behind)) = rest.split_at_checked(16) {
        let length = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let Some((frame, behind)) = behind.split_at_checked(length) else {
            break;
        };
        frames.push(frame.to_vec());
        rest = behind;
    }
    frames
}
