//! Bond and LACP settings of the database, compared with Open vSwitch.

use testbed::Failure;

use crate::support::comparison::{NetworkPair, SideBySide};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::{appctl, start_ovs_vswitchd, wait_for_appctl};

pub(crate) const TESTS: &[SystemTest] = tests![
    bond_restores_active_member_after_restart,
    bond_members_all_receive_multicast_if_configured,
    gratuitous_arp_moves_an_address_behind_a_bond_once,
    interface_without_a_bond_speaks_lacp,
    bond_has_a_fake_interface_and_miimon,
];

/// Arguments of `ovs-vsctl` for a bond of the ports of hosts 2 and 3.
pub(crate) const BOND: &str = "del-port br0 p2 -- del-port br0 p3 -- add-bond br0 bond0 p2 p3 \
                    -- set Interface p2 ofport_request=2 -- set Interface p3 ofport_request=3";

/// First lines of `bond/show` about the active member.
fn active_lines(member: &str) -> String {
    format!("member {member}: enabled\n  active member\n")
}

/// Makes a member active, and waits until it is.
pub(crate) fn activate_member(
    deployment: &Deployment<'_, '_>,
    member: &str,
) -> Result<(), Failure> {
    let enabled = format!("member {member}: enabled");
    wait_for_appctl(deployment, "bond/show bond0", &enabled)?;
    appctl(
        deployment,
        &format!("bond/set-active-member bond0 {member}"),
    )?;
    wait_for_appctl(deployment, "bond/show bond0", &active_lines(member))
}

/// Makes the second member active, and waits until the database contains it.
pub(crate) fn activate_second_member(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    wait_for_appctl(deployment, "bond/show bond0", "member p2: enabled")?;
    activate_member(deployment, "p3")?;
    wait_until_second_is_active(deployment)
}

fn wait_until_second_is_active(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    wait_for_appctl(deployment, "bond/show bond0", &active_lines("p3"))?;
    let address = deployment.vsctl("get Interface p3 mac_in_use")?;
    deployment.wait_for_column("get Port bond0 bond_active_slave", &address)
}

fn bond_restores_active_member_after_restart(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    {
        let _daemon = deployment.start_daemon()?;
        deployment.vsctl("add-br br0 -- add-port br0 p1 -- add-bond br0 bond0 p2 p3")?;
        activate_second_member(&deployment)?;
    }
    for _ in 0..2 {
        let _daemon = deployment.start_daemon()?;
        wait_until_second_is_active(&deployment)?;
    }
    // A member without carrier is not waited for.
    network.host(3).namespace.set_down("eth0")?;
    let _daemon = deployment.start_daemon()?;
    wait_for_appctl(&deployment, "bond/show bond0", &active_lines("p2"))?;
    network.host(3).namespace.set_up("eth0")?;
    wait_for_appctl(&deployment, "bond/show bond0", "member p3: enabled")?;
    wait_for_appctl(&deployment, "bond/show bond0", &active_lines("p2"))?;
    Ok(())
}

fn bond_members_all_receive_multicast_if_configured(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let both = SideBySide::start(&comporta, &ovs)?;
    both.vsctl(&format!("{BOND} -- set Port bond0 bond_mode=balance-slb"))?;
    for deployment in both.deployments() {
        activate_second_member(deployment)?;
    }
    let receivers = |from, station: u8| {
        let frame = format!(
            "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:{station:02x},type=0x88b5)/data(50)"
        );
        both.receivers(from, &frame)
    };
    assert_eq!(receivers(3, 0x31)?, [1, 4]);
    assert_eq!(receivers(2, 0x21)?, [0_u8; 0], "both members flood it");
    both.vsctl("set Port bond0 other_config:all-members-active=true")?;
    for deployment in both.deployments() {
        wait_for_appctl(deployment, "bond/show bond0", "all members active: true")?;
    }
    assert_eq!(receivers(3, 0x32)?, [1, 4]);
    assert_eq!(receivers(2, 0x22)?, [1, 4]);
    Ok(())
}

/// Broadcast ARP packet of the station for `target`; `op` is 1 for a request.
fn arp_packet(op: u8, target: &str) -> String {
    format!(
        "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:51) / arp(op={op},sha=02:00:00:00:01:51,\
         spa=10.1.0.51,tha=00:00:00:00:00:00,tpa={target})"
    )
}

