//! Logical switches and routers over several chassis, connected by Geneve, and the protocols that
//! OVN answers itself.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::host::TestHost;
use crate::support::ovn::{OvnCloud, OvnNetwork};
use crate::support::responder::{HttpResponder, http_get};

pub(crate) const TESTS: &[SystemTest] = tests![
    ovn_switches_and_routers_span_chassis,
    ovn_answers_dhcp_arp_and_neighbor_discovery,
    ovn_chassis_with_open_vswitch_and_with_comporta_form_one_network,
];

/// Ports of the router between `sw0` and `sw1`.
const ROUTER_PORTS: [(&str, &str, u8); 2] = [
    ("sw0", "10.1.0.254/24 fd01::fe/64", 1),
    ("sw1", "10.2.0.254/24 fd02::fe/64", 2),
];

/// Sets the addresses of hosts 1 and 2 for `sw0`, and of host 3 for `sw1`.
fn move_hosts(network: &mut OvnNetwork<'_>) -> Result<(), Failure> {
    network.move_host(1, [10, 1, 0, 1])?;
    network.move_host(2, [10, 1, 0, 2])?;
    network.move_host(3, [10, 2, 0, 3])
}

/// Adds both logical switches and the router.
fn add_logical_network(cloud: &OvnCloud<'_, '_>) -> Result<(), Failure> {
    for (switch, hosts) in [("sw0", &[1, 2][..]), ("sw1", &[3])] {
        cloud.add_switch(switch)?;
        cloud.add_hosts(switch, hosts)?;
    }
    cloud.add_router("r0", &ROUTER_PORTS)?;
    cloud.sync()
}

/// Pings and transfers files between all pairs of hosts; frames have the largest size.
fn check_paths(network: &OvnNetwork<'_>, bytes: usize) -> Result<(), Failure> {
    let [one, two, three] = [1, 2, 3].map(|number| network.host(number));
    for (from, to, ttl) in [(one, two, 64), (one, three, 63), (three, two, 63)] {
        from.ping_until_reply(to.address)?;
        from.ping(to.address, 5)?;
        let largest = from
            .run(&format!("ping -n -c 2 -M do -s 1472 {}", to.address))?
            .expect_success()?;
        assert!(largest.contains(&format!("ttl={ttl} ")), "{largest}");
        from.exchange_files(to, bytes)?;
    }
    Ok(())
}

fn ovn_switches_and_routers_span_chassis(context: &TestContext) -> TestResult {
    let mut network = OvnNetwork::new(context, &[&[1], &[2], &[3]])?;
    move_hosts(&mut network)?;
    let deployments = network.deploy()?;
    let cloud = OvnCloud::start(&network, &deployments)?;
    add_logical_network(&cloud)?;
    check_paths(&network, 1 << 20)?;
    // The router answers pings itself.
    network.host(1).ping(Ipv4Addr::new(10, 2, 0, 254), 3)?;
    cloud.expect_clean_run();
    Ok(())
}

fn ovn_chassis_with_open_vswitch_and_with_comporta_form_one_network(
    context: &TestContext,
) -> TestResult {
    let mut network = OvnNetwork::new(context, &[&[1], &[2, 3]])?;
    move_hosts(&mut network)?;
    let deployments = network.deploy()?;
    let cloud = OvnCloud::start_with(&network, &deployments, &[2])?;
    add_logical_network(&cloud)?;
    let [one, two, three] = [1, 2, 3].map(|number| network.host(number));
    one.ping_until_reply(two.address)?;
    one.ping_until_reply(three.address)?;
    // Open vSwitch's side has no segmentation of large packets.
    one.exchange_files(two, 200_000)?;
    one.exchange_files(three, 200_000)?;
    // Connections that both chassis track.
    cloud.nbctl(
        "acl-add sw0 to-lport 1001 'outport == \"p2\" && tcp.dst == 80' allow-related \
         -- acl-add sw0 to-lport 1000 'outport == \"p2\" && ip4' drop \
         -- lb-add lb0 172.30.0.1:80 10.1.0.2:80,10.2.0.3:80 -- ls-lb-add sw0 lb0",
    )?;
    cloud.sync()?;
    let _servers = [
        HttpResponder::start(two, 80, "two")?,
        HttpResponder::start(three, 80, "three")?,
    ];
    assert_eq!(http_get(one, two.address, 80)?, "two 10.1.0.1");
    assert!(!one.can_ping(two.address)?, "the access list drops it");
    context.wait_until("answers of both servers", || {
        let mut names = Vec::new();
        for _ in 0..10 {
            names.push(http_get(one, Ipv4Addr::new(172, 30, 0, 1), 80)?);
        }
        let has = |name: &str| names.iter().any(|page| page.starts_with(name));
        Ok(has("two") && has("three"))
    })?;
    cloud.expect_clean_run();
    Ok(())
}

