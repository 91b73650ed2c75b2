//! Restarts of the switch and of `ovn-controller` under traffic, with changes in between.

use std::time::Duration;

use testbed::{Failure, Process};

use crate::support::command::program;
use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::host::{TestHost, copy_stream, pseudo_random_bytes};
use crate::support::ovn::{OvnCloud, OvnNetwork};
use crate::support::responder::{HttpResponder, http_get, http_get_within};

pub(crate) const TESTS: &[SystemTest] = tests![
    ovn_controller_that_is_killed_disturbs_no_traffic,
    ovn_chassis_forwards_again_after_its_switch_restarts,
];

/// A time in which an answer would arrive.
const NO_ANSWER: Duration = Duration::from_millis(400);

/// Adds `sw0` with hosts 1 and 2; only tracked connections reach host 2, by port 80.
fn add_logical_switch(cloud: &OvnCloud<'_, '_>) -> Result<(), Failure> {
    cloud.add_switch("sw0")?;
    cloud.add_hosts("sw0", &[1, 2])?;
    cloud.nbctl(
        "acl-add sw0 to-lport 1001 'outport == \"p2\" && (tcp.dst == 80 || icmp4)' allow-related \
         -- acl-add sw0 to-lport 1000 'outport == \"p2\" && ip4' drop",
    )?;
    cloud.sync()
}

/// Starts a ping every 10 ms.
fn start_ping(
    context: &TestContext,
    from: &TestHost<'_>,
    to: &TestHost<'_>,
    count: u32,
) -> Result<Process, Failure> {
    let ping = program(&format!("ping -n -i 0.01 -c {count} -W 1 {}", to.address));
    let ping = ping
        .inside(&from.namespace)
        .log(context.unique_path("ping"));
    let ping = context.spawner.start(ping)?;
    context.wait_until("replies", || Ok(ping.written()?.contains("icmp_seq=5 ")))?;
    Ok(ping)
}

fn ovn_controller_that_is_killed_disturbs_no_traffic(context: &TestContext) -> TestResult {
    let network = OvnNetwork::new(context, &[&[1], &[2]])?;
    let deployments = network.deploy()?;
    let mut cloud = OvnCloud::start(&network, &deployments)?;
    add_logical_switch(&cloud)?;
    let (one, two) = (network.host(1), network.host(2));
    let _servers = [
        HttpResponder::start(two, 80, "two")?,
        HttpResponder::start(two, 81, "two")?,
    ];
    let listener = two.listen(7000)?;
    one.ping_until_reply(two.address)?;
    assert_eq!(http_get(one, two.address, 80)?, "two 10.1.0.1");
    let mut ping = start_ping(context, one, two, 200)?;
    // Each change is a bundle, and the controller dies in one of them.
    for round in 0..5 {
        let ports: Vec<_> = (0..200)
            .map(|n| (1000 + 200 * round + n).to_string())
            .collect();
        let ports = ports.join(", ");
        cloud.nbctl(&format!(
            "acl-add sw0 to-lport {} 'outport == \"p2\" && udp.dst == {{{ports}}}' allow-related",
            2000 + round
        ))?;
        let deadline = context.clock.now() + Duration::from_millis(10 + 10 * round);
        context.clock.sleep_until(deadline);
        cloud.kill_controller(2)?;
        assert_eq!(http_get(one, two.address, 80)?, "two 10.1.0.1");
        assert_eq!(http_get_within(one, two.address, 81, NO_ANSWER / 4)?, None);
        if round == 4 {
            // A change while the controller is away.
            cloud.nbctl(
                "acl-add sw0 to-lport 3000 'outport == \"p2\" && tcp.dst == {81, 7000}' \
                 allow-related",
            )?;
        }
        cloud.start_controller(2)?;
    }
    cloud.sync()?;
    assert_eq!(http_get(one, two.address, 81)?, "two 10.1.0.1");
    let status = ping.wait(WAIT_LIMIT)?;
    assert!(status.success(), "{}", ping.written()?);
    let written = ping.written()?;
    assert!(written.contains(" 0% packet loss"), "{written}");
    // A connection outlives a restart of the controller.
    let stream = one.connect(two.address, 7000)?;
    let (accepted, _) = listener
        .accept()
        .map_err(Failure::to("accept a connection"))?;
    let file = pseudo_random_bytes(100_000);
    assert!(copy_stream(&file, &stream, &accepted)? == file);
    cloud.kill_controller(2)?;
    cloud.start_controller(2)?;
    cloud.sync()?;
    assert!(copy_stream(&file, &accepted, &stream)? == file);
    cloud.expect_clean_run();
    Ok(())
}

fn ovn_chassis_forwards_again_after_its_switch_restarts(context: &TestContext) -> TestResult {
    let network = OvnNetwork::new(context, &[&[1], &[2]])?;
    let deployments = network.deploy()?;
    let mut cloud = OvnCloud::start(&network, &deployments)?;
    add_logical_switch(&cloud)?;
    let (one, two) = (network.host(1), network.host(2));
    let _servers = [
        HttpResponder::start(two, 80, "two")?,
        HttpResponder::start(two, 81, "two")?,
    ];
    one.ping_until_reply(two.address)?;
    // The logical network changes while the switch is away.
    cloud.stop_switch(2)?;
    cloud.nbctl("acl-add sw0 to-lport 3000 'outport == \"p2\" && tcp.dst == 81' allow-related")?;
    cloud.start_switch(2)?;
    one.ping_until_reply(two.address)?;
    cloud.sync()?;
    assert_eq!(http_get(one, two.address, 80)?, "two 10.1.0.1");
    assert_eq!(http_get(one, two.address, 81)?, "two 10.1.0.1");
    // The ports of the host and of the database change, too: host 2 gets another port number.
    cloud.stop_switch(2)?;
    let chassis = cloud.chassis(2).deployment;
    chassis.vsctl(
        "--no-wait del-port p2 -- add-port br-int p2 -- set Interface p2 external_ids:iface-id=p2",
    )?;
    cloud.start_switch(2)?;
    one.ping_until_reply(two.address)?;
    // After a crash it forwards by the rules of its checkpoint, also without a controller.
    context.wait_until("a checkpoint", || {
        Ok(chassis.counter("control checkpoints_written")? > 0)
    })?;
    cloud.kill_controller(2)?;
    cloud.kill_switch(2)?;
    cloud.start_switch(2)?;
    one.ping_until_reply(two.address)?;
    assert_eq!(http_get(one, two.address, 81)?, "two 10.1.0.1");
    assert_eq!(http_get_within(one, two.address, 82, NO_ANSWER)?, None);
    cloud.start_controller(2)?;
    cloud.sync()?;
    assert_eq!(http_get(one, two.address, 80)?, "two 10.1.0.1");
    cloud.expect_clean_run();
    Ok(())
}