/// Returns true if the station is learned at host 1's port, false if at the bond, or `None` if it
/// is not learned.
fn is_at_first_host(deployment: &Deployment<'_, '_>) -> Result<Option<bool>, Failure> {
    let entries = appctl(deployment, "fdb/show br0")?;
    let mut lines = entries.lines();
    let line = lines.find(|line| line.contains("  02:00:00:00:01:51"));
    Ok(line.map(|line| line.split_whitespace().next() == Some("1")))
}

/// Sends a frame after a purge of Open vSwitch's flow cache, and waits until both switches have
/// learned the station there, or not.
fn send_until_learned(
    both: &SideBySide<'_, '_>,
    from: usize,
    frame: &str,
    is_first: bool,
) -> Result<(), Failure> {
    for deployment in both.deployments() {
        deployment.network.context.wait_until(
            "the station to be learned at its new port",
            || {
                appctl(deployment, "revalidator/purge")?;
                deployment.network.host(from).send(&[frame])?;
                Ok(is_at_first_host(deployment)? == Some(is_first))
            },
        )?;
    }
    Ok(())
}

fn gratuitous_arp_moves_an_address_behind_a_bond_once(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let both = SideBySide::start(&comporta, &ovs)?;
    both.vsctl(&format!("{BOND} -- set Port bond0 bond_mode=balance-slb"))?;
    for deployment in both.deployments() {
        activate_second_member(deployment)?;
    }
    let plain = "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:51,type=0x88b5)/data(50)";
    let (gratuitous_arp, arp_reply, arp_request) = (
        arp_packet(1, "10.1.0.51"),
        arp_packet(2, "10.1.0.9"),
        arp_packet(1, "10.1.0.9"),
    );
    let neighbour_advertisement = "eth(dst=33:33:00:00:00:01,src=02:00:00:00:01:51) / ipv6(src=fe80::51,dst=ff02::1) / \
                nd(type=136,target=fe80::51)";
    let no_host = [0_u8; 0];
    send_until_learned(&both, 1, plain, true)?;
    // Frames by the bond are reflections, except for a gratuitous ARP.
    for frame in [plain, &arp_request, neighbour_advertisement] {
        assert_eq!(both.receivers(3, frame)?, no_host, "{frame}");
    }
    assert_eq!(both.receivers(3, &gratuitous_arp)?, [1, 4]);
    send_until_learned(&both, 3, plain, false)?;
    assert_eq!(both.receivers(3, plain)?, [1, 4]);
    // A broadcast ARP reply counts as gratuitous too: only the station itself sends one.
    send_until_learned(&both, 1, plain, true)?;
    assert_eq!(both.receivers(3, &arp_reply)?, [1, 4]);
    // After a gratuitous ARP at host 1's port, the same frame by the bond is a reflection.
    send_until_learned(&both, 1, &gratuitous_arp, true)?;
    for deployment in both.deployments() {
        appctl(deployment, "revalidator/purge")?;
    }
    assert_eq!(both.receivers(3, &gratuitous_arp)?, no_host);
    assert_eq!(both.receivers(3, &arp_reply)?, no_host);
    for deployment in both.deployments() {
        assert_eq!(is_at_first_host(deployment)?, Some(true));
    }
    // The lock on the address lasts some seconds.
    send_until_learned(&both, 3, &gratuitous_arp, false)?;
    Ok(())
}

