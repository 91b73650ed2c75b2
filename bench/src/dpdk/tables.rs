//! The measured tables of both groups: name, frames, and the source of the frames.

use testkit::workload::{TrafficPattern, Workload};

use super::recorded::{FAUCET, NEUTRON, OVN_1000, OVN_100000, POLICIES};
use crate::forms::FRAMES;
use crate::stream::Field;

/// A table by name.
pub(super) struct TrafficTable {
    pub(super) name: &'static str,
    pub(super) workload: fn() -> Workload,
    pub(super) source: FrameSource,
    pub(super) start: StartState,
}

/// The state of a device when its measurement begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartState {
    /// The first packet arrives: caches are empty.
    Cold,
    /// The rate no longer changes.
    Steady,
}

/// The source of frames.
#[derive(Clone, Copy, Debug)]
pub(super) enum FrameSource {
    /// A file that the device repeats.
    Repeated,
    /// A stream in which `fields` are random in each frame; it repeats after `cycle` frames, if
    /// given.
    Streamed {
        fields: &'static [Field],
        cycle: Option<u64>,
    },
    /// A stream of sessions. The frames of the workload are one of them, in order; each has other
    /// `fields` of its sender.
    Sessions { fields: &'static [Field] },
}

/// The limit of connections of all devices: more than any makes during a cold measurement.
pub(super) const CONNECTIONS_MAX: u32 = 30_000_000;

/// Each frame belongs to a new flow: all fields of the flow are random, or only the destination if
/// rules match the others.
const NEW: FrameSource = FrameSource::Streamed {
    fields: &Field::ALL,
    cycle: None,
};
const NEW_TARGETS: FrameSource = FrameSource::Streamed {
    fields: &[Field::Target],
    cycle: None,
};

/// A million flows that differ in fields that no rule matches.
const fn million(fields: &'static [Field]) -> FrameSource {
    FrameSource::Streamed {
        fields,
        cycle: Some(1_000_000),
    }
}

/// Frames of a trace in which hardly any flow repeats before the end.
const MANY: u64 = 100_000;

/// Frames of an attack trace that contains nearly all of the 8,192 combinations of bits: some 150
/// are missing.
const ATTACKS: u64 = 32_768;

impl TrafficTable {
    /// A table whose devices are measured when their rate is steady.
    const fn new(name: &'static str, workload: fn() -> Workload, source: FrameSource) -> Self {
        let start = StartState::Steady;
        Self {
            name,
            workload,
            source,
            start,
        }
    }

