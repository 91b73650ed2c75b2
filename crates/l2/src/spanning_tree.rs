//! Spanning trees: the selection of the ports that forward, so that exactly one path connects any
//! two bridges (IEEE 802.1D-2004, clause 17: RSTP; clause 17.4 reduces it to the STP of 802.1D-1998
//! if the version is forced).
//!
//! A state machine without sockets or a clock: inputs are BPDUs and the time; outputs are BPDUs and
//! port states. One bridge is one [`SpanningTree`].

mod bpdu;
mod machines;
mod port;
mod roles;
#[cfg(test)]
mod tests;
mod vector;

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Instant, PortNo};
use config::TreeGuards;

pub(crate) use bpdu::{Bpdu, MalformedBpdu};
use port::TreePort;
pub use port::{TreeGuard, TreePortInfo, TreePortState};
pub use vector::{PriorityVector, TreeBridgeId, TreePortId, TreeTimes};

/// Time that a port waits before it detects a neighbour with STP, in seconds (`Migrate Time`,
/// 17.13.9).
const MIGRATE_TIME: u32 = 3;

/// Maximum number of rounds of the state machines per event: a bound on a loop that ends according
/// to the standard. The machines of a port take a few steps per event.
const ROUNDS_MAX: usize = 10_000;

/// Maximum number of ticks executed after a pause. After a longer pause all received information
/// has expired.
const TICKS_MAX: u32 = 64;

/// The protocol version (`Force Protocol Version`, 17.13.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TreeVersion {
    /// STP, 802.1D-1998.
    Stp,
    /// RSTP, 802.1D-2004; ports with an STP neighbour use STP.
    #[default]
    Rstp,
}

/// Configuration of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeSettings {
    /// The protocol version.
    pub version: TreeVersion,
    /// The bridge identifier: the priority in the upper 16 bits, the address in the lower 48.
    pub id: TreeBridgeId,
    /// Lifetime of received information, in seconds (6 to 40).
    pub max_age: u16,
    /// Interval between BPDUs, in seconds (1 to 10).
    pub hello_time: u16,
    /// Duration of each state before a port forwards, in seconds (4 to 30).
    pub forward_delay: u16,
    /// Maximum number of BPDUs that a port sends per second (1 to 10).
    pub transmit_hold_count: u32,
}

impl TreeSettings {
    /// Returns the recommended values of the standard (17.14, table 17-1).
    pub const fn new(version: TreeVersion, id: TreeBridgeId) -> Self {
        Self {
            version,
            id,
            max_age: 20,
            hello_time: 2,
            forward_delay: 15,
            transmit_hold_count: 6,
        }
    }

    /// Returns the timer values that this bridge announces as the root.
    pub const fn times(&self) -> TreeTimes {
        TreeTimes {
            message_age: 0,
            max_age: self.max_age,
            hello_time: self.hello_time,
            forward_delay: self.forward_delay,
        }
    }
}

/// Configuration of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreePortSettings {
    /// The port identifier.
    pub id: TreePortId,
    /// The path cost of the port.
    pub path_cost: u32,
    /// The port is an edge port from the start: it connects a host.
    pub admin_edge: bool,
    /// The port becomes an edge port if no BPDU arrives.
    pub auto_edge: bool,
    /// The link is point-to-point: at most one other bridge is connected.
    pub point_to_point: bool,
    /// The protection against foreign bridges.
    pub guards: TreeGuards,
}

/// An output of the state machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeAction {
    /// Send a BPDU from a port. The bytes follow the length field of an 802.3 frame.
    Send(PortNo, Vec<u8>),
    /// Set the state of a port.
    SetState(PortNo, TreePortState),
    /// Report that a guard shut or blocked a port; none: that it opened the port again.
    Guard(PortNo, Option<TreeGuard>),
    /// Remove the learned addresses of a port.
    Flush(PortNo),
    /// Remove all learned addresses: a topology change of STP, which shortens the ageing time of all
    /// ports (IEEE 802.1D-1998, 8.3.5).
    FlushAll,
}

