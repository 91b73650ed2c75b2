//! Encoding and decoding of virtio-net headers, and inconsistent headers.

use super::*;
use proptest::prelude::*;

/// A header with the layout of the kernel's structure.
fn header(flags: u8, kind: u8, numbers: [u16; 4]) -> [u8; LEN] {
    let mut header = [0; LEN];
    header[..2].copy_from_slice(&[flags, kind]);
    for (i, number) in numbers.iter().enumerate() {
        header[2 + 2 * i..][..2].copy_from_slice(&number.to_ne_bytes());
    }
    header
}

#[test]
fn segmented_frame_of_linux_is_decoded() {
    // Header of a host's TCP over IPv4 with timestamps, at an MTU of 1500.
    let offload = decode(header(1, 1, [66, 1448, 34, 16]), 65_226);
    assert_eq!(
        offload,
        Ok(Offload {
            checksum: Checksum::Partial {
                start: 34,
                offset: 16
            },
            segmentation: Some(Segmentation {
                kind: SegmentationKind::Tcp4,
                size: 1448,
                header_len: 66
            }),
        })
    );
}

#[test]
fn inconsistent_headers_are_refused() {
    let checksum_last = header(1, 0, [0, 0, 50, 8]);
    assert!(decode(checksum_last, 60).is_ok());
    assert_eq!(
        decode(checksum_last, 59),
        Err(InvalidVnetHeader::ChecksumBeyondFrame)
    );
    let beyond = header(1, 0, [0, 0, u16::MAX, u16::MAX]);
    assert_eq!(
        decode(beyond, 1514),
        Err(InvalidVnetHeader::ChecksumBeyondFrame)
    );
    for unknown in [2, 3, 3 | GSO_ECN, 5 | GSO_ECN, GSO_ECN, 0x20] {
        let sized = header(1, unknown, [54, 1448, 34, 16]);
        assert_eq!(
            decode(sized, 4000),
            Err(InvalidVnetHeader::UnknownKind(unknown))
        );
    }
    let empty = header(1, 1, [54, 0, 34, 16]);
    assert_eq!(decode(empty, 4000), Err(InvalidVnetHeader::EmptySegments));
}

#[test]
fn verified_checksum_is_decoded_but_not_encoded() {
    let offload = decode(header(2, 0, [0; 4]), 60).unwrap();
    assert_eq!(offload.checksum, Checksum::Verified);
    assert_eq!(encode(&offload, 60), [0; LEN]);
}

fn offloads() -> impl Strategy<Value = Offload> {
    let checksum = prop_oneof![
        Just(Checksum::Complete),
        (0..2000u16, 0..200u16).prop_map(|(start, offset)| Checksum::Partial { start, offset }),
    ];
    let kind = proptest::sample::select(KINDS.map(|(_, kind)| kind).to_vec());
    let segmentation = proptest::option::of((kind, 1..=u16::MAX, 0..2000u16).prop_map(
        |(kind, size, header_len)| Segmentation {
            kind,
            size,
            header_len,
        },
    ));
    (checksum, segmentation).prop_map(|(checksum, segmentation)| Offload {
        checksum,
        segmentation,
    })
}

proptest! {
    #[test]
    fn header_roundtrips(offload in offloads(), len in 2202..70_000usize) {
        prop_assert_eq!(decode(encode(&offload, len), len), Ok(offload));
    }

    #[test]
    fn accepted_checksum_field_is_inside_frame(
        flags in 0..8u8, kind in 0..8u8, ecn in any::<bool>(),
        numbers in any::<[u16; 4]>(), len in 0..70_000usize,
    ) {
        let kind = if ecn { kind | GSO_ECN } else { kind };
        if let Ok(offload) = decode(header(flags, kind, numbers), len) {
            if let Checksum::Partial { start, offset } = offload.checksum {
                prop_assert!(usize::from(start) + usize::from(offset) + 2 <= len);
            }
            prop_assert!(offload.segmentation.is_none_or(|cut| cut.size > 0));
        }
    }
}
