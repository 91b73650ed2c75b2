//! Open vSwitch as Debian packages it, with its userspace data path: its own
//! database and daemon in a directory, beside whatever else runs.
//!
//! Not here: bridges and ports; whoever wants some says so to `ovs-vsctl`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Clock, Failure, Namespace, Process, Program, Requirement, Spawner, Usage, sockets};

/// Where Debian keeps the schema of the database.
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// The daemon, and the one that Debian builds with DPDK beside it: which of them the
/// first name stands for is the machine's choice.
pub(crate) const DAEMON: &str = "ovs-vswitchd";
pub(crate) const DAEMON_WITH_DPDK: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";

/// Memory of an Open vSwitch with DPDK: what it makes for the frames of ordinary devices
/// is in it.
const DPDK_MEMORY_MB: u64 = 1024;

/// How long it may take to come up, and a tool of its to end.
const START: Duration = Duration::from_secs(20);

/// Where an Open vSwitch is to run.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// Starts its programs.
    pub spawner: &'a Spawner,
    /// The namespace of its ports.
    pub inside: &'a Namespace,
    /// An existing directory for its sockets, files and logs.
    pub directory: &'a Path,
    /// The cores that its daemon may use; any, if there are none.
    pub cores: &'a [usize],
}

/// Where DPDK's threads run in an Open vSwitch.
#[derive(Clone, Copy, Debug)]
pub struct DpdkCores<'a> {
    /// The daemon's own.
    pub main: &'a [usize],
    /// Those that forward, and never sleep.
    pub polling: &'a [usize],
}

/// A running Open vSwitch.
#[derive(Debug)]
pub struct OpenVswitch {
    // Dropped in this order: what forwards goes before what it depends on.
    pub(crate) daemon: Process,
    pub(crate) database: Process,
    pub(crate) commands: Vec<String>,
    spawner: Spawner,
    directory: PathBuf,
}

impl OpenVswitch {
    /// What must be there for it.
    #[must_use]
    pub fn requirements() -> Vec<Requirement> {
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

    /// Starts database and daemon. `settings` are those that the daemon reads only
    /// when it starts, as `ovs-vsctl set Open_vSwitch .` takes them.
    ///
    /// # Errors
    /// A program is missing or fails.
    pub fn start(site: Site<'_>, clock: &Clock, settings: &[&str]) -> Result<Self, Failure> {
        Self::start_as(site, clock, settings, (DAEMON, &[]))
    }

    /// What must be there for [`OpenVswitch::start_with_dpdk`], beside that.
    #[must_use]
    pub fn requirements_with_dpdk() -> Vec<Requirement> {
        let mut all = Self::requirements();
        all.push(Requirement::Program {
            program: DAEMON_WITH_DPDK,
            package: "openvswitch-switch-dpdk",
        });
        all
    }

    /// As [`OpenVswitch::start`], with DPDK, whose memory is of huge pages if there are free
    /// ones.
    ///
    /// # Errors
    /// A program is missing or fails.
    pub fn start_with_dpdk(
        site: Site<'_>,
        clock: &Clock,
        cores: DpdkCores<'_>,
        settings: &[&str],
    ) -> Result<Self, Failure> {
        let (memory, pages) = match huge_pages_are_free() {
            true => ("socket", ""),
            // It adds `--in-memory` unless it is told of older ways, and that wants huge pages.
            false => ("alloc", "--no-huge --no-shconf --legacy-mem"),
        };
        let own = [
            "other_config:dpdk-init=true".to_owned(),
            format!("other_config:dpdk-lcore-mask={:#x}", mask(cores.main)),
            polling_on(cores.polling),
            format!("other_config:dpdk-{memory}-mem={DPDK_MEMORY_MB}"),
            format!("other_config:dpdk-extra=\"--no-pci --no-telemetry {pages}\""),
        ];
        let own = own.iter().map(String::as_str);
        let settings: Vec<&str> = own.chain(settings.iter().copied()).collect();
        Self::start_as(site, clock, &settings, (DAEMON_WITH_DPDK, &[]))
    }

    /// As [`OpenVswitch::start`], with a data path, ports and a clock that
    /// `ovs-appctl` drives: types `dummy`, `netdev-dummy/receive`, `time/warp`.
    ///
    /// # Errors
    /// A program is missing or fails.
    pub fn start_dummy(site: Site<'_>, clock: &Clock, settings: &[&str]) -> Result<Self, Failure> {
        Self::start_as(
            site,
            clock,
            settings,
            (DAEMON, &["--enable-dummy", "--disable-system"]),
        )
    }

    fn start_as(
        site: Site<'_>,
        clock: &Clock,
        settings: &[&str],
        daemon: (&str, &[&str]),
    ) -> Result<Self, Failure> {
        let mut commands = Vec::new();
        let database = site.start_database(&mut commands)?;
        let socket = site.directory.join("db.sock");
        clock.wait_for("ovsdb-server's socket", START, || {
            Ok(socket.exists().then_some(()))
        })?;
        // Its socket is there a moment before anybody listens.
        let mut words = vec!["--retry", "--timeout=20", "--no-wait", "init"];
        if !settings.is_empty() {
            words.extend(["--", "set", "Open_vSwitch", "."]);
            words.extend(settings);
        }
        vsctl(site.spawner, site.directory, &words, &mut commands)?;
        let daemon = site.start_daemon(daemon, &mut commands)?;
        Ok(Self {
            daemon,
            database,
            commands,
            spawner: site.spawner.clone(),
            directory: site.directory.to_owned(),
        })
    }

    /// Runs `ovs-vsctl` with these words, and waits until the daemon has done what they say.
    ///
    /// # Errors
    /// `ovs-vsctl` fails, or the daemon takes longer than twenty seconds.
    pub fn vsctl(&mut self, words: &str) -> Result<(), Failure> {
        let words: Vec<_> = ["--timeout=20"]
            .into_iter()
            .chain(words.split_whitespace())
            .collect();
        vsctl(&self.spawner, &self.directory, &words, &mut self.commands)
    }

    /// What the daemon has used, its data path among it.
    ///
    /// # Errors
    /// It is gone.
    pub fn usage(&self) -> Result<Usage, Failure> {
        let usage = self.daemon.usage();
        usage.map_err(Failure::to("read what ovs-vswitchd uses"))
    }

    /// Lets the daemon be late for what comes in at its ports, `bytes` at each (with
    /// what the kernel needs to keep them). It leaves its sockets at the kernel's
    /// default, 212,992 bytes: of frames of 1,500 bytes some ninety, which a second of
    /// twenty thousand brings in five milliseconds.
    ///
    /// # Errors
    /// The system refuses it, or there are no such ports.
    pub fn widen_sockets(&self, bytes: usize) -> Result<(), Failure> {
        let failure = || Failure::to("widen the sockets of ovs-vswitchd");
        match sockets::widen(self.daemon.pid(), bytes).map_err(failure())? {
            0 => Err(failure()(std::io::Error::other("it has none"))),
            _ => Ok(()),
        }
    }
}

impl<'a> Site<'a> {
    fn start_database(self, commands: &mut Vec<String>) -> Result<Process, Failure> {
        let file = self.directory.join("conf.db");
        // What an interrupted run left here would be refused by ovsdb-tool.
        let _ = std::fs::remove_file(&file);
        let create = Program::new("ovsdb-tool")
            .args(["create".as_ref(), file.as_path(), Path::new(SCHEMA)])
            .log(self.directory.join("ovsdb-tool.log"));
        commands.push(create.command_line());
        self.spawner.run(create, START)?;
        let serve = self
            .program("ovsdb-server", "ovsdb-server")
            .arg(&file)
            .arg(format!("--remote=punix:{}", self.path("db.sock")))
            .arg(format!("--unixctl={}", self.path("ovsdb.ctl")));
        commands.push(serve.command_line());
        self.spawner.start(serve)
    }

