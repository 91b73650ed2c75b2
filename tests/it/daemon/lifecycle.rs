//! Lifecycle of the switch: command line, configuration file, reload, ports that change, restart
//! and exit.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use testbed::Failure;

use crate::support::command::{CommandOutput, comporta_binary, comporta_program, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::host::{TestHost, pseudo_random_bytes};
use crate::support::network::TestNetwork;
use crate::support::switch::STANDALONE_2;

pub(crate) const TESTS: &[SystemTest] = tests![
    sigterm_exits_within_a_second_and_leaves_nothing_behind,
    exit_command_ends_the_switch,
    switch_restarts_on_the_same_sockets_after_kill_9,
    second_switch_in_a_run_directory_is_refused,
    invalid_arguments_are_reported_in_one_line,
    missing_privileges_are_reported,
    configuration_file_is_equivalent_to_the_command_line,
    sighup_applies_the_changes_of_the_file,
    port_numbers_are_as_requested_and_survive_a_restart,
    bridges_in_one_process_are_separate,
    interface_that_returns_becomes_a_port_again,
    link_changes_are_reported,
    workers_share_the_ports,
    idle_switch_uses_no_cpu,
    run_directory_follows_ovs_rundir,
];

fn sigterm_exits_within_a_second_and_leaves_nothing_behind(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let state = || {
        let links = network.run("ip -d -o link")?.expect_success()?;
        let qdiscs = network.run("tc qdisc")?.expect_success()?;
        let has_state = |line: &str| {
            let words = ["promiscuity", "prog/"];
            words.iter().any(|word| line.contains(word))
        };
        let links: Vec<_> = links.lines().filter(|line| has_state(line)).collect();
        Ok::<_, Failure>(format!("{}\n{qdiscs}", links.join("\n")))
    };
    let before = state()?;
    let words = format!(
        "{STANDALONE_2} --port tap:vm1 --controller tcp:127.0.0.1:6653 --listen ptcp:6654 --listen punix:{}",
        context.directory().join("tools.sock").display()
    );
    let mut switch = network.start_switch(&words)?;
    network.host(1).ping(network.host(2).address, 10)?;
    let link = network.run("ip -d link show p1")?.expect_success()?;
    assert!(!link.contains("promiscuity 0"), "{link}");
    let start = context.clock.now();
    let status = switch.process.stop()?;
    let elapsed = context.clock.now() - start;
    assert_eq!(status.code(), Some(0), "{}", switch.log()?);
    assert!(elapsed < Duration::from_secs(1), "{elapsed:?}");
    assert_eq!(state()?, before);
    assert_eq!(
        fs::read_dir(switch.file(""))?.count(),
        0,
        "files in the run directory"
    );
    assert!(!context.directory().join("tools.sock").exists());
    Ok(())
}

fn exit_command_ends_the_switch(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let mut switch = network.start_switch(STANDALONE_2)?;
    assert!(switch.appctl("version")?.starts_with("comporta "));
    switch.appctl("exit")?;
    assert!(switch.process.wait(Duration::from_secs(1))?.success());
    assert_eq!(fs::read_dir(switch.file(""))?.count(), 0);
    Ok(())
}

fn switch_restarts_on_the_same_sockets_after_kill_9(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let words = format!(
        "{STANDALONE_2} --port tap:vm1 --listen ptcp:6654 --listen punix:{}",
        context.directory().join("tools.sock").display()
    );
    for _ in 0..3 {
        let mut switch = network.start_switch(&words)?;
        network.host(1).ping_until_reply(network.host(2).address)?;
        switch.ofctl("show br0")?;
        switch.process.kill()?;
        assert!(switch.file("br0.mgmt").exists());
        let links = network.run("ip -d -o link")?.expect_success()?;
        assert!(
            !links.contains("vm1") && !links.contains("promiscuity 1"),
            "{links}"
        );
    }
    let mut switch = network.start_switch(&words)?;
    assert!(switch.process.stop()?.success());
    assert_eq!(fs::read_dir(switch.file(""))?.count(), 0);
    Ok(())
}

fn second_switch_in_a_run_directory_is_refused(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(STANDALONE_2)?;
    let refused = error_message(network.run_switch("--bridge br0")?, 1);
    let socket = switch.file("br0.mgmt");
    assert_eq!(
        refused,
        format!(
            "comporta: another switch answers at {}: stop it first, or choose another directory with --rundir\n",
            socket.display()
        )
    );
    // With another run directory the bridge's interface still exists.
    let other_rundir = context.directory().join("elsewhere");
    let refused = error_message(
        CommandOutput::run(context, network.switch_program(&other_rundir, STANDALONE_2))?,
        1,
    );
    assert!(
        refused.starts_with("comporta: bridge br0: port br0: "),
        "{refused}"
    );
    assert!(refused.contains("this name exists"), "{refused}");
    assert_eq!(fs::read_dir(&other_rundir)?.count(), 0);
    // The first switch is not affected.
    network.host(1).ping(network.host(2).address, 3)?;
    switch.ofctl("show br0")?;
    Ok(())
}

/// Invalid arguments, the exit code, and parts of the error message.
#[rustfmt::skip]
const INVALID_ARGUMENTS: [(&str, i32, &[&str]); 19] = [
    ("",                                          1, &["--bridge", "give at least one bridge"]),
    ("--bridge br0 --port nope",                  1, &["bridge br0: port nope", "interface nope does not exist"]),
    ("--bridge br0 --port lo",                    1, &["bridge br0: port lo", "not an Ethernet interface"]),
    ("--bridge br0 --port p1 --port p1",          1, &["--port", "'p1' is used twice"]),
    ("--bridge br0 --port p1 --bridge br1 --port p1", 1, &["--port", "'p1' is used twice"]),
    ("--bridge br0 --port br0",                   1, &["--port", "'br0' is used twice"]),
    ("--bridge br0 --bridge br0",                 1, &["--bridge", "'br0' is used twice"]),
    ("--bridge br0 --port p1=5 --port p2=5",      1, &["--port", "number 5 is requested twice"]),
    ("--bridge br0 --port p1=70000",              1, &["--port", "'70000' is not a port number", "use 1 to"]),
    ("--bridge br0 --port tap:p1",                1, &["bridge br0: port p1", "this name exists"]),
    ("--bridge p1",                               1, &["bridge p1: port p1", "this name exists"]),
    ("--bridge a-name-too-long-for-linux",        1, &["--bridge", "15 bytes"]),
    ("--port p1 --bridge br0",                    1, &["--port: name its bridge first"]),
    ("--bridge br0 --fail-mode open",             1, &["--fail-mode", "use standalone or secure"]),
    ("--bridge br0 --controller sctp:127.0.0.1",  1, &["--controller", "use tcp:"]),
    ("--bridge br0 --listen ptcp:6654",           1, &["cannot listen at 0.0.0.0:6654", "--listen"]),
    ("--bridge br0 --cores 999",                  1, &["--cores", "core 999", "choose from"]),
    ("--config /nonexistent/comporta.toml",       1, &["--config", "/nonexistent/comporta.toml"]),
    ("--bridge br0 --cores one",                  2, &["--cores"]),
];

fn invalid_arguments_are_reported_in_one_line(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let address = (Ipv4Addr::UNSPECIFIED, 6654);
    let _listener = network
        .switch_namespace
        .run(|| TcpListener::bind(address))??;
    for (words, code, parts) in INVALID_ARGUMENTS {
        let message = error_message(network.run_switch(words)?, code);
        for part in parts {
            assert!(message.contains(part), "{words}\n{message}");
        }
        assert!(
            code != 1 || message.lines().count() == 1,
            "{words}\n{message}"
        );
        let rundir = context.directory().join("run");
        let file_count = fs::read_dir(&rundir).map_or(0, |entries| entries.count());
        assert_eq!(file_count, 0, "{words}: files in the run directory");
    }
    let links = network.run("ip -o link")?.expect_success()?;
    assert_eq!(links.lines().count(), 3, "{links}");
    let message = error_message(network.run_switch("--bridge br0 --prot p1")?, 2);
    assert!(
        message.contains("'--prot'") && message.contains("'--port'"),
        "{message}"
    );
    Ok(())
}

fn missing_privileges_are_reported(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    // The user can read the binary, wherever it is.
    let run_unprivileged = |words: &str| {
        let program = program("setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all")
            .arg(comporta_binary())
            .arg("switch")
            .args(words.split_whitespace())
            .arg("--rundir")
            .arg(context.directory().join("run"))
            .inside(&network.switch_namespace);
        CommandOutput::run(context, program)
    };
    let message = error_message(run_unprivileged(STANDALONE_2)?, 1);
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(
        message.contains("bridge br0") && message.contains("CAP_NET_ADMIN"),
        "{message}"
    );
    assert!(message.contains("root"), "{message}");
    Ok(())
}

fn configuration_file_is_equivalent_to_the_command_line(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let file = context.unique_path("comporta.toml");
    let rundir = context.directory().join("run");
    let text = format!(
        r#"
        rundir = "{}"
        cores = [0]

        [[bridge]]
        name = "br0"
        ports = ["p1=4", "p2", "tap:vm1=9"]
        listen = ["ptcp:6654:127.0.0.1"]
        fail-mode = "secure"
        datapath-id = "00000000000000cd"
        "#,
        rundir.display()
    );
    fs::write(&file, text)?;
    let words = "--bridge br0 --port p1=4 --port p2 --port tap:vm1=9 --listen ptcp:6654:127.0.0.1 \
                 --fail-mode secure --datapath-id 00000000000000cd --cores 0";
    let mut descriptions = Vec::new();
    for words in [words, &format!("--config {}", file.display())] {
        let switch = network.start_switch(words)?;
        let output = network
            .run("ovs-ofctl show tcp:127.0.0.1:6654")?
            .expect_success()?;
        // The address of the TAP device differs each time.
        let lines = output.lines().filter(|line| !line.contains("(vm1)"));
        descriptions.push(lines.map(str::to_owned).collect::<Vec<_>>());
        assert!(
            switch.flows("dump-flows br0")?.is_empty(),
            "a secure switch has no rule"
        );
        let allowed = fs::read_to_string(format!("/proc/{}/status", switch.process.id()))?;
        assert!(allowed.contains("Cpus_allowed_list:"), "{allowed}");
    }
    assert_eq!(descriptions[0], descriptions[1]);
    Ok(())
}

fn sighup_applies_the_changes_of_the_file(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let file = context.unique_path("comporta.toml");
    let write = |ports: &str| {
        let text = format!("[[bridge]]\nname = \"br0\"\nports = [{ports}]\n");
        fs::write(&file, text).map_err(Failure::to("write the configuration"))
    };
    write(r#""p1=1", "p2=2""#)?;
    let switch = network.start_switch(&format!("--config {}", file.display()))?;
    let (one, two, three) = (network.host(1), network.host(2), network.host(3));
    one.ping(two.address, 3)?;
    assert!(!one.can_ping(three.address)?);
    switch.ofctl("add-flow br0 cookie=0x77,priority=5,in_port=1,actions=NORMAL")?;
    write(r#""p1=1", "p3=3""#)?;
    switch.process.hang_up()?;
    one.ping_until_reply(three.address)?;
    let output = switch.ofctl("show br0")?;
    assert!(
        output.contains(" 3(p3)") && !output.contains("(p2)"),
        "{output}"
    );
    assert!(!one.can_ping(two.address)?);
    // Unchanged parts remain: the rule and its counters.
    let flows = switch.flows("dump-flows br0")?;
    assert!(
        flows
            .iter()
            .any(|flow| flow.contains("cookie=0x77") && !flow.contains("n_packets=0,")),
        "{flows:?}"
    );
    // An invalid file is not applied.
    write(r#""p1=0""#)?;
    switch.process.hang_up()?;
    context.wait_until("the error of the invalid file", || {
        Ok(switch.log()?.contains("configuration not applied"))
    })?;
    one.ping(three.address, 3)?;
    write(r#""p1=1", "p2=2", "p3=3""#)?;
    switch.process.hang_up()?;
    one.ping_until_reply(two.address)?;
    one.ping(three.address, 3)?;
    Ok(())
}

fn port_numbers_are_as_requested_and_survive_a_restart(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 4)?;
    let words = "--bridge br0 --port p4 --port p3=1 --port p2=300 --port p1 --port tap:vm1";
    let mut descriptions = Vec::new();
    for _ in 0..2 {
        let mut switch = network.start_switch(words)?;
        let output = switch.ofctl("show br0")?;
        for row in [
            " 2(p4): ",
            " 1(p3): ",
            " 300(p2): ",
            " 3(p1): ",
            " 4(vm1): ",
            " LOCAL(br0): ",
        ] {
            assert!(output.contains(row), "{row}\n{output}");
        }
        let lines = output.lines().filter(|line| !line.contains("(vm1)"));
        descriptions.push(lines.map(str::to_owned).collect::<Vec<_>>());
        switch.process.kill()?;
    }
    assert_eq!(descriptions[0], descriptions[1]);
    Ok(())
}

fn bridges_in_one_process_are_separate(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 4)?;
    let switch = network.start_switch(
        "--bridge br0 --port p1 --port p2 --bridge br1 --fail-mode secure --port p3=1 --port p4=2",
    )?;
    let [one, two, three, four] = [1, 2, 3, 4].map(|number| network.host(number));
    one.ping(two.address, 3)?;
    assert!(!three.can_ping(four.address)?);
    assert!(!one.can_ping(three.address)?);
    switch.ofctl("add-flow br1 in_port=1,actions=output:2")?;
    switch.ofctl("add-flow br1 in_port=2,actions=output:1")?;
    three.ping(four.address, 3)?;
    assert!(!one.can_ping(three.address)?);
    assert_eq!(switch.flows("dump-flows br0")?.len(), 1);
    assert_eq!(switch.flows("dump-flows br1")?.len(), 2);
    let entry_count = |bridge: &str| {
        let output = switch.appctl(&format!("fdb/show {bridge}"))?;
        Ok::<_, Failure>(output.lines().count() - 1)
    };
    assert_eq!((entry_count("br0")?, entry_count("br1")?), (2, 0));
    let id = |bridge: &str| {
        let output = switch.ofctl(&format!("show {bridge}"))?;
        let (_, id) = output
            .split_once("dpid:")
            .expect("the output contains the datapath id");
        Ok::<_, Failure>(id[..16].to_owned())
    };
    assert_ne!(id("br0")?, id("br1")?);
    Ok(())
}

fn interface_that_returns_becomes_a_port_again(context: &TestContext) -> TestResult {
    let mut network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(STANDALONE_2)?;
    for options in ["", "-O OpenFlow13"] {
        let monitor = switch.start_monitor(options)?;
        let wait_for_event =
            |text: &str| context.wait_until(text, || Ok(monitor.written()?.contains(text)));
        network.host(1).ping_until_reply(network.host(2).address)?;
        network.switch_namespace.remove("p2")?;
        wait_for_event("DEL: 2(p2)")?;
        let output = switch.ofctl(&format!("{options} show br0"))?;
        assert!(!output.contains("p2"), "{output}");
        // Only the port is removed.
        switch.ofctl("dump-flows br0")?;
        network.hosts[1] = TestHost::attach(context, 2, &network.switch_namespace)?;
        wait_for_event("ADD: 2(p2)")?;
        network.host(1).ping_until_reply(network.host(2).address)?;
        network.host(1).ping(network.host(2).address, 3)?;
    }
    assert!(switch.log()?.contains("the interface is gone"));
    Ok(())
}

fn link_changes_are_reported(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(STANDALONE_2)?;
    for options in ["", "-O OpenFlow13"] {
        let monitor = switch.start_monitor(options)?;
        let wait_for_status = |count: usize, text: &str| {
            context.wait_until(text, || {
                let output = monitor.written()?;
                let events = output.split("OFPT_PORT_STATUS").skip(1);
                let events =
                    events.filter(|event| event.contains(" MOD: 2(p2)") && event.contains(text));
                Ok(events.count() >= count)
            })
        };
        network.host(1).ping_until_reply(network.host(2).address)?;
        // The other end of the cable goes down.
        network.host(2).namespace.set_down("eth0")?;
        wait_for_status(1, "state:      LINK_DOWN")?;
        network.host(2).namespace.set_up("eth0")?;
        network.host(1).ping_until_reply(network.host(2).address)?;
        // The interface itself goes down.
        network.switch_namespace.set_down("p2")?;
        wait_for_status(1, "config:     PORT_DOWN")?;
        network.switch_namespace.set_up("p2")?;
        network.host(1).ping_until_reply(network.host(2).address)?;
        let up = match options {
            "" => "state:      0",
            _ => "state:      LIVE",
        };
        wait_for_status(2, up)?;
    }
    Ok(())
}

/// The device distributes frames by flow, so that the order of each flow is kept, and each frame is
/// counted once.
fn workers_share_the_ports(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch =
        network.start_switch("--cores 0,1 --bridge br0 --fail-mode secure --port p1 --port p2")?;
    switch.ofctl("add-flow br0 in_port=1,actions=output:2")?;
    switch.ofctl("add-flow br0 in_port=2,actions=output:1")?;
    network.add_static_neighbours(1, 2)?;
    network.host(1).ping(network.host(2).address, 50)?;
    assert_eq!(
        switch.flows("dump-flows br0")?,
        [
            "cookie=0x0, table=0, n_packets=50, n_bytes=4900, in_port=1 actions=output:2",
            "cookie=0x0, table=0, n_packets=50, n_bytes=4900, in_port=2 actions=output:1",
        ]
    );
    // Many flows, so that both workers receive some.
    let mut two = network.host(2).capture_frames()?;
    let stacks: Vec<String> = (0..60)
        .map(|port| format!("eth / ipv4 / udp(src={}) / data(9)", 2000 + port))
        .collect();
    let stacks: Vec<&str> = stacks.iter().map(String::as_str).collect();
    network.host(1).send(&stacks)?;
    for _ in &stacks {
        two.next_frame()?;
    }
    let output = switch.ofctl("dump-aggregate br0 in_port=1")?;
    assert!(output.contains("packet_count=110 "), "{output}");
    let file = pseudo_random_bytes(16 << 20);
    assert!(
        network.host(1).transfer(network.host(2), &file)? == file,
        "the file differs"
    );
    Ok(())
}

fn idle_switch_uses_no_cpu(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(&format!(
        "{STANDALONE_2} --port tap:vm1 --controller tcp:127.0.0.1:6653"
    ))?;
    network.host(1).iperf(network.host(2), "")?;
    // The last segments of a connection may still arrive.
    context
        .clock
        .sleep_until(context.clock.now() + Duration::from_millis(500));
    let cpu_time = || {
        let usage = switch
            .process
            .usage()
            .map_err(Failure::to("read the usage of the switch"))?;
        Ok::<_, Failure>(usage.user + usage.system)
    };
    let before = cpu_time()?;
    context
        .clock
        .sleep_until(context.clock.now() + Duration::from_secs(2));
    let spent = cpu_time()? - before;
    // One hundredth of a core, which is two ticks of the kernel.
    assert!(
        spent <= Duration::from_millis(20),
        "{spent:?} in two seconds"
    );
    network.host(1).ping(network.host(2).address, 3)?;
    Ok(())
}

fn run_directory_follows_ovs_rundir(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let rundir = context.directory().join("ovs");
    let log = context.unique_path("comporta.log");
    let program = comporta_program()
        .args(["switch", "--bridge", "br0"])
        .env("OVS_RUNDIR", &rundir)
        .inside(&network.switch_namespace)
        .log(&log);
    let mut process = context.spawner.start(program)?;
    let socket = rundir.join("br0.mgmt");
    context.wait_until("the management socket", || Ok(socket.exists()))?;
    let show = crate::support::command::program("ovs-ofctl show br0").env("OVS_RUNDIR", &rundir);
    let output = CommandOutput::run(context, show)?.expect_success()?;
    assert!(output.contains(" LOCAL(br0)"), "{output}");
    assert!(process.stop()?.success());
    Ok(())
}

/// Error message of a program that exits with this code.
#[track_caller]
fn error_message(output: CommandOutput, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert_eq!(output.stdout, "", "{output:?}");
    // Information in the log is not part of the error message.
    let lines = output
        .stderr
        .lines()
        .filter(|line| !line.contains(" INFO "));
    lines.map(|line| format!("{line}\n")).collect()
}
