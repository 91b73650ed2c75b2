//! Packets that have facts, and packets that have none.

use packet::build::Stack;
use packet::wire::tcp::SYN;
use proptest::prelude::*;

use super::*;

/// Length of the Ethernet header.
const LINK_LEN: usize = 14;

fn packet(text: &str) -> Vec<u8> {
    let frame = text.parse::<Stack>().expect(text).build();
    frame.bytes()[LINK_LEN..].to_vec()
}

fn facts_of(bytes: &[u8], family: AddressFamily) -> PacketFacts {
    extract(bytes, family, ChecksumCheck::Verify)
        .expect("well formed")
        .facts
}

#[test]
fn udp_facts_are_addresses_and_ports() {
    let bytes = packet("eth / ipv4 / udp(src=7,dst=53) / data(20)");
    let extracted = extract(&bytes, AddressFamily::V4, ChecksumCheck::Verify);
    let extracted = extracted.expect("well formed");
    let tuple = extracted.facts.tuple;
    assert_eq!((tuple.src.port, tuple.dst.port), (7, 53));
    assert_eq!(tuple.protocol, KeyProtocol::UDP);
    assert_eq!(extracted.payload.len(), 20);
    let bytes = packet("eth / ipv6 / udp(src=7,dst=53) / data(3)");
    let tuple = facts_of(&bytes, AddressFamily::V6).tuple;
    assert_eq!((tuple.family, tuple.dst.port), (AddressFamily::V6, 53));
}

#[test]
fn tcp_facts_are_numbers_and_window() {
    let mut bytes = packet("eth / ipv4 / tcp(src=7,dst=80,flags=S) / data(4)");
    bytes[20 + tcp::SEQUENCE..][..4].copy_from_slice(&[1, 2, 3, 4]);
    let extracted = extract(&bytes, AddressFamily::V4, ChecksumCheck::Skip);
    let extracted = extracted.expect("well formed");
    let TransportFacts::Tcp(segment) = extracted.facts.transport else {
        panic!("{extracted:?}");
    };
    assert_eq!((segment.flags, segment.sequence), (SYN, 0x0102_0304));
    assert_eq!((segment.payload_len, segment.window_scale), (4, None));
    let verified = extract(&bytes, AddressFamily::V4, ChecksumCheck::Verify);
    assert_eq!(verified, Err(ExtractError::Checksum));
}

#[test]
fn window_scale_option_is_read() {
    assert_eq!(window_scale(&[2, 4, 5, 180, 1, 3, 3, 7]), Some(7));
    assert_eq!(window_scale(&[3, 3, 200]), Some(14));
    assert_eq!(window_scale(&[0, 3, 3, 7]), None);
    assert_eq!(window_scale(&[8, 0, 3, 3, 7]), Some(7));
    assert_eq!(window_scale(&[8, 255, 3]), None);
    assert_eq!(window_scale(&[3, 3]), None);
}

/// Returns an ICMP error with the quoted packet.
fn icmp_error(src: [u8; 4], dst: [u8; 4], quoted: &[u8]) -> Vec<u8> {
    let len = u16::try_from(20 + ICMP_LEN + quoted.len()).expect("a short packet");
    let [high, low] = len.to_be_bytes();
    let mut bytes = vec![0x45, 0, high, low, 0, 0, 0, 0, 64, 1, 0, 0];
    bytes.extend(src);
    bytes.extend(dst);
    bytes.extend([3, 1, 0, 0, 0, 0, 0, 0]);
    bytes.extend(quoted);
    bytes
}

#[test]
fn error_facts_are_those_of_the_quoted_packet() {
    let quoted = packet("eth / ipv4 / udp(src=7,dst=53) / data(20)");
    let tuple = facts_of(&quoted, AddressFamily::V4).tuple;
    let sender: [u8; 4] = quoted[12..16].try_into().expect("an address");
    let error = icmp_error([192, 0, 2, 9], sender, &quoted[..28]);
    let extracted = extract(&error, AddressFamily::V4, ChecksumCheck::Skip);
    let facts = extracted.expect("well formed").facts;
    assert_eq!(facts.transport, TransportFacts::IcmpError);
    assert_eq!((facts.tuple.src, facts.tuple.dst), (tuple.dst, tuple.src));

    let truncated = icmp_error([192, 0, 2, 9], sender, &quoted[..27]);
    let foreign = icmp_error([192, 0, 2, 9], [192, 0, 2, 8], &quoted[..28]);
    for bytes in [truncated, foreign] {
        let extracted = extract(&bytes, AddressFamily::V4, ChecksumCheck::Skip);
        assert_eq!(extracted, Err(ExtractError::Quote));
    }
}

#[test]
fn chunk_types_of_sctp_are_read() {
    let mut bytes = vec![0; SCTP_LEN];
    bytes.extend([10, 0, 0, 5, 1, 0, 0, 0, 0, 0, 0, 4]);
    let chunks = read_sctp(&bytes).expect("well formed");
    assert!(chunks.has(SctpChunks::COOKIE_ECHO));
    assert_eq!(chunks.0, 1 << 10 | 1);
    bytes.extend([0, 0, 0, 9]);
    assert_eq!(read_sctp(&bytes), Err(ExtractError::Transport));
}

proptest! {
    #[test]
    fn extraction_accepts_arbitrary_bytes(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        protocol in prop::sample::select(vec![1_u8, 6, 17, 58, 132]),
        is_v6 in any::<bool>(),
    ) {
        let mut bytes = bytes;
        let len = bytes.len();
        let family = if is_v6 { AddressFamily::V6 } else { AddressFamily::V4 };
        let header: &[(usize, u8)] = if is_v6 {
            &[(0, 0x60), (4, 0), (6, protocol)]
        } else {
            &[(0, 0x45), (2, 0), (6, 0), (7, 0), (9, protocol)]
        };
        for (at, byte) in header {
            if let Some(place) = bytes.get_mut(*at) {
                *place = *byte;
            }
        }
        let (at, total) = if is_v6 { (5, len.saturating_sub(40)) } else { (3, len) };
        if let Some(place) = bytes.get_mut(at) {
            *place = u8::try_from(total).unwrap_or(0);
        }
        for check in [ChecksumCheck::Verify, ChecksumCheck::Skip] {
            if let Ok(extracted) = extract(&bytes, family, check) {
                prop_assert_eq!(extracted.facts.tuple.family, family);
                prop_assert!(extracted.payload.len() <= len);
            }
        }
    }
}
