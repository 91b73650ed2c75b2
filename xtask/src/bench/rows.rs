//! The benchmark rows: name, subject, unit and target of each.

use super::TaskError;
use super::groups::BenchGroup;

/// The target of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RowTarget {
    /// The figure that is compared.
    pub(super) value: TargetFigure,
    pub(super) limit: TargetBound,
}

/// A figure of a row, computed from its samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TargetFigure {
    /// Median of a column.
    Median(&'static str),
    /// Median of the ratios of two columns, run by run.
    Ratio(&'static str, &'static str),
}

/// The bound of a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TargetBound {
    AtMost(f64),
    AtLeast(f64),
}

/// A benchmark row.
#[derive(Debug)]
pub(super) struct BenchRow {
    pub(super) group: BenchGroup,
    /// Name within the group.
    pub(super) name: &'static str,
    /// Description of the measurement, in a few words.
    pub(super) about: &'static str,
    /// Unit of all columns that do not name their own.
    pub(super) unit: &'static str,
    pub(super) bars: &'static [RowTarget],
}

impl BenchRow {
    /// The name on the command line: group and row.
    pub(super) fn id(&self) -> String {
        format!("{}/{}", self.group.name(), self.name)
    }
}

/// The column of this project.
pub(super) const OURS: &str = "Comporta";

/// The column of this project with AF_XDP ports.
pub(super) const OURS_XDP: &str = "Comporta, AF_XDP";

/// The columns of peers.
pub(super) const OVS: &str = "Open vSwitch";
pub(super) const OVS_DPDK: &str = "OVS-DPDK";
pub(super) const OVS_TSO: &str = "Open vSwitch, TSO";
pub(super) const AFXDP: &str = "Open vSwitch, AF_XDP";
pub(super) const BRIDGE: &str = "Linux bridge";
pub(super) const NFTABLES: &str = "nftables";
pub(super) const FORWARDER: &str = "forwarder";
pub(super) const CABLE: &str = "bare link";

/// The column of instructions per packet.
pub(super) const INSTRUCTIONS: &str = "instructions";

/// The column of the slowest traffic's rate as a share of the fastest's.
pub(super) const EVENNESS: &str = "slowest / fastest";

const NS: &str = "ns/packet";
const US: &str = "µs";
const GBITS: &str = "Gbit/s";
const FPS: &str = "packets/s";
const OFF: &str = "% of the rate";
const SHARE: &str = "% of the frames";
const CONNECTIONS: &str = "connections/s";

