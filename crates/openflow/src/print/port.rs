//! Ports: their descriptions, status and counters; and the features of their switch.

use base::{DatapathId, PortNo};
use flow::text::{NameMap, WithNames};
use flow::{PortConfig, PortDesc, PortFeatures, PortState, Refusal};
use packet::MacAddr;

use super::port_counters::ExperimenterCounters;
use super::refusal_names::DecodeErrorName;
use super::table;
use super::text::{OptionalCount, PrintBuffer, Seconds};
use crate::codec::Reader;
use crate::message::port::{self, ETHERNET};
use crate::message::{WireFormat, property};
use crate::port_no;
use crate::version::Version;

const CONFIG: [(u32, &str); 7] = [
    (PortConfig::DOWN.0, "PORT_DOWN"),
    (PortConfig::NO_STP.0, "NO_STP"),
    (PortConfig::NO_RECV.0, "NO_RECV"),
    (PortConfig::NO_RECV_STP.0, "NO_RECV_STP"),
    (PortConfig::NO_FLOOD.0, "NO_FLOOD"),
    (PortConfig::NO_FWD.0, "NO_FWD"),
    (PortConfig::NO_PACKET_IN.0, "NO_PACKET_IN"),
];

const STATE: [(u32, &str); 3] = [
    (PortState::LINK_DOWN.0, "LINK_DOWN"),
    (PortState::BLOCKED.0, "BLOCKED"),
    (PortState::LIVE.0, "LIVE"),
];

/// The spanning tree state of a port in 1.0: two bits of its state.
const STP_MASK: u32 = PortState::STP_MASK.0;
const STP_STATES: [(u32, &str); 3] = [
    (PortState::STP_LEARN.0, "STP_LEARN"),
    (PortState::STP_FORWARD.0, "STP_FORWARD"),
    (PortState::STP_BLOCK.0, "STP_BLOCK"),
];

const FEATURES: [(u32, &str); 16] = [
    (1 << 0, "10MB-HD"),
    (1 << 1, "10MB-FD"),
    (1 << 2, "100MB-HD"),
    (1 << 3, "100MB-FD"),
    (1 << 4, "1GB-HD"),
    (1 << 5, "1GB-FD"),
    (1 << 6, "10GB-FD"),
    (1 << 7, "40GB-FD"),
    (1 << 8, "100GB-FD"),
    (1 << 9, "1TB-FD"),
    (1 << 10, "OTHER"),
    (1 << 11, "COPPER"),
    (1 << 12, "FIBER"),
    (1 << 13, "AUTO_NEG"),
    (1 << 14, "AUTO_PAUSE"),
    (1 << 15, "AUTO_PAUSE_ASYM"),
];

/// The defined bits.
const KNOWN_FEATURES: u32 = 0xffff;

/// The speed in Mbit/s of each feature bit; the first one that is set determines the speed.
const SPEEDS: [(u32, u32); 7] = [
    (1 << 9, 1_000_000),
    (1 << 8, 100_000),
    (1 << 7, 40_000),
    (1 << 6, 10_000),
    (3 << 4, 1_000),
    (3 << 2, 100),
    (3, 10),
];

const CAPABILITIES: [(u32, &str); 10] = [
    (1 << 0, "FLOW_STATS"),
    (1 << 1, "TABLE_STATS"),
    (1 << 2, "PORT_STATS"),
    (1 << 3, "GROUP_STATS"),
    (1 << 5, "IP_REASM"),
    (1 << 6, "QUEUE_STATS"),
    (1 << 7, "ARP_MATCH_IP"),
    (1 << 8, "PORT_BLOCKED"),
    (1 << 9, "BUNDLES"),
    (1 << 10, "FLOW_MONITORING"),
];

/// The same in 1.0, which has no groups.
const CAPABILITIES_V10: [(u32, &str); 7] = [
    (1 << 0, "FLOW_STATS"),
    (1 << 1, "TABLE_STATS"),
    (1 << 2, "PORT_STATS"),
    (1 << 3, "STP"),
    (1 << 5, "IP_REASM"),
    (1 << 6, "QUEUE_STATS"),
    (1 << 7, "ARP_MATCH_IP"),
];

