//! Spanning trees in rings of which one bridge is Open vSwitch's, and what is told of them.

use std::collections::BTreeMap;

use packet::build::Stack;
use testbed::{Failure, Process};

use crate::support::comparison::{NetworkPair, SideBySide};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::{Deployment, VswitchdProcess};
use crate::support::host::TestHost;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::{appctl, start_ovs_vswitchd};

pub(crate) const TESTS: &[SystemTest] = tests![
    a_ring_with_open_vswitch_is_opened_by_the_older_tree,
    a_ring_with_open_vswitch_is_opened_by_the_newer_tree,
    two_cables_between_two_bridges_are_one_way,
    trees_are_told_as_by_open_vswitch,
    ports_that_a_tree_keeps_out_are_traced_as_by_open_vswitch,
    what_ports_in_trees_say_and_hear_is_counted_as_by_open_vswitch,
];

/// The shortest times of the older tree.
const SHORT: &str =
    "other_config:stp-hello-time=1 other_config:stp-max-age=6 other_config:stp-forward-delay=4";

/// The cables of the ring.
const CABLES: [(&str, &str); 3] = [("r12", "r21"), ("r23", "r32"), ("r31", "r13")];

/// Three bridges in a ring: `s1` and `s2` are this switch's, `s3` is Open vSwitch's. A host is
/// at `s1`, another at `s2`.
struct Ring<'s, 'g> {
    here: &'s Deployment<'s, 'g>,
    there: &'s Deployment<'s, 'g>,
    /// The column that turns the tree on, and the beginning of keys.
    tree: &'static str,
    _daemons: (VswitchdProcess<'s, 'g>, Process),
}

fn cable(network: &TestNetwork<'_>, (one, other): (&str, &str)) -> Result<(), Failure> {
    network
        .run(&format!("ip link add {one} type veth peer name {other}"))?
        .expect_success()?;
    for end in [one, other] {
        network
            .run(&format!("ip link set {end} up"))?
            .expect_success()?;
    }
    Ok(())
}

impl<'s, 'g> Ring<'s, 'g> {
    fn new(
        here: &'s Deployment<'s, 'g>,
        there: &'s Deployment<'s, 'g>,
        tree: &'static str,
    ) -> Result<Self, Failure> {
        CABLES
            .into_iter()
            .try_for_each(|ends| cable(here.network, ends))?;
        let ring = Self {
            _daemons: (here.start_daemon()?, start_ovs_vswitchd(there, "")?),
            here,
            there,
            tree,
        };
        // Of the three cables that between `s2` and `s3` is left out, by `s2`.
        let on = |bridge: &str, priority: u32| {
            format!(
                "set Bridge {bridge} {tree}_enable=true other_config:{tree}-priority={priority} {SHORT}"
            )
        };
        here.vsctl(&format!(
            "add-br s1 -- {} -- add-br s2 -- {} -- add-port s1 p1 -- add-port s2 p2 -- \
             add-port s1 r12 -- add-port s1 r13 -- add-port s2 r21 -- add-port s2 r23",
            on("s1", 4096),
            on("s2", 12288),
        ))?;
        there.vsctl(&format!(
            "add-br s3 -- set Bridge s3 datapath_type=netdev -- {} -- \
             add-port s3 r31 -- add-port s3 r32",
            on("s3", 8192),
        ))?;
        Ok(ring)
    }

    /// Waits until a port has this role and state.
    fn wait_for_port(&self, port: &str, role: &str, state: &str) -> Result<(), Failure> {
        let column = match self.tree {
            "rstp" => "rstp_status",
            _ => "status",
        };
        let deployment = match port.starts_with("r3") {
            true => self.there,
            false => self.here,
        };
        let what = format!("{port} to be {role} and {state}");
        deployment.network.context.wait_until(&what, || {
            let said = deployment
                .vsctl(&format!("get Port {port} {column}"))?
                .to_lowercase();
            let blocked = match self.tree {
                "rstp" => "discarding",
                _ => "blocking",
            };
            let state = if state == "blocked" { blocked } else { state };
            Ok(said.contains(&format!("role={role}")) && said.contains(&format!("state={state}")))
        })
    }

