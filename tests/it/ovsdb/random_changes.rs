//! A database that changes at random, by a real `ovsdb-server` and `ovs-vsctl`, while frames
//! cross between ports that nobody touches: none is lost, doubled or overtaken; when all is
//! done the switch is as one that starts then, and when all is gone it has what it had.
//!
//! `cargo xtask soak` has it go on for longer.

mod generator;
mod state;
mod traffic;

use std::env;
use std::str::FromStr;

use generator::World;
use state::{Holdings, VERSIONS, holdings, state};
use testbed::Failure;
use traffic::Traffic;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::{Deployment, VswitchdProcess};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] =
    tests![random_changes_leave_other_ports_alone_and_nothing_behind,];

/// Changes and the seed that they come of, unless `cargo xtask soak` says others.
const CHANGES: usize = 240;
const SEED: u64 = 1;
const CHANGES_VARIABLE: &str = "COMPORTA_CHANGES";
const SEED_VARIABLE: &str = "COMPORTA_SEED";

/// Changes of one transaction, at most.
const TOGETHER: usize = 6;

/// Every so manieth transaction is not waited for: the next comes while it is carried out.
const HURRIED: usize = 4;

/// The part of the changes after which the allocator has what it needs: one in so many.
const WARM_UP: usize = 4;

/// What the rest of the changes may leave of memory, beside what each may: more than the
/// noise of an allocator, and less than a row of the database that each lost.
const GROWTH_MAX: u64 = 16 << 20;
const GROWTH_OF_CHANGE_MAX: u64 = 1 << 10;

/// What stays: a bridge with rules, and one that learns.
const LASTING: &str = "add-br br0 -- set bridge br0 fail_mode=secure -- \
                       set-controller br0 tcp:127.0.0.1:1 -- add-port br0 p1 -- \
                       add-port br0 p2 -- add-br br1 -- add-port br1 p3 -- add-port br1 p4";

fn random_changes_leave_other_ports_alone_and_nothing_behind(context: &TestContext) -> TestResult {
    let changes = of_environment(CHANGES_VARIABLE, CHANGES);
    let seed = of_environment(SEED_VARIABLE, SEED);
    let network = TestNetwork::new(context, 8)?;
    let deployment = Deployment::new(&network)?;
    let mut daemon = daemon(&deployment, seed)?;
    deployment.vsctl(LASTING)?;
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
    let traffic = [[1, 2], [3, 4]].map(|pair| Traffic::start(pair.map(|host| network.host(host))));
    let [by_rules, by_learning] = traffic;
    let streams = [by_rules?, by_learning?];
    let mut run = Run {
        deployment: &deployment,
        world: World::new(seed),
        seed,
        made: 0,
    };
    run.make(changes / WARM_UP, &streams)?;
    deployment.vsctl(&run.world.reset())?;
    let before = at_rest(&daemon)?;
    let memory = daemon.process.usage()?.resident_bytes;
    run.make(changes - changes / WARM_UP, &streams)?;
    let bridges: Vec<_> = run.world.bridges().collect();
    let is = settled(&deployment, &bridges)?;
    let backup = deployment.run_tool("ovsdb-client backup unix:db.sock")?;
    deployment.vsctl(&run.world.reset())?;
    for stream in streams {
        let came = stream.stop();
        if !came.as_ref().is_ok_and(|came| *came > 0) {
            panic!("seed {seed}: {came:?}\n{}", account(&deployment)?);
        }
    }
    let what = format!("seed {seed}: what the daemon has to be {before:?}");
    context.wait_until(&what, || Ok(holdings(&daemon)? == before))?;
    let grown = daemon
        .process
        .usage()?
        .resident_bytes
        .saturating_sub(memory);
    let may = GROWTH_MAX + changes as u64 * GROWTH_OF_CHANGE_MAX;
    assert!(
        grown < may,
        "seed {seed}: {grown} bytes more after {changes} changes"
    );
    assert!(daemon.process.stop()?.success(), "seed {seed}");
    drop(daemon);
    compare(&deployment, &backup, &bridges, &is, seed)
}

/// What the switch counted of what stays, to see what became of a frame.
fn account(deployment: &Deployment<'_, '_>) -> Result<String, Failure> {
    let rules = deployment.run_tool(&format!("ovs-ofctl {VERSIONS} dump-flows br0"))?;
    let counters = deployment.run_tool("ovs-appctl comporta/counters")?;
    Ok(format!("{rules}{counters}"))
}