fn ovn_answers_dhcp_arp_and_neighbor_discovery(context: &TestContext) -> TestResult {
    let mut network = OvnNetwork::new(context, &[&[1], &[2]])?;
    network.move_host(1, [10, 1, 0, 1])?;
    let deployments = network.deploy()?;
    let cloud = OvnCloud::start(&network, &deployments)?;
    cloud.add_switch("sw0")?;
    cloud.add_hosts("sw0", &[1, 2])?;
    cloud.add_router("r0", &ROUTER_PORTS[..1])?;
    cloud.nbctl("set Logical_Router_Port r0-sw0 ipv6_ra_configs:address_mode=slaac")?;
    let options = cloud.nbctl(
        "create DHCP_Options cidr=10.1.0.0/24 options:lease_time=3600 options:router=10.1.0.254 \
         options:server_id=10.1.0.254 options:server_mac=\"02:00:00:00:01:01\"",
    )?;
    cloud.nbctl(&format!("lsp-set-dhcpv4-options p2 {}", options.trim()))?;
    cloud.sync()?;
    let (one, two) = (network.host(1), network.host(2));
    let interface = two.interface;
    two.run(&format!("ip address flush dev {interface}"))?
        .expect_success()?;
    two.run(&format!("ip route add default dev {interface}"))?
        .expect_success()?;
    assert_eq!(lease_address(two)?, Ipv4Addr::new(10, 1, 0, 2));
    two.namespace.add_address(interface, two.address, 24)?;
    check_arp_responder(one, two)?;
    // Router advertisements configure the first host, and OVN answers for the second.
    for (host, name) in [(one, "accept_dad"), (two, "accept_ra")] {
        let eth0 = |setting: &str| format!("net/ipv6/conf/eth0/{setting}");
        host.namespace.set_sysctl(&eth0(name), "0")?;
        host.namespace
            .set_sysctl(&eth0("router_solicitation_delay"), "0")?;
        host.namespace.set_sysctl(&eth0("disable_ipv6"), "0")?;
    }
    two.run("ip address add fd01::2/64 dev eth0 nodad")?
        .expect_success()?;
    context.wait_until("an address by a router advertisement", || {
        let addresses = one.run("ip -6 address show dev eth0")?.expect_success()?;
        Ok(addresses.contains("fd01::ff:fe00:1/64"))
    })?;
    context.wait_until("a reply by IPv6", || {
        let ping = one.run("ping -n -q -c 1 -W 0.5 fd01::2")?;
        Ok(ping.status.success())
    })?;
    cloud.expect_clean_run();
    Ok(())
}

/// Asserts that a request for the address of `two` does not reach it: OVN answers.
fn check_arp_responder(one: &TestHost<'_>, two: &TestHost<'_>) -> Result<(), Failure> {
    one.run("ip neighbour flush dev eth0")?.expect_success()?;
    let mut capture = two.capture_frames()?;
    one.ping_until_reply(two.address)?;
    loop {
        let frame = capture.next_frame()?;
        let bytes = frame.bytes();
        // An ARP request of host 1, or its ping.
        let from_one = bytes[6..12] == one.mac;
        let is_request = bytes[12..14] == [8, 6] && bytes[21] == 1;
        assert!(!(from_one && is_request), "the request reached the host");
        if from_one && bytes[12..14] == [8, 0] {
            return Ok(());
        }
    }
}

/// Message types of DHCP (RFC 2132, 9.6).
const DISCOVER: u8 = 1;
const OFFER: u8 = 2;
const REQUEST: u8 = 3;
const ACK: u8 = 5;

/// Requests a lease as a DHCP client does (RFC 2131), and returns the address.
fn lease_address(host: &TestHost<'_>) -> Result<Ipv4Addr, Failure> {
    let failure = || Failure::to("request a lease by DHCP");
    let socket = host
        .namespace
        .run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 68)))?;
    let socket = socket.map_err(failure())?;
    socket.set_broadcast(true).map_err(failure())?;
    socket
        .set_read_timeout(Some(WAIT_LIMIT))
        .map_err(failure())?;
    let exchange = |kind: u8, options: &[u8]| {
        let message = dhcp_message(host.mac, kind, options);
        socket.send_to(&message, (Ipv4Addr::BROADCAST, 67))?;
        let mut reply = [0; 1500];
        let length = socket.recv(&mut reply)?;
        let reply = reply.get(..length).filter(|reply| reply.len() > 243);
        let reply = reply.ok_or(io::ErrorKind::UnexpectedEof)?;
        let address: [u8; 4] = reply[16..20].try_into().expect("four bytes");
        // The type is the first option.
        Ok::<_, io::Error>((reply[242], Ipv4Addr::from(address)))
    };
    let (kind, offered) = exchange(DISCOVER, &[]).map_err(failure())?;
    assert_eq!(kind, OFFER);
    let [a, b, c, d] = offered.octets();
    let options = [50, 4, a, b, c, d, 54, 4, 10, 1, 0, 254];
    let (kind, leased) = exchange(REQUEST, &options).map_err(failure())?;
    assert_eq!((kind, leased), (ACK, offered));
    Ok(leased)
}

/// A message of a DHCP client, which accepts a reply by broadcast.
fn dhcp_message(mac: [u8; 6], kind: u8, options: &[u8]) -> Vec<u8> {
    let mut message = vec![0; 236];
    message[..3].copy_from_slice(&[1, 1, 6]);
    message[4..8].copy_from_slice(&[1, 2, 3, 4]);
    message[10] = 0x80;
    message[28..34].copy_from_slice(&mac);
    // The cookie (RFC 2131, 3), and the type.
    message.extend([0x63, 0x82, 0x53, 0x63, 53, 1, kind]);
    message.extend(options);
    message.push(255);
    message
}
