//! One port of a spanning tree: its variables (IEEE 802.1D-2004, 17.19) and timers (17.17), with
//! descriptive names.

use base::PortNo;

use super::bpdu::{Bpdu, ConfigBpdu};
use super::vector::{PriorityVector, TreeTimes};
use super::{BpduCounts, MIGRATE_TIME, TreePortSettings, TreeSettings, TreeVersion};

/// The role of a port (17.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortRole {
    /// No role: the link is down.
    Disabled,
    /// The port with the best path to the root.
    Root,
    /// The port through which the attached network reaches the root.
    Designated,
    /// An alternate path to the root.
    Alternate,
    /// A redundant port to a network where this bridge already has the designated port.
    Backup,
}

impl PortRole {
    /// Returns the name that Open vSwitch uses for STP, which does not distinguish `Backup` from
    /// `Alternate`.
    pub const fn stp_name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Root => "root",
            Self::Designated => "designated",
            Self::Alternate | Self::Backup => "alternate",
        }
    }

    /// Returns the name that Open vSwitch uses for RSTP.
    pub const fn rstp_name(self) -> &'static str {
        match self {
            Self::Disabled => "Disabled",
            Self::Root => "Root",
            Self::Designated => "Designated",
            Self::Alternate => "Alternate",
            Self::Backup => "Backup",
        }
    }
}

/// The state of a port (17.10; `Listening` is defined in 802.1D-1998, 8.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TreePortState {
    /// No operation: the link is down.
    Disabled,
    /// The port receives BPDUs only.
    Discarding,
    /// The port neither learns nor forwards yet, and is about to.
    Listening,
    /// The port learns addresses.
    Learning,
    /// The port learns and forwards.
    Forwarding,
}

impl TreePortState {
    /// Returns whether the port learns addresses.
    pub const fn learns(self) -> bool {
        matches!(self, Self::Learning | Self::Forwarding)
    }

    /// Returns the name that Open vSwitch uses for STP.
    pub const fn stp_name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Discarding => "blocking",
            Self::Listening => "listening",
            Self::Learning => "learning",
            Self::Forwarding => "forwarding",
        }
    }

    /// Returns the name that Open vSwitch uses for RSTP.
    pub const fn rstp_name(self) -> &'static str {
        match self {
            Self::Disabled => "Disabled",
            Self::Discarding | Self::Listening => "Discarding",
            Self::Learning => "Learning",
            Self::Forwarding => "Forwarding",
        }
    }
}

/// The guard that shut or blocked a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TreeGuard {
    /// BPDU guard: the port received a BPDU and is shut down.
    Bpdu,
    /// Root guard: the port receives superior BPDUs and is blocked.
    Root,
}

impl TreeGuard {
    /// Returns the name, as in the key `stp_guard` of a port's status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bpdu => "bpdu-guard",
            Self::Root => "root-guard",
        }
    }
}

/// The published state of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreePortInfo {
    /// The configuration.
    pub settings: TreePortSettings,
    /// The role.
    pub role: PortRole,
    /// The state.
    pub state: TreePortState,
    /// The time in this state, in seconds.
    pub seconds_in_state: u32,
    /// The priority vector of the designated bridge of the attached network (`portPriority`).
    pub designated: PriorityVector,
    /// The port is an edge port.
    pub(crate) is_edge: bool,
    /// The port sends RSTP BPDUs.
    pub(crate) is_rapid: bool,
    /// The guard that shut or blocked the port.
    pub guard: Option<TreeGuard>,
    /// The BPDU counters.
    pub counts: BpduCounts,
}

/// The source of the information of a port (`infoIs`, 17.19.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Disabled,
    Aged,
    Mine,
    Received,
}

/// The state of the port protocol migration machine (17.24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Migration {
    Checking,
    Sensing,
    Older,
}

/// The state of the topology change machine (17.31).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopologyChangeState {
    Inactive,
    Learning,
    Active,
}

