//! Segments compared with frames built from scratch.

use proptest::prelude::*;

use super::{SEGMENTS_MAX, SegmentError, segment};
use crate::build::{ChecksumFill, HexBytes, Layer, RawBytes, Stack, TcpFlags};
use crate::{Frame, Pool};

fn stack(text: &str) -> Stack {
    text.parse().expect("a stack")
}

fn cut(stack: &Stack) -> Vec<Frame> {
    let mut segments = Vec::new();
    let mut pool = Pool::new(1000);
    segment(&stack.build(), &mut pool, &mut segments).expect("the frame fits its metadata");
    segments
}

/// Returns the frame that the segment at `index` of `last + 1` must equal, built from scratch.
fn expected(stack: &Stack, index: usize, last: usize, size: usize) -> Frame {
    let passed = u32::try_from(index * size).expect("short");
    let mut layers = stack.layers().to_vec();
    layers.retain(|layer| !matches!(layer, Layer::Gso(_)));
    for layer in &mut layers {
        match layer {
            Layer::Ipv4(ip) => ip.id = ip.id.wrapping_add(u16::try_from(index).expect("few")),
            Layer::Tcp(tcp) => {
                tcp.seq = tcp.seq.wrapping_add(passed);
                tcp.checksum = ChecksumFill::Correct;
                let kept = if index == last { 0xfff } else { 0xfff & !0x09 };
                let cwr = if index == 0 { 0 } else { 0x80 };
                tcp.flags = TcpFlags(tcp.flags.0 & kept & !cwr);
            }
            Layer::Udp(udp) => udp.checksum = ChecksumFill::Correct,
            Layer::Raw(raw) => {
                let slice = raw.bytes.0.chunks(size).nth(index).unwrap_or_default();
                raw.bytes = HexBytes(slice.to_vec());
            }
            _ => {}
        }
    }
    layers.into_iter().fold(Stack::new(), Stack::with).build()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn segments_equal_frames_built_from_scratch(
        link in proptest::sample::select(vec!["eth", "eth / vlan / vlan", "eth / mpls / mpls"]),
        ip in proptest::sample::select(vec![
            "ipv4(id=65534,tos=3)", "ipv4(options=01010101)", "ipv6(flabel=77) / destination",
            "ipv6 / routing(left=1)",
        ]),
        above in proptest::sample::select(vec![
            "tcp(flags=FPAC,seq=4294967000,options=01010101,checksum=partial)",
            "tcp(flags=S,checksum=partial)",
            "udp(checksum=partial)",
        ]),
        payload in proptest::collection::vec(any::<u8>(), 1..4000),
        size in 4_u16..3000,
    ) {
        let size = size.max(10);
        let raw = RawBytes { bytes: HexBytes(payload) };
        let gso = crate::build::Gso { size };
        let whole = stack(&format!("{link} / {ip} / {above}")).with(raw).with(gso);
        let segments = cut(&whole);
        let frame = whole.build();
        prop_assert_eq!(frame.wire_frames(), segments.len() as u64);
        let bytes: usize = segments.iter().map(Frame::len).sum();
        prop_assert_eq!(frame.wire_bytes(), bytes as u64);
        for (index, segment) in segments.iter().enumerate() {
            let expected = expected(&whole, index, segments.len() - 1, usize::from(size));
            prop_assert_eq!(Stack::dissect(segment).to_string(), Stack::dissect(&expected).to_string());
            prop_assert_eq!(segment, &expected);
        }
    }
}

#[test]
fn frame_without_segmentation_gets_complete_checksum() {
    let partial = stack("eth / ipv4 / udp(checksum=partial) / data(5)");
    assert_eq!(cut(&partial), [stack("eth / ipv4 / udp / data(5)").build()]);
}

#[test]
fn complete_udp_checksum_is_never_zero() {
    let partial = stack("eth / ipv4 / udp(checksum=partial) / raw(e01f)");
    assert_eq!(
        cut(&partial),
        [stack("eth / ipv4 / udp(checksum=0xffff) / raw(e01f)").build()]
    );
}

#[test]
fn metadata_that_does_not_fit_the_frame_is_refused() {
    let mut pool = Pool::new(10);
    let mut segments = Vec::new();
    for text in [
        "eth / arp / gso(10)",
        "eth / ipv4 / icmp / data(100) / gso(10)",
        "eth / ipv4(mf) / icmp / data(100) / gso(10)",
        "eth / ipv4 / tcp / gso(10)",
        "eth / ipv4 / tcp(offset=4) / data(100) / gso(10)",
        "eth / ipv4 / tcp / data(100) / gso(0)",
        "eth / ipv4(length=3000) / tcp / data(100) / gso(10)",
    ] {
        let result = segment(&stack(text).build(), &mut pool, &mut segments);
        assert_eq!(result, Err(SegmentError::Mismatch), "{text}");
    }
    let mut frame = stack("eth / ipv6 / tcp / data(100) / gso(10)").build();
    if let Some(how) = &mut frame.offload.segmentation {
        how.kind = crate::SegmentationKind::Tcp4;
    }
    assert_eq!(
        segment(&frame, &mut pool, &mut segments),
        Err(SegmentError::Mismatch)
    );
    assert_eq!((pool.outstanding(), segments.len()), (0, 0));
}

#[test]
fn frame_with_too_many_segments_is_refused_before_a_buffer_is_taken() {
    let mut pool = Pool::new(2 * SEGMENTS_MAX);
    let mut segments = Vec::new();
    let frame = |bytes: usize| {
        let stack = format!("eth / ipv4 / tcp(checksum=partial) / data({bytes}) / gso(1)");
        self::stack(&stack).build()
    };
    let result = segment(&frame(SEGMENTS_MAX + 1), &mut pool, &mut segments);
    assert_eq!(result, Err(SegmentError::TooMany));
    assert_eq!((pool.outstanding(), segments.len()), (0, 0));
    let result = segment(&frame(SEGMENTS_MAX), &mut pool, &mut segments);
    assert_eq!((result, segments.len()), (Ok(()), SEGMENTS_MAX));
}

#[test]
fn segmentation_without_buffers_produces_no_segment() {
    let mut pool = Pool::new(9);
    let mut segments = Vec::new();
    let frame = stack("eth / ipv4 / tcp(checksum=partial) / data(100) / gso(10)").build();
    let result = segment(&frame, &mut pool, &mut segments);
    assert_eq!(result, Err(SegmentError::NoBuffer));
    assert_eq!((pool.outstanding(), segments.len()), (0, 0));
}

#[test]
fn checksum_of_large_frame_stays_partial() {
    let mut frame = stack("eth / ipv4 / tcp(checksum=partial) / data(100) / gso(10)").build();
    let before = frame.clone();
    frame.complete_checksum();
    assert_eq!(frame, before);
}

#[test]
fn frame_with_invalid_metadata_counts_as_one() {
    let mut frame = stack("eth / ipv4 / tcp(checksum=partial) / data(10) / gso(10)").build();
    frame.truncate(40);
    assert_eq!((frame.wire_frames(), frame.wire_bytes()), (1, 40));
}
