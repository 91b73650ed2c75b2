//! The checkpoint of the tables: a daemon that crashed forwards by its old rules before controllers
//! are back, and only a crash leaves a checkpoint.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use testbed::Failure;

use super::process::{parent_pid, pid, signal, start_in_background};
use crate::support::command::comporta_binary;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::{BackgroundDaemon, Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    tables_survive_a_crash_without_controllers,
    orderly_restart_and_flow_restore_wait_drop_the_checkpoint,
    unreadable_checkpoint_is_reported_and_kept,
    full_and_vanished_directories_of_the_checkpoint_are_reported,
];

/// The cookies of the first and of the last rule, as numbers and as the bytes in the file.
const COOKIE: u64 = 0x1122_3344_5566_7788;
const LAST_COOKIE: u64 = 0x99aa_bbcc_ddee_ff00;

/// Configures a secure bridge whose rules connect two ports by a group and a meter.
fn install_tables(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    deployment.vsctl(&format!("{TWO_PORTS} -- set-fail-mode br0 secure"))?;
    let version = "ovs-ofctl -O OpenFlow13";
    for words in [
        format!("{version} add-meter br0 meter=3,pktps,bands=type=drop,rate=100000"),
        format!("{version} add-group br0 group_id=7,type=all,bucket=output:2"),
        format!("{version} add-flow br0 cookie={COOKIE:#x},in_port=1,actions=meter:3,group:7"),
        format!("{version} add-flow br0 in_port=2,actions=output:1"),
    ] {
        deployment.run_tool(&words)?;
    }
    Ok(())
}

/// Returns the path of the checkpoint.
fn file(deployment: &Deployment<'_, '_>) -> PathBuf {
    deployment.rundir.join("ovs-vswitchd.checkpoint")
}

/// Adds a last rule, and waits until the file has all.
fn wait_for_checkpoint(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    let rule = format!("table=9,cookie={LAST_COOKIE:#x},actions=drop");
    deployment.run_tool(&format!("ovs-ofctl -O OpenFlow13 add-flow br0 {rule}"))?;
    let context = deployment.network.context;
    context.wait_until("a checkpoint with the rules", || {
        let bytes = fs::read(file(deployment)).unwrap_or_default();
        let has = |cookie: u64| bytes.windows(8).any(|word| word == cookie.to_be_bytes());
        Ok(has(COOKIE) && has(LAST_COOKIE))
    })
}

/// Returns the tables of the bridge as text. Lines are sorted, because rules of one priority have no
/// order.
fn tables(deployment: &Deployment<'_, '_>) -> Result<String, Failure> {
    let mut tables = Vec::new();
    for command in [
        "dump-flows br0 --no-stats",
        "dump-groups br0",
        "dump-meters br0",
    ] {
        let output = deployment.run_tool(&format!("ovs-ofctl -O OpenFlow13 {command}"))?;
        let lines = output.lines().filter(|line| !line.contains("(xid="));
        tables.extend(lines.map(|line| format!("{}\n", line.trim())));
    }
    tables.sort();
    Ok(tables.concat())
}

fn tables_survive_a_crash_without_controllers(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let program = format!(
        "{} vswitchd --monitor -vconsole:off --log-file",
        comporta_binary().display()
    );
    let first = start_in_background(&deployment, &program)?;
    let _monitor = BackgroundDaemon(parent_pid(first.0)?);
    install_tables(&deployment)?;
    network.host(1).ping(network.host(2).address, 3)?;
    wait_for_checkpoint(&deployment)?;
    let before = tables(&deployment)?;
    signal(first.0, Signal::ABORT)?;
    context.wait_until("the process id of a new daemon", || {
        Ok(pid(&deployment).is_ok_and(|now| ![0, first.0].contains(&now)))
    })?;
    let _second = BackgroundDaemon(pid(&deployment)?);
    network.host(1).ping_until_reply(network.host(2).address)?;
    assert_eq!(tables(&deployment)?, before);
    let log = fs::read_to_string(deployment.rundir.join("ovs-vswitchd.log"))?;
    assert!(log.contains("br0: restored 5 rules"), "{log}");
    Ok(())
}