    /// The same, measured from the first packet.
    const fn cold(self) -> Self {
        let start = StartState::Cold;
        Self { start, ..self }
    }
}

fn routed(traffic: TrafficPattern, frames: u64) -> Workload {
    Workload::routed("ten tables", traffic, frames)
}

fn listed(rules: u64, traffic: TrafficPattern, frames: u64) -> Workload {
    Workload::access_list_with_frames("a list", rules, traffic, frames)
}

fn networks(count: u64, frames: u64) -> Workload {
    Workload::networks_with_frames("networks", count, frames)
}

fn exact(count: u32) -> Workload {
    Workload::exact_with_step("flows of one shape", count, 1)
}

fn mac_addresses() -> Workload {
    Workload::mac_addresses("1,000 stations", 1000)
}

/// The tables of the group `dpdk`.
#[rustfmt::skip]
pub(super) const TABLES: [TrafficTable; 17] = {
    use FrameSource::Repeated;
    use TrafficPattern::{Attack, Fitting, Random};
    use TrafficTable as Table;
    fn three(traffic: TrafficPattern, frames: u64) -> Workload {
        Workload::three_rules_with_frames("a list of 3", traffic, frames)
    }
    [
        Table::new("one-port",         Workload::one_rule, Repeated),
        Table::new("macs-1000",        mac_addresses, Repeated),
        Table::new("flows-1000",       || exact(1000), Repeated),
        Table::new("flows-10000",      || exact(10_000), Repeated),
        Table::new("flows-100000",     || exact(100_000), Repeated),
        Table::new("flows-100000-cold", || exact(100_000), Repeated).cold(),
        Table::new("networks-1000",    || networks(1000, FRAMES), Repeated),
        Table::new("networks-10000",   || networks(10_000, MANY), Repeated),
        Table::new("tables-repeated",  || routed(Fitting, FRAMES), Repeated),
        Table::new("tables-random",    || routed(Random, MANY), Repeated),
        Table::new("acl-3-fitting",    || three(Fitting, MANY), Repeated),
        Table::new("acl-3-attack",     || three(Attack, ATTACKS), NEW_TARGETS),
        Table::new("acl-3-random",     || three(Random, FRAMES), NEW),
        Table::new("acl-3-tenth",      || three(Fitting, FRAMES).mixed_nine_to_one(three(Attack, ATTACKS)), NEW_TARGETS),
        Table::new("acl-10-random",    || listed(10, Random, FRAMES), NEW),
        Table::new("acl-1000-random",  || listed(1000, Random, FRAMES), NEW),
        Table::new("acl-10000-random", || listed(10_000, Random, FRAMES), NEW),
    ]
};

/// The tables of the group `ct`. New connections are measured from the first packet, with
/// [`CONNECTIONS_MAX`]: a full table refuses them, and makes none.
#[rustfmt::skip]
pub(super) const CT_TABLES: [TrafficTable; 6] = {
    use FrameSource::Repeated;
    const SESSIONS: FrameSource = FrameSource::Sessions {
        fields: &[Field::Source, Field::SourcePort],
    };
    use TrafficTable as Table;
    [
        Table::new("stateless-1000",     || Workload::stateless("no tracking", 1000), Repeated),
        Table::new("established-1000",   || Workload::stateful("a firewall", 1000), Repeated),
        Table::new("established-100000", || Workload::stateful("a firewall", 100_000), Repeated),
        Table::new("nat-1000",           || Workload::translated("a load balancer", 1000), Repeated),
        Table::new("new",                || Workload::stateful("a firewall", 1), NEW).cold(),
        Table::new("new-tcp",            || Workload::sessions("a firewall"), SESSIONS).cold(),
    ]
};

/// The tables of the group `real`.
#[rustfmt::skip]
pub(super) const REAL_TABLES: [TrafficTable; 8] = {
    use FrameSource::Repeated;
    use TrafficTable as Table;
    const NEW_CONNECTIONS: FrameSource = FrameSource::Streamed {
        fields: &[Field::SourcePort],
        cycle: None,
    };
    [
        Table::new("ovn-1000",        || OVN_1000.workload(1000), Repeated),
        Table::new("ovn-100000",      || OVN_100000.workload(1000), Repeated),
        Table::new("ovn-100000-many", || OVN_100000.workload(100_000), Repeated),
        Table::new("ovn-1000-new",    || OVN_1000.workload(1000), NEW_CONNECTIONS).cold(),
        Table::new("neutron",         || NEUTRON.workload(1000), Repeated),
        Table::new("neutron-new",     || NEUTRON.workload(1000), NEW_CONNECTIONS).cold(),
        Table::new("policies",        || POLICIES.workload(1000), Repeated),
        Table::new("faucet",          || FAUCET.workload(1000), Repeated),
    ]
};

/// The tables of the group `million`.
#[rustfmt::skip]
pub(super) const MILLION_TABLES: [TrafficTable; 6] = {
    use Field::{Source, SourcePort, Target};
    use TrafficPattern::{Fitting, Random};
    use TrafficTable as Table;
    [
        Table::new("one-port", Workload::one_rule, million(&Field::ALL)),
        Table::new("macs",     mac_addresses, million(&Field::ALL)),
        Table::new("flows",    || exact(1000), million(&[Target, SourcePort])),
        Table::new("networks", || networks(10_000, MANY), million(&[Source, SourcePort])),
        Table::new("tables",   || routed(Random, MANY), million(&[SourcePort])),
        Table::new("acl",      || listed(1000, Fitting, MANY), million(&[SourcePort])),
    ]
};

#[cfg(test)]
mod tests {
    use capture_file::pcap::PACKET_HEADER_LEN;

    use super::*;
    use crate::stream;

    #[test]
    fn streams_of_all_tables_can_be_randomized() {
        for TrafficTable {
            name,
            workload,
            source,
            ..
        } in TABLES.iter().chain(&MILLION_TABLES).chain(&REAL_TABLES)
        {
            if let FrameSource::Streamed { fields, cycle } = source {
                let source = stream::RandomStream::new(&workload().frames(), fields, *cycle);
                assert!(source.is_ok(), "{name}");
            }
        }
    }

    /// The protocol, addresses and ports of frames that have ports.
    fn flow(frame: &[u8]) -> Option<[u8; 15]> {
        frame[23..]
            .first_chunk()
            .filter(|flow| flow[0] != ICMP)
            .copied()
    }

    const ICMP: u8 = 1;

    /// Except for ICMP frames, which an access list may repeat with the same addresses.
    #[test]
    fn million_flows_are_distinct() {
        for TrafficTable {
            name,
            workload,
            source,
            ..
        } in MILLION_TABLES
        {
            if let FrameSource::Streamed {
                fields,
                cycle: Some(cycle),
            } = source
            {
                let mut source =
                    stream::RandomStream::new(&workload().frames(), fields, None).unwrap();
                let (mut flows, mut bytes) = (Vec::new(), Vec::new());
                for _ in 0..cycle {
                    bytes.clear();
                    source.fill(1, &mut bytes);
                    flows.extend(flow(&bytes[PACKET_HEADER_LEN..]));
                }
                let with_ports = flows.len();
                assert!(with_ports > 800_000, "{name}: {with_ports} with ports");
                flows.sort_unstable();
                flows.dedup();
                assert!(
                    flows.len() > with_ports / 1000 * 998,
                    "{name}: {}",
                    flows.len()
                );
            }
        }
    }
}