fn interface_without_a_bond_speaks_lacp(context: &TestContext) -> TestResult {
    let pair = NetworkPair::with_hosts(context, 2)?;
    pair.connect(&["c1"])?;
    let [comporta, ovs] = pair.deploy()?;
    let (_ours, _theirs) = (comporta.start_daemon()?, start_ovs_vswitchd(&ovs, "")?);
    for (deployment, port) in [(&comporta, "p1"), (&ovs, "p2")] {
        deployment.vsctl(&format!(
            "add-br br0 -- set Bridge br0 datapath_type=netdev -- add-port br0 {port} \
             -- add-port br0 c1"
        ))?;
    }
    let (one, two) = (pair.comporta.host(1), pair.ovs.host(2));
    let active = "set Port c1 lacp=active other_config:lacp-time=fast \
                  other_config:lacp-system-priority=7 other_config:lacp-system-id=02:00:00:00:00:77 \
                  -- set Interface c1 other_config:lacp-port-id=9 other_config:lacp-aggregation-key=5";
    comporta.vsctl(active)?;
    // It forwards frames with and without a partner.
    wait_for_appctl(&comporta, "lacp/show c1", "member: c1: defaulted detached")?;
    comporta.wait_for_column("get Interface c1 lacp_current", "false")?;
    one.ping_until_reply(two.address)?;
    ovs.vsctl("set Port c1 lacp=passive other_config:lacp-time=fast")?;
    let lines = [
        "status: active negotiated",
        "sys_id: 02:00:00:00:00:77\n  sys_priority: 7\n  aggregation key: 5\n  lacp_time: fast",
        "member: c1: current attached\n  port_id: 9\n",
    ];
    for part in lines {
        wait_for_appctl(&comporta, "lacp/show c1", part)?;
    }
    wait_for_appctl(&ovs, "lacp/show c1", "partner sys_id: 02:00:00:00:00:77")?;
    wait_for_appctl(&ovs, "lacp/show c1", "status: passive negotiated")?;
    for deployment in [&comporta, &ovs] {
        deployment.wait_for_column("get Interface c1 lacp_current", "true")?;
        assert_eq!(appctl(deployment, "bond/show")?, "", "the port is no bond");
        assert_eq!(deployment.vsctl("get Port c1 bond_active_slave")?, "[]");
    }
    one.ping(two.address, 5)?;
    assert_eq!(comporta.vsctl("get Interface c1 error")?, "[]");
    let entries = appctl(&comporta, "fdb/show br0")?;
    assert!(entries.contains("02:00:00:00:00:02"), "{entries}");
    // LACP leaves no state behind.
    comporta.vsctl("clear Port c1 lacp")?;
    comporta.wait_for_column("get Interface c1 lacp_current", "[]")?;
    assert_eq!(appctl(&comporta, "lacp/show")?, "");
    one.ping(two.address, 2)?;
    Ok(())
}

/// Port numbers and names of a bridge, sorted.
fn port_numbers(deployment: &Deployment<'_, '_>) -> Result<Vec<String>, Failure> {
    let output = deployment.run_tool("ovs-ofctl show br0")?;
    let ports = output.lines().filter(|line| line.contains("): addr:"));
    let mut names: Vec<_> = ports
        .filter_map(|line| Some(line.trim().split_once(')')?.0.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

fn bond_has_a_fake_interface_and_miimon(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let both = SideBySide::start(&comporta, &ovs)?;
    let mii = "other_config:bond-detect-mode=miimon other_config:bond-miimon-interval=50";
    both.vsctl(&format!("{BOND} -- set Port bond0 {mii}"))?;
    for deployment in both.deployments() {
        activate_second_member(deployment)?;
    }
    // Open vSwitch's userspace datapath fails to create such an interface.
    comporta.vsctl("set Port bond0 bond_fake_iface=true")?;
    context.wait_until("the interface bond0", || {
        Ok(port_numbers(&comporta)?.contains(&"5(bond0".to_owned()))
    })?;
    pair.comporta
        .run("ip link set bond0 up")?
        .expect_success()?;
    let mut capture = pair.comporta.capture_frames("bond0")?;
    let frame = "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:11,type=0x88b5)/data(50)";
    assert_eq!(both.receivers(1, frame)?, [3, 4]);
    let first = packet::build::Stack::dissect(&capture.next_frame()?).to_string();
    assert!(
        first.contains("type=0x88b6"),
        "only frames that a rule sends: {first}"
    );
    // The loss of carrier is detected.
    for network in [&pair.comporta, &pair.ovs] {
        network.host(3).namespace.set_down("eth0")?;
    }
    for deployment in both.deployments() {
        wait_for_appctl(deployment, "bond/show bond0", "member p3: disabled")?;
        wait_for_appctl(deployment, "bond/show bond0", &active_lines("p2"))?;
    }
    assert_eq!(
        comporta.vsctl("--columns=error --bare list Interface p2 p3")?,
        ""
    );
    comporta.vsctl("set Port bond0 bond_fake_iface=false")?;
    context.wait_until("the removal of the interface bond0", || {
        Ok(!port_numbers(&comporta)?.contains(&"5(bond0".to_owned()))
    })?;
    assert_eq!(port_numbers(&comporta)?, port_numbers(&ovs)?);
    Ok(())
}
