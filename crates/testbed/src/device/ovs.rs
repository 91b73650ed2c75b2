//! Open vSwitch as Debian packages it, with its userspace data path: its own
//! database and daemon in the device's directory, beside whatever else runs.
//!
//! Everything is left at its default but what the experiment is about: the data
//! path's type, the ports' numbers, the controller, no forwarding without it.

use std::path::Path;

use super::{Device, DeviceOptions, PORTS, START, version};
use crate::{Clock, DeviceKind, Failure, Namespace, Process, Program, Requirement, Spawner};

/// Where Debian keeps the schema of the database.
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

pub(super) fn requirements() -> Vec<Requirement> {
    let program = |program| Requirement::Program {
        program,
        package: "openvswitch-switch",
    };
    vec![
        Requirement::Tun,
        program("ovsdb-tool"),
        program("ovsdb-server"),
        program("ovs-vsctl"),
        program("ovs-vswitchd"),
    ]
}

pub(super) fn start(
    spawner: &Spawner,
    clock: &Clock,
    inside: &Namespace,
    options: &DeviceOptions,
) -> Result<Device, Failure> {
    let mut setup = Setup {
        spawner,
        inside,
        options,
        commands: Vec::new(),
    };
    let database = setup.start_database()?;
    let socket = options.file("db.sock");
    clock.wait_for("ovsdb-server's socket", START, || {
        Ok(socket.exists().then_some(()))
    })?;
    setup.configure("no-wait", setup.data_path())?;
    let daemon = setup.start_daemon()?;
    setup.configure("timeout=20", setup.bridge())?;
    Ok(Device {
        kind: options.kind,
        version: version(spawner, "ovs-vswitchd", options)?,
        commands: setup.commands,
        forwarding: Some(daemon),
        helpers: vec![database],
    })
}

struct Setup<'a> {
    spawner: &'a Spawner,
    inside: &'a Namespace,
    options: &'a DeviceOptions,
    commands: Vec<String>,
}

impl<'a> Setup<'a> {
    fn start_database(&mut self) -> Result<Process, Failure> {
        let file = self.options.file("conf.db");
        // What an interrupted run left here would be refused by ovsdb-tool.
        let _ = std::fs::remove_file(&file);
        let create = Program::new("ovsdb-tool")
            .args(["create".as_ref(), file.as_path(), Path::new(SCHEMA)])
            .log(self.options.file("ovsdb-tool.log"));
        self.commands.push(create.command_line());
        self.spawner.run(create, START)?;
        let serve = self
            .daemon("ovsdb-server")
            .arg(&file)
            .arg(format!("--remote=punix:{}", self.path("db.sock")))
            .arg(format!("--unixctl={}", self.path("ovsdb.ctl")));
        self.start(serve)
    }

    fn start_daemon(&mut self) -> Result<Process, Failure> {
        let program = self
            .daemon("ovs-vswitchd")
            .arg(format!("unix:{}", self.path("db.sock")))
            .arg(format!("--unixctl={}", self.path("vswitchd.ctl")))
            .on_cores(&self.options.cores);
        self.start(program)
    }

    /// Settings that the daemon reads only when it starts.
    fn data_path(&self) -> Vec<String> {
        let mut words: Vec<String> = ["init", "--", "set", "Open_vSwitch", "."]
            .map(str::to_owned)
            .to_vec();
        let tso = self.options.kind == DeviceKind::OvsTso;
        words.push(format!("other_config:userspace-tso-enable={tso}"));
        words
    }

    fn bridge(&self) -> Vec<String> {
        let mut words = vec![
            "add-br br0 -- set bridge br0 datapath_type=netdev fail-mode=secure protocols=OpenFlow10,OpenFlow13"
                .to_owned(),
        ];
        for (port, number) in PORTS.iter().zip(1..) {
            words.push(format!(
                "-- add-port br0 {port} -- set interface {port} ofport_request={number}"
            ));
        }
        words.push("-- set-controller br0".to_owned());
        let words = words.join(" ");
        words
            .split(' ')
            .map(str::to_owned)
            .chain([self.options.controller()])
            .collect()
    }

    fn configure(&mut self, option: &str, words: Vec<String>) -> Result<(), Failure> {
        let program = Program::new("ovs-vsctl")
            .arg(format!("--db=unix:{}", self.path("db.sock")))
            .arg(format!("--{option}"))
            .args(words)
            .log(self.options.file("ovs-vsctl.log"));
        self.commands.push(program.command_line());
        self.spawner.run(program, START)
    }

    fn daemon(&self, name: &str) -> Program<'a> {
        let directory = &self.options.directory;
        let variables = ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"];
        let program = Program::new(name)
            .inside(self.inside)
            .log(self.options.file(&format!("{name}.log")));
        variables.into_iter().fold(program, |program, variable| {
            program.env(variable, directory)
        })
    }

    fn start(&mut self, program: Program<'_>) -> Result<Process, Failure> {
        self.commands.push(program.command_line());
        self.spawner.start(program)
    }

    fn path(&self, name: &str) -> String {
        self.options.file(name).display().to_string()
    }
}
