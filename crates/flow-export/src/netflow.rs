//! A NetFlow version 5 exporter, as specified in Cisco's "NetFlow Export Datagram Format": IPv4
//! flows with every frame counted.
//!
//! Workers report partial counters of flows. A flow is exported when its inactive timeout or its
//! active timeout expires, or when the cache is full.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use base::{Instant, PortNo};

use crate::flows::{FlowOutput, Ipv4Flow, Ipv4FlowCounts, Ipv4FlowKey};
use config::NetflowSettings;

/// The inactive timeout: the default of Cisco's routers.
const INACTIVE: Duration = Duration::from_secs(15);

/// The maximum number of flows of a bridge: a flow takes some hundreds of bytes.
pub const FLOWS_MAX: usize = 1 << 18;

/// The maximum number of records in a datagram.
const RECORDS_MAX: usize = 30;

const VERSION: u16 = 5;
const HEADER_LEN: usize = 24;
const RECORD_LEN: usize = 48;

/// Interface numbers for outputs other than one port, as in Open vSwitch.
const NOWHERE: u16 = 0xfffd;
const SEVERAL: u16 = 0xfffe;
const FLOOD: u16 = 0xffff;

/// A NetFlow exporter.
#[derive(Debug)]
pub struct NetflowExporter {
    settings: NetflowSettings,
    /// The time from 1970 to the start of the clock.
    epoch: Duration,
    flows: BTreeMap<Ipv4FlowKey, Ipv4FlowCounts>,
    /// Each flow once, by the time of its next check.
    due: BinaryHeap<Reverse<(Instant, Ipv4FlowKey)>>,
    /// The number of records exported so far.
    records: u32,
}

impl NetflowExporter {
    /// Returns an exporter without flows. Its clock started `epoch` after 1970.
    pub const fn new(settings: NetflowSettings, epoch: Duration) -> Self {
        Self {
            settings,
            epoch,
            flows: BTreeMap::new(),
            due: BinaryHeap::new(),
            records: 0,
        }
    }

    /// Changes the settings. The flows are kept, and their timeouts are computed again.
    pub fn configure(&mut self, settings: NetflowSettings) {
        self.settings = settings;
        let flows = self.flows.iter();
        let due = flows.map(|(key, counts)| Reverse((self.due_of(counts), *key)));
        self.due = due.collect();
    }

    /// Adds a worker's counters, and appends datagrams that are due to `datagrams`.
    pub fn handle_flows(&mut self, flows: &[Ipv4Flow], now: Instant, datagrams: &mut Vec<Vec<u8>>) {
        for (key, counts) in flows {
            match self.flows.get_mut(key) {
                Some(existing) => existing.add(counts),
                None => {
                    self.due.push(Reverse((self.due_of(counts), *key)));
                    self.flows.insert(*key, *counts);
                }
            }
        }
        while self.flows.len() > FLOWS_MAX {
            self.export_first(now, datagrams);
        }
    }

    /// Exports flows that are due.
    pub fn handle_timeout(&mut self, now: Instant, datagrams: &mut Vec<Vec<u8>>) {
        while let Some(Reverse((due, key))) = self.due.peek().copied()
            && due <= now
        {
            // Frames may have arrived since.
            let later = self.flows.get(&key).map(|counts| self.due_of(counts));
            match later.filter(|later| *later > now) {
                None => self.export_first(now, datagrams),
                Some(later) => {
                    self.due.pop();
                    self.due.push(Reverse((later, key)));
                }
            }
        }
    }

