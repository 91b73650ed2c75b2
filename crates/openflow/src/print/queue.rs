//! Queues: their configuration and counters.

use std::fmt;

use base::{PortNo, QueueId};
use flow::Refusal;

use super::refusal_names::DecodeErrorName;
use super::text::{OptionalCount, PrintBuffer, Seconds};
use super::{Detail, port};
use crate::codec::Reader;
use crate::message::property;
use crate::version::Version;

/// The names of a queue's rates.
const RATES: [&str; 2] = ["min_rate", "max_rate"];

/// The type of the first rate's property.
const FIRST_RATE: u16 = 1;

/// The maximum rate, in tenths of a percent; a higher value disables the rate.
const RATE_MAX: u16 = 1000;

/// The value of a rate that is not set.
const NO_RATE: u16 = u16::MAX;

/// Writes the requested port.
pub(super) fn print_config_request(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    write!(text, " port={}", port::name(port::read_number(r)?));
    Ok(())
}

/// Writes the requested queues.
pub(super) fn print_desc_request(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    write!(text, " port={}", port::name(port::read_number(r)?));
    match QueueId(r.u32()?) {
        QueueId::ALL => {}
        queue => write!(text, " queue={}", queue.0),
    }
    Ok(())
}

/// Writes the queues of a port.
pub(super) fn print_config_reply(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let port = port::read_number(r)?;
    r.skip(match r.version() {
        Version::V10 => 6,
        _ => 4,
    })?;
    let mut queues = Vec::new();
    while !r.is_empty() {
        let (queue, rates) = read_config(r)?;
        queues.push(QueueEntry { port, queue, rates });
    }
    write_queues(queues, text);
    Ok(())
}

fn read_config(r: &mut Reader<'_>) -> Result<(u32, QueueRates), DecodeErrorName> {
    // Later versions repeat the port in each queue.
    let (port, padding) = match r.version() {
        Version::V10 | Version::V11 => (0, 2),
        _ => (4, 6),
    };
    let mut head = r.clone();
    let queue = head.u32()?;
    head.skip(port)?;
    let length = usize::from(head.u16()?);
    let bad = r.fail(Refusal::RequestBadLength);
    let mut r = r.sub_or(length, Refusal::RequestBadLength)?;
    r.skip(4 + port + 2 + padding)?;
    let mut rates = QueueRates::default();
    while !r.is_empty() {
        let mut property = property::next(&mut r).map_err(|_| bad)?;
        if let Some(rate) = rates.of(property.kind) {
            property.value.skip(4)?;
            *rate = property.value.u16()?;
        }
    }
    Ok((queue, rates))
}

/// Writes queues and their rates in the format of 1.4.
pub(super) fn print_desc_reply(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let mut queues = Vec::new();
    while !r.is_empty() {
        let port = port::read_number(&mut r.clone())?;
        let mut head = r.clone();
        head.skip(4)?;
        let (queue, length) = (head.u32()?, usize::from(head.u16()?));
        let mut r = r.sub_or(length, Refusal::RequestBadLength)?;
        r.skip(16)?;
        let mut rates = QueueRates::default();
        while !r.is_empty() {
            let mut property = property::next(&mut r)?;
            if let Some(rate) = rates.of(property.kind) {
                *rate = property.value.u16()?;
            }
        }
        queues.push(QueueEntry { port, queue, rates });
    }
    write_queues(queues, text);
    Ok(())
}

/// The rates of a queue, in tenths of a percent.
struct QueueRates([u16; RATES.len()]);

impl Default for QueueRates {
    fn default() -> Self {
        Self([NO_RATE; RATES.len()])
    }
}

impl QueueRates {
    /// The rate that a property of this type sets, if it sets one.
    fn of(&mut self, kind: u16) -> Option<&mut u16> {
        let index = kind.checked_sub(FIRST_RATE).map(usize::from);
        index.and_then(|index| self.0.get_mut(index))
    }
}

impl fmt::Display for QueueRates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, tenths) in RATES.iter().zip(self.0) {
            match tenths {
                NO_RATE => {}
                0..=RATE_MAX => write!(f, " {name}:{}.{}%", tenths / 10, tenths % 10)?,
                _ => write!(f, " {name}:(disabled)")?,
            }
        }
        Ok(())
    }
}

/// A queue and its rates.
struct QueueEntry {
    port: PortNo,
    queue: u32,
    rates: QueueRates,
}

/// Writes queues by their ports and numbers, and each port before its queues.
fn write_queues(mut queues: Vec<QueueEntry>, text: &mut PrintBuffer<'_>) {
    if !queues.is_empty() {
        text.push(" ");
    }
    queues.sort_by_key(|entry| (entry.port, entry.queue));
    let mut last = PortNo(0);
    for QueueEntry { port, queue, rates } in queues {
        if port != last {
            writeln!(text, "port={}", port::name(port));
            last = port;
        }
        writeln!(text, "queue {queue}:{rates}");
    }
}

/// Writes a request for the counters of queues.
pub(super) fn print_stats_request(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let port = match port::read_number(r)? {
        // 1.0 has no OFPP_ANY.
        PortNo::ALL if r.version() == Version::V10 => PortNo::ANY,
        port => port,
    };
    write!(text, " port={}", port::name(port));
    if r.version() == Version::V10 {
        r.skip(2)?;
    }
    write!(text, " queue={}", name(QueueId(r.u32()?)));
    Ok(())
}

/// The counters of a queue.
struct QueueStatsEntry {
    port: PortNo,
    queue: QueueId,
    bytes: u64,
    packets: u64,
    errors: u64,
    duration: Option<Seconds>,
}

/// Writes the counters of queues.
pub(super) fn print_stats(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let next = match r.version() {
        Version::V14 | Version::V15 => read_v14,
        _ => read,
    };
    let (queues, done) = port::read_all(r, next);
    writeln!(text, " {} queues", queues.len());
    if text.context.detail < Detail::BRIEF {
        return done;
    }
    for stats in &queues {
        let port = port::name(stats.port);
        write!(text, "  port {port} queue {}: ", name(stats.queue));
        let (bytes, packets) = (OptionalCount(stats.bytes), OptionalCount(stats.packets));
        let errors = OptionalCount(stats.errors);
        write!(text, "bytes={bytes}, pkts={packets}, errors={errors}, ");
        match &stats.duration {
            Some(duration) => writeln!(text, "duration={duration}"),
            None => text.push("duration=?\n"),
        }
    }
    done
}

/// The number of a queue, or `ALL`.
fn name(queue: QueueId) -> String {
    match queue {
        QueueId::ALL => "ALL".to_owned(),
        queue => queue.0.to_string(),
    }
}

fn read_v14(r: &mut Reader<'_>) -> Result<QueueStatsEntry, DecodeErrorName> {
    let length = usize::from(r.clone().u16()?);
    let mut r = r.sub_or(length, Refusal::RequestBadLength)?;
    r.skip(8)?;
    read(&mut r)
}

fn read(r: &mut Reader<'_>) -> Result<QueueStatsEntry, DecodeErrorName> {
    let port = port::read_number(r)?;
    if r.version() == Version::V10 {
        r.skip(2)?;
    }
    let queue = QueueId(r.u32()?);
    let (bytes, packets, errors) = (r.u64()?, r.u64()?, r.u64()?);
    let duration = match r.version() {
        Version::V10 | Version::V11 | Version::V12 => None,
        _ => Some(Seconds(r.u32()?, r.u32()?)).filter(|seconds| seconds.0 != u32::MAX),
    };
    Ok(QueueStatsEntry {
        port,
        queue,
        bytes,
        packets,
        errors,
        duration,
    })
}
