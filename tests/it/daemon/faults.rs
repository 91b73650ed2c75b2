//! Faults of the system under the daemon: no descriptors, a full disk, lost netlink messages. It
//! forwards meanwhile, reports each fault, does not spin, and recovers.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use testbed::Failure;

use super::process::signal;
use crate::support::command::{CommandOutput, comporta_binary, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::{Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    exhausted_descriptors_are_reported_without_spinning,
    full_disk_stops_neither_checkpoints_for_ever_nor_frames,
    lost_netlink_messages_are_replaced_by_a_listing,
    time_that_jumps_or_stops_is_no_fault,
];

/// The limit of descriptors: the daemon itself needs some thirty, and its listeners accept 48 clients.
const FILES_MAX: u32 = 64;

/// The changes of an interface: each message has some two kilobytes, and a socket queues 200.
const LINK_CHANGES: u32 = 5000;

fn exhausted_descriptors_are_reported_without_spinning(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let log = context.unique_path("comporta.log");
    let words = format!(
        "prlimit --nofile={FILES_MAX}:{FILES_MAX} {} vswitchd --pidfile",
        comporta_binary().display()
    );
    let daemon = deployment.program(&words).log(&log);
    let mut daemon = context.spawner.start(daemon)?;
    deployment.vsctl(TWO_PORTS)?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    // Each listener takes a quarter at most, so several are needed.
    let mut clients = Vec::new();
    for socket in ["br0.mgmt", "br0.snoop"] {
        for _ in 0..FILES_MAX {
            // The backlog may be full.
            clients.extend(UnixStream::connect(deployment.rundir.join(socket)));
        }
    }
    let unixctl = deployment
        .rundir
        .join(format!("ovs-vswitchd.{}.ctl", daemon.id()));
    for _ in 0..FILES_MAX {
        clients.extend(UnixStream::connect(&unixctl));
    }
    context.wait_until("a failed accept", || {
        let log = fs::read_to_string(&log).map_err(Failure::to("read the log"))?;
        Ok(log.contains("cannot accept a connection for"))
    })?;
    let cpu_time = || {
        let usage = daemon.usage().map_err(Failure::to("read the usage"))?;
        Ok::<_, Failure>(usage.user + usage.system)
    };
    let before = cpu_time()?;
    let second = Duration::from_secs(1);
    context.clock.sleep_until(context.clock.now() + 2 * second);
    let spent = cpu_time()? - before;
    assert!(spent < second / 5, "{spent:?} in two seconds");
    network.host(1).ping(network.host(2).address, 3)?;
    drop(clients);
    context.wait_until("an answer", || {
        let version = deployment.program("ovs-appctl --timeout=2 version");
        Ok(CommandOutput::run(context, version)?.status.success())
    })?;
    assert!(daemon.stop()?.success());
    Ok(())
}

/// A small file system in memory, which is unmounted when this is dropped.
struct SmallDisk<'c> {
    context: &'c TestContext,
    path: PathBuf,
}

impl<'c> SmallDisk<'c> {
    fn mount(context: &'c TestContext, path: &Path) -> Result<Self, Failure> {
        fs::create_dir(path).map_err(Failure::to("create a directory"))?;
        let words = format!("mount -t tmpfs -o size=64k tmpfs {}", path.display());
        CommandOutput::run(context, program(&words))?.expect_success()?;
        Ok(Self {
            context,
            path: path.to_owned(),
        })
    }

    /// Writes a file until no byte is left.
    fn fill(&self) -> Result<PathBuf, Failure> {
        let path = self.path.join("filler");
        let mut file = fs::File::create(&path).map_err(Failure::to("create a file"))?;
        while file.write_all(&[0; 4096]).is_ok() {}
        Ok(path)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let words = format!("umount -l {}", self.path.display());
        drop(CommandOutput::run(self.context, program(&words)));
    }
}

fn full_disk_stops_neither_checkpoints_for_ever_nor_frames(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let disk = SmallDisk::mount(context, &context.directory().join("disk"))?;
    let checkpoint = disk.path.join("checkpoint");
    let options = format!(
        "--checkpoint {} --log-file={}",
        checkpoint.display(),
        disk.path.join("log").display()
    );
    let mut daemon = deployment.start_daemon_with(&options)?;
    daemon.wait_for_log("INFO ready")?;
    let filler = disk.fill()?;
    deployment.vsctl(TWO_PORTS)?;
    daemon.wait_for_log("cannot write the checkpoint")?;
    network.host(1).ping(network.host(2).address, 3)?;
    assert!(!checkpoint.exists() && !disk.path.join("checkpoint.next").exists());
    fs::remove_file(filler)?;
    deployment.run_tool("ovs-ofctl add-flow br0 table=9,actions=drop")?;
    context.wait_until("a checkpoint", || Ok(checkpoint.exists()))?;
    assert!(daemon.process.stop()?.success());
    Ok(())
}

fn lost_netlink_messages_are_replaced_by_a_listing(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let mut daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    let pid = daemon.process.id();
    // While the process is stopped, its sockets get more messages than they can queue.
    signal(pid, Signal::STOP)?;
    let batch = context.unique_path("links.txt");
    let changes = (0..LINK_CHANGES).map(|number| format!("link set p1 alias a{number}\n"));
    let changes: String = changes.chain(["link set p2 down\n".to_owned()]).collect();
    fs::write(&batch, changes)?;
    network
        .run(&format!("ip -batch {}", batch.display()))?
        .expect_success()?;
    signal(pid, Signal::CONT)?;
    deployment.wait_for_column("get Interface p2 link_state", "down")?;
    daemon.wait_for_log("netlink messages were lost")?;
    network.run("ip link set p2 up")?.expect_success()?;
    deployment.wait_for_column("get Interface p2 link_state", "up")?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    assert!(daemon.process.stop()?.success());
    Ok(())
}

fn time_that_jumps_or_stops_is_no_fault(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let mut daemon = deployment.start_daemon_with("--enable-dummy")?;
    daemon.wait_for_log("INFO ready")?;
    deployment.vsctl(TWO_PORTS)?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    // The clock of the protocols stops and jumps by an hour; that of the watchdog does not.
    deployment.run_tool("ovs-appctl time/stop")?;
    deployment.run_tool("ovs-appctl time/warp 3600000")?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    // The whole process is stopped for longer than a worker may be.
    let pid = daemon.process.id();
    signal(pid, Signal::STOP)?;
    let stopped = context.clock.now();
    context.clock.sleep_until(stopped + Duration::from_secs(7));
    signal(pid, Signal::CONT)?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    context.clock.sleep_until(stopped + Duration::from_secs(9));
    let log = fs::read_to_string(&daemon.log)?;
    assert!(
        !log.contains("to quiesce") && !log.contains("EMER"),
        "{log}"
    );
    assert!(daemon.process.stop()?.success());
    Ok(())
}
