//! Connectivity monitoring configured in the database, with a real Open vSwitch at the other end of
//! a cable: BFD, CFM and LLDP.

use testbed::Failure;

use crate::support::comparison::NetworkPair;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::open_vswitch::{appctl, start_ovs_vswitchd, wait_for_appctl};

pub(crate) const TESTS: &[SystemTest] = tests![
    bfd_session_with_open_vswitch_detects_failures,
    cfm_points_with_open_vswitch_detect_failures,
    lldp_neighbours_with_open_vswitch_hear_each_other,
];

const BRIDGE: &str = "add-br br0 -- set Bridge br0 datapath_type=netdev -- add-port br0 c1";

/// Sets the columns of the cable's interface at both ends.
fn configure(both: [&Deployment<'_, '_>; 2], columns: [&str; 2]) -> Result<(), Failure> {
    for (deployment, columns) in both.into_iter().zip(columns) {
        deployment.vsctl(&format!("set Interface c1 {columns}"))?;
    }
    Ok(())
}

/// Reply without times, without numbers that are chosen at random, and without the share of messages
/// that arrived in time, which is less on a busy machine.
fn stable_lines(output: &str) -> Vec<&str> {
    let varies = |line: &&str| {
        let parts = [
            "Time:",
            "Discriminator:",
            "next ",
            "recv since",
            "average health",
        ];
        parts.iter().any(|part| line.contains(part))
    };
    output.lines().filter(|line| !varies(line)).collect()
}

fn bfd_session_with_open_vswitch_detects_failures(context: &TestContext) -> TestResult {
    let pair = NetworkPair::with_hosts(context, 1)?;
    pair.connect(&["c1"])?;
    let [comporta, ovs] = pair.deploy()?;
    let (_daemon, _theirs) = (comporta.start_daemon()?, start_ovs_vswitchd(&ovs, "")?);
    for deployment in [&comporta, &ovs] {
        deployment.vsctl(BRIDGE)?;
    }
    let fast = "bfd:enable=true bfd:min_tx=50 bfd:min_rx=100";
    configure([&comporta, &ovs], [fast, fast])?;
    for deployment in [&comporta, &ovs] {
        wait_for_appctl(deployment, "bfd/show c1", "Local Session State: up")?;
        wait_for_appctl(deployment, "bfd/show c1", "RX Interval: Approx 100ms")?;
        wait_for_appctl(deployment, "bfd/show c1", "Remote Flags: none")?;
        deployment.wait_for_column("get Interface c1 bfd_status:forwarding", "\"true\"")?;
    }
    for command in [
        "bfd/show",
        "bfd/show c1",
        "bfd/show nope",
        "bfd/set-forwarding nope true",
        "bfd/set-forwarding c1 x",
    ] {
        let (own, theirs) = (appctl(&comporta, command)?, appctl(&ovs, command)?);
        assert_eq!(stable_lines(&own), stable_lines(&theirs), "{command}");
    }
    // Control packets bypass the tables, and the port is not live without them.
    comporta.run_tool("ovs-ofctl del-flows br0")?;
    ovs.vsctl("set Interface c1 bfd:cpath_down=true")?;
    wait_for_appctl(&comporta, "bfd/show c1", "Forwarding: false")?;
    let state = || comporta.run_tool("ovs-ofctl -O OpenFlow13 dump-ports-desc br0 c1");
    assert!(!state()?.contains("LIVE"), "{}", state()?);
    ovs.vsctl("set Interface c1 bfd:cpath_down=false")?;
    wait_for_appctl(&comporta, "bfd/show c1", "Forwarding: true")?;
    assert!(state()?.contains("LIVE"), "{}", state()?);
    // A changed interval is negotiated by a poll sequence.
    comporta.vsctl("set Interface c1 bfd:min_rx=300")?;
    wait_for_appctl(&ovs, "bfd/show c1", "TX Interval: Approx 300ms")?;
    ovs.vsctl("set Interface c1 bfd:enable=false")?;
    wait_for_appctl(&comporta, "bfd/show c1", "Control Detection Time Expired")?;
    comporta.wait_for_column("get Interface c1 bfd_status:state", "down")?;
    comporta.vsctl("set Interface c1 bfd:enable=false")?;
    comporta.wait_for_column("get Interface c1 bfd_status", "{}")?;
    Ok(())
}