/// All rows, by group.
#[rustfmt::skip]
const ROWS: &[BenchRow] = {
    use BenchGroup::{Changes, Cliffs, Connections, Conntrack, Crossing, Dpdk, Forms, Generator, Idle, Impaired, Meters, Million, OvnChassis, OvnStart, Real, StatefulHosts, Startup, Table, Tap, Traffic, Veth, Workers};
    const fn row(group: BenchGroup, name: &'static str, about: &'static str, unit: &'static str, bars: &'static [RowTarget]) -> BenchRow {
        BenchRow { group, name, about, unit, bars }
    }
    &[
        row(Dpdk,      "one-port",         "one rule on the ingress port", FPS, &[over_dpdk(1.2)]),
        row(Dpdk,      "macs-1000",        "1,000 MAC addresses", FPS, &[over_dpdk(1.3)]),
        row(Dpdk,      "flows-1000",       "1,000 exact-match flows", FPS, &[over_dpdk(1.3)]),
        row(Dpdk,      "flows-10000",      "10,000 exact-match flows", FPS, &[]),
        row(Dpdk,      "flows-100000",     "100,000 exact-match flows", FPS, &[over_dpdk(2.0)]),
        row(Dpdk,      "flows-100000-cold", "100,000 exact-match flows, first 10 s after the start", FPS, &[]),
        row(Dpdk,      "networks-1000",    "1,000 IPv4 prefixes", FPS, &[over_dpdk(1.3)]),
        row(Dpdk,      "networks-10000",   "10,000 IPv4 prefixes, 100,000 flows", FPS, &[over_dpdk(2.0)]),
        row(Dpdk,      "tables-repeated",  "10-table pipeline, 1,000 flows", FPS, &[over_dpdk(1.3)]),
        row(Dpdk,      "tables-random",    "10-table pipeline, 100,000 flows", FPS, &[over_dpdk(2.0)]),
        row(Dpdk,      "acl-10-random",    "access list of 10 rules, every packet a new flow", FPS, &[]),
        row(Dpdk,      "acl-1000-random",  "access list of 1,000 rules, every packet a new flow", FPS, &[over_dpdk(10.0)]),
        row(Dpdk,      "acl-10000-random", "access list of 10,000 rules, every packet a new flow", FPS, &[over_dpdk(10.0)]),
        row(Dpdk,      "acl-3-fitting",    "access list of 3 rules and a default, matching traffic", FPS, &[]),
        row(Dpdk,      "acl-3-random",     "access list of 3 rules, every packet a new flow", FPS, &[over_dpdk(10.0)]),
        row(Dpdk,      "acl-3-tenth",      "access list of 3 rules, tuple space explosion by one packet in ten", FPS, &[over_dpdk(100.0)]),
        row(Dpdk,      "acl-3-attack",     "access list of 3 rules, tuple space explosion", FPS, &[over_dpdk(100.0)]),
        row(Million,   "one-port",          "a million flows, one rule on the ingress port", FPS, &[]),
        row(Million,   "macs",              "a million flows, 1,000 MAC addresses", FPS, &[]),
        row(Million,   "flows",             "a million flows, 1,000 exact-match rules", FPS, &[]),
        row(Million,   "networks",          "a million flows, 10,000 IPv4 prefixes", FPS, &[]),
        row(Million,   "tables",            "a million flows, 10-table pipeline", FPS, &[]),
        row(Million,   "acl",               "a million flows, access list of 1,000 rules", FPS, &[]),
        row(Conntrack, "stateless-1000",   "1,000 connections, without tracking", FPS, &[]),
        row(Conntrack, "established-1000", "packets of 1,000 established connections", FPS, &[over_dpdk(3.0)]),
        row(Conntrack, "established-100000", "packets of 100,000 established connections", FPS, &[over_dpdk(3.0)]),
        row(Conntrack, "nat-1000",         "packets of 1,000 translated connections", FPS, &[over_dpdk(3.0)]),
        row(Conntrack, "new",              "every packet a new connection of UDP, first 10 s", FPS, &[over_dpdk(4.0)]),
        row(Conntrack, "new-tcp",          "TCP connections of eight packets, first 10 s", FPS, &[over_dpdk(4.0)]),
        row(Real,      "ovn-1000",         "1,000 rules of OVN, 1,000 connections", FPS, &[over_dpdk(1.3)]),
        row(Real,      "ovn-100000",       "100,000 rules of OVN, 1,000 connections", FPS, &[over_dpdk(1.3)]),
        row(Real,      "ovn-100000-many",  "100,000 rules of OVN, 100,000 connections", FPS, &[over_dpdk(2.0)]),
        row(Real,      "ovn-1000-new",     "1,000 rules of OVN, every packet a new connection", FPS, &[over_dpdk(10.0)]),
        row(Real,      "neutron",          "4,400 rules of Neutron's firewall, 1,000 connections", FPS, &[over_dpdk(1.3)]),
        row(Real,      "neutron-new",      "4,400 rules of Neutron's firewall, every packet a new connection", FPS, &[over_dpdk(10.0)]),
        row(Real,      "policies",         "52,000 rules of network policies, 1,000 connections", FPS, &[over_dpdk(2.0)]),
        row(Real,      "faucet",           "Faucet's routing and access list, 1,000 flows", FPS, &[over_dpdk(1.3)]),
        row(Forms,     "one-port",         "one rule on the ingress port", NS, &[]),
        row(Forms,     "one-tcp-port",     "one rule on a TCP port", NS, &[at_most(OURS, 15.0)]),
        row(Forms,     "twelve-fields",    "one rule on twelve fields", NS, &[]),
        row(Forms,     "macs-1000",        "1,000 MAC addresses", NS, &[at_most(OURS, 20.0)]),
        row(Forms,     "flows-1000",       "1,000 exact-match flows", NS, &[]),
        row(Forms,     "flows-100000",     "100,000 exact-match flows", NS, &[at_most(OURS, 40.0)]),
        row(Forms,     "networks-1000",    "1,000 IPv4 prefixes", NS, &[]),
        row(Forms,     "networks-10000",   "10,000 IPv4 prefixes", NS, &[at_most(OURS, 30.0)]),
        row(Forms,     "acl-1000",         "access list of 1,000 rules", NS, &[at_most(OURS, 80.0)]),
        row(Forms,     "acl-10000",        "access list of 10,000 rules", NS, &[]),
        row(Forms,     "tables-repeated",  "10-table pipeline, 1,000 flows", NS, &[at_most(OURS, 50.0)]),
        row(Forms,     "tables-random",    "10-table pipeline, every packet a new flow", NS, &[at_most(OURS, 120.0)]),
        row(Traffic,   "acl-3",            "access list of 3 rules and a default", NS, EVEN),
        row(Traffic,   "acl-10",           "access list of 10 rules", NS, EVEN),
        row(Traffic,   "acl-1000",         "access list of 1,000 rules", NS, EVEN),
        row(Traffic,   "acl-10000",        "access list of 10,000 rules", NS, EVEN),
        row(Cliffs,    "option",           "10,000 exact-match flows, and a rule on a tunnel option", NS, NO_CLIFF),
        row(Cliffs,    "gtpu",             "10,000 exact-match flows, and 100 rules on GTP-U", NS, NO_CLIFF),
        row(Cliffs,    "conjunctions",     "10,000 exact-match flows, and a clause of 20 conjunctions", NS, NO_CLIFF),
        row(Cliffs,    "priorities",       "one rule, and 1,000 of lower priority with the same match", NS, NO_CLIFF),
        row(Cliffs,    "rewritten",        "one rule, rewritten 1,000 times", NS, NO_CLIFF),
        row(Connections, "new",            "new connections, of one thread and of two", CONNECTIONS, &[at_least_times("two workers", 1.7, "one worker")]),
        row(Connections, "memory",         "memory of each of 4,000,000 connections that are held", "bytes", &[at_most(OURS, 160.0)]),
        row(Connections, "expiry",         "longest time of a packet while none, and while all of them expire", US, &[at_most("with", 1000.0)]),
        row(Connections, "syn-flood",      "packets of 1,000 established connections, without and with a SYN from a new address between any two", FPS, &[at_least_times("with", 0.5, "without")]),
        row(Workers,   "macs-1000",        "1,000 MAC addresses", FPS, TWICE),
        row(Workers,   "acl-1000",         "access list of 1,000 rules", FPS, TWICE),
        row(Workers,   "tables-random",    "10-table pipeline, every packet a new flow", FPS, TWICE),
        row(Workers,   "memory",           "memory of the second worker", "MiB", &[]),
        row(Meters,    "1-thousand",       "error of the worst of three seconds at 1,000 packets/s", OFF, METERS),
        row(Meters,    "10-thousand",      "error of the worst of three seconds at 10,000 packets/s", OFF, METERS),
        row(Meters,    "100-thousand",     "error of the worst of three seconds at 100,000 packets/s", OFF, METERS),
        row(Meters,    "1-million",        "error of the worst of three seconds at 1,000,000 packets/s", OFF, METERS),
        row(Idle,      "four-ports",       "processor time with four ports and no traffic", "% of a core", &[at_most(OURS, 1.0)]),
        row(Startup,   "ports-flows",      "from the start of the daemon until a packet hits the last of 100,000 rules, with 1,000 ports", "s", &[at_most(OURS, 5.0)]),
        row(Startup,   "ports",            "until the ports exist", "s", &[]),
        row(Startup,   "memory",           "memory after that", "MiB", &[]),
        row(Startup,   "bridges",          "100 bridges added in one transaction", "s", &[]),
        row(Startup,   "end",              "shutdown with all of that", "s", &[]),
        row(OvnStart,  "flows",            "flows of the chassis", "flows", &[]),
        row(OvnStart,  "first-packet",     "from the start of ovn-controller until a packet is forwarded", "s", &[at_most_times(OURS, 1.0, OVS)]),
        row(OvnStart,  "from-connection",  "from its connection to the switch until then", "s", &[]),
        row(OvnStart,  "installed",        "from its start until all flows are installed", "s", &[at_most_times(OURS, 1.0, OVS)]),
        row(OvnStart,  "processor",        "processor time of the switch until then", "s", &[]),
        row(OvnStart,  "controller-processor", "processor time of ovn-controller until then", "s", &[]),
        row(OvnStart,  "memory",           "memory of the switch after that", "MiB", &[]),
        row(OvnStart,  "acl-change",       "a rule of the access list added or removed, until it is installed", "s", &[]),
        row(OvnStart,  "acl-packets",      "packets sent while that is done 40 times", "packets", &[]),
        row(OvnStart,  "acl-lost",         "packets of them that are lost", "packets", &[at_most(OURS, 0.0)]),
        row(OvnStart,  "restart",          "from a restart of the switch until a packet is forwarded", "s", &[at_most_times(OURS, 1.0, OVS)]),
        row(OvnStart,  "restart-installed", "from a restart of the switch until all flows are installed", "s", &[]),
        row(OvnChassis, "flows",           "flows of a chassis", "flows", &[]),
        row(OvnChassis, "start",           "from the start of the first chassis until all have installed all flows", "s", &[]),
        row(OvnChassis, "start-switch",    "processor time of a switch until then", "ms", &[]),
        row(OvnChassis, "start-controller", "processor time of an ovn-controller until then", "ms", &[]),
        row(OvnChassis, "start-database",  "processor time of a chassis's database until then", "ms", &[]),
        row(OvnChassis, "start-south",     "processor time of the southbound database until then", "ms", &[]),
        row(OvnChassis, "start-north",     "processor time of the northbound database until then", "ms", &[]),
        row(OvnChassis, "start-northd",    "processor time of ovn-northd until then", "ms", &[]),
        row(OvnChassis, "memory-switch",   "memory of a switch", "MiB", &[]),
        row(OvnChassis, "memory-controller", "memory of an ovn-controller", "MiB", &[]),
        row(OvnChassis, "memory-database", "memory of a chassis's database", "MiB", &[]),
        row(OvnChassis, "memory-south",    "memory of the southbound database", "MiB", &[]),
        row(OvnChassis, "memory-north",    "memory of the northbound database", "MiB", &[]),
        row(OvnChassis, "memory-northd",   "memory of ovn-northd", "MiB", &[]),
        row(OvnChassis, "port",            "a logical port added, until all chassis have installed it", "ms", &[]),
        row(OvnChassis, "port-switch",     "processor time of a switch meanwhile", "ms", &[]),
        row(OvnChassis, "port-controller", "processor time of an ovn-controller meanwhile", "ms", &[]),
        row(OvnChassis, "port-database",   "processor time of a chassis's database meanwhile", "ms", &[]),
        row(OvnChassis, "port-south",      "processor time of the southbound database meanwhile", "ms", &[]),
        row(OvnChassis, "port-north",      "processor time of the northbound database meanwhile", "ms", &[]),
        row(OvnChassis, "port-northd",     "processor time of ovn-northd meanwhile", "ms", &[]),
        row(Crossing,  "one",              "one bridge: processor time of the switch", NS, &[]),
        row(Crossing,  "ten",              "ten bridges in a chain, one rule each", NS, &[at_most_times(OURS, 1.0, OVS)]),
        row(Table,     "memory",           "memory of a rule", "bytes", &[]),
        row(Table,     "added",            "rules added by one controller", "rules/s", &[]),
        row(Changes,   "effect",           "from a flow-mod to the first packet that it affects", US, &[at_most(OURS, 100.0)]),
        row(Changes,   "effect-p99",       "from a flow-mod to the first packet that it affects, 99th percentile", US, &[at_most(OURS, 1000.0)]),
        row(Changes,   "barrier",          "from a flow-mod to its barrier reply", US, &[]),
        row(Changes,   "late",             "packets sent after the barrier reply that hit the old rule", "packets", &[at_most(OURS, 0.0)]),
        row(Changes,   "loss-quiet",       "loss without changes", "ppm", &[]),
        row(Changes,   "loss-flow-mods",   "loss at 10,000 flow-mods/s", "ppm", &[at_most(OURS, 0.0)]),
        row(Changes,   "loss-dump",        "loss during a dump of a million rules", "ppm", &[at_most(OURS, 0.0)]),
        row(Changes,   "delay-quiet",      "99.9th percentile of delay without changes", US, &[]),
        row(Changes,   "delay-flow-mods",  "99.9th percentile of delay at 10,000 flow-mods/s", US, &[]),
        row(Changes,   "delay-dump",       "99.9th percentile of delay during a dump of a million rules", US, &[]),
        row(Veth,      "rate",             "64-byte frames at the highest offered load", FPS, RATE),
        row(Veth,      "overload",         "rate at the highest offered load, as a share of the best rate", "ratio", &[at_least(OURS, 0.95)]),
        row(Veth,      "echo",             "round trip of 64-byte frames, median", US, ECHO),
        row(Veth,      "echo-p99",         "round trip of 64-byte frames, 99th percentile", US, &[]),
        row(Veth,      "echo-p999",        "round trip of 64-byte frames, 99.9th percentile", US, &[]),
        row(Veth,      "tcp",              "one TCP stream", GBITS, TCP),
        row(Veth,      "tcp-again",        "TCP retransmissions of one stream", "segments", &[]),
        row(Veth,      "tcp-back",         "one TCP stream, reverse direction", GBITS, TCP),
        row(Veth,      "tcp-8",            "eight TCP streams", GBITS, TCP),
        row(Veth,      "tcp-8-back",       "eight TCP streams, reverse direction", GBITS, TCP),
        row(Veth,      "requests",         "TCP request-response with 1-byte payloads", "/s", &[]),
        row(Tap,       "rate",             "64-byte frames at the highest offered load", FPS, TAP_RATE),
        row(Tap,       "overload",         "rate at the highest offered load, as a share of the best rate", "ratio", &[at_least(OURS, 0.95)]),
        row(Tap,       "echo",             "round trip of 64-byte frames, median", US, TAP_ECHO),
        row(Tap,       "echo-p99",         "round trip of 64-byte frames, 99th percentile", US, &[]),
        row(Tap,       "echo-p999",        "round trip of 64-byte frames, 99.9th percentile", US, &[]),
        row(Tap,       "tcp",              "one TCP stream", GBITS, TAP_RATE),
        row(Tap,       "tcp-again",        "TCP retransmissions of one stream", "segments", &[]),
        row(Tap,       "requests",         "TCP request-response with 1-byte payloads", "/s", &[]),
        row(StatefulHosts, "http-firewall", "HTTP requests of nginx and wrk, a connection for each", CONNECTIONS, &[]),
        row(StatefulHosts, "http-balancer", "the same, through a load balancer with two members", CONNECTIONS, &[]),
        row(StatefulHosts, "http-10000",    "10,000 of these connections through the firewall", "s", &[]),
        row(StatefulHosts, "tcp",           "one TCP stream of iperf3", GBITS, &[]),
        row(StatefulHosts, "new-tcp",       "connections of TCP, seven frames each", CONNECTIONS, &[]),
        row(StatefulHosts, "new-udp",       "connections of UDP, two frames each", CONNECTIONS, &[]),
        row(StatefulHosts, "first-packet",  "delay of the first packet of a connection, median", US, &[]),
        row(Generator, "veth-64",          "64-byte frames at full speed", FPS, SENT),
        row(Generator, "veth-1518",        "1518-byte frames at full speed", FPS, SENT),
        row(Generator, "rate-1k",          "rate error at the far end, 1,000 packets/s", OFF, EXACT),
        row(Generator, "rate-10k",         "rate error at the far end, 10,000 packets/s", OFF, EXACT),
        row(Generator, "rate-100k",        "rate error at the far end, 100,000 packets/s", OFF, EXACT),
        row(Generator, "rate-500k",        "rate error at the far end, 500,000 packets/s", OFF, EXACT),
        row(Generator, "rate-1m",          "rate error at the far end, 1,000,000 packets/s", OFF, EXACT),
        row(Generator, "rate-limit",       "rate error at the far end, at 90 % of the limit", OFF, EXACT),
        row(Generator, "limit",            "highest rate that one thread sends and receives without loss", FPS, &[]),
        row(Impaired,  "delay-0",          "no delay: the forwarder alone", US, &[at_most("off", 20.0)]),
        row(Impaired,  "delay-100",        "delay of 100 µs, median", US, &[at_most("off", 25.0)]),
        row(Impaired,  "delay-300",        "delay of 300 µs, median", US, &[at_most("off", 35.0)]),
        row(Impaired,  "delay-1000",       "delay of 1 ms, median", US, &[at_most("off", 70.0)]),
        row(Impaired,  "delay-5000",       "delay of 5 ms, median", US, &[at_most("off", 270.0)]),
        row(Impaired,  "jitter-200",       "random delay up to 200 µs: the width that holds 98 % of the delays", US, &[at_most("off", 30.0)]),
        row(Impaired,  "loss-tenth",       "loss of 0.1 %", SHARE, SHARES),
        row(Impaired,  "loss-1",           "loss of 1 %", SHARE, SHARES),
        row(Impaired,  "loss-5",           "loss of 5 %", SHARE, SHARES),
        row(Impaired,  "copies-1",         "1 % duplicated", SHARE, SHARES),
        row(Impaired,  "reordering-1",     "1 % delayed by 0.5 ms and overtaken", SHARE, COUNTED),
    ]
};

