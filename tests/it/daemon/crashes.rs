//! Panics of each thread of the daemon under traffic: the process reports the panic and ends, and
//! its successor forwards.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use testbed::{Failure, Process};

use super::process::{parent_pid, pid, reply, signal, start_in_background};
use crate::support::command::{comporta_binary, program};
use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::{BackgroundDaemon, Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    monitor_restarts_after_a_panic_of_any_thread,
    panic_of_any_thread_ends_the_daemon_and_its_successor_forwards,
    slow_turn_of_the_control_thread_is_logged_with_its_cause,
    stopped_worker_is_reported_within_2_s_and_restarted_within_10_s,
    service_manager_is_fed_only_while_all_threads_live,
];

/// The threads and tasks that a test can panic; `worker` means the only worker.
pub(super) const THREADS: [&str; 8] = [
    "control", "worker", "tasks", "peers", "blocking", "parallel", "database", "reaper",
];

/// The pings of a measurement, their interval in milliseconds, and the limit of lost ones: one
/// second.
const PINGS: u32 = 80;
const PING_INTERVAL_MS: u32 = 50;
const LOST_MAX: u32 = 1000 / PING_INTERVAL_MS;

/// The beginnings of the names of all threads. Each kind is in [`THREADS`], except the watchdog,
/// which panics if another thread stops. The first thread is the control thread; `tasks` is also the
/// name of those for blocking work.
const KINDS: [&str; 7] = [
    "ovs-vswitchd",
    "worker-",
    "tasks",
    "peers",
    "parallel",
    "reaper",
    "watchdog",
];

/// Returns the names of the threads of a process.
fn thread_names(pid: u32) -> Result<Vec<String>, Failure> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.map_err(Failure::to("list the threads of a process"))?;
    // A thread may have ended since.
    let names = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    Ok(names.map(|name| name.trim().to_owned()).collect())
}

/// Returns the name of a thread of the process; finds the core of its worker.
pub(super) fn thread_name(pid: u32, name: &str) -> Result<String, Failure> {
    if name != "worker" {
        return Ok(name.to_owned());
    }
    let mut names = thread_names(pid)?.into_iter();
    let worker = names.find(|name| name.starts_with("worker-"));
    Ok(worker.expect("the daemon has a worker"))
}

/// Starts pings from host 1 to host 2 in the background.
fn start_pings(network: &TestNetwork<'_>) -> Result<(Process, std::path::PathBuf), Failure> {
    let (one, two) = network.host_pair();
    let log = network.context.unique_path("fping.log");
    let words = format!(
        "fping -q -c {PINGS} -p {PING_INTERVAL_MS} -t 500 {}",
        two.address
    );
    let words = program(&words).inside(&one.namespace).log(&log);
    Ok((network.context.spawner.start(words)?, log))
}

/// Returns the number of replies in the summary of fping: `ADDRESS : xmt/rcv/%loss = 80/75/6%`.
fn replies_in(summary: &str) -> u32 {
    let (_, counts) = summary.split_once("%loss = ").expect("a summary");
    let received = counts.split('/').nth(1);
    received
        .and_then(|number| number.parse().ok())
        .expect("a number")
}

/// Asserts that the log has the report of a panic of this thread, with location and backtrace.
fn assert_reported(log: &str, name: &str) {
    let report = log.split_once("panicked at ");
    let (_, report) = report.unwrap_or_else(|| panic!("{name}: {log}"));
    assert!(report.contains("requested by comporta/panic"), "{report}");
    assert!(report.contains("test_fault.rs:"), "{report}");
    assert!(report.contains("panic_with_hook"), "{report}");
    assert!(log.contains("|EMER|"), "{log}");
}

