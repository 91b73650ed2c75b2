//! The rows: what each is called and measures, in which unit, and what it should come to.

use super::Failure;

/// Rows that are measured together, and stand in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Frames by form of table, without ports.
    Forms,
    /// Frames by kind of traffic, without ports.
    Traffic,
    /// The switch itself, between ports in memory.
    Workers,
    /// Meters, fed from memory.
    Meters,
    /// The switch when nothing moves.
    Idle,
    /// A large configuration at once.
    Startup,
    /// Bridges joined by patch ports.
    Crossing,
    /// Flows in great number.
    Table,
    /// Rules that change while frames move.
    Changes,
    /// Hosts on veth pairs.
    Veth,
    /// Hosts on TAP interfaces.
    Tap,
    /// The data path between devices of DPDK.
    Dpdk,
    /// The lab's generator.
    Generator,
    /// The lab's instrument, held against what is known.
    Impaired,
}

impl Group {
    /// All, in the order of the tables.
    pub(super) const ALL: [Self; 14] = [
        Self::Dpdk,
        Self::Forms,
        Self::Traffic,
        Self::Workers,
        Self::Meters,
        Self::Idle,
        Self::Startup,
        Self::Crossing,
        Self::Table,
        Self::Changes,
        Self::Veth,
        Self::Tap,
        Self::Generator,
        Self::Impaired,
    ];

    /// How its rows' names begin.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Forms => "forms",
            Self::Traffic => "traffic",
            Self::Workers => "workers",
            Self::Meters => "meters",
            Self::Idle => "idle",
            Self::Startup => "startup",
            Self::Crossing => "crossing",
            Self::Table => "table",
            Self::Changes => "changes",
            Self::Veth => "veth",
            Self::Tap => "tap",
            Self::Dpdk => "dpdk",
            Self::Generator => "generator",
            Self::Impaired => "impaired",
        }
    }

    /// What its rows are about.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Forms => "A frame by the form of its table, without ports",
            Self::Traffic => "A frame by kind of traffic, rules being what they are",
            Self::Workers => "The switch between ports in memory, by one worker and by two",
            Self::Meters => "What meters let pass of more than they should, from memory",
            Self::Idle => "The switch when nothing moves",
            Self::Startup => "A large configuration at once, of a database",
            Self::Crossing => {
                "A frame across bridges that are joined by patch ports, between veth pairs"
            }
            Self::Table => "A million flows of twelve fields",
            Self::Changes => "Rules that change while half of what the device carries moves",
            Self::Veth => "Hosts on veth pairs, one core for the device",
            Self::Generator => {
                "The lab's generator into a veth pair that nobody reads, on one core"
            }
            Self::Impaired => {
                "The lab's instrument beside what a forwarder with known faults was told, and did"
            }
            Self::Tap => "Hosts on TAP interfaces, one core for the device",
            Self::Dpdk => {
                "The data path from net_pcap to net_null on one core, beside OVS-DPDK in its best cache \
                 setting and testpmd"
            }
        }
    }
}

/// What a row should come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bar {
    /// What is held against it.
    pub(super) value: Value,
    pub(super) limit: Limit,
}

/// A figure of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// The median of this column.
    Median(&'static str),
    /// The median of this column's samples divided by those of the other, run by run.
    Ratio(&'static str, &'static str),
}

/// Where it should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

/// A row.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) group: Group,
    /// Its name within the group.
    pub(super) name: &'static str,
    /// What it measures.
    pub(super) about: &'static str,
    /// What its values are, but for ratios and columns that say so themselves.
    pub(super) unit: &'static str,
    pub(super) bars: &'static [Bar],
}

impl Row {
    /// What it is asked for by.
    pub(super) fn id(&self) -> String {
        format!("{}/{}", self.group.name(), self.name)
    }
}

/// The column of this project.
pub(super) const OURS: &str = "Comporta";

/// The same by ports of AF_XDP.
pub(super) const OURS_XDP: &str = "Comporta, AF_XDP";

/// The columns of peers.
pub(super) const OVS: &str = "Open vSwitch";
pub(super) const OVS_DPDK: &str = "OVS-DPDK";
pub(super) const OVS_TSO: &str = "Open vSwitch, TSO";
pub(super) const AFXDP: &str = "Open vSwitch, AF_XDP";
pub(super) const BRIDGE: &str = "Linux bridge";
pub(super) const FORWARDER: &str = "forwarder";
pub(super) const CABLE: &str = "cable";

