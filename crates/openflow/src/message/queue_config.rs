//! The queues of a port (OF 1.0.1, 5.3.4; OF 1.3.5, 7.3.6). From 1.4 on they are a multipart type
//! (OF 1.4.1, 7.3.5.16); its entries are here too.

use base::{PortNo, QueueId};
use flow::Refusal;

use super::{WireFormat, property};
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::port_no;
use crate::version::Version;

/// `OFPQT_MIN_RATE` and `OFPQT_MAX_RATE`; 1.0 and 1.1 have only the first.
const MIN_RATE: u16 = 1;
const MAX_RATE: u16 = 2;

/// Bytes of a property before its value.
const PROPERTY_HEAD: usize = 8;

/// A queue's rates, in tenths of a percent of the port's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// The queue.
    pub queue: QueueId,
    /// The guaranteed rate.
    pub min_rate: Option<u16>,
    /// The maximum rate (1.2 and later).
    pub max_rate: Option<u16>,
}

/// The queues of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfigReply {
    /// The port.
    pub port: PortNo,
    /// The queues of this port or of all ports; 1.2 and later encode the port of each.
    pub queues: Vec<QueueDesc>,
}

/// Decodes the requested port.
pub(crate) fn decode_request(r: &mut Reader<'_>) -> Result<PortNo, Malformed> {
    let port = port_no::decode(r)?;
    r.skip(match r.version() {
        Version::V10 => 2,
        Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => 4,
    })?;
    Ok(port)
}

/// Appends the requested port.
pub(crate) fn encode_request(port: PortNo, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    port_no::encode(port, w)?;
    w.pad_to(4);
    if w.version() != Version::V10 {
        w.zeros(4);
    }
    Ok(())
}

impl WireFormat for QueueConfigReply {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let port = port_no::decode(r)?;
        r.skip(match r.version() {
            Version::V10 => 6,
            Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => 4,
        })?;
        let mut queues = Vec::new();
        while !r.is_empty() {
            queues.push(decode_queue(port, r)?);
        }
        Ok(Self { port, queues })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        port_no::encode(self.port, w)?;
        w.zeros(match w.version() {
            Version::V10 => 6,
            Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => 4,
        });
        self.queues
            .iter()
            .try_for_each(|queue| encode_queue(queue, w))
    }
}

/// A queue and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueDesc {
    /// The port.
    pub port: PortNo,
    /// The queue.
    pub config: QueueConfig,
}

impl WireFormat for QueueDesc {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let start = r.clone();
        let (port, queue) = (port_no::decode(r)?, QueueId(r.u32()?));
        let length = usize::from(r.u16()?);
        r.skip(6)?;
        let head = start.len() - r.len();
        let too_short = start.fail(Refusal::RequestBadLength);
        let mut properties = r.sub(length.checked_sub(head).ok_or(too_short)?)?;
        let mut config = QueueConfig {
            queue,
            min_rate: None,
            max_rate: None,
        };
        while !properties.is_empty() {
            let mut property = property::next(&mut properties)?;
            match property.kind {
                MIN_RATE => config.min_rate = Some(property.value.u16()?),
                MAX_RATE => config.max_rate = Some(property.value.u16()?),
                _ => {}
            }
        }
        Ok(Self { port, config })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let QueueConfig {
            queue,
            min_rate,
            max_rate,
        } = self.config;
        w.nested(8, |w| {
            port_no::encode(self.port, w)?;
            w.u32(queue.0);
            w.zeros(8);
            for (kind, rate) in [(MIN_RATE, min_rate), (MAX_RATE, max_rate)] {
                let Some(rate) = rate else { continue };
                property::put(kind, w, |w| {
                    w.u16(rate);
                    w.zeros(2);
                    Ok(())
                })?;
            }
            Ok(())
        })
        .map(drop)
    }
}

/// Returns true if an entry includes its port.
const fn names_port(version: Version) -> bool {
    match version {
        Version::V10 | Version::V11 => false,
        Version::V12 | Version::V13 | Version::V14 | Version::V15 => true,
    }
}

/// Decodes a queue of the requested port, or of the port in the entry.
fn decode_queue(requested_port: PortNo, r: &mut Reader<'_>) -> Result<QueueDesc, Malformed> {
    let start = r.clone();
    let queue = QueueId(r.u32()?);
    let named = names_port(r.version());
    let port = if named {
        port_no::decode(r)?
    } else {
        requested_port
    };
    let length = usize::from(r.u16()?);
    r.skip(if named { 6 } else { 2 })?;
    let head = start.len() - r.len();
    let too_short = start.fail(Refusal::RequestBadLength);
    let mut properties = r.sub(length.checked_sub(head).ok_or(too_short)?)?;
    let (mut min_rate, mut max_rate) = (None, None);
    while !properties.is_empty() {
        let (kind, length) = (properties.u16()?, usize::from(properties.u16()?));
        properties.skip(4)?;
        let value = length.checked_sub(PROPERTY_HEAD).ok_or(too_short)?;
        let mut value = properties.sub(value)?;
        match kind {
            MIN_RATE => min_rate = Some(value.u16()?),
            // Before 1.2 this type is unknown, like any other.
            MAX_RATE if named => max_rate = Some(value.u16()?),
            _ => {}
        }
    }
    let config = QueueConfig {
        queue,
        min_rate,
        max_rate,
    };
    Ok(QueueDesc { port, config })
}

fn encode_queue(
    QueueDesc { port, config }: &QueueDesc,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let named = names_port(w.version());
    w.nested(if named { 8 } else { 4 }, |w| {
        w.u32(config.queue.0);
        if named {
            port_no::encode(*port, w)?;
        }
        w.u16(0);
        w.pad_to(8);
        let max_rate = config.max_rate.filter(|_| named);
        for (kind, rate) in [(MIN_RATE, config.min_rate), (MAX_RATE, max_rate)] {
            let Some(rate) = rate else { continue };
            w.u16(kind);
            w.u16(16);
            w.zeros(4);
            w.u16(rate);
            w.zeros(6);
        }
        Ok(())
    })
    .map(drop)
}
