//! The spanning tree of a bridge. Port links, received BPDUs and timers are its inputs; port states
//! and BPDUs to send are its outputs. The protocol itself is in `spanning`.

use std::collections::BTreeMap;

use base::{Instant, PortNo};
use flow::{PortConfig, PortDesc, PortState};
use packet::{Frame, MacAddr};

use super::ports::PortEntries;
use super::{Bridge, Effect, PortEntry};
use config::{SpanningTreeConfig, SpanningTreePort, SpanningTreeProtocol};
use dataplane::punt;
use dataplane::stp_filter::{BlockedPort, StpFilter};
use l2::spanning_tree::{
    SpanningTree, TreeAction, TreeBridgeId, TreeGuard, TreePortId, TreePortInfo, TreePortSettings,
    TreePortState, TreeSettings, TreeVersion,
};

/// The assumed speed of a port of unknown speed, in Mbit/s, as in Open vSwitch.
const SPEED_UNKNOWN: u32 = 10_000;

/// STP path costs by speed in Mbit/s (IEEE 802.1D-1998, table 8-5; Open vSwitch for faster ports).
const COSTS: [(u32, u32); 6] = [
    (10_000, 2),
    (1_000, 4),
    (100, 19),
    (16, 62),
    (10, 100),
    (4, 250),
];

/// The STP path cost of slower ports.
const COST_SLOW: u32 = 19;

/// The RSTP path cost of 1 Mbit/s; the cost of n Mbit/s is the n-th part (IEEE 802.1D-2004, table
/// 17-3).
const COST_RAPID: u32 = 20_000_000;

/// Open vSwitch's log module of port states.
const LOG_MODULE: &str = "ofproto_dpif";

/// The minimum frame length, without the frame check sequence (IEEE 802.3, 4.4.2).
const FRAME_LEN_MIN: usize = 60;

/// The spanning tree of a bridge.
pub struct BridgeSpanningTree {
    config: SpanningTreeConfig,
    /// The address of the bridge's local interface.
    address: MacAddr,
    tree: SpanningTree,
    /// The time at which the tree was enabled.
    since: Instant,
    /// Frames to send.
    outbox: Vec<Effect>,
    /// True if the tree changed since the last [`Bridge::poll_tree`].
    has_changed: bool,
    /// The last logged state of each port; `Disabled` if there is none.
    logged: BTreeMap<PortNo, TreePortState>,
}

impl BridgeSpanningTree {
    /// Returns the configuration.
    pub const fn config(&self) -> &SpanningTreeConfig {
        &self.config
    }