/// A generator that signs each packet is at least as fast as those that only send.
const SENT: &[RowTarget] = &[
    at_least_times(OURS, 1.0, "sendmmsg"),
    at_least_times(OURS, 1.0, "testpmd"),
];

/// A measurement whose rate is off by 0.1 % is void.
const EXACT: &[RowTarget] = &[at_most(OURS, 0.1)];

/// No packet is miscounted, and the share over all runs is within the 99 % interval of a binomial
/// count.
const SHARES: &[RowTarget] = &[
    at_most("miscounted in all", 0.0),
    at_most("off in all, σ", 2.576),
];
const COUNTED: &[RowTarget] = &[at_most("miscounted in all", 0.0)];

/// Target relative to Open vSwitch with the same DPDK devices.
const fn over_dpdk(times: f64) -> RowTarget {
    at_least_times(OURS, times, OVS_DPDK)
}

/// Two workers forward at least 1.8 times as much as one.
const TWICE: &[RowTarget] = &[at_least_times("two workers", 1.8, "one worker")];

/// Largest error of a meter by packets, by bits, and with DSCP remarking.
const METERS: &[RowTarget] = &[
    at_most("packets", 3.0),
    at_most("bits", 3.0),
    at_most("remarked", 3.0),
];

/// The forwarder has the cost of the ports alone; the rest is the switch's.
const RATE: &[RowTarget] = &[
    at_least_times(OURS, 0.9, FORWARDER),
    at_least_times(OURS, 2.5, OVS),
    at_least_times(OURS_XDP, 1.0, AFXDP),
];

