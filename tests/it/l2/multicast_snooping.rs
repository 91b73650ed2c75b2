//! Multicast snooping compared with Open vSwitch: IGMP and MLD messages of hosts and routers are
//! built by the tests, or sent by real hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use testbed::{Failure, Process};

use crate::l2::bond_settings::{BOND, activate_member, activate_second_member};
use crate::support::command::{CommandOutput, program};
use crate::support::comparison::{NetworkPair, SideBySide, deliver};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::appctl;

pub(crate) const TESTS: &[SystemTest] = tests![
    multicast_is_forwarded_to_members_and_routers,
    unregistered_multicast_is_flooded_or_sent_to_routers,
    flood_ports_receive_all_groups_and_vlans_are_separate,
    multicast_reaches_members_behind_a_bond_once,
    programs_receive_only_joined_groups,
];

/// A group of each protocol, and one without members.
const IPV4_GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 1, 1);
const IPV6_GROUP: Ipv6Addr = Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0, 7);
const IPV4_GROUP_WITHOUT_MEMBERS: Ipv4Addr = Ipv4Addr::new(239, 9, 9, 9);

/// No host.
const NO_HOST: [u8; 0] = [];

/// Internet checksum (RFC 1071) of an even number of bytes.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum = words.sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    let folded = (sum & 0xffff) + (sum >> 16);
    (!u16::try_from(folded).expect("the folded sum has 16 bits")).to_be_bytes()
}

/// A frame from host `from` to a group, with a VLAN tag unless `vid` is 0, and with this IP
/// payload.
fn multicast_frame(from: u8, vid: u16, to: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut multicast_frame = match to {
        IpAddr::V4(to) => {
            let [_, a, b, c] = to.octets();
            vec![1, 0, 0x5e, a & 0x7f, b, c]
        }
        IpAddr::V6(to) => [&[0x33, 0x33], &to.octets()[12..]].concat(),
    };
    multicast_frame.extend([2, 0, 0, 0, 1, from]);
    if vid != 0 {
        multicast_frame.extend([0x81, 0]);
        multicast_frame.extend(vid.to_be_bytes());
    }
    let length = u8::try_from(payload.len()).expect("a message is shorter than 256 bytes");
    match to {
        IpAddr::V4(to) => {
            let mut header = [
                0x45,
                0,
                0,
                20 + length,
                0,
                0,
                0,
                0,
                1,
                protocol,
                0,
                0,
                10,
                1,
                0,
                from,
                0,
                0,
                0,
                0,
            ];
            header[16..].copy_from_slice(&to.octets());
            let sum = checksum(&header);
            header[10..12].copy_from_slice(&sum);
            multicast_frame.extend([8, 0]);
            multicast_frame.extend(header);
        }
        IpAddr::V6(to) => {
            multicast_frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, length, protocol, 1]);
            multicast_frame.extend(host_address(from).octets());
            multicast_frame.extend(to.octets());
        }
    }
    multicast_frame.extend(payload);
    multicast_frame.resize(multicast_frame.len().max(60), 0);
    multicast_frame
}

fn host_address(from: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, from.into())
}

/// A UDP datagram from host `from` to a group.
fn datagram(from: u8, to: impl Into<IpAddr>) -> Vec<u8> {
    multicast_frame(from, 0, to.into(), 17, &[0; 20])
}

/// An IGMP message to `to`.
fn igmp(from: u8, vid: u16, to: Ipv4Addr, message: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum);
    multicast_frame(from, vid, to.into(), 2, &message)
}

/// An MLD message to `to`.
fn mld(from: u8, to: Ipv6Addr, message: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    let length = u8::try_from(message.len()).expect("a message is shorter than 256 bytes");
    let pseudo = [
        &host_address(from).octets()[..],
        &to.octets(),
        &[0, 0, 0, length, 0, 0, 0, 58],
    ];
    let sum = checksum(&[&pseudo.concat()[..], &message].concat());
    message[2..4].copy_from_slice(&sum);
    multicast_frame(from, 0, to.into(), 58, &message)
}