    /// Starts the daemon, whose database is there already.
    pub(crate) fn start_daemon(
        self,
        (path, options): (&str, &[&str]),
        commands: &mut Vec<String>,
    ) -> Result<Process, Failure> {
        let program = self
            .program(path, DAEMON)
            .arg(format!("unix:{}", self.path("db.sock")))
            .arg(format!("--unixctl={}", self.path("vswitchd.ctl")))
            .args(options.iter().copied())
            .on_cores(self.cores);
        commands.push(program.command_line());
        self.spawner.start(program)
    }

    fn program(self, path: &str, name: &str) -> Program<'a> {
        let variables = ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"];
        let program = Program::new(path)
            .inside(self.inside)
            .log(self.directory.join(format!("{name}.log")));
        variables.into_iter().fold(program, |program, variable| {
            program.env(variable, self.directory)
        })
    }

    fn path(self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }
}

/// The setting that has threads that poll run on these cores.
pub(crate) fn polling_on(cores: &[usize]) -> String {
    format!("other_config:pmd-cpu-mask={:#x}", mask(cores))
}

fn mask(cores: &[usize]) -> u128 {
    cores.iter().fold(0, |mask, core| mask | 1 << core)
}

/// Whether there are huge pages that nobody has taken, enough for an Open vSwitch with DPDK.
#[must_use]
pub fn huge_pages_are_free() -> bool {
    const FREE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    let free = std::fs::read_to_string(FREE).ok();
    let free: Option<u64> = free.and_then(|free| free.trim().parse().ok());
    free.is_some_and(|free| 2 * free >= DPDK_MEMORY_MB)
}

fn vsctl(
    spawner: &Spawner,
    directory: &Path,
    words: &[&str],
    commands: &mut Vec<String>,
) -> Result<(), Failure> {
    let socket = directory.join("db.sock");
    let program = Program::new("ovs-vsctl")
        .arg(format!("--db=unix:{}", socket.display()))
        .args(words)
        .log(directory.join("ovs-vsctl.log"));
    commands.push(program.command_line());
    spawner.run(program, START)
}
