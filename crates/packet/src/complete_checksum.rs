//! Checksum completion: software for what the sender left to the device, like Linux'
//! `skb_checksum_help`.

use crate::checksum::{InternetSum, crc32c};
use crate::headers::Network;
use crate::ip_layout::IpLayout;
use crate::wire::ethernet::EtherType;
use crate::wire::{Fragment, IpProto, ipv4, sctp, tcp, u16_at, udp};
use crate::{Checksum, Frame};

impl Frame {
    /// Completes a partial checksum. A frame that awaits segmentation is left unchanged: each
    /// segment gets its own checksum.
    ///
    /// The metadata cannot express that the checksum is a CRC32c of SCTP; the headers decide.
    ///
    /// ```
    /// use packet::build::Stack;
    ///
    /// let stack: Stack = "eth / ipv4 / udp(checksum=partial) / data(5)".parse().unwrap();
    /// let mut frame = stack.build();
    /// frame.complete_checksum();
    /// let complete: Stack = "eth / ipv4 / udp / data(5)".parse().unwrap();
    /// assert_eq!(frame, complete.build());
    /// ```
    pub fn complete_checksum(&mut self) {
        let Checksum::Partial { start, offset } = self.offload.checksum else {
            return;
        };
        if self.offload.segmentation.is_some() || self.offload.validate(0, self.len()).is_err() {
            return;
        }
        let (start, offset) = (usize::from(start), usize::from(offset));
        if offset != sctp::CHECKSUM || !self.complete_sctp(start) {
            self.complete_internet(start, offset);
        }
        self.offload.checksum = Checksum::Complete;
    }

    fn complete_internet(&mut self, start: usize, offset: usize) {
        let checksum = match InternetSum::of(&self.bytes()[start..]).checksum() {
            0 if offset == udp::CHECKSUM => 0xffff,
            checksum => checksum,
        };
        self.bytes_mut()[start + offset..][..2].copy_from_slice(&checksum.to_be_bytes());
    }

    /// False if this is no SCTP packet.
    fn complete_sctp(&mut self, start: usize) -> bool {
        let upper = IpLayout::find(self.bytes()).map(|layout| layout.upper);
        let Some(upper) = upper.filter(|upper| {
            upper.protocol == IpProto::SCTP && upper.at == start && upper.end >= start + sctp::LEN
        }) else {
            return false;
        };
        let packet = &mut self.bytes_mut()[start..upper.end];
        packet[sctp::CHECKSUM..sctp::LEN].fill(0);
        let checksum = crc32c(packet);
        packet[sctp::CHECKSUM..sctp::LEN].copy_from_slice(&checksum.to_le_bytes());
        true
    }

    /// Marks the checksum as partial if the field of TCP or UDP equals the sum of the
    /// pseudo-header, which is what a host leaves there if it expects its device to compute the
    /// checksum. For devices that deliver such frames without metadata.
    ///
    /// A complete checksum may equal that sum by chance; completed again, it has the same value. A
    /// partial checksum of SCTP cannot be detected.
    pub fn detect_partial_checksum(&mut self) {
        if self.offload.checksum == Checksum::Complete && !is_plainly_complete(self.bytes()) {
            self.detect_by_layout();
        }
    }

    /// Marks the checksum as partial after a full parse of the headers.
    fn detect_by_layout(&mut self) {
        let Some(layout) = IpLayout::find(self.bytes()) else {
            return;
        };
        let upper = layout.upper;
        let offset = match upper.protocol {
            IpProto::TCP => tcp::CHECKSUM,
            IpProto::UDP => udp::CHECKSUM,
            _ => return,
        };
        let Some(len) = upper.end.checked_sub(upper.at) else {
            return;
        };
        let pseudo = match &layout.network {
            Network::Ipv4(ip) if ip.fragment == Fragment::No => {
                InternetSum::pseudo_v4(ip.src, ip.dst, upper.protocol, len)
            }
            Network::Ipv6(ip) if ip.fragment == Fragment::No && !ip.routed => {
                InternetSum::pseudo_v6(ip.src, ip.dst, upper.protocol, len)
            }
            _ => return,
        };
        let at = upper.at + offset;
        let (Ok(start), Ok(offset)) = (u16::try_from(upper.at), u16::try_from(offset)) else {
            return;
        };
        if at + 2 <= upper.end && u16_at(self.bytes(), at) == pseudo.value() {
            self.offload.checksum = Checksum::Partial { start, offset };
        }
    }
}

/// True for the most frequent case: an untagged TCP segment or UDP datagram in IPv4 without options
/// whose checksum field differs from the sum of the pseudo-header. If false, the full parse
/// decides.
#[inline]
fn is_plainly_complete(bytes: &[u8]) -> bool {
    const TYPE: usize = 12;
    const IP: usize = 14;
    const UPPER: usize = IP + ipv4::LEN_MIN;
    let Some(headers) = bytes.first_chunk::<{ UPPER + tcp::LEN_MIN }>() else {
        return false;
    };
    if u16_at(headers, TYPE) != EtherType::IPV4.0 || headers[IP] != 0x45 {
        return false;
    }
    let protocol = IpProto(headers[IP + 9]);
    let field = match protocol {
        IpProto::TCP => UPPER + tcp::CHECKSUM,
        IpProto::UDP => UPPER + udp::CHECKSUM,
        _ => return false,
    };
    let total = usize::from(u16_at(headers, IP + 2));
    let len = match total.checked_sub(ipv4::LEN_MIN) {
        Some(len) if IP + total <= bytes.len() => len,
        _ => return false,
    };
    let addresses = InternetSum::of(&headers[IP + 12..UPPER]);
    u16_at(headers, field)
        != addresses
            .plus(InternetSum::pseudo_tail(protocol, len))
            .value()
}

#[cfg(test)]
mod tests;
