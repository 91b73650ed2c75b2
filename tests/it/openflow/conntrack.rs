//! Connection tracking and address translation for hosts with real sockets.

use std::net::{IpAddr, Ipv4Addr};

use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::host::{copy_stream, pseudo_random_bytes};
use crate::support::network::TestNetwork;
use crate::support::stateful::{assert_only_replies_pass, assert_service_works};
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    stateful_firewall_permits_replies_only,
    source_translation_is_undone_for_replies,
    load_balancer_translates_in_buckets,
    full_zone_refuses_new_connections,
];

const PORTS: &str = "--bridge br0 --fail-mode secure --port p1 --port p2";

/// The address that hosts see instead of a translated one.
const VIRTUAL: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 100);

const SERVICE: u16 = 8080;

fn add_flows(switch: &SwitchProcess<'_>, flows: &[&str]) -> Result<(), Failure> {
    for flow in flows {
        switch.ofctl(&format!("add-flow br0 {flow}"))?;
    }
    Ok(())
}

fn stateful_firewall_permits_replies_only(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let (inside, outside) = network.host_pair();
    network.add_static_neighbours(1, 2)?;
    let switch = network.start_switch(PORTS)?;
    add_flows(
        &switch,
        &[
            "table=0,ip,actions=ct(table=1)",
            "table=1,ip,in_port=1,ct_state=+trk+new,actions=ct(commit),output:2",
            "table=1,ip,in_port=1,ct_state=+trk+est,actions=output:2",
            "table=1,ip,in_port=2,ct_state=+trk+est,actions=output:1",
        ],
    )?;
    assert_only_replies_pass(inside, outside)?;
    let dump = switch.appctl("dpctl/dump-conntrack")?;
    let connection = format!("tcp,orig=(src={},dst={},", inside.address, outside.address);
    assert!(dump.contains(&connection), "{dump}");
    switch.appctl("dpctl/flush-conntrack")?;
    assert_eq!(switch.appctl("dpctl/dump-conntrack")?, "");
    Ok(())
}

fn source_translation_is_undone_for_replies(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let (client, server) = network.host_pair();
    network.add_static_neighbours(1, 2)?;
    server
        .namespace
        .add_neighbour(server.interface, VIRTUAL, client.mac)?;
    let switch = network.start_switch(PORTS)?;
    add_flows(
        &switch,
        &[
            "ip,in_port=1,actions=ct(commit,zone=1,nat(src=10.1.0.100)),output:2",
            "ip,in_port=2,actions=ct(zone=1,nat,table=1)",
            "table=1,ip,ct_state=+trk+est,actions=output:1",
        ],
    )?;
    let peer = assert_service_works(client, (server.address, SERVICE), server)?;
    assert_eq!(peer.ip(), IpAddr::V4(VIRTUAL));
    client.ping(server.address, 3)?;
    Ok(())
}

fn load_balancer_translates_in_buckets(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let (client, server) = network.host_pair();
    network.add_static_neighbours(1, 2)?;
    client
        .namespace
        .add_neighbour(client.interface, VIRTUAL, server.mac)?;
    let switch = network.start_switch(PORTS)?;
    let bucket = format!(
        "bucket=actions=ct(commit,table=2,nat(dst={}))",
        server.address
    );
    switch.ofctl(&format!(
        "-O OpenFlow15 add-group br0 group_id=1,type=select,{bucket}"
    ))?;
    add_flows(
        &switch,
        &[
            "ip,in_port=1,nw_dst=10.1.0.100,actions=group:1",
            "table=2,ip,actions=output:2",
            "ip,in_port=2,actions=ct(nat,table=3)",
            "table=3,ip,ct_state=+trk+est+rpl,actions=output:1",
        ],
    )?;
    assert_service_works(client, (VIRTUAL, SERVICE), server)?;
    Ok(())
}

fn full_zone_refuses_new_connections(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let (client, server) = network.host_pair();
    network.add_static_neighbours(1, 2)?;
    let switch = network.start_switch(PORTS)?;
    add_flows(
        &switch,
        &[
            "ip,actions=ct(zone=5,table=1)",
            "table=1,ip,in_port=1,ct_state=+trk+new,actions=ct(commit,zone=5),output:2",
            "table=1,ip,ct_state=+trk+est,in_port=1,actions=output:2",
            "table=1,ip,ct_state=+trk+est,in_port=2,actions=output:1",
        ],
    )?;
    switch.appctl("dpctl/ct-set-limits zone=5,limit=1")?;
    let listener = server.listen(SERVICE)?;
    let stream = client.connect(server.address, SERVICE)?;
    let (accepted, _) = listener
        .accept()
        .map_err(Failure::to("accept a TCP connection"))?;
    assert!(
        !client.can_ping(server.address)?,
        "a second connection is committed"
    );
    let file = pseudo_random_bytes(1000);
    assert!(copy_stream(&file, &stream, &accepted)? == file);
    let limits = switch.appctl("dpctl/ct-get-limits zone=5")?;
    assert!(limits.contains("zone=5,limit=1,count=1"), "{limits}");
    Ok(())
}
