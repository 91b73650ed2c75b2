//! Bridges that listen in to who wants which multicast groups' frames, beside Open vSwitch:
//! what hosts and routers say is made by hand, and by the protocols of real hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use testbed::{Failure, Process};

use crate::l2::bond_settings::{BOND, activate, activate_second};
use crate::support::command::program;
use crate::support::comparison::{NetworkPair, SideBySide, deliver};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::appctl;

pub(crate) const TESTS: &[SystemTest] = tests![
    frames_of_groups_go_to_who_has_said_that_they_want_them,
    what_nobody_asked_for_goes_to_all_or_to_routers,
    ports_that_want_all_have_it_and_vlans_are_apart,
    members_of_groups_behind_a_bond_are_reached_by_one_interface,
    programs_that_join_groups_hear_them_and_no_others,
];

/// A group of each protocol, and one that nobody joins.
const FOUR: Ipv4Addr = Ipv4Addr::new(239, 1, 1, 1);
const SIX: Ipv6Addr = Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0, 7);
const NOBODYS: Ipv4Addr = Ipv4Addr::new(239, 9, 9, 9);

/// No host.
const NOBODY: [u8; 0] = [];

/// The Internet's checksum of `bytes`, whose number is even (RFC 1071).
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum = words.sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    let folded = (sum & 0xffff) + (sum >> 16);
    (!u16::try_from(folded).expect("no carry is left")).to_be_bytes()
}

/// A frame of host `from` to a group, in a VLAN, with this behind its IP header.
fn frame(from: u8, vid: u16, to: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = match to {
        IpAddr::V4(to) => {
            let [_, a, b, c] = to.octets();
            vec![1, 0, 0x5e, a & 0x7f, b, c]
        }
        IpAddr::V6(to) => [&[0x33, 0x33], &to.octets()[12..]].concat(),
    };
    frame.extend([2, 0, 0, 0, 1, from]);
    if vid != 0 {
        frame.extend([0x81, 0]);
        frame.extend(vid.to_be_bytes());
    }
    let length = u8::try_from(payload.len()).expect("it is short");
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
            frame.extend([8, 0]);
            frame.extend(header);
        }
        IpAddr::V6(to) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, length, protocol, 1]);
            frame.extend(sender(from).octets());
            frame.extend(to.octets());
        }
    }
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

fn sender(from: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, from.into())
}

/// A datagram of host `from` to a group.
fn datagram(from: u8, to: impl Into<IpAddr>) -> Vec<u8> {
    frame(from, 0, to.into(), 17, &[0; 20])
}

/// A message of IGMP to `to`.
fn igmp(from: u8, vid: u16, to: Ipv4Addr, message: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum);
    frame(from, vid, to.into(), 2, &message)
}

/// A message of MLD to `to`.
fn mld(from: u8, to: Ipv6Addr, message: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    let length = u8::try_from(message.len()).expect("it is short");
    let pseudo = [
        &sender(from).octets()[..],
        &to.octets(),
        &[0, 0, 0, length, 0, 0, 0, 58],
    ];
    let sum = checksum(&[&pseudo.concat()[..], &message].concat());
    message[2..4].copy_from_slice(&sum);
    frame(from, 0, to.into(), 58, &message)
}

/// That a host is in a group, by IGMP's second version.
fn joins(from: u8, vid: u16, group: Ipv4Addr) -> Vec<u8> {
    igmp(
        from,
        vid,
        group,
        &[&[0x16, 0, 0, 0], &group.octets()[..]].concat(),
    )
}

/// That a router is there.
fn asks(from: u8) -> Vec<u8> {
    let all = Ipv4Addr::new(224, 0, 0, 1);
    igmp(from, 0, all, &[0x11, 100, 0, 0, 0, 0, 0, 0])
}

/// The hosts that a frame reaches.
#[track_caller]
fn reached(both: &SideBySide<'_, '_>, from: usize, sent: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let come = both.deliver_bytes(from, &[sent])?;
    let number = |line: String| line.as_bytes()[0] - b'0';
    Ok(come.into_iter().map(number).collect())
}

/// Who is in groups of these tests, as a switch shows it: rows without their ages, sorted.
fn shown(deployment: &Deployment<'_, '_>) -> Result<Vec<String>, Failure> {
    let text = appctl(deployment, "mdb/show br0")?;
    let mut rows: Vec<_> = text
        .lines()
        .filter(|row| row.contains("  239.") || row.contains("  ff15:") || row.contains("querier"))
        .map(|row| {
            row.trim_end_matches(|digit: char| digit.is_ascii_digit())
                .to_owned()
        })
        // One digit or two: how wide the age is does not matter.
        .map(|row| row.trim_end().to_owned())
        .collect();
    rows.sort();
    Ok(rows)
}

