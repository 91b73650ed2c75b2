//! Multicast between chassis, by membership.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::ovn::{OvnCloud, OvnNetwork};

pub(crate) const TESTS: &[SystemTest] = tests![ovn_forwards_multicast_to_members_on_other_chassis,];

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 1, 1);
const PORT: u16 = 7777;

fn ovn_forwards_multicast_to_members_on_other_chassis(context: &TestContext) -> TestResult {
    let network = OvnNetwork::new(context, &[&[1], &[2], &[3]])?;
    let deployments = network.deploy()?;
    let cloud = OvnCloud::start(&network, &deployments)?;
    cloud.add_switch("sw0")?;
    cloud.add_hosts("sw0", &[1, 2, 3])?;
    cloud.nbctl(
        "set Logical_Switch sw0 other_config:mcast_snoop=true other_config:mcast_querier=true \
         other_config:mcast_eth_src=\"02:00:00:00:01:01\" other_config:mcast_ip4_src=10.1.0.254",
    )?;
    cloud.sync()?;
    let [sender, member, other] = [1, 2, 3].map(|number| network.host(number));
    sender.ping_until_reply(other.address)?;
    let mut capture = other.capture_frames()?;
    let failure = || Failure::to("exchange multicast datagrams");
    let address = member.address;
    let receiver = member.namespace.run(|| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
        socket.join_multicast_v4(&GROUP, &address)?;
        socket.set_read_timeout(Some(Duration::from_millis(20)))?;
        Ok::<_, std::io::Error>(socket)
    })?;
    let receiver = receiver.map_err(failure())?;
    context.wait_until("the membership in the database", || {
        let groups = cloud.sbctl("--bare --columns=address list IGMP_Group")?;
        Ok(groups.contains(&GROUP.to_string()))
    })?;
    sender
        .run("ip route add 239.0.0.0/8 dev eth0")?
        .expect_success()?;
    let socket = sender
        .namespace
        .run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?
        .map_err(failure())?;
    let mut room = [0; 100];
    context.wait_until("a datagram at the member", || {
        socket.send_to(b"hello", (GROUP, PORT)).map_err(failure())?;
        Ok(receiver.recv(&mut room).is_ok())
    })?;
    // A later ping follows all datagrams.
    sender.ping(other.address, 1)?;
    loop {
        let frame = capture.next_frame()?;
        let bytes = frame.bytes();
        let is_datagram = bytes[..6] == [1, 0, 0x5e, 1, 1, 1] && bytes[23] == 17;
        assert!(!is_datagram, "a datagram reached a host without membership");
        if bytes[6..12] == sender.mac && bytes[12..14] == [8, 0] && bytes[23] == 1 {
            break;
        }
    }
    cloud.expect_clean_run();
    Ok(())
}
