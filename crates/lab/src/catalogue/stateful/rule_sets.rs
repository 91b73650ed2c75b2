//! Rule sets with connection tracking, for OpenFlow devices and for nftables: a firewall that
//! permits connections from port 1 only, and the same with a pool of servers behind an address.

use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

use flow::FlowMod;
use flow::text::parse_flow_line;
use testbed::{DeviceKind, Failure, Program};

use crate::setup::TestSetup;
use crate::tools::Tools;
use crate::trial::TrialError;

/// Address of the pool.
pub(super) const VIRTUAL: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 100);
/// Addresses of the pool's members, all of the server.
pub(super) const POOL: [Ipv4Addr; 2] =
    [Ipv4Addr::new(10, 98, 0, 101), Ipv4Addr::new(10, 98, 0, 102)];

/// Time limit of nft.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A rule set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatefulRules {
    /// Connections from port 1, and their replies.
    Firewall,
    /// Connections from port 1 to [`VIRTUAL`], which is translated to a member of the pool.
    LoadBalancer,
}

impl StatefulRules {
    /// Replaces the rules of the device. A device without OpenFlow and without nftables has none.
    pub(super) fn put_in_force(
        self,
        setup: &mut TestSetup,
        tools: &Tools<'_>,
    ) -> Result<(), TrialError> {
        let kind = setup.kind();
        if kind == DeviceKind::Nftables {
            return self.load(setup, tools);
        }
        if kind.speaks_openflow() {
            setup.install(&self.flows())?;
        }
        Ok(())
    }

    /// Returns the rules of an OpenFlow device, all in its first table, which `ct` enters again.
    fn flows(self) -> Vec<FlowMod> {
        let rules: &[&str] = match self {
            Self::Firewall => &[
                "priority=90,ct_state=-trk,ip,actions=ct(table=0)",
                "priority=50,ct_state=+trk+new-inv,ip,in_port=1,actions=ct(commit),output:2",
            ],
            Self::LoadBalancer => &[
                "priority=90,ct_state=-trk,ip,actions=ct(table=0,nat)",
                "priority=50,ct_state=+trk+new-inv,ip,in_port=1,nw_dst=10.98.0.100,actions=ct(commit,nat(dst=10.98.0.101-10.98.0.102)),output:2",
            ],
        };
        let both = [
            "priority=100,ct_state=+trk+inv,ip,actions=drop",
            "priority=60,ct_state=+trk+est,ip,in_port=1,actions=output:2",
            "priority=60,ct_state=+trk+est,ip,in_port=2,actions=output:1",
            "priority=60,ct_state=+trk+rel-new,ip,in_port=2,actions=output:1",
            // A last segment of a connection that has ended in the device.
            "priority=40,ct_state=+trk+new,ip,in_port=2,actions=drop",
            "priority=10,arp,in_port=1,actions=output:2",
            "priority=10,arp,in_port=2,actions=output:1",
        ];
        let rules = rules.iter().chain(&both);
        rules
            .map(|rule| parse_flow_line(rule).expect("the rules are well formed"))
            .collect()
    }

    /// Returns the rules of nftables. The addresses of the lab's hosts and of scripted clients
    /// (RFC 2544, C.2.2) are inside; the kernel does not know a bridged packet's port here.
    const fn ruleset(self) -> &'static str {
        match self {
            Self::Firewall => {
                "table inet lab {
    chain forward {
        type filter hook forward priority filter; policy drop;
        ct state invalid drop
        ct state established,related accept
        ct state new ip saddr { 10.98.0.1, 198.18.0.0/16 } accept
    }
}
"
            }
            Self::LoadBalancer => {
                "table inet lab {
    chain prerouting {
        type nat hook prerouting priority dstnat;
        ip daddr 10.98.0.100 dnat ip to 10.98.0.101-10.98.0.102
    }
    chain forward {
        type filter hook forward priority filter; policy drop;
        ct state invalid drop
        ct state established,related accept
        ct state new ct status dnat accept
    }
}
"
            }
        }
    }

    /// Loads the rules of nftables. A translated packet needs a neighbour of the bridge.
    fn load(self, setup: &TestSetup, tools: &Tools<'_>) -> Result<(), TrialError> {
        let bench = &setup.bench;
        let inside = bench.device_namespace();
        if self == Self::LoadBalancer {
            // The kernel forwards a packet with a translated destination by a route.
            inside.set_sysctl("net/ipv4/ip_forward", "1")?;
            inside.set_up("br0")?;
            inside.add_address("br0", Ipv4Addr::new(10, 98, 0, 254), 24)?;
            let [client, server] = [bench.client(), bench.server()];
            inside.add_neighbour("br0", client.address, client.mac)?;
            for member in POOL {
                inside.add_neighbour("br0", member, server.mac)?;
            }
        }
        let file = setup.directory.join("ruleset.nft");
        fs::write(&file, self.ruleset()).map_err(Failure::to("write the rules of nftables"))?;
        let program = Program::new("nft")
            .arg("-f")
            .arg(&file)
            .log(setup.directory.join("nft.log"))
            .inside(inside);
        Ok(tools.spawner.run(program, TIMEOUT)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Xid;
    use openflow::{Message, Version};

    #[test]
    fn stateful_rules_are_expressible_in_the_versions_of_setups() {
        for rules in [StatefulRules::Firewall, StatefulRules::LoadBalancer] {
            for version in [Version::V10, Version::V13] {
                for flow in &rules.flows() {
                    let message = Message::FlowMod(flow.clone());
                    let encoded = message.encode(Xid(1), version, &mut Vec::new());
                    assert!(encoded.is_ok(), "{version:?}: {flow:?}");
                }
            }
        }
    }
}
