//! SNMP v2c client for a switch: its description (SNMPv2-MIB, RFC 3418), its interface counters
//! (IF-MIB, RFC 2863), and its processor load (HOST-RESOURCES-MIB, RFC 2790).

use std::time::Duration;

use snmp2::{Oid, SyncSession, Value};
use testbed::Namespace;

use super::counter::{Counter, Width};
use crate::devices::Agent;

/// Greatest number of rows read from a table: the interfaces of a large switch with its VLANs.
const ROWS_MAX: usize = 4_096;

/// Rows per request: with names of 30 bytes the reply fits an Ethernet frame.
const ROWS_AT_ONCE: u32 = 20;

/// Attempts before a request counts as unanswered, since a datagram may be lost.
const TRIES: u32 = 2;

const SYS_DESCR: &[u64] = &[1, 3, 6, 1, 2, 1, 1, 1, 0];
const SYS_UP_TIME: &[u64] = &[1, 3, 6, 1, 2, 1, 1, 3, 0];
const IF_NAME: &[u64] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1];
const IF_DESCR: &[u64] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 2];
const HR_PROCESSOR_LOAD: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 3, 3, 1, 2];

/// Counters of `ifXTable`, 64 bits wide: octets, and unicast, multicast and broadcast frames; in,
/// then out.
const WIDE: [[u64; 4]; 2] = [[6, 7, 8, 9], [10, 11, 12, 13]];
/// Counters of 32 bits, in `ifTable` and `ifXTable`.
#[rustfmt::skip]
const NARROW: [[&[u64]; 4]; 2] = [
    [&[2, 2, 1, 10], &[2, 2, 1, 11], &[31, 1, 1, 1, 2], &[31, 1, 1, 1, 3]],
    [&[2, 2, 1, 16], &[2, 2, 1, 17], &[31, 1, 1, 1, 4], &[31, 1, 1, 1, 5]],
];

/// Reason for a poll without results.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnmpError {
    /// No reply: an agent does not reply to an unknown community (RFC 3584, 5.2.1).
    #[error("the switch does not reply to SNMP: check its address and the community")]
    Silent,
    /// The system returned an error.
    #[error("SNMP: {0}")]
    System(String),
    /// The datagram is not a valid reply.
    #[error("invalid SNMP reply from the switch: {0}")]
    Senseless(String),
    /// The switch does not have the object.
    #[error("the switch has no SNMP object for {0}")]
    Missing(String),
}

/// Counters of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceCounts {
    /// Received bytes, with header and checksum.
    pub in_octets: Counter,
    /// Received frames: unicast, multicast and broadcast, each with its own counter.
    pub in_frames: [Counter; 3],
    /// Sent bytes, with header and checksum.
    pub out_octets: Counter,
    /// Sent frames.
    pub out_frames: [Counter; 3],
}

impl InterfaceCounts {
    /// Returns the frames received and sent since `earlier`; `None` if the counters have changed
    /// their widths.
    #[must_use]
    pub fn frames_since(&self, earlier: &Self) -> Option<(u64, u64)> {
        let sum = |now: &[Counter; 3], then: &[Counter; 3]| {
            let passed = now.iter().zip(then).map(|(now, then)| now.since(*then));
            passed.sum::<Option<u64>>()
        };
        Some((
            sum(&self.in_frames, &earlier.in_frames)?,
            sum(&self.out_frames, &earlier.out_frames)?,
        ))
    }
}

/// Values of a switch from one poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchSample {
    /// Time since the start of the switch, in hundredths of a second; less than before if it has
    /// restarted.
    pub up_time: u32,
    /// Interfaces in the order of the lab's ports.
    pub interfaces: Vec<InterfaceCounts>,
    /// Load of each processor over the last minute, in per cent; empty if the switch does not
    /// report it.
    pub loads: Vec<u8>,
}

/// SNMP session with a switch.
pub struct Snmp {
    session: SyncSession,
    /// Rows of the interfaces.
    rows: Vec<u64>,
    wide: Vec<bool>,
}

