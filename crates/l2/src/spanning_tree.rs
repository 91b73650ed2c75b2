//! Spanning trees: which ports of a bridge forward, so that among all bridges there is one way
//! from each to each (IEEE 802.1D-2004, clause 17, the rapid protocol; its clause 17.4 makes
//! it the older one of 802.1D-1998 where the version is forced).
//!
//! An engine without sockets or a clock: BPDUs and the time in, BPDUs and what ports may do
//! out. One bridge is one [`SpanningTree`].

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

pub(crate) use bpdu::{Bpdu, MalformedBpdu};
use port::TreePort;
pub use port::{TreePortInfo, TreePortState};
pub use vector::{PriorityVector, TreeBridgeId, TreePortId, TreeTimes};

/// How long a bridge waits before it takes a neighbour for one of the older protocol, in
/// seconds (`Migrate Time`, 17.13.9).
const MIGRATE_TIME: u32 = 3;

/// How many times a second machines may follow one another: a bound for a loop that the
/// standard promises to end. Each port's machines take a few steps for one event.
const ROUNDS_MAX: usize = 10_000;

/// Ticks that are made up for after a pause. After a longer one all that was heard has aged.
const TICKS_MAX: u32 = 64;

/// Which protocol a bridge speaks (`Force Protocol TreeVersion`, 17.13.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TreeVersion {
    /// That of 802.1D-1998.
    Stp,
    /// That of 802.1D-2004; the older one by ports whose neighbour speaks that.
    #[default]
    Rstp,
}

/// What is settled for a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeSettings {
    /// Which protocol.
    pub version: TreeVersion,
    /// Its id: the priority in the upper 16 bits, its address in the lower 48.
    pub id: TreeBridgeId,
    /// How long information lives, in seconds (6 to 40).
    pub max_age: u16,
    /// How often it says something, in seconds (1 to 10).
    pub hello_time: u16,
    /// How long a port waits in each state before it forwards, in seconds (4 to 30).
    pub forward_delay: u16,
    /// How many BPDUs a port sends in a second (1 to 10).
    pub transmit_hold_count: u32,
}

impl TreeSettings {
    /// Those that the standard recommends (17.14, table 17-1).
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

    /// What a bridge says of times that is the root.
    pub const fn times(&self) -> TreeTimes {
        TreeTimes {
            message_age: 0,
            max_age: self.max_age,
            hello_time: self.hello_time,
            forward_delay: self.forward_delay,
        }
    }
}

/// What is settled for a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreePortSettings {
    /// Its id among the bridge's.
    pub id: TreePortId,
    /// What a way through it costs.
    pub path_cost: u32,
    /// Whether a host is taken to be behind it from the start.
    pub admin_edge: bool,
    /// Whether a host is taken to be behind it where no bridge speaks.
    pub auto_edge: bool,
    /// Whether there is one bridge at most behind it.
    pub point_to_point: bool,
}

/// What a bridge has to do because of its tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeAction {
    /// Send a BPDU by a port: what follows the length of an 802.3 frame.
    Send(PortNo, Vec<u8>),
    /// From now on a port may do this.
    SetState(PortNo, TreePortState),
    /// Forget who was learned behind a port.
    Flush(PortNo),
}

/// What was counted of a port's BPDUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BpduCounts {
    /// Sent.
    pub sent: u64,
    /// Received and understood.
    pub received: u64,
    /// Received and not understood.
    pub malformed: u64,
}

/// The tree as one bridge sees it.
#[derive(Debug)]
pub struct SpanningTree {
    settings: TreeSettings,
    ports: Vec<TreePort>,
    places: BTreeMap<PortNo, usize>,
    /// The best of what is known of the root (`rootPriority`).
    root: PriorityVector,
    /// The port towards the root; none if this bridge is it.
    root_port: Option<PortNo>,
    root_times: TreeTimes,
    next_tick: Instant,
    actions: Vec<TreeAction>,
}

impl SpanningTree {
    /// A bridge without ports.
    pub fn new(settings: TreeSettings, now: Instant) -> Self {
        Self {
            settings,
            ports: Vec::new(),
            places: BTreeMap::new(),
            root: PriorityVector::of_bridge(settings.id),
            root_port: None,
            root_times: settings.times(),
            next_tick: now + Duration::from_secs(1),
            actions: Vec::new(),
        }
    }

    /// Goes over to other settings. Those of the older or newer protocol begin anew.
    pub fn configure(&mut self, settings: TreeSettings) {
        if self.settings == settings {
            return;
        }
        let anew = self.settings.version != settings.version;
        self.settings = settings;
        for place in 0..self.ports.len() {
            if anew {
                self.ports[place].begin(&self.settings);
            }
            self.ports[place].reselect();
        }
        self.run();
    }

