//! Frames built from layers, for tests and the traffic generator. Types, lengths and checksums are
//! correct unless a layer overrides them, so that malformed frames are built in the same way.
//!
//! A stack has a text form, which test scripts contain and failures print:
//!
//! ```
//! use packet::build::Stack;
//!
//! let stack: Stack = "eth / vlan(vid=5) / ipv4(ttl=3) / udp(dst=53) / data(10)".parse().unwrap();
//! assert_eq!(stack.build().len(), 14 + 4 + 20 + 8 + 10);
//! assert_eq!(Stack::dissect(&stack.build()), stack);
//! assert_eq!(stack.to_string(), "eth / vlan(vid=5) / ipv4(ttl=3) / udp(dst=53) / data(10)");
//! ```
//!
//! Not for the data path, because it allocates.

mod dissect;
mod layer;
mod link;
mod network;
mod text;
mod transport;

#[cfg(test)]
mod tests;

use crate::{Checksum, Frame, Offload, Segmentation};

pub use layer::{Data, Gso, Layer, Pad, RawBytes};
pub use link::{Arp, Eth, Llc, Mpls, Nsh, Pbb, Snap, Vlan};
pub use network::{Ah, DestinationOptions, FragmentHeader, HopByHop, Ipv4, Ipv6, RoutingHeader};
pub use text::{HexBytes, ParseStackError, TcpFlags};
pub use transport::{ChecksumFill, Icmp, Icmpv6, Nd, Sctp, Tcp, Udp};

/// Layers, the outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    layers: Vec<Layer>,
}

/// Surroundings of a layer while it is encoded.
struct LayerContext<'a> {
    /// The layers outside it, the outermost first.
    outer: &'a [Layer],
    /// The layer inside it.
    inner: Option<&'a Layer>,
    /// The bytes of all layers inside it.
    payload: &'a [u8],
}

impl Stack {
    /// No layers.
    #[must_use]
    pub const fn new() -> Self {
        Self { layers: Vec::new() }
    }

    /// Returns this stack with one more layer inside.
    #[must_use]
    pub fn with(mut self, layer: impl Into<Layer>) -> Self {
        self.layers.push(layer.into());
        self
    }

    /// The layers, the outermost first.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Returns this stack with as much [`Data`] as a frame of `len` bytes needs, without the frame
    /// check sequence; no data if its headers alone are longer.
    #[must_use]
    pub fn with_frame_len(self, len: usize) -> Self {
        let len = len.saturating_sub(self.build().len());
        self.with(Data { len })
    }

    /// The frame.
    #[must_use]
    pub fn build(&self) -> Frame {
        let (layers, padded) = match self.layers.split_last() {
            Some((Layer::Pad(pad), layers)) => (layers, pad.len),
            _ => (&self.layers[..], 0),
        };
        let mut bytes = Vec::new();
        let mut partial = None;
        for (index, layer) in layers.iter().enumerate().rev() {
            let header = layer.emit(&LayerContext {
                outer: &layers[..index],
                inner: layers.get(index + 1),
                payload: &bytes,
            });
            bytes = [header, bytes].concat();
            if let Some(offset) = layer.partial() {
                partial = partial.or(Some((bytes.len(), offset)));
            }
        }
        let offload = Offload {
            checksum: partial.map_or(Checksum::Complete, |(from_end, offset)| Checksum::Partial {
                start: saturate_u16(bytes.len() - from_end),
                offset,
            }),
            segmentation: segmentation(layers, bytes.len()),
        };
        bytes.resize(bytes.len().max(padded), 0);
        let mut frame = Frame::from_bytes(&bytes);
        frame.offload = offload;
        frame
    }
}

/// Returns the segmentation of a frame of these layers, `len` bytes long.
fn segmentation(layers: &[Layer], len: usize) -> Option<Segmentation> {
    let size = layers.iter().find_map(|layer| match layer {
        Layer::Gso(gso) => Some(gso.size),
        _ => None,
    })?;
    let payload: usize = layers.iter().map(Layer::payload_len).sum();
    Some(Segmentation {
        kind: layer::segmentation_kind(layers),
        size,
        header_len: saturate_u16(len - payload),
    })
}

/// Returns a position as 16 bits. A frame that is too long is a mistake of the test and gets wrong
/// metadata.
fn saturate_u16(position: usize) -> u16 {
    u16::try_from(position).unwrap_or(u16::MAX)
}
