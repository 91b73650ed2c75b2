//! Frames put together from layers, for tests and for the load generator: with
//! right types, lengths and checksums unless a layer says otherwise, so that a
//! damaged frame is built the same way as a good one.
//!
//! A stack has a text form, which test scripts use and failures print:
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
//! Not for the data path: it allocates as it likes.

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

/// What a layer is told when it becomes bytes.
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

    /// This stack with one more layer inside.
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

    /// This stack with as much [`Data`] inside as makes a frame of `len` bytes,
    /// the frame check sequence not counted; none if its headers alone are longer.
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
        let mut unfinished = None;
        for (index, layer) in layers.iter().enumerate().rev() {
            let header = layer.emit(&LayerContext {
                outer: &layers[..index],
                inner: layers.get(index + 1),
                payload: &bytes,
            });
            bytes = [header, bytes].concat();
            if let Some(offset) = layer.unfinished() {
                unfinished = unfinished.or(Some((bytes.len(), offset)));
            }
        }
        let offload = Offload {
            checksum: unfinished.map_or(Checksum::Complete, |(from_end, offset)| {
                Checksum::Partial {
                    start: short(bytes.len() - from_end),
                    offset,
                }
            }),
            segmentation: segmentation(layers, bytes.len()),
        };
        bytes.resize(bytes.len().max(padded), 0);
        let mut frame = Frame::from_bytes(&bytes);
        frame.offload = offload;
        frame
    }
}

/// How a frame of these layers, `len` bytes long, is to be cut.
fn segmentation(layers: &[Layer], len: usize) -> Option<Segmentation> {
    let size = layers.iter().find_map(|layer| match layer {
        Layer::Gso(gso) => Some(gso.size),
        _ => None,
    })?;
    let payload: usize = layers.iter().map(Layer::payload_len).sum();
    Some(Segmentation {
        kind: layer::segmentation_kind(layers),
        size,
        header_len: short(len - payload),
    })
}

/// A position in a frame; a frame that is too long for one is a test's mistake,
/// and its metadata is then as wrong as the frame.
fn short(position: usize) -> u16 {
    u16::try_from(position).unwrap_or(u16::MAX)
}