/// The reasons of a port-status by number.
const REASONS: [&str; 3] = ["ADD", "DEL", "MOD"];

/// The capabilities of a version.
const fn known_capabilities(version: Version) -> u32 {
    match version {
        Version::V10 => 0xef,
        Version::V11 => 0xef,
        Version::V12 | Version::V13 => 0x16f,
        Version::V14 | Version::V15 => 0x76f,
    }
}

/// The highest port below the reserved ones in Open vSwitch's sixteen bits.
const PORT_MAX: u32 = 0xfeff;

/// The lowest reserved port.
const RESERVED: u32 = 0xffff_ff00;

/// Reads a port, which Open vSwitch accepts only if it has sixteen bits or is reserved.
pub(super) fn read_number(r: &mut Reader<'_>) -> Result<PortNo, DecodeErrorName> {
    let port = port_no::decode(r)?;
    if fits_sixteen_bits(port) {
        Ok(port)
    } else {
        Err(DecodeErrorName("OFPBAC_BAD_OUT_PORT"))
    }
}

/// Returns true if Open vSwitch has a number of sixteen bits for the port.
pub(super) const fn fits_sixteen_bits(port: PortNo) -> bool {
    port.0 <= PORT_MAX || port.0 >= RESERVED
}

/// The name of a port in `names`, or its name or number.
pub(super) fn name_of(port: PortNo, names: &NameMap) -> String {
    match port {
        port if port.0 < RESERVED => WithNames(&port, names).to_string(),
        port => name(port),
    }
}

/// The name or number of a port. Unnamed reserved ports are printed in the sixteen bits of 1.0.
pub(super) fn name(port: PortNo) -> String {
    match port.reserved_name() {
        None if port.0 >= RESERVED => (port.0 & 0xffff).to_string(),
        _ => port.to_string(),
    }
}

/// Writes the features of a switch.
pub(super) fn print_features(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let (datapath, buffers, tables) = (DatapathId(r.u64()?), r.u32()?, r.u8()?);
    let auxiliary = r.u8()?;
    r.skip(2)?;
    let (capabilities, actions) = (r.u32()?, r.u32()?);
    if r.version() >= Version::V13 {
        r.end()?;
    }
    write!(
        text,
        " dpid:{datapath}\nn_tables:{tables}, n_buffers:{buffers}"
    );
    if auxiliary != 0 && r.version() >= Version::V13 {
        write!(text, ", auxiliary_id:{auxiliary}");
    }
    text.push("\ncapabilities: ");
    let known = capabilities & known_capabilities(r.version());
    match r.version() {
        Version::V10 => text.bits(known, &CAPABILITIES_V10),
        _ => text.bits(known, &CAPABILITIES),
    }
    text.push("\n");
    if r.version() == Version::V10 && actions != 0 {
        writeln!(text, "actions: {}", table::actions(actions, r.version()));
    }
    print_descriptions(r, text)
}

/// Writes ports, in the order of their numbers.
pub(super) fn print_descriptions(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    text.end_line();
    let (mut ports, done) = read_all(r, read_port);
    ports.sort_by_key(|port| port.number);
    for port in &ports {
        write_port(port, r.version(), text);
    }
    done
}

/// Reads a port with a number that Open vSwitch accepts.
fn read_port(r: &mut Reader<'_>) -> Result<PortDesc, DecodeErrorName> {
    read_number(&mut r.clone())?;
    Ok(PortDesc::decode(r)?)
}

/// The spanning tree state of a port in 1.0. Empty for a listening port, because a port without a
/// spanning tree has the same bits (OF 1.0.1, 5.2.1).
fn stp_state(state: u32) -> &'static str {
    let found = STP_STATES
        .iter()
        .find(|(bits, _)| state & STP_MASK == *bits);
    found.map_or("", |(_, name)| name)
}

