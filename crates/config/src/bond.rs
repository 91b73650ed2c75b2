//! A port that is several interfaces: how they carry its frames together, and whether the other
//! end is spoken to about that (ovs-vswitchd.conf.db(5), the table `Port`, "Bonding
//! Configuration").

use std::time::Duration;

use base::PortNo;
use packet::MacAddr;

/// How a bond's frames are shared among its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BondMode {
    /// One member carries all of them.
    #[default]
    ActiveBackup,
    /// By source address and VLAN; the other end need not know.
    BalanceSlb,
    /// By addresses and ports; the other end speaks LACP.
    BalanceTcp,
}

impl BondMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::ActiveBackup, Self::BalanceSlb, Self::BalanceTcp];

    /// As the database has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ActiveBackup => "active-backup",
            Self::BalanceSlb => "balance-slb",
            Self::BalanceTcp => "balance-tcp",
        }
    }
}

/// What is asked of a bond.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BondConfig {
    /// How frames are shared.
    pub mode: BondMode,
    /// How long a carrier must have been there before its member is used.
    pub updelay: Duration,
    /// How long it must have been away before its member is given up.
    pub downdelay: Duration,
    /// How often frames are shared anew; never, if absent.
    pub rebalance_interval: Option<Duration>,
    /// What hashes begin with.
    pub hash_basis: u32,
    /// Who is active whenever it can be, by name; whether there is such a member is another matter.
    pub primary: Option<String>,
    /// The address of who was active when the switch ran last, if the database says.
    pub last_active: Option<MacAddr>,
    /// Whether every member takes frames to many, where the other end knows nothing of the bond.
    pub all_members_active: bool,
    /// How LACP is spoken, if it is.
    pub lacp: Option<LacpConfig>,
    /// Whether one member carries all while LACP has no partner.
    pub lacp_fallback: bool,
    /// Whether it is one interface, which speaks LACP and is a port like others.
    pub is_single_member: bool,
    /// Its members.
    pub members: Vec<BondMemberConfig>,
}

/// One of the interfaces of a bond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BondMemberConfig {
    /// Its number.
    pub port: PortNo,
    /// Its name.
    pub name: String,
    /// What it is in LACP.
    pub lacp: LacpMemberConfig,
}

/// Who begins to speak LACP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LacpActivity {
    /// This end.
    Active,
    /// The other one.
    Passive,
}

/// How LACP is spoken on a bond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LacpConfig {
    /// Who begins.
    pub activity: LacpActivity,
    /// Whether the partner is to send each second.
    pub is_fast: bool,
    /// Who this end is; the bridge, if nothing is said.
    pub system: Option<MacAddr>,
    /// Its priority.
    pub priority: u16,
}

/// What an interface is in LACP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LacpMemberConfig {
    /// Its number; that of the port, if nothing is said.
    pub number: Option<u16>,
    /// Its priority.
    pub priority: u16,
    /// Which ports it may be aggregated with; one key for the bond, if nothing is said.
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
