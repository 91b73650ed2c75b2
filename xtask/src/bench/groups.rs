//! The groups of benchmark rows: prefix, devices and title.

/// Rows that one program measures together and one table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BenchGroup {
    /// Lookup forms, without ports.
    Forms,
    /// Kinds of traffic, without ports.
    Traffic,
    /// Tables with rules that are hard to compile, without ports.
    Cliffs,
    /// The tracker of connections alone.
    Connections,
    /// The switch between ports in memory.
    Workers,
    /// Meters, fed from memory.
    Meters,
    /// The switch without traffic.
    Idle,
    /// A large configuration from a database.
    Startup,
    /// A chassis of OVN with a hundred thousand flows.
    OvnStart,
    /// Many chassis of OVN.
    OvnChassis,
    /// Bridges joined by patch ports.
    Crossing,
    /// A million rules.
    Table,
    /// Rule changes under traffic.
    Changes,
    /// Hosts on veth pairs.
    Veth,
    /// Hosts on TAP interfaces.
    Tap,
    /// Hosts on veth pairs, behind a stateful firewall or a load balancer.
    StatefulHosts,
    /// The data path between DPDK devices.
    Dpdk,
    /// The same with a million flows, which take Open vSwitch two minutes of warm-up each.
    Million,
    /// Connection tracking between DPDK devices.
    Conntrack,
    /// Rules of real controllers between DPDK devices.
    Real,
    /// The lab's traffic generator.
    Generator,
    /// The lab's instrument, compared with known impairments.
    Impaired,
}

impl BenchGroup {
    /// All groups, in the order of the tables.
    pub(super) const ALL: [Self; 22] = [
        Self::Dpdk,
        Self::Million,
        Self::Conntrack,
        Self::Real,
        Self::Forms,
        Self::Traffic,
        Self::Cliffs,
        Self::Connections,
        Self::Workers,
        Self::Meters,
        Self::Idle,
        Self::Startup,
        Self::OvnStart,
        Self::OvnChassis,
        Self::Crossing,
        Self::Table,
        Self::Changes,
        Self::Veth,
        Self::Tap,
        Self::StatefulHosts,
        Self::Generator,
        Self::Impaired,
    ];

    /// The prefix of the names of its rows.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Forms => "forms",
            Self::Traffic => "traffic",
            Self::Cliffs => "cliffs",
            Self::Connections => "connections",
            Self::Workers => "workers",
            Self::Meters => "meters",
            Self::Idle => "idle",
            Self::Startup => "startup",
            Self::OvnStart => "ovn-start",
            Self::OvnChassis => "ovn-chassis",
            Self::Crossing => "crossing",
            Self::Table => "table",
            Self::Changes => "changes",
            Self::Veth => "veth",
            Self::Tap => "tap",
            Self::StatefulHosts => "ct-hosts",
            Self::Dpdk => "dpdk",
            Self::Million => "million",
            Self::Conntrack => "ct",
            Self::Real => "real",
            Self::Generator => "generator",
            Self::Impaired => "impaired",
        }
    }

    /// True if its devices are those of DPDK.
    pub(super) const fn has_dpdk_devices(self) -> bool {
        matches!(
            self,
            Self::Dpdk | Self::Million | Self::Conntrack | Self::Real
        )
    }

    /// True if it starts the switch without DPDK.
    pub(super) const fn has_switch(self) -> bool {
        matches!(
            self,
            Self::Workers
                | Self::Meters
                | Self::Idle
                | Self::Startup
                | Self::OvnStart
                | Self::OvnChassis
                | Self::Crossing
        )
    }

    /// The title of its table.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Forms => "Cost of a packet by lookup form, without ports",
            Self::Traffic => "Cost of a packet by kind of traffic, with the same rules",
            Self::Cliffs => {
                "Cost of a packet by the same rules without and with others that are hard to compile"
            }
            Self::Connections => "The tracker of connections, without packets",
            Self::Workers => "Forwarding between ports in memory, with one worker and with two",
            Self::Meters => "Excess that meters let pass, fed from memory",
            Self::Idle => "Processor time without traffic",
            Self::Startup => "Start with a large configuration from a database",
            Self::OvnStart => "A chassis of OVN with 100,000 flows",
            Self::OvnChassis => {
                "Chassis of OVN on one machine, with dummies as ports: resources of each"
            }
            Self::Crossing => "Processor time of a packet through bridges joined by patch ports",
            Self::Table => "A million rules on twelve fields",
            Self::Changes => "Rule changes at half of the highest load",
            Self::Veth => "Hosts on veth pairs, one core for the device",
            Self::Tap => "Hosts on TAP interfaces, one core for the device",
            Self::StatefulHosts => {
                "Hosts on veth pairs behind a stateful firewall, one core for the device"
            }
            Self::Dpdk => {
                "Data path from net_pcap to net_null on one core, OVS-DPDK with its fastest cache setting"
            }
            Self::Million => "The same data path with a million flows",
            Self::Conntrack => "The same data path with a stateful firewall for UDP",
            Self::Real => "The same data path with rules that real controllers installed",
            Self::Generator => "The lab's traffic generator into an unread veth pair, on one core",
            Self::Impaired => "The lab's instrument, compared with a forwarder of known faults",
        }
    }
}