/// The column of instructions, beside nanoseconds.
pub(super) const INSTRUCTIONS: &str = "instructions";

/// The column of how even kinds of traffic are.
pub(super) const EVENNESS: &str = "slowest / fastest";

const NS: &str = "ns a frame";
const US: &str = "µs";
const GBITS: &str = "Gbit/s";
const FPS: &str = "frames a second";
const OFF: &str = "% of the rate";
const SHARE: &str = "% of the frames";

/// All rows, by group.
#[rustfmt::skip]
const ROWS: &[Row] = {
    use Group::{Changes, Crossing, Dpdk, Forms, Generator, Idle, Impaired, Meters, Startup, Table, Tap, Traffic, Veth, Workers};
    const fn row(group: Group, name: &'static str, about: &'static str, unit: &'static str, bars: &'static [Bar]) -> Row {
        Row { group, name, about, unit, bars }
    }
    &[
        row(Dpdk,    "one-port",        "one rule on the port of arrival",              FPS, &[over_dpdk(1.2)]),
        row(Dpdk,    "macs-1000",       "1,000 stations",                               FPS, &[over_dpdk(1.3)]),
        row(Dpdk,    "flows-1000",      "1,000 flows of one shape",                     FPS, &[over_dpdk(1.3)]),
        row(Dpdk,    "flows-10000",     "10,000 flows of one shape",                    FPS, &[]),
        row(Dpdk,    "flows-100000",    "100,000 flows of one shape",                   FPS, &[over_dpdk(2.0)]),
        row(Dpdk,    "networks-1000",   "1,000 networks of IPv4",                       FPS, &[over_dpdk(1.3)]),
        row(Dpdk,    "networks-10000",  "10,000 networks of IPv4, 100,000 flows",       FPS, &[over_dpdk(2.0)]),
        row(Dpdk,    "tables-repeated", "ten tables, 1,000 flows",                      FPS, &[over_dpdk(1.3)]),
        row(Dpdk,    "tables-random",   "ten tables, 100,000 flows",                    FPS, &[over_dpdk(2.0)]),
        row(Dpdk,    "acl-10-random",   "an access list of 10 rules, each frame of a new flow", FPS, &[]),
        row(Dpdk,    "acl-1000-random", "the same of 1,000 rules",                      FPS, &[over_dpdk(10.0)]),
        row(Dpdk,    "acl-10000-random", "the same of 10,000 rules",                    FPS, &[over_dpdk(10.0)]),
        row(Dpdk,    "acl-3-fitting",   "three rules and one for the rest, made for it", FPS, &[]),
        row(Dpdk,    "acl-3-random",    "the same, each frame of a new flow",           FPS, &[over_dpdk(10.0)]),
        row(Dpdk,    "acl-3-tenth",     "the same, one in ten against caches of masks", FPS, &[over_dpdk(100.0)]),
        row(Dpdk,    "acl-3-attack",    "the same, all of them",                        FPS, &[over_dpdk(100.0)]),
        row(Dpdk,    "million-one-port", "a million flows over one rule on the port of arrival", FPS, &[]),
        row(Dpdk,    "million-macs",    "the same over 1,000 stations",                 FPS, &[]),
        row(Dpdk,    "million-flows",   "the same over 1,000 flows of one shape",       FPS, &[]),
        row(Dpdk,    "million-networks", "the same over 10,000 networks of IPv4",       FPS, &[]),
        row(Dpdk,    "million-tables",  "the same over ten tables",                     FPS, &[]),
        row(Dpdk,    "million-acl",     "the same over an access list of 1,000 rules",  FPS, &[]),
        row(Forms,   "one-port",        "one rule on the port of arrival",              NS, &[]),
        row(Forms,   "one-tcp-port",    "one rule on a port of TCP",                    NS, &[at_most(OURS, 15.0)]),
        row(Forms,   "twelve-fields",   "one rule on twelve fields",                    NS, &[]),
        row(Forms,   "macs-1000",       "1,000 stations",                               NS, &[at_most(OURS, 20.0)]),
        row(Forms,   "flows-1000",      "1,000 flows of one shape",                     NS, &[]),
        row(Forms,   "flows-100000",    "100,000 flows of one shape",                   NS, &[at_most(OURS, 40.0)]),
        row(Forms,   "networks-1000",   "1,000 networks of IPv4",                       NS, &[]),
        row(Forms,   "networks-10000",  "10,000 networks of IPv4",                      NS, &[at_most(OURS, 30.0)]),
        row(Forms,   "acl-1000",        "an access list of 1,000 rules",                NS, &[at_most(OURS, 80.0)]),
        row(Forms,   "acl-10000",       "an access list of 10,000 rules",               NS, &[]),
        row(Forms,   "tables-repeated", "ten tables, 1,000 flows",                      NS, &[at_most(OURS, 50.0)]),
        row(Forms,   "tables-random",   "ten tables, each frame of another connection", NS, &[at_most(OURS, 120.0)]),
        row(Traffic, "acl-3",           "three rules and one for the rest",             NS, EVEN),
        row(Traffic, "acl-10",          "an access list of 10 rules",                   NS, EVEN),
        row(Traffic, "acl-1000",        "an access list of 1,000 rules",                NS, EVEN),
        row(Traffic, "acl-10000",       "an access list of 10,000 rules",               NS, EVEN),
        row(Workers, "macs-1000",       "1,000 stations",                               FPS, TWICE),
        row(Workers, "acl-1000",        "an access list of 1,000 rules",                FPS, TWICE),
        row(Workers, "tables-random",   "ten tables, each frame of another connection", FPS, TWICE),
        row(Workers, "memory",          "memory that the second worker takes",          "MiB", &[]),
        row(Meters,  "1-thousand",      "error of the worst of three seconds, 1,000 frames a second", OFF, METERS),
        row(Meters,  "10-thousand",     "the same, 10,000 frames a second",             OFF, METERS),
        row(Meters,  "100-thousand",    "the same, 100,000 frames a second",            OFF, METERS),
        row(Meters,  "1-million",       "the same, 1,000,000 frames a second",          OFF, METERS),
        row(Idle,    "four-ports",      "four ports, and nobody at the other ends",     "% of a core", &[at_most(OURS, 1.0)]),
        row(Startup, "ports-flows",     "from the start of the daemon until a frame takes the last of 100,000 flows at 1,000 ports", "s", &[at_most(OURS, 5.0)]),
        row(Startup, "ports",           "of that, until the ports are there",           "s", &[]),
        row(Startup, "memory",          "memory that it then has",                      "MiB", &[]),
        row(Startup, "bridges",         "100 bridges added by one transaction",         "s", &[]),
        row(Startup, "end",             "its end, with all that",                       "s", &[]),
        row(Crossing, "one",            "one bridge, processor time of the switch",     NS, &[]),
        row(Crossing, "ten",            "ten bridges, each with a rule",                NS, &[at_most_times(OURS, 1.0, OVS)]),
        row(Table,   "memory",          "memory for each",                              "bytes", &[]),
        row(Table,   "added",           "added by one controller",                      "flows a second", &[]),
        row(Changes, "effect",          "from a flow-mod until a frame comes by it",    US, &[at_most(OURS, 100.0)]),
        row(Changes, "effect-p99",      "the same, 99 in a hundred",                    US, &[at_most(OURS, 1000.0)]),
        row(Changes, "barrier",         "from a flow-mod until its barrier's reply",    US, &[]),
        row(Changes, "late",            "sent after such a reply, by the old rule",     "frames", &[at_most(OURS, 0.0)]),
        row(Changes, "loss-quiet",      "lost while nothing changes",                   "of a million", &[]),
        row(Changes, "loss-flow-mods",  "lost at 10,000 flow-mods a second",            "of a million", &[at_most(OURS, 0.0)]),
        row(Changes, "loss-dump",       "lost while a million flows are told",          "of a million", &[at_most(OURS, 0.0)]),
        row(Changes, "delay-quiet",     "slowest in a thousand, nothing changes",       US, &[]),
        row(Changes, "delay-flow-mods", "slowest in a thousand, 10,000 flow-mods a second", US, &[]),
        row(Changes, "delay-dump",      "slowest in a thousand, a million flows told",  US, &[]),
        row(Veth,    "rate",            "64-byte frames, as many as can be sent",       FPS, RATE),
        row(Veth,    "overload",        "the same beside the best at a set rate",       "ratio", &[at_least(OURS, 0.95)]),
        row(Veth,    "echo",            "round trip of 64-byte frames, median",         US, ECHO),
        row(Veth,    "echo-p99",        "the same, 99 in a hundred",                    US, &[]),
        row(Veth,    "echo-p999",       "the same, 999 in a thousand",                  US, &[]),
        row(Veth,    "tcp",             "one TCP stream",                               GBITS, TCP),
        row(Veth,    "tcp-again",       "its segments sent again",                      "segments", &[]),
        row(Veth,    "tcp-back",        "one TCP stream the other way",                 GBITS, TCP),
        row(Veth,    "tcp-8",           "eight TCP streams",                            GBITS, TCP),
        row(Veth,    "tcp-8-back",      "eight TCP streams the other way",              GBITS, TCP),
        row(Veth,    "requests",        "requests and replies of a byte by TCP",        "a second", &[]),
        row(Tap,     "rate",            "64-byte frames, as many as can be sent",       FPS, TAP_RATE),
        row(Tap,     "overload",        "the same beside the best at a set rate",       "ratio", &[at_least(OURS, 0.95)]),
        row(Tap,     "echo",            "round trip of 64-byte frames, median",         US, TAP_ECHO),
        row(Tap,     "echo-p99",        "the same, 99 in a hundred",                    US, &[]),
        row(Tap,     "echo-p999",       "the same, 999 in a thousand",                  US, &[]),
        row(Tap,     "tcp",             "one TCP stream",                               GBITS, TAP_RATE),
        row(Tap,     "tcp-again",       "its segments sent again",                      "segments", &[]),
        row(Tap,     "requests",        "requests and replies of a byte by TCP",        "a second", &[]),
        row(Generator, "veth-64",       "frames of 64 bytes, as many as it can",        FPS, SENT),
        row(Generator, "veth-1518",     "the same of 1518 bytes",                       FPS, SENT),
        row(Generator, "rate-1k",       "how far off a rate of 1,000 a second is at the far end", OFF, EXACT),
        row(Generator, "rate-10k",      "the same of 10,000",                           OFF, EXACT),
        row(Generator, "rate-100k",     "the same of 100,000",                          OFF, EXACT),
        row(Generator, "rate-500k",     "the same of 500,000",                          OFF, EXACT),
        row(Generator, "rate-1m",       "the same of a million",                        OFF, EXACT),
        row(Generator, "rate-limit",    "the same of nine tenths of the most that one thread sends and receives", OFF, EXACT),
        row(Generator, "limit",         "the most that one thread sends and receives without loss", FPS, &[]),
        row(Impaired, "delay-0",        "no delay: what the forwarder itself takes",    US, &[at_most("off", 20.0)]),
        row(Impaired, "delay-100",      "a delay of 100 µs, median",                    US, &[at_most("off", 25.0)]),
        row(Impaired, "delay-300",      "the same of 300 µs",                           US, &[at_most("off", 35.0)]),
        row(Impaired, "delay-1000",     "the same of 1 ms",                             US, &[at_most("off", 70.0)]),
        row(Impaired, "delay-5000",     "the same of 5 ms",                             US, &[at_most("off", 270.0)]),
        row(Impaired, "jitter-200",     "up to 200 µs more by chance: 98 in a hundred are so far apart", US, &[at_most("off", 30.0)]),
        row(Impaired, "loss-tenth",     "a loss of 0.1 %",                              SHARE, SHARES),
        row(Impaired, "loss-1",         "the same of 1 %",                              SHARE, SHARES),
        row(Impaired, "loss-5",         "the same of 5 %",                              SHARE, SHARES),
        row(Impaired, "copies-1",       "1 % sent twice",                               SHARE, SHARES),
        row(Impaired, "reordering-1",   "1 % held for half a millisecond more, and overtaken", SHARE, COUNTED),
    ]
};

