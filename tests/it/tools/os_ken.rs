//! Applications of os-ken: its spanning tree and its link discovery, on a ring of three bridges of
//! a database. Learning switches are tested with the other controllers.

use std::collections::BTreeMap;
use std::fmt::Write;

use testbed::{Failure, Process, Program};

use crate::support::command::{project_file, python_environment};
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    os_ken_spanning_tree_opens_a_ring_and_reconverges,
    os_ken_discovers_all_links,
];

/// Number of bridges in the ring; each has a host and a cable to the next.
const BRIDGES: usize = 3;

/// Starts the application, and waits until it is ready.
fn start_application(deployment: &Deployment<'_, '_>, service: &str) -> Result<Process, TestError> {
    let python = python_environment("venv")?.join("python");
    let context = deployment.network.context;
    let program = Program::new(python)
        .arg(project_file("tests/apps/services.py"))
        .args([service, "6653"])
        // The spanning tree ends threads, which only eventlet supports.
        .env("OSKEN_HUB_TYPE", "eventlet")
        .inside(&deployment.network.switch_namespace)
        .log(context.unique_path("services.log"));
    let application = context.spawner.start(program)?;
    context.wait_until("the application to be ready", || {
        Ok(application.written()?.contains("ready"))
    })?;
    Ok(application)
}

/// Creates the cables and the bridges. On each bridge, port 1 is the host's, port 2 is connected to
/// the previous bridge, and port 3 to the next.
fn add_ring(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    let next = |bridge: usize| bridge % BRIDGES + 1;
    for bridge in 1..=BRIDGES {
        let (near, far) = (format!("to{bridge}"), format!("from{bridge}"));
        deployment
            .network
            .run(&format!("ip link add {near} type veth peer name {far}"))?
            .expect_success()?;
        for end in [near, far] {
            deployment
                .network
                .run(&format!("ip link set {end} up"))?
                .expect_success()?;
        }
    }
    for bridge in 1..=BRIDGES {
        let previous = (bridge + BRIDGES - 2) % BRIDGES + 1;
        assert_eq!(next(previous), bridge);
        let mut words = format!(
            "add-br br{bridge} -- set bridge br{bridge} fail_mode=secure protocols=OpenFlow13 \
             other-config:datapath-id=000000000000000{bridge}"
        );
        let ports = [
            format!("p{bridge}"),
            format!("from{previous}"),
            format!("to{bridge}"),
        ];
        for (number, port) in (1..).zip(ports) {
            write!(
                words,
                " -- add-port br{bridge} {port} -- set interface {port} ofport_request={number}"
            )
            .expect("formatting into a String cannot fail");
        }
        deployment.vsctl(&format!(
            "{words} -- set-controller br{bridge} tcp:127.0.0.1:6653"
        ))?;
    }
    Ok(())
}

/// Last state of each port, by bridge and number, as the application printed it.
fn port_states(output: &str) -> BTreeMap<(&str, &str), &str> {
    let lines = output.lines().filter_map(|line| {
        let mut words = line.strip_prefix("port ")?.split(' ');
        Some(((words.next()?, words.next()?), words.next()?))
    });
    lines.collect()
}

fn os_ken_spanning_tree_opens_a_ring_and_reconverges(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let application = start_application(&deployment, "tree")?;
    add_ring(&deployment)?;
    let wait_for_tree = |forwarding: usize, blocked: usize| {
        context.wait_until("the spanning tree to converge", || {
            let output = application.written()?;
            let states = port_states(&output);
            let count = |state| states.values().filter(|value| **value == state).count();
            Ok(count("forward") == forwarding && count("block") == blocked)
        })
    };
    // One of the ring's six ports blocks; the hosts' ports forward.
    wait_for_tree(8, 1)?;
    for (one, two) in [(1, 2), (2, 3), (3, 1)] {
        network
            .host(one)
            .ping_until_reply(network.host(two).address)?;
        network.host(one).ping(network.host(two).address, 5)?;
    }
    // The cable between the first two bridges, which the tree uses, is cut.
    network.run("ip link set to1 down")?.expect_success()?;
    wait_for_tree(7, 0)?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    network.host(1).ping(network.host(2).address, 5)?;
    Ok(())
}

fn os_ken_discovers_all_links(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let application = start_application(&deployment, "links")?;
    add_ring(&deployment)?;
    let links = [
        "1:3 2:2", "2:2 1:3", "2:3 3:2", "3:2 2:3", "3:3 1:2", "1:2 3:3",
    ];
    context.wait_until("all links", || {
        let output = application.written()?;
        Ok(links
            .iter()
            .all(|link| output.contains(&format!("link {link}\n"))))
    })?;
    Ok(())
}
