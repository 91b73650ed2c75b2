//! Failures during a run of the lab: a device dies, a device speaks no OpenFlow, the disk is full,
//! the lab is killed. Completed trials are kept, and the run continues.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testbed::Program;

use crate::lab::lab_program;
use crate::support::command::{CommandOutput, comporta_binary};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};

/// Longest duration of a command of the lab, with one device.
const WAIT_LIMIT: Duration = Duration::from_secs(50);

pub(crate) const TESTS: &[SystemTest] = tests![
    device_that_dies_in_a_trial_is_restarted_for_the_next,
    device_without_openflow_is_reported_and_others_are_measured,
    completed_trials_survive_a_full_disk,
    completed_trials_survive_a_killed_lab,
];

/// CPU ticks that a switch uses only if it forwards frames.
const WORK_TICKS: u64 = 10;

/// Trials in the records.
fn trials(out: &Path) -> Vec<Value> {
    let text = fs::read_to_string(out.join("records.jsonl")).unwrap_or_default();
    // The last line may be incomplete.
    let entries = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    entries.filter(|entry| entry["kind"] == "trial").collect()
}

fn is_completed(trial: &Value) -> bool {
    !trial["outcome"].is_null()
}

fn flaws(trial: &Value) -> String {
    trial["flaws"].to_string()
}

/// Arguments of an echo experiment with these devices; trials differ in the match of the rules.
fn echo_arguments(device: &str, packets: u32, out: &Path, more: &str) -> String {
    format!(
        "run echo --quick --frame-bytes 64 --packets {packets} --device {device} \
         --no-calibration --out {} {more}",
        out.display()
    )
}

/// Returns the process id of the switch that the lab started, which has the run's directory in its
/// command line, or `None` if there is none.
fn switch_of(out: &Path) -> Option<Pid> {
    let directory = out.join("devices/comporta");
    let directory = fs::canonicalize(directory).ok()?;
    let all = fs::read_dir("/proc").ok()?;
    let mut pids = all.flatten().filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let words = fs::read(entry.path().join("cmdline")).ok()?;
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let is_switch = words.contains(" switch ") && words.contains(directory.to_str()?);
        is_switch.then_some(pid)
    });
    Pid::from_raw(pids.next()?)
}

fn device_that_dies_in_a_trial_is_restarted_for_the_next(context: &TestContext) -> TestResult {
    let out = context.unique_path("dies");
    // Trials of many seconds; the end of the switch ends the first.
    let long_run = echo_arguments("comporta", 1_000_000, &out, "--runs 1 --match port,udp");
    let log = context.unique_path("lab.log");
    let mut run = context.spawner.start(lab_program(&long_run).log(&log))?;
    context.wait_until("the trials to start", || {
        Ok(fs::read_to_string(&log).is_ok_and(|text| text.contains("tests, about")))
    })?;
    let switch = switch_of(&out).ok_or("the lab started no switch")?;
    let before = ticks(switch);
    context.wait_until("the switch to forward frames", || {
        Ok(ticks(switch) >= before + WORK_TICKS)
    })?;
    kill_process(switch, Signal::KILL)?;
    context.wait_until("the record of the failed trial", || {
        Ok(!trials(&out).is_empty())
    })?;
    let failed = &trials(&out)[0];
    assert!(!is_completed(failed), "{failed}");
    let reasons = flaws(failed);
    assert!(
        reasons.contains("the device ended during the trial") && reasons.contains("signal: 9"),
        "{reasons}"
    );
    // The next trial runs with a new process.
    let new_switch = context.wait_for("a new process of the device", || {
        Ok(switch_of(&out).filter(|pid| *pid != switch))
    })?;
    assert_ne!(new_switch, switch);
    let status = run.stop()?;
    assert_eq!(status.code(), Some(130), "{}", run.last_words());
    let report = fs::read_to_string(out.join("report.html"))?;
    assert!(report.contains("the device ended during the trial"));
    Ok(())
}

/// CPU ticks that a process has used, from `/proc/PID/stat`.
fn ticks(pid: Pid) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()));
    let stat = stat.unwrap_or_default();
    let (_, rest) = stat.rsplit_once(')').unwrap_or_default();
    let fields = rest.split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