    /// Returns Open vSwitch's name of the protocol.
    pub const fn name(&self) -> &'static str {
        match self.config.protocol {
            SpanningTreeProtocol::Stp => "STP",
            SpanningTreeProtocol::Rstp => "RSTP",
        }
    }

    /// Returns the protocol state.
    pub const fn tree(&self) -> &SpanningTree {
        &self.tree
    }

    /// Returns the time at which the tree was enabled.
    pub const fn since(&self) -> Instant {
        self.since
    }

    /// Returns the time of the next timer of the tree.
    pub(super) fn next_timeout(&self) -> Instant {
        self.tree.next_timeout()
    }

    /// Updates the tree from the present ports.
    fn configure(&mut self, ports: &PortEntries) {
        let settings = self.settings();
        self.tree.configure(settings);
        let config = &self.config;
        let takes_part = |number: &PortNo| {
            let entry = ports.get(number).filter(|entry| {
                config.ports.contains_key(number) && !entry.desc.config.contains(PortConfig::NO_STP)
            });
            entry.is_some()
        };
        let present: Vec<_> = self.tree.ports().map(|(number, _)| number).collect();
        let removed = present.into_iter().filter(|number| !takes_part(number));
        removed.for_each(|number| self.tree.remove_port(number));
        let members = config.ports.iter().filter(|(number, _)| takes_part(number));
        for (number, port) in members {
            if let Some(entry) = ports.get(number) {
                let settings = port_settings(config.protocol, port, &entry.desc);
                self.tree.set_port(*number, settings);
                // As in Open vSwitch, RSTP follows the monitors of a port, and STP its link.
                let is_up = match config.protocol {
                    SpanningTreeProtocol::Stp => entry.is_up(),
                    SpanningTreeProtocol::Rstp => entry.desc.state.contains(PortState::LIVE),
                };
                self.tree.set_link(*number, is_up);
                // An administrator who takes the port down and up again accepts its neighbour.
                if entry.desc.config.contains(PortConfig::DOWN) {
                    self.tree.reopen_port(*number);
                }
            }
        }
    }

    /// Handles a BPDU, unless the port may receive none (OF 1.0.1, 5.2.1).
    fn handle_bpdu(&mut self, from: PortNo, entry: &PortEntry, frame: &[u8]) {
        if entry.desc.config.contains(PortConfig::NO_RECV_STP) {
            return;
        }
        let Some(bytes) = punt::bpdu(frame) else {
            return;
        };
        if let Err(malformed) = self.tree.handle_bpdu(from, bytes) {
            tracing::debug!(%malformed, "ignoring a malformed BPDU");
        }
    }

    /// Logs the changes of port states, in the words of `ovs-vswitchd`.
    fn log_states(&mut self, ports: &PortEntries) {
        let protocol = self.name();
        let name = |state: TreePortState| match self.config.protocol {
            SpanningTreeProtocol::Stp => state.stp_name(),
            SpanningTreeProtocol::Rstp => state.rstp_name(),
        };
        let mut states = BTreeMap::new();
        for (number, entry) in ports {
            let state = self.tree.port(*number).map(|port| port.state);
            let state = state.unwrap_or(TreePortState::Disabled);
            let before = self.logged.get(number).copied();
            let before = before.unwrap_or(TreePortState::Disabled);
            if name(before) != name(state) {
                tracing::debug!(
                    target: LOG_MODULE,
                    "port {}: {protocol} state changed from {} to {}",
                    entry.desc.name,
                    name(before),
                    name(state)
                );
            }
            states.insert(*number, state);
        }
        self.logged = states;
    }

    /// Logs that a guard shut, blocked or opened a port.
    fn log_guard(&self, bridge: &str, port: &str, guard: Option<TreeGuard>) {
        let protocol = self.name();
        match guard {
            Some(TreeGuard::Bpdu) => tracing::warn!(
                "{bridge}: port {port} shut down by {protocol} BPDU guard: it received a BPDU \
                 (open it by: ovs-ofctl mod-port {bridge} {port} down, then up)"
            ),
            Some(TreeGuard::Root) => tracing::warn!(
                "{bridge}: port {port} blocked by {protocol} root guard: it receives BPDUs of a \
                 better root"
            ),
            None => tracing::info!("{bridge}: port {port} opened by {protocol} guard"),
        }
    }

    fn settings(&self) -> TreeSettings {
        settings(&self.config, self.address)
    }
}

impl Bridge {
    /// Enables, configures or disables the spanning tree. `address` is that of the bridge's local
    /// interface.
    pub fn set_spanning(
        &mut self,
        config: Option<&SpanningTreeConfig>,
        address: MacAddr,
        now: Instant,
    ) {
        let before = self.protocols.spanning.take();
        if let Some(config) = config {
            let is_same = |before: &BridgeSpanningTree| before.config.protocol == config.protocol;
            let retained = before.filter(is_same);
            let mchecks: Vec<_> = config
                .ports
                .iter()
                .filter(|(number, port)| {
                    let before = retained.as_ref().and_then(|of| of.config.ports.get(number));
                    port.mcheck && !before.is_some_and(|before| before.mcheck)
                })
                .map(|(number, _)| *number)
                .collect();
            let mut spanning = retained.unwrap_or_else(|| BridgeSpanningTree {
                tree: SpanningTree::new(settings(config, address), now),
                config: config.clone(),
                address,
                since: now,
                outbox: Vec::new(),
                has_changed: true,
                logged: BTreeMap::new(),
            });
            spanning.config = config.clone();
            self.protocols.spanning = Some(spanning);
            self.update_spanning();
            if let Some(spanning) = &mut self.protocols.spanning {
                mchecks
                    .into_iter()
                    .for_each(|number| spanning.tree.check_migration(number));
            }
        }
        self.apply_tree_actions();
        self.apply_port_states();
        self.update_punts();
    }

    /// Returns the spanning tree, if it is enabled.
    pub const fn spanning(&self) -> Option<&BridgeSpanningTree> {
        self.protocols.spanning.as_ref()
    }