    /// Waits until the ring is open between `s2` and `s3`.
    fn wait_until_open(&self) -> Result<(), Failure> {
        self.wait_for_port("r23", "alternate", "blocked")?;
        for port in ["r12", "r13", "r32"] {
            self.wait_for_port(port, "designated", "forwarding")?;
        }
        self.wait_for_port("r21", "root", "forwarding")?;
        self.wait_for_port("r31", "root", "forwarding")?;
        self.wait_for_port("p1", "designated", "forwarding")?;
        self.wait_for_port("p2", "designated", "forwarding")
    }
}

/// Frames to all come to the other host once each.
fn comes_once(from: &TestHost<'_>, to: &TestHost<'_>) -> TestResult {
    let marks = [100, 101, 102, 103];
    let mut capture = to.capture_frames()?;
    for mark in marks {
        let frame = format!("eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:00:51) / data({mark})");
        from.send(&[&frame])?;
    }
    let mut seen = Vec::new();
    while seen.last() != marks.last() {
        let stack = Stack::dissect(&capture.next_frame()?).to_string();
        if stack.contains("src=02:00:00:00:00:51") {
            let is = |mark: &&i32| stack.contains(&format!("data({mark})"));
            seen.extend(marks.iter().find(is));
        }
    }
    assert_eq!(seen, marks, "each once");
    Ok(())
}

fn open_a_ring(context: &TestContext, tree: &'static str) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let (here, there) = (
        Deployment::in_directory(&network, "here")?,
        Deployment::in_directory(&network, "there")?,
    );
    let ring = Ring::new(&here, &there, tree)?;
    let (one, two) = network.host_pair();
    ring.wait_until_open()?;
    one.ping_until_reply(two.address)?;
    comes_once(one, two)?;
    // Without the cable between `s1` and `s2` frames go by `s3`.
    network.run("ip link set r12 down")?.expect_success()?;
    ring.wait_for_port("r23", "root", "forwarding")?;
    one.ping_until_reply(two.address)?;
    comes_once(one, two)?;
    network.run("ip link set r12 up")?.expect_success()?;
    ring.wait_until_open()?;
    one.ping_until_reply(two.address)?;
    comes_once(one, two)?;
    // Another bridge becomes the root: Open vSwitch's is one cable away from it.
    here.vsctl(&format!("set Bridge s2 other_config:{tree}-priority=0"))?;
    let (column, key) = match tree {
        "rstp" => ("rstp_status:rstp_root_id", "rstp_status:rstp_bridge_id"),
        _ => ("status:stp_designated_root", "status:stp_bridge_id"),
    };
    let what = "the root to be another";
    context.wait_until(what, || {
        let root = here.vsctl(&format!("get Bridge s2 {key}"))?;
        let known = there.vsctl(&format!("get Bridge s3 {column}"))?;
        let own = here.vsctl(&format!("get Bridge s1 {column}"))?;
        Ok(root.starts_with("\"0") && known == root && own == root)
    })?;
    ring.wait_for_port("r32", "root", "forwarding")?;
    ring.wait_for_port("r23", "designated", "forwarding")?;
    one.ping_until_reply(two.address)?;
    comes_once(one, two)?;
    Ok(())
}

fn a_ring_with_open_vswitch_is_opened_by_the_older_tree(context: &TestContext) -> TestResult {
    open_a_ring(context, "stp")
}

fn a_ring_with_open_vswitch_is_opened_by_the_newer_tree(context: &TestContext) -> TestResult {
    open_a_ring(context, "rstp")
}