/// IGMPv2 membership report.
fn membership_report(from: u8, vid: u16, group: Ipv4Addr) -> Vec<u8> {
    igmp(
        from,
        vid,
        group,
        &[&[0x16, 0, 0, 0], &group.octets()[..]].concat(),
    )
}

/// IGMP general query of a router.
fn general_query(from: u8) -> Vec<u8> {
    let all = Ipv4Addr::new(224, 0, 0, 1);
    igmp(from, 0, all, &[0x11, 100, 0, 0, 0, 0, 0, 0])
}

/// Numbers of the hosts that receive a frame.
#[track_caller]
fn receivers(both: &SideBySide<'_, '_>, from: usize, sent: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let lines = both.deliver_bytes(from, &[sent])?;
    let number = |line: String| line.as_bytes()[0] - b'0';
    Ok(lines.into_iter().map(number).collect())
}

/// Rows of `mdb/show` about the tests' groups and queriers, without ages, sorted.
fn group_rows(deployment: &Deployment<'_, '_>) -> Result<Vec<String>, Failure> {
    let text = appctl(deployment, "mdb/show br0")?;
    let mut rows: Vec<_> = text
        .lines()
        .filter(|row| row.contains("  239.") || row.contains("  ff15:") || row.contains("querier"))
        .map(|row| {
            row.trim_end_matches(|digit: char| digit.is_ascii_digit())
                .to_owned()
        })
        // The width of the age varies.
        .map(|row| row.trim_end().to_owned())
        .collect();
    rows.sort();
    Ok(rows)
}

impl SideBySide<'_, '_> {
    /// Waits until both switches show these rows.
    fn wait_for_rows(&self, rows: &[&str]) -> Result<(), Failure> {
        for deployment in self.deployments() {
            let what = format!("the rows {rows:?}");
            let wait = deployment
                .network
                .context
                .wait_until(&what, || Ok(group_rows(deployment)? == rows));
            if wait.is_err() {
                assert_eq!(group_rows(deployment)?, rows);
            }
        }
        Ok(())
    }
}

fn multicast_is_forwarded_to_members_and_routers(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let both = SideBySide::start(&comporta, &ovs)?;
    for command in ["mdb/show br0", "mdb/flush br0", "mdb/show br9", "mdb/show"] {
        both.appctl(command)?;
    }
    assert_eq!(receivers(&both, 1, datagram(1, IPV4_GROUP))?, [2, 3, 4]);
    both.vsctl("set Bridge br0 mcast_snooping_enable=true")?;
    assert_eq!(
        receivers(&both, 1, datagram(1, IPV4_GROUP))?,
        [2, 3, 4],
        "a group without members is flooded"
    );
    // Reports are forwarded to routers, of which there are none yet.
    assert_eq!(
        receivers(&both, 2, membership_report(2, 0, IPV4_GROUP))?,
        NO_HOST
    );
    both.wait_for_rows(&["    2     0  239.1.1.1"])?;
    assert_eq!(receivers(&both, 1, datagram(1, IPV4_GROUP))?, [2]);
    assert_eq!(receivers(&both, 4, general_query(4))?, [1, 2, 3]);
    both.wait_for_rows(&["    2     0  239.1.1.1", "    4     0  querier"])?;
    assert_eq!(receivers(&both, 1, datagram(1, IPV4_GROUP))?, [2, 4]);
    // An IGMPv3 report for two groups, and an IGMPv2 leave for one of them.
    let report_v3 = [
        0x22, 0, 0, 0, 0, 0, 0, 2, 4, 0, 0, 0, 239, 1, 1, 1, 4, 0, 0, 0, 239, 2, 2, 2,
    ];
    let to = Ipv4Addr::new(224, 0, 0, 22);
    assert_eq!(receivers(&both, 3, igmp(3, 0, to, &report_v3))?, [4]);
    let rows = [
        "    2     0  239.1.1.1",
        "    3     0  239.1.1.1",
        "    3     0  239.2.2.2",
        "    4     0  querier",
    ];
    both.wait_for_rows(&rows)?;
    assert_eq!(receivers(&both, 1, datagram(1, IPV4_GROUP))?, [2, 3, 4]);
    let leave = igmp(
        3,
        0,
        Ipv4Addr::new(224, 0, 0, 2),
        &[0x17, 0, 0, 0, 239, 1, 1, 1],
    );
    assert_eq!(receivers(&both, 3, leave)?, [4]);
    both.wait_for_rows(&[rows[0], rows[2], rows[3]])?;
    assert_eq!(receivers(&both, 1, datagram(1, IPV4_GROUP))?, [2, 4]);
    Ok(())
}