/// Reads consecutive entries: returns those before the first malformed one, and its error.
pub(super) fn read_all<'a, T>(
    r: &mut Reader<'a>,
    next: impl Fn(&mut Reader<'a>) -> Result<T, DecodeErrorName>,
) -> (Vec<T>, Result<(), DecodeErrorName>) {
    let mut entries = Vec::new();
    while !r.is_empty() {
        match next(r) {
            Ok(one) => entries.push(one),
            Err(unreadable) => return (entries, Err(unreadable)),
        }
    }
    (entries, Ok(()))
}

/// Writes a port-status.
pub(super) fn print_status(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let reason = REASONS.get(usize::from(r.u8()?));
    let reason = reason.ok_or(DecodeErrorName("NXBRC_BAD_REASON"))?;
    r.skip(7)?;
    let port = read_port(r)?;
    write!(text, " {reason}:");
    write_port(&port, r.version(), text);
    Ok(())
}

fn write_port(port: &PortDesc, version: Version, text: &mut PrintBuffer<'_>) {
    let label: String = port
        .name
        .chars()
        .take_while(|letter| letter.is_ascii_graphic() || *letter == ' ')
        .collect();
    writeln!(
        text,
        " {}({label}): addr:{}",
        name(port.number),
        port.hw_addr
    );
    text.push("     config:     ");
    text.bits(port.config.0, &CONFIG);
    text.push("\n     state:      ");
    let stp_state = stp_state(port.state.0);
    match (stp_state.is_empty(), port.state.0 & !STP_MASK) {
        (true, state) => text.bits(state, &STATE),
        (false, 0) => text.push(stp_state),
        (false, state) => {
            write!(text, "{stp_state} ");
            text.bits(state, &STATE);
        }
    }
    text.push("\n");
    for (name, PortFeatures(bits)) in [
        ("current:    ", port.current),
        ("advertised: ", port.advertised),
        ("supported:  ", port.supported),
        ("peer:       ", port.peer),
    ] {
        let bits = bits & KNOWN_FEATURES;
        if bits != 0 {
            write!(text, "     {name}");
            text.bits(bits, &FEATURES);
            text.push("\n");
        }
    }
    let (now, max) = match version {
        Version::V10 => (speed(port.current), speed(port.supported)),
        _ => (port.speed_kbps / 1000, port.speed_kbps_max / 1000),
    };
    writeln!(text, "     speed: {now} Mbps now, {max} Mbps max");
}

/// The speed in Mbit/s of the features.
fn speed(PortFeatures(bits): PortFeatures) -> u32 {
    let found = SPEEDS.iter().find(|(named, _)| bits & named != 0);
    found.map_or(0, |(_, speed)| *speed)
}

/// Writes a change to a port.
pub(super) fn print_mod(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let late = r.version() != Version::V10;
    let number = name(read_number(r)?);
    r.skip(if late { 4 } else { 0 })?;
    let address = MacAddr(r.take()?);
    r.skip(if late { 2 } else { 0 })?;
    let known = port::known_config(r.version()).0;
    let (config, mask) = (r.u32()?, r.u32()? & known);
    let config = config & mask;
    let advertise = match r.version() {
        Version::V14 | Version::V15 => advertised(r)?,
        _ => port::decode_features(r)?.0,
    };
    write!(text, " port: {number}: addr:{address}\n     config: ");
    text.bits(config, &CONFIG);
    text.push("\n     mask:   ");
    text.bits(mask, &CONFIG);
    text.push("\n     advertise: ");
    match advertise & KNOWN_FEATURES {
        0 => text.push("UNCHANGED"),
        bits => text.bits(bits, &FEATURES),
    }
    text.push("\n");
    Ok(())
}

/// Reads the property with the advertised features.
fn advertised(r: &mut Reader<'_>) -> Result<u32, DecodeErrorName> {
    let mut advertise = 0;
    while !r.is_empty() {
        let mut property = property::next(r)?;
        if property.kind != ETHERNET {
            return Err(property.unknown().into());
        }
        advertise = property.value.u32()?;
        property.value.end()?;
    }
    Ok(advertise)
}

