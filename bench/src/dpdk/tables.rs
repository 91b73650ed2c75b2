//! The measured tables: name, frames, and the source of the frames.

use testkit::workload::{TrafficPattern, Workload};

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
}

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

#[rustfmt::skip]
pub(super) const TABLES: [TrafficTable; 23] = {
    use FrameSource::Repeated;
    use Field::{Source, SourcePort, Target};
    use TrafficPattern::{Attack, Fitting, Random};
    const fn row(name: &'static str, workload: fn() -> Workload, source: FrameSource) -> TrafficTable {
        TrafficTable { name, workload, source, start: StartState::Steady }
    }
    const fn cold(row: TrafficTable) -> TrafficTable {
        TrafficTable { start: StartState::Cold, ..row }
    }
    fn three(traffic: TrafficPattern, frames: u64) -> Workload {
        Workload::three_rules_with_frames("a list of 3", traffic, frames)
    }
    fn listed(rules: u64, traffic: TrafficPattern, frames: u64) -> Workload {
        Workload::access_list_with_frames("a list", rules, traffic, frames)
    }
    fn routed(traffic: TrafficPattern, frames: u64) -> Workload {
        Workload::routed("ten tables", traffic, frames)
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
    [
        row("one-port",         Workload::one_rule, Repeated),
        row("macs-1000",        mac_addresses, Repeated),
        row("flows-1000",       || exact(1000), Repeated),
        row("flows-10000",      || exact(10_000), Repeated),
        row("flows-100000",     || exact(100_000), Repeated),
        cold(row("flows-100000-cold", || exact(100_000), Repeated)),
        row("networks-1000",    || networks(1000, FRAMES), Repeated),
        row("networks-10000",   || networks(10_000, MANY), Repeated),
        row("tables-repeated",  || routed(Fitting, FRAMES), Repeated),
        row("tables-random",    || routed(Random, MANY), Repeated),
        row("acl-3-fitting",    || three(Fitting, MANY), Repeated),
        row("acl-3-attack",     || three(Attack, ATTACKS), NEW_TARGETS),
        row("acl-3-random",     || three(Random, FRAMES), NEW),
        row("acl-3-tenth",      || three(Fitting, FRAMES).mixed_nine_to_one(three(Attack, ATTACKS)), NEW_TARGETS),
        row("acl-10-random",    || listed(10, Random, FRAMES), NEW),
        row("acl-1000-random",  || listed(1000, Random, FRAMES), NEW),
        row("acl-10000-random", || listed(10_000, Random, FRAMES), NEW),
        row("million-one-port", Workload::one_rule, million(&Field::ALL)),
        row("million-macs",     mac_addresses, million(&Field::ALL)),
        row("million-flows",    || exact(1000), million(&[Target, SourcePort])),
        row("million-networks", || networks(10_000, MANY), million(&[Source, SourcePort])),
        row("million-tables",   || routed(Random, MANY), million(&[SourcePort])),
        row("million-acl",      || listed(1000, Fitting, MANY), million(&[SourcePort])),
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
        } in TABLES
        {
            if let FrameSource::Streamed { fields, cycle } = source {
                let source = stream::RandomStream::new(&workload().frames(), fields, cycle);
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
        } in TABLES
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
