//! The frame parser and every rewrite. No bytes and no metadata cause a panic; the parsed headers
//! agree with the frame after each rewrite; and a checksum that was correct, complete or partial,
//! is correct afterwards, while an incorrect one stays incorrect.
//!
//! The checksums are verified here, word by word, independently of the code that updates them.

use std::net::{Ipv4Addr, Ipv6Addr};

use packet::build::Stack;
use packet::wire::ethernet::EtherType;
use packet::wire::nsh::Nsh;
use packet::wire::{Fragment, IpProto};
use packet::{
    Checksum, Depth, EncapPayload, Frame, Headers, MacAddr, Network, Offload, Packet, Pool,
    RewriteError, Segmentation, SegmentationKind, segment,
};

/// The bytes before the frame that determine its metadata and the rewrites.
const HEAD_LEN: usize = 8;

/// The longest frame. Longer frames only cost time.
const FRAME_LEN_MAX: usize = 2048;

/// The longest frame that is dissected: dissection rebuilds the frame for every field, which is
/// slow.
const REBUILT_LEN_MAX: usize = 256;

/// Parses, rewrites, completes and segments the frame in `data`. The first eight bytes are metadata
/// and the seed of the rewrites.
///
/// # Panics
/// If an invariant of this module is violated.
pub fn frame(data: &[u8]) {
    let Some((head, bytes)) = data.split_first_chunk::<HEAD_LEN>() else {
        return;
    };
    let mut frame = Frame::from_bytes(&bytes[..bytes.len().min(FRAME_LEN_MAX)]);
    frame.offload = offload(head);
    let _ = (frame.wire_frames(), frame.wire_bytes());
    let mut pool = Pool::new(64);
    let _ = segment(&frame, &mut pool, &mut Vec::new());
    frame.offload.segmentation = None;
    let Some(depth) = deepest(&frame) else {
        return;
    };
    for rewrite_index in 0..REWRITES {
        check_rewrite(&frame, depth, rewrite_index, head[7]);
    }
    if frame.len() <= REBUILT_LEN_MAX {
        check_rebuilt(&frame);
    }
}

fn offload(head: &[u8; HEAD_LEN]) -> Offload {
    let [flags, start, start_low, offset, size, size_low, kind, _] = *head;
    let checksum = match flags & 3 {
        1 => Checksum::Verified,
        2 => Checksum::Partial {
            start: u16::from_be_bytes([start, start_low]),
            offset: offset.into(),
        },
        _ => Checksum::Complete,
    };
    let segmentation = (flags & 4 != 0).then(|| Segmentation {
        kind: match kind % 5 {
            0 => SegmentationKind::Tcp4,
            1 => SegmentationKind::Tcp4Ecn,
            2 => SegmentationKind::Tcp6,
            3 => SegmentationKind::Tcp6Ecn,
            _ => SegmentationKind::Udp,
        },
        size: u16::from_be_bytes([size, size_low]),
        header_len: kind.into(),
    });
    Offload {
        checksum,
        segmentation,
    }
}

/// Returns the deepest layer that parses. A frame that is malformed at one depth is malformed at
/// every greater depth.
fn deepest(frame: &Frame) -> Option<Depth> {
    let parses = |depth: &Depth| Headers::parse(frame, *depth).is_ok();
    let depths: Vec<_> = Depth::ALL.into_iter().filter(parses).collect();
    assert_eq!(depths, Depth::ALL[..depths.len()]);
    depths.last().copied()
}

/// The number of rewrites.
const REWRITES: u8 = 49;

/// The rewrites that change the type of the next header. The frame may be malformed afterwards, or
/// have another checksum.
const RETYPING: [u8; 3] = [28, 38, 39];

fn check_rewrite(frame: &Frame, depth: Depth, rewrite_index: u8, seed: u8) {
    let mut rewritten = frame.clone();
    let before = verify_checksums(&rewritten);
    let mut packet = Packet::parse(&mut rewritten, depth).expect("it was read before");
    let result = rewrite(&mut packet, rewrite_index, seed);
    if result.is_ok() {
        let retyping = RETYPING.contains(&rewrite_index) || packet.malformed().is_some();
        match Headers::parse(packet.frame(), depth) {
            Err(_) if retyping => {}
            read => assert_eq!(
                read.as_ref(),
                Ok(packet.headers()),
                "change {rewrite_index}"
            ),
        }
        let after = verify_checksums(&rewritten);
        for (before, after) in before.into_iter().zip(after) {
            // A checksum that is absent before or after is not compared.
            let both = before.zip(after);
            assert!(
                retyping || both.is_none_or(|(a, b)| a == b),
                "change {rewrite_index}: {rewritten:?}"
            );
        }
    }
}

/// Returns the payload that a new header encapsulates.
const fn encap_payload(seed: u8) -> EncapPayload {
    match seed % 2 {
        0 => EncapPayload::Frame,
        _ => EncapPayload::Packet,
    }
}