/// A generator that stamps each frame sends no fewer than those that do nothing but send.
const SENT: &[Bar] = &[
    at_least_times(OURS, 1.0, "sendmmsg"),
    at_least_times(OURS, 1.0, "testpmd"),
];

/// A thousandth is what a measurement is refused for.
const EXACT: &[Bar] = &[at_most(OURS, 0.1)];

/// No frame is counted for another, and all runs together are off by no more than chance is in 99 of a
/// hundred.
const SHARES: &[Bar] = &[
    at_most("miscounted in all", 0.0),
    at_most("off in all, σ", 2.576),
];
const COUNTED: &[Bar] = &[at_most("miscounted in all", 0.0)];

/// Beside Open vSwitch between the same devices.
const fn over_dpdk(times: f64) -> Bar {
    at_least_times(OURS, times, OVS_DPDK)
}

/// What two workers should forward beside one.
const TWICE: &[Bar] = &[at_least_times("two workers", 1.8, "one worker")];

/// How near to its rate a meter keeps, by packets, by bits, and where it marks frames.
const METERS: &[Bar] = &[
    at_most("packets", 3.0),
    at_most("bits", 3.0),
    at_most("remarked", 3.0),
];

/// What the ports cost is the forwarder's; what the rest of the switch adds is ours.
const RATE: &[Bar] = &[
    at_least_times(OURS, 0.9, FORWARDER),
    at_least_times(OURS, 2.5, OVS),
    at_least_times(OURS_XDP, 1.0, AFXDP),
];