/// BPDU counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BpduCounts {
    /// BPDUs sent.
    pub sent: u64,
    /// Valid BPDUs received.
    pub received: u64,
    /// Malformed BPDUs received.
    pub malformed: u64,
    /// Times that a guard shut or blocked the port.
    pub guarded: u64,
}

/// The spanning tree of one bridge.
#[derive(Debug)]
pub struct SpanningTree {
    settings: TreeSettings,
    ports: Vec<TreePort>,
    port_indices: BTreeMap<PortNo, usize>,
    /// The best known root priority vector (`rootPriority`).
    root: PriorityVector,
    /// The root port; `None` if this bridge is the root.
    root_port: Option<PortNo>,
    root_times: TreeTimes,
    next_tick: Instant,
    actions: Vec<TreeAction>,
}

impl SpanningTree {
    /// Returns a bridge without ports.
    pub fn new(settings: TreeSettings, now: Instant) -> Self {
        Self {
            settings,
            ports: Vec::new(),
            port_indices: BTreeMap::new(),
            root: PriorityVector::of_bridge(settings.id),
            root_port: None,
            root_times: settings.times(),
            next_tick: now + Duration::from_secs(1),
            actions: Vec::new(),
        }
    }

    /// Replaces the configuration. A change of the version restarts all ports.
    pub fn configure(&mut self, settings: TreeSettings) {
        if self.settings == settings {
            return;
        }
        let restarts = self.settings.version != settings.version;
        self.settings = settings;
        for index in 0..self.ports.len() {
            if restarts {
                self.ports[index].begin(&self.settings);
            }
            self.ports[index].reselect();
        }
        self.run();
    }

    /// Returns the configuration.
    pub const fn settings(&self) -> &TreeSettings {
        &self.settings
    }

    /// Adds or reconfigures a port. A new port is down until [`SpanningTree::set_link`].
    pub fn set_port(&mut self, number: PortNo, settings: TreePortSettings) {
        if let Some(&index) = self.port_indices.get(&number) {
            let port = &mut self.ports[index];
            if port.settings == settings {
                return;
            }
            port.settings = settings;
            port.reselect();
            if !settings.guards.bpdu {
                self.release(index);
            }
        } else {
            self.port_indices.insert(number, self.ports.len());
            self.ports
                .push(TreePort::new(number, settings, &self.settings));
            self.actions
                .push(TreeAction::SetState(number, TreePortState::Disabled));
        }
        self.run();
    }

    /// Removes a port.
    pub fn remove_port(&mut self, number: PortNo) {
        let Some(index) = self.port_indices.remove(&number) else {
            return;
        };
        self.ports.remove(index);
        for other in self
            .port_indices
            .values_mut()
            .filter(|other| **other > index)
        {
            *other -= 1;
        }
        self.ports.iter_mut().for_each(TreePort::reselect);
        self.run();
    }

    /// Sets the link state of a port (`portEnabled`).
    pub fn set_link(&mut self, number: PortNo, is_up: bool) {
        if let Some(&index) = self.port_indices.get(&number)
            && self.ports[index].link_is_up != is_up
        {
            self.ports[index].set_link(is_up, &self.settings);
            self.run();
        }
    }

    /// Opens a port that BPDU guard shut down.
    pub fn reopen_port(&mut self, number: PortNo) {
        if let Some(&index) = self.port_indices.get(&number) {
            self.release(index);
        }
    }

    /// Ends the shutdown of a port by BPDU guard.
    fn release(&mut self, index: usize) {
        if self.ports[index].shut_for.take().is_some() {
            self.ports[index].follow_link(&self.settings);
            self.run();
            self.note_guard(index);
        }
    }

