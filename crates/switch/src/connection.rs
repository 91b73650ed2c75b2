//! What a bridge knows of one peer: what it is, its role, and what it wants to
//! be told unasked. Roles among all peers of a bridge are settled here too.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Xid;
use flow::{
    FlowRemovedReason, PacketInReason, PortReason, Refusal, Role, RoleRequest, ShortId, TableReason,
};
use openflow::{
    AsyncConfig, ControllerReason, ForwardedRequest, MultipartRequest, RoleReason, Version,
};

use super::bundles::Bundles;
use super::monitors::Monitors;
use config::PacketRate;
use dataplane::policer::Policer;

/// Names one connection for as long as the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// What a peer is to a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A controller that the bridge went to. While there is one, the bridge is under control.
    Primary,
    /// A tool, or a controller that came by itself. It is told nothing unasked until
    /// it sets a miss_send_len, as with Open vSwitch, and the fail mode ignores it.
    Service,
    /// Another connection to a controller that the bridge went to. What is asked by it,
    /// the controller asks; of what it is told unasked, frames come this way.
    Auxiliary(Auxiliary),
}

/// Which auxiliary connection it is (OF 1.3.5, 6.3; OF 1.5.1, 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auxiliary {
    /// The controller's main connection.
    pub main: ConnectionId,
    /// Its number among those of the controller, from one.
    pub number: u8,
}

impl Kind {
    /// Which auxiliary connection it is; none if it is a main one.
    #[must_use]
    pub const fn auxiliary(self) -> Option<Auxiliary> {
        match self {
            Self::Auxiliary(auxiliary) => Some(auxiliary),
            Self::Primary | Self::Service => None,
        }
    }
}

/// Bytes of a missed frame that a service connection wants before it says so.
const MISS_SEND_LEN_SERVICE: u16 = 0;

/// Bytes of a missed frame that a controller wants before it says so (OF 1.3.5, 7.3.2).
const MISS_SEND_LEN_PRIMARY: u16 = 128;

/// One peer.
#[derive(Clone, Debug)]
pub struct Connection {
    /// What it is to the bridge.
    pub kind: Kind,
    /// Where it is met, if the bridge was told to go there (OF 1.5.1, 6.3.1).
    pub uri: Option<Arc<str>>,
    /// What it speaks.
    pub version: Version,
    /// Its role.
    pub role: Role,
    /// The number by which it is known to the others, if it asked for one (1.5).
    pub(crate) short_id: Option<ShortId>,
    /// Bytes of a missed frame that it wants.
    pub(crate) miss_send_len: u16,
    /// What it wants to be told.
    pub wants: AsyncConfig,
    /// How many frames it is sent.
    pub policer: Arc<Policer>,
    /// The rate of that, if it has one of its own.
    pub rate_limit: Option<PacketRate>,
    /// The id that it gave itself: frames that rules send to this id come to it, and
    /// no others (`NXT_SET_CONTROLLER_ID`).
    pub controller: u16,
    /// What it collects to be done together.
    pub(crate) bundles: Bundles,
    /// What it watches.
    pub(crate) monitors: Monitors,
    /// Questions of which a part has come.
    pub(crate) fragments: BTreeMap<Xid, MultipartRequest>,
}

impl Connection {
    /// A peer that has said hello and nothing else.
    #[must_use]
    pub fn new(kind: Kind, version: Version) -> Self {
        Self {
            kind,
            uri: None,
            version,
            role: Role::Equal,
            short_id: None,
            miss_send_len: match kind {
                Kind::Primary => MISS_SEND_LEN_PRIMARY,
                Kind::Service | Kind::Auxiliary(_) => MISS_SEND_LEN_SERVICE,
            },
            wants: AsyncConfig::initial(version),
            policer: Policer::new(None),
            rate_limit: None,
            controller: 0,
            bundles: Bundles::default(),
            monitors: Monitors::default(),
            fragments: BTreeMap::new(),
        }
    }

    /// Whether it may change anything (OF 1.3.5, 6.3).
    ///
    /// # Errors
    /// It is a slave.
    pub(crate) fn check_may_change(&self) -> Result<(), Refusal> {
        match self.role {
            Role::Equal | Role::Master => Ok(()),
            Role::Slave => Err(Refusal::RequestIsSlave),
        }
    }

    /// Whether frames that match nothing go to it by themselves: before OpenFlow
    /// 1.3 they do, later they go where a table-miss rule says (OF 1.3.5, 5.4).
    #[must_use]
    pub(crate) fn takes_misses(&self) -> bool {
        self.version < Version::V13
            && self.controller == 0
            && self.wants_packet_in(PacketInReason::NoMatch)
    }

    /// Whether it is told of a frame for this reason.
    #[must_use]
    pub(crate) fn wants_packet_in(&self, reason: PacketInReason) -> bool {
        self.listens() && self.masks().wants_packet_in(reason, self.version)
    }

    /// Whether it is told that something happened to a port.
    #[must_use]
    pub(crate) fn wants_port_status(&self, reason: PortReason) -> bool {
        self.listens() && self.masks().wants_port_status(reason)
    }

    /// Whether it is told that a rule is gone.
    #[must_use]
    pub(crate) fn wants_flow_removed(&self, reason: FlowRemovedReason) -> bool {
        self.listens() && self.masks().wants_flow_removed(reason, self.version)
    }

    /// Whether it is told that a table runs full, or does so no longer.
    #[must_use]
    pub(crate) fn wants_table_status(&self, reason: TableReason) -> bool {
        self.listens() && self.masks().wants_table_status(reason)
    }

    /// Whether it is told how other controllers are.
    #[must_use]
    pub(crate) fn wants_controller_status(&self, reason: ControllerReason) -> bool {
        let has_words = self.version >= Version::V15;
        has_words && self.listens() && self.masks().wants_controller_status(reason)
    }

