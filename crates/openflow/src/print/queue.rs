//! Queues: their configuration and counters.

use base::{PortNo, QueueId};
use flow::Refusal;

use super::refusal_names::DecodeErrorName;
use super::text::{OptionalCount, PrintBuffer, Seconds};
use super::{Detail, port};
use crate::codec::Reader;
use crate::message::property;
use crate::version::Version;

/// The rates of a queue by the type of their property.
const RATES: [(u16, &str); 2] = [(1, "min_rate"), (2, "max_rate")];

/// The maximum rate, in tenths of a percent; a higher value is "not set".
const RATE_MAX: u16 = 1000;

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
        queues.push(read_config(r)?);
    }
    write_queues(port, queues, text);
    Ok(())
}

fn read_config(r: &mut Reader<'_>) -> Result<(u32, String), DecodeErrorName> {
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
    let mut rates = String::new();
    while !r.is_empty() {
        let mut property = property::next(&mut r).map_err(|_| bad)?;
        property.value.skip(4)?;
        rates += &rate(property.kind, property.value.u16()?);
    }
    Ok((queue, rates))
}

/// Writes queues and their rates in the format of 1.4.
pub(super) fn print_desc_reply(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let (mut port, mut queues) = (PortNo::ANY, Vec::new());
    while !r.is_empty() {
        port = port::read_number(&mut r.clone())?;
        let mut head = r.clone();
        head.skip(4)?;
        let (queue, length) = (head.u32()?, usize::from(head.u16()?));
        let mut r = r.sub_or(length, Refusal::RequestBadLength)?;
        r.skip(16)?;
        let mut rates = String::new();
        while !r.is_empty() {
            let mut property = property::next(&mut r)?;
            rates += &rate(property.kind, property.value.u16()?);
        }
        queues.push((queue, rates));
    }
    write_queues(port, queues, text);
    Ok(())
}

/// Formats a rate, if it is set.
fn rate(kind: u16, tenths: u16) -> String {
    let known = RATES.iter().find(|(known, _)| *known == kind);
    match known {
        Some((_, name)) if tenths <= RATE_MAX => {
            format!(" {name}:{}.{}%", tenths / 10, tenths % 10)
        }
        _ => String::new(),
    }
}

fn write_queues(port: PortNo, mut queues: Vec<(u32, String)>, text: &mut PrintBuffer<'_>) {
    if !queues.is_empty() {
        writeln!(text, " port={}", port::name(port));
    }
    queues.sort_by_key(|(queue, _)| *queue);
    for (queue, rates) in queues {
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
