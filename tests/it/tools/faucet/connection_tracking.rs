//! Faucet's tutorial of connection tracking: a stateful firewall between two VLANs, and source
//! translation to the address of the gateway.

use std::net::Ipv4Addr;

use super::FaucetController;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;
use crate::support::stateful::assert_service_works;

pub(crate) const TESTS: &[SystemTest] = tests![faucet_tracks_and_translates_connections,];

/// Addresses of the hosts, each in a VLAN of its own, and the gateway of the first.
const INSIDE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 254);

/// Two routed VLANs, whose ports have the access list `conntrack_fw`.
const ROUTED_VLANS: &str = "
vlans:
    one:
        vid: 100
        faucet_mac: '0e:00:00:00:01:00'
        faucet_vips: ['10.1.0.254/24']
    two:
        vid: 200
        faucet_mac: '0e:00:00:00:02:00'
        faucet_vips: ['10.2.0.254/24']
routers:
    router-1: {vlans: [one, two]}
dps:
    sw1:
        dp_id: 0x1
        hardware: 'Open vSwitch'
        interfaces:
            1: {native_vlan: one, acls_in: [conntrack_fw]}
            2: {native_vlan: two, acls_in: [conntrack_fw]}
";

/// Options of the firewall's rules without translation: none for new connections, and established
/// ones are allowed.
const PLAIN: [&str; 2] = ["", "allow: True"];

/// Options of the firewall's rules with translation.
const TRANSLATED: [&str; 2] = [
    ", nat: {flags: 1, range_ipv4_min: 10.1.0.254, range_ipv4_max: 10.1.0.254}",
    "ct: {zone: 10, flags: 1, table: 1, nat: {flags: 1}}",
];

/// Returns the configuration: untracked packets enter table 0 again, new connections from the first
/// host are committed, and packets of established ones are allowed.
fn configuration([of_new, of_established]: [&str; 2]) -> String {
    format!(
        "{ROUTED_VLANS}
acls:
    conntrack_fw:
        - rule: {{eth_type: 0x0806, actions: {{allow: True}}}}
        - rule:
            eth_type: 0x0800
            ct_state: 0/0x20
            actions: {{ct: {{zone: 10, table: 0}}}}
        - rule:
            eth_type: 0x0800
            ipv4_src: 10.1.0.1
            ipv4_dst: 10.2.0.1
            ct_state: 0x21/0x21
            actions: {{ct: {{zone: 10, flags: 1, table: 1{of_new}}}}}
        - rule:
            eth_type: 0x0800
            ct_zone: 10
            ct_state: 0x22/0x22
            actions: {{{of_established}}}
        - rule:
            eth_type: 0x0800
            ipv4_src: 10.2.0.1
            ipv4_dst: 10.1.0.1
            actions: {{allow: False}}
"
    )
}

fn faucet_tracks_and_translates_connections(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let (inside, outside) = network.host_pair();
    for (host, net) in [(inside, 1), (outside, 2)] {
        for words in [
            "address flush dev eth0 scope global".to_owned(),
            format!("address add 10.{net}.0.1/24 dev eth0"),
            format!("route add default via 10.{net}.0.254"),
        ] {
            host.run(&format!("ip {words}"))?.expect_success()?;
        }
    }
    let faucet = FaucetController::start(&deployment, &configuration(PLAIN))?;
    faucet.add_bridge(1, &["p1", "p2"])?;
    inside.ping_until_reply(OUTSIDE)?;
    inside.ping(OUTSIDE, 5)?;
    assert!(
        !outside.can_ping(INSIDE)?,
        "a new connection from outside passes"
    );
    let dump = deployment.run_tool("ovs-appctl dpctl/dump-conntrack zone=10")?;
    assert!(
        dump.contains("icmp,orig=(src=10.1.0.1,dst=10.2.0.1,"),
        "{dump}"
    );
    // Source translation, by another configuration.
    faucet.reload(&configuration(TRANSLATED))?;
    context.wait_until("a translated connection", || {
        let flows = deployment.run_tool("ovs-ofctl -O OpenFlow13 dump-flows br1")?;
        Ok(flows.contains("nat(src=10.1.0.254)"))
    })?;
    deployment.run_tool("ovs-appctl dpctl/flush-conntrack")?;
    let peer = assert_service_works(inside, (OUTSIDE, 8080), outside)?;
    assert_eq!(peer.ip(), GATEWAY);
    Ok(())
}
