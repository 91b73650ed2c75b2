//! Access lists, port groups and quality of service between hosts on different chassis.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream, UdpSocket};
use std::time::Duration;

use packet::build::Stack;
use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::host::TestHost;
use crate::support::ovn::{OvnCloud, OvnNetwork};
use crate::support::responder::{HttpResponder, http_get, http_get_within};

pub(crate) const TESTS: &[SystemTest] = tests![
    ovn_access_lists_hold_across_chassis,
    ovn_marks_and_limits_traffic_across_chassis,
];

/// Rules for the port group `servers`: web traffic is tracked and logged, one port is rejected,
/// other TCP is dropped and logged; UDP passes without connection tracking.
const ACCESS_LISTS: [&str; 4] = [
    "--log --name=web --severity=info acl-add servers to-lport 1002 \
     'outport == @servers && tcp.dst == 80' allow-related",
    "acl-add servers to-lport 1001 'outport == @servers && tcp.dst == 81' reject",
    "--log --name=rest --severity=warning acl-add servers to-lport 1000 \
     'outport == @servers && tcp' drop",
    "acl-add sw0 from-lport 1000 udp allow-stateless -- acl-add sw0 to-lport 1000 udp \
     allow-stateless",
];

/// A time in which an answer would arrive.
const NO_ANSWER: Duration = Duration::from_millis(400);

/// Adds `sw0` with hosts 1 to 3.
fn add_logical_switch(cloud: &OvnCloud<'_, '_>, hosts: &[u8]) -> Result<(), Failure> {
    cloud.add_switch("sw0")?;
    cloud.add_hosts("sw0", hosts)?;
    cloud.sync()
}

/// Binds a UDP socket on a host.
fn bind(host: &TestHost<'_>, port: u16) -> Result<UdpSocket, Failure> {
    let socket = host
        .namespace
        .run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)))?;
    let failure = || Failure::to("bind a UDP socket");
    let socket = socket.map_err(failure())?;
    socket
        .set_read_timeout(Some(WAIT_LIMIT))
        .map_err(failure())?;
    Ok(socket)
}

fn ovn_access_lists_hold_across_chassis(context: &TestContext) -> TestResult {
    let network = OvnNetwork::new(context, &[&[1], &[2], &[3]])?;
    let deployments = network.deploy()?;
    let cloud = OvnCloud::start(&network, &deployments)?;
    add_logical_switch(&cloud, &[1, 2, 3])?;
    cloud.nbctl("pg-add servers p2 p3")?;
    for list in ACCESS_LISTS {
        cloud.nbctl(list)?;
    }
    cloud.sync()?;
    let [one, two, three] = [1, 2, 3].map(|number| network.host(number));
    one.ping_until_reply(two.address)?;
    one.ping_until_reply(three.address)?;
    let mut servers = Vec::new();
    for (host, name) in [(two, "two"), (three, "three")] {
        for port in [80, 81, 82] {
            servers.push(HttpResponder::start(host, port, name)?);
        }
        assert_eq!(http_get(one, host.address, 80)?, format!("{name} 10.1.0.1"));
        assert_eq!(http_get_within(one, host.address, 82, NO_ANSWER)?, None);
        let rejected = SocketAddrV4::new(host.address, 81).into();
        let rejected = one
            .namespace
            .run(|| TcpStream::connect_timeout(&rejected, WAIT_LIMIT))?;
        let error = rejected.err().map(|error| error.kind());
        assert_eq!(error, Some(io::ErrorKind::ConnectionRefused));
    }
    // A port that leaves the group is no longer protected.
    cloud.nbctl("pg-set-ports servers p2")?;
    cloud.sync()?;
    assert_eq!(http_get(one, three.address, 82)?, "three 10.1.0.1");
    assert_eq!(http_get_within(one, two.address, 82, NO_ANSWER)?, None);
    check_tracking(&cloud, one, two)?;
    context.wait_until("the log of the access lists", || {
        let log = cloud.chassis(2).controller_log()?;
        let entries = ["\"web\", verdict=allow", "\"rest\", verdict=drop"];
        Ok(entries.iter().all(|entry| log.contains(entry)))
    })?;
    cloud.expect_clean_run();
    Ok(())
}

/// Asserts that the switch of chassis 2 tracks the connections to its web server, but not UDP.
fn check_tracking(
    cloud: &OvnCloud<'_, '_>,
    one: &TestHost<'_>,
    two: &TestHost<'_>,
) -> Result<(), Failure> {
    let (client, server) = (bind(one, 5000)?, bind(two, 5000)?);
    let failure = || Failure::to("exchange datagrams");
    client
        .send_to(b"request", (two.address, 5000))
        .map_err(failure())?;
    let (_, from) = server.recv_from(&mut [0; 100]).map_err(failure())?;
    server.send_to(b"reply", from).map_err(failure())?;
    client.recv_from(&mut [0; 100]).map_err(failure())?;
    let tracked = cloud
        .chassis(2)
        .deployment
        .run_tool("ovs-appctl dpctl/dump-conntrack")?;
    assert!(tracked.contains("dport=80"), "{tracked}");
    assert!(!tracked.contains("udp"), "{tracked}");
    Ok(())
}

fn ovn_marks_and_limits_traffic_across_chassis(context: &TestContext) -> TestResult {
    const DATAGRAMS: usize = 400;
    let network = OvnNetwork::new(context, &[&[1], &[2]])?;
    let deployments = network.deploy()?;
    let cloud = OvnCloud::start(&network, &deployments)?;
    add_logical_switch(&cloud, &[1, 2])?;
    cloud.nbctl(
        "qos-add sw0 from-lport 100 'inport == \"p1\" && udp' dscp=46 \
         -- qos-add sw0 from-lport 100 'inport == \"p2\" && udp' rate=1000 burst=100",
    )?;
    cloud.sync()?;
    let (one, two) = (network.host(1), network.host(2));
    one.ping_until_reply(two.address)?;
    let failure = || Failure::to("exchange datagrams");
    let (first, second) = (bind(one, 5000)?, bind(two, 5000)?);
    // A mark of expedited forwarding crosses the tunnel.
    let mut capture = two.capture_frames()?;
    first
        .send_to(b"marked", (two.address, 5000))
        .map_err(failure())?;
    loop {
        let frame = capture.next_frame()?;
        let text = Stack::dissect(&frame).to_string();
        if text.contains("udp") {
            assert_eq!(frame.bytes()[15], 46 << 2, "{text}");
            break;
        }
    }
    // Megabit per second: of 3.2 megabits at once, little more than the burst passes.
    for _ in 0..DATAGRAMS {
        second
            .send_to(&[0; 1000], (one.address, 5000))
            .map_err(failure())?;
    }
    first
        .set_read_timeout(Some(Duration::from_millis(500)))
        .map_err(failure())?;
    let mut room = [0; 1500];
    let received = std::iter::from_fn(|| first.recv(&mut room).ok()).count();
    assert!((5..DATAGRAMS / 4).contains(&received), "{received}");
    cloud.expect_clean_run();
    Ok(())
}
