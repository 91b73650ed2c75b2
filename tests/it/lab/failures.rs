//! Runs of the lab that do not go as they should: a device dies, one talks nonsense, the disk is
//! full, the lab itself is killed. What was measured stays, and the run goes on.

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

use crate::support::command::{CommandOutput, comporta_binary};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};

/// How long the lab may take for hosts, a device, and some round trips.
const WAIT_LIMIT: Duration = Duration::from_secs(50);

pub(crate) const TESTS: &[SystemTest] = tests![
    a_device_that_dies_in_mid_trial_is_started_anew_for_the_next,
    a_device_that_talks_nonsense_is_told_of_and_the_others_are_measured,
    what_was_measured_outlives_a_full_disk,
    what_was_measured_outlives_a_killed_lab,
];

/// Ticks of a core that a switch uses only if frames pass.
const WORK: u64 = 10;

/// The trials that have been written.
fn trials(out: &Path) -> Vec<Value> {
    let text = fs::read_to_string(out.join("records.jsonl")).unwrap_or_default();
    // The last line may be half written.
    let entries = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    entries.filter(|entry| entry["kind"] == "trial").collect()
}

fn is_done(trial: &Value) -> bool {
    !trial["outcome"].is_null()
}

fn reasons(trial: &Value) -> String {
    trial["flaws"].to_string()
}

/// Echoes on these devices; trials differ in what rules match on.
fn echoes(device: &str, packets: u32, out: &Path, more: &str) -> String {
    format!(
        "run echo --quick --frame-bytes 64 --packets {packets} --device {device} \
         --no-calibration --out {} {more}",
        out.display()
    )
}

fn lab(words: &str) -> Program<'static> {
    Program::new(comporta_binary())
        .arg("lab")
        .args(words.split_whitespace())
}

/// The switch that a lab has started, which says its directory.
fn switch_of(out: &Path) -> Option<Pid> {
    let place = out.join("devices/comporta");
    let place = fs::canonicalize(place).ok()?;
    let all = fs::read_dir("/proc").ok()?;
    let mut pids = all.flatten().filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let words = fs::read(entry.path().join("cmdline")).ok()?;
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let is_it = words.contains(" switch ") && words.contains(place.to_str()?);
        is_it.then_some(pid)
    });
    Pid::from_raw(pids.next()?)
}

fn a_device_that_dies_in_mid_trial_is_started_anew_for_the_next(
    context: &TestContext,
) -> TestResult {
    let out = context.unique_path("dies");
    // Trials of many seconds, of which the first is cut short by the switch's end.
    let long = echoes("comporta", 1_000_000, &out, "--runs 1 --match port,udp");
    let log = context.unique_path("lab.log");
    let mut run = context.spawner.start(lab(&long).log(&log))?;
    context.wait_until("the trials to begin", || {
        Ok(fs::read_to_string(&log).is_ok_and(|said| said.contains("tests, about")))
    })?;
    let switch = switch_of(&out).ok_or("there is no switch")?;
    let before = ticks(switch);
    context.wait_until("the switch to be at work", || {
        Ok(ticks(switch) >= before + WORK)
    })?;
    kill_process(switch, Signal::KILL)?;
    context.wait_until("the trial to be recorded as failed", || {
        Ok(!trials(&out).is_empty())
    })?;
    let failed = &trials(&out)[0];
    assert!(!is_done(failed), "{failed}");
    let told = reasons(failed);
    assert!(
        told.contains("the device ended in mid-trial") && told.contains("signal: 9"),
        "{told}"
    );
    // The next one runs on a new process.
    let again = context.wait_for("the device to be started anew", || {
        Ok(switch_of(&out).filter(|pid| *pid != switch))
    })?;
    assert_ne!(again, switch);
    let ended = run.stop()?;
    assert_eq!(ended.code(), Some(130), "{}", run.last_words());
    let report = fs::read_to_string(out.join("report.html"))?;
    assert!(report.contains("the device ended in mid-trial"));
    Ok(())
}

/// Ticks of a core that a process has used, by `/proc/PID/stat`.
fn ticks(pid: Pid) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()));
    let stat = stat.unwrap_or_default();
    let (_, rest) = stat.rsplit_once(')').unwrap_or_default();
    let fields = rest.split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