fn two_cables_between_two_bridges_are_one_way(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    cable(&network, ("a1", "b1"))?;
    cable(&network, ("a2", "b2"))?;
    deployment.vsctl(
        "add-br s1 -- set Bridge s1 rstp_enable=true other_config:rstp-priority=0 \
         -- add-br s2 -- set Bridge s2 rstp_enable=true \
         -- add-port s1 p1 -- add-port s1 a1 -- add-port s1 a2 \
         -- add-port s2 p2 -- add-port s2 b1 -- add-port s2 b2",
    )?;
    let (one, two) = network.host_pair();
    deployment.wait_for_column("get Port b2 rstp_status:rstp_port_role", "Alternate")?;
    deployment.wait_for_column("get Port b1 rstp_status:rstp_port_state", "Forwarding")?;
    one.ping_until_reply(two.address)?;
    // The second is asked for by its priority.
    deployment.vsctl("set Port a2 other_config:rstp-port-priority=16")?;
    deployment.wait_for_column("get Port b1 rstp_status:rstp_port_role", "Alternate")?;
    deployment.wait_for_column("get Port b2 rstp_status:rstp_port_state", "Forwarding")?;
    one.ping_until_reply(two.address)?;
    // By what is kept out nothing goes and nothing comes, whatever rules say.
    for (bridge, host, ends) in [("s1", "p1", ["a1", "a2"]), ("s2", "p2", ["b1", "b2"])] {
        let add = |what: &str| {
            let flow = format!("priority=9,dl_src=02:00:00:00:00:51,{what}");
            deployment.run_tool(&format!("ovs-ofctl add-flow {bridge} {flow}"))
        };
        add(&format!("in_port={host},actions={},{}", ends[0], ends[1]))?;
        for end in ends {
            add(&format!("in_port={end},actions={host}"))?;
        }
    }
    comes_once(one, two)?;
    comes_once(two, one)?;
    Ok(())
}

/// A bridge of which nothing is left to chance.
fn told(deployment: &Deployment<'_, '_>, tree: &str) -> Result<Vec<String>, Failure> {
    deployment.vsctl(&format!(
        "set Bridge br0 stp_enable=false rstp_enable=false -- set Bridge br0 {tree}_enable=true"
    ))?;
    let column = if tree == "rstp" {
        "rstp_status"
    } else {
        "status"
    };
    deployment
        .network
        .context
        .wait_until("both ports to forward", || {
            let shown = deployment.run_tool(&format!("ovs-appctl {tree}/show br0"))?;
            Ok(shown.to_lowercase().matches("forwarding").count() == 2)
        })?;
    let is_told = || {
        let said = deployment.vsctl(&format!("get Port p2 {column}"))?;
        Ok(said.to_lowercase().contains("forwarding"))
    };
    deployment
        .network
        .context
        .wait_until("the database to know", is_told)?;
    let shown = deployment.run_tool(&format!("ovs-appctl {tree}/show br0"))?;
    let mut said = vec![
        shown,
        deployment.run_tool(&format!("ovs-appctl {tree}/tcn"))?,
    ];
    for row in ["Bridge br0", "Port p1", "Port p2"] {
        let told = deployment.vsctl(&format!("--columns=status,rstp_status list {row}"))?;
        // How long it has been so is no matter.
        let told = told.split(", ");
        let lasting: Vec<_> = told.filter(|part| !part.contains("sec_in_state")).collect();
        said.push(lasting.join(", "));
    }
    Ok(said)
}