/// A daemon with one worker, or with two if the seed is even.
fn daemon<'s, 'g>(
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

/// What a variable says, or what is usual.
fn of_environment<T: FromStr>(name: &str, usual: T) -> T {
    let said = env::var(name).ok();
    said.and_then(|said| said.parse().ok()).unwrap_or(usual)
}

/// Changes that are made.
struct Run<'s, 'g> {
    deployment: &'s Deployment<'s, 'g>,
    world: World,
    seed: u64,
    made: usize,
}

impl Run<'_, '_> {
    /// Makes so many changes, in transactions of several, while `streams` must not end.
    fn make(&mut self, count: usize, streams: &[Traffic]) -> Result<(), Failure> {
        let mut rest = count;
        while rest > 0 {
            let together = (1 + self.world.below(TOGETHER)).min(rest);
            let changes = (0..together).map(|_| self.world.change());
            let words = changes.collect::<Vec<_>>().join(" -- ");
            let hurry = match self.world.below(HURRIED) {
                0 => "--no-wait ",
                _ => "",
            };
            let (seed, made) = (self.seed, self.made);
            self.deployment
                .vsctl(&format!("{hurry}-- {words}"))
                .unwrap_or_else(|failure| panic!("seed {seed}, change {made}: {failure}"));
            let all = streams.iter().all(Traffic::goes_on);
            if !all {
                let account = account(self.deployment)?;
                panic!("seed {seed}, change {made}: frames, after {words}\n{account}");
            }
            self.made += together;
            rest -= together;
        }
        Ok(())
    }
}

/// What the daemon has when nothing is closed any more beside what was.
fn at_rest(daemon: &VswitchdProcess<'_, '_>) -> Result<Holdings, Failure> {
    let context = daemon.deployment.network.context;
    let mut last = None;
    context.wait_for("the daemon to be at rest", || {
        let now = holdings(daemon)?;
        let same = last.as_ref() == Some(&now);
        last = Some(now);
        // Sockets are closed behind its back, by and by.
        context.clock.sleep_until(context.clock.now() + SETTLE);
        Ok(if same { last.take() } else { None })
    })
}

/// How long something must stay as it is to be taken for what it comes to.
const SETTLE: std::time::Duration = std::time::Duration::from_millis(1500);

/// How the switch is when it is so for a while.
fn settled(deployment: &Deployment<'_, '_>, bridges: &[&str]) -> Result<Vec<String>, Failure> {
    let context = deployment.network.context;
    // What was not waited for is waited for now.
    deployment.vsctl("set Open_vSwitch . external_ids:done=true")?;
    let mut last = Vec::new();
    context.wait_for("the switch to come to rest", || {
        let now = state(deployment, bridges)?;
        let same = last == now;
        last = now;
        context.clock.sleep_until(context.clock.now() + SETTLE);
        Ok(same.then(|| last.clone()))
    })
}

/// Starts a switch on the database as it was, and compares.
fn compare(
    deployment: &Deployment<'_, '_>,
    backup: &str,
    bridges: &[&str],
    was: &[String],
    seed: u64,
) -> TestResult {
    deployment.kill_database()?;
    std::fs::write(deployment.rundir.join("conf.db"), backup)?;
    deployment.start_database()?;
    let daemon = daemon(deployment, seed)?;
    // Rules that a controller made go with the switch.
    let lasts = |line: &&String| !line.starts_with("br0 priority") && !line.contains("in_port=");
    let was: Vec<_> = was.iter().filter(lasts).collect();
    let mut is = Vec::new();
    let same = deployment.network.context.wait_until("the same", || {
        // Until a bridge is there nobody answers for it.
        is = state(deployment, bridges).unwrap_or_else(|failure| vec![failure.to_string()]);
        Ok(is.iter().filter(lasts).eq(was.iter().copied()))
    });
    if same.is_err() {
        let lacks = was.iter().filter(|line| !is.contains(line));
        let lacks: Vec<_> = lacks.map(|line| format!("- {line}")).collect();
        let more = is.iter().filter(|line| !was.contains(line));
        let more: Vec<_> = more.map(|line| format!("+ {line}")).collect();
        let (lacks, more) = (lacks.join("\n"), more.join("\n"));
        panic!("seed {seed}: a fresh start is otherwise\n{lacks}\n{more}");
    }
    drop(daemon);
    Ok(())
}