impl SideBySide<'_, '_> {
    /// Waits until both show these rows.
    fn show(&self, rows: &[&str]) -> Result<(), Failure> {
        for deployment in self.deployments() {
            let what = format!("{rows:?} to be shown");
            let wait = deployment
                .network
                .context
                .wait_until(&what, || Ok(shown(deployment)? == rows));
            if wait.is_err() {
                assert_eq!(shown(deployment)?, rows);
            }
        }
        Ok(())
    }
}

fn frames_of_groups_go_to_who_has_said_that_they_want_them(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&pair.comporta, "ours")?,
        Deployment::in_directory(&pair.ovs, "theirs")?,
    );
    let both = SideBySide::start(&ours, &other)?;
    for question in ["mdb/show br0", "mdb/flush br0", "mdb/show br9", "mdb/show"] {
        both.appctl(question)?;
    }
    assert_eq!(reached(&both, 1, datagram(1, FOUR))?, [2, 3, 4]);
    both.vsctl("set Bridge br0 mcast_snooping_enable=true")?;
    assert_eq!(
        reached(&both, 1, datagram(1, FOUR))?,
        [2, 3, 4],
        "nobody has joined"
    );
    // What a host says goes to routers, of which there are none yet.
    assert_eq!(reached(&both, 2, joins(2, 0, FOUR))?, NOBODY);
    both.show(&["    2     0  239.1.1.1"])?;
    assert_eq!(reached(&both, 1, datagram(1, FOUR))?, [2]);
    assert_eq!(reached(&both, 4, asks(4))?, [1, 2, 3]);
    both.show(&["    2     0  239.1.1.1", "    4     0  querier"])?;
    assert_eq!(reached(&both, 1, datagram(1, FOUR))?, [2, 4]);
    // By IGMP's third version, two groups at once; one of them left by the second.
    let third = [
        0x22, 0, 0, 0, 0, 0, 0, 2, 4, 0, 0, 0, 239, 1, 1, 1, 4, 0, 0, 0, 239, 2, 2, 2,
    ];
    let to = Ipv4Addr::new(224, 0, 0, 22);
    assert_eq!(reached(&both, 3, igmp(3, 0, to, &third))?, [4]);
    let rows = [
        "    2     0  239.1.1.1",
        "    3     0  239.1.1.1",
        "    3     0  239.2.2.2",
        "    4     0  querier",
    ];
    both.show(&rows)?;
    assert_eq!(reached(&both, 1, datagram(1, FOUR))?, [2, 3, 4]);
    let leave = igmp(
        3,
        0,
        Ipv4Addr::new(224, 0, 0, 2),
        &[0x17, 0, 0, 0, 239, 1, 1, 1],
    );
    assert_eq!(reached(&both, 3, leave)?, [4]);
    both.show(&[rows[0], rows[2], rows[3]])?;
    assert_eq!(reached(&both, 1, datagram(1, FOUR))?, [2, 4]);
    Ok(())
}

fn what_nobody_asked_for_goes_to_all_or_to_routers(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&pair.comporta, "ours")?,
        Deployment::in_directory(&pair.ovs, "theirs")?,
    );
    let both = SideBySide::start(&ours, &other)?;
    both.vsctl("set Bridge br0 mcast_snooping_enable=true")?;
    reached(&both, 4, asks(4))?;
    reached(&both, 2, joins(2, 0, FOUR))?;
    let rows = ["    2     0  239.1.1.1", "    4     0  querier"];
    both.show(&rows)?;
    // Who joins and leaves by MLD.
    let message = |kind| [&[kind, 0, 0, 0, 0, 0, 0, 0], &SIX.octets()[..]].concat();
    assert_eq!(reached(&both, 3, mld(3, SIX, &message(131)))?, [4]);
    both.show(&[rows[0], "    3     0  ff15::7", rows[1]])?;
    assert_eq!(reached(&both, 1, datagram(1, SIX))?, [3, 4]);
    let routers = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
    assert_eq!(reached(&both, 3, mld(3, routers, &message(132)))?, [4]);
    both.show(&rows)?;
    // What is of the link is for all, and so is what is for nobody, unless that is not wanted.
    let link = [
        IpAddr::from([224, 0, 0, 251]),
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).into(),
    ];
    for group in link.into_iter().chain([NOBODYS.into()]) {
        assert_eq!(reached(&both, 1, datagram(1, group))?, [2, 3, 4], "{group}");
    }
    both.vsctl("set Bridge br0 other_config:mcast-snooping-disable-flood-unregistered=true")?;
    assert_eq!(reached(&both, 1, datagram(1, NOBODYS))?, [4]);
    for group in link {
        assert_eq!(reached(&both, 1, datagram(1, group))?, [2, 3, 4], "{group}");
    }
    // What is damaged is not believed.
    let mut damaged = joins(3, 0, NOBODYS);
    damaged[14 + 20 + 2] ^= 1;
    assert_eq!(reached(&both, 3, damaged)?, [4]);
    both.show(&rows)?;
    assert_eq!(
        both.appctl("mdb/flush br0")?,
        "table successfully flushed\n"
    );
    both.show(&[])?;
    assert_eq!(reached(&both, 1, datagram(1, FOUR))?, NOBODY);
    Ok(())
}