/// Targets of round trips.
const ECHO: &[RowTarget] = &[
    at_most_times(OURS, 1.15, FORWARDER),
    at_most_times(OURS, 0.35, OVS),
    at_most_times(OURS_XDP, 1.0, AFXDP),
];

/// On TAP interfaces Comporta is at least as fast as Open vSwitch.
const TAP_RATE: &[RowTarget] = &[at_least_times(OURS, 1.0, OVS)];
const TAP_ECHO: &[RowTarget] = &[at_most_times(OURS, 1.0, OVS)];

/// Unsegmented TCP frames, as the kernel's bridge carries them.
const TCP: &[RowTarget] = &[
    at_least_times(OURS, 1.0, OVS_TSO),
    at_least_times(OURS, 0.7, BRIDGE),
];

/// The slowest kind of traffic has at least 60 % of the fastest one's rate.
const EVEN: &[RowTarget] = &[at_least(EVENNESS, 0.6)];

/// No rule makes the packets of others cost more than three times as much.
const NO_CLIFF: &[RowTarget] = &[at_most_times("with", 3.0, "without")];

const fn at_most(column: &'static str, most: f64) -> RowTarget {
    RowTarget {
        value: TargetFigure::Median(column),
        limit: TargetBound::AtMost(most),
    }
}