/// The same for round trips.
const ECHO: &[Bar] = &[
    at_most_times(OURS, 1.15, FORWARDER),
    at_most_times(OURS, 0.35, OVS),
    at_most_times(OURS_XDP, 1.0, AFXDP),
];

/// By TAP interfaces no Open vSwitch is to be ahead.
const TAP_RATE: &[Bar] = &[at_least_times(OURS, 1.0, OVS)];
const TAP_ECHO: &[Bar] = &[at_most_times(OURS, 1.0, OVS)];

/// Whole segments, as the kernel's own bridge carries them.
const TCP: &[Bar] = &[
    at_least_times(OURS, 1.0, OVS_TSO),
    at_least_times(OURS, 0.7, BRIDGE),
];

/// The slowest traffic's rate beside the fastest's.
const EVEN: &[Bar] = &[at_least(EVENNESS, 0.6)];

const fn at_most(column: &'static str, most: f64) -> Bar {
    Bar {
        value: Value::Median(column),
        limit: Limit::AtMost(most),
    }
}

const fn at_least(column: &'static str, least: f64) -> Bar {
    Bar {
        value: Value::Median(column),
        limit: Limit::AtLeast(least),
    }
}

const fn at_least_times(column: &'static str, times: f64, other: &'static str) -> Bar {
    Bar {
        value: Value::Ratio(column, other),
        limit: Limit::AtLeast(times),
    }
}