fn ports_that_want_all_have_it_and_vlans_are_apart(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&pair.comporta, "ours")?,
        Deployment::in_directory(&pair.ovs, "theirs")?,
    );
    let both = SideBySide::start(&ours, &other)?;
    both.vsctl(
        "set Bridge br0 mcast_snooping_enable=true \
         other_config:mcast-snooping-disable-flood-unregistered=true \
         -- set Port p3 other_config:mcast-snooping-flood=true \
         -- set Port p4 other_config:mcast-snooping-flood-reports=true",
    )?;
    assert_eq!(reached(&both, 1, datagram(1, FOUR))?, [3]);
    assert_eq!(reached(&both, 2, joins(2, 0, FOUR))?, [4]);
    both.show(&["    2     0  239.1.1.1"])?;
    assert_eq!(reached(&both, 1, datagram(1, FOUR))?, [2, 3]);
    // Where all goes nothing is learned, and where reports go nobody leaves.
    assert_eq!(reached(&both, 3, joins(3, 0, FOUR))?, [4]);
    assert_eq!(reached(&both, 4, joins(4, 0, FOUR))?, NOBODY);
    let leave = igmp(
        4,
        0,
        Ipv4Addr::new(224, 0, 0, 2),
        &[0x17, 0, 0, 0, 239, 1, 1, 1],
    );
    assert_eq!(reached(&both, 4, leave)?, NOBODY);
    let rows = ["    2     0  239.1.1.1", "    4     0  239.1.1.1"];
    both.show(&rows)?;
    assert_eq!(reached(&both, 1, datagram(1, FOUR))?, [2, 3, 4]);
    // In another VLAN there is another group of this address.
    assert_eq!(reached(&both, 2, joins(2, 10, NOBODYS))?, [4]);
    both.show(&[rows[0], "    2    10  239.9.9.9", rows[1]])?;
    assert_eq!(reached(&both, 1, datagram(1, NOBODYS))?, [3]);
    // Who is in another VLAN now has said nothing there.
    both.vsctl("set Port p2 tag=10")?;
    both.show(&[rows[1]])?;
    both.vsctl("set Bridge br0 mcast_snooping_enable=false")?;
    both.appctl("mdb/show br0")?;
    Ok(())
}

/// Where a group's members are, as a switch shows it: any interface of a bond stands for it.
fn places_of(deployment: &Deployment<'_, '_>, group: Ipv4Addr) -> Result<Vec<String>, Failure> {
    let text = appctl(deployment, "mdb/show br0")?;
    let group = group.to_string();
    let rows = text.lines().filter(|row| row.contains(&group));
    let ports = rows.filter_map(|row| row.split_whitespace().next());
    Ok(ports.map(|port| port.replace('3', "2")).collect())
}

