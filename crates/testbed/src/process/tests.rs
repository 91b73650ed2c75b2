//! Child processes: location, output and end.

use super::*;

fn spawner() -> Spawner {
    Spawner::new().expect("a thread can be had")
}

fn scratch(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("testbed-{}-{name}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    directory
}

const SOON: Duration = Duration::from_secs(10);

#[test]
fn output_and_errors_are_written_to_their_files() {
    let directory = scratch("files");
    let program = Program::new("sh")
        .args(["-c", "echo out; echo err >&2; exit 3"])
        .output(directory.join("out"))
        .log(directory.join("log"));
    let mut process = spawner().start(program).unwrap();
    let status = process.wait(SOON).unwrap();
    assert_eq!(status.code(), Some(3));
    assert_eq!(process.written().unwrap(), "out\n");
    assert_eq!(
        process.failed(status).to_string(),
        "sh failed (exit status: 3): err"
    );
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn child_that_ignores_sigterm_is_killed() {
    let directory = scratch("stubborn");
    let program = Program::new("sh")
        .args([
            "-c",
            "trap '' TERM; echo ready; while :; do sleep 9 & wait; done",
        ])
        .log(directory.join("log"));
    let spawner = spawner();
    let mut process = spawner.start(program).unwrap();
    let clock = crate::Clock::start();
    clock
        .wait_for("the trap", SOON, || {
            Ok((process.written()? == "ready\n").then_some(()))
        })
        .unwrap();
    let status = process.end(Duration::from_millis(50)).unwrap();
    assert_eq!(status.to_string(), "signal: 9 (SIGKILL)");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn child_receives_sighup() {
    let directory = scratch("told");
    let program = Program::new("sh")
        .args(["-c", "trap 'echo again' HUP; echo ready; sleep 9 & wait"])
        .log(directory.join("log"));
    let mut process = spawner().start(program).unwrap();
    let clock = crate::Clock::start();
    let says = |what: &str| {
        let look = || Ok((process.written()? == what).then_some(()));
        clock.wait_for(what, SOON, look).unwrap();
    };
    says("ready\n");
    process.hang_up().unwrap();
    says("ready\nagain\n");
    process.kill().unwrap();
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn missing_program_is_named_in_the_failure() {
    let error = spawner().start(Program::new("nonesuch")).unwrap_err();
    assert!(error.to_string().starts_with("cannot start nonesuch: "));
}

#[test]
fn command_line_can_be_pasted_into_a_shell() {
    let program = Program::new("/bin/echo").args(["plain-word", "two words", "it's", ""]);
    assert_eq!(
        program.command_line(),
        r"/bin/echo plain-word 'two words' 'it'\''s' ''"
    );
}

#[test]
fn programs_are_found_in_debians_directories() {
    assert!(find("sh").is_some());
    assert_eq!(find("nonesuch"), None);
}