fn monitor_restarts_after_a_panic_of_any_thread(context: &TestContext) -> TestResult {
    let program = format!(
        "{} vswitchd --monitor --enable-dummy -vconsole:off --log-file",
        comporta_binary().display()
    );
    for name in THREADS {
        let network = TestNetwork::new(context, 2)?;
        let deployment = Deployment::in_directory(&network, name)?;
        let first = start_in_background(&deployment, &program)?;
        let monitor = BackgroundDaemon(parent_pid(first.0)?);
        deployment.vsctl(&format!(
            "{TWO_PORTS} -- add-port br0 vm1 -- set Interface vm1 type=tap"
        ))?;
        network.host(1).ping(network.host(2).address, 3)?;
        let (mut pings, summary) = start_pings(&network)?;
        let thread = thread_name(first.0, name)?;
        reply(&deployment, &["comporta/panic", &thread])?;
        context.wait_until("the process id of a new daemon", || {
            Ok(pid(&deployment).is_ok_and(|now| ![0, first.0].contains(&now)))
        })?;
        let second = BackgroundDaemon(pid(&deployment)?);
        pings.wait(WAIT_LIMIT)?;
        let replies = replies_in(&fs::read_to_string(summary)?);
        assert!(replies >= PINGS - LOST_MAX, "{name}: {replies} of {PINGS}");
        let log = fs::read_to_string(deployment.rundir.join("ovs-vswitchd.log"))?;
        assert_reported(&log, name);
        assert!(
            log.contains(&format!("1 crashes: pid {} died", first.0)),
            "{log}"
        );
        signal(second.0, Signal::TERM)?;
        let has_exited = || Ok(!Path::new(&format!("/proc/{}", monitor.0)).exists());
        context.wait_until("the monitor to exit", has_exited)?;
        assert_nothing_is_left(&deployment)?;
    }
    Ok(())
}

fn panic_of_any_thread_ends_the_daemon_and_its_successor_forwards(
    context: &TestContext,
) -> TestResult {
    for name in THREADS {
        let network = TestNetwork::new(context, 2)?;
        let deployment = Deployment::in_directory(&network, name)?;
        let mut first = deployment.start_daemon_with("--enable-dummy")?;
        first.wait_for_log("INFO ready")?;
        deployment.vsctl(&format!(
            "{TWO_PORTS} -- add-port br0 vm1 -- set Interface vm1 type=tap"
        ))?;
        network.host(1).ping(network.host(2).address, 3)?;
        let (mut pings, _) = start_pings(&network)?;
        for thread in thread_names(first.process.id())? {
            let is_known = KINDS.iter().any(|kind| thread.starts_with(kind));
            assert!(is_known, "no test panics the thread {thread}");
        }
        let thread = thread_name(first.process.id(), name)?;
        reply(&deployment, &["comporta/panic", &thread])?;
        let status = first.process.wait(WAIT_LIMIT)?;
        assert_eq!(status.signal(), Some(Signal::ABORT.as_raw()), "{name}");
        assert_reported(&fs::read_to_string(&first.log)?, name);
        let mut second = deployment.start_daemon()?;
        network.host(1).ping_until_reply(network.host(2).address)?;
        pings.wait(WAIT_LIMIT)?;
        assert!(second.process.stop()?.success());
        assert_nothing_is_left(&deployment)?;
    }
    Ok(())
}

fn slow_turn_of_the_control_thread_is_logged_with_its_cause(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let deployment = Deployment::new(&network)?;
    let daemon = deployment.start_daemon_with("--enable-dummy")?;
    daemon.wait_for_log("INFO ready")?;
    let slow_before = deployment.counter("control turns_slow")?;
    deployment.run_tool("ovs-appctl comporta/stall control 1500")?;
    daemon.wait_for_log("ms for the command \"comporta/stall\"")?;
    assert!(deployment.counter("control turns_slow")? > slow_before);
    assert!(deployment.counter("control turn_longest_us")? >= 1_500_000);
    Ok(())
}