fn members_of_groups_behind_a_bond_are_reached_by_one_interface(
    context: &TestContext,
) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&pair.comporta, "ours")?,
        Deployment::in_directory(&pair.ovs, "theirs")?,
    );
    let both = SideBySide::start(&ours, &other)?;
    both.vsctl(&format!(
        "{BOND} -- set Bridge br0 mcast_snooping_enable=true \
         other_config:mcast-snooping-disable-flood-unregistered=true"
    ))?;
    for deployment in both.deployments() {
        activate_second(deployment)?;
    }
    // Who is heard by an interface that takes nothing is not there.
    assert_eq!(reached(&both, 2, joins(2, 0, NOBODYS))?, NOBODY);
    assert_eq!(reached(&both, 3, joins(3, 0, FOUR))?, NOBODY);
    for deployment in both.deployments() {
        let what = "the group to be known at the bond";
        deployment
            .network
            .context
            .wait_until(what, || Ok(places_of(deployment, FOUR)? == ["2"]))?;
        assert_eq!(
            places_of(deployment, NOBODYS)?,
            NOBODY.map(|_| String::new())
        );
    }
    assert_eq!(reached(&both, 1, datagram(1, FOUR))?, [3]);
    assert_eq!(reached(&both, 1, datagram(1, NOBODYS))?, NOBODY);
    // A router behind the bond hears what hosts say, once. Were a member of the same group there, Open
    // vSwitch would send to both.
    let other_group = Ipv4Addr::new(239, 2, 2, 2);
    assert_eq!(reached(&both, 3, asks(3))?, [1, 4]);
    assert_eq!(reached(&both, 4, joins(4, 0, other_group))?, [3]);
    assert_eq!(reached(&both, 1, datagram(1, other_group))?, [3, 4]);
    assert_eq!(reached(&both, 1, datagram(1, NOBODYS))?, [3]);
    // Another interface leads to the same members.
    for deployment in both.deployments() {
        activate(deployment, "p2")?;
        appctl(deployment, "revalidator/purge")?;
    }
    assert_eq!(reached(&both, 1, datagram(1, other_group))?, [2, 4]);
    // By source, either leads there; which, is chance.
    both.vsctl("set Port bond0 bond_mode=balance-slb")?;
    for deployment in both.deployments() {
        for from in 0x10..0x18 {
            let told = deliver(deployment.network, 1, &[datagram(from, other_group)])?;
            let ports: Vec<_> = told.iter().map(|line| line.as_bytes()[0]).collect();
            assert!(matches!(ports[..], [b'2' | b'3', b'4']), "{told:?}");
        }
    }
    Ok(())
}

/// A program at a host that is in these groups; it has joined them.
fn listener(network: &TestNetwork<'_>, host: usize, groups: &str) -> Result<Process, Failure> {
    let app = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("apps/listener.py");
    let host = network.host(host);
    host.run("sysctl -w net.ipv6.conf.eth0.disable_ipv6=0")?
        .expect_success()?;
    let words = format!("python3 {} {} {groups}", app.display(), host.interface);
    let heard = network.context.unique_path("listener");
    let program = program(&words).inside(&host.namespace).log(heard);
    let process = network.context.spawner.start(program)?;
    network
        .context
        .wait_until("a listener", || Ok(process.written()?.contains("joined")))?;
    Ok(process)
}

fn programs_that_join_groups_hear_them_and_no_others(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&pair.comporta, "ours")?,
        Deployment::in_directory(&pair.ovs, "theirs")?,
    );
    let both = SideBySide::start(&ours, &other)?;
    both.vsctl(
        "set Bridge br0 mcast_snooping_enable=true \
         other_config:mcast-snooping-disable-flood-unregistered=true",
    )?;
    let mut listeners = Vec::new();
    for deployment in both.deployments() {
        let first = listener(deployment.network, 2, "239.1.1.1 ff15::7")?;
        let second = listener(deployment.network, 3, "239.1.1.1 239.2.2.2")?;
        listeners.push((deployment, first, second));
    }
    both.show(&[
        "    2     0  239.1.1.1",
        "    2     0  ff15::7",
        "    3     0  239.1.1.1",
        "    3     0  239.2.2.2",
    ])?;
    assert_eq!(reached(&both, 1, datagram(1, FOUR))?, [2, 3]);
    assert_eq!(reached(&both, 1, datagram(1, SIX))?, [2]);
    assert_eq!(reached(&both, 1, datagram(1, NOBODYS))?, NOBODY);
    // Who ends has left its groups: their hosts say so.
    for (_, first, _) in &mut listeners {
        first.kill()?;
    }
    both.show(&["    3     0  239.1.1.1", "    3     0  239.2.2.2"])?;
    assert_eq!(reached(&both, 1, datagram(1, FOUR))?, [3]);
    assert_eq!(reached(&both, 1, datagram(1, SIX))?, NOBODY);
    // Open vSwitch's data path in userspace does not finish the checksums of hosts.
    if let Some((deployment, _, second)) = listeners.first_mut() {
        say(deployment.network, 1, "239.2.2.2", "hello")?;
        deployment
            .network
            .context
            .wait_until("it to be heard", || {
                Ok(second.written()?.contains("239.2.2.2 hello"))
            })?;
    }
    Ok(())
}

/// Has a program at a host say something to a group.
fn say(network: &TestNetwork<'_>, host: usize, group: &str, what: &str) -> Result<(), Failure> {
    let script = format!(
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
         s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('{}')); \
         s.sendto(b'{what}', ('{group}', 7777))",
        network.host(host).address
    );
    let program = program("python3 -c")
        .arg(script)
        .inside(&network.host(host).namespace);
    crate::support::command::CommandOutput::run(network.context, program)?
        .expect_success()
        .map(drop)
}
