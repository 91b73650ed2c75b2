//! The daemon's process as ovs-vswitchd(8) describes it: options, logs, monitor, user and
//! capabilities, compared with a real `ovs-vswitchd`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use testbed::Failure;

use crate::support::command::{CommandOutput, comporta_binary};
use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::{BackgroundDaemon, Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::OVS_VSWITCHD;

pub(crate) const TESTS: &[SystemTest] = tests![
    invalid_options_exit_like_open_vswitch,
    log_levels_and_patterns_are_set_like_in_open_vswitch,
    syslog_messages_have_the_format_of_open_vswitch,
    monitor_restarts_a_crashed_daemon,
    daemon_of_another_user_has_the_capabilities_of_open_vswitch,
    filter_of_system_calls_admits_traffic_and_ends_the_daemon_at_others,
    controller_sockets_are_confined_to_the_run_directory,
    daemon_without_a_control_socket_forwards,
    system_routes_can_be_disabled,
    dummy_types_are_listed_with_dummies_enabled,
];

/// Command lines of Comporta's daemon and of Open vSwitch's.
fn daemon_commands() -> [String; 2] {
    [
        format!("{} vswitchd", comporta_binary().display()),
        OVS_VSWITCHD.to_owned(),
    ]
}

/// Invalid options, and true if the messages are equal.
const INVALID_OPTIONS: [(&str, bool); 22] = [
    ("--dance", false),
    ("-o", false),
    ("unix:one unix:two", false),
    ("--monitor=3", false),
    ("--disable-system=1", false),
    ("--option", false),
    ("--dpdk", false),
    ("--dpdk -c 0x1 -n 4", false),
    ("--enable-dummy=dance", false),
    ("--user=nobody.of.this.name", false),
    ("--user=nobody:no.group", false),
    ("--user=nobody:root", false),
    ("--syslog-method=dance", false),
    ("--log-file=/nowhere/log", false),
    ("-vdance:dbg", true),
    ("-vconsole:loud", true),
    ("-vconsole:file:dbg", true),
    ("-vdbg:info", true),
    ("--verbose=PATTERN", true),
    ("-vPATTERN:dance:%m", true),
    ("-vFACILITY:dance", true),
    ("--verbose=bridge:dance", true),
];

fn invalid_options_exit_like_open_vswitch(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let deployment = Deployment::new(&network)?;
    for (words, is_equal) in INVALID_OPTIONS {
        let results = daemon_commands().map(|program| {
            let output =
                CommandOutput::run(context, deployment.program(&format!("{program} {words}")))?;
            let last = output.stderr.lines().last().unwrap_or_default();
            let message = last
                .split_once(": ")
                .map_or("", |(_, message)| message)
                .to_owned();
            Ok::<_, Failure>((output.status.code(), message))
        });
        let [comporta, ovs] = results;
        let (comporta, ovs) = (comporta?, ovs?);
        assert_eq!(comporta.0, Some(1), "{words}: {comporta:?}");
        assert_eq!(comporta.0, ovs.0, "{words}: {ovs:?}");
        assert!(
            !is_equal || comporta.1 == ovs.1,
            "{words}: {comporta:?} {ovs:?}"
        );
    }
    // Options that only Comporta refuses, because it does not support them.
    for words in [
        "--ssl-ciphers=HIGH",
        "--ssl-protocols=TLSv1",
        "--peer-ca-cert=ca.pem",
    ] {
        let [comporta, _] = daemon_commands();
        let stderr =
            CommandOutput::run(context, deployment.program(&format!("{comporta} {words}")))?
                .expect_failure()?;
        let (option, _) = words.split_once('=').unwrap_or_default();
        assert!(stderr.contains(option), "{stderr}");
    }
    for program in daemon_commands() {
        // Names of options may be abbreviated.
        let output = deployment.run_tool(&format!("{program} --versio"))?;
        assert!(output.starts_with("ovs-vswitchd ("), "{output}");
    }
    Ok(())
}

/// Starts a daemon in the background, and returns its process id.
pub(super) fn start_in_background(
    deployment: &Deployment<'_, '_>,
    words: &str,
) -> Result<BackgroundDaemon, Failure> {
    deployment.run_tool(&format!(
        "{words} --detach --no-chdir --pidfile --disable-system"
    ))?;
    pid(deployment).map(BackgroundDaemon)
}

/// Process id in the default pidfile.
pub(super) fn pid(deployment: &Deployment<'_, '_>) -> Result<u32, Failure> {
    let text = fs::read_to_string(deployment.rundir.join("ovs-vswitchd.pid"));
    let text = text.map_err(Failure::to("read a pidfile"))?;
    Ok(text.trim().parse().unwrap_or_default())
}

/// Standard output and standard error of `ovs-appctl`.
pub(super) fn reply(deployment: &Deployment<'_, '_>, words: &[&str]) -> Result<String, Failure> {
    let program = deployment.program("ovs-appctl").args(words.iter().copied());
    let output = CommandOutput::run(deployment.network.context, program)?;
    Ok(format!("{}{}", output.stdout, output.stderr))
}

/// Commands about logging with equal replies.
const EQUAL_COMMANDS: [&[&str]; 17] = [
    &["vlog/list-pattern"],
    &["vlog/set", "PATTERN:file:%p of %c: %m"],
    &["vlog/list-pattern"],
    &["vlog/set", "PATTERN:any:%D{%F} %m"],
    &["vlog/list-pattern"],
    &["vlog/set", "FACILITY:local3"],
    &["vlog/set", "FACILITY:dance"],
    &["vlog/set", "PATTERN:dance:%m"],
    &["vlog/set", "PATTERN"],
    &["vlog/set", "console:syslog:dbg"],
    &["vlog/set", "bridge:dbg", "dance:dbg"],
    &["vlog/set", "warn:err"],
    &["vlog/disable-rate-limit", "bridge"],
    &["vlog/disable-rate-limit", "dance"],
    &["vlog/enable-rate-limit"],
    &["vlog/close"],
    &["vlog/reopen"],
];

fn log_levels_and_patterns_are_set_like_in_open_vswitch(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let (comporta, ovs) = (
        Deployment::in_directory(&network, "comporta")?,
        Deployment::in_directory(&network, "ovs")?,
    );
    let [comporta_command, ovs_command] = daemon_commands();
    let words = "-vconsole:off -vsyslog:err -vfile:info --log-file";
    let _daemon = start_in_background(&comporta, &format!("{comporta_command} {words}"))?;
    let _ovs_vswitchd = start_in_background(&ovs, &format!("{ovs_command} {words}"))?;
    // The modules differ; the format of the list is the same, and both have one module in common.
    let module_lines = |deployment| {
        let output = reply(deployment, &["vlog/list"])?;
        let lines = output.lines().enumerate();
        let lines = lines.filter(|(index, line)| *index < 2 || line.starts_with("bridge "));
        Ok::<_, Failure>(lines.map(|(_, line)| line.to_owned()).collect::<Vec<_>>())
    };
    for spec in [
        "",
        "bridge:console:dbg",
        "ANY:file:warn",
        "ANY:ANY:err",
        "off",
    ] {
        if !spec.is_empty() {
            let replies =
                [&comporta, &ovs].map(|deployment| reply(deployment, &["vlog/set", spec]));
            assert!(
                replies
                    .iter()
                    .all(|text| text.as_deref().is_ok_and(str::is_empty)),
                "{replies:?}"
            );
        }
        let lines = module_lines(&comporta)?;
        assert_eq!(lines, module_lines(&ovs)?, "{spec}");
        assert_eq!(lines.len(), 3, "{lines:?}");
    }
    for command in EQUAL_COMMANDS {
        assert_eq!(
            reply(&comporta, command)?,
            reply(&ovs, command)?,
            "{command:?}"
        );
    }
    // A log line in the configured pattern, until its module is turned off.
    reply(&comporta, &["vlog/set", "info"])?;
    reply(&comporta, &["vlog/set", "PATTERN:file:<%p> %c%T: %m"])?;
    comporta.vsctl("add-br br0")?;
    let log = || fs::read_to_string(comporta.rundir.join("ovs-vswitchd.log"));
    let line = "<INFO> bridge: bridge br0: using datapath ID ";
    assert!(
        log()?.lines().any(|text| text.starts_with(line)),
        "{}",
        log()?
    );
    reply(&comporta, &["vlog/set", "bridge:file:off"])?;
    comporta.vsctl("add-br br1")?;
    assert!(!log()?.contains("bridge br1"));
    Ok(())
}

fn syslog_messages_have_the_format_of_open_vswitch(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let [comporta, ovs] = daemon_commands();
    let mut messages = Vec::new();
    for (name, program) in [("comporta", comporta), ("ovs", ovs)] {
        let deployment = Deployment::in_directory(&network, name)?;
        let path = deployment.rundir.join("log");
        let syslog = UnixDatagram::bind(&path)?;
        syslog.set_read_timeout(Some(WAIT_LIMIT))?;
        let method = format!("--syslog-method=unix:{}", path.display());
        let words = format!("{program} {method} -vFACILITY:local2 -vconsole:off -vsyslog:info");
        let _daemon = start_in_background(&deployment, &words)?;
        let mut line = [0; 2048];
        let len = syslog.recv(&mut line)?;
        let line = String::from_utf8_lossy(&line[..len]).into_owned();
        let fields: Vec<_> = line.split('|').map(str::to_owned).collect();
        assert_eq!(fields.len(), 5, "{line}");
        // The module of the first message differs.
        messages.push((fields[0].clone(), fields[1].clone(), fields[3].clone()));
        let output = reply(&deployment, &["vlog/list-pattern"])?;
        assert!(output.contains("SYSLOG   <%B>        "), "{output}");
    }
    assert_eq!(messages[0], messages[1]);
    assert_eq!(messages[0].0, "<149>ovs");
    Ok(())
}

/// Process id of the parent.
pub(super) fn parent_pid(pid: u32) -> Result<u32, Failure> {
    let status = status(pid)?;
    Ok(status["PPid"].parse().unwrap_or_default())
}

/// Fields of `/proc/PID/status` by name.
fn status(pid: u32) -> Result<BTreeMap<String, String>, Failure> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"));
    let text = text.map_err(Failure::to("read the status of a process"))?;
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(lines
        .map(|(name, value)| (name.to_owned(), words(value)))
        .collect())
}