fn unregistered_multicast_is_flooded_or_sent_to_routers(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let both = SideBySide::start(&comporta, &ovs)?;
    both.vsctl("set Bridge br0 mcast_snooping_enable=true")?;
    receivers(&both, 4, general_query(4))?;
    receivers(&both, 2, membership_report(2, 0, IPV4_GROUP))?;
    let rows = ["    2     0  239.1.1.1", "    4     0  querier"];
    both.wait_for_rows(&rows)?;
    // Join and leave by MLD.
    let message = |kind| [&[kind, 0, 0, 0, 0, 0, 0, 0], &IPV6_GROUP.octets()[..]].concat();
    assert_eq!(receivers(&both, 3, mld(3, IPV6_GROUP, &message(131)))?, [4]);
    both.wait_for_rows(&[rows[0], "    3     0  ff15::7", rows[1]])?;
    assert_eq!(receivers(&both, 1, datagram(1, IPV6_GROUP))?, [3, 4]);
    let routers = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
    assert_eq!(receivers(&both, 3, mld(3, routers, &message(132)))?, [4]);
    both.wait_for_rows(&rows)?;
    // Link-local groups are flooded. Groups without members are flooded unless that is disabled.
    let link_local = [
        IpAddr::from([224, 0, 0, 251]),
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).into(),
    ];
    for group in link_local
        .into_iter()
        .chain([IPV4_GROUP_WITHOUT_MEMBERS.into()])
    {
        assert_eq!(
            receivers(&both, 1, datagram(1, group))?,
            [2, 3, 4],
            "{group}"
        );
    }
    both.vsctl("set Bridge br0 other_config:mcast-snooping-disable-flood-unregistered=true")?;
    assert_eq!(
        receivers(&both, 1, datagram(1, IPV4_GROUP_WITHOUT_MEMBERS))?,
        [4]
    );
    for group in link_local {
        assert_eq!(
            receivers(&both, 1, datagram(1, group))?,
            [2, 3, 4],
            "{group}"
        );
    }
    // A report with a wrong checksum is not learned.
    let mut corrupt = membership_report(3, 0, IPV4_GROUP_WITHOUT_MEMBERS);
    corrupt[14 + 20 + 2] ^= 1;
    assert_eq!(receivers(&both, 3, corrupt)?, [4]);
    both.wait_for_rows(&rows)?;
    assert_eq!(
        both.appctl("mdb/flush br0")?,
        "table successfully flushed\n"
    );
    both.wait_for_rows(&[])?;
    assert_eq!(receivers(&both, 1, datagram(1, IPV4_GROUP))?, NO_HOST);
    Ok(())
}