    /// Whether it is told what another controller asked. Before 1.3 there are no meters.
    #[must_use]
    pub(crate) fn wants_request(&self, request: &ForwardedRequest) -> bool {
        let has_words = match request {
            ForwardedRequest::GroupMod(_) => true,
            ForwardedRequest::MeterMod(_) => self.version >= Version::V13,
        };
        has_words && self.listens() && self.masks().wants_request(request)
    }

    /// Whether it is told that another has become master in its place: what it wanted to
    /// be told as the master that it was counts (OF 1.4.1, 7.4.4).
    #[must_use]
    pub(crate) fn wants_role_lost(&self) -> bool {
        let wanted = self
            .wants
            .active
            .wants_role_status(RoleReason::MasterRequest);
        self.version >= Version::V14 && wanted
    }

    /// Which auxiliary connection it is; none if it is a main one.
    #[must_use]
    pub const fn auxiliary(&self) -> Option<Auxiliary> {
        self.kind.auxiliary()
    }

    fn listens(&self) -> bool {
        self.kind == Kind::Primary || self.miss_send_len != 0
    }

    fn masks(&self) -> openflow::AsyncMasks {
        match self.role {
            Role::Equal | Role::Master => self.wants.active,
            Role::Slave => self.wants.slave,
        }
    }
}

/// All peers of a bridge.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections {
    peers: BTreeMap<ConnectionId, Connection>,
    /// The newest election that a master or slave named (OF 1.3.5, 6.3).
    generation: Option<u64>,
}

impl Connections {
    /// Adds a peer.
    pub(crate) fn insert(&mut self, id: ConnectionId, connection: Connection) {
        self.peers.insert(id, connection);
    }

    /// Takes a peer out. Tells whether it was there.
    pub(crate) fn remove(&mut self, id: ConnectionId) -> bool {
        self.peers.remove(&id).is_some()
    }

    /// A peer.
    pub(crate) fn find(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.peers.get_mut(&id)
    }

    /// The main connection of the controller that this one leads to: itself, or that of
    /// which it is an auxiliary. All of a controller's connections have one role, and
    /// what is set by one of them holds for all.
    #[must_use]
    pub(crate) fn main_of(&self, id: ConnectionId) -> ConnectionId {
        let auxiliary = self.peers.get(&id).and_then(Connection::auxiliary);
        auxiliary.map_or(id, |auxiliary| auxiliary.main)
    }

    /// By which connection a frame of a flow with this hash goes to a controller: always
    /// the same of the auxiliary ones, and without any the main one
    /// (OF 1.3.5, 6.3).
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

    /// Whether any controller has more than one connection.
    #[must_use]
    pub(crate) fn any_auxiliary(&self) -> bool {
        self.peers.values().any(|peer| peer.auxiliary().is_some())
    }

    /// All peers, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.peers.iter().map(|(id, connection)| (*id, connection))
    }

    /// Whether a controller that the bridge went to is there.
    #[must_use]
    pub(crate) fn any_primary(&self) -> bool {
        self.peers.values().any(|peer| peer.kind == Kind::Primary)
    }

    /// Whether any peer takes frames that match nothing.
    #[must_use]
    pub(crate) fn any_takes_misses(&self) -> bool {
        self.peers.values().any(Connection::takes_misses)
    }

    /// The master, if there is one.
    #[must_use]
    pub(crate) fn master(&self) -> Option<ConnectionId> {
        let mut peers = self.iter();
        let master = peers.find(|(_, peer)| peer.role == Role::Master);
        master.map(|(id, _)| id)
    }

    /// The newest election known.
    #[must_use]
    pub(crate) fn generation(&self) -> Option<u64> {
        self.generation
    }

    /// Gives a peer the role and the short id it asks for; a new master makes the old one
    /// a slave. Returns the role it then has.
    ///
    /// # Errors
    /// Another peer has the short id, or the election it names is older than the newest
    /// known.
    pub(crate) fn take_role(
        &mut self,
        id: ConnectionId,
        request: RoleRequest,
    ) -> Result<Role, Refusal> {
        if request.short_id.is_some_and(|wanted| self.has(wanted, id)) {
            return Err(Refusal::RoleIdInUse);
        }
        if let Some(named) = request.generation {
            // A serial number: what is less than half a turn behind is older.
            if self
                .generation
                .is_some_and(|newest| newest.wrapping_sub(named).cast_signed() > 0)
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

    /// Whether a peer other than `but` has this short id.
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
            peers.insert(id, Connection::new(Kind::Primary, Version::V13));
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
    fn there_is_one_master_at_most() {
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
    fn an_older_election_is_stale_also_across_the_wrap() {
        let mut peers = pair();
        assert_eq!(
            peers.take_role(A, wish(Role::Master, u64::MAX)),
            Ok(Role::Master)
        );
        assert_eq!(
            peers.take_role(B, wish(Role::Slave, u64::MAX - 1)),
            Err(Refusal::RoleStale)
        );
        assert_eq!(peers.take_role(B, wish(Role::Master, 3)), Ok(Role::Master));
        assert_eq!(
            peers.take_role(A, wish(Role::Slave, u64::MAX)),
            Err(Refusal::RoleStale)
        );
    }

    #[test]
    fn a_service_is_told_nothing_until_it_sets_a_miss_send_len() {
        let mut tool = Connection::new(Kind::Service, Version::V10);
        assert!(!tool.takes_misses() && !tool.wants_port_status(PortReason::Add));
        tool.miss_send_len = 128;
        assert!(tool.takes_misses() && tool.wants_port_status(PortReason::Add));
        assert!(!Connection::new(Kind::Primary, Version::V13).takes_misses());
    }
}
