//! The queues of a port (OF 1.0.1, 5.3.4; OF 1.3.5, 7.3.6).

use base::{PortNo, QueueId};

use super::Body;
use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::port_no;
use crate::version::Version;

/// `OFPQT_MIN_RATE` and `OFPQT_MAX_RATE`; 1.0 knows the first.
const MIN_RATE: u16 = 1;
const MAX_RATE: u16 = 2;

/// Bytes of a property before its value.
const PROPERTY_HEAD: usize = 8;

/// A queue's rates, in tenths of a percent of the port's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// The queue.
    pub queue: QueueId,
    /// What it is granted.
    pub min_rate: Option<u16>,
    /// What it may not exceed (told by 1.3).
    pub max_rate: Option<u16>,
}

/// The queues of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfigReply {
    /// The port.
    pub port: PortNo,
    /// Its queues.
    pub queues: Vec<QueueConfig>,
}

/// Reads which port is asked about.
pub(crate) fn decode_request(r: &mut Reader<'_>) -> Result<PortNo, Malformed> {
    let port = port_no::decode(r)?;
    r.skip(match r.version() {
        Version::V10 => 2,
        Version::V13 => 4,
    })?;
    Ok(port)
}

/// Appends which port is asked about.
pub(crate) fn encode_request(port: PortNo, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
    port_no::encode(port, w)?;
    w.pad_to(4);
    if w.version() == Version::V13 {
        w.zeros(4);
    }
    Ok(())
}

impl Body for QueueConfigReply {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let port = port_no::decode(r)?;
        r.skip(match r.version() {
            Version::V10 => 6,
            Version::V13 => 4,
        })?;
        let mut queues = Vec::new();
        while !r.is_empty() {
            queues.push(decode_queue(r)?);
        }
        Ok(Self { port, queues })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        port_no::encode(self.port, w)?;
        w.zeros(match w.version() {
            Version::V10 => 6,
            Version::V13 => 4,
        });
        self.queues
            .iter()
            .try_for_each(|queue| encode_queue(queue, self.port, w))
    }
}

fn decode_queue(r: &mut Reader<'_>) -> Result<QueueConfig, Malformed> {
    let start = r.clone();
    let queue = QueueId(r.u32()?);
    if r.version() == Version::V13 {
        r.skip(4)?;
    }
    let length = usize::from(r.u16()?);
    r.skip(match r.version() {
        Version::V10 => 2,
        Version::V13 => 6,
    })?;
    let head = start.len() - r.len();
    let too_short = start.fail(flow::Refusal::RequestBadLength);
    let mut properties = r.sub(length.checked_sub(head).ok_or(too_short)?)?;
    let (mut min_rate, mut max_rate) = (None, None);
    while !properties.is_empty() {
        let (kind, length) = (properties.u16()?, usize::from(properties.u16()?));
        properties.skip(4)?;
        let value = length.checked_sub(PROPERTY_HEAD).ok_or(too_short)?;
        let mut value = properties.sub(value)?;
        match kind {
            MIN_RATE => min_rate = Some(value.u16()?),
            MAX_RATE => max_rate = Some(value.u16()?),
            _ => {}
        }
    }
    Ok(QueueConfig {
        queue,
        min_rate,
        max_rate,
    })
}

fn encode_queue(
    queue: &QueueConfig,
    port: PortNo,
    w: &mut Writer<'_>,
) -> Result<(), Inexpressible> {
    let (version, length_at) = match w.version() {
        Version::V10 => (Version::V10, 4),
        Version::V13 => (Version::V13, 8),
    };
    w.nested(length_at, |w| {
        w.u32(queue.queue.0);
        if version == Version::V13 {
            port_no::encode(port, w)?;
        }
        w.u16(0);
        w.pad_to(8);
        let max_rate = queue.max_rate.filter(|_| version == Version::V13);
        for (kind, rate) in [(MIN_RATE, queue.min_rate), (MAX_RATE, max_rate)] {
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
