//! Rules that real controllers installed, from `bench/recorded`, and traffic for their main paths.
//! Each directory there was written by the script of its controller.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use testkit::workload::Workload;

/// Recorded rules, and the hosts at ports 1 and 2 that talk through them.
pub(super) struct RecordedRules {
    /// Directory.
    pub(super) name: &'static str,
    hosts: [RecordedHost; 2],
}

/// A host in recorded rules.
struct RecordedHost {
    mac: &'static str,
    address: &'static str,
    /// MAC address to which it sends.
    next_hop: &'static str,
}

/// OVN: the first two ports of its first logical switch.
pub(super) const OVN_1000: RecordedRules = switched("ovn-1000");
pub(super) const OVN_100000: RecordedRules = switched("ovn-100000");

/// The integration bridge of Neutron's Open vSwitch agent: the first two ports of its first network.
pub(super) const NEUTRON: RecordedRules = switched("neutron/br-int");

/// Network policies as conjunctions: two pods.
pub(super) const POLICIES: RecordedRules = switched("policies");

/// Faucet: hosts of two VLANs, between which it routes.
pub(super) const FAUCET: RecordedRules = RecordedRules {
    name: "faucet",
    hosts: [
        RecordedHost {
            mac: "0a:00:00:00:00:01",
            address: "10.0.100.1",
            next_hop: "0e:00:00:00:01:01",
        },
        RecordedHost {
            mac: "0a:00:00:00:00:02",
            address: "10.0.200.1",
            next_hop: "0e:00:00:00:02:01",
        },
    ],
};

/// Rules in which the two hosts are in one network.
const fn switched(name: &'static str) -> RecordedRules {
    const MACS: [&str; 2] = ["0a:00:00:00:00:01", "0a:00:00:00:00:02"];
    RecordedRules {
        name,
        hosts: [
            RecordedHost {
                mac: MACS[0],
                address: "10.0.0.3",
                next_hop: MACS[1],
            },
            RecordedHost {
                mac: MACS[1],
                address: "10.0.0.4",
                next_hop: MACS[0],
            },
        ],
    }
}

/// First source port of a connection, and the number of ports that are used.
const FIRST_PORT: u32 = 1024;
const CLIENT_PORTS: u32 = 1000;

/// First destination port: the recorded access list refuses lower ones.
const SERVICE: u32 = 5000;

impl RecordedRules {
    /// The rules, and `connections` UDP connections from port 1 to port 2, at which replies arrive.
    pub(super) fn workload(&self, connections: u32) -> Workload {
        let [client, server] = &self.hosts;
        let ports = |number: u32| {
            [
                FIRST_PORT + number % CLIENT_PORTS,
                SERVICE + number / CLIENT_PORTS,
            ]
        };
        let frames = (0..connections).map(|number| datagram(client, server, ports(number)));
        let replies = (0..connections).map(|number| {
            let [source, target] = ports(number);
            datagram(server, client, [target, source])
        });
        Workload::of_two_ports(
            self.name,
            lines(&unpacked(self.name)),
            lines(&read(self.name, "groups.txt")),
            frames.collect(),
            replies.collect(),
        )
    }
}

/// A datagram in the text syntax of frames.
fn datagram(from: &RecordedHost, to: &RecordedHost, [source, target]: [u32; 2]) -> String {
    format!(
        "eth(src={},dst={}) / ipv4(src={},dst={}) / udp(src={source},dst={target}) / data(18)",
        from.mac, from.next_hop, from.address, to.address
    )
}

fn directory(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("recorded")
        .join(name)
}

/// Reads a file of the repository.
fn read(name: &str, file: &str) -> String {
    let path = directory(name).join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads the compressed flows of the repository.
fn unpacked(name: &str) -> String {
    let path = directory(name).join("flows.txt.gz");
    let mut text = String::new();
    File::open(&path)
        .and_then(|file| GzDecoder::new(file).read_to_string(&mut text))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use base::PortNo;
    use flow::FlowModCommand;
    use testkit::oracle::{OracleBench, OracleEvent, ReceivedFrame};
    use testkit::workload::InterpreterRunner;

    use super::*;

    /// The rules of each controller, in the smaller size.
    const SMALLER: [RecordedRules; 4] = [OVN_1000, NEUTRON, POLICIES, FAUCET];

    #[test]
    fn connections_have_distinct_ports() {
        let workload = OVN_1000.workload(3000);
        let mut frames = workload.frames();
        frames.sort();
        frames.dedup();
        assert_eq!((frames.len(), workload.replies().len()), (3000, 3000));
        assert!(workload.flows() > 900, "{} flows", workload.flows());
    }

    /// Packets of the connections hit the walk cache, and leave as the interpreter lets them leave.
    #[test]
    fn walks_of_recorded_rules_agree_with_interpreter() {
        const CONNECTIONS: u32 = 12;
        // Each connection has walks of its own where a table has too many rules to examine, and a
        // batch records few of them.
        const RUNS: u32 = 24;
        for rules in SMALLER {
            let mut bench = OracleBench::with_walk_cache();
            for line in lines(&unpacked(rules.name)) {
                bench.change(&OracleEvent::Flow(FlowModCommand::Add, line));
            }
            let [client, server] = &rules.hosts;
            let directions = [(1, client, server), (2, server, client)].map(|(port, from, to)| {
                let frames = (0..CONNECTIONS).map(|number| {
                    let ports = [FIRST_PORT + number, SERVICE];
                    let ports = if port == 1 {
                        ports
                    } else {
                        [ports[1], ports[0]]
                    };
                    ReceivedFrame::plain(datagram(from, to, ports).leak())
                });
                (PortNo(port), frames.collect::<Vec<_>>())
            });
            for _ in 0..RUNS {
                for (port, frames) in &directions {
                    bench.run(*port, frames);
                }
            }
            let (hits, packets) = (bench.runner_mut().walk_cache_hits(), 2 * CONNECTIONS * RUNS);
            let name = rules.name;
            assert!(2 * hits > packets.into(), "{name}: {hits} of {packets} hit");
        }
    }

    #[test]
    fn recorded_rules_forward_the_traffic() {
        for rules in SMALLER {
            let loaded = rules.workload(2).load();
            let mut runner = InterpreterRunner::new();
            for frame in &loaded.frames {
                let verdict = runner.run(&loaded.pipeline, frame);
                assert_eq!(verdict.frames.len(), 1, "{}: {verdict:?}", rules.name);
            }
        }
    }
}
