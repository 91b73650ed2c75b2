//! The log of all OpenFlow messages of a connection, in the words of Open vSwitch. Its module is
//! `vconn`, its level DEBUG; without it, only message boundaries are counted.

use std::sync::Arc;

use openflow::{Detail, Message, Version, VersionSet};

use super::stream_decoder::{MessageObserver, StreamDecoder};

/// The log module.
const MODULE: &str = "vconn";

/// The type number of a hello, the same in all versions.
const HELLO: u8 = 0;

/// The direction of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageDirection {
    /// The switch sent them.
    Sent,
    /// The switch received them.
    Received,
}

/// One direction of a connection, as an observer of its messages.
pub(crate) struct MessageLog {
    peer: Arc<str>,
    direction: MessageDirection,
    /// The versions that the switch offers on this connection.
    versions: VersionSet,
}

impl MessageLog {
    /// Returns the decoder for one direction of the connection to `peer`.
    pub(crate) const fn decoder(
        peer: Arc<str>,
        direction: MessageDirection,
        versions: VersionSet,
    ) -> StreamDecoder<Self> {
        StreamDecoder::new(Self {
            peer,
            direction,
            versions,
        })
    }
}

impl MessageObserver for MessageLog {
    fn is_present(&self) -> bool {
        tracing::enabled!(target: MODULE, tracing::Level::DEBUG)
    }

    fn observe(&mut self, message: Vec<u8>) {
        let text = openflow::print(&message, Detail::BRIEF);
        let (peer, text) = (&*self.peer, text.trim_end_matches('\n'));
        match self.direction {
            MessageDirection::Sent => {
                tracing::debug!(target: MODULE, "{peer}: sent (Success): {text}");
            }
            MessageDirection::Received => {
                tracing::debug!(target: MODULE, "{peer}: received: {text}");
                if message.get(1) == Some(&HELLO)
                    && let Some(line) = negotiation(&message, self.versions)
                {
                    tracing::debug!(target: MODULE, "{peer}: {line}");
                }
            }
        }
    }
}

/// Describes the negotiation that ends with this hello of the peer; none if it fails, or if the
/// message is malformed.
fn negotiation(hello: &[u8], own: VersionSet) -> Option<String> {
    // A hello has the same format in every version.
    let Ok((_, Message::Hello(hello))) = Message::decode(hello, Version::V13) else {
        return None;
    };
    let peer = hello.supported();
    let version = own.intersection(peer).newest()?;
    Some(format!(
        "negotiated OpenFlow version 0x{:02x} (we support {}, peer supports {})",
        version.number(),
        describe(own),
        describe(peer)
    ))
}

/// Describes a set of versions as Open vSwitch does.
fn describe(versions: VersionSet) -> String {
    let bits = versions.0;
    let highest = bits.checked_ilog2().unwrap_or_default();
    match bits {
        0 => "no versions".to_owned(),
        one if one.is_power_of_two() => format!("version 0x{highest:02x}"),
        all if (all >> 1).wrapping_add(1).is_power_of_two() => {
            format!("version 0x{highest:02x} and earlier")
        }
        _ => format!("versions {versions}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openflow::Hello;

    #[test]
    fn negotiation_is_described_as_by_open_vswitch() {
        let described = |peer: VersionSet, own| {
            let mut bytes = Vec::new();
            let hello = Message::Hello(Hello::new(peer));
            let encoded = hello.encode(base::Xid(1), Version::V10, &mut bytes);
            encoded.expect("every version has a hello");
            negotiation(&bytes, own)
        };
        let only = VersionSet::only;
        assert_eq!(
            described(only(Version::V14), VersionSet::ALL).as_deref(),
            Some(
                "negotiated OpenFlow version 0x05 (we support version 0x06 and earlier, \
                 peer supports version 0x05)"
            )
        );
        assert_eq!(
            described(
                only(Version::V10).with(Version::V13),
                only(Version::V13).with(Version::V15)
            )
            .as_deref(),
            Some(
                "negotiated OpenFlow version 0x04 (we support versions 0x04, 0x06, \
                 peer supports versions 0x01, 0x04)"
            )
        );
        assert_eq!(described(only(Version::V10), only(Version::V13)), None);
    }
}
