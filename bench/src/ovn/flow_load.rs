//! Numbered packets from one host of a logical switch to another, at a fixed rate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use base::Instant;
use testbed::{Clock, RawSocket};

use super::topology::{address, mac};
use crate::Failure;
use crate::managed::{PortLinks, port};

/// The interval of packets, and of pairs of packets under load.
const INTERVAL: Duration = Duration::from_millis(1);

/// Packets of an interval under load: 2,000 a second.
const TOGETHER: usize = 2;

/// Source ports under load, each of which is a connection.
const CONNECTIONS: usize = 1000;

/// The longest load, in packets: five minutes.
const PACKETS_MAX: usize = 600_000;

/// Time for the last packets.
const GRACE: Duration = Duration::from_secs(1);

/// The offset of the number in a packet: after Ethernet, IPv4 and UDP.
const NUMBER: usize = 14 + 20 + 8;

/// Packets of a load, and those that did not arrive.
#[derive(Clone, Copy)]
pub(super) struct LoadResult {
    pub(super) sent: usize,
    pub(super) lost: usize,
}

/// The sender and the receiver of packets from host 1 to host 2 of the first logical switch.
pub(super) struct FlowLoad {
    clock: Clock,
    sender: RawSocket,
    receiver: RawSocket,
    /// A packet of each connection.
    packets: Vec<Vec<u8>>,
}

impl FlowLoad {
    /// Opens the far ends of ports 1 and 2.
    pub(super) fn new(clock: Clock, links: &PortLinks) -> Result<Self, Failure> {
        Ok(Self {
            clock,
            sender: links.far.raw_sender(&port(1))?,
            receiver: links.far.raw_receiver(&port(2))?,
            packets: (0..CONNECTIONS).map(packet).collect(),
        })
    }

    /// Sends a packet every millisecond until one arrives; returns the time of its arrival.
    pub(super) fn first_arrival(&self, limit: Duration) -> Result<Instant, Failure> {
        let deadline = self.clock.now() + limit;
        loop {
            let now = self.clock.now();
            if self.received()?.is_some() {
                return Ok(now);
            }
            if now > deadline {
                return Err(format!("no packet arrived within {limit:?}").into());
            }
            // A packet that does not fit into the send buffer is followed by another one.
            let _ = self.sender.send(&self.packets[..1]);
            self.clock.sleep_until(now + INTERVAL);
        }
    }

    /// Sends packets while `change` runs.
    pub(super) fn during<T>(
        &self,
        change: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<(T, LoadResult), Failure> {
        // Packets of an earlier load.
        while self.received()?.is_some() {}
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let load = scope.spawn(|| self.run(&is_over).map_err(|failure| failure.to_string()));
            let changed = change();
            is_over.store(true, Ordering::Relaxed);
            let load = load.join().map_err(|_| "the load ended early")?;
            Ok((changed?, load?))
        })
    }

    fn run(&self, is_over: &AtomicBool) -> Result<LoadResult, Failure> {
        let mut arrived = Vec::new();
        let mut next = self.clock.now();
        while !is_over.load(Ordering::Relaxed) && arrived.len() < PACKETS_MAX {
            for _ in 0..TOGETHER {
                let number = arrived.len();
                let mut packet = self.packets[number % CONNECTIONS].clone();
                packet[NUMBER..NUMBER + 4].copy_from_slice(&u32::try_from(number)?.to_be_bytes());
                // Only packets that the kernel accepts count.
                if matches!(self.sender.send(&[packet]), Ok(1)) {
                    arrived.push(false);
                }
            }
            self.mark(&mut arrived)?;
            // A delay is not made up for: a burst would fill the switch's queue.
            next = self.clock.now().max(next + INTERVAL);
            self.clock.sleep_until(next);
        }
        let deadline = self.clock.now() + GRACE;
        while self.clock.now() < deadline && arrived.contains(&false) {
            self.mark(&mut arrived)?;
            self.clock.sleep_until(self.clock.now() + INTERVAL);
        }
        Ok(LoadResult {
            sent: arrived.len(),
            lost: arrived.iter().filter(|arrived| !**arrived).count(),
        })
    }

    /// Marks the packets that have arrived.
    fn mark(&self, arrived: &mut [bool]) -> Result<(), Failure> {
        while let Some(number) = self.received()? {
            if let Some(arrived) = arrived.get_mut(number) {
                *arrived = true;
            }
        }
        Ok(())
    }

    /// Receives a packet of this load; returns its number.
    fn received(&self) -> Result<Option<usize>, Failure> {
        let mut room = [0; 256];
        while let Some(length) = self.receiver.receive(&mut room)? {
            let packet = &room[..length];
            let template = &self.packets[0];
            if packet.len() != template.len() || packet[..14] != template[..14] {
                continue;
            }
            let number = packet[NUMBER..NUMBER + 4].try_into()?;
            return Ok(Some(usize::try_from(u32::from_be_bytes(number))?));
        }
        Ok(None)
    }
}

/// A packet of a connection without a UDP checksum, which its number would change.
fn packet(connection: usize) -> Vec<u8> {
    let (from, to) = (1, 2);
    let mut packet = testkit::workload::frame(&format!(
        "eth(src={},dst={}) / ipv4(src={},dst={}) / udp(src={},dst=5000) / data(18)",
        mac(0, from),
        mac(0, to),
        address(0, from),
        address(0, to),
        10_000 + connection
    ));
    packet[NUMBER - 2..NUMBER].fill(0);
    packet
}