const fn at_least(column: &'static str, least: f64) -> RowTarget {
    RowTarget {
        value: TargetFigure::Median(column),
        limit: TargetBound::AtLeast(least),
    }
}

const fn at_least_times(column: &'static str, times: f64, other: &'static str) -> RowTarget {
    RowTarget {
        value: TargetFigure::Ratio(column, other),
        limit: TargetBound::AtLeast(times),
    }
}

const fn at_most_times(column: &'static str, times: f64, other: &'static str) -> RowTarget {
    RowTarget {
        value: TargetFigure::Ratio(column, other),
        limit: TargetBound::AtMost(times),
    }
}

/// Returns the rows whose names begin with one of `beginnings`, or all rows without any.
pub(super) fn chosen(beginnings: &[String]) -> Result<Vec<&'static BenchRow>, TaskError> {
    let begins = |row: &BenchRow, beginning: &String| row.id().starts_with(beginning.as_str());
    let nothing = |beginning: &&String| !ROWS.iter().any(|row| begins(row, beginning));
    if let Some(beginning) = beginnings.iter().find(nothing) {
        return Err(format!("no row begins with `{beginning}`; see --list").into());
    }
    let wanted = |row: &&BenchRow| {
        beginnings.is_empty() || beginnings.iter().any(|beginning| begins(row, beginning))
    };
    Ok(ROWS.iter().filter(wanted).collect())
}

