//! Address translation of the most frequent packets in one step: IPv4 without options, TCP or UDP.
//!
//! The addresses, the ports and both checksums are at fixed offsets, so no header is parsed. The
//! result is that of the setters of [`Packet`](super::Packet).

use crate::wire::{IpProto, ipv4, tcp, udp};

/// First byte of an IPv4 header without options.
const PLAIN_V4: u8 = 0x45;

/// Ends of a packet over IPv4, as its headers have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainEnds {
    /// Source and destination address, the source in the upper half.
    pub addresses: u64,
    /// Source and destination port, the source in the upper half.
    pub ports: u32,
}

/// Writes the ends of a packet of TCP or UDP, with its checksums, which must not be partial. `packet`
/// begins with an IPv4 header without options, and is no later fragment. Returns false, without a
/// change, if it is another one.
#[inline]
pub fn set_plain_ends(packet: &mut [u8], ends: PlainEnds) -> bool {
    write_ends(packet, ends).is_some()
}

fn write_ends(packet: &mut [u8], ends: PlainEnds) -> Option<()> {
    let (header, upper) = packet.split_first_chunk_mut::<{ ipv4::LEN_MIN }>()?;
    let (at, is_optional) = match IpProto(header[ipv4::PROTOCOL]) {
        _ if header[0] != PLAIN_V4 => return None,
        IpProto::TCP => (tcp::CHECKSUM, false),
        IpProto::UDP => (udp::CHECKSUM, true),
        _ => return None,
    };
    let checksum = u16::from_be_bytes(*upper.get(at..)?.first_chunk()?);
    let ports: &mut [u8; 4] = upper.first_chunk_mut()?;
    let of_ports = summand(u32::from_be_bytes(*ports), ends.ports);
    *ports = ends.ports.to_be_bytes();

    let addresses: &mut [u8; 8] = header[ipv4::SRC..].first_chunk_mut()?;
    let [old, new] = [u64::from_be_bytes(*addresses), ends.addresses].map(halves);
    *addresses = ends.addresses.to_be_bytes();
    let of_addresses = summand(old[0], new[0]) + summand(old[1], new[1]);

    let of_header: &mut [u8; 2] = header[ipv4::CHECKSUM..].first_chunk_mut()?;
    *of_header = updated(u16::from_be_bytes(*of_header), of_addresses).to_be_bytes();
    if is_optional && checksum == 0 {
        return Some(());
    }
    let checksum = match updated(checksum, of_addresses + of_ports) {
        0 if is_optional => 0xffff,
        checksum => checksum,
    };
    upper
        .get_mut(at..)?
        .first_chunk_mut()
        .map(|field: &mut [u8; 2]| {
            *field = checksum.to_be_bytes();
        })
}

/// Returns the summand of RFC 1624, equation 3, for two words at a time.
#[inline]
pub(super) fn summand(old: u32, new: u32) -> u64 {
    u64::from(!old) + u64::from(new)
}

/// Returns a checksum after a change of its words.
#[inline]
pub(super) fn updated(checksum: u16, change: u64) -> u16 {
    let fold = |total: u64| (total >> 16) + (total & 0xffff);
    // Six summands of 32 bits are below 2^35, and 2^19, 2^16 + 8, 2^16 after each step.
    let total = fold(fold(fold(u64::from(!checksum) + change)));
    let [.., high, low] = total.to_be_bytes();
    !u16::from_be_bytes([high, low])
}

const fn halves(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_be_bytes();
    [
        u32::from_be_bytes([a, b, c, d]),
        u32::from_be_bytes([e, f, g, h]),
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::build::Stack;
    use crate::{Depth, Frame, Packet};

    const IP: usize = 14;

    proptest! {
        #[test]
        fn plain_ends_are_written_as_the_setters_do(
            is_tcp in any::<bool>(),
            addresses in any::<[u32; 2]>(),
            ports in any::<[u16; 2]>(),
            changes in prop::collection::vec((14_usize..50, any::<u8>()), 0..4),
            checksum in prop::option::of(prop::sample::select(&[0_u16, 1, 0xffff][..])),
        ) {
            let upper = if is_tcp { "tcp" } else { "udp" };
            let stack: Stack = format!("eth / ipv4 / {upper} / data(9)").parse().expect("a packet");
            let mut bytes = stack.build().bytes().to_vec();
            // Neither version, lengths, fragments nor protocol.
            let fixed = [14, 16, 17, 20, 21, 23, 38, 39, 46];
            for (at, value) in changes {
                if !fixed.contains(&at) {
                    bytes[at] = value;
                }
            }
            if let Some(checksum) = checksum {
                let at = IP + 20 + if is_tcp { 16 } else { 6 };
                bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
            }
            let mut expected = Frame::from_bytes(&bytes);
            let mut packet = Packet::parse(&mut expected, Depth::Transport).expect("it is valid");
            packet.set_ipv4_src(addresses[0].into());
            packet.set_ipv4_dst(addresses[1].into());
            packet.set_port_src(ports[0]);
            packet.set_port_dst(ports[1]);
            let ends = PlainEnds {
                addresses: u64::from(addresses[0]) << 32 | u64::from(addresses[1]),
                ports: u32::from(ports[0]) << 16 | u32::from(ports[1]),
            };
            prop_assert!(set_plain_ends(&mut bytes[IP..], ends));
            prop_assert_eq!(bytes, expected.bytes());
        }
    }

    #[test]
    fn packet_of_another_kind_keeps_its_ends() {
        for stack in ["ipv4 / icmp", "ipv6 / udp", "ipv4 / sctp"] {
            let stack: Stack = format!("eth / {stack}").parse().expect(stack);
            let mut bytes = stack.build().bytes()[IP..].to_vec();
            let before = bytes.clone();
            assert!(!set_plain_ends(&mut bytes, PlainEnds::default()));
            assert_eq!(bytes, before);
        }
        assert!(!set_plain_ends(&mut [0x45; 12], PlainEnds::default()));
    }
}
