//! Random changes of a database by a real `ovsdb-server` and `ovs-vsctl`, while frames cross
//! between ports that no change affects: none is lost, duplicated or reordered. After the changes
//! the switch has the same state as one started then, and after their removal the resources it had
//! before.
//!
//! `cargo xtask soak` makes more changes.

mod generator;
mod state;
pub(crate) mod traffic;

use std::env;
use std::str::FromStr;

use generator::ChangeGenerator;
use state::{DaemonResources, VERSIONS, resources, state};
use testbed::Failure;
use traffic::NumberedTraffic;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::{Deployment, VswitchdProcess};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] =
    tests![random_changes_affect_no_other_ports_and_leave_nothing_behind,];

/// Number of changes and their seed, unless `cargo xtask soak` sets others.
const CHANGES: usize = 240;
const SEED: u64 = 1;
const CHANGES_VARIABLE: &str = "COMPORTA_CHANGES";
const SEED_VARIABLE: &str = "COMPORTA_SEED";

/// Largest number of changes in a transaction.
const TRANSACTION_CHANGES_MAX: usize = 6;

/// One in so many transactions does not wait for the switch: the next one follows while it is
/// applied.
const NO_WAIT_RATIO: usize = 4;

/// One part in so many of the changes precedes the measurement, so that the allocator has enough
/// memory.
const WARM_UP_RATIO: usize = 4;

/// Allowed growth in bytes: a constant above the noise of an allocator, and for each change less
/// than a leaked row of the database.
const GROWTH_MAX: u64 = 16 << 20;
const GROWTH_OF_CHANGE_MAX: u64 = 1 << 10;

/// Arguments of `ovs-vsctl` for the permanent part: a bridge with rules, and one that learns.
const PERMANENT: &str = "add-br br0 -- set bridge br0 fail_mode=secure -- \
                       set-controller br0 tcp:127.0.0.1:1 -- add-port br0 p1 -- \
                       add-port br0 p2 -- add-br br1 -- add-port br1 p3 -- add-port br1 p4";

fn random_changes_affect_no_other_ports_and_leave_nothing_behind(
    context: &TestContext,
) -> TestResult {
    let changes = environment_value(CHANGES_VARIABLE, CHANGES);
    let seed = environment_value(SEED_VARIABLE, SEED);
    let network = TestNetwork::new(context, 8)?;
    let deployment = Deployment::new(&network)?;
    let mut daemon = start_daemon(&deployment, seed)?;
    deployment.vsctl(PERMANENT)?;
    for rule in [
        "in_port=p1,actions=output:p2",
        "in_port=p2,actions=output:p1",
    ] {
        deployment.run_tool(&format!("ovs-ofctl add-flow br0 {rule}"))?;
    }
    for (one, two) in [(1, 2), (3, 4)] {
        network
            .host(one)
            .ping_until_reply(network.host(two).address)?;
    }
    let traffic =
        [[1, 2], [3, 4]].map(|pair| NumberedTraffic::start(pair.map(|host| network.host(host))));
    let [rule_stream, learning_stream] = traffic;
    let streams = [rule_stream?, learning_stream?];
    let mut run = ChangeSequence {
        deployment: &deployment,
        generator: ChangeGenerator::new(seed),
        seed,
        change_count: 0,
    };
    run.make_changes(changes / WARM_UP_RATIO, &streams)?;
    deployment.vsctl(&run.generator.reset())?;
    let before = final_resources(&daemon)?;
    let memory = daemon.process.usage()?.resident_bytes;
    run.make_changes(changes - changes / WARM_UP_RATIO, &streams)?;
    let bridges: Vec<_> = run.generator.bridges().collect();
    let state_now = final_state(&deployment, &bridges)?;
    let backup = deployment.run_tool("ovsdb-client backup unix:db.sock")?;
    deployment.vsctl(&run.generator.reset())?;
    for stream in streams {
        let received = stream.stop();
        if !received.as_ref().is_ok_and(|received| *received > 0) {
            panic!(
                "seed {seed}: {received:?}\n{}",
                permanent_state(&deployment)?
            );
        }
    }
    let condition = format!("seed {seed}: the daemon's resources to be {before:?}");
    context.wait_until(&condition, || Ok(resources(&daemon)? == before))?;
    let growth = daemon
        .process
        .usage()?
        .resident_bytes
        .saturating_sub(memory);
    let growth_max = GROWTH_MAX + changes as u64 * GROWTH_OF_CHANGE_MAX;
    assert!(
        growth < growth_max,
        "seed {seed}: {growth} bytes of growth after {changes} changes"
    );
    assert!(daemon.process.stop()?.success(), "seed {seed}");
    drop(daemon);
    compare(&deployment, &backup, &bridges, &state_now, seed)
}

/// Rules and counters of the permanent part, for the report of a lost frame.
fn permanent_state(deployment: &Deployment<'_, '_>) -> Result<String, Failure> {
    let rules = deployment.run_tool(&format!("ovs-ofctl {VERSIONS} dump-flows br0"))?;
    let counters = deployment.run_tool("ovs-appctl comporta/counters")?;
    Ok(format!("{rules}{counters}"))
}