fn cfm_points_with_open_vswitch_detect_failures(context: &TestContext) -> TestResult {
    let pair = NetworkPair::with_hosts(context, 1)?;
    pair.connect(&["c1"])?;
    let [comporta, ovs] = pair.deploy()?;
    let (_daemon, _theirs) = (comporta.start_daemon()?, start_ovs_vswitchd(&ovs, "")?);
    for deployment in [&comporta, &ovs] {
        deployment.vsctl(BRIDGE)?;
    }
    for mode in [
        "",
        "other_config:cfm_extended=true",
        "other_config:cfm_ccm_vlan=7",
    ] {
        let columns = [1, 2].map(|mpid| {
            format!("cfm_mpid={mpid} other_config:cfm_interval=100 {mode}")
                .trim()
                .to_owned()
        });
        configure([&comporta, &ovs], [&columns[0], &columns[1]])?;
        comporta.wait_for_column("get Interface c1 cfm_remote_mpids", "[2]")?;
        ovs.wait_for_column("get Interface c1 cfm_remote_mpids", "[1]")?;
        for deployment in [&comporta, &ovs] {
            deployment.wait_for_column("get Interface c1 cfm_fault", "false")?;
            deployment.wait_for_column("get Interface c1 cfm_health", "100")?;
        }
        let shown = |deployment, mpid| {
            let text = appctl(deployment, "cfm/show")?;
            let lines = stable_lines(&text).join("\n");
            Ok::<_, Failure>(lines.replace(&format!("MPID {mpid}"), "MPID x"))
        };
        let (own, theirs) = (shown(&comporta, 1)?, shown(&ovs, 2)?);
        assert_eq!(
            own.replace("MPID 2", "MPID y"),
            theirs.replace("MPID 1", "MPID y")
        );
    }
    ovs.vsctl("clear Interface c1 cfm_mpid")?;
    comporta.wait_for_column("get Interface c1 cfm_fault_status", "[recv]")?;
    appctl(&comporta, "cfm/set-fault c1 false")?;
    comporta.wait_for_column("get Interface c1 cfm_fault", "false")?;
    for command in [
        "cfm/show nope",
        "cfm/set-fault nope true",
        "cfm/set-fault normal",
    ] {
        assert_eq!(
            appctl(&comporta, command)?,
            appctl(&ovs, command)?,
            "{command}"
        );
    }
    Ok(())
}

fn lldp_neighbours_with_open_vswitch_hear_each_other(context: &TestContext) -> TestResult {
    let pair = NetworkPair::with_hosts(context, 1)?;
    pair.connect(&["c1"])?;
    let [comporta, ovs] = pair.deploy()?;
    let (_daemon, _theirs) = (comporta.start_daemon()?, start_ovs_vswitchd(&ovs, "")?);
    for deployment in [&comporta, &ovs] {
        deployment.vsctl(BRIDGE)?;
        deployment.vsctl(
            "-- --id=@a create AutoAttach system_name=sw system_description=text mappings:100=7 \
             -- set Bridge br0 auto_attach=@a",
        )?;
    }
    configure([&comporta, &ovs], ["lldp:enable=true"; 2])?;
    for deployment in [&comporta, &ovs] {
        wait_for_appctl(deployment, "autoattach/status", "Server Descr: text")?;
        wait_for_appctl(deployment, "autoattach/statistics", "insert cnt: 1")?;
    }
    let own = comporta.vsctl("get Interface c1 mac_in_use")?;
    let own = own.trim_matches('"');
    wait_for_appctl(&ovs, "autoattach/status", &format!("Server Id: {own}"))?;
    let (own, theirs) = (
        appctl(&comporta, "autoattach/show-isid")?,
        appctl(&ovs, "autoattach/show-isid")?,
    );
    assert_eq!(own, theirs);
    Ok(())
}