    /// Returns the time at which [`NetflowExporter::handle_timeout`] must be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((due, _))| *due)
    }

    /// Exports all flows, at the end.
    pub fn flush(&mut self, now: Instant, datagrams: &mut Vec<Vec<u8>>) {
        while !self.due.is_empty() {
            self.export_first(now, datagrams);
        }
    }

    /// Returns the time at which a flow is exported if no more frames arrive, rounded up to a whole
    /// second so that the flows of one second share datagrams.
    fn due_of(&self, counts: &Ipv4FlowCounts) -> Instant {
        let [first, last] = counts.seen;
        let inactive = last + INACTIVE;
        let active = self.settings.active.map(|active| first + active);
        let due = active.map_or(inactive, |active| active.min(inactive));
        Instant::from_secs(due.as_nanos().div_ceil(1_000_000_000))
    }

    /// Exports the flow that is due first.
    fn export_first(&mut self, now: Instant, datagrams: &mut Vec<Vec<u8>>) {
        let Some(Reverse((_, key))) = self.due.pop() else {
            return;
        };
        if let Some(mut remaining) = self.flows.remove(&key) {
            // The counters of a record have 32 bits: higher counts take several records, whose
            // frames have the same average length.
            let most = remaining.packets.max(remaining.bytes);
            for records in (1..=most.div_ceil(u32::MAX.into()).max(1)).rev() {
                let packets = remaining.packets / records;
                let bytes = remaining.bytes / records;
                remaining.packets -= packets;
                remaining.bytes -= bytes;
                let part = Ipv4FlowCounts {
                    packets,
                    bytes,
                    ..remaining
                };
                self.export(&key, &part, now, datagrams);
            }
        }
    }

    /// Appends a record to the last datagram, or to a new one.
    fn export(
        &mut self,
        key: &Ipv4FlowKey,
        counts: &Ipv4FlowCounts,
        now: Instant,
        datagrams: &mut Vec<Vec<u8>>,
    ) {
        const FULL: usize = HEADER_LEN + RECORDS_MAX * RECORD_LEN;
        match datagrams.last_mut().filter(|last| last.len() < FULL) {
            Some(last) => self.write_record(key, counts, last),
            None => {
                let mut datagram = Vec::with_capacity(FULL);
                self.write_header(now, &mut datagram);
                self.write_record(key, counts, &mut datagram);
                datagrams.push(datagram);
            }
        }
        self.records = self.records.wrapping_add(1);
        if let Some(last) = datagrams.last_mut() {
            let records = (last.len() - HEADER_LEN) / RECORD_LEN;
            let records = u16::try_from(records).expect("few records are in a datagram");
            last[2..4].copy_from_slice(&records.to_be_bytes());
        }
    }

    fn write_header(&self, now: Instant, to: &mut Vec<u8>) {
        let wall = self.epoch + (now - Instant::START);
        let [kind, id] = self.settings.engine;
        to.extend(VERSION.to_be_bytes());
        to.extend([0; 2]);
        to.extend(uptime(now).to_be_bytes());
        to.extend(low(wall.as_secs()).to_be_bytes());
        to.extend(wall.subsec_nanos().to_be_bytes());
        // The number of records before this datagram, by which collectors detect loss.
        to.extend(self.records.to_be_bytes());
        to.extend([kind, id]);
        let every_frame = [0; 2];
        to.extend(every_frame);
    }

    fn write_record(&self, key: &Ipv4FlowKey, counts: &Ipv4FlowCounts, to: &mut Vec<u8>) {
        let [src, dst] = key.addresses;
        let next_hop = [0; 4];
        to.extend(src.octets());
        to.extend(dst.octets());
        to.extend(next_hop);
        let output = match key.output {
            FlowOutput::Nowhere => NOWHERE,
            FlowOutput::Port(port) => number(port),
            FlowOutput::Several => SEVERAL,
            FlowOutput::Flood => FLOOD,
        };
        for interface in [number(key.input), output] {
            to.extend(self.interface(interface).to_be_bytes());
        }
        let [first, last] = counts.seen.map(uptime);
        for word in [low(counts.packets), low(counts.bytes), first, last] {
            to.extend(word.to_be_bytes());
        }
        for port in key.ports {
            to.extend(port.to_be_bytes());
        }
        to.extend([0, counts.flags, key.protocol, key.tos]);
        // Autonomous systems and prefix lengths, which only routers have.
        to.extend([0; 8]);
    }

    /// Returns the exported number of an interface, with the engine id if so configured.
    const fn interface(&self, number: u16) -> u16 {
        let [_, engine] = self.settings.engine;
        match self.settings.add_id_to_interface {
            true => (engine as u16 & 0x7f) << 9 | number & 0x1ff,
            false => number,
        }
    }
}

/// Returns the number of a port in OpenFlow 1.0.
fn number(port: PortNo) -> u16 {
    u16::try_from(port.0 & 0xffff).unwrap_or(0)
}

/// Returns the milliseconds since the clock started.
fn uptime(at: Instant) -> u32 {
    low(at.as_nanos() / 1_000_000)
}

/// Returns the low 32 bits: the numbers wrap.
fn low(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