pub(super) fn signal(pid: u32, signal: Signal) -> Result<(), Failure> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    raw.map_or(Ok(()), |pid| kill_process(pid, signal))
        .map_err(Failure::to("signal a process"))
}

fn monitor_restarts_a_crashed_daemon(context: &TestContext) -> TestResult {
    let [comporta, ovs] = daemon_commands();
    for (name, program) in [("ovs", ovs), ("comporta", comporta)] {
        let network = TestNetwork::new(context, 2)?;
        let deployment = Deployment::in_directory(&network, name)?;
        let words = format!("{program} --monitor -vconsole:off --log-file");
        let first = start_in_background(&deployment, &words)?;
        let monitor = BackgroundDaemon(parent_pid(first.0)?);
        // The monitor sets its name after the start of its first child.
        context.wait_until("the name of the monitor", || {
            Ok(status(monitor.0)?["Name"] == "monitor")
        })?;
        assert_eq!(status(first.0)?["Name"], "ovs-vswitchd");
        deployment.vsctl(&format!(
            "{TWO_PORTS} -- set Bridge br0 datapath_type=netdev"
        ))?;
        network.host(1).ping(network.host(2).address, 3)?;
        signal(first.0, Signal::ABORT)?;
        // The pidfile is absent for a moment.
        context.wait_until("the process id of a new daemon", || {
            Ok(pid(&deployment).is_ok_and(|now| ![0, first.0].contains(&now)))
        })?;
        let second = BackgroundDaemon(pid(&deployment)?);
        assert_eq!(parent_pid(second.0)?, monitor.0);
        network.host(1).ping_until_reply(network.host(2).address)?;
        let log = fs::read_to_string(deployment.rundir.join("ovs-vswitchd.log"))?;
        let line = format!("1 crashes: pid {} died", first.0);
        let crash = log.lines().find(|text| text.contains(&line));
        assert!(
            crash.is_some_and(|text| text.contains("(monitor)|ERR|")),
            "{log}"
        );
        // After SIGTERM the monitor exits as well.
        signal(second.0, Signal::TERM)?;
        let has_exited = || Ok(!Path::new(&format!("/proc/{}", monitor.0)).exists());
        context.wait_until("the monitor to exit", has_exited)?;
    }
    Ok(())
}