fn trees_are_told_as_by_open_vswitch(context: &TestContext) -> TestResult {
    let (here, there) = (TestNetwork::new(context, 2)?, TestNetwork::new(context, 2)?);
    let (here, there) = (
        Deployment::in_directory(&here, "here")?,
        Deployment::in_directory(&there, "there")?,
    );
    let (_ours, _theirs) = (here.start_daemon()?, start_ovs_vswitchd(&there, "")?);
    for deployment in [&here, &there] {
        deployment.vsctl(&format!(
            "add-br br0 -- set Bridge br0 datapath_type=netdev {SHORT} \
             other_config:stp-system-id=02:00:00:00:00:77 other_config:rstp-address=02:00:00:00:00:78 \
             other_config:stp-priority=4660 other_config:rstp-priority=8193 \
             -- add-port br0 p1 -- add-port br0 p2 \
             -- set Port p1 other_config:stp-port-num=7 other_config:stp-path-cost=9 \
             other_config:rstp-port-num=8 other_config:rstp-path-cost=90 \
             -- set Port p2 other_config:stp-port-num=3 other_config:stp-port-priority=16 \
             other_config:rstp-port-num=9 other_config:rstp-port-priority=16"
        ))?;
    }
    for tree in ["stp", "rstp"] {
        let (ours, theirs) = (told(&here, tree)?, told(&there, tree)?);
        assert_eq!(ours, theirs, "{tree}");
    }
    for deployment in [&here, &there] {
        deployment.vsctl("set Bridge br0 stp_enable=true rstp_enable=true")?;
        assert_eq!(deployment.run_tool("ovs-appctl stp/show")?, "");
        assert!(
            deployment
                .run_tool("ovs-appctl rstp/show")?
                .contains("---- br0 ----")
        );
    }
    assert!(
        here.vsctl("get Bridge br0 status:stp_enable")?
            .contains("a bridge has one tree")
    );
    Ok(())
}

/// A frame with the BPDU of an older tree's bridge that comes after all others, of this kind.
fn bpdu(kind: u8) -> Vec<u8> {
    let bridge = [0xff, 0xff, 2, 0, 0, 0, 0, 0x99];
    let link = [
        &[
            1, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 0x99, 0, 38, 0x42, 0x42, 3,
        ][..],
        &[0, 0, 0, kind, 0],
    ];
    let times = [0, 0, 20, 0, 2, 0, 15, 0];
    let rest = [&bridge[..], &[0; 4], &bridge, &[0x80, 1], &times];
    let mut frame = [link.concat(), rest.concat()].concat();
    frame.resize(60, 0);
    frame
}

/// The pairs of a column that counts, by name.
fn counts(
    deployment: &Deployment<'_, '_>,
    tree: &str,
    port: &str,
) -> Result<BTreeMap<String, u64>, Failure> {
    let column = match tree {
        "rstp" => "rstp_statistics",
        _ => "statistics",
    };
    let told = deployment.vsctl(&format!("get Port {port} {column}"))?;
    let pairs = told.trim_matches(['{', '}']).split(", ");
    let pairs = pairs.filter_map(|pair| {
        let (name, count) = pair.split_once('=')?;
        Some((name.to_owned(), count.parse().ok()?))
    });
    Ok(pairs.collect())
}

