//! Load balancers with affinity and health checks, whose servers are on other chassis.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::host::TestHost;
use crate::support::ovn::{OvnCloud, OvnNetwork};
use crate::support::responder::{HttpResponder, http_get, http_get_within};

pub(crate) const TESTS: &[SystemTest] =
    tests![ovn_load_balancer_checks_health_and_keeps_clients_at_a_server,];

/// Addresses of the load balancers: one that checks health, one with affinity.
const CHECKED: Ipv4Addr = Ipv4Addr::new(172, 30, 0, 1);
const AFFINE: Ipv4Addr = Ipv4Addr::new(172, 30, 0, 2);

/// Adds the load balancers to the switch of the client.
fn add_load_balancers(cloud: &OvnCloud<'_, '_>) -> Result<(), Failure> {
    let servers = "10.1.0.2:8080,10.1.0.3:8080";
    cloud.nbctl(&format!(
        "lb-add checked {CHECKED}:80 {servers} tcp -- lb-add affine {AFFINE}:80 {servers} tcp \
         -- set Load_Balancer affine options:affinity_timeout=60 \
         -- set Load_Balancer checked ip_port_mappings:10.1.0.2=p2:10.1.0.250 \
         ip_port_mappings:10.1.0.3=p3:10.1.0.250 \
         -- --id=@check create Load_Balancer_Health_Check vip=\"{CHECKED}:80\" \
         options:interval=1 options:timeout=1 options:success_count=1 options:failure_count=1 \
         -- add Load_Balancer checked health_check @check \
         -- ls-lb-add sw0 checked -- ls-lb-add sw0 affine"
    ))?;
    cloud.sync()
}

/// Waits until the health checks of servers 2 and 3 have these results.
fn wait_for_health(
    context: &TestContext,
    cloud: &OvnCloud<'_, '_>,
    expected: [(&str, &str); 2],
) -> Result<(), Failure> {
    context.wait_until(&format!("{expected:?}"), || {
        let statuses = expected.map(|(port, status)| {
            let words = format!("--bare --columns=status find Service_Monitor logical_port={port}");
            Ok::<_, Failure>(cloud.sbctl(&words)?.trim() == status)
        });
        let [first, second] = statuses;
        Ok(first? && second?)
    })?;
    cloud.sync()
}

/// The servers that answer `count` requests.
fn servers_of(
    client: &TestHost<'_>,
    address: Ipv4Addr,
    count: usize,
) -> Result<BTreeSet<String>, Failure> {
    let pages = (0..count).map(|_| http_get(client, address, 80));
    pages.collect()
}

fn ovn_load_balancer_checks_health_and_keeps_clients_at_a_server(
    context: &TestContext,
) -> TestResult {
    let mut network = OvnNetwork::new(context, &[&[1], &[2], &[3]])?;
    for number in [1, 2, 3] {
        network.move_host(number, [10, 1, 0, number])?;
    }
    let deployments = network.deploy()?;
    let cloud = OvnCloud::start(&network, &deployments)?;
    cloud.add_switch("sw0")?;
    cloud.add_hosts("sw0", &[1, 2, 3])?;
    cloud.add_router("r0", &[("sw0", "10.1.0.254/24", 1)])?;
    let [client, two, three] = [1, 2, 3].map(|number| network.host(number));
    let _second = HttpResponder::start(two, 8080, "two")?;
    let third = HttpResponder::start(three, 8080, "three")?;
    add_load_balancers(&cloud)?;
    wait_for_health(context, &cloud, [("p2", "online"), ("p3", "online")])?;
    client.ping_until_reply(Ipv4Addr::new(10, 1, 0, 254))?;
    // Of 40 connections, all reach one of two servers once in 2^39 runs.
    let servers = servers_of(client, CHECKED, 40)?;
    assert_eq!(servers.len(), 2, "{servers:?}");
    // The first connection of a client only selects its server: OVN 23.03 drops its packets, also
    // over Open vSwitch.
    http_get_within(client, AFFINE, 80, Duration::from_millis(200))?;
    let servers = servers_of(client, AFFINE, 20)?;
    assert_eq!(servers.len(), 1, "{servers:?}");
    // The server that ends gets no connections.
    drop(third);
    wait_for_health(context, &cloud, [("p2", "online"), ("p3", "offline")])?;
    let servers = servers_of(client, CHECKED, 20)?;
    let two = "two 10.1.0.1".to_owned();
    assert_eq!(servers, BTreeSet::from([two]));
    cloud.expect_clean_run();
    Ok(())
}
