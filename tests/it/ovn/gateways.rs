//! Gateways to a physical network: address translation, routes by several next hops and policies,
//! and a second chassis that takes over.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use testbed::Failure;

use crate::support::command::{CommandOutput, program};
use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::host::TestHost;
use crate::support::ovn::{OUTSIDE, OvnCloud, OvnNetwork};
use crate::support::responder::{HttpResponder, http_get, http_get_within};

pub(crate) const TESTS: &[SystemTest] = tests![
    ovn_gateway_translates_addresses_and_selects_routes,
    ovn_gateway_fails_over_to_the_next_chassis,
];

/// Ports of the router.
const ROUTER_PORTS: [(&str, &str, u8); 2] =
    [("sw0", "10.1.0.254/24", 1), ("public", "192.0.2.1/24", 2)];

/// An address behind both next hops, and addresses that policies reroute and drop.
const BY_EITHER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const BY_POLICY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const DROPPED: Ipv4Addr = Ipv4Addr::new(198, 51, 101, 1);

/// Adds the switches `sw0` and `public`, and the router whose gateway is on these chassis, the
/// first with the highest priority.
fn add_logical_network(
    cloud: &OvnCloud<'_, '_>,
    hosts: &[u8],
    gateways: &[&str],
) -> Result<(), Failure> {
    cloud.add_switch("sw0")?;
    cloud.add_public_switch()?;
    cloud.add_hosts("sw0", hosts)?;
    cloud.add_router("r0", &ROUTER_PORTS)?;
    for (gateway, priority) in gateways.iter().zip((1..100).rev()) {
        cloud.nbctl(&format!(
            "lrp-set-gateway-chassis r0-public {gateway} {priority}"
        ))?;
    }
    cloud.nbctl("lr-nat-add r0 snat 192.0.2.1 10.1.0.0/24")?;
    cloud.sync()
}

/// Adds a router of the outside network, which has all addresses of the tests.
fn add_next_hop<'g>(
    context: &'g TestContext,
    network: &OvnNetwork<'g>,
    number: u8,
) -> Result<TestHost<'g>, Failure> {
    let mut host = TestHost::attach(context, number, &network.outside)?;
    let enslave = format!("ip link set p{number} master br0");
    CommandOutput::run(context, program(&enslave).inside(&network.outside))?.expect_success()?;
    host.move_to(Ipv4Addr::new(192, 0, 2, number), None)?;
    for address in [BY_EITHER, BY_POLICY, DROPPED] {
        host.namespace.add_address("lo", address, 32)?;
    }
    Ok(host)
}

fn ovn_gateway_translates_addresses_and_selects_routes(context: &TestContext) -> TestResult {
    let mut network = OvnNetwork::new(context, &[&[1, 2], &[]])?;
    for number in [1, 2] {
        network.move_host(number, [10, 1, 0, number])?;
    }
    let next_hops = [
        add_next_hop(context, &network, 201)?,
        add_next_hop(context, &network, 202)?,
    ];
    let deployments = network.deploy()?;
    let cloud = OvnCloud::start(&network, &deployments)?;
    add_logical_network(&cloud, &[1, 2], &["c2"])?;
    cloud.nbctl(
        "lr-nat-add r0 dnat_and_snat 192.0.2.10 10.1.0.1 p1 02:00:00:00:02:0a \
         -- lr-nat-add r0 dnat 192.0.2.20 10.1.0.2",
    )?;
    cloud.sync()?;
    let [one, two] = [1, 2].map(|number| network.host(number));
    let outside = &network.outside_host;
    let _servers = [
        HttpResponder::start(one, 80, "one")?,
        HttpResponder::start(two, 80, "two")?,
        HttpResponder::start(outside, 80, "outside")?,
    ];
    for host in [one, two] {
        host.ping_until_reply(OUTSIDE)?;
    }
    // The floating address is that of its host's own chassis.
    assert_eq!(http_get(one, OUTSIDE, 80)?, "outside 192.0.2.10");
    assert_eq!(http_get(two, OUTSIDE, 80)?, "outside 192.0.2.1");
    for (address, name) in [(10, "one"), (20, "two")] {
        let page = http_get(outside, Ipv4Addr::new(192, 0, 2, address), 80)?;
        assert_eq!(page, format!("{name} {OUTSIDE}"));
    }
    check_routes(&cloud, two, &next_hops)?;
    cloud.expect_clean_run();
    Ok(())
}