    /// Returns the port state filter; none if no port is blocked.
    pub const fn stp_filter(&self) -> Option<&std::sync::Arc<StpFilter>> {
        self.protocols.stp_filter.as_ref()
    }

    /// Updates the tree from the present ports.
    pub(super) fn update_spanning(&mut self) {
        let Some(spanning) = &mut self.protocols.spanning else {
            return;
        };
        spanning.configure(&self.ports);
        self.apply_tree_actions();
        self.apply_port_states();
    }

    /// Handles a BPDU.
    pub(super) fn handle_bpdu(&mut self, from: PortNo, frame: &[u8]) {
        if let (Some(spanning), Some(entry)) = (&mut self.protocols.spanning, self.ports.get(&from))
        {
            spanning.handle_bpdu(from, entry, frame);
            self.apply_tree_actions();
        }
    }

    /// Runs the timers of the tree, and pushes the frames it sends.
    pub(super) fn run_spanning_tree(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let Some(spanning) = &mut self.protocols.spanning else {
            return;
        };
        spanning.tree.handle_timeout(now);
        self.apply_tree_actions();
        if let Some(spanning) = &mut self.protocols.spanning {
            effects.append(&mut spanning.outbox);
        }
    }

    /// Returns how often a guard of the spanning tree shut or blocked a port.
    pub const fn tree_guarded(&self) -> u64 {
        self.protocols.tree_guarded
    }

    /// Triggers a topology change.
    pub fn change_topology(&mut self) {
        if let Some(spanning) = &mut self.protocols.spanning {
            spanning.tree.trigger_topology_change();
        }
        self.apply_tree_actions();
    }

    /// Returns whether the tree changed since the last call.
    pub fn poll_tree(&mut self) -> bool {
        let spanning = self.protocols.spanning.as_mut();
        spanning.is_some_and(|spanning| std::mem::take(&mut spanning.has_changed))
    }

    /// Executes the actions that the tree requests.
    fn apply_tree_actions(&mut self) {
        let Some(spanning) = &mut self.protocols.spanning else {
            return;
        };
        let mut state_changed = false;
        for action in spanning.tree.take_actions() {
            match action {
                TreeAction::Send(number, bytes) => {
                    if let Some(entry) = self.ports.get(&number) {
                        let frame = bpdu_frame(entry.desc.hw_addr, &bytes);
                        let send = Effect::Transmit(number, frame, None);
                        spanning.outbox.push(send);
                    }
                }
                TreeAction::SetState(number, state) => {
                    state_changed = true;
                    if !state.learns() {
                        self.normal.remove_port(number);
                        self.publication.request();
                    }
                }
                TreeAction::Guard(number, guard) => {
                    state_changed = true;
                    self.protocols.tree_guarded += u64::from(guard.is_some());
                    if let Some(entry) = self.ports.get(&number) {
                        spanning.log_guard(&self.identity.name, &entry.desc.name, guard);
                    }
                }
                TreeAction::Flush(number) => {
                    self.normal.remove_port(number);
                    self.publication.request();
                }
                TreeAction::FlushAll => {
                    self.normal.flush();
                    self.publication.request();
                }
            }
        }
        if state_changed {
            spanning.has_changed = true;
            self.apply_port_states();
        }
    }

    /// Applies the port states of the tree to the ports, and reports changes to controllers. A port
    /// outside the tree forwards.
    fn apply_port_states(&mut self) {
        let tree = self
            .protocols
            .spanning
            .as_ref()
            .map(|spanning| &spanning.tree);
        let info = |number| tree?.port(number);
        let mut blocked_ports = Vec::new();
        let mut changed = Vec::new();
        for (number, entry) in &mut self.ports {
            let info = info(*number);
            let state = info.map(|info| info.state);
            let new_state =
                PortState(entry.desc.state.0 & !TREE_STATE_BITS.0 | openflow_state(info).0);
            if new_state != entry.desc.state {
                let before = entry.desc.clone();
                entry.desc.state = new_state;
                self.tables.pipeline.set_port(&entry.desc);
                changed.push((*number, before));
            }
            let blocked = match state {
                None | Some(TreePortState::Forwarding) => None,
                Some(TreePortState::Learning) => Some(BlockedPort::LearnOnly),
                Some(
                    TreePortState::Disabled | TreePortState::Discarding | TreePortState::Listening,
                ) => Some(BlockedPort::DropAll),
            };
            self.tables
                .pipeline
                .set_stp_blocked(*number, blocked.is_some());
            blocked_ports.extend(blocked.map(|blocked| (*number, blocked)));
        }
        if let Some(spanning) = &mut self.protocols.spanning {
            spanning.log_states(&self.ports);
        }
        self.protocols.stp_filter = StpFilter::compile(blocked_ports);
        self.publication.request();
        let mut effects = Vec::new();
        for (number, before) in changed {
            self.send_port_modified(number, &before, &mut effects);
        }
        self.notifications.defer(effects);
    }
}