fn stopped_worker_is_reported_within_2_s_and_restarted_within_10_s(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let program = format!(
        "{} vswitchd --monitor --enable-dummy -vconsole:off --log-file",
        comporta_binary().display()
    );
    let first = start_in_background(&deployment, &program)?;
    let _monitor = BackgroundDaemon(parent_pid(first.0)?);
    deployment.vsctl(TWO_PORTS)?;
    network.host(1).ping(network.host(2).address, 3)?;
    let log = || {
        fs::read_to_string(deployment.rundir.join("ovs-vswitchd.log"))
            .map_err(Failure::to("read the log"))
    };
    let worker = thread_name(first.0, "worker")?;
    let stopped = context.clock.now();
    reply(&deployment, &["comporta/stall", &worker, "60000"])?;
    let line = format!("waiting for {worker} to quiesce");
    context.wait_until("a report of the stopped worker", || {
        Ok(log()?.contains(&line))
    })?;
    assert!(context.clock.now() - stopped < Duration::from_secs(2));
    context.wait_until("the process id of a new daemon", || {
        Ok(pid(&deployment).is_ok_and(|now| ![0, first.0].contains(&now)))
    })?;
    let _second = BackgroundDaemon(pid(&deployment)?);
    network.host(1).ping_until_reply(network.host(2).address)?;
    assert!(context.clock.now() - stopped < Duration::from_secs(10));
    let text = log()?;
    assert!(
        text.contains(&format!("{worker} has made no progress for")),
        "{text}"
    );
    Ok(())
}

fn service_manager_is_fed_only_while_all_threads_live(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let deployment = Deployment::new(&network)?;
    let socket = context.unique_path("notify");
    let manager = UnixDatagram::bind(&socket)?;
    manager.set_read_timeout(Some(WAIT_LIMIT))?;
    let log = context.unique_path("comporta.log");
    let words = format!(
        "{} vswitchd --pidfile --enable-dummy",
        comporta_binary().display()
    );
    let daemon = deployment.program(&words).log(&log);
    let daemon = daemon
        .env("NOTIFY_SOCKET", socket)
        .env("WATCHDOG_USEC", "1000000");
    let mut daemon = context.spawner.start(daemon)?;
    let next = || {
        let mut buffer = [0; 64];
        let length = manager.recv(&mut buffer)?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&buffer[..length]).into_owned())
    };
    let mut states = std::collections::BTreeSet::new();
    while states.len() < 2 {
        states.insert(next()?);
    }
    assert!(
        states.contains("READY=1\n") && states.contains("WATCHDOG=1\n"),
        "{states:?}"
    );
    // The control thread stops for longer than the time of a report, and recovers.
    let begun = context.clock.now();
    reply(&deployment, &["comporta/stall", "control", "4000"])?;
    let is_recovered = context.clock.now() - begun >= Duration::from_secs(4);
    assert!(is_recovered, "the answer follows the stall");
    manager.set_nonblocking(true)?;
    let mut fed = 0;
    while next().is_ok() {
        fed += 1;
    }
    // Half a second apart, for the first 1.5 to 2 s only; and perhaps once after the recovery.
    assert!((1..=6).contains(&fed), "{fed} times in 4 s");
    manager.set_nonblocking(false)?;
    assert_eq!(next()?, "WATCHDOG=1\n");
    assert!(daemon.stop()?.success());
    let last = || -> TestResult {
        while next()? != "STOPPING=1\n" {}
        Ok(())
    };
    last()
}

/// Asserts that neither interfaces of the daemon, nor promiscuous ports, nor its sockets remain.
fn assert_nothing_is_left(deployment: &Deployment<'_, '_>) -> TestResult {
    let links = deployment.network.run("ip -d -o link")?.expect_success()?;
    for part in ["vm1", "br0", "promiscuity 1"] {
        assert!(!links.contains(part), "{part}: {links}");
    }
    let entries = fs::read_dir(&deployment.rundir)?.flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let socket = names.find(|name| name.starts_with("ovs-vswitchd.") && name.ends_with(".ctl"));
    assert_eq!(socket, None);
    Ok(())
}
