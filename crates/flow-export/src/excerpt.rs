//! The part of a sampled frame that exporters report.

use packet::wire::vlan::VlanTag;
use packet::{Depth, Frame, Headers};

/// The first bytes of a frame, its length and its headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameExcerpt {
    /// Its first bytes.
    pub bytes: Box<[u8]>,
    /// The length on the wire in bytes; the average, if the frame represents several segments.
    pub length: usize,
    /// Its parsed headers, as far as they are valid.
    pub headers: Option<Headers>,
}

impl FrameExcerpt {
    /// Returns the first `snap` bytes of a frame, its length and its headers.
    pub fn of(frame: &Frame, snap: usize) -> Self {
        let bytes = frame.bytes();
        let segments = frame.wire_frames().max(1);
        let length = frame.wire_bytes() / segments;
        Self {
            bytes: bytes[..snap.min(bytes.len())].into(),
            length: usize::try_from(length).unwrap_or(usize::MAX),
            headers: Depth::ALL
                .into_iter()
                .rev()
                .find_map(|depth| Headers::parse(frame, depth).ok()),
        }
    }

    /// Returns its outermost VLAN tag.
    pub fn tag(&self) -> Option<VlanTag> {
        self.headers.as_ref()?.link.tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_is_truncated_and_has_vlan_tag() {
        let mut bytes = vec![2; 12];
        bytes.extend([0x81, 0, 0x60, 10, 8, 0]);
        bytes.extend([0; 100]);
        let excerpt = FrameExcerpt::of(&Frame::from_bytes(&bytes), 64);
        assert_eq!((excerpt.bytes.len(), excerpt.length), (64, bytes.len()));
        let tag = excerpt.tag().expect("there is one");
        assert_eq!((tag.vid, tag.pcp), (10, 3));
    }
}
