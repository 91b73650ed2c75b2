//! Rule sets in the style of real ones, access lists and routing tables, and traffic of several
//! patterns for them: the cost of a frame should depend on the rules and not on the traffic.

use super::Workload;

/// The pattern of the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficPattern {
    /// Frames of one flow.
    Same,
    /// Frames made for rules that are drawn uniformly.
    Fitting,
    /// Frames made for rules that are drawn by Zipf's law: few rules match most frames.
    Zipf,
    /// Random addresses and ports: each frame belongs to another flow.
    Random,
    /// Each frame differs from its rule in another bit, so that a cache of the masks that a lookup
    /// examined needs another mask for each frame.
    Attack,
}

impl TrafficPattern {
    /// All patterns.
    pub const ALL: [Self; 5] = [
        Self::Same,
        Self::Fitting,
        Self::Zipf,
        Self::Random,
        Self::Attack,
    ];

    /// Returns the name of the pattern.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "one flow",
            Self::Fitting => "fitting",
            Self::Zipf => "Zipf",
            Self::Random => "random",
            Self::Attack => "attack",
        }
    }
}

/// The default number of frames of a workload.
const FRAMES: u64 = 1024;

/// Returns a pseudorandom number for a seed (splitmix64).
#[must_use]
pub const fn splitmix64(seed: u64) -> u64 {
    base::mix64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Returns a number below `count` that follows Zipf's law: zero is as frequent as the next two
/// numbers together, and as the next four.
const fn zipf(number: u64, count: u64) -> u64 {
    let octaves = (count.ilog2() + 1) as u64;
    let octave = splitmix64(2 * number) % octaves;
    let within = splitmix64(2 * number + 1) & ((1 << octave) - 1);
    ((1 << octave) + within - 1) % count
}

/// Returns a pseudorandom element.
fn pick<T: Copy>(of: &[T], seed: u64) -> T {
    let place = splitmix64(seed) % of.len() as u64;
    of[usize::try_from(place).expect("a place")]
}

fn dotted(address: u64) -> String {
    let [.., a, b, c, d] = address.to_be_bytes();
    format!("{a}.{b}.{c}.{d}")
}

/// A rule of an access list.
struct AclEntry {
    source: (u64, u32),
    target: (u64, u32),
    transport: &'static str,
    port: Option<(u64, u64)>,
}

impl AclEntry {
    /// Returns the entry of this number: prefixes of several lengths within four networks, services
    /// and port ranges.
    fn new(number: u64) -> Self {
        let seed = number * 16;
        let network = |seed: u64, lengths: &[u32]| {
            let bits = pick(lengths, seed);
            let within = pick(
                &[0x0a00_0000_u64, 0xac10_0000, 0xc0a8_0000, 0x0808_0000],
                seed + 1,
            );
            let address = (within | splitmix64(seed + 2) & 0x00ff_ffff) & mask(bits);
            (address, bits)
        };
        let transport = pick(&["tcp", "tcp", "tcp", "udp", "udp", "icmp", "ip"], seed + 8);
        let port = match transport {
            "tcp" | "udp" => pick(&PORTS, seed + 9),
            _ => None,
        };
        Self {
            source: network(seed, &[0, 0, 8, 16, 24, 24, 28, 32]),
            target: network(seed + 4, &[0, 16, 24, 24, 28, 32, 32, 32]),
            transport,
            port,
        }
    }

    fn flow(&self, priority: u64, port: u64) -> String {
        let network = |name: &str, (address, bits): (u64, u32)| match bits {
            0 => String::new(),
            bits => format!(",{name}={}/{bits}", dotted(address)),
        };
        let (source, target) = (
            network("nw_src", self.source),
            network("nw_dst", self.target),
        );
        let ports = self
            .port
            .map(|(value, mask)| format!(",tp_dst={value:#x}/{mask:#x}"));
        let (transport, ports) = (self.transport, ports.unwrap_or_default());
        format!("priority={priority},{transport}{source}{target}{ports},actions=output:{port}")
    }

    /// Returns a frame that matches the entry, with the bits of `other` flipped in its addresses
    /// and destination port.
    fn frame(&self, seed: u64, other: (u64, u64, u64)) -> String {
        let within = |(address, bits): (u64, u32), seed: u64| {
            address | splitmix64(seed) & 0xffff_ffff & !mask(bits)
        };
        let (port, ports) = self.port.unwrap_or((0, 0));
        stack(
            self.transport,
            within(self.source, seed) ^ other.0,
            within(self.target, seed + 1) ^ other.1,
            splitmix64(seed + 2) & 0xffff,
            (port | splitmix64(seed + 3) & 0xffff & !ports) ^ other.2,
        )
    }
}

/// Destination ports: services, ranges as masks, and none.
const PORTS: [Option<(u64, u64)>; 10] = [
    None,
    None,
    Some((80, 0xffff)),
    Some((443, 0xffff)),
    Some((53, 0xffff)),
    Some((22, 0xffff)),
    Some((8080, 0xffff)),
    Some((0x400, 0xfc00)),
    Some((0x800, 0xf800)),
    Some((0xc000, 0xc000)),
];

const fn mask(bits: u32) -> u64 {
    0xffff_ffff & !(0xffff_ffff >> bits)
}

fn stack(transport: &str, source: u64, target: u64, port: u64, service: u64) -> String {
    let (source, target) = (dotted(source), dotted(target));
    let upper = match transport {
        "icmp" => "icmp".to_owned(),
        "udp" => format!("udp(src={port},dst={service})"),
        _ => format!("tcp(src={port},dst={service})"),
    };
    format!("eth / ipv4(src={source},dst={target}) / {upper}")
}

/// Returns a random frame that is not made for any rule.
fn random(seed: u64) -> String {
    let seed = 0x5eed_0000 + 8 * seed;
    let transport = pick(&["tcp", "udp"], seed);
    let [source, target] = [1, 2].map(|more| splitmix64(seed + more) & 0xffff_ffff);
    let [port, service] = [3, 4].map(|more| splitmix64(seed + more) & 0xffff);
    stack(transport, source, target, port, service)
}

impl Workload {
    /// An access list of `count` rules with many masks, and a default rule of the lowest priority.
    #[must_use]
    pub fn access_list(name: &'static str, count: u64, traffic: TrafficPattern) -> Self {
        Self::access_list_with_frames(name, count, traffic, FRAMES)
    }

    /// The workload [`access_list`](Self::access_list) with `frames` frames.
    #[must_use]
    pub fn access_list_with_frames(
        name: &'static str,
        count: u64,
        traffic: TrafficPattern,
        frames: u64,
    ) -> Self {
        let flow = |number: u64| AclEntry::new(number).flow(60_000 - number, 2 + number % 2);
        let default_rule = "priority=0,actions=output:4".to_owned();
        let frame = |number: u64| {
            let entry = AclEntry::new(splitmix64(number) % count);
            match traffic {
                TrafficPattern::Same => AclEntry::new(count / 2).frame(7, (0, 0, 0)),
                TrafficPattern::Fitting => entry.frame(number, (0, 0, 0)),
                TrafficPattern::Zipf => AclEntry::new(zipf(number, count)).frame(number, (0, 0, 0)),
                TrafficPattern::Random => random(number),
                TrafficPattern::Attack => entry.frame(number, attack_bits(number)),
            }
        };
        Self {
            flows: (0..count).map(flow).chain([default_rule]).collect(),
            frames: (0..frames).map(frame).collect(),
            ..Self::new(name, &[])
        }
    }

    /// Three rules that admit a service, a host and a port, and a default rule: the rule set of
    /// attacks on megaflow caches.
    #[must_use]
    pub fn three_rules(name: &'static str, traffic: TrafficPattern) -> Self {
        Self::three_rules_with_frames(name, traffic, FRAMES)
    }

    /// The workload [`three_rules`](Self::three_rules) with `frames` frames.
    #[must_use]
    pub fn three_rules_with_frames(
        name: &'static str,
        traffic: TrafficPattern,
        frames: u64,
    ) -> Self {
        let flows = [
            "priority=30,tcp,tp_dst=80,actions=output:2",
            "priority=20,tcp,nw_src=10.0.0.1,actions=output:2",
            "priority=10,tcp,tp_src=12345,actions=output:2",
            "priority=0,actions=output:3",
        ];
        let fitting = |number: u64| match number % 3 {
            0 => stack("tcp", splitmix64(number) & 0xffff_ffff, 1, 1000, 80),
            1 => stack(
                "tcp",
                0x0a00_0001,
                splitmix64(number) & 0xffff_ffff,
                1000,
                81,
            ),
            _ => stack("tcp", splitmix64(number) & 0xffff_ffff, 1, 12345, 81),
        };
        let frame = |number: u64| match traffic {
            TrafficPattern::Same => stack("tcp", 0x0b00_0001, 0x0b00_0002, 1000, 80),
            TrafficPattern::Fitting => fitting(number),
            TrafficPattern::Zipf => fitting(zipf(number, frames)),
            TrafficPattern::Random => random(number),
            TrafficPattern::Attack => {
                let bit = |width: u64, more: u64| 1 << (splitmix64(4 * number + more) % width);
                stack(
                    "tcp",
                    0x0a00_0001 ^ bit(32, 0),
                    1,
                    12345 ^ bit(16, 1),
                    80 ^ bit(16, 2),
                )
            }
        };
        Self {
            frames: (0..frames).map(frame).collect(),
            ..Self::new(name, &flows)
        }
    }

    /// Rules for `count` IPv4 prefixes, with a higher priority for a longer prefix, and frames to
    /// some of them.
    #[must_use]
    pub fn networks(name: &'static str, count: u64) -> Self {
        Self::networks_with_frames(name, count, FRAMES)
    }

    /// The workload [`networks`](Self::networks) with `frames` frames.
    #[must_use]
    pub fn networks_with_frames(name: &'static str, count: u64, frames: u64) -> Self {
        let flow = |number: u64| {
            let port = 2 + number % 3;
            format!("{},actions=output:{port}", network_match(number))
        };
        let frame = |number: u64| {
            let target = network_address(splitmix64(number) % count, number);
            stack("udp", 1, target, 1000, 2000)
        };
        Self {
            flows: (0..count).map(flow).collect(),
            frames: (0..frames).map(frame).collect(),
            ..Self::new(name, &[])
        }
    }

    /// Ten tables in the style of a switch and router: ingress port, neighbour, 1,000 MAC
    /// addresses, IP, source network, 1,000 prefixes, UDP, 1,000 exact flows, metadata, and egress
    /// port. The frames belong to the 1,000 flows, or, if random, each to another connection.
    #[must_use]
    pub fn routed(name: &'static str, traffic: TrafficPattern, frames: u64) -> Self {
        const FLOWS: u64 = 1000;
        let goto = |table: u64, matching: &str| {
            format!("table={table},{matching},actions=goto_table:{}", table + 1)
        };
        let exact = |n: u64| format!("udp,nw_src={},tp_dst={}", dotted(0x0a01_0000 + n), 5000 + n);
        let flows = [
            goto(0, "in_port=1"),
            goto(1, "dl_src=02:00:00:00:00:01"),
            goto(3, "ip"),
            goto(4, "priority=10,ip,nw_src=10.1.0.0/16"),
            goto(6, "udp"),
            "table=8,udp,actions=write_metadata:1,goto_table:9".to_owned(),
            "table=9,metadata=1,actions=output:2".to_owned(),
        ];
        let many = (0..FLOWS).flat_map(|n| {
            [
                goto(2, &format!("dl_dst={}", mac_address(n))),
                goto(5, &network_match(n)),
                goto(7, &exact(n)),
            ]
        });
        let frame = |number: u64| {
            let flow = match traffic {
                TrafficPattern::Same => 0,
                _ => splitmix64(number) % FLOWS,
            };
            let connection = match traffic {
                TrafficPattern::Random => number,
                _ => flow,
            };
            let (source, target) = (
                dotted(0x0a01_0000 + flow),
                dotted(network_address(flow, connection)),
            );
            format!(
                "eth(src=02:00:00:00:00:01,dst={}) / ipv4(src={source},dst={target}) / \
                 udp(src={},dst={}) / data(18)",
                mac_address(flow),
                1024 + splitmix64(connection) % 60_000,
                5000 + flow,
            )
        };
        Self {
            flows: flows.into_iter().chain(many).collect(),
            frames: (0..frames).map(frame).collect(),
            ..Self::new(name, &[])
        }
    }
}

/// Returns the prefix of this number, and its length in bits.
fn network(number: u64) -> (u64, u32) {
    let bits = pick(
        &[8, 12, 16, 18, 20, 21, 22, 23, 24, 24, 24, 24, 24, 28, 32],
        number,
    );
    (splitmix64(number + 0x1000_0000) & mask(bits), bits)
}

/// Returns the match for a prefix: the longer the prefix, the higher the priority.
fn network_match(number: u64) -> String {
    let (address, bits) = network(number);
    format!("priority={bits},ip,nw_dst={}/{bits}", dotted(address))
}

/// Returns an address within a prefix.
fn network_address(number: u64, seed: u64) -> u64 {
    let (address, bits) = network(number);
    address | splitmix64(seed) & 0xffff_ffff & !mask(bits)
}

/// Returns the MAC address of this number.
fn mac_address(number: u64) -> String {
    let [.., a, b] = number.to_be_bytes();
    format!("02:00:00:01:{a:02x}:{b:02x}")
}

/// Returns one pseudorandom bit for each of the two addresses and the port.
fn attack_bits(number: u64) -> (u64, u64, u64) {
    let bit = |width: u64, more: u64| 1 << (splitmix64(4 * number + more) % width);
    (bit(32, 0), bit(32, 1), bit(16, 2))
}