impl Snmp {
    /// Opens a session, and finds the agent's interfaces by their names (`ifName` or `ifDescr`).
    ///
    /// # Errors
    /// The agent does not reply, or does not have these interfaces.
    pub fn open(agent: &Agent, limit: Duration) -> Result<Self, SnmpError> {
        let mut snmp = Self {
            session: session(agent, limit)?,
            rows: Vec::new(),
            wide: Vec::new(),
        };
        if agent.interfaces.is_empty() {
            return Ok(snmp);
        }
        let names = snmp.names()?;
        for wanted in &agent.interfaces {
            let row = names.iter().find(|(_, name)| name == wanted);
            let Some((row, _)) = row else {
                return Err(SnmpError::Missing(format!("an interface '{wanted}'")));
            };
            snmp.rows.push(*row);
        }
        for row in snmp.rows.clone() {
            let first = wide(WIDE[0][0], row);
            let value = snmp.get(&[first])?;
            snmp.wide.push(matches!(value[..], [SnmpValue::Counter(_)]));
        }
        Ok(snmp)
    }

    /// Returns the description of the switch.
    ///
    /// # Errors
    /// The agent does not reply, or has no description.
    pub fn description(&mut self) -> Result<String, SnmpError> {
        match &self.get(&[SYS_DESCR.to_vec()])?[..] {
            [SnmpValue::Text(text)] => Ok(text.clone()),
            _ => Err(SnmpError::Missing("itself".to_owned())),
        }
    }

    /// Reads all counters.
    ///
    /// # Errors
    /// The agent does not reply, or its interfaces have changed.
    pub fn sample(&mut self) -> Result<SwitchSample, SnmpError> {
        let up_time = match self.get(&[SYS_UP_TIME.to_vec()])?[..] {
            [SnmpValue::Number(ticks)] => u32::try_from(ticks).unwrap_or(u32::MAX),
            _ => return Err(SnmpError::Missing("its uptime".to_owned())),
        };
        let places: Vec<(u64, bool)> = self.rows.iter().copied().zip(self.wide.clone()).collect();
        let interfaces = places.into_iter().map(|(row, wide)| self.counts(row, wide));
        let interfaces = interfaces.collect::<Result<_, _>>()?;
        let loads = self.walk(HR_PROCESSOR_LOAD)?.into_iter();
        let loads = loads.filter_map(|(_, value)| match value {
            SnmpValue::Number(load) => u8::try_from(load).ok(),
            SnmpValue::Counter(_) | SnmpValue::Text(_) | SnmpValue::Nothing => None,
        });
        Ok(SwitchSample {
            up_time,
            interfaces,
            loads: loads.collect(),
        })
    }

    fn counts(&mut self, row: u64, is_wide: bool) -> Result<InterfaceCounts, SnmpError> {
        let mut directions = [None; 2];
        for (direction, value) in directions.iter_mut().enumerate() {
            let oids: Vec<Vec<u64>> = match is_wide {
                true => WIDE[direction]
                    .iter()
                    .map(|column| wide(*column, row))
                    .collect(),
                false => NARROW[direction]
                    .iter()
                    .map(|path| narrow(path, row))
                    .collect(),
            };
            let [
                SnmpValue::Counter(octets),
                SnmpValue::Counter(unicast),
                SnmpValue::Counter(multicast),
                SnmpValue::Counter(broadcast),
            ] = self.get(&oids)?[..]
            else {
                let object = format!("the counters of its interface {row}");
                return Err(SnmpError::Missing(object));
            };
            *value = Some((octets, [unicast, multicast, broadcast]));
        }
        let [Some((in_octets, in_frames)), Some((out_octets, out_frames))] = directions else {
            unreachable!("both directions have values");
        };
        Ok(InterfaceCounts {
            in_octets,
            in_frames,
            out_octets,
            out_frames,
        })
    }

    /// Returns the row and the name of each interface.
    fn names(&mut self) -> Result<Vec<(u64, String)>, SnmpError> {
        for table in [IF_NAME, IF_DESCR] {
            let rows = self.walk(table)?.into_iter();
            let names = rows.filter_map(|(row, value)| match value {
                SnmpValue::Text(name) => Some((row, name)),
                SnmpValue::Counter(_) | SnmpValue::Number(_) | SnmpValue::Nothing => None,
            });
            let names: Vec<_> = names.collect();
            if !names.is_empty() {
                return Ok(names);
            }
        }
        Err(SnmpError::Missing("its interfaces".to_owned()))
    }

    /// Returns the values of these objects.
    fn get(&mut self, oids: &[Vec<u64>]) -> Result<Vec<SnmpValue>, SnmpError> {
        let named = oids
            .iter()
            .map(|oid| name(oid))
            .collect::<Result<Vec<_>, _>>()?;
        let named: Vec<&Oid<'_>> = named.iter().collect();
        let mut tried = 0;
        loop {
            tried += 1;
            match self.session.get_many(&named) {
                Ok(reply) if reply.error_status != 0 => {
                    let status = reply.error_status;
                    return Err(SnmpError::Senseless(format!("error {status}")));
                }
                Ok(reply) => {
                    let values: Vec<SnmpValue> =
                        reply.varbinds.map(|(_, value)| (&value).into()).collect();
                    return match values.len() == oids.len() {
                        true => Ok(values),
                        false => Err(SnmpError::Senseless(format!(
                            "{} values instead of {}",
                            values.len(),
                            oids.len()
                        ))),
                    };
                }
                Err(error) => retry(error, tried)?,
            }
        }
    }