fn device_without_openflow_is_reported_and_others_are_measured(
    context: &TestContext,
) -> TestResult {
    // A port that is free now, on which the lab will listen.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let (stop_sender, stop) = mpsc::channel();
    let thread = thread::spawn(move || send_garbage(address, &stop));
    let interfaces = testbed::Namespace::new()?;
    let far = testbed::Namespace::new()?;
    for interface in ["nic1", "nic2"] {
        interfaces.join(interface, &far, interface)?;
        far.set_up(interface)?;
    }
    let namespace = format!(
        "/proc/{}/fd/{}",
        std::process::id(),
        interfaces.as_fd().as_raw_fd()
    );
    let description = context.unique_path("babbler.toml");
    fs::write(
        &description,
        format!(
            "brand = 'Acme'\nmodel = 'Babbler'\nports = ['{namespace}:nic1', '{namespace}:nic2']\n\
             [controller]\nlisten = '{address}'\n"
        ),
    )?;
    let out = context.unique_path("babbles");
    let device = format!("external:{},direct", description.display());
    let words = echo_arguments(&device, 100, &out, "--runs 1 --match port");
    let result = CommandOutput::run_within(WAIT_LIMIT, context, lab_program(&words))?;
    result.expect_success()?;
    let all = trials(&out);
    let of = |device: &str| {
        let mut of = all.iter().filter(|trial| trial["device"] == device);
        of.next().cloned().unwrap_or_default()
    };
    assert!(is_completed(&of("direct")), "{all:?}");
    let name = description.file_stem().unwrap_or_default();
    let failed_trial = of(&name.to_string_lossy());
    assert!(!is_completed(&failed_trial), "{failed_trial}");
    let reasons = flaws(&failed_trial);
    assert!(
        reasons.contains("not connected") && reasons.contains("does not speak OpenFlow"),
        "{reasons}"
    );
    drop(stop_sender);
    thread.join().expect("the thread does not panic");
    Ok(())
}

/// Connects to the lab repeatedly and sends bytes that are no OpenFlow, until the other end of `stop` is
/// dropped.
fn send_garbage(address: SocketAddr, stop: &Receiver<()>) {
    let pause = Duration::from_millis(50);
    while stop.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        // The lab may not listen, and may close the connection early.
        let Ok(mut stream) = TcpStream::connect(address) else {
            continue;
        };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
        let _ = stream.read(&mut [0; 64]);
    }
}

/// A disk of 96 KB, in a mount namespace that ends with the shell.
fn completed_trials_survive_a_full_disk(context: &TestContext) -> TestResult {
    let disk = context.unique_path("disk");
    fs::create_dir_all(&disk)?;
    let (out, saved) = (disk.join("out"), context.unique_path("kept"));
    fs::create_dir_all(&saved)?;
    let run = |more: &str| {
        let words = echo_arguments("direct", 1_000, &out, more);
        format!("{} lab {words}", comporta_binary().display())
    };
    let script = format!(
        "exec 2>&1; mount -t tmpfs -o size=96k none {disk}\n\
         {first}; echo first $?\n\
         cp {records} {saved}/first.jsonl\n\
         mount -o remount,size=32m {disk}\n\
         {second}; echo second $?\n\
         cp {records} {saved}/records.jsonl\n",
        disk = disk.display(),
        records = out.join("records.jsonl").display(),
        saved = saved.display(),
        first = run("--match port,mac,ip,udp,exact --runs 4"),
        second = run("--match port,mac,ip,udp,exact --runs 4 --resume"),
    );
    let program = Program::new("unshare").args(["--mount", "sh", "-c", &script]);
    let output = CommandOutput::run_within(WAIT_LIMIT, context, program)?.expect_success()?;
    assert!(
        output.contains("first 1") && output.contains("second 0"),
        "{output}"
    );
    assert!(
        output.contains("No space left") && output.contains("continue with --resume"),
        "{output}"
    );
    let first = fs::read_to_string(saved.join("first.jsonl"))?;
    let complete: Vec<&str> = first.lines().filter(|line| is_complete(line)).collect();
    assert!(complete.len() > 1, "no trial was completed: {first}");
    let all = fs::read_to_string(saved.join("records.jsonl"))?;
    let all_saved = complete.iter().all(|line| all.contains(line));
    assert!(all_saved, "completed trials are kept");
    assert!(trials(&saved).iter().all(is_completed));
    Ok(())
}

fn is_complete(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_ok()
}

fn completed_trials_survive_a_killed_lab(context: &TestContext) -> TestResult {
    let out: PathBuf = context.unique_path("killed");
    let words = echo_arguments("direct", 1_000, &out, "--runs 1 --match port,udp,exact");
    let mut run = context
        .spawner
        .start(lab_program(&words).log(context.unique_path("killed.log")))?;
    context.wait_until("a completed trial", || Ok(!trials(&out).is_empty()))?;
    run.kill()?;
    let before = trials(&out);
    let words = format!("{words} --resume");
    CommandOutput::run_within(WAIT_LIMIT, context, lab_program(&words))?.expect_success()?;
    let after = trials(&out);
    assert!(
        before.iter().all(|trial| after.contains(trial)),
        "{after:?}"
    );
    assert!(after.iter().all(is_completed));
    let report = fs::read_to_string(out.join("report.html"))?;
    assert!(
        report.contains("trials are valid"),
        "the report covers all trials"
    );
    Ok(())
}
