//! What the database says of bonds and of LACP beside who shares frames how, beside a real
//! Open vSwitch that is told the same.

use testbed::Failure;

use crate::support::comparison::{NetworkPair, SideBySide};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::{appctl, start_ovs_vswitchd};

pub(crate) const TESTS: &[SystemTest] = tests![
    who_was_active_is_again_after_a_restart,
    every_member_takes_frames_to_many_if_that_is_wanted,
    a_station_that_says_that_it_moved_behind_a_bond_is_believed_once,
    an_interface_may_speak_lacp_alone,
    a_bond_may_have_an_interface_of_its_name_and_ask_for_mii,
];

/// A bond of the ports of hosts 2 and 3.
pub(crate) const BOND: &str = "del-port br0 p2 -- del-port br0 p3 -- add-bond br0 bond0 p2 p3 \
                    -- set Interface p2 ofport_request=2 -- set Interface p3 ofport_request=3";

/// Waits until what is told has this in it.
fn wait_for(deployment: &Deployment<'_, '_>, question: &str, part: &str) -> Result<(), Failure> {
    let what = format!("'{question}' to tell '{part}'");
    let is_told = || Ok(appctl(deployment, question)?.contains(part));
    deployment.network.context.wait_until(&what, is_told)
}

/// What begins the lines about a member that carries what only one may.
fn is_active(member: &str) -> String {
    format!("member {member}: enabled\n  active member\n")
}

/// Has a member be active.
pub(crate) fn activate(deployment: &Deployment<'_, '_>, member: &str) -> Result<(), Failure> {
    let enabled = format!("member {member}: enabled");
    wait_for(deployment, "bond/show bond0", &enabled)?;
    appctl(
        deployment,
        &format!("bond/set-active-member bond0 {member}"),
    )?;
    wait_for(deployment, "bond/show bond0", &is_active(member))
}

/// Has the second member be active, and waits until the database has it.
pub(crate) fn activate_second(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    wait_for(deployment, "bond/show bond0", "member p2: enabled")?;
    activate(deployment, "p3")?;
    second_is_active(deployment)
}

fn second_is_active(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    wait_for(deployment, "bond/show bond0", &is_active("p3"))?;
    let address = deployment.vsctl("get Interface p3 mac_in_use")?;
    deployment.wait_for_column("get Port bond0 bond_active_slave", &address)
}

fn who_was_active_is_again_after_a_restart(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    {
        let _daemon = deployment.start_daemon()?;
        deployment.vsctl("add-br br0 -- add-port br0 p1 -- add-bond br0 bond0 p2 p3")?;
        activate_second(&deployment)?;
    }
    for _ in 0..2 {
        let _daemon = deployment.start_daemon()?;
        second_is_active(&deployment)?;
    }
    // One that leads nowhere is not waited for.
    network.host(3).namespace.set_down("eth0")?;
    let _daemon = deployment.start_daemon()?;
    wait_for(&deployment, "bond/show bond0", &is_active("p2"))?;
    network.host(3).namespace.set_up("eth0")?;
    wait_for(&deployment, "bond/show bond0", "member p3: enabled")?;
    wait_for(&deployment, "bond/show bond0", &is_active("p2"))?;
    Ok(())
}

fn every_member_takes_frames_to_many_if_that_is_wanted(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&pair.comporta, "ours")?,
        Deployment::in_directory(&pair.ovs, "theirs")?,
    );
    let both = SideBySide::start(&ours, &other)?;
    both.vsctl(&format!("{BOND} -- set Port bond0 bond_mode=balance-slb"))?;
    for deployment in both.deployments() {
        activate_second(deployment)?;
    }
    let reached = |from, station: u8| {
        let frame = format!(
            "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:{station:02x},type=0x88b5)/data(50)"
        );
        both.receivers(from, &frame)
    };
    assert_eq!(reached(3, 0x31)?, [1, 4]);
    assert_eq!(reached(2, 0x21)?, [0_u8; 0], "it is there twice");
    both.vsctl("set Port bond0 other_config:all-members-active=true")?;
    for deployment in both.deployments() {
        wait_for(deployment, "bond/show bond0", "all members active: true")?;
    }
    assert_eq!(reached(3, 0x32)?, [1, 4]);
    assert_eq!(reached(2, 0x22)?, [1, 4]);
    Ok(())
}

