//! Under what os-ken ships for applications: its spanning tree and its search for links, on
//! three bridges of a database in a ring. Learning switches are with the other controllers.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write;
use std::path::PathBuf;

use testbed::{Failure, Process, Program};

use crate::support::context::{SystemTest, TestContext, TestError, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    os_kens_spanning_tree_opens_a_ring_and_mends_it,
    os_kens_search_finds_all_links,
];

/// Bridges in a ring: each has a host, and a cable to the next.
const BRIDGES: usize = 3;

/// Starts the application.
fn application(deployment: &Deployment<'_, '_>, which: &str) -> Result<Process, TestError> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let python = root.join("target/venv/bin/python");
    if !python.exists() {
        let reason = "there is no Python environment target/venv: make it with cargo xtask setup";
        return Err(TestError::Skip(reason.to_owned()));
    }
    let context = deployment.network.context;
    let program = Program::new(python)
        .arg(root.join("tests/apps/services.py"))
        .args([which, "6653"])
        // Its threads cannot be ended otherwise, as its spanning tree wants.
        .env("OSKEN_HUB_TYPE", "eventlet")
        .inside(&deployment.network.switch_namespace)
        .log(context.unique_path("services.log"));
    let application = context.spawner.start(program)?;
    context.wait_until("the application to be ready", || {
        Ok(application.written()?.contains("ready"))
    })?;
    Ok(application)
}

/// Lays the cables and makes the bridges. Of each, port 1 is a host's, port 2 goes to the
/// bridge before and port 3 to the one behind.
fn ring(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    let next = |bridge: usize| bridge % BRIDGES + 1;
    for bridge in 1..=BRIDGES {
        let (there, other) = (format!("to{bridge}"), format!("from{bridge}"));
        deployment
            .network
            .run(&format!("ip link add {there} type veth peer name {other}"))?
            .expect_success()?;
        for end in [there, other] {
            deployment
                .network
                .run(&format!("ip link set {end} up"))?
                .expect_success()?;
        }
    }
    for bridge in 1..=BRIDGES {
        let before = (bridge + BRIDGES - 2) % BRIDGES + 1;
        assert_eq!(next(before), bridge);
        let mut words = format!(
            "add-br br{bridge} -- set bridge br{bridge} fail_mode=secure protocols=OpenFlow13 \
             other-config:datapath-id=000000000000000{bridge}"
        );
        let ports = [
            format!("p{bridge}"),
            format!("from{before}"),
            format!("to{bridge}"),
        ];
        for (number, port) in (1..).zip(ports) {
            write!(
                words,
                " -- add-port br{bridge} {port} -- set interface {port} ofport_request={number}"
            )
            .expect("a string has room");
        }
        deployment.vsctl(&format!(
            "{words} -- set-controller br{bridge} tcp:127.0.0.1:6653"
        ))?;
    }
    Ok(())
}

/// The last state of each port, by bridge and number, as the application told them.
fn states(told: &str) -> BTreeMap<(&str, &str), &str> {
    let lines = told.lines().filter_map(|line| {
        let mut words = line.strip_prefix("port ")?.split(' ');
        Some(((words.next()?, words.next()?), words.next()?))
    });
    lines.collect()
}

fn os_kens_spanning_tree_opens_a_ring_and_mends_it(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let application = application(&deployment, "tree")?;
    ring(&deployment)?;
    let settled = |forwarding: usize, blocked: usize| {
        context.wait_until("a tree", || {
            let told = application.written()?;
            let states = states(&told);
            let count = |state| states.values().filter(|is| **is == state).count();
            Ok(count("forward") == forwarding && count("block") == blocked)
        })
    };
    // Of the ring's six ends one blocks; the hosts' ports forward.
    settled(8, 1)?;
    for (one, two) in [(1, 2), (2, 3), (3, 1)] {
        network
            .host(one)
            .ping_until_reply(network.host(two).address)?;
        network.host(one).ping(network.host(two).address, 5)?;
    }
    // The cable between the first two, which the tree goes by, is cut.
    network.run("ip link set to1 down")?.expect_success()?;
    settled(7, 0)?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    network.host(1).ping(network.host(2).address, 5)?;
    Ok(())
}

fn os_kens_search_finds_all_links(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let application = application(&deployment, "links")?;
    ring(&deployment)?;
    let links = [
        "1:3 2:2", "2:2 1:3", "2:3 3:2", "3:2 2:3", "3:3 1:2", "1:2 3:3",
    ];
    context.wait_until("all links", || {
        let told = application.written()?;
        Ok(links
            .iter()
            .all(|link| told.contains(&format!("link {link}\n"))))
    })?;
    Ok(())
}
