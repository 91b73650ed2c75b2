//! The state of one connection: its kind, role and asynchronous configuration; and the roles among
//! all connections of a bridge.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{MemoryBudget, Xid};
use flow::{
    FlowRemovedReason, PacketInReason, PortReason, Refusal, Role, RoleRequest, ShortId, TableReason,
};
use openflow::{AsyncConfig, ControllerReason, ForwardedRequest, MultipartRequest, Version};

use super::bundles::Bundles;
use super::flow_mod_report::FlowModReport;
use super::monitors::Monitors;
use config::PacketRate;
use dataplane::policer::Policer;

/// The identifier of one connection for the lifetime of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// The kind of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionKind {
    /// The main connection to a configured controller. While there is one, the bridge is under
    /// control.
    Primary,
    /// A tool, or a controller that connected to a listener. It receives no asynchronous messages
    /// until it sets a miss_send_len or configures them, as in Open vSwitch, and the fail mode
    /// ignores it.
    Service,
    /// An auxiliary connection to a configured controller. Its requests count as the controller's;
    /// of the asynchronous messages it carries packet-ins.
    Auxiliary(Auxiliary),
}

/// The identity of an auxiliary connection (OF 1.3.5, 6.3; OF 1.5.1, 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auxiliary {
    /// The controller's main connection.
    pub main: ConnectionId,
    /// The auxiliary id, from one.
    pub number: u8,
}

impl ConnectionKind {
    /// Returns the identity of an auxiliary connection; none for other kinds.
    #[must_use]
    pub const fn auxiliary(self) -> Option<Auxiliary> {
        match self {
            Self::Auxiliary(auxiliary) => Some(auxiliary),
            Self::Primary | Self::Service => None,
        }
    }
}

/// The default miss_send_len of a service connection, in bytes.
const MISS_SEND_LEN_SERVICE: u16 = 0;

/// The default miss_send_len of a controller, in bytes (OF 1.3.5, 7.3.2).
const MISS_SEND_LEN_PRIMARY: u16 = 128;

/// One connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The kind.
    pub kind: ConnectionKind,
    /// The URI of a configured controller (OF 1.5.1, 6.3.1).
    pub uri: Option<Arc<str>>,
    /// The OpenFlow version.
    pub version: Version,
    /// The role.
    pub role: Role,
    /// The short id by which other controllers know it, if it requested one (1.5).
    pub(crate) short_id: Option<ShortId>,
    /// The number of bytes of a missed frame that a packet-in carries.
    pub(crate) miss_send_len: u16,
    /// The asynchronous configuration.
    pub wants: AsyncConfig,
    /// The packet-in rate limiter.
    pub policer: Arc<Policer>,
    /// The packet-in rate, if it differs from the bridge's.
    pub rate_limit: Option<PacketRate>,
    /// The controller id: frames that rules send to this id reach the connection, and no others
    /// (`NXT_SET_CONTROLLER_ID`).
    pub controller: u16,
    /// The uncommitted bundles.
    pub(crate) bundles: Bundles,
    /// The flow monitors.
    pub(crate) monitors: Monitors,
    /// Incomplete multipart requests.
    pub(crate) fragments: BTreeMap<Xid, MultipartRequest>,
    /// The name in logs: the URI, or the address from which the peer connected.
    pub name: Arc<str>,
    /// The flow-mods that the log does not report yet.
    pub(crate) flow_mods: FlowModReport,
}

impl Connection {
    /// Returns a connection with the defaults of its kind and version.
    #[must_use]
    pub fn new(kind: ConnectionKind, version: Version) -> Self {
        Self {
            kind,
            uri: None,
            version,
            role: Role::Equal,
            short_id: None,
            miss_send_len: match kind {
                ConnectionKind::Primary => MISS_SEND_LEN_PRIMARY,
                ConnectionKind::Service | ConnectionKind::Auxiliary(_) => MISS_SEND_LEN_SERVICE,
            },
            wants: AsyncConfig::initial(version),
            policer: Policer::new(None),
            rate_limit: None,
            controller: 0,
            bundles: Bundles::default(),
            monitors: Monitors::default(),
            fragments: BTreeMap::new(),
            name: Arc::default(),
            flow_mods: FlowModReport::default(),
        }
    }

    /// Makes the connection's bundles take their memory from this budget.
    pub fn limit_memory(&mut self, memory: MemoryBudget) {
        self.bundles.limit_memory(memory);
    }

    /// Checks that the role permits changes (OF 1.3.5, 6.3).
    ///
    /// # Errors
    /// The role is slave.
    pub(crate) fn check_may_change(&self) -> Result<(), Refusal> {
        match self.role {
            Role::Equal | Role::Master => Ok(()),
            Role::Slave => Err(Refusal::RequestIsSlave),
        }
    }

    /// Returns whether the connection receives frames without a matching rule by default: before
    /// OpenFlow 1.3 it does, later the table-miss rule decides (OF 1.3.5, 5.4).
    #[must_use]
    pub(crate) fn takes_misses(&self) -> bool {
        self.version < Version::V13
            && self.controller == 0
            && self.wants_packet_in(PacketInReason::NoMatch)
    }