const fn at_most_times(column: &'static str, times: f64, other: &'static str) -> Bar {
    Bar {
        value: Value::Ratio(column, other),
        limit: Limit::AtMost(times),
    }
}

/// The rows whose names begin with one of `beginnings`; all, if there are none.
pub(super) fn chosen(beginnings: &[String]) -> Result<Vec<&'static Row>, Failure> {
    let begins = |row: &Row, beginning: &String| row.id().starts_with(beginning.as_str());
    let nothing = |beginning: &&String| !ROWS.iter().any(|row| begins(row, beginning));
    if let Some(beginning) = beginnings.iter().find(nothing) {
        return Err(format!("no row begins with `{beginning}`; `--list` names them").into());
    }
    let wanted = |row: &&Row| {
        beginnings.is_empty() || beginnings.iter().any(|beginning| begins(row, beginning))
    };
    Ok(ROWS.iter().filter(wanted).collect())
}

/// Whether these rows are all that their groups have.
pub(super) fn are_whole_groups(rows: &[&Row]) -> bool {
    let missing = |row: &Row| {
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
    fn rows_are_chosen_by_how_their_names_begin() {
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
    fn a_group_is_whole_when_no_row_is_missing() {
        let whole = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            chosen(&words).is_ok_and(|rows| are_whole_groups(&rows))
        };
        assert!(whole(&[]) && whole(&["forms", "traffic/"]));
        assert!(!whole(&["forms", "traffic/acl-3"]));
    }

    #[test]
    fn each_row_has_a_name_of_its_own() {
        let names: BTreeSet<String> = ROWS.iter().map(Row::id).collect();
        assert_eq!(names.len(), ROWS.len());
    }
}
