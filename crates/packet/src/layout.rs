//! Where the IP packet of a frame is, also below an MPLS stack: what finishing a
//! checksum and cutting a frame into segments need to know.
//!
//! Unlike [`Headers`](crate::Headers) this guesses, by the first four bits below
//! the stack: a frame with offload metadata has been IP since it was made.

use crate::headers::{Network, Transport, Upper};
use crate::wire::ethernet::EtherType;
use crate::wire::mpls::{self, Mpls};
use crate::{Depth, Headers, Link, Malformed};

/// The IP packet of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// The first byte of the IP header.
    pub(crate) ip_at: usize,
    /// The IP header.
    pub(crate) network: Network,
    /// Where the transport header is.
    pub(crate) upper: Upper,
}

impl Layout {
    /// Finds the packet in `bytes`; none if there is no whole one.
    pub(crate) fn find(bytes: &[u8]) -> Option<Self> {
        Self::read(bytes).ok().flatten()
    }

    fn read(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut link = Link::parse(bytes)?;
        while link.eth_type.is_mpls() {
            let at = link.payload_at();
            let entry = Mpls::parse(&bytes[at..])?;
            link.type_at += mpls::LEN;
            if entry.bottom {
                link.eth_type = match bytes.get(link.payload_at()).map(|byte| byte >> 4) {
                    Some(4) => EtherType::IPV4,
                    Some(6) => EtherType::IPV6,
                    _ => return Ok(None),
                };
            }
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