/// Applies one rewrite, with values derived from the seed.
fn rewrite(packet: &mut Packet<'_>, rewrite_index: u8, seed: u8) -> Result<(), RewriteError> {
    let mac = MacAddr([seed; 6]);
    let v4 = Ipv4Addr::from([seed, seed ^ 0xff, 0, seed]);
    let v6 = Ipv6Addr::from([seed; 16]);
    let word = u16::from_be_bytes([seed, seed.reverse_bits()]);
    let eth_type = match seed % 4 {
        0 => 0x0800,
        1 => 0x86dd,
        2 => 0x8847,
        _ => 0x0806,
    };
    match rewrite_index {
        0 => packet.set_eth_dst(mac),
        1 => packet.set_eth_src(mac),
        2 => packet.set_vlan_vid(word),
        3 => packet.set_vlan_pcp(seed),
        4 => packet.push_vlan(0x8100)?,
        5 => packet.pop_vlan()?,
        6 => packet.push_mpls(0x8847)?,
        7 => packet.pop_mpls(eth_type)?,
        8 => packet.set_mpls_label(word.into()),
        9 => packet.set_mpls_tc(seed),
        10 => packet.set_mpls_ttl(seed),
        11 => packet.set_arp_op(word),
        12 => packet.set_arp_sha(mac),
        13 => packet.set_arp_spa(v4),
        14 => packet.set_arp_tha(mac),
        15 => packet.set_arp_tpa(v4),
        16 => packet.set_ip_dscp(seed),
        17 => packet.set_ip_ecn(seed),
        18 => packet.set_ip_ttl(seed),
        19 => packet.set_ipv4_src(v4),
        20 => packet.set_ipv4_dst(v4),
        21 => packet.set_ipv6_src(v6),
        22 => packet.set_ipv6_dst(v6),
        23 => packet.set_ipv6_flabel(word.into()),
        24 => packet.set_port_src(word),
        25 => packet.set_port_dst(word),
        26 => packet.set_icmpv4_type(seed),
        27 => packet.set_icmpv4_code(seed),
        28 => packet.set_icmpv6_type(seed),
        29 => packet.set_icmpv6_code(seed),
        30 => packet.set_nd_target(v6),
        31 => {
            packet.set_nd_sll(mac);
            packet.set_nd_tll(mac);
        }
        32 => drop((packet.dec_ip_ttl(), packet.dec_mpls_ttl())),
        33 => packet.copy_ttl_out(),
        34 => packet.copy_ttl_in(),
        35 => packet.push_pbb(0x88e7)?,
        36 => packet.pop_pbb()?,
        37 => {
            packet.set_pbb_isid(word.into());
            packet.set_pbb_uca(seed % 2 == 1);
        }
        38 => packet.set_eth_type(eth_type)?,
        39 => packet.set_ip_proto(seed)?,
        _ => rewrite_more(packet, rewrite_index, seed)?,
    }
    Ok(())
}

/// Continues [`rewrite`]: encapsulation headers and their fields.
fn rewrite_more(packet: &mut Packet<'_>, rewrite_index: u8, seed: u8) -> Result<(), RewriteError> {
    let word = u16::from_be_bytes([seed, seed.reverse_bits()]);
    match rewrite_index {
        40 => packet.set_mpls_bos(seed % 2 == 1),
        41 => {
            packet.set_nd_reserved(word.into());
            packet.set_nd_option_type(seed);
        }
        42 => {
            packet.set_nsh_flags(seed);
            packet.set_nsh_path(word.into());
            packet.set_nsh_index(seed);
            packet.set_nsh_context(usize::from(seed % 5), word.into());
        }
        43 => drop(packet.dec_nsh_ttl()),
        44 => drop(packet.push_nsh(encap_payload(seed), Nsh::default(), &[seed; 16])?),
        45 => drop(packet.pop_nsh()?),
        46 => packet.encap_mpls(encap_payload(seed), EtherType::MPLS)?,
        47 => drop(packet.decap_mpls((seed.is_multiple_of(2)).then_some(EtherType::IPV4))?),
        _ => drop(packet.strip_ethernet()),
    }
    Ok(())
}