fn flood_ports_receive_all_groups_and_vlans_are_separate(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let both = SideBySide::start(&comporta, &ovs)?;
    both.vsctl(
        "set Bridge br0 mcast_snooping_enable=true \
         other_config:mcast-snooping-disable-flood-unregistered=true \
         -- set Port p3 other_config:mcast-snooping-flood=true \
         -- set Port p4 other_config:mcast-snooping-flood-reports=true",
    )?;
    assert_eq!(receivers(&both, 1, datagram(1, IPV4_GROUP))?, [3]);
    assert_eq!(
        receivers(&both, 2, membership_report(2, 0, IPV4_GROUP))?,
        [4]
    );
    both.wait_for_rows(&["    2     0  239.1.1.1"])?;
    assert_eq!(receivers(&both, 1, datagram(1, IPV4_GROUP))?, [2, 3]);
    // No group is learned at a port that floods all multicast, and no leave is processed at a port
    // that receives all reports.
    assert_eq!(
        receivers(&both, 3, membership_report(3, 0, IPV4_GROUP))?,
        [4]
    );
    assert_eq!(
        receivers(&both, 4, membership_report(4, 0, IPV4_GROUP))?,
        NO_HOST
    );
    let leave = igmp(
        4,
        0,
        Ipv4Addr::new(224, 0, 0, 2),
        &[0x17, 0, 0, 0, 239, 1, 1, 1],
    );
    assert_eq!(receivers(&both, 4, leave)?, NO_HOST);
    let rows = ["    2     0  239.1.1.1", "    4     0  239.1.1.1"];
    both.wait_for_rows(&rows)?;
    assert_eq!(receivers(&both, 1, datagram(1, IPV4_GROUP))?, [2, 3, 4]);
    // A group's members are separate per VLAN.
    assert_eq!(
        receivers(
            &both,
            2,
            membership_report(2, 10, IPV4_GROUP_WITHOUT_MEMBERS)
        )?,
        [4]
    );
    both.wait_for_rows(&[rows[0], "    2    10  239.9.9.9", rows[1]])?;
    assert_eq!(
        receivers(&both, 1, datagram(1, IPV4_GROUP_WITHOUT_MEMBERS))?,
        [3]
    );
    // Entries of a port are removed when its VLAN changes.
    both.vsctl("set Port p2 tag=10")?;
    both.wait_for_rows(&[rows[1]])?;
    both.vsctl("set Bridge br0 mcast_snooping_enable=false")?;
    both.appctl("mdb/show br0")?;
    Ok(())
}

/// Ports of a group's members as shown by `mdb/show`; any member interface stands for the bond.
fn member_ports(deployment: &Deployment<'_, '_>, group: Ipv4Addr) -> Result<Vec<String>, Failure> {
    let text = appctl(deployment, "mdb/show br0")?;
    let group = group.to_string();
    let rows = text.lines().filter(|row| row.contains(&group));
    let ports = rows.filter_map(|row| row.split_whitespace().next());
    Ok(ports.map(|port| port.replace('3', "2")).collect())
}

fn multicast_reaches_members_behind_a_bond_once(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let both = SideBySide::start(&comporta, &ovs)?;
    both.vsctl(&format!(
        "{BOND} -- set Bridge br0 mcast_snooping_enable=true \
         other_config:mcast-snooping-disable-flood-unregistered=true"
    ))?;
    for deployment in both.deployments() {
        activate_second_member(deployment)?;
    }
    let without_members = datagram(1, IPV4_GROUP_WITHOUT_MEMBERS);
    let unlearned_report = membership_report(2, 0, IPV4_GROUP_WITHOUT_MEMBERS);
    // Reports by an inactive member are dropped.
    assert_eq!(receivers(&both, 2, unlearned_report)?, NO_HOST);
    assert_eq!(
        receivers(&both, 3, membership_report(3, 0, IPV4_GROUP))?,
        NO_HOST
    );
    for deployment in both.deployments() {
        let what = "the group to be learned at the bond";
        deployment
            .network
            .context
            .wait_until(what, || Ok(member_ports(deployment, IPV4_GROUP)? == ["2"]))?;
        assert_eq!(
            member_ports(deployment, IPV4_GROUP_WITHOUT_MEMBERS)?,
            NO_HOST.map(|_| String::new())
        );
    }
    assert_eq!(receivers(&both, 1, datagram(1, IPV4_GROUP))?, [3]);
    assert_eq!(receivers(&both, 1, without_members.clone())?, NO_HOST);
    // A router behind the bond receives reports once. If a member of the same group were there,
    // Open vSwitch would send to both.
    let other_group = Ipv4Addr::new(239, 2, 2, 2);
    assert_eq!(receivers(&both, 3, general_query(3))?, [1, 4]);
    assert_eq!(
        receivers(&both, 4, membership_report(4, 0, other_group))?,
        [3]
    );
    assert_eq!(receivers(&both, 1, datagram(1, other_group))?, [3, 4]);
    assert_eq!(receivers(&both, 1, without_members)?, [3]);
    // The other interface of the bond reaches the same members.
    for deployment in both.deployments() {
        activate_member(deployment, "p2")?;
        appctl(deployment, "revalidator/purge")?;
    }
    assert_eq!(receivers(&both, 1, datagram(1, other_group))?, [2, 4]);
    // With balance-slb a hash of the source selects the interface.
    both.vsctl("set Port bond0 bond_mode=balance-slb")?;
    for deployment in both.deployments() {
        for from in 0x10..0x18 {
            let lines = deliver(deployment.network, 1, &[datagram(from, other_group)])?;
            let ports: Vec<_> = lines.iter().map(|line| line.as_bytes()[0]).collect();
            assert!(matches!(ports[..], [b'2' | b'3', b'4']), "{lines:?}");
        }
    }
    Ok(())
}