/// True if `rows` contains every row of each group in it.
pub(super) fn are_whole_groups(rows: &[&BenchRow]) -> bool {
    let missing = |row: &BenchRow| {
        let of_group = rows.iter().any(|chosen| chosen.group == row.group);
        of_group && !rows.iter().any(|chosen| chosen.id() == row.id())
    };
    !ROWS.iter().any(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rows_are_chosen_by_prefix() {
        let count = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            chosen(&words).map(|rows| rows.len()).ok()
        };
        assert_eq!(count(&[]), Some(ROWS.len()));
        assert_eq!(count(&["forms/tables-"]), Some(2));
        assert_eq!(count(&["forms/tables-", "traffic/acl-3"]), Some(3));
        assert_eq!(count(&["forms", "form/"]), None);
    }

    #[test]
    fn group_is_whole_if_no_row_is_missing() {
        let whole = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            chosen(&words).is_ok_and(|rows| are_whole_groups(&rows))
        };
        assert!(whole(&[]) && whole(&["forms", "traffic/"]));
        assert!(!whole(&["forms", "traffic/acl-3"]));
    }

    #[test]
    fn row_names_are_unique() {
        let names: BTreeSet<String> = ROWS.iter().map(BenchRow::id).collect();
        assert_eq!(names.len(), ROWS.len());
    }
}