/// The state of a process with a filter of system calls, in its status (proc(5)).
const SECCOMP_FILTER: &str = "2";

/// Returns a set of capabilities in hexadecimal without CAP_BPF, which Comporta keeps for AF_XDP;
/// other text as it is.
fn without_bpf(text: &str) -> String {
    const BPF: u64 = 1 << 39;
    let set = (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok());
    set.flatten()
        .map_or_else(|| text.to_owned(), |set| format!("{:016x}", set & !BPF))
}

fn filter_of_system_calls_admits_traffic_and_ends_the_daemon_at_others(
    context: &TestContext,
) -> TestResult {
    for (action, survives) in [("kill", false), ("log", true)] {
        let network = TestNetwork::new(context, 2)?;
        let deployment = Deployment::in_directory(&network, action)?;
        let options = format!("--enable-dummy --seccomp={action}");
        let mut daemon = deployment.start_daemon_with(&options)?;
        daemon.wait_for_log("INFO ready")?;
        let fields = status(daemon.process.id())?;
        assert_eq!(fields["Seccomp"].trim(), SECCOMP_FILTER);
        // Packet sockets, a TAP interface, queues of the kernel, a tunnel and a listener.
        deployment.vsctl(&format!(
            "{TWO_PORTS} -- add-port br0 vm1 -- set Interface vm1 type=tap \
             -- add-port br0 vx -- set Interface vx type=vxlan options:remote_ip=10.9.9.9 \
             -- set-controller br0 ptcp:6654:127.0.0.1 tcp:localhost:6655"
        ))?;
        deployment.vsctl(
            "set Port p2 qos=@q -- --id=@q create QoS type=linux-htb \
             other_config:max-rate=80000000 queues:1=@one -- --id=@one create Queue \
             other_config:min-rate=1000000",
        )?;
        deployment.run_tool("ovs-ofctl add-flow br0 actions=normal")?;
        network.host(1).ping(network.host(2).address, 3)?;
        deployment.run_tool("ovs-appctl dpctl/show")?;
        let answer = reply(&deployment, &["comporta/chroot"])?;
        match survives {
            true => {
                assert_eq!(answer, "done\n");
                network.host(1).ping(network.host(2).address, 3)?;
                assert!(daemon.process.stop()?.success());
            }
            false => {
                let ended = daemon.process.wait(WAIT_LIMIT)?;
                assert_eq!(ended.signal(), Some(Signal::SYS.as_raw()), "{answer}");
            }
        }
    }
    Ok(())
}

