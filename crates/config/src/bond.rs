//! Bonds: ports with several interfaces, their balancing modes and LACP (ovs-vswitchd.conf.db(5),
//! the table `Port`, "Bonding Configuration").

use std::time::Duration;

use base::PortNo;
use packet::MacAddr;

/// The distribution of a bond's frames over its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BondMode {
    /// One member carries all frames.
    #[default]
    ActiveBackup,
    /// Distribution by source address and VLAN; the other end needs no knowledge of the bond.
    BalanceSlb,
    /// Distribution by addresses and transport ports; the other end uses LACP.
    BalanceTcp,
}

impl BondMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::ActiveBackup, Self::BalanceSlb, Self::BalanceTcp];

    /// Returns the name in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ActiveBackup => "active-backup",
            Self::BalanceSlb => "balance-slb",
            Self::BalanceTcp => "balance-tcp",
        }
    }
}

/// The configuration of a bond.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BondConfig {
    /// The balancing mode.
    pub mode: BondMode,
    /// Time that a carrier must be up before its member is enabled.
    pub updelay: Duration,
    /// Time that a carrier must be down before its member is disabled.
    pub downdelay: Duration,
    /// Interval between two rebalancings; `None` disables rebalancing.
    pub rebalance_interval: Option<Duration>,
    /// The seed of the hash.
    pub hash_basis: u32,
    /// The name of the preferred active member, which need not exist.
    pub primary: Option<String>,
    /// The address of the active member of the previous run, if the database records it.
    pub last_active: Option<MacAddr>,
    /// In balance-slb, every member accepts multicast and broadcast frames, not only the active
    /// one. The other end does not know of the bond in this mode.
    pub all_members_active: bool,
    /// The LACP configuration, if LACP is enabled.
    pub lacp: Option<LacpConfig>,
    /// One member carries all frames while LACP has no partner.
    pub lacp_fallback: bool,
    /// Outputs to the bond are shown as `lb_output` with the table of buckets of the datapath. The
    /// workers always select the member by this table.
    pub lb_output: bool,
    /// The port has a single interface, which uses LACP and is otherwise an ordinary port.
    pub is_single_member: bool,
    /// The members.
    pub members: Vec<BondMemberConfig>,
}

/// A member of a bond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BondMemberConfig {
    /// The port number.
    pub port: PortNo,
    /// The name of the interface.
    pub name: String,
    /// The LACP settings of the member.
    pub lacp: LacpMemberConfig,
}

/// The LACP mode of this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LacpActivity {
    /// This end starts the protocol.
    Active,
    /// This end waits for LACPDUs of the partner.
    Passive,
}

/// The LACP configuration of a bond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LacpConfig {
    /// The LACP mode.
    pub activity: LacpActivity,
    /// Requests LACPDUs every second from the partner.
    pub is_fast: bool,
    /// The system identifier; the address of the bridge if absent.
    pub system: Option<MacAddr>,
    /// The system priority.
    pub priority: u16,
}

/// The LACP settings of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LacpMemberConfig {
    /// The LACP port number; the OpenFlow port number if absent.
    pub number: Option<u16>,
    /// The port priority.
    pub priority: u16,
    /// The aggregation key; one key for the whole bond if absent.
    pub key: Option<u16>,
}

impl Default for LacpMemberConfig {
    fn default() -> Self {
        Self {
            number: None,
            priority: u16::MAX,
            key: None,
        }
    }
}
