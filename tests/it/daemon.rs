//! The daemon's process as ovs-vswitchd(8) has it: its options, its logs, who watches it and
//! whose it is. A real `ovs-vswitchd` stands beside and is started the same way.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use testbed::Failure;

use crate::ground::{Ground, Outcome, PATIENCE, Rule, rules};
use crate::rig::{Ran, Rig, binary};
use crate::site::{Background, Site, TWO};
use crate::unixctl::THEIRS;

pub(crate) const RULES: &[Rule] = rules![
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
        format!("{} vswitchd", binary().display()),
        THEIRS.to_owned(),
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

fn what_is_typed_wrongly_ends_both_alike(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let site = Site::new(&rig)?;
    for (words, alike) in WRONG {
        let told = both().map(|program| {
            let ran = Ran::of(ground, site.program(&format!("{program} {words}")))?;
            let last = ran.errors.lines().last().unwrap_or_default();
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
        let said = Ran::of(ground, site.program(&format!("{ours} {words}")))?.bad()?;
        let (option, _) = words.split_once('=').unwrap_or_default();
        assert!(said.contains(option), "{said}");
    }
    for program in both() {
        // Names may be cut short.
        let said = site.tool(&format!("{program} --versio"))?;
        assert!(said.starts_with("ovs-vswitchd ("), "{said}");
    }
    Ok(())
}

/// Starts a daemon in the background, whose number it returns.
fn in_background(site: &Site<'_, '_>, words: &str) -> Result<Background, Failure> {
    site.tool(&format!(
        "{words} --detach --no-chdir --pidfile --disable-system"
    ))?;
    pid(site).map(Background)
}

/// The number in the usual file.
fn pid(site: &Site<'_, '_>) -> Result<u32, Failure> {
    let told = fs::read_to_string(site.rundir.join("ovs-vswitchd.pid"));
    let told = told.map_err(Failure::to("read the number of a process"))?;
    Ok(told.trim().parse().unwrap_or_default())
}

/// What `ovs-appctl` says, good or bad, in one row.
fn asked(site: &Site<'_, '_>, words: &[&str]) -> Result<String, Failure> {
    let program = site.program("ovs-appctl").args(words.iter().copied());
    let ran = Ran::of(site.rig.ground, program)?;
    Ok(format!("{}{}", ran.output, ran.errors))
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

fn what_is_said_is_set_and_listed_as_in_open_vswitch(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let (here, there) = (Site::at(&rig, "ours")?, Site::at(&rig, "theirs")?);
    let [ours, theirs] = both();
    let words = "-vconsole:off -vsyslog:err -vfile:info --log-file";
    let _ours = in_background(&here, &format!("{ours} {words}"))?;
    let _theirs = in_background(&there, &format!("{theirs} {words}"))?;
    // The modules are each one's own; how they are listed is the same, and one is both's.
    let listed = |site| {
        let told = asked(site, &["vlog/list"])?;
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
            let told = [&here, &there].map(|site| asked(site, &["vlog/set", spec]));
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

fn a_syslog_hears_what_it_would_of_open_vswitch(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let [ours, theirs] = both();
    let mut heard = Vec::new();
    for (name, program) in [("ours", ours), ("theirs", theirs)] {
        let site = Site::at(&rig, name)?;
        let path = site.rundir.join("log");
        let syslog = UnixDatagram::bind(&path)?;
        syslog.set_read_timeout(Some(PATIENCE))?;
        let method = format!("--syslog-method=unix:{}", path.display());
        let words = format!("{program} {method} -vFACILITY:local2 -vconsole:off -vsyslog:info");
        let _daemon = in_background(&site, &words)?;
        let mut line = [0; 2048];
        let len = syslog.recv(&mut line)?;
        let line = String::from_utf8_lossy(&line[..len]).into_owned();
        let fields: Vec<_> = line.split('|').map(str::to_owned).collect();
        assert_eq!(fields.len(), 5, "{line}");
        // Which module says the first word is each one's own.
        heard.push((fields[0].clone(), fields[1].clone(), fields[3].clone()));
        let told = asked(&site, &["vlog/list-pattern"])?;
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

fn it_is_started_again_when_it_dies_of_a_fault(ground: &Ground) -> Outcome {
    let [ours, theirs] = both();
    for (name, program) in [("theirs", theirs), ("ours", ours)] {
        let rig = Rig::new(ground, 2)?;
        let site = Site::at(&rig, name)?;
        let words = format!("{program} --monitor -vconsole:off --log-file");
        let first = in_background(&site, &words)?;
        let monitor = Background(parent(first.0)?);
        // It takes the name when its first child is there already.
        ground.wait_until("the monitor to say what it is", || {
            Ok(status(monitor.0)?["Name"] == "monitor")
        })?;
        assert_eq!(status(first.0)?["Name"], "ovs-vswitchd");
        site.vsctl(&format!("{TWO} -- set Bridge br0 datapath_type=netdev"))?;
        rig.host(1).ping(rig.host(2).address, 3)?;
        signal(first.0, Signal::ABORT)?;
        // For a moment there is no file.
        ground.wait_until("another process", || {
            Ok(pid(&site).is_ok_and(|now| ![0, first.0].contains(&now)))
        })?;
        let second = Background(pid(&site)?);
        assert_eq!(parent(second.0)?, monitor.0);
        rig.host(1).reach(rig.host(2).address)?;
        let log = fs::read_to_string(site.rundir.join("ovs-vswitchd.log"))?;
        let line = format!("1 crashes: pid {} died", first.0);
        let said = log.lines().find(|said| said.contains(&line));
        assert!(
            said.is_some_and(|said| said.contains("(monitor)|ERR|")),
            "{log}"
        );
        // An end that was asked for is the monitor's, too.
        signal(second.0, Signal::TERM)?;
        let gone = || Ok(!Path::new(&format!("/proc/{}", monitor.0)).exists());
        ground.wait_until("the monitor to end", gone)?;
    }
    Ok(())
}

fn as_another_user_it_has_the_rights_of_open_vswitch_and_switches(ground: &Ground) -> Outcome {
    const NOBODY: u32 = 65_534;
    let mut rights = Vec::new();
    let [ours, theirs] = both();
    for (name, program) in [("theirs", theirs), ("ours", ours)] {
        let rig = Rig::new(ground, 2)?;
        let site = Site::at(&rig, name)?;
        for directory in site
            .rundir
            .ancestors()
            .take_while(|path| path.starts_with(ground.directory()))
        {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
        }
        for path in [site.rundir.clone(), site.rundir.join("db.sock")] {
            chown(path, Some(NOBODY), Some(NOBODY))?;
        }
        let words = format!("{program} --user=nobody:nogroup -vconsole:off --log-file");
        let daemon = in_background(&site, &words)?;
        site.vsctl(&format!("{TWO} -- set Bridge br0 datapath_type=netdev"))?;
        rig.host(1).ping(rig.host(2).address, 3)?;
        site.tool("ovs-appctl vlog/reopen")?;
        let told = status(daemon.0)?;
        let wanted = [
            "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapAmb",
        ];
        rights.push(wanted.map(|name| (name, told[name].clone())));
        signal(daemon.0, Signal::TERM)?;
        let gone = || Ok(!Path::new(&format!("/proc/{}", daemon.0)).exists());
        ground.wait_until("the daemon to end", gone)?;
    }
    assert_eq!(rights[0], rights[1]);
    Ok(())
}

fn sockets_of_controllers_are_those_of_the_run_directory(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let [ours, theirs] = both();
    for (name, program) in [("theirs", theirs), ("ours", ours)] {
        let site = Site::at(&rig, name)?;
        for (more, is_there) in [("", false), ("--no-self-confinement", true)] {
            let daemon = in_background(&site, &format!("{program} {more} -vconsole:off"))?;
            let elsewhere = ground.file(&format!("{name}.sock"));
            let within = site.rundir.join("br0.within");
            site.vsctl(&format!(
                "--may-exist add-br br0 -- set Bridge br0 datapath_type=netdev \
                 -- set-controller br0 punix:{} punix:{}",
                elsewhere.display(),
                within.display()
            ))?;
            ground.wait_until("a socket in the run directory", || Ok(within.exists()))?;
            if is_there {
                ground.wait_until("a socket elsewhere", || Ok(elsewhere.exists()))?;
            }
            assert_eq!(elsewhere.exists(), is_there, "{name} {more}");
            signal(daemon.0, Signal::TERM)?;
            let gone = || Ok(!Path::new(&format!("/proc/{}", daemon.0)).exists());
            ground.wait_until("the daemon to end", gone)?;
        }
    }
    Ok(())
}

fn without_a_control_socket_it_switches(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let daemon = site.daemon_with("--unixctl=none")?;
    daemon.says("INFO ready")?;
    site.vsctl(TWO)?;
    rig.host(1).ping(rig.host(2).address, 3)?;
    let left: Vec<_> = fs::read_dir(&site.rundir)?.collect::<Result<_, _>>()?;
    let names = left
        .iter()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let sockets: Vec<_> = names
        .filter(|name| name.starts_with("ovs-vswitchd.") && name.ends_with(".ctl"))
        .collect();
    assert!(sockets.is_empty(), "{sockets:?}");
    Ok(())
}

fn without_routes_of_the_system_there_are_none(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 1)?;
    rig.ran("ip address add 172.31.9.1/24 dev p1")?.good()?;
    for (more, is_there) in [("--disable-system-route", false), ("", true)] {
        let site = Site::at(&rig, if is_there { "with" } else { "without" })?;
        let mut daemon = site.daemon_with(more)?;
        daemon.says("INFO ready")?;
        site.vsctl("add-br br0 -- add-port br0 v1 -- set Interface v1 type=vxlan options:remote_ip=172.31.9.2")?;
        let shown = || site.tool("ovs-appctl ovs/route/show");
        if is_there {
            ground.wait_until("a route", || Ok(shown()?.contains("172.31.9.0/24")))?;
        }
        assert_eq!(shown()?.contains("172.31.9."), is_there, "{}", shown()?);
        assert!(daemon.process.stop()?.success());
    }
    Ok(())
}

fn types_of_dummies_are_there_with_dummies_only(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let [ours, theirs] = both();
    for (name, program) in [("theirs", theirs), ("ours", ours)] {
        for (more, has_any) in [("", false), ("--enable-dummy", true)] {
            let site = Site::at(&rig, &format!("{name}{more}"))?;
            let _daemon = in_background(&site, &format!("{program} {more} -vconsole:off"))?;
            for (column, types) in [
                ("datapath_types", &["dummy"][..]),
                ("iface_types", &["dummy", "dummy-internal", "dummy-pmd"]),
            ] {
                let told = site.vsctl(&format!("--bare get Open_vSwitch . {column}"))?;
                let words = told.split(|sign: char| !sign.is_alphanumeric() && sign != '-');
                let dummies: Vec<_> = words.filter(|word| word.starts_with("dummy")).collect();
                let wanted = if has_any { types } else { &[] };
                assert_eq!(dummies, wanted, "{name} {more}: {told}");
            }
        }
    }
    Ok(())
}