/// What a station says of itself to all by ARP, or to `target`: `op` is 1 of a request.
fn says(op: u8, target: &str) -> String {
    format!(
        "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:51) / arp(op={op},sha=02:00:00:00:01:51,\
         spa=10.1.0.51,tha=00:00:00:00:00:00,tpa={target})"
    )
}

/// Whether a switch knows that station behind the first host's port, and not behind the bond.
fn is_at_first(deployment: &Deployment<'_, '_>) -> Result<Option<bool>, Failure> {
    let stations = appctl(deployment, "fdb/show br0")?;
    let mut lines = stations.lines();
    let line = lines.find(|line| line.contains("  02:00:00:00:01:51"));
    Ok(line.map(|line| line.split_whitespace().next() == Some("1")))
}

/// Has a host send a frame that no flow of Open vSwitch's data path is there for, and waits until
/// both know that station there, or not.
fn moves(
    both: &SideBySide<'_, '_>,
    from: usize,
    frame: &str,
    is_first: bool,
) -> Result<(), Failure> {
    for deployment in both.deployments() {
        deployment
            .network
            .context
            .wait_until("the station to have moved", || {
                appctl(deployment, "revalidator/purge")?;
                deployment.network.host(from).send(&[frame])?;
                Ok(is_at_first(deployment)? == Some(is_first))
            })?;
    }
    Ok(())
}

fn a_station_that_says_that_it_moved_behind_a_bond_is_believed_once(
    context: &TestContext,
) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&pair.comporta, "ours")?,
        Deployment::in_directory(&pair.ovs, "theirs")?,
    );
    let both = SideBySide::start(&ours, &other)?;
    both.vsctl(&format!("{BOND} -- set Port bond0 bond_mode=balance-slb"))?;
    for deployment in both.deployments() {
        activate_second(deployment)?;
    }
    let plain = "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:51,type=0x88b5)/data(50)";
    let (request, answer, question) = (
        says(1, "10.1.0.51"),
        says(2, "10.1.0.9"),
        says(1, "10.1.0.9"),
    );
    let news = "eth(dst=33:33:00:00:00:01,src=02:00:00:00:01:51) / ipv6(src=fe80::51,dst=ff02::1) / \
                nd(type=136,target=fe80::51)";
    let nobody = [0_u8; 0];
    moves(&both, 1, plain, true)?;
    // What comes by the bond is an echo, until it says that it has moved.
    for frame in [plain, &question, news] {
        assert_eq!(both.receivers(3, frame)?, nobody, "{frame}");
    }
    assert_eq!(both.receivers(3, &request)?, [1, 4]);
    moves(&both, 3, plain, false)?;
    assert_eq!(both.receivers(3, plain)?, [1, 4]);
    // Nobody else is sure enough of where it is to say so for it.
    moves(&both, 1, plain, true)?;
    assert_eq!(both.receivers(3, &answer)?, [1, 4]);
    // It says that it is back, and is heard of by the bond, too: that is an echo.
    moves(&both, 1, &request, true)?;
    for deployment in both.deployments() {
        appctl(deployment, "revalidator/purge")?;
    }
    assert_eq!(both.receivers(3, &request)?, nobody);
    assert_eq!(both.receivers(3, &answer)?, nobody);
    for deployment in both.deployments() {
        assert_eq!(is_at_first(deployment)?, Some(true));
    }
    // For some seconds.
    moves(&both, 3, &request, false)?;
    Ok(())
}