fn a_device_that_talks_nonsense_is_told_of_and_the_others_are_measured(
    context: &TestContext,
) -> TestResult {
    // A port that is free now: the lab is to listen there, and nobody else wants it.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let (stop, told) = mpsc::channel();
    let babbler = thread::spawn(move || babble(address, &told));
    let cards = testbed::Namespace::new()?;
    let far = testbed::Namespace::new()?;
    for card in ["nic1", "nic2"] {
        cards.join(card, &far, card)?;
        far.set_up(card)?;
    }
    let place = format!(
        "/proc/{}/fd/{}",
        std::process::id(),
        cards.as_fd().as_raw_fd()
    );
    let described = context.unique_path("babbler.toml");
    fs::write(
        &described,
        format!(
            "brand = 'Acme'\nmodel = 'Babbler'\nports = ['{place}:nic1', '{place}:nic2']\n\
             [controller]\nlisten = '{address}'\n"
        ),
    )?;
    let out = context.unique_path("babbles");
    let device = format!("external:{},direct", described.display());
    let words = echoes(&device, 100, &out, "--runs 1 --match port");
    let ran = CommandOutput::run_within(WAIT_LIMIT, context, lab(&words))?;
    ran.expect_success()?;
    let all = trials(&out);
    let of = |device: &str| {
        let mut of = all.iter().filter(|trial| trial["device"] == device);
        of.next().cloned().unwrap_or_default()
    };
    assert!(is_done(&of("direct")), "{all:?}");
    let name = described.file_stem().unwrap_or_default();
    let babbled = of(&name.to_string_lossy());
    assert!(!is_done(&babbled), "{babbled}");
    let told = reasons(&babbled);
    assert!(
        told.contains("not connected") && told.contains("does not speak OpenFlow"),
        "{told}"
    );
    drop(stop);
    babbler.join().expect("it only calls");
    Ok(())
}

/// Calls the lab again and again, and says what no switch does, until the other end of `told`
/// is gone.
fn babble(address: SocketAddr, told: &Receiver<()>) {
    let pause = Duration::from_millis(50);
    while told.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        // While nobody listens there is nobody to talk to; who hangs up has heard enough.
        let Ok(mut stream) = TcpStream::connect(address) else {
            continue;
        };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
        let _ = stream.read(&mut [0; 64]);
    }
}

/// A disk of 96 KB, in a namespace of mounts that ends with the shell.
fn what_was_measured_outlives_a_full_disk(context: &TestContext) -> TestResult {
    let disk = context.unique_path("disk");
    fs::create_dir_all(&disk)?;
    let (out, kept) = (disk.join("out"), context.unique_path("kept"));
    fs::create_dir_all(&kept)?;
    let run = |more: &str| {
        let words = echoes("direct", 1_000, &out, more);
        format!("{} lab {words}", comporta_binary().display())
    };
    let script = format!(
        "exec 2>&1; mount -t tmpfs -o size=96k none {disk}\n\
         {first}; echo first $?\n\
         cp {records} {kept}/first.jsonl\n\
         mount -o remount,size=32m {disk}\n\
         {second}; echo second $?\n\
         cp {records} {kept}/records.jsonl\n",
        disk = disk.display(),
        records = out.join("records.jsonl").display(),
        kept = kept.display(),
        first = run("--match port,mac,ip,udp,exact --runs 4"),
        second = run("--match port,mac,ip,udp,exact --runs 4 --resume"),
    );
    let program = Program::new("unshare").args(["--mount", "sh", "-c", &script]);
    let said = CommandOutput::run_within(WAIT_LIMIT, context, program)?.expect_success()?;
    assert!(
        said.contains("first 1") && said.contains("second 0"),
        "{said}"
    );
    assert!(
        said.contains("No space left") && said.contains("go on with --resume"),
        "{said}"
    );
    let first = fs::read_to_string(kept.join("first.jsonl"))?;
    let whole: Vec<&str> = first.lines().filter(|line| is_whole(line)).collect();
    assert!(whole.len() > 1, "something was measured: {first}");
    let all = fs::read_to_string(kept.join("records.jsonl"))?;
    let kept_all = whole.iter().all(|line| all.contains(line));
    assert!(kept_all, "what was measured is there still");
    assert!(trials(&kept).iter().all(is_done));
    Ok(())
}

fn is_whole(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_ok()
}

fn what_was_measured_outlives_a_killed_lab(context: &TestContext) -> TestResult {
    let out: PathBuf = context.unique_path("killed");
    let words = echoes("direct", 1_000, &out, "--runs 1 --match port,udp,exact");
    let mut run = context
        .spawner
        .start(lab(&words).log(context.unique_path("killed.log")))?;
    context.wait_until("a trial to be done", || Ok(!trials(&out).is_empty()))?;
    run.kill()?;
    let before = trials(&out);
    let words = format!("{words} --resume");
    CommandOutput::run_within(WAIT_LIMIT, context, lab(&words))?.expect_success()?;
    let after = trials(&out);
    assert!(
        before.iter().all(|trial| after.contains(trial)),
        "{after:?}"
    );
    assert!(after.iter().all(is_done));
    let report = fs::read_to_string(out.join("report.html"))?;
    assert!(report.contains("tests count"), "the report is made of all");
    Ok(())
}