/// Starts a daemon with one worker, or with two if the seed is even.
fn start_daemon<'s, 'g>(
    deployment: &'s Deployment<'s, 'g>,
    seed: u64,
) -> Result<VswitchdProcess<'s, 'g>, Failure> {
    let daemon = deployment.start_daemon_with(match seed % 2 {
        0 => "--cores 0,1",
        _ => "",
    })?;
    daemon.wait_for_log("INFO ready")?;
    Ok(daemon)
}

/// Value of an environment variable, or the default.
fn environment_value<T: FromStr>(name: &str, default: T) -> T {
    let value = env::var(name).ok();
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

/// A sequence of changes.
struct ChangeSequence<'s, 'g> {
    deployment: &'s Deployment<'s, 'g>,
    generator: ChangeGenerator,
    seed: u64,
    change_count: usize,
}

impl ChangeSequence<'_, '_> {
    /// Makes `count` changes in transactions, and asserts that the streams continue.
    fn make_changes(&mut self, count: usize, streams: &[NumberedTraffic]) -> Result<(), Failure> {
        let mut remaining = count;
        while remaining > 0 {
            let count_in_transaction =
                (1 + self.generator.below(TRANSACTION_CHANGES_MAX)).min(remaining);
            let changes = (0..count_in_transaction).map(|_| self.generator.change());
            let words = changes.collect::<Vec<_>>().join(" -- ");
            let no_wait = match self.generator.below(NO_WAIT_RATIO) {
                0 => "--no-wait ",
                _ => "",
            };
            let (seed, change_count) = (self.seed, self.change_count);
            self.deployment
                .vsctl(&format!("{no_wait}-- {words}"))
                .unwrap_or_else(|failure| panic!("seed {seed}, change {change_count}: {failure}"));
            let all = streams.iter().all(NumberedTraffic::is_running);
            if !all {
                let permanent_state = permanent_state(self.deployment)?;
                panic!(
                    "seed {seed}, change {change_count}: frames were lost after {words}\n{permanent_state}"
                );
            }
            self.change_count += count_in_transaction;
            remaining -= count_in_transaction;
        }
        Ok(())
    }
}

/// Resources of the daemon, after it has released those of removed ports.
fn final_resources(daemon: &VswitchdProcess<'_, '_>) -> Result<DaemonResources, Failure> {
    let context = daemon.deployment.network.context;
    let mut last = None;
    context.wait_for("the daemon's final resources", || {
        let now = resources(daemon)?;
        let same = last.as_ref() == Some(&now);
        last = Some(now);
        // Sockets are closed in the background.
        context.clock.sleep_until(context.clock.now() + SETTLE);
        Ok(if same { last.take() } else { None })
    })
}

/// Time without a change after which a state is final.
const SETTLE: std::time::Duration = std::time::Duration::from_millis(1500);

/// State of the switch, after it has become final.
fn final_state(deployment: &Deployment<'_, '_>, bridges: &[&str]) -> Result<Vec<String>, Failure> {
    let context = deployment.network.context;
    // Waits for the transactions that were not waited for.
    deployment.vsctl("set Open_vSwitch . external_ids:done=true")?;
    let mut last = Vec::new();
    context.wait_for("the switch's final state", || {
        let now = state(deployment, bridges)?;
        let same = last == now;
        last = now;
        context.clock.sleep_until(context.clock.now() + SETTLE);
        Ok(same.then(|| last.clone()))
    })
}

/// Starts a switch on the same database, and compares its state.
fn compare(
    deployment: &Deployment<'_, '_>,
    backup: &str,
    bridges: &[&str],
    expected_state: &[String],
    seed: u64,
) -> TestResult {
    deployment.kill_database()?;
    std::fs::write(deployment.rundir.join("conf.db"), backup)?;
    deployment.start_database()?;
    let daemon = start_daemon(deployment, seed)?;
    // Rules of controllers are not restored.
    let is_restored =
        |line: &&String| !line.starts_with("br0 priority") && !line.contains("in_port=");
    let expected_state: Vec<_> = expected_state.iter().filter(is_restored).collect();
    let mut state_now = Vec::new();
    let same = deployment.network.context.wait_until("the same state", || {
        // Until a bridge exists, its commands fail.
        state_now = state(deployment, bridges).unwrap_or_else(|failure| vec![failure.to_string()]);
        Ok(state_now
            .iter()
            .filter(is_restored)
            .eq(expected_state.iter().copied()))
    });
    if same.is_err() {
        let missing = expected_state
            .iter()
            .filter(|line| !state_now.contains(line));
        let missing: Vec<_> = missing.map(|line| format!("- {line}")).collect();
        let added = state_now
            .iter()
            .filter(|line| !expected_state.contains(line));
        let added: Vec<_> = added.map(|line| format!("+ {line}")).collect();
        let (missing, added) = (missing.join("\n"), added.join("\n"));
        panic!("seed {seed}: the state after a fresh start differs\n{missing}\n{added}");
    }
    drop(daemon);
    Ok(())
}