/// Writes a request for the counters of a port.
pub(super) fn print_stats_request(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    write!(text, " port_no={}", name(read_number(r)?));
    Ok(())
}

/// Writes a request for the description of a port.
pub(super) fn print_description_request(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let port = match r.version() {
        Version::V15 => read_number(r)?,
        _ => PortNo::ANY,
    };
    write!(text, " port={}", name(port));
    Ok(())
}

/// The counters of a port in wire order.
struct PortCounts {
    port: PortNo,
    /// Received and sent, alternating: packets, bytes, dropped, errors; then received frame errors,
    /// overruns and CRC errors, and collisions.
    numbers: [u64; 12],
    duration: Option<Seconds>,
    /// The counters in experimenter properties.
    experimenter: ExperimenterCounters,
}

/// Writes the counters of ports.
pub(super) fn print_stats(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    let next = match r.version() {
        Version::V14 | Version::V15 => read_v14,
        _ => read,
    };
    let (ports, done) = read_all(r, next);
    writeln!(text, " {} ports", ports.len());
    if text.context.detail >= super::Detail::BRIEF {
        for port in &ports {
            write_counts(port, text);
        }
    }
    done
}

fn read(r: &mut Reader<'_>) -> Result<PortCounts, DecodeErrorName> {
    let port = read_number(r)?;
    r.skip(match r.version() {
        Version::V10 => 6,
        _ => 4,
    })?;
    let mut numbers = [0; 12];
    for number in &mut numbers {
        *number = r.u64()?;
    }
    let duration = match r.version() {
        Version::V13 => known_duration(r)?,
        _ => None,
    };
    Ok(PortCounts {
        port,
        numbers,
        duration,
        experimenter: ExperimenterCounters::default(),
    })
}

/// Reads a duration; all ones are an unknown one.
fn known_duration(r: &mut Reader<'_>) -> Result<Option<Seconds>, DecodeErrorName> {
    let duration = Seconds(r.u32()?, r.u32()?);
    Ok(Some(duration).filter(|seconds| seconds.0 != u32::MAX))
}

fn read_v14(r: &mut Reader<'_>) -> Result<PortCounts, DecodeErrorName> {
    let length = usize::from(r.clone().u16()?);
    let mut r = r.sub_or(length, Refusal::RequestBadLength)?;
    r.skip(4)?;
    let port = read_number(&mut r)?;
    let duration = known_duration(&mut r)?;
    let mut numbers = [u64::MAX; 12];
    for number in &mut numbers[..8] {
        *number = r.u64()?;
    }
    let mut experimenter = ExperimenterCounters::default();
    while !r.is_empty() {
        let property = property::next(&mut r)?;
        match property.kind {
            ETHERNET => {
                let mut r = property.value.on_short(Refusal::PropertyBadLength);
                r.skip(4)?;
                for number in &mut numbers[8..] {
                    *number = r.u64()?;
                }
            }
            property::EXPERIMENTER => experimenter.read(&property)?,
            _ => {}
        }
    }
    Ok(PortCounts {
        port,
        numbers,
        duration,
        experimenter,
    })
}

fn write_counts(counts: &PortCounts, text: &mut PrintBuffer<'_>) {
    let [
        rx,
        tx,
        rx_bytes,
        tx_bytes,
        rx_drop,
        tx_drop,
        rx_err,
        tx_err,
        frame,
        over,
        crc,
        coll,
    ] = counts.numbers.map(OptionalCount);
    let space = if counts.port.0 < 10 { " " } else { "" };
    let port = name_of(counts.port, text.context.names);
    write!(
        text,
        "  port {space}{port}: rx pkts={rx}, bytes={rx_bytes}, "
    );
    writeln!(
        text,
        "drop={rx_drop}, errs={rx_err}, frame={frame}, over={over}, crc={crc}"
    );
    write!(text, "           tx pkts={tx}, bytes={tx_bytes}, ");
    writeln!(text, "drop={tx_drop}, errs={tx_err}, coll={coll}");
    if let Some(duration) = &counts.duration {
        writeln!(text, "           duration={duration}");
    }
    counts.experimenter.write(text);
}