/// Asserts that connections use both next hops of a route, and the one of a policy.
fn check_routes(
    cloud: &OvnCloud<'_, '_>,
    client: &TestHost<'_>,
    next_hops: &[TestHost<'_>; 2],
) -> TestResult {
    cloud.nbctl(&format!(
        "--ecmp lr-route-add r0 {BY_EITHER}/32 192.0.2.201 \
         -- --ecmp lr-route-add r0 {BY_EITHER}/32 192.0.2.202 \
         -- lr-route-add r0 0.0.0.0/0 192.0.2.202 \
         -- lr-policy-add r0 100 'ip4.dst == {BY_POLICY}' reroute 192.0.2.201 \
         -- lr-policy-add r0 101 'ip4.dst == {DROPPED}' drop"
    ))?;
    cloud.sync()?;
    let [first, second] = next_hops;
    let _servers = [
        HttpResponder::start(first, 80, "first")?,
        HttpResponder::start(second, 80, "second")?,
    ];
    let names = |address, count| {
        let pages = (0..count).map(|_| http_get(client, address, 80));
        pages.collect::<Result<BTreeSet<_>, _>>()
    };
    let by_either = names(BY_EITHER, 40)?;
    let all = ["first 192.0.2.1", "second 192.0.2.1"].map(str::to_owned);
    assert_eq!(by_either, BTreeSet::from(all.clone()));
    let [first, _] = all;
    assert_eq!(names(BY_POLICY, 5)?, BTreeSet::from([first]));
    let limit = Duration::from_millis(400);
    assert_eq!(http_get_within(client, DROPPED, 80, limit)?, None);
    Ok(())
}

fn ovn_gateway_fails_over_to_the_next_chassis(context: &TestContext) -> TestResult {
    const REQUESTS: u32 = 300;
    let mut network = OvnNetwork::new(context, &[&[1], &[], &[]])?;
    network.move_host(1, [10, 1, 0, 1])?;
    let deployments = network.deploy()?;
    let cloud = OvnCloud::start(&network, &deployments)?;
    add_logical_network(&cloud, &[1], &["c2", "c3"])?;
    cloud.nbctl(
        "set NB_Global . options:bfd-min-rx=100 options:bfd-min-tx=100 options:bfd-mult=3",
    )?;
    cloud.sync()?;
    for (number, tunnel) in [(1, "ovn-c2-0"), (1, "ovn-c3-0"), (2, "ovn-c3-0")] {
        let column = format!("get Interface {tunnel} bfd_status:state");
        let deployment = cloud.chassis(number).deployment;
        deployment.wait_for_column(&column, "up")?;
    }
    let host = network.host(1);
    host.ping_until_reply(OUTSIDE)?;
    let log = context.unique_path("ping");
    let ping = program(&format!("ping -n -i 0.01 -c {REQUESTS} -W 1 {OUTSIDE}"));
    let ping = ping.inside(&host.namespace).log(&log);
    let mut ping = context.spawner.start(ping)?;
    context.wait_until("replies", || Ok(ping.written()?.contains("icmp_seq=50 ")))?;
    network.connect_chassis(2, false)?;
    // It fails if the last request has no reply.
    ping.wait(WAIT_LIMIT)?;
    let written = std::fs::read_to_string(&log)?;
    let replies = written.matches("bytes from").count();
    // BFD detects the failure within 300 ms; a busy machine takes longer.
    assert!(replies > 150, "{replies} replies of {REQUESTS}");
    host.ping(OUTSIDE, 5)?;
    // The first chassis takes over again.
    network.connect_chassis(2, true)?;
    let column = "get Interface ovn-c2-0 bfd_status:state";
    cloud.chassis(1).deployment.wait_for_column(column, "up")?;
    host.ping_until_reply(OUTSIDE)?;
    cloud.expect_clean_run();
    Ok(())
}
