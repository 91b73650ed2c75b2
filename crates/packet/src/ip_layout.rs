//! Location of the IP packet in a frame, also below an MPLS stack or inside other headers and
//! frames, for checksum completion and segmentation.
//!
//! Unlike [`Headers`](crate::Headers), this guesses the protocol below an MPLS stack from its first
//! four bits: a frame with offload metadata was IP when it was created.

use crate::headers::{Network, Transport, UpperLayer};
use crate::wire::ethernet::EtherType;
use crate::wire::mpls::{self, Mpls};
use crate::wire::nsh::{self, Nsh};
use crate::wire::pbb;
use crate::{Depth, Headers, Link, Malformed};

/// The IP packet of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpLayout {
    /// The first byte of the IP header.
    pub(crate) ip_at: usize,
    /// The IP header.
    pub(crate) network: Network,
    /// Offset of the transport header.
    pub(crate) upper: UpperLayer,
}

impl IpLayout {
    /// Locates the packet in `bytes`, or returns `None` if there is no complete one.
    pub(crate) fn find(bytes: &[u8]) -> Option<Self> {
        Self::read(bytes).ok().flatten()
    }

    fn read(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut link = Link::parse(bytes)?;
        while let Some(inner) = inner(link, bytes)? {
            link = inner;
        }
        let mut headers = Headers {
            link,
            network: Network::None,
            transport: Transport::None,
            upper: None,
            depth: Depth::Network,
        };
        headers.read_network(bytes)?;
        Ok(headers.upper.map(|upper| Self {
            ip_at: headers.network_at(),
            network: headers.network,
            upper,
        }))
    }
}

/// Returns the header after the one that `link` announces, or `None` if no header follows it. Each
/// is further inside the frame, so that the search terminates.
fn inner(mut link: Link, bytes: &[u8]) -> Result<Option<Link>, Malformed> {
    let at = link.payload_at();
    let rest = &bytes[at.min(bytes.len())..];
    if link.eth_type.is_mpls() {
        let entry = Mpls::parse(rest)?;
        link.type_at += mpls::LEN;
        if entry.bottom {
            link.eth_type = match rest.get(mpls::LEN).map(|byte| byte >> 4) {
                Some(4) => EtherType::IPV4,
                Some(6) => EtherType::IPV6,
                _ => return frame_at(at + mpls::LEN, bytes).map(Some),
            };
        }
        return Ok(Some(link));
    }
    match link.eth_type {
        EtherType::PBB => frame_at(at + pbb::LEN, bytes).map(Some),
        EtherType::NSH => {
            let header = Nsh::parse(rest)?;
            link.type_at += usize::from(header.len);
            link.eth_type = match header.next {
                nsh::next::IPV4 => EtherType::IPV4,
                nsh::next::IPV6 => EtherType::IPV6,
                nsh::next::NSH => EtherType::NSH,
                _ => return frame_at(link.payload_at(), bytes).map(Some),
            };
            Ok(Some(link))
        }
        _ => Ok(None),
    }
}

/// The link layer of the frame that begins at `at`.
fn frame_at(at: usize, bytes: &[u8]) -> Result<Link, Malformed> {
    let link = Link::parse(bytes.get(at..).ok_or(Malformed::Runt)?)?;
    Ok(Link {
        tags_end: link.tags_end + at,
        type_at: link.type_at + at,
        ..link
    })
}