fn an_interface_may_speak_lacp_alone(context: &TestContext) -> TestResult {
    let (here, there) = (TestNetwork::new(context, 1)?, TestNetwork::new(context, 2)?);
    here.switch_namespace
        .join("c1", &there.switch_namespace, "c1")?;
    for home in [&here.switch_namespace, &there.switch_namespace] {
        home.set_up("c1")?;
    }
    let (ours, other) = (
        Deployment::in_directory(&here, "ours")?,
        Deployment::in_directory(&there, "theirs")?,
    );
    let (_ours, _theirs) = (ours.start_daemon()?, start_ovs_vswitchd(&other, "")?);
    for (deployment, port) in [(&ours, "p1"), (&other, "p2")] {
        deployment.vsctl(&format!(
            "add-br br0 -- set Bridge br0 datapath_type=netdev -- add-port br0 {port} \
             -- add-port br0 c1"
        ))?;
    }
    let (one, two) = (here.host(1), there.host(2));
    let active = "set Port c1 lacp=active other_config:lacp-time=fast \
                  other_config:lacp-system-priority=7 other_config:lacp-system-id=02:00:00:00:00:77 \
                  -- set Interface c1 other_config:lacp-port-id=9 other_config:lacp-aggregation-key=5";
    ours.vsctl(active)?;
    // It carries frames whether there is a partner or not.
    wait_for(&ours, "lacp/show c1", "member: c1: defaulted detached")?;
    ours.wait_for_column("get Interface c1 lacp_current", "false")?;
    one.ping_until_reply(two.address)?;
    other.vsctl("set Port c1 lacp=passive other_config:lacp-time=fast")?;
    let lines = [
        "status: active negotiated",
        "sys_id: 02:00:00:00:00:77\n  sys_priority: 7\n  aggregation key: 5\n  lacp_time: fast",
        "member: c1: current attached\n  port_id: 9\n",
    ];
    for part in lines {
        wait_for(&ours, "lacp/show c1", part)?;
    }
    wait_for(&other, "lacp/show c1", "partner sys_id: 02:00:00:00:00:77")?;
    wait_for(&other, "lacp/show c1", "status: passive negotiated")?;
    for deployment in [&ours, &other] {
        deployment.wait_for_column("get Interface c1 lacp_current", "true")?;
        assert_eq!(appctl(deployment, "bond/show")?, "", "it is no bond");
        assert_eq!(deployment.vsctl("get Port c1 bond_active_slave")?, "[]");
    }
    one.ping(two.address, 5)?;
    assert_eq!(ours.vsctl("get Interface c1 error")?, "[]");
    let stations = appctl(&ours, "fdb/show br0")?;
    assert!(stations.contains("02:00:00:00:00:02"), "{stations}");
    // Nothing of it is left.
    ours.vsctl("clear Port c1 lacp")?;
    ours.wait_for_column("get Interface c1 lacp_current", "[]")?;
    assert_eq!(appctl(&ours, "lacp/show")?, "");
    one.ping(two.address, 2)?;
    Ok(())
}

/// The numbers that a bridge has ports under, by their names.
fn numbers(deployment: &Deployment<'_, '_>) -> Result<Vec<String>, Failure> {
    let shown = deployment.run_tool("ovs-ofctl show br0")?;
    let ports = shown.lines().filter(|line| line.contains("): addr:"));
    let mut names: Vec<_> = ports
        .filter_map(|line| Some(line.trim().split_once(')')?.0.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

fn a_bond_may_have_an_interface_of_its_name_and_ask_for_mii(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&pair.comporta, "ours")?,
        Deployment::in_directory(&pair.ovs, "theirs")?,
    );
    let both = SideBySide::start(&ours, &other)?;
    let mii = "other_config:bond-detect-mode=miimon other_config:bond-miimon-interval=50";
    both.vsctl(&format!("{BOND} -- set Port bond0 {mii}"))?;
    for deployment in both.deployments() {
        activate_second(deployment)?;
    }
    // Open vSwitch's data path in userspace fails to make such an interface.
    ours.vsctl("set Port bond0 bond_fake_iface=true")?;
    context.wait_until("an interface bond0", || {
        Ok(numbers(&ours)?.contains(&"5(bond0".to_owned()))
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
        "only what a rule sends: {first}"
    );
    // A link that is lost is seen.
    for network in [&pair.comporta, &pair.ovs] {
        network.host(3).namespace.set_down("eth0")?;
    }
    for deployment in both.deployments() {
        wait_for(deployment, "bond/show bond0", "member p3: disabled")?;
        wait_for(deployment, "bond/show bond0", &is_active("p2"))?;
    }
    assert_eq!(
        ours.vsctl("--columns=error --bare list Interface p2 p3")?,
        ""
    );
    ours.vsctl("set Port bond0 bond_fake_iface=false")?;
    context.wait_until("no interface bond0", || {
        Ok(!numbers(&ours)?.contains(&"5(bond0".to_owned()))
    })?;
    assert_eq!(numbers(&ours)?, numbers(&other)?);
    Ok(())
}
