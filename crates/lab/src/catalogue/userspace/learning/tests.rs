//! Simulated hosts at a switch with a learning controller: the number of frames and the counters
//! are known exactly.

use std::collections::BTreeSet;

use base::{Cookie, PortNo, TableId};
use flow::{Action, FlowKey, FlowMod, PacketIn, PacketInReason, PipelineFields};
use openflow::{Message, Version};
use packet::{Depth, Frame, Headers};
use trafficgen::checksum::{checksum, sum};

use super::*;
use crate::catalogue::simulated::{assert_near, figure, notes, point, why_not};
use record::Value;

/// Switch with its hosts and its faults.
struct Network {
    learning: Learning,
    rules: Vec<FlowStats>,
    /// ARP cache of each host.
    known: [BTreeSet<usize>; HOSTS],
    /// Delay of a frame in milliseconds, by a rule and by the controller.
    forward_ms: f64,
    up_ms: f64,
    /// Host that receives nothing.
    unreachable: Option<usize>,
    /// Frames that a rule does not count.
    uncounted: u64,
    key: FlowKey,
}

impl Network {
    fn new(forward_ms: f64, up_ms: f64) -> Self {
        Self {
            learning: Learning::default(),
            rules: Vec::new(),
            known: Default::default(),
            forward_ms,
            up_ms,
            unreachable: None,
            uncounted: 0,
            key: FlowKey::new(),
        }
    }

    /// Returns the hosts that receive a frame of this one, and its delay.
    fn send(&mut self, from: usize, bytes: &[u8]) -> (Vec<usize>, f64) {
        let packet = Frame::from_bytes(bytes);
        let headers = Headers::parse(&packet, Depth::Transport).unwrap();
        let port = PortNo(u32::try_from(from).unwrap() + 1);
        self.key.fill(&headers, &PipelineFields::new(port));
        let key = &self.key;
        let mut matching = self
            .rules
            .iter_mut()
            .filter(|rule| rule.matching.accepts(key));
        let (actions, delay_ms) = match matching.next() {
            Some(rule) => {
                rule.packets += 1;
                rule.bytes += bytes.len() as u64;
                (rule.instructions.apply.clone(), self.forward_ms)
            }
            None => (self.packet_in(port, bytes), self.up_ms),
        };
        let receives = |host: &usize| *host != from && self.unreachable != Some(*host);
        let out = |action: &Action| -> Vec<usize> {
            match *action {
                Action::Output {
                    port: PortNo::FLOOD,
                    ..
                } => (0..HOSTS).collect(),
                Action::Output { port, .. } => vec![port.0 as usize - 1],
                ref other => panic!("unexpected {other:?}"),
            }
        };
        let receivers = actions.iter().flat_map(out).filter(receives);
        (receivers.collect(), delay_ms)
    }

    /// Returns the controller's actions for a frame without a matching rule.
    fn packet_in(&mut self, port: PortNo, bytes: &[u8]) -> Vec<Action> {
        let up = PacketIn {
            reason: PacketInReason::NoMatch,
            table: TableId::FIRST,
            cookie: Cookie::NONE,
            registers: PipelineFields::new(port),
            total_len: u16::try_from(bytes.len()).unwrap(),
            data: bytes.to_vec(),
            userdata: Vec::new(),
            continuation: Vec::new(),
        };
        let mut actions = Vec::new();
        for message in self.learning.packet_in(&up, Version::V10) {
            match message {
                Message::FlowMod(rule) => self.rules.push(counting(rule)),
                Message::PacketOut(out) => actions.extend(out.actions),
                other => panic!("unexpected {other:?}"),
            }
        }
        actions
    }

    /// Sends one ping, and returns its round-trip time; `None` without a reply.
    fn one(&mut self, from: usize, to: usize) -> Option<f64> {
        let mut delay_ms = 0.0;
        let mut deliver = |network: &mut Self, from, to, frame: &[u8]| {
            let (receivers, after) = network.send(from, frame);
            delay_ms += after;
            receivers.contains(&to).then_some(())
        };
        if !self.known[from].contains(&to) {
            deliver(self, from, to, &arp(1, from, to))?;
            self.known[to].insert(from);
            deliver(self, to, from, &arp(2, to, from))?;
            self.known[from].insert(to);
        }
        deliver(self, from, to, &icmp(8, from, to))?;
        deliver(self, to, from, &icmp(0, to, from))?;
        Some(delay_ms)
    }
}

impl Hosts for Network {
    fn forget(&mut self) -> Result<(), TrialError> {
        self.known = Default::default();
        Ok(())
    }

    fn ping(&mut self, from: usize, to: usize, count: u64) -> Result<PingStats, TrialError> {
        let delay_ms: Vec<f64> = (0..count).filter_map(|_| self.one(from, to)).collect();
        let mean = delay_ms.iter().sum::<f64>() / delay_ms.len() as f64;
        Ok(PingStats {
            answered: delay_ms.len() as u64,
            mean_ms: (!delay_ms.is_empty()).then_some(mean),
            most_ms: delay_ms.into_iter().reduce(f64::max),
        })
    }