    /// The settings.
    pub const fn settings(&self) -> &TreeSettings {
        &self.settings
    }

    /// Has a port, or has it otherwise. A new one is down until [`SpanningTree::link`] says else.
    pub fn set_port(&mut self, number: PortNo, settings: TreePortSettings) {
        if let Some(&place) = self.places.get(&number) {
            let port = &mut self.ports[place];
            if port.settings == settings {
                return;
            }
            port.settings = settings;
            port.reselect();
        } else {
            self.places.insert(number, self.ports.len());
            self.ports
                .push(TreePort::new(number, settings, &self.settings));
            self.actions
                .push(TreeAction::SetState(number, TreePortState::Disabled));
        }
        self.run();
    }

    /// Has a port no longer.
    pub fn remove_port(&mut self, number: PortNo) {
        let Some(place) = self.places.remove(&number) else {
            return;
        };
        self.ports.remove(place);
        for other in self.places.values_mut().filter(|other| **other > place) {
            *other -= 1;
        }
        self.ports.iter_mut().for_each(TreePort::reselect);
        self.run();
    }

    /// A port's link comes or goes (`portEnabled`).
    pub fn set_link(&mut self, number: PortNo, is_up: bool) {
        if let Some(&place) = self.places.get(&number)
            && self.ports[place].enabled != is_up
        {
            self.ports[place].set_enabled(is_up, &self.settings);
            self.run();
        }
    }

    /// A BPDU has come by a port: what follows the length of an 802.3 frame.
    ///
    /// # Errors
    /// It is none. It was counted.
    pub fn handle_bpdu(&mut self, number: PortNo, bytes: &[u8]) -> Result<(), MalformedBpdu> {
        let Some(&place) = self.places.get(&number) else {
            return Ok(());
        };
        let bpdu = match Bpdu::parse(bytes) {
            Ok(bpdu) => bpdu,
            Err(malformed) => {
                self.ports[place].counts.malformed += 1;
                return Err(malformed);
            }
        };
        if self.ports[place].handle_bpdu(&bpdu) {
            self.run();
        }
        Ok(())
    }

    /// Lets the time pass.
    pub fn handle_timeout(&mut self, now: Instant) {
        for _ in 0..TICKS_MAX {
            if now < self.next_tick {
                return;
            }
            self.next_tick += Duration::from_secs(1);
            self.ports.iter_mut().for_each(TreePort::tick);
            self.run();
        }
        self.next_tick = now + Duration::from_secs(1);
    }

    /// When [`SpanningTree::pass`] has something to do next.
    pub const fn next_timeout(&self) -> Instant {
        self.next_tick
    }

    /// Has a port find out anew which protocol its neighbour speaks (`mcheck`, 17.19.13).
    pub fn check_migration(&mut self, number: PortNo) {
        if let Some(&place) = self.places.get(&number) {
            self.ports[place].mcheck = true;
            self.run();
        }
    }

    /// Has all ports act as if the topology had changed there (`stp/tcn`).
    pub fn trigger_topology_change(&mut self) {
        for port in &mut self.ports {
            if port.forwarding {
                port.received_tc = true;
            }
        }
        self.run();
    }

    /// What there is to do since the last call, in order.
    pub fn take_actions(&mut self) -> Vec<TreeAction> {
        std::mem::take(&mut self.actions)
    }

    /// The root's id, the cost of the way there and who told it.
    pub const fn root(&self) -> &PriorityVector {
        &self.root
    }

    /// The port towards the root; none if this bridge is it.
    pub const fn root_port(&self) -> Option<PortNo> {
        self.root_port
    }

    /// The times that the root has settled.
    pub const fn root_times(&self) -> &TreeTimes {
        &self.root_times
    }

    /// What is known of a port.
    pub fn port(&self, number: PortNo) -> Option<TreePortInfo> {
        let &place = self.places.get(&number)?;
        Some(self.ports[place].info())
    }

    /// What is known of all ports, by number.
    pub fn ports(&self) -> impl Iterator<Item = (PortNo, TreePortInfo)> {
        let info = |(number, place): (&PortNo, &usize)| (*number, self.ports[*place].info());
        self.places.iter().map(info)
    }

    /// Lets all machines run until none has anything to do, and says what came of it.
    fn run(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let mut moved = roles::select(self);
            for place in 0..self.ports.len() {
                moved |= machines::step(self, place);
            }
            if !moved {
                return;
            }
        }
        tracing::error!("a spanning tree did not come to rest");
    }

    /// Tells whoever asks for actions what a port may do now, if that is news.
    fn note_state(&mut self, place: usize) {
        let port = &mut self.ports[place];
        let state = port.state();
        if port.told != state {
            port.told = state;
            port.seconds_in_state = 0;
            self.actions.push(TreeAction::SetState(port.number, state));
        }
    }
}
