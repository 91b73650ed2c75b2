//! Partial checksums are detected from the bytes alone.

use proptest::prelude::*;

use crate::build::Stack;
use crate::{Checksum, Frame, Offload};

fn build(text: &str) -> Frame {
    text.parse::<Stack>().expect("a stack").build()
}

/// Returns the frame without its metadata.
fn bare(frame: &Frame) -> Frame {
    let mut frame = frame.clone();
    frame.offload = Offload::default();
    frame
}

#[test]
fn partial_checksum_is_detected_under_tags_and_both_ip_versions() {
    for under in [
        "eth",
        "eth / vlan(vid=7)",
        "eth / vlan(vid=7) / vlan(vid=8)",
    ] {
        for over in ["ipv4", "ipv6"] {
            for protocol in ["tcp", "udp"] {
                let text = format!("{under} / {over} / {protocol}(checksum=partial) / data(33)");
                let expected = build(&text);
                assert!(matches!(
                    expected.offload.checksum,
                    Checksum::Partial { .. }
                ));
                let mut frame = bare(&expected);
                frame.detect_partial_checksum();
                assert_eq!(frame, expected, "{text}");
            }
        }
    }
}

#[test]
fn frame_without_tcp_or_udp_header_stays_complete() {
    for text in [
        "eth / arp",
        "eth / ipv4 / icmp / data(10)",
        "eth / ipv4 / sctp / data(10)",
        "eth / ipv4(mf) / udp(checksum=partial) / data(10)",
        "eth / data(40)",
    ] {
        let mut frame = bare(&build(text));
        let before = frame.clone();
        frame.detect_partial_checksum();
        assert_eq!(frame, before, "{text}");
    }
    for len in 0..80 {
        let mut frame = bare(&build("eth / ipv6 / tcp(checksum=partial) / data(10)"));
        frame.truncate(len);
        let before = frame.clone();
        frame.detect_partial_checksum();
        assert_eq!(frame, before, "cut off after {len} bytes");
    }
}

proptest! {
    /// Includes complete checksums that equal the sum of the pseudo-header.
    #[test]
    fn detection_and_completion_preserve_checksum_correctness(
        port: u16,
        len in 0_usize..200,
        flip in 1_u16..,
        v6: bool,
    ) {
        let ip = if v6 { "ipv6" } else { "ipv4" };
        let right = bare(&build(&format!("eth / {ip} / tcp(src={port}) / data({len})")));
        let mut frame = right.clone();
        frame.detect_partial_checksum();
        frame.complete_checksum();
        prop_assert_eq!(&frame, &right);
        let at = if v6 { 70 } else { 50 };
        let mut wrong = right;
        for (byte, flip) in wrong.bytes_mut()[at..].iter_mut().zip(flip.to_be_bytes()) {
            *byte ^= flip;
        }
        let before = wrong.clone();
        wrong.detect_partial_checksum();
        // One wrong checksum in 65,536 equals a partial one.
        prop_assume!(wrong.offload.checksum == Checksum::Complete);
        wrong.complete_checksum();
        prop_assert_eq!(wrong, before);
    }

    /// Changes a few header bytes, which damages some of the headers.
    #[test]
    fn fast_completeness_check_agrees_with_full_parse(
        udp: bool,
        complete: bool,
        len in 0_usize..60,
        changes in prop::collection::vec((12_usize..54, 0_u8..), 0..3),
        cut in 0_usize..8,
    ) {
        let protocol = if udp { "udp" } else { "tcp" };
        let how = if complete { "" } else { "(checksum=partial)" };
        let mut frame = bare(&build(&format!("eth / ipv4 / {protocol}{how} / data({len})")));
        for (at, byte) in changes {
            if let Some(byte_at) = frame.bytes_mut().get_mut(at) {
                *byte_at = byte;
            }
        }
        frame.truncate(frame.len() - cut);
        if super::is_plainly_complete(frame.bytes()) {
            let before = frame.clone();
            frame.detect_by_layout();
            prop_assert_eq!(frame, before);
        }
    }

    #[test]
    fn complete_checksum_passes_fast_check(port: u16, len in 8_usize..60) {
        for protocol in ["udp", "tcp"] {
            let frame = build(&format!("eth / ipv4 / {protocol}(src={port}) / data({len})"));
            let mut closer = frame.clone();
            closer.detect_by_layout();
            let is_complete = closer.offload.checksum == Checksum::Complete;
            let plain = frame.len() >= 54;
            prop_assert_eq!(super::is_plainly_complete(frame.bytes()), is_complete && plain);
        }
    }
}