    /// Returns all rows of a column, each with the last number of its name.
    fn walk(&mut self, column: &[u64]) -> Result<Vec<(u64, SnmpValue)>, SnmpError> {
        let mut rows = Vec::new();
        let mut last = column.to_vec();
        let mut tried = 0;
        while rows.len() < ROWS_MAX {
            let from = name(&last)?;
            let reply = match self.session.getbulk(&[&from], 0, ROWS_AT_ONCE) {
                Ok(reply) => reply,
                Err(error) => {
                    tried += 1;
                    retry(error, tried)?;
                    continue;
                }
            };
            let before = rows.len();
            for (oid, value) in reply.varbinds {
                let Some(path) = path(&oid) else {
                    return Ok(rows);
                };
                // Names must increase; the walk ends if an agent returns the same rows again.
                if !path.starts_with(column) || path <= last {
                    return Ok(rows);
                }
                let row = path.last().copied().unwrap_or_default();
                rows.push((row, SnmpValue::from(&value)));
                last = path;
            }
            if rows.len() == before {
                break;
            }
        }
        Ok(rows)
    }
}

/// Value, as far as it is used here.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SnmpValue {
    Counter(Counter),
    Number(u64),
    Text(String),
    Nothing,
}

impl From<&Value<'_>> for SnmpValue {
    fn from(value: &Value<'_>) -> Self {
        let counter = |value, width| Self::Counter(Counter { value, width });
        match value {
            Value::Counter32(value) => counter(u64::from(*value), Width::Bits32),
            Value::Counter64(value) => counter(*value, Width::Bits64),
            Value::Unsigned32(value) | Value::Timeticks(value) => Self::Number((*value).into()),
            Value::Integer(value) => u64::try_from(*value).map_or(Self::Nothing, Self::Number),
            Value::OctetString(bytes) => Self::Text(String::from_utf8_lossy(bytes).into_owned()),
            _ => Self::Nothing,
        }
    }
}

fn session(agent: &Agent, limit: Duration) -> Result<SyncSession, SnmpError> {
    let system = |error: String| SnmpError::System(error);
    let open = || {
        // Request identifiers differ between sessions, so that a reply to an earlier session does
        // not match.
        let number = i32::try_from(std::process::id() & 0xffff).unwrap_or(1) << 8;
        let community = agent.community.as_bytes();
        SyncSession::new_v2c(agent.address, community, Some(limit), number)
    };
    let opened = match &agent.namespace {
        None => open(),
        Some(path) => Namespace::open(path)
            .and_then(|namespace| namespace.run(open))
            .map_err(|failure| system(failure.to_string()))?,
    };
    opened.map_err(|error| system(error.to_string()))
}

/// Returns an error unless another attempt is useful.
fn retry(error: snmp2::Error, tried: u32) -> Result<(), SnmpError> {
    match error {
        // A late reply to an abandoned request.
        snmp2::Error::RequestIdMismatch if tried < ROWS_AT_ONCE => Ok(()),
        snmp2::Error::Send | snmp2::Error::Receive if tried < TRIES => Ok(()),
        snmp2::Error::Send | snmp2::Error::Receive => Err(SnmpError::Silent),
        other => Err(SnmpError::Senseless(other.to_string())),
    }
}

fn wide(column: u64, row: u64) -> Vec<u64> {
    narrow(&[31, 1, 1, 1, column], row)
}

/// Returns the name of a value in MIB-2, from its path there and its row.
fn narrow(path: &[u64], row: u64) -> Vec<u64> {
    let start = [1, 3, 6, 1, 2, 1];
    start.iter().chain(path).copied().chain([row]).collect()
}

fn name(path: &[u64]) -> Result<Oid<'static>, SnmpError> {
    Oid::from(path).map_err(|_| SnmpError::Senseless("a name that cannot be".to_owned()))
}

fn path(oid: &Oid<'_>) -> Option<Vec<u64>> {
    oid.iter().map(Iterator::collect)
}

#[cfg(test)]
mod tests;
