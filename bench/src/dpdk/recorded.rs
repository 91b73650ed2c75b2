//! Rules that real controllers installed, from `bench/recorded`, and traffic for their main paths.
//! Each directory there was written by the script of its controller.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use testkit::workload::Workload;

/// Hosts of ports 1 and 2 in the rules of OVN: the first two ports of its first logical switch.
const HOSTS: [(&str, &str); 2] = [
    ("0a:00:00:00:00:01", "10.0.0.3"),
    ("0a:00:00:00:00:02", "10.0.0.4"),
];

/// First source port of a connection, and the number of ports that are used.
const FIRST_PORT: u32 = 1024;
const CLIENT_PORTS: u32 = 1000;

/// First destination port: the recorded access list refuses lower ones.
const SERVICE: u32 = 5000;

/// The rules of OVN in the directory `name`, with `connections` UDP connections between ports 1 and
/// 2, whose replies arrive at port 2.
pub(super) fn ovn(name: &'static str, connections: u32) -> Workload {
    let [client, server] = HOSTS;
    let datagram = |from: (&str, &str), to: (&str, &str), ports: [u32; 2]| {
        format!(
            "eth(src={},dst={}) / ipv4(src={},dst={}) / udp(src={},dst={}) / data(18)",
            from.0, to.0, from.1, to.1, ports[0], ports[1]
        )
    };
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
        name,
        lines(&unpacked(name)),
        lines(&read(name, "groups.txt")),
        frames.collect(),
        replies.collect(),
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
    use super::*;

    #[test]
    fn connections_have_distinct_ports() {
        let workload = ovn("ovn-1000", 3000);
        let mut frames = workload.frames();
        frames.sort();
        frames.dedup();
        assert_eq!((frames.len(), workload.replies().len()), (3000, 3000));
        assert!(workload.flows() > 900, "{} flows", workload.flows());
    }
}