/// Starts a program on a host that joins these groups, and waits until it has.
fn start_listener(
    network: &TestNetwork<'_>,
    host: usize,
    groups: &str,
) -> Result<Process, Failure> {
    let app = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("apps/listener.py");
    let host = network.host(host);
    host.run("sysctl -w net.ipv6.conf.eth0.disable_ipv6=0")?
        .expect_success()?;
    let words = format!("python3 {} {} {groups}", app.display(), host.interface);
    let log = network.context.unique_path("listener");
    let program = program(&words).inside(&host.namespace).log(log);
    let process = network.context.spawner.start(program)?;
    network.context.wait_until("the listener to join", || {
        Ok(process.written()?.contains("joined"))
    })?;
    Ok(process)
}

fn programs_receive_only_joined_groups(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let both = SideBySide::start(&comporta, &ovs)?;
    both.vsctl(
        "set Bridge br0 mcast_snooping_enable=true \
         other_config:mcast-snooping-disable-flood-unregistered=true",
    )?;
    let mut listeners = Vec::new();
    for deployment in both.deployments() {
        let first = start_listener(deployment.network, 2, "239.1.1.1 ff15::7")?;
        let second = start_listener(deployment.network, 3, "239.1.1.1 239.2.2.2")?;
        listeners.push((deployment, first, second));
    }
    both.wait_for_rows(&[
        "    2     0  239.1.1.1",
        "    2     0  ff15::7",
        "    3     0  239.1.1.1",
        "    3     0  239.2.2.2",
    ])?;
    assert_eq!(receivers(&both, 1, datagram(1, IPV4_GROUP))?, [2, 3]);
    assert_eq!(receivers(&both, 1, datagram(1, IPV6_GROUP))?, [2]);
    assert_eq!(
        receivers(&both, 1, datagram(1, IPV4_GROUP_WITHOUT_MEMBERS))?,
        NO_HOST
    );
    // The host of a program that ends sends leave messages.
    for (_, first, _) in &mut listeners {
        first.kill()?;
    }
    both.wait_for_rows(&["    3     0  239.1.1.1", "    3     0  239.2.2.2"])?;
    assert_eq!(receivers(&both, 1, datagram(1, IPV4_GROUP))?, [3]);
    assert_eq!(receivers(&both, 1, datagram(1, IPV6_GROUP))?, NO_HOST);
    // Open vSwitch's userspace datapath does not complete the checksums of hosts.
    if let Some((deployment, _, second)) = listeners.first_mut() {
        send_text(deployment.network, 1, "239.2.2.2", "hello")?;
        deployment
            .network
            .context
            .wait_until("the datagram at the listener", || {
                Ok(second.written()?.contains("239.2.2.2 hello"))
            })?;
    }
    Ok(())
}

/// Sends a datagram to a group by a program on a host.
fn send_text(
    network: &TestNetwork<'_>,
    host: usize,
    group: &str,
    text: &str,
) -> Result<(), Failure> {
    let script = format!(
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
         s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('{}')); \
         s.sendto(b'{text}', ('{group}', 7777))",
        network.host(host).address
    );
    let program = program("python3 -c")
        .arg(script)
        .inside(&network.host(host).namespace);
    CommandOutput::run(network.context, program)?
        .expect_success()
        .map(drop)
}