/// The bits of a port state that the tree determines.
const TREE_STATE_BITS: PortState = PortState(PortState::BLOCKED.0 | PortState::STP_MASK.0);

/// Returns the OpenFlow state of a port in this tree state (OF 1.0.1, 5.2.1; OF 1.3.5, 7.2.1). A
/// port without a link is not reported as blocked, and one that BPDU guard shut is.
fn openflow_state(info: Option<TreePortInfo>) -> PortState {
    let is_shut = info.is_some_and(|info| info.guard == Some(TreeGuard::Bpdu));
    match info.map(|info| info.state) {
        Some(TreePortState::Disabled) if is_shut => PortState::BLOCKED,
        None | Some(TreePortState::Disabled) => PortState(0),
        Some(TreePortState::Listening) => PortState::BLOCKED,
        Some(TreePortState::Discarding) => PortState(PortState::BLOCKED.0 | PortState::STP_BLOCK.0),
        Some(TreePortState::Learning) => PortState(PortState::BLOCKED.0 | PortState::STP_LEARN.0),
        Some(TreePortState::Forwarding) => PortState::STP_FORWARD,
    }
}

/// Replaces the link bits of a port state, and keeps the bits of the tree.
pub(super) const fn with_link(before: PortState, link: PortState) -> PortState {
    PortState(before.0 & TREE_STATE_BITS.0 | link.0)
}

fn settings(config: &SpanningTreeConfig, own: MacAddr) -> TreeSettings {
    let version = match (config.protocol, config.force_stp) {
        (SpanningTreeProtocol::Rstp, false) => TreeVersion::Rstp,
        (SpanningTreeProtocol::Stp, _) | (SpanningTreeProtocol::Rstp, true) => TreeVersion::Stp,
    };
    let address = config.address.unwrap_or(own);
    TreeSettings {
        max_age: config.max_age,
        hello_time: config.hello_time,
        forward_delay: config.forward_delay,
        transmit_hold_count: config.transmit_hold_count,
        ..TreeSettings::new(version, TreeBridgeId::new(config.priority, address))
    }
}

fn port_settings(
    protocol: SpanningTreeProtocol,
    port: &SpanningTreePort,
    desc: &PortDesc,
) -> TreePortSettings {
    let mbps = match desc.speed_kbps / 1000 {
        0 => SPEED_UNKNOWN,
        mbps => mbps,
    };
    let by_speed = match protocol {
        SpanningTreeProtocol::Stp => {
            let known = COSTS.iter().find(|(speed, _)| mbps >= *speed);
            known.map_or(COST_SLOW, |(_, cost)| *cost)
        }
        SpanningTreeProtocol::Rstp => {
            // The cost depends on the power of ten only.
            let speed = 10_u32.pow(mbps.ilog10());
            (COST_RAPID / speed).max(1)
        }
    };
    TreePortSettings {
        id: TreePortId(u16::from(port.priority) << 8 | port.number),
        path_cost: port.path_cost.unwrap_or(by_speed),
        admin_edge: port.admin_edge,
        auto_edge: port.auto_edge,
        point_to_point: true,
        guards: port.guards,
    }
}

/// Returns the frame of a BPDU.
fn bpdu_frame(from: MacAddr, bytes: &[u8]) -> Frame {
    let length = u16::try_from(bytes.len()).expect("a BPDU is short");
    let header = [
        &punt::BRIDGE_GROUP_ADDRESS[..],
        &from.0,
        &length.to_be_bytes(),
    ]
    .concat();
    let mut frame = [&header, bytes].concat();
    frame.resize(frame.len().max(FRAME_LEN_MIN), 0);
    Frame::from_bytes(&frame)
}
