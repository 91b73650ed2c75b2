//! One port of a spanning tree: its variables (IEEE 802.1D-2004, 17.19) and timers (17.17),
//! under their meaning's names.

use base::PortNo;

use super::bpdu::{Bpdu, Said};
use super::vector::{PriorityVector, TreeTimes};
use super::{BpduCounts, MIGRATE_TIME, TreePortSettings, TreeSettings, TreeVersion};

/// What a port is in the tree (17.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortRole {
    /// Nothing: its link is down.
    Disabled,
    /// The way to the root.
    Root,
    /// The way to the root for those behind it.
    Designated,
    /// Another way to the root.
    Alternate,
    /// Another way to where this bridge is the way to the root.
    Backup,
}

impl PortRole {
    /// As Open vSwitch calls it in the older tree, where another way is another way.
    pub const fn stp_name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Root => "root",
            Self::Designated => "designated",
            Self::Alternate | Self::Backup => "alternate",
        }
    }

    /// As Open vSwitch calls it in the newer tree.
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

/// What a port may do (17.10; `Listening` is that of 802.1D-1998, 8.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TreePortState {
    /// Nothing: its link is down.
    Disabled,
    /// Nothing but hear BPDUs.
    Discarding,
    /// Nothing yet, but it is to forward.
    Listening,
    /// Learn who is behind it.
    Learning,
    /// All.
    Forwarding,
}

impl TreePortState {
    /// Whether stations are learned.
    pub const fn learns(self) -> bool {
        matches!(self, Self::Learning | Self::Forwarding)
    }

    /// As Open vSwitch calls it in the older tree.
    pub const fn stp_name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Discarding => "blocking",
            Self::Listening => "listening",
            Self::Learning => "learning",
            Self::Forwarding => "forwarding",
        }
    }

    /// As Open vSwitch calls it in the newer tree.
    pub const fn rstp_name(self) -> &'static str {
        match self {
            Self::Disabled => "Disabled",
            Self::Discarding | Self::Listening => "Discarding",
            Self::Learning => "Learning",
            Self::Forwarding => "Forwarding",
        }
    }
}

/// What others may know of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreePortInfo {
    /// What is settled.
    pub settings: TreePortSettings,
    /// Its role.
    pub role: PortRole,
    /// What it may do.
    pub state: TreePortState,
    /// Since how many seconds.
    pub seconds_in_state: u32,
    /// What is known of the root behind it.
    pub designated: PriorityVector,
    /// Whether it takes a host to be behind it.
    pub(crate) is_edge: bool,
    /// Whether it speaks the rapid protocol.
    pub(crate) is_rapid: bool,
    /// What was counted.
    pub counts: BpduCounts,
}

/// Where what a port knows comes from (`infoIs`, 17.19.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Disabled,
    Aged,
    Mine,
    Received,
}

/// Whether a port finds out which protocol its neighbour speaks (17.24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Migration {
    Checking,
    Sensing,
    Older,
}

