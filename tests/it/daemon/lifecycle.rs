//! From the command line to the end: what the switch is given, what becomes of
//! it while it runs, and what it leaves.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use testbed::{Failure, Program};

use crate::support::command::{CommandOutput, comporta_binary, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::host::{TestHost, pseudo_random_bytes};
use crate::support::network::TestNetwork;
use crate::support::switch::STANDALONE_2;

pub(crate) const TESTS: &[SystemTest] = tests![
    sigterm_ends_it_at_once_and_nothing_is_left,
    it_can_be_told_to_exit,
    after_kill_9_it_starts_on_the_same_sockets,
    a_second_one_is_refused,
    what_cannot_be_is_said_in_one_line,
    without_privilege_it_says_what_it_needs,
    a_file_says_the_same_as_the_command_line,
    sighup_does_the_difference,
    port_numbers_are_those_asked_for_and_outlive_a_restart,
    bridges_in_one_process_are_apart,
    an_interface_that_goes_and_returns_is_followed,
    a_link_that_goes_down_and_up_is_followed,
    two_workers_share_the_ports,
    it_sleeps_when_nothing_moves,
    the_run_directory_is_that_of_open_vswitch,
];

fn sigterm_ends_it_at_once_and_nothing_is_left(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let state = || {
        let links = network.run("ip -d -o link")?.expect_success()?;
        let qdiscs = network.run("tc qdisc")?.expect_success()?;
        let interesting = |line: &str| {
            let words = ["promiscuity", "prog/"];
            words.iter().any(|word| line.contains(word))
        };
        let links: Vec<_> = links.lines().filter(|line| interesting(line)).collect();
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
    let taken = context.clock.now() - start;
    assert_eq!(status.code(), Some(0), "{}", switch.log()?);
    assert!(taken < Duration::from_secs(1), "{taken:?}");
    assert_eq!(state()?, before);
    assert_eq!(
        fs::read_dir(switch.file(""))?.count(),
        0,
        "files in the run directory"
    );
    assert!(!context.directory().join("tools.sock").exists());
    Ok(())
}

fn it_can_be_told_to_exit(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let mut switch = network.start_switch(STANDALONE_2)?;
    assert!(switch.appctl("version")?.starts_with("comporta "));
    switch.appctl("exit")?;
    assert!(switch.process.wait(Duration::from_secs(1))?.success());
    assert_eq!(fs::read_dir(switch.file(""))?.count(), 0);
    Ok(())
}

fn after_kill_9_it_starts_on_the_same_sockets(context: &TestContext) -> TestResult {
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

fn a_second_one_is_refused(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(STANDALONE_2)?;
    let refused = complaint(network.run_switch("--bridge br0")?, 1);
    let socket = switch.file("br0.mgmt");
    assert_eq!(
        refused,
        format!(
            "comporta: another switch answers at {}: stop it first, or choose another directory with --rundir\n",
            socket.display()
        )
    );
    // In another directory, the bridge's interface is still taken.
    let elsewhere = context.directory().join("elsewhere");
    let refused = complaint(
        CommandOutput::run(context, network.switch_program(&elsewhere, STANDALONE_2))?,
        1,
    );
    assert!(
        refused.starts_with("comporta: bridge br0: port br0: "),
        "{refused}"
    );
    assert!(refused.contains("exists already"), "{refused}");
    assert_eq!(fs::read_dir(&elsewhere)?.count(), 0);
    // The first one has not noticed.
    network.host(1).ping(network.host(2).address, 3)?;
    switch.ofctl("show br0")?;
    Ok(())
}

/// Arguments that cannot be, the exit code, and words of the complaint.
#[rustfmt::skip]
const WRONG: [(&str, i32, &[&str]); 19] = [
    ("",                                          1, &["--bridge", "give at least one bridge"]),
    ("--bridge br0 --port nope",                  1, &["bridge br0: port nope", "interface nope does not exist"]),
    ("--bridge br0 --port lo",                    1, &["bridge br0: port lo", "not an Ethernet interface"]),
    ("--bridge br0 --port p1 --port p1",          1, &["--port", "'p1' is used twice"]),
    ("--bridge br0 --port p1 --bridge br1 --port p1", 1, &["--port", "'p1' is used twice"]),
    ("--bridge br0 --port br0",                   1, &["--port", "'br0' is used twice"]),
    ("--bridge br0 --bridge br0",                 1, &["--bridge", "'br0' is used twice"]),
    ("--bridge br0 --port p1=5 --port p2=5",      1, &["--port", "number 5 is asked for twice"]),
    ("--bridge br0 --port p1=70000",              1, &["--port", "'70000' is not a port number", "use 1 to"]),
    ("--bridge br0 --port tap:p1",                1, &["bridge br0: port p1", "exists already"]),
    ("--bridge p1",                               1, &["bridge p1: port p1", "exists already"]),
    ("--bridge a-name-too-long-for-linux",        1, &["--bridge", "15 bytes"]),
    ("--port p1 --bridge br0",                    1, &["--port: name its bridge first"]),
    ("--bridge br0 --fail-mode open",             1, &["--fail-mode", "use standalone or secure"]),
    ("--bridge br0 --controller sctp:127.0.0.1",  1, &["--controller", "use tcp:"]),
    ("--bridge br0 --listen ptcp:6654",           1, &["cannot listen at 0.0.0.0:6654", "--listen"]),
    ("--bridge br0 --cores 999",                  1, &["--cores", "core 999", "choose from"]),
    ("--config /nonexistent/comporta.toml",       1, &["--config", "/nonexistent/comporta.toml"]),
    ("--bridge br0 --cores one",                  2, &["--cores"]),
];

fn what_cannot_be_is_said_in_one_line(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let taken = (Ipv4Addr::UNSPECIFIED, 6654);
    let _taken = network
        .switch_namespace
        .run(|| TcpListener::bind(taken))??;
    for (words, code, parts) in WRONG {
        let said = complaint(network.run_switch(words)?, code);
        for part in parts {
            assert!(said.contains(part), "{words}\n{said}");
        }
        assert!(code != 1 || said.lines().count() == 1, "{words}\n{said}");
        let rundir = context.directory().join("run");
        let left = fs::read_dir(&rundir).map_or(0, |entries| entries.count());
        assert_eq!(left, 0, "{words}: files in the run directory");
    }
    let links = network.run("ip -o link")?.expect_success()?;
    assert_eq!(links.lines().count(), 3, "{links}");
    let unknown = complaint(network.run_switch("--bridge br0 --prot p1")?, 2);
    assert!(
        unknown.contains("'--prot'") && unknown.contains("'--port'"),
        "{unknown}"
    );
    Ok(())
}

fn without_privilege_it_says_what_it_needs(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    // Of a user who may read the binary, wherever it is.
    let unprivileged = |words: &str| {
        let program = program("setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all")
            .arg(comporta_binary())
            .arg("switch")
            .args(words.split_whitespace())
            .arg("--rundir")
            .arg(context.directory().join("run"))
            .inside(&network.switch_namespace);
        CommandOutput::run(context, program)
    };
    let said = complaint(unprivileged(STANDALONE_2)?, 1);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("bridge br0") && said.contains("CAP_NET_ADMIN"),
        "{said}"
    );
    assert!(said.contains("root"), "{said}");
    Ok(())
}

fn a_file_says_the_same_as_the_command_line(context: &TestContext) -> TestResult {
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
    let mut told = Vec::new();
    for words in [words, &format!("--config {}", file.display())] {
        let switch = network.start_switch(words)?;
        let shown = network
            .run("ovs-ofctl show tcp:127.0.0.1:6654")?
            .expect_success()?;
        // The TAP has another address each time.
        let shown = shown.lines().filter(|line| !line.contains("(vm1)"));
        told.push(shown.map(str::to_owned).collect::<Vec<_>>());
        assert!(switch.flows("dump-flows br0")?.is_empty(), "secure");
        let allowed = fs::read_to_string(format!("/proc/{}/status", switch.process.id()))?;
        assert!(allowed.contains("Cpus_allowed_list:"), "{allowed}");
    }
    assert_eq!(told[0], told[1]);
    Ok(())
}

fn sighup_does_the_difference(context: &TestContext) -> TestResult {
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
    let shown = switch.ofctl("show br0")?;
    assert!(
        shown.contains(" 3(p3)") && !shown.contains("(p2)"),
        "{shown}"
    );
    assert!(!one.can_ping(two.address)?);
    // What was not touched stays: the rule, and its counts.
    let flows = switch.flows("dump-flows br0")?;
    assert!(
        flows
            .iter()
            .any(|flow| flow.contains("cookie=0x77") && !flow.contains("n_packets=0,")),
        "{flows:?}"
    );
    // A file that makes no sense is not taken over.
    write(r#""p1=0""#)?;
    switch.process.hang_up()?;
    context.wait_until("the file to be refused", || {
        Ok(switch.log()?.contains("not taken over"))
    })?;
    one.ping(three.address, 3)?;
    write(r#""p1=1", "p2=2", "p3=3""#)?;
    switch.process.hang_up()?;
    one.ping_until_reply(two.address)?;
    one.ping(three.address, 3)?;
    Ok(())
}

fn port_numbers_are_those_asked_for_and_outlive_a_restart(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 4)?;
    let words = "--bridge br0 --port p4 --port p3=1 --port p2=300 --port p1 --port tap:vm1";
    let mut shown = Vec::new();
    for _ in 0..2 {
        let mut switch = network.start_switch(words)?;
        let told = switch.ofctl("show br0")?;
        for row in [
            " 2(p4): ",
            " 1(p3): ",
            " 300(p2): ",
            " 3(p1): ",
            " 4(vm1): ",
            " LOCAL(br0): ",
        ] {
            assert!(told.contains(row), "{row}\n{told}");
        }
        let told = told.lines().filter(|line| !line.contains("(vm1)"));
        shown.push(told.map(str::to_owned).collect::<Vec<_>>());
        switch.process.kill()?;
    }
    assert_eq!(shown[0], shown[1]);
    Ok(())
}

fn bridges_in_one_process_are_apart(context: &TestContext) -> TestResult {
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
    let known = |bridge: &str| {
        let shown = switch.appctl(&format!("fdb/show {bridge}"))?;
        Ok::<_, Failure>(shown.lines().count() - 1)
    };
    assert_eq!((known("br0")?, known("br1")?), (2, 0));
    let id = |bridge: &str| {
        let shown = switch.ofctl(&format!("show {bridge}"))?;
        let (_, id) = shown.split_once("dpid:").expect("a bridge has an id");
        Ok::<_, Failure>(id[..16].to_owned())
    };
    assert_ne!(id("br0")?, id("br1")?);
    Ok(())
}

fn an_interface_that_goes_and_returns_is_followed(context: &TestContext) -> TestResult {
    let mut network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(STANDALONE_2)?;
    for form in ["", "-O OpenFlow13"] {
        let monitor = switch.start_monitor(form)?;
        let heard = |what: &str| context.wait_until(what, || Ok(monitor.written()?.contains(what)));
        network.host(1).ping_until_reply(network.host(2).address)?;
        network.switch_namespace.remove("p2")?;
        heard("DEL: 2(p2)")?;
        let shown = switch.ofctl(&format!("{form} show br0"))?;
        assert!(!shown.contains("p2"), "{shown}");
        // The port is out, and nothing else.
        switch.ofctl("dump-flows br0")?;
        network.hosts[1] = TestHost::attach(context, 2, &network.switch_namespace)?;
        heard("ADD: 2(p2)")?;
        network.host(1).ping_until_reply(network.host(2).address)?;
        network.host(1).ping(network.host(2).address, 3)?;
    }
    assert!(switch.log()?.contains("the interface is gone"));
    Ok(())
}

fn a_link_that_goes_down_and_up_is_followed(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(STANDALONE_2)?;
    for form in ["", "-O OpenFlow13"] {
        let monitor = switch.start_monitor(form)?;
        let heard = |count: usize, what: &str| {
            context.wait_until(what, || {
                let said = monitor.written()?;
                let news = said.split("OFPT_PORT_STATUS").skip(1);
                let news = news.filter(|news| news.contains(" MOD: 2(p2)") && news.contains(what));
                Ok(news.count() >= count)
            })
        };
        network.host(1).ping_until_reply(network.host(2).address)?;
        // The cable: the other end goes down.
        network.host(2).namespace.set_down("eth0")?;
        heard(1, "state:      LINK_DOWN")?;
        network.host(2).namespace.set_up("eth0")?;
        network.host(1).ping_until_reply(network.host(2).address)?;
        // The interface itself.
        network.switch_namespace.set_down("p2")?;
        heard(1, "config:     PORT_DOWN")?;
        network.switch_namespace.set_up("p2")?;
        network.host(1).ping_until_reply(network.host(2).address)?;
        let up = match form {
            "" => "state:      0",
            _ => "state:      LIVE",
        };
        heard(2, up)?;
    }
    Ok(())
}

/// Frames are shared by their flow, so each flow stays in order, and every frame
/// is counted once.
fn two_workers_share_the_ports(context: &TestContext) -> TestResult {
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
    // Flows of many kinds, so that both workers have some.
    let mut two = network.host(2).capture_frames()?;
    let stacks: Vec<String> = (0..60)
        .map(|port| format!("eth / ipv4 / udp(src={}) / data(9)", 2000 + port))
        .collect();
    let stacks: Vec<&str> = stacks.iter().map(String::as_str).collect();
    network.host(1).send(&stacks)?;
    for _ in &stacks {
        two.next_frame()?;
    }
    let told = switch.ofctl("dump-aggregate br0 in_port=1")?;
    assert!(told.contains("packet_count=110 "), "{told}");
    let file = pseudo_random_bytes(16 << 20);
    assert!(
        network.host(1).transfer(network.host(2), &file)? == file,
        "harmed"
    );
    Ok(())
}

fn it_sleeps_when_nothing_moves(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(&format!(
        "{STANDALONE_2} --port tap:vm1 --controller tcp:127.0.0.1:6653"
    ))?;
    network.host(1).iperf(network.host(2), "")?;
    // A connection's last words may still be on their way.
    context
        .clock
        .sleep_until(context.clock.now() + Duration::from_millis(500));
    let used = || {
        let usage = switch
            .process
            .usage()
            .map_err(Failure::to("see what the switch uses"))?;
        Ok::<_, Failure>(usage.user + usage.system)
    };
    let before = used()?;
    context
        .clock
        .sleep_until(context.clock.now() + Duration::from_secs(2));
    let spent = used()? - before;
    // One hundredth of a core, which is two of the kernel's ticks.
    assert!(
        spent <= Duration::from_millis(20),
        "{spent:?} in two seconds"
    );
    network.host(1).ping(network.host(2).address, 3)?;
    Ok(())
}

fn the_run_directory_is_that_of_open_vswitch(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let rundir = context.directory().join("ovs");
    let log = context.unique_path("comporta.log");
    let program = Program::new(comporta_binary())
        .args(["switch", "--bridge", "br0"])
        .env("OVS_RUNDIR", &rundir)
        .inside(&network.switch_namespace)
        .log(&log);
    let mut process = context.spawner.start(program)?;
    let socket = rundir.join("br0.mgmt");
    context.wait_until("the management socket", || Ok(socket.exists()))?;
    let show = crate::support::command::program("ovs-ofctl show br0").env("OVS_RUNDIR", &rundir);
    let shown = CommandOutput::run(context, show)?.expect_success()?;
    assert!(shown.contains(" LOCAL(br0)"), "{shown}");
    assert!(process.stop()?.success());
    Ok(())
}

/// What a program complained of that had to end with this code.
#[track_caller]
fn complaint(ran: CommandOutput, code: i32) -> String {
    assert_eq!(ran.status.code(), Some(code), "{ran:?}");
    assert_eq!(ran.stdout, "", "{ran:?}");
    // The log of what went well before it is not part of the complaint.
    let lines = ran.stderr.lines().filter(|line| !line.contains(" INFO "));
    lines.map(|line| format!("{line}\n")).collect()
}
