//! Forwarding of a simulated device: by rules, by learned addresses, or by flooding.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use base::PortNo;
use flow::{Action, Field, FlowKey, FlowMod, PipelineFields, Refusal};
use packet::{Depth, Frame, Headers, MacAddr, Packet};
use trafficgen::memory::PortFrame;

use super::{Faults, nanos};

/// Forwarding state of the device.
pub(super) struct SimulatedForwarding {
    faults: Faults,
    /// The rules, each with true if it works. None before the first installation: the switch then
    /// forwards between the two hosts of each pair, as with the initial rules of a test setup.
    rules: Option<Vec<(FlowMod, bool)>>,
    /// The previous rules, and the time until which they stay in force.
    previous: Option<Vec<(FlowMod, bool)>>,
    previous_until_ns: u64,
    added: u64,
    learned: BTreeMap<[u8; 6], usize>,
    flows: BTreeSet<Vec<u8>>,
    /// Frames that matched a rule, from the client and from the server.
    pub(super) counts: [u64; 2],
    pub(super) packet_ins: u64,
    key: FlowKey,
}

impl SimulatedForwarding {
    pub(super) fn new(faults: &Faults) -> Self {
        Self {
            faults: faults.clone(),
            rules: None,
            previous: None,
            previous_until_ns: 0,
            added: 0,
            learned: BTreeMap::new(),
            flows: BTreeSet::new(),
            counts: [0; 2],
            packet_ins: 0,
            key: FlowKey::new(),
        }
    }

    pub(super) fn clear(&mut self, until_ns: u64) {
        self.previous = self.rules.replace(Vec::new());
        self.previous_until_ns = until_ns;
        self.counts = [0; 2];
        self.packet_ins = 0;
    }

    pub(super) fn add(&mut self, rule: &FlowMod) -> Result<(), Refusal> {
        let rules = self.rules.get_or_insert_default();
        if rules.len() >= self.faults.capacity {
            return Err(Refusal::FlowModTableFull);
        }
        self.added += 1;
        let every_nth = self.faults.forgets_every;
        let works = every_nth.is_none_or(|every| !self.added.is_multiple_of(every));
        rules.push((rule.clone(), works));
        Ok(())
    }

    pub(super) fn listed(&self) -> u32 {
        let rules = self.rules.as_ref().map_or(0, Vec::len);
        u32::try_from(rules).unwrap() - self.faults.hides
    }

    /// Returns the copies of a frame that leave a device with this number of ports.
    pub(super) fn forward(&mut self, at: PortFrame, ports: usize) -> Vec<PortFrame> {
        let others = |at: &PortFrame| -> Vec<PortFrame> {
            let others = (0..ports).filter(|port| *port != at.port);
            let copy = |port| PortFrame { port, ..at.clone() };
            others.map(copy).collect()
        };
        if self.faults.floods {
            return others(&at);
        }
        if self.faults.learns {
            let address = |from: usize| at.frame[from..from + 6].try_into().unwrap();
            self.learned.insert(address(6), at.port);
            return match self.learned.get(&address(0)) {
                Some(&port) => vec![PortFrame { port, ..at }],
                None => others(&at),
            };
        }
        // The addresses and ports of UDP over IPv4.
        if self.faults.flows < usize::MAX {
            let flow = at.frame[26..38].to_vec();
            if self.flows.len() >= self.faults.flows && !self.flows.contains(&flow) {
                return Vec::new();
            }
            self.flows.insert(flow);
        }
        self.by_rules(at)
    }

    fn by_rules(&mut self, at: PortFrame) -> Vec<PortFrame> {
        let rules = match at.ns < self.previous_until_ns {
            true => &self.previous,
            false => &self.rules,
        };
        let Some(rules) = rules else {
            self.counts[at.port % 2] += 1;
            let port = at.port ^ 1;
            return vec![PortFrame { port, ..at }];
        };
        let packet = Frame::from_bytes(&at.frame);
        let headers = Headers::parse(&packet, Depth::Transport).expect("frames are whole");
        let port = PortNo(u32::try_from(at.port).unwrap() + 1);
        self.key.fill(&headers, &PipelineFields::new(port));
        let matching = rules
            .iter()
            .filter(|(rule, works)| *works && rule.matching.accepts(&self.key));
        let Some((rule, _)) = matching.max_by_key(|(rule, _)| rule.priority) else {
            self.packet_ins += 1;
            return Vec::new();
        };
        self.counts[at.port % 2] += 1;
        let searched = self.faults.rule * u32::try_from(rules.len()).unwrap();
        let at = PortFrame {
            ns: at.ns + nanos(searched),
            ..at
        };
        execute(&rule.instructions.apply, at, &self.faults)
    }
}

/// Returns the output of the actions. They use the packet crate's rewriting, so that the expected
/// frames of an experiment are compared with those of another implementation.
fn execute(actions: &[Action], at: PortFrame, faults: &Faults) -> Vec<PortFrame> {
    let mut frame = Frame::from_bytes(&at.frame);
    let mut packet = Packet::parse(&mut frame, Depth::Transport).expect("frames are whole");
    let mut out = Vec::new();
    for action in actions {
        if let Action::Output { port, .. } = action {
            let (port, more) = match *port {
                PortNo::NORMAL => (at.port ^ 1, nanos(faults.normal)),
                port => (port.0 as usize - 1, 0),
            };
            out.push(PortFrame {
                port,
                ns: at.ns + more,
                frame: packet.frame().bytes().to_vec(),
            });
        } else if !faults.ignores_sets {
            set(&mut packet, action);
        }
    }
    out
}

fn set(packet: &mut Packet<'_>, action: &Action) {
    match action {
        Action::SetField { field, value, .. } => {
            let address = MacAddr::from_u64(u64::try_from(*value).unwrap());
            match field {
                Field::EthSrc => packet.set_eth_src(address),
                Field::EthDst => packet.set_eth_dst(address),
                other => panic!("no experiment sets {other:?}"),
            }
        }
        Action::SetVlanVid(vid) => packet.set_vlan_vid(*vid),
        Action::SetVlanPcp(pcp) => packet.set_vlan_pcp(*pcp),
        Action::PopVlan => packet.pop_vlan().expect("there is a tag"),
        Action::SetNwSrc(address) => packet.set_ipv4_src(Ipv4Addr::from_bits(*address)),
        Action::SetNwDst(address) => packet.set_ipv4_dst(Ipv4Addr::from_bits(*address)),
        Action::SetNwTos(tos) => packet.set_ip_dscp(tos >> 2),
        Action::SetTpSrc(port) => packet.set_port_src(*port),
        Action::SetTpDst(port) => packet.set_port_dst(*port),
        other => panic!("no experiment has {other:?}"),
    }
}