fn daemon_of_another_user_has_the_capabilities_of_open_vswitch(
    context: &TestContext,
) -> TestResult {
    const NOBODY: u32 = 65_534;
    let mut rights = Vec::new();
    let [comporta, ovs] = daemon_commands();
    for (name, program) in [("ovs", ovs), ("comporta", comporta)] {
        let network = TestNetwork::new(context, 2)?;
        let deployment = Deployment::in_directory(&network, name)?;
        for directory in deployment
            .rundir
            .ancestors()
            .take_while(|path| path.starts_with(context.directory()))
        {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
        }
        for path in [deployment.rundir.clone(), deployment.rundir.join("db.sock")] {
            chown(path, Some(NOBODY), Some(NOBODY))?;
        }
        // The filter is off by default in a build with DPDK, as this one may be.
        let filter = if name == "comporta" {
            " --seccomp=kill"
        } else {
            ""
        };
        let words = format!("{program}{filter} --user=nobody:nogroup -vconsole:off --log-file");
        let daemon = start_in_background(&deployment, &words)?;
        deployment.vsctl(&format!(
            "{TWO_PORTS} -- set Bridge br0 datapath_type=netdev"
        ))?;
        network.host(1).ping(network.host(2).address, 3)?;
        deployment.run_tool("ovs-appctl vlog/reopen")?;
        let fields = status(daemon.0)?;
        let names = [
            "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapAmb",
        ];
        rights.push(names.map(|name| (name, without_bpf(&fields[name]))));
        if name == "comporta" {
            assert_eq!(fields["NoNewPrivs"].trim(), "1");
            assert_eq!(fields["CapBnd"], fields["CapPrm"]);
            assert_eq!(fields["Seccomp"].trim(), SECCOMP_FILTER);
        }
        signal(daemon.0, Signal::TERM)?;
        let has_exited = || Ok(!Path::new(&format!("/proc/{}", daemon.0)).exists());
        context.wait_until("the daemon to exit", has_exited)?;
    }
    assert_eq!(rights[0], rights[1]);
    Ok(())
}