/// One port. All timers are in seconds.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the standard's variables")]
pub(super) struct TreePort {
    pub(super) number: PortNo,
    pub(super) settings: TreePortSettings,
    /// The link is up, and BPDU guard did not shut the port (`portEnabled`).
    pub(super) enabled: bool,
    /// The link is up.
    pub(super) link_is_up: bool,
    /// The remaining time for which BPDU guard shuts the port; `u32::MAX` has no end.
    pub(super) shut_for: Option<u32>,
    pub(super) role: PortRole,
    pub(super) selected_role: PortRole,
    pub(super) source: Source,
    /// `portPriority`, `portTimes`.
    pub(super) port_priority: PriorityVector,
    pub(super) port_times: TreeTimes,
    /// `designatedPriority`, `designatedTimes`.
    pub(super) designated: PriorityVector,
    pub(super) designated_times: TreeTimes,
    /// The received BPDU that is not yet processed (`rcvdMsg`).
    pub(super) message: Option<ConfigBpdu>,
    pub(super) agree: bool,
    pub(super) agreed: bool,
    pub(super) proposed: bool,
    pub(super) proposing: bool,
    pub(super) disputed: bool,
    pub(super) sync: bool,
    pub(super) synced: bool,
    pub(super) reroot: bool,
    pub(super) reselect: bool,
    pub(super) selected: bool,
    pub(super) update: bool,
    pub(super) learn: bool,
    pub(super) learning: bool,
    pub(super) forward: bool,
    pub(super) forwarding: bool,
    pub(super) edge: bool,
    pub(super) new_info: bool,
    pub(super) mcheck: bool,
    pub(super) send_rstp: bool,
    pub(super) received_rstp: bool,
    pub(super) received_stp: bool,
    pub(super) received_tc: bool,
    pub(super) received_tcn: bool,
    pub(super) received_tc_ack: bool,
    pub(super) tc_ack: bool,
    pub(super) tc_propagate: bool,
    pub(super) migration: Migration,
    pub(super) change: TopologyChangeState,
    pub(super) edge_delay_while: u32,
    pub(super) forward_delay_while: u32,
    pub(super) hello_when: u32,
    pub(super) migration_delay_while: u32,
    pub(super) recent_backup_while: u32,
    pub(super) received_info_while: u32,
    pub(super) recent_root_while: u32,
    pub(super) tc_while: u32,
    pub(super) transmit_count: u32,
    pub(super) published_state: TreePortState,
    pub(super) published_guard: Option<TreeGuard>,
    pub(super) seconds_in_state: u32,
    pub(super) counts: BpduCounts,
}

impl TreePort {
    pub(super) fn new(number: PortNo, settings: TreePortSettings, bridge: &TreeSettings) -> Self {
        let own = PriorityVector::of_bridge(bridge.id);
        let mut port = Self {
            number,
            settings,
            enabled: false,
            link_is_up: false,
            shut_for: None,
            role: PortRole::Disabled,
            selected_role: PortRole::Disabled,
            source: Source::Disabled,
            port_priority: own,
            port_times: bridge.times(),
            designated: own,
            designated_times: bridge.times(),
            message: None,
            agree: false,
            agreed: false,
            proposed: false,
            proposing: false,
            disputed: false,
            sync: true,
            synced: false,
            reroot: true,
            reselect: true,
            selected: false,
            update: false,
            learn: false,
            learning: false,
            forward: false,
            forwarding: false,
            edge: settings.admin_edge,
            new_info: true,
            mcheck: false,
            send_rstp: bridge.version == TreeVersion::Rstp,
            received_rstp: false,
            received_stp: false,
            received_tc: false,
            received_tcn: false,
            received_tc_ack: false,
            tc_ack: false,
            tc_propagate: false,
            migration: Migration::Checking,
            change: TopologyChangeState::Inactive,
            edge_delay_while: MIGRATE_TIME,
            forward_delay_while: 0,
            hello_when: 0,
            migration_delay_while: MIGRATE_TIME,
            recent_backup_while: 0,
            received_info_while: 0,
            recent_root_while: 0,
            tc_while: 0,
            transmit_count: 0,
            published_state: TreePortState::Disabled,
            published_guard: None,
            seconds_in_state: 0,
            counts: BpduCounts::default(),
        };
        port.begin(bridge);
        port
    }

    /// Restarts the port (`BEGIN`); the link state remains.
    pub(super) fn begin(&mut self, bridge: &TreeSettings) {
        self.role = PortRole::Disabled;
        self.selected_role = PortRole::Disabled;
        self.disable();
        self.forward_delay_while = u32::from(match bridge.version {
            TreeVersion::Stp => bridge.forward_delay,
            TreeVersion::Rstp => bridge.max_age,
        });
        self.recent_root_while = u32::from(bridge.forward_delay);
        self.recent_backup_while = 0;
        (self.sync, self.reroot, self.synced) = (true, true, false);
        self.check_migration(bridge.version);
        self.edge = self.settings.admin_edge;
        self.edge_delay_while = MIGRATE_TIME;
        self.change = TopologyChangeState::Inactive;
        self.new_info = true;
        self.transmit_count = 0;
    }

    /// `DISABLED` of the port information machine (17.27).
    pub(super) fn disable(&mut self) {
        self.message = None;
        self.proposing = false;
        self.proposed = false;
        self.agree = false;
        self.agreed = false;
        self.disputed = false;
        self.received_info_while = 0;
        self.source = Source::Disabled;
        self.reselect();
    }

