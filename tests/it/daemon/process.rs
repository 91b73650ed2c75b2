//! The daemon's process as ovs-vswitchd(8) has it: its options, its logs, who watches it and
//! whose it is. A real `ovs-vswitchd` stands beside and is started the same way.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use testbed::Failure;

use crate::support::command::{CommandOutput, comporta_binary};
use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::{BackgroundDaemon, Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::OVS_VSWITCHD;

pub(crate) const TESTS: &[SystemTest] = tests![
    what_is_typed_wrongly_ends_both_alike,
    what_is_said_is_set_and_listed_as_in_open_vswitch,
    a_syslog_hears_what_it_would_of_open_vswitch,
    it_is_started_again_when_it_dies_of_a_fault,
    as_another_user_it_has_the_rights_of_open_vswitch_and_switches,
    sockets_of_controllers_are_those_of_the_run_directory,
    without_a_control_socket_it_switches,
    without_routes_of_the_system_there_are_none,
    types_of_dummies_are_there_with_dummies_only,
];

/// The words that start ours, and the other.
fn both() -> [String; 2] {
    [
        format!("{} vswitchd", comporta_binary().display()),
        OVS_VSWITCHD.to_owned(),
    ]
}

/// What neither takes, and whether both say the same of it.
const WRONG: [(&str, bool); 22] = [
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

fn what_is_typed_wrongly_ends_both_alike(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let deployment = Deployment::new(&network)?;
    for (words, alike) in WRONG {
        let told = both().map(|program| {
            let ran =
                CommandOutput::run(context, deployment.program(&format!("{program} {words}")))?;
            let last = ran.stderr.lines().last().unwrap_or_default();
            let said = last
                .split_once(": ")
                .map_or("", |(_, said)| said)
                .to_owned();
            Ok::<_, Failure>((ran.status.code(), said))
        });
        let [ours, theirs] = told;
        let (ours, theirs) = (ours?, theirs?);
        assert_eq!(ours.0, Some(1), "{words}: {ours:?}");
        assert_eq!(ours.0, theirs.0, "{words}: {theirs:?}");
        assert!(!alike || ours.1 == theirs.1, "{words}: {ours:?} {theirs:?}");
    }
    // What only ours refuses: it would say that it does what it does not.
    for words in [
        "--ssl-ciphers=HIGH",
        "--ssl-protocols=TLSv1",
        "--peer-ca-cert=ca.pem",
    ] {
        let [ours, _] = both();
        let said = CommandOutput::run(context, deployment.program(&format!("{ours} {words}")))?
            .expect_failure()?;
        let (option, _) = words.split_once('=').unwrap_or_default();
        assert!(said.contains(option), "{said}");
    }
    for program in both() {
        // Names may be cut short.
        let said = deployment.run_tool(&format!("{program} --versio"))?;
        assert!(said.starts_with("ovs-vswitchd ("), "{said}");
    }
    Ok(())
}

/// Starts a daemon in the background, whose number it returns.
fn in_background(
    deployment: &Deployment<'_, '_>,
    words: &str,
) -> Result<BackgroundDaemon, Failure> {
    deployment.run_tool(&format!(
        "{words} --detach --no-chdir --pidfile --disable-system"
    ))?;
    pid(deployment).map(BackgroundDaemon)
}

/// The number in the usual file.
fn pid(deployment: &Deployment<'_, '_>) -> Result<u32, Failure> {
    let told = fs::read_to_string(deployment.rundir.join("ovs-vswitchd.pid"));
    let told = told.map_err(Failure::to("read the number of a process"))?;
    Ok(told.trim().parse().unwrap_or_default())
}

/// What `ovs-appctl` says, good or bad, in one row.
fn asked(deployment: &Deployment<'_, '_>, words: &[&str]) -> Result<String, Failure> {
    let program = deployment.program("ovs-appctl").args(words.iter().copied());
    let ran = CommandOutput::run(deployment.network.context, program)?;
    Ok(format!("{}{}", ran.stdout, ran.stderr))
}

/// Questions about what is said, with the same answers.
const SAME: [&[&str]; 17] = [
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

fn what_is_said_is_set_and_listed_as_in_open_vswitch(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let (here, there) = (
        Deployment::in_directory(&network, "ours")?,
        Deployment::in_directory(&network, "theirs")?,
    );
    let [ours, theirs] = both();
    let words = "-vconsole:off -vsyslog:err -vfile:info --log-file";
    let _ours = in_background(&here, &format!("{ours} {words}"))?;
    let _theirs = in_background(&there, &format!("{theirs} {words}"))?;
    // The modules are each one's own; how they are listed is the same, and one is both's.
    let listed = |deployment| {
        let told = asked(deployment, &["vlog/list"])?;
        let lines = told.lines().enumerate();
        let lines = lines.filter(|(at, line)| *at < 2 || line.starts_with("bridge "));
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
            let told = [&here, &there].map(|deployment| asked(deployment, &["vlog/set", spec]));
            assert!(
                told.iter()
                    .all(|told| told.as_deref().is_ok_and(str::is_empty)),
                "{told:?}"
            );
        }
        let told = listed(&here)?;
        assert_eq!(told, listed(&there)?, "{spec}");
        assert_eq!(told.len(), 3, "{told:?}");
    }
    for question in SAME {
        assert_eq!(
            asked(&here, question)?,
            asked(&there, question)?,
            "{question:?}"
        );
    }
    // A line in the form that was asked for, until it is asked for no more.
    asked(&here, &["vlog/set", "info"])?;
    asked(&here, &["vlog/set", "PATTERN:file:<%p> %c%T: %m"])?;
    here.vsctl("add-br br0")?;
    let log = || fs::read_to_string(here.rundir.join("ovs-vswitchd.log"));
    let line = "<INFO> bridge: add bridge br0";
    assert!(log()?.lines().any(|said| said == line), "{}", log()?);
    asked(&here, &["vlog/set", "bridge:file:off"])?;
    here.vsctl("add-br br1")?;
    assert!(!log()?.contains("add bridge br1"));
    Ok(())
}

fn a_syslog_hears_what_it_would_of_open_vswitch(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let [ours, theirs] = both();
    let mut heard = Vec::new();
    for (name, program) in [("ours", ours), ("theirs", theirs)] {
        let deployment = Deployment::in_directory(&network, name)?;
        let path = deployment.rundir.join("log");
        let syslog = UnixDatagram::bind(&path)?;
        syslog.set_read_timeout(Some(WAIT_LIMIT))?;
        let method = format!("--syslog-method=unix:{}", path.display());
        let words = format!("{program} {method} -vFACILITY:local2 -vconsole:off -vsyslog:info");
        let _daemon = in_background(&deployment, &words)?;
        let mut line = [0; 2048];
        let len = syslog.recv(&mut line)?;
        let line = String::from_utf8_lossy(&line[..len]).into_owned();
        let fields: Vec<_> = line.split('|').map(str::to_owned).collect();
        assert_eq!(fields.len(), 5, "{line}");
        // Which module says the first word is each one's own.
        heard.push((fields[0].clone(), fields[1].clone(), fields[3].clone()));
        let told = asked(&deployment, &["vlog/list-pattern"])?;
        assert!(told.contains("SYSLOG   <%B>        "), "{told}");
    }
    assert_eq!(heard[0], heard[1]);
    assert_eq!(heard[0].0, "<149>ovs");
    Ok(())
}

/// The process that started this one.
fn parent(pid: u32) -> Result<u32, Failure> {
    let status = status(pid)?;
    Ok(status["PPid"].parse().unwrap_or_default())
}

/// What proc(5) says of a process, by name.
fn status(pid: u32) -> Result<BTreeMap<String, String>, Failure> {
    let told = fs::read_to_string(format!("/proc/{pid}/status"));
    let told = told.map_err(Failure::to("read of a process"))?;
    let lines = told.lines().filter_map(|line| line.split_once(':'));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(lines
        .map(|(name, value)| (name.to_owned(), words(value)))
        .collect())
}

fn signal(pid: u32, signal: Signal) -> Result<(), Failure> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    raw.map_or(Ok(()), |pid| kill_process(pid, signal))
        .map_err(Failure::to("end a process"))
}

fn it_is_started_again_when_it_dies_of_a_fault(context: &TestContext) -> TestResult {
    let [ours, theirs] = both();
    for (name, program) in [("theirs", theirs), ("ours", ours)] {
        let network = TestNetwork::new(context, 2)?;
        let deployment = Deployment::in_directory(&network, name)?;
        let words = format!("{program} --monitor -vconsole:off --log-file");
        let first = in_background(&deployment, &words)?;
        let monitor = BackgroundDaemon(parent(first.0)?);
        // It takes the name when its first child is there already.
        context.wait_until("the monitor to say what it is", || {
            Ok(status(monitor.0)?["Name"] == "monitor")
        })?;
        assert_eq!(status(first.0)?["Name"], "ovs-vswitchd");
        deployment.vsctl(&format!(
            "{TWO_PORTS} -- set Bridge br0 datapath_type=netdev"
        ))?;
        network.host(1).ping(network.host(2).address, 3)?;
        signal(first.0, Signal::ABORT)?;
        // For a moment there is no file.
        context.wait_until("another process", || {
            Ok(pid(&deployment).is_ok_and(|now| ![0, first.0].contains(&now)))
        })?;
        let second = BackgroundDaemon(pid(&deployment)?);
        assert_eq!(parent(second.0)?, monitor.0);
        network.host(1).ping_until_reply(network.host(2).address)?;
        let log = fs::read_to_string(deployment.rundir.join("ovs-vswitchd.log"))?;
        let line = format!("1 crashes: pid {} died", first.0);
        let said = log.lines().find(|said| said.contains(&line));
        assert!(
            said.is_some_and(|said| said.contains("(monitor)|ERR|")),
            "{log}"
        );
        // An end that was asked for is the monitor's, too.
        signal(second.0, Signal::TERM)?;
        let gone = || Ok(!Path::new(&format!("/proc/{}", monitor.0)).exists());
        context.wait_until("the monitor to end", gone)?;
    }
    Ok(())
}

fn as_another_user_it_has_the_rights_of_open_vswitch_and_switches(
    context: &TestContext,
) -> TestResult {
    const NOBODY: u32 = 65_534;
    let mut rights = Vec::new();
    let [ours, theirs] = both();
    for (name, program) in [("theirs", theirs), ("ours", ours)] {
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
        let words = format!("{program} --user=nobody:nogroup -vconsole:off --log-file");
        let daemon = in_background(&deployment, &words)?;
        deployment.vsctl(&format!(
            "{TWO_PORTS} -- set Bridge br0 datapath_type=netdev"
        ))?;
        network.host(1).ping(network.host(2).address, 3)?;
        deployment.run_tool("ovs-appctl vlog/reopen")?;
        let told = status(daemon.0)?;
        let wanted = [
            "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapAmb",
        ];
        rights.push(wanted.map(|name| (name, told[name].clone())));
        signal(daemon.0, Signal::TERM)?;
        let gone = || Ok(!Path::new(&format!("/proc/{}", daemon.0)).exists());
        context.wait_until("the daemon to end", gone)?;
    }
    assert_eq!(rights[0], rights[1]);
    Ok(())
}

fn sockets_of_controllers_are_those_of_the_run_directory(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let [ours, theirs] = both();
    for (name, program) in [("theirs", theirs), ("ours", ours)] {
        let deployment = Deployment::in_directory(&network, name)?;
        for (more, is_there) in [("", false), ("--no-self-confinement", true)] {
            let daemon = in_background(&deployment, &format!("{program} {more} -vconsole:off"))?;
            let elsewhere = context.unique_path(&format!("{name}.sock"));
            let within = deployment.rundir.join("br0.within");
            deployment.vsctl(&format!(
                "--may-exist add-br br0 -- set Bridge br0 datapath_type=netdev \
                 -- set-controller br0 punix:{} punix:{}",
                elsewhere.display(),
                within.display()
            ))?;
            context.wait_until("a socket in the run directory", || Ok(within.exists()))?;
            if is_there {
                context.wait_until("a socket elsewhere", || Ok(elsewhere.exists()))?;
            }
            assert_eq!(elsewhere.exists(), is_there, "{name} {more}");
            signal(daemon.0, Signal::TERM)?;
            let gone = || Ok(!Path::new(&format!("/proc/{}", daemon.0)).exists());
            context.wait_until("the daemon to end", gone)?;
        }
    }
    Ok(())
}

fn without_a_control_socket_it_switches(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let daemon = deployment.start_daemon_with("--unixctl=none")?;
    daemon.wait_for_log("INFO ready")?;
    deployment.vsctl(TWO_PORTS)?;
    network.host(1).ping(network.host(2).address, 3)?;
    let left: Vec<_> = fs::read_dir(&deployment.rundir)?.collect::<Result<_, _>>()?;
    let names = left
        .iter()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let sockets: Vec<_> = names
        .filter(|name| name.starts_with("ovs-vswitchd.") && name.ends_with(".ctl"))
        .collect();
    assert!(sockets.is_empty(), "{sockets:?}");
    Ok(())
}

fn without_routes_of_the_system_there_are_none(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    network
        .run("ip address add 172.31.9.1/24 dev p1")?
        .expect_success()?;
    for (more, is_there) in [("--disable-system-route", false), ("", true)] {
        let deployment =
            Deployment::in_directory(&network, if is_there { "with" } else { "without" })?;
        let mut daemon = deployment.start_daemon_with(more)?;
        daemon.wait_for_log("INFO ready")?;
        deployment.vsctl("add-br br0 -- add-port br0 v1 -- set Interface v1 type=vxlan options:remote_ip=172.31.9.2")?;
        let shown = || deployment.run_tool("ovs-appctl ovs/route/show");
        if is_there {
            context.wait_until("a route", || Ok(shown()?.contains("172.31.9.0/24")))?;
        }
        assert_eq!(shown()?.contains("172.31.9."), is_there, "{}", shown()?);
        assert!(daemon.process.stop()?.success());
    }
    Ok(())
}

fn types_of_dummies_are_there_with_dummies_only(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let [ours, theirs] = both();
    for (name, program) in [("theirs", theirs), ("ours", ours)] {
        for (more, has_any) in [("", false), ("--enable-dummy", true)] {
            let deployment = Deployment::in_directory(&network, &format!("{name}{more}"))?;
            let _daemon = in_background(&deployment, &format!("{program} {more} -vconsole:off"))?;
            for (column, types) in [
                ("datapath_types", &["dummy"][..]),
                ("iface_types", &["dummy", "dummy-internal", "dummy-pmd"]),
            ] {
                let told = deployment.vsctl(&format!("--bare get Open_vSwitch . {column}"))?;
                let words = told.split(|sign: char| !sign.is_alphanumeric() && sign != '-');
                let dummies: Vec<_> = words.filter(|word| word.starts_with("dummy")).collect();
                let wanted = if has_any { types } else { &[] };
                assert_eq!(dummies, wanted, "{name} {more}: {told}");
            }
        }
    }
    Ok(())
}