fn controller_sockets_are_confined_to_the_run_directory(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let [comporta, ovs] = daemon_commands();
    for (name, program) in [("ovs", ovs), ("comporta", comporta)] {
        let deployment = Deployment::in_directory(&network, name)?;
        for (options, is_there) in [("", false), ("--no-self-confinement", true)] {
            let daemon =
                start_in_background(&deployment, &format!("{program} {options} -vconsole:off"))?;
            let outside_path = context.unique_path(&format!("{name}.sock"));
            let inside_path = deployment.rundir.join("br0.within");
            deployment.vsctl(&format!(
                "--may-exist add-br br0 -- set Bridge br0 datapath_type=netdev \
                 -- set-controller br0 punix:{} punix:{}",
                outside_path.display(),
                inside_path.display()
            ))?;
            context.wait_until("a socket in the run directory", || Ok(inside_path.exists()))?;
            if is_there {
                context.wait_until(
                    "a socket in another directory",
                    || Ok(outside_path.exists()),
                )?;
            }
            assert_eq!(outside_path.exists(), is_there, "{name} {options}");
            signal(daemon.0, Signal::TERM)?;
            let has_exited = || Ok(!Path::new(&format!("/proc/{}", daemon.0)).exists());
            context.wait_until("the daemon to exit", has_exited)?;
        }
    }
    Ok(())
}

fn daemon_without_a_control_socket_forwards(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let daemon = deployment.start_daemon_with("--unixctl=none")?;
    daemon.wait_for_log("INFO ready")?;
    deployment.vsctl(TWO_PORTS)?;
    network.host(1).ping(network.host(2).address, 3)?;
    let entries: Vec<_> = fs::read_dir(&deployment.rundir)?.collect::<Result<_, _>>()?;
    let names = entries
        .iter()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let sockets: Vec<_> = names
        .filter(|name| name.starts_with("ovs-vswitchd.") && name.ends_with(".ctl"))
        .collect();
    assert!(sockets.is_empty(), "{sockets:?}");
    Ok(())
}

fn system_routes_can_be_disabled(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    network
        .run("ip address add 172.31.9.1/24 dev p1")?
        .expect_success()?;
    for (options, is_there) in [("--disable-system-route", false), ("", true)] {
        let deployment =
            Deployment::in_directory(&network, if is_there { "with" } else { "without" })?;
        let mut daemon = deployment.start_daemon_with(options)?;
        daemon.wait_for_log("INFO ready")?;
        deployment.vsctl("add-br br0 -- add-port br0 v1 -- set Interface v1 type=vxlan options:remote_ip=172.31.9.2")?;
        let routes = || deployment.run_tool("ovs-appctl ovs/route/show");
        if is_there {
            context.wait_until("a route", || Ok(routes()?.contains("172.31.9.0/24")))?;
        }
        assert_eq!(routes()?.contains("172.31.9."), is_there, "{}", routes()?);
        assert!(daemon.process.stop()?.success());
    }
    Ok(())
}

fn dummy_types_are_listed_with_dummies_enabled(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let [comporta, ovs] = daemon_commands();
    for (name, program) in [("ovs", ovs), ("comporta", comporta)] {
        for (options, has_any) in [("", false), ("--enable-dummy", true)] {
            let deployment = Deployment::in_directory(&network, &format!("{name}{options}"))?;
            let _daemon =
                start_in_background(&deployment, &format!("{program} {options} -vconsole:off"))?;
            for (column, dummy_types) in [
                ("datapath_types", &["dummy"][..]),
                ("iface_types", &["dummy", "dummy-internal", "dummy-pmd"]),
            ] {
                let types = deployment.vsctl(&format!("--bare get Open_vSwitch . {column}"))?;
                let words = types.split(|c: char| !c.is_alphanumeric() && c != '-');
                let dummies: Vec<_> = words.filter(|word| word.starts_with("dummy")).collect();
                let expected = if has_any { dummy_types } else { &[] };
                assert_eq!(dummies, expected, "{name} {options}: {types}");
            }
        }
    }
    Ok(())
}