    fn flows(&mut self, _: u64) -> Result<Vec<FlowStats>, TrialError> {
        let two = [0, 1].map(address);
        let mut flows = self.rules.clone();
        flows.retain(|flow| is_of_pings(flow, two));
        if let Some(first) = flows.first_mut() {
            first.packets -= self.uncounted;
            first.bytes -= self.uncounted * PING_BYTES;
        }
        Ok(flows)
    }
}

/// Returns a rule with counters at zero.
fn counting(rule: FlowMod) -> FlowStats {
    FlowStats {
        table: rule.table,
        priority: rule.priority,
        cookie: rule.cookie,
        matching: rule.matching,
        instructions: rule.instructions,
        idle_timeout_s: rule.idle_timeout_s,
        hard_timeout_s: rule.hard_timeout_s,
        importance: 0,
        flags: rule.flags,
        duration: Duration::ZERO,
        idle_age: Duration::ZERO,
        hard_age: Duration::ZERO,
        packets: 0,
        bytes: 0,
    }
}

fn number(host: usize) -> u8 {
    u8::try_from(host).unwrap() + 1
}

fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number(host))
}

fn mac(host: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, number(host)]
}

/// Returns an ARP request or reply (RFC 826).
fn arp(operation: u8, from: usize, to: usize) -> Vec<u8> {
    let is_request = operation == 1;
    let destination = if is_request { [0xff; 6] } else { mac(to) };
    let mut frame = [destination, mac(from)].concat();
    frame.extend([0x08, 0x06, 0, 1, 0x08, 0x00, 6, 4, 0, operation]);
    frame.extend(mac(from));
    frame.extend(address(from).octets());
    frame.extend(if is_request { [0; 6] } else { mac(to) });
    frame.extend(address(to).octets());
    frame.resize(60, 0);
    frame
}

/// Returns a ping's frame of 98 bytes, or its reply.
fn icmp(kind: u8, from: usize, to: usize) -> Vec<u8> {
    let mut ip = [0x45, 0, 0, 84, 0, 0, 0x40, 0, 64, 1, 0, 0].to_vec();
    ip.extend(address(from).octets());
    ip.extend(address(to).octets());
    let right = checksum(sum(&ip));
    ip[10..12].copy_from_slice(&right.to_be_bytes());
    let mut message = vec![0; 64];
    message[0] = kind;
    let right = checksum(sum(&message));
    message[2..4].copy_from_slice(&right.to_be_bytes());
    [&mac(to)[..], &mac(from), &[0x08, 0x00], &ip, &message].concat()
}

fn measured(mut network: Network) -> TrialResult {
    let point = point(&LEARNING, &[("pings", Value::Number(78))]);
    let found = found(&point, &mut network).unwrap();
    found.measured(Conditions::default())
}

#[test]
fn first_ping_is_four_packet_ins_and_later_pings_match_rules() {
    let measured = measured(Network::new(0.02, 0.5));
    assert_eq!(figure(&measured, "reached"), 12.0);
    assert_near(&measured, "first_ms", 4.0 * 0.5, 1e-9);
    assert_near(&measured, "later_us", 2.0 * 20.0, 1e-9);
    assert_eq!(figure(&measured, "answered"), 78.0);
    // Rules do not count the frames that the controller sent itself.
    assert_eq!(figure(&measured, "flows"), 2.0);
    assert_eq!(figure(&measured, "frames"), 78.0);
    assert_eq!(figure(&measured, "bytes"), 78.0 * 98.0);
    assert_eq!(measured.flaws, []);
}

#[test]
fn unreachable_host_is_noted() {
    let mut network = Network::new(0.02, 0.5);
    network.unreachable = Some(3);
    let measured = measured(network);
    assert_eq!(figure(&measured, "reached"), 6.0);
    assert_eq!(
        notes(&measured),
        ["of 12 pairs of hosts 6 reached each other"]
    );
}

#[test]
fn unanswered_pings_have_no_time_and_no_flows() {
    let mut network = Network::new(0.02, 0.5);
    network.unreachable = Some(0);
    let measured = measured(network);
    assert_eq!(figure(&measured, "answered"), 0.0);
    assert_eq!(why_not(&measured, "later_us"), "nothing was answered");
    assert_eq!(
        why_not(&measured, "frames"),
        "the switch reports no such flow"
    );
}

#[test]
fn wrong_flow_counters_are_noted() {
    let mut network = Network::new(0.02, 0.5);
    network.uncounted = 1;
    let measured = measured(network);
    assert_eq!(figure(&measured, "frames"), 77.0);
    let expected = "a flow counted 77 frames and 7546 bytes, for 78 pings of 98 bytes";
    assert_eq!(notes(&measured), [expected]);
}

#[test]
fn ping_summary_is_parsed() {
    let text = "PING 10.98.0.2 (10.98.0.2) 56(84) bytes of data.\n\n\
        --- 10.98.0.2 ping statistics ---\n\
        78 packets transmitted, 77 received, 1.28205% packet loss, time 154ms\n\
        rtt min/avg/max/mdev = 0.020/0.048/1.580/0.012 ms\n";
    let expected = PingStats {
        answered: 77,
        mean_ms: Some(0.048),
        most_ms: Some(1.58),
    };
    assert_eq!(read(text), expected);
    let none = "1 packets transmitted, 0 received, 100% packet loss, time 0ms\n";
    assert_eq!(read(none), PingStats::default());
}