/// Verifies the checksums of the IPv4 header and of the transport header. Returns none for a
/// checksum that is absent, or covers bytes that the frame does not contain.
fn verify_checksums(frame: &Frame) -> [Option<bool>; 2] {
    let mut frame = frame.clone();
    let Ok(headers) = Headers::parse(&frame, Depth::Network) else {
        return [None, None];
    };
    // A partial checksum outside the transport header's own field is not verified.
    if let Checksum::Partial { start, offset } = frame.offload.checksum
        && (headers.transport_at() != Some(start.into())
            || headers.ip_proto().and_then(field_of) != Some(offset))
    {
        return [None, None];
    }
    frame.complete_checksum();
    let bytes = frame.bytes();
    let packet = &bytes[headers.network_at()..];
    let (header, pseudo, total) = match headers.network {
        Network::Ipv4(ip) => {
            let words = [&ip.src.octets()[..], &ip.dst.octets()].concat();
            let correct = is_zero(sum(&packet[..ip.header_len.into()]));
            (Some(correct), words, usize::from(ip.total_len))
        }
        Network::Ipv6(ip) if !ip.routed => {
            let words = [ip.src.octets(), ip.dst.octets()].concat();
            (None, words, ip.total_len)
        }
        _ => return [None, None],
    };
    let transport = headers
        .transport_at()
        .filter(|_| headers.fragment() == Some(Fragment::No));
    let transport = transport.and_then(|at| {
        let over_v4 = header.is_some();
        let segment = &bytes[at..headers.network_at() + total];
        verify_transport_checksum(segment, headers.ip_proto()?, over_v4, pseudo)
    });
    [header, transport]
}

/// Returns the offset of the checksum in a protocol's header.
const fn field_of(protocol: IpProto) -> Option<u16> {
    match protocol {
        IpProto::TCP => Some(16),
        IpProto::UDP => Some(6),
        IpProto::ICMPV4 | IpProto::ICMPV6 => Some(2),
        IpProto::SCTP => Some(8),
        _ => None,
    }
}

fn verify_transport_checksum(
    segment: &[u8],
    protocol: IpProto,
    over_v4: bool,
    mut pseudo: Vec<u8>,
) -> Option<bool> {
    let tail = [u32::from(protocol.0), u32::try_from(segment.len()).ok()?];
    pseudo.extend(tail.iter().flat_map(|word| word.to_be_bytes()));
    let (min_len, covers_pseudo) = match protocol {
        IpProto::TCP => (18, true),
        IpProto::UDP => (8, true),
        IpProto::ICMPV4 if over_v4 => (4, false),
        IpProto::ICMPV6 if !over_v4 => (4, true),
        IpProto::SCTP => return verify_sctp_checksum(segment),
        _ => return None,
    };
    let absent = protocol == IpProto::UDP && segment.get(6..8) == Some(&[0, 0]);
    if segment.len() < min_len || absent {
        return None;
    }
    if !covers_pseudo {
        pseudo.clear();
    }
    pseudo.extend(segment);
    Some(is_zero(sum(&pseudo)))
}

/// Returns the ones' complement sum of 16-bit words.
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).fold(0, |sum, pair| {
        let word = u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
        let sum = sum + word;
        (sum & 0xffff) + (sum >> 16)
    })
}

/// Returns true for both representations of zero in ones' complement. Receivers accept one of them;
/// the other occurs only if all summed bytes are zero.
const fn is_zero(sum: u32) -> bool {
    sum == 0xffff || sum == 0
}

/// Verifies the CRC32c of an SCTP packet, computed bit by bit with the checksum field set to zero.
fn verify_sctp_checksum(segment: &[u8]) -> Option<bool> {
    let field: [u8; 4] = *segment.get(8..12)?.first_chunk()?;
    let zeroed = segment.iter().enumerate().map(|(index, byte)| match index {
        8..12 => 0,
        _ => *byte,
    });
    let crc = zeroed.fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            let carry = crc & 1;
            (crc >> 1) ^ (0x82f6_3b78 * carry)
        })
    });
    Some(!crc == u32::from_le_bytes(field))
}

/// Checks that a dissected and rebuilt frame is unchanged.
fn check_rebuilt(frame: &Frame) {
    let stack = Stack::dissect(frame);
    let built = stack.build();
    assert_eq!(built.bytes(), frame.bytes(), "{stack}");
    assert_eq!(stack.to_string().parse(), Ok(stack));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verification accepts correct checksums and rejects all others.
    #[test]
    fn checksum_verification_accepts_only_correct_checksums() {
        let verify =
            |text: &str| verify_checksums(&text.parse::<Stack>().expect("a stack").build());
        for text in [
            "tcp",
            "udp",
            "icmp / data(3)",
            "sctp / data(16)",
            "udp(checksum=partial)",
        ] {
            assert_eq!(
                verify(&format!("eth / ipv4 / {text}")),
                [Some(true); 2],
                "{text}"
            );
        }
        assert_eq!(verify("eth / ipv6 / icmpv6"), [None, Some(true)]);
        assert_eq!(
            verify("eth / ipv4(checksum=1) / tcp(checksum=1)"),
            [Some(false); 2]
        );
        assert_eq!(
            verify("eth / ipv4 / sctp(checksum=1)"),
            [Some(true), Some(false)]
        );
        assert_eq!(verify("eth / ipv4 / udp(checksum=0)"), [Some(true), None]);
    }
}