    /// Requests a new selection of roles.
    pub(super) const fn reselect(&mut self) {
        self.reselect = true;
        self.selected = false;
    }

    pub(super) fn set_link(&mut self, is_up: bool, bridge: &TreeSettings) {
        self.link_is_up = is_up;
        self.follow_link(bridge);
    }

    /// Enables the port if its link is up and BPDU guard did not shut it.
    pub(super) fn follow_link(&mut self, bridge: &TreeSettings) {
        let is_up = self.link_is_up && self.shut_for.is_none();
        if self.enabled == is_up {
            return;
        }
        self.enabled = is_up;
        if !is_up {
            self.message = None;
            self.edge_delay_while = MIGRATE_TIME;
            self.edge = self.settings.admin_edge;
            self.check_migration(bridge.version);
        }
    }

    /// `CHECKING_RSTP` of the port protocol migration machine (17.24).
    pub(super) fn check_migration(&mut self, version: TreeVersion) {
        self.mcheck = false;
        self.send_rstp = version == TreeVersion::Rstp;
        self.migration_delay_while = MIGRATE_TIME;
        self.migration = Migration::Checking;
    }

    /// Shuts the port because it received a BPDU, if it has BPDU guard. Returns true if it did.
    pub(super) fn shut_by_bpdu(&mut self, bridge: &TreeSettings) -> bool {
        if !self.settings.guards.bpdu || !self.enabled {
            return false;
        }
        let recovery = self.settings.guards.recovery_seconds;
        self.shut_for = Some(recovery.unwrap_or(u32::MAX));
        self.follow_link(bridge);
        true
    }

    /// Returns the guard that shuts or blocks the port.
    pub(super) fn guard(&self) -> Option<TreeGuard> {
        if self.shut_for.is_some() {
            return Some(TreeGuard::Bpdu);
        }
        let blocked = self.settings.guards.root && self.role == PortRole::Alternate;
        (blocked && self.source == Source::Received).then_some(TreeGuard::Root)
    }

    /// Records a received BPDU (`RECEIVE` of the port receive machine, 17.23). Returns whether the
    /// state machines must run.
    pub(super) fn handle_bpdu(&mut self, bpdu: &Bpdu) -> bool {
        self.counts.received += 1;
        if !self.enabled {
            return false;
        }
        self.edge = false;
        self.edge_delay_while = MIGRATE_TIME;
        match bpdu {
            Bpdu::TopologyChange => {
                self.received_stp = true;
                self.received_tcn = true;
            }
            Bpdu::Config(config) => {
                match config.rapid {
                    Some(_) => self.received_rstp = true,
                    None => self.received_stp = true,
                }
                self.message = Some(*config);
            }
        }
        true
    }

    /// Decrements the timers, once per second (17.22).
    pub(super) fn tick(&mut self) {
        for timer in [
            &mut self.edge_delay_while,
            &mut self.forward_delay_while,
            &mut self.hello_when,
            &mut self.migration_delay_while,
            &mut self.recent_backup_while,
            &mut self.received_info_while,
            &mut self.recent_root_while,
            &mut self.tc_while,
            &mut self.transmit_count,
        ] {
            *timer = timer.saturating_sub(1);
        }
        self.seconds_in_state = self.seconds_in_state.saturating_add(1);
        if let Some(rest) = self.shut_for.filter(|rest| *rest != u32::MAX) {
            self.shut_for = Some(rest.saturating_sub(1));
        }
    }

    /// Returns the delay before the port learns or forwards (`forwardDelay`, 17.20.5).
    pub(super) fn delay(&self) -> u32 {
        u32::from(match self.send_rstp {
            true => self.designated_times.hello_time,
            false => self.designated_times.forward_delay,
        })
    }

    pub(super) const fn state(&self) -> TreePortState {
        match (self.role, self.learning, self.forwarding) {
            (PortRole::Disabled, ..) => TreePortState::Disabled,
            (_, _, true) => TreePortState::Forwarding,
            (_, true, false) => TreePortState::Learning,
            (PortRole::Root | PortRole::Designated, ..) if !self.send_rstp => {
                TreePortState::Listening
            }
            _ => TreePortState::Discarding,
        }
    }

    pub(super) fn info(&self) -> TreePortInfo {
        TreePortInfo {
            settings: self.settings,
            role: self.role,
            state: self.state(),
            seconds_in_state: self.seconds_in_state,
            designated: self.port_priority,
            is_edge: self.edge,
            is_rapid: self.send_rstp,
            guard: self.guard(),
            counts: self.counts,
        }
    }
}