fn what_ports_in_trees_say_and_hear_is_counted_as_by_open_vswitch(
    context: &TestContext,
) -> TestResult {
    let (here, there) = (TestNetwork::new(context, 2)?, TestNetwork::new(context, 2)?);
    let (here, there) = (
        Deployment::in_directory(&here, "here")?,
        Deployment::in_directory(&there, "there")?,
    );
    let (_ours, _theirs) = (here.start_daemon()?, start_ovs_vswitchd(&there, "")?);
    for deployment in [&here, &there] {
        deployment.vsctl(&format!(
            "add-br br0 -- set Bridge br0 datapath_type=netdev {SHORT} \
             -- add-port br0 p1 -- add-port br0 p2"
        ))?;
    }
    let both = [&here, &there];
    for tree in ["stp", "rstp"] {
        for deployment in both {
            told(deployment, tree)?;
            // Three of a bridge that is no root, and two of which nobody knows the kind.
            let sent = [0, 0x55, 0, 0x55, 0].map(bpdu);
            deployment.network.host(1).send_bytes(&sent)?;
        }
        let mut names = Vec::new();
        for deployment in both {
            let heard = [("rx", 3), ("error", 2)];
            let what = format!("what was heard to be counted: {tree}");
            deployment.network.context.wait_until(&what, || {
                let counts = counts(deployment, tree, "p1")?;
                let is =
                    |(what, number)| counts.get(&format!("{tree}_{what}_count")) == Some(number);
                Ok(heard.iter().map(|(what, number)| (what, number)).all(is))
            })?;
            let (one, other) = (
                counts(deployment, tree, "p1")?,
                counts(deployment, tree, "p2")?,
            );
            assert_eq!(other[&format!("{tree}_rx_count")], 0, "{other:?}");
            names.push([one, other].map(|counts| counts.into_keys().collect::<Vec<_>>()));
        }
        assert_eq!(names[0], names[1], "{tree}");
        // Something is said every second. Open vSwitch tells of RSTP how much within one.
        for (deployment, port) in both.into_iter().zip(["p1", "p2"]) {
            if tree == "stp" || deployment.rundir == here.rundir {
                let what = format!("what was said to be counted: {tree} {port}");
                deployment.network.context.wait_until(&what, || {
                    let counts = counts(deployment, tree, port)?;
                    let uptime = counts.get("rstp_uptime").copied();
                    Ok(counts[&format!("{tree}_tx_count")] > 2
                        && uptime.is_none_or(|time| time > 2))
                })?;
            }
        }
    }
    // Nothing is counted where there is no tree.
    here.vsctl("set Bridge br0 stp_enable=false rstp_enable=false")?;
    here.wait_for_column("get Port p1 rstp_statistics", "{}")?;
    here.wait_for_column("get Port p1 statistics", "{}")?;
    Ok(())
}

fn ports_that_a_tree_keeps_out_are_traced_as_by_open_vswitch(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&pair.comporta, "ours")?,
        Deployment::in_directory(&pair.ovs, "theirs")?,
    );
    let both = SideBySide::start(&ours, &other)?;
    for deployment in both.deployments() {
        deployment
            .run_tool("ovs-ofctl add-flow br0 dl_type=0x88b5,actions=output:2,output:3,flood")?;
    }
    for tree in ["stp", "rstp"] {
        // Ports are kept out for seconds from here on; the first takes no part.
        both.vsctl(&format!(
            "set Bridge br0 {tree}_enable=true -- set Port p1 other_config:{tree}-enable=false"
        ))?;
        let mut left_out = Vec::new();
        for frame in ["dl_type=0x88b5", "dl_type=0x88b7"] {
            for port in [1, 2] {
                let question = format!("ofproto/trace br0 in_port={port},{frame}");
                let said = both.deployments().map(|deployment| {
                    let story = appctl(deployment, &question)?;
                    let done = story.lines().filter(|line| line.contains(" >> "));
                    let acts = story.lines().any(|line| line.starts_with("    "));
                    Ok::<_, Failure>((done.map(str::to_owned).collect::<Vec<_>>(), acts))
                });
                let [ours, other] = said;
                let (ours, other) = (ours?, other?);
                let count = |(lines, acts): &(Vec<String>, bool)| {
                    let line = format!(
                        "     >> {} not in forwarding state, skipping output",
                        tree.to_uppercase()
                    );
                    (lines.iter().filter(|said| **said == line).count(), *acts)
                };
                assert_eq!(
                    count(&ours),
                    count(&other),
                    "{question}: {ours:?} {other:?}"
                );
                left_out.push(count(&ours));
            }
        }
        // By two outputs and a flood, or by NORMAL; of what comes in by one that is kept out no
        // rule is asked.
        assert_eq!(left_out, [(5, true), (0, false), (3, true), (0, false)]);
        both.vsctl(&format!("set Bridge br0 {tree}_enable=false"))?;
    }
    Ok(())
}