    /// Returns whether the connection receives packet-ins of this reason.
    #[must_use]
    pub(crate) fn wants_packet_in(&self, reason: PacketInReason) -> bool {
        self.listens() && self.masks().wants_packet_in(reason, self.version)
    }

    /// Returns whether the connection receives port-status messages of this reason.
    #[must_use]
    pub(crate) fn wants_port_status(&self, reason: PortReason) -> bool {
        self.listens() && self.masks().wants_port_status(reason)
    }

    /// Returns whether the connection receives flow-removed messages of this reason.
    #[must_use]
    pub(crate) fn wants_flow_removed(&self, reason: FlowRemovedReason) -> bool {
        self.listens() && self.masks().wants_flow_removed(reason, self.version)
    }

    /// Returns whether the connection receives table-status messages of this reason.
    #[must_use]
    pub(crate) fn wants_table_status(&self, reason: TableReason) -> bool {
        self.listens() && self.masks().wants_table_status(reason)
    }

    /// Returns whether the connection receives the status of other controllers.
    #[must_use]
    pub(crate) fn wants_controller_status(&self, reason: ControllerReason) -> bool {
        let is_supported = self.version >= Version::V15;
        is_supported && self.listens() && self.masks().wants_controller_status(reason)
    }

    /// Returns whether the connection receives forwarded requests. Before 1.3 there are no meters.
    #[must_use]
    pub(crate) fn wants_request(&self, request: &ForwardedRequest) -> bool {
        let is_supported = match request {
            ForwardedRequest::GroupMod(_) => true,
            ForwardedRequest::MeterMod(_) => self.version >= Version::V13,
        };
        is_supported && self.listens() && self.masks().wants_request(request)
    }

    /// Returns whether the connection is notified that another became master in its place: it must
    /// be (OF 1.4.1, 7.4.4). As in Open vSwitch the asynchronous configuration does not matter.
    #[must_use]
    pub(crate) fn knows_role_status(&self) -> bool {
        self.version >= Version::V13
    }

    /// Returns the identity of an auxiliary connection; none for other kinds.
    #[must_use]
    pub const fn auxiliary(&self) -> Option<Auxiliary> {
        self.kind.auxiliary()
    }

    /// Enables the asynchronous messages of a service connection that configures them, as in Open
    /// vSwitch.
    pub(crate) fn listen(&mut self) {
        if self.kind == ConnectionKind::Service && self.miss_send_len == 0 {
            self.miss_send_len = MISS_SEND_LEN_PRIMARY;
        }
    }

    fn listens(&self) -> bool {
        self.kind == ConnectionKind::Primary || self.miss_send_len != 0
    }

    fn masks(&self) -> openflow::AsyncMasks {
        match self.role {
            Role::Equal | Role::Master => self.wants.active,
            Role::Slave => self.wants.slave,
        }
    }
}

/// All connections of a bridge.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections {
    peers: BTreeMap<ConnectionId, Connection>,
    /// The newest generation id that a role request named (OF 1.3.5, 6.3).
    generation: Option<u64>,
}

impl Connections {
    /// Adds a connection.
    pub(crate) fn insert(&mut self, id: ConnectionId, connection: Connection) {
        self.peers.insert(id, connection);
    }

    /// Removes and returns a connection.
    pub(crate) fn remove(&mut self, id: ConnectionId) -> Option<Connection> {
        self.peers.remove(&id)
    }

    /// Returns a connection.
    pub(crate) fn find(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.peers.get_mut(&id)
    }

    /// Returns the main connection of a controller: `id` itself, or the one to which `id` is
    /// auxiliary. All connections of a controller share its role and settings.
    #[must_use]
    pub(crate) fn main_of(&self, id: ConnectionId) -> ConnectionId {
        let auxiliary = self.peers.get(&id).and_then(Connection::auxiliary);
        auxiliary.map_or(id, |auxiliary| auxiliary.main)
    }

    /// Returns the connection that carries packet-ins of a flow with this hash to a controller:
    /// always the same auxiliary connection, or the main connection if there is none (OF 1.3.5,
    /// 6.3).
    #[must_use]
    pub(crate) fn carrier(&self, main: ConnectionId, hash: u64) -> ConnectionId {
        let auxiliaries = || {
            let peers = self.iter();
            peers.filter(|(_, peer)| peer.auxiliary().is_some_and(|of| of.main == main))
        };
        let count = auxiliaries().count() as u64;
        let chosen = hash
            .checked_rem(count)
            .and_then(|of| usize::try_from(of).ok());
        let carrier = chosen.and_then(|chosen| auxiliaries().nth(chosen));
        carrier.map_or(main, |(id, _)| id)
    }

    /// Returns whether any controller has more than one connection.
    #[must_use]
    pub(crate) fn any_auxiliary(&self) -> bool {
        self.peers.values().any(|peer| peer.auxiliary().is_some())
    }