fn orderly_restart_and_flow_restore_wait_drop_the_checkpoint(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let is_empty = || Ok::<_, Failure>(!tables(&deployment)?.contains("actions="));
    let mut daemon = deployment.start_daemon()?;
    install_tables(&deployment)?;
    wait_for_checkpoint(&deployment)?;
    assert!(daemon.process.stop()?.success());
    assert!(!file(&deployment).exists());
    let mut daemon = deployment.start_daemon()?;
    assert!(is_empty()?, "an orderly restart");
    install_tables_again(&deployment)?;
    wait_for_checkpoint(&deployment)?;
    daemon.process.kill()?;
    deployment.vsctl("--no-wait set Open_vSwitch . other_config:flow-restore-wait=true")?;
    let mut daemon = deployment.start_daemon_with("")?;
    daemon.wait_for_log("the checkpoint is dropped")?;
    deployment.vsctl("remove Open_vSwitch . other_config flow-restore-wait=true")?;
    assert!(is_empty()?, "flow-restore-wait");
    install_tables_again(&deployment)?;
    wait_for_checkpoint(&deployment)?;
    daemon.process.kill()?;
    let daemon = deployment.start_daemon_with("--no-checkpoint")?;
    daemon.wait_for_log("INFO ready")?;
    assert!(is_empty()?, "--no-checkpoint");
    Ok(())
}

/// Like [`install_tables`], for a bridge that the database already has.
fn install_tables_again(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    let rule = format!("cookie={COOKIE:#x},in_port=1,actions=output:2");
    deployment.run_tool(&format!("ovs-ofctl -O OpenFlow13 add-flow br0 {rule}"))?;
    Ok(())
}

fn unreadable_checkpoint_is_reported_and_kept(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let mut daemon = deployment.start_daemon()?;
    install_tables(&deployment)?;
    wait_for_checkpoint(&deployment)?;
    daemon.process.kill()?;
    let whole = fs::read(file(&deployment))?;
    let mut newer = whole.clone();
    newer[11] = 2;
    let mut damaged = whole.clone();
    damaged[whole.len() - 1] ^= 1;
    for (bytes, reason) in [
        (&whole[..whole.len() / 2], "the header announces"),
        (&newer[..], "format 2 is not supported"),
        (&damaged[..], "the checksum is wrong"),
        (&[][..], "not a checkpoint"),
    ] {
        fs::write(file(&deployment), bytes)?;
        let mut daemon = deployment.start_daemon()?;
        daemon.wait_for_log(reason)?;
        let kept = deployment.rundir.join("ovs-vswitchd.checkpoint.damaged");
        assert_eq!(fs::read(&kept)?, bytes, "{reason}");
        assert!(!tables(&deployment)?.contains("actions="), "{reason}");
        daemon.process.kill()?;
        fs::remove_file(kept)?;
    }
    Ok(())
}

fn full_and_vanished_directories_of_the_checkpoint_are_reported(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let directory = context.directory().join("vanishing");
    fs::create_dir(&directory)?;
    let path = directory.join("checkpoint");
    let options = format!("--checkpoint {}", path.display());
    let mut daemon = deployment.start_daemon_with(&options)?;
    daemon.wait_for_log("INFO ready")?;
    fs::remove_dir_all(&directory)?;
    install_tables(&deployment)?;
    daemon.wait_for_log("cannot write the checkpoint")?;
    assert!(deployment.counter("control checkpoints_failed")? > 0);
    network.host(1).ping(network.host(2).address, 3)?;
    fs::create_dir(&directory)?;
    install_tables_again(&deployment)?;
    context.wait_until("a checkpoint in the new directory", || Ok(path.exists()))?;
    assert!(daemon.process.stop()?.success());
    assert!(!path.exists());
    // Writing to this device fails with ENOSPC: a log that is full stops nothing.
    let mut daemon = deployment.start_daemon_with("--log-file=/dev/full --no-checkpoint")?;
    daemon.wait_for_log("INFO ready")?;
    deployment.run_tool("ovs-ofctl add-flow br0 actions=NORMAL")?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    assert!(daemon.process.stop()?.success());
    Ok(())
}