/// How a port takes part in a change of the topology (17.31).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
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
    pub(super) enabled: bool,
    pub(super) role: PortRole,
    pub(super) selected_role: PortRole,
    pub(super) source: Source,
    /// `portPriority`, `portTimes`.
    pub(super) known: PriorityVector,
    pub(super) known_times: TreeTimes,
    /// `designatedPriority`, `designatedTimes`.
    pub(super) designated: PriorityVector,
    pub(super) designated_times: TreeTimes,
    /// A message that was not looked at yet (`rcvdMsg`).
    pub(super) message: Option<Said>,
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
    pub(super) sends_rapid: bool,
    pub(super) heard_rapid: bool,
    pub(super) heard_older: bool,
    pub(super) received_tc: bool,
    pub(super) received_tcn: bool,
    pub(super) received_tc_ack: bool,
    pub(super) tc_ack: bool,
    pub(super) tc_propagate: bool,
    pub(super) migration: Migration,
    pub(super) change: Change,
    pub(super) edge_delay_while: u32,
    pub(super) forward_delay_while: u32,
    pub(super) hello_when: u32,
    pub(super) migration_delay_while: u32,
    pub(super) recent_backup_while: u32,
    pub(super) received_info_while: u32,
    pub(super) recent_root_while: u32,
    pub(super) tc_while: u32,
    pub(super) sent_lately: u32,
    pub(super) told: TreePortState,
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
            role: PortRole::Disabled,
            selected_role: PortRole::Disabled,
            source: Source::Disabled,
            known: own,
            known_times: bridge.times(),
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
            sends_rapid: bridge.version == TreeVersion::Rstp,
            heard_rapid: false,
            heard_older: false,
            received_tc: false,
            received_tcn: false,
            received_tc_ack: false,
            tc_ack: false,
            tc_propagate: false,
            migration: Migration::Checking,
            change: Change::Inactive,
            edge_delay_while: MIGRATE_TIME,
            forward_delay_while: 0,
            hello_when: 0,
            migration_delay_while: MIGRATE_TIME,
            recent_backup_while: 0,
            received_info_while: 0,
            recent_root_while: 0,
            tc_while: 0,
            sent_lately: 0,
            told: TreePortState::Disabled,
            seconds_in_state: 0,
            counts: BpduCounts::default(),
        };
        port.begin(bridge);
        port
    }

    /// Begins anew (`BEGIN`): as if the port had just been made, with the link that it has.
    pub(super) fn begin(&mut self, bridge: &TreeSettings) {
        self.role = PortRole::Disabled;
        self.selected_role = PortRole::Disabled;
        self.disable();
        self.forward_delay_while = u32::from(bridge.max_age);
        self.recent_root_while = u32::from(bridge.forward_delay);
        self.recent_backup_while = 0;
        (self.sync, self.reroot, self.synced) = (true, true, false);
        self.check_migration(bridge.version);
        self.edge = self.settings.admin_edge;
        self.edge_delay_while = MIGRATE_TIME;
        self.change = Change::Inactive;
        self.new_info = true;
        self.sent_lately = 0;
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

    /// Asks for roles to be selected anew.
    pub(super) const fn reselect(&mut self) {
        self.reselect = true;
        self.selected = false;
    }

    pub(super) fn set_enabled(&mut self, is_up: bool, bridge: &TreeSettings) {
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
        self.sends_rapid = version == TreeVersion::Rstp;
        self.migration_delay_while = MIGRATE_TIME;
        self.migration = Migration::Checking;
    }

    /// Takes in a BPDU (`RECEIVE` of the port receive machine, 17.23). Returns whether it matters.
    pub(super) fn handle_bpdu(&mut self, bpdu: &Bpdu) -> bool {
        self.counts.received += 1;
        if !self.enabled {
            return false;
        }
        self.edge = false;
        self.edge_delay_while = MIGRATE_TIME;
        match bpdu {
            Bpdu::Change => {
                self.heard_older = true;
                self.received_tcn = true;
            }
            Bpdu::Said(said) => {
                match said.rapid {
                    Some(_) => self.heard_rapid = true,
                    None => self.heard_older = true,
                }
                self.message = Some(*said);
            }
        }
        true
    }

    /// A second has passed (17.22).
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
            &mut self.sent_lately,
        ] {
            *timer = timer.saturating_sub(1);
        }
        self.seconds_in_state = self.seconds_in_state.saturating_add(1);
    }

    /// How long it waits before it learns or forwards (`forwardDelay`, 17.20.5).
    pub(super) fn delay(&self) -> u32 {
        u32::from(match self.sends_rapid {
            true => self.designated_times.hello_time,
            false => self.designated_times.forward_delay,
        })
    }

    pub(super) const fn state(&self) -> TreePortState {
        match (self.role, self.learning, self.forwarding) {
            (PortRole::Disabled, ..) => TreePortState::Disabled,
            (_, _, true) => TreePortState::Forwarding,
            (_, true, false) => TreePortState::Learning,
            (PortRole::Root | PortRole::Designated, ..) if !self.sends_rapid => {
                TreePortState::Listening
            }
            _ => TreePortState::Discarding,
        }
    }

    pub(super) const fn info(&self) -> TreePortInfo {
        TreePortInfo {
            settings: self.settings,
            role: self.role,
            state: self.state(),
            seconds_in_state: self.seconds_in_state,
            designated: self.known,
            is_edge: self.edge,
            is_rapid: self.sends_rapid,
            counts: self.counts,
        }
    }
}