    /// Returns all connections, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.peers.iter().map(|(id, connection)| (*id, connection))
    }

    /// Returns all connections, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (ConnectionId, &mut Connection)> {
        self.peers
            .iter_mut()
            .map(|(id, connection)| (*id, connection))
    }

    /// Returns whether a configured controller is connected.
    #[must_use]
    pub(crate) fn any_primary(&self) -> bool {
        self.peers
            .values()
            .any(|peer| peer.kind == ConnectionKind::Primary)
    }

    /// Returns whether any connection takes frames without a matching rule.
    #[must_use]
    pub(crate) fn any_takes_misses(&self) -> bool {
        self.peers.values().any(Connection::takes_misses)
    }

    /// Returns the master, if there is one.
    #[must_use]
    pub(crate) fn master(&self) -> Option<ConnectionId> {
        let mut peers = self.iter();
        let master = peers.find(|(_, peer)| peer.role == Role::Master);
        master.map(|(id, _)| id)
    }

    /// Returns the newest generation id.
    #[must_use]
    pub(crate) fn generation(&self) -> Option<u64> {
        self.generation
    }

    /// Executes a role request: a new master makes the old one a slave. Returns the resulting role.
    ///
    /// # Errors
    /// Another connection has the short id, or the generation id is older than the newest known.
    pub(crate) fn take_role(
        &mut self,
        id: ConnectionId,
        request: RoleRequest,
    ) -> Result<Role, Refusal> {
        if request.short_id.is_some_and(|wanted| self.has(wanted, id)) {
            return Err(Refusal::RoleIdInUse);
        }
        if let Some(named) = request.generation {
            // Serial number arithmetic: a value up to half the range behind is older.
            if self
                .generation
                .is_some_and(|newest| named.wrapping_sub(newest).cast_signed() < 0)
            {
                return Err(Refusal::RoleStale);
            }
            self.generation = Some(named);
        }
        if request.role == Some(Role::Master) {
            for peer in self
                .peers
                .values_mut()
                .filter(|peer| peer.role == Role::Master)
            {
                peer.role = Role::Slave;
            }
        }
        let peer = self.peers.get_mut(&id).ok_or(Refusal::RequestPermission)?;
        if let Some(role) = request.role {
            peer.role = role;
        }
        peer.short_id = request.short_id.or(peer.short_id);
        Ok(peer.role)
    }

    /// Returns whether a connection other than `but` has this short id.
    fn has(&self, short_id: ShortId, but: ConnectionId) -> bool {
        self.iter()
            .any(|(id, peer)| id != but && peer.short_id == Some(short_id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ConnectionId = ConnectionId(1);
    const B: ConnectionId = ConnectionId(2);

    fn pair() -> Connections {
        let mut peers = Connections::default();
        for id in [A, B] {
            peers.insert(id, Connection::new(ConnectionKind::Primary, Version::V13));
        }
        peers
    }

    fn wish(role: Role, generation: u64) -> RoleRequest {
        RoleRequest {
            role: Some(role),
            generation: Some(generation),
            ..RoleRequest::default()
        }
    }

    #[test]
    fn connections_have_at_most_one_master() {
        let mut peers = pair();
        assert_eq!(peers.take_role(A, wish(Role::Master, 1)), Ok(Role::Master));
        assert_eq!(peers.take_role(B, wish(Role::Master, 2)), Ok(Role::Master));
        let question = RoleRequest::default();
        assert_eq!(peers.take_role(A, question), Ok(Role::Slave));
        let slave = peers.find(A).expect("there");
        assert_eq!(slave.check_may_change(), Err(Refusal::RequestIsSlave));
        assert!(
            !slave.wants_packet_in(PacketInReason::Action)
                && slave.wants_port_status(PortReason::Add)
        );
    }

    #[test]
    fn role_request_with_older_generation_is_stale_across_the_wrap() {
        let mut peers = pair();
        assert_eq!(
            peers.take_role(A, wish(Role::Master, u64::MAX)),
            Ok(Role::Master)
        );
        // The value half the range behind is older, too (OF 1.3.5, 6.3.6).
        for older in [u64::MAX - 1, u64::MAX >> 1] {
            assert_eq!(
                peers.take_role(B, wish(Role::Slave, older)),
                Err(Refusal::RoleStale)
            );
        }
        assert_eq!(peers.take_role(B, wish(Role::Master, 3)), Ok(Role::Master));
        assert_eq!(
            peers.take_role(A, wish(Role::Slave, u64::MAX)),
            Err(Refusal::RoleStale)
        );
    }

    #[test]
    fn service_connection_receives_no_async_messages_before_it_configures_them() {
        let mut tool = Connection::new(ConnectionKind::Service, Version::V10);
        assert!(!tool.takes_misses() && !tool.wants_port_status(PortReason::Add));
        tool.listen();
        assert_eq!(tool.miss_send_len, 128);
        assert!(tool.takes_misses() && tool.wants_port_status(PortReason::Add));
        assert!(!Connection::new(ConnectionKind::Primary, Version::V13).takes_misses());
    }
}