    /// Processes a received BPDU: the bytes that follow the length field of an 802.3 frame.
    ///
    /// # Errors
    /// The BPDU is malformed, and was counted.
    pub fn handle_bpdu(&mut self, number: PortNo, bytes: &[u8]) -> Result<(), MalformedBpdu> {
        let Some(&index) = self.port_indices.get(&number) else {
            return Ok(());
        };
        let parsed = Bpdu::parse(bytes);
        // A BPDU of another version or a truncated one also has a bridge as its sender.
        let is_bpdu = !matches!(parsed, Err(MalformedBpdu::NotSpanningTree));
        let shuts = is_bpdu && self.ports[index].shut_by_bpdu(&self.settings);
        if shuts {
            self.run();
            self.note_guard(index);
        }
        let bpdu = match parsed {
            Ok(bpdu) => bpdu,
            Err(malformed) => {
                self.ports[index].counts.malformed += 1;
                return Err(malformed);
            }
        };
        if self.ports[index].handle_bpdu(&bpdu) {
            self.run();
        }
        Ok(())
    }

    /// Executes the ticks that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        for _ in 0..TICKS_MAX {
            if now < self.next_tick {
                return;
            }
            self.next_tick += Duration::from_secs(1);
            self.ports.iter_mut().for_each(TreePort::tick);
            for index in 0..self.ports.len() {
                if self.ports[index].shut_for == Some(0) {
                    self.release(index);
                }
            }
            self.run();
        }
        self.next_tick = now + Duration::from_secs(1);
    }

    /// Returns the time of the next [`SpanningTree::handle_timeout`].
    pub const fn next_timeout(&self) -> Instant {
        self.next_tick
    }

    /// Restarts the detection of the neighbour's protocol version (`mcheck`, 17.19.13).
    pub fn check_migration(&mut self, number: PortNo) {
        if let Some(&index) = self.port_indices.get(&number) {
            self.ports[index].mcheck = true;
            self.run();
        }
    }

    /// Signals a topology change on all forwarding ports (`stp/tcn`).
    pub fn trigger_topology_change(&mut self) {
        for port in &mut self.ports {
            if port.forwarding {
                port.received_tc = true;
            }
        }
        self.run();
    }

    /// Returns the actions since the last call, in order.
    pub fn take_actions(&mut self) -> Vec<TreeAction> {
        std::mem::take(&mut self.actions)
    }

    /// Returns the root priority vector: the root, the path cost, and the bridge and port that
    /// announced it.
    pub const fn root(&self) -> &PriorityVector {
        &self.root
    }

    /// Returns the root port; `None` if this bridge is the root.
    pub const fn root_port(&self) -> Option<PortNo> {
        self.root_port
    }

    /// Returns the timer values of the root.
    pub const fn root_times(&self) -> &TreeTimes {
        &self.root_times
    }

    /// Returns the state of a port.
    pub fn port(&self, number: PortNo) -> Option<TreePortInfo> {
        let &index = self.port_indices.get(&number)?;
        Some(self.ports[index].info())
    }

    /// Returns the states of all ports, by number.
    pub fn ports(&self) -> impl Iterator<Item = (PortNo, TreePortInfo)> {
        let info = |(number, index): (&PortNo, &usize)| (*number, self.ports[*index].info());
        self.port_indices.iter().map(info)
    }

    /// Runs all state machines until none makes a transition.
    fn run(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let mut moved = roles::select(self);
            for index in 0..self.ports.len() {
                moved |= machines::step(self, index);
            }
            if !moved {
                return;
            }
        }
        tracing::error!("spanning tree state machines did not converge");
    }

    /// Records an action if the state of a port changed.
    fn note_state(&mut self, index: usize) {
        let port = &mut self.ports[index];
        let state = port.state();
        if port.published_state != state {
            port.published_state = state;
            port.seconds_in_state = 0;
            self.actions.push(TreeAction::SetState(port.number, state));
        }
        self.note_guard(index);
    }

    /// Records an action if a guard shut, blocked or opened a port.
    fn note_guard(&mut self, index: usize) {
        let port = &mut self.ports[index];
        let guard = port.guard();
        if port.published_guard != guard {
            port.published_guard = guard;
            port.counts.guarded += u64::from(guard.is_some());
            self.actions.push(TreeAction::Guard(port.number, guard));
        }
    }
}
