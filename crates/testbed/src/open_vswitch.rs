//! Open vSwitch as packaged by Debian, with its userspace data path: a separate database and daemon
//! in a directory, independent of other instances on the machine.
//!
//! Not here: bridges and ports, which callers configure with `ovs-vsctl`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Clock, Failure, Namespace, Process, Program, Requirement, Spawner, Usage, sockets};

/// Debian's path of the database schema.
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// The daemon, and Debian's build with DPDK. The first name may be an alternative link to either.
pub(crate) const DAEMON: &str = "ovs-vswitchd";
pub(crate) const DAEMON_WITH_DPDK: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";

/// Memory of an Open vSwitch with DPDK in MiB; it includes the packet buffers of non-DPDK ports.
const DPDK_MEMORY_MB: u64 = 1024;

/// Maximum time of its start, and of one of its tools.
const START: Duration = Duration::from_secs(20);

/// The environment of an Open vSwitch.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The spawner of its programs.
    pub spawner: &'a Spawner,
    /// The namespace of its ports.
    pub inside: &'a Namespace,
    /// An existing directory for its sockets, files and logs.
    pub directory: &'a Path,
    /// The cores that its daemon may use; all if empty.
    pub cores: &'a [usize],
}

/// The cores of an Open vSwitch with DPDK.
#[derive(Clone, Copy, Debug)]
pub struct DpdkCores<'a> {
    /// Cores of the main thread.
    pub main: &'a [usize],
    /// Cores of the PMD threads, which busy-poll.
    pub polling: &'a [usize],
}

/// A running Open vSwitch.
#[derive(Debug)]
pub struct OpenVswitch {
    // Dropped in this order: the data path before its dependencies.
    pub(crate) daemon: Process,
    pub(crate) database: Process,
    pub(crate) commands: Vec<String>,
    spawner: Spawner,
    directory: PathBuf,
}

impl OpenVswitch {
    /// Returns its requirements.
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

    /// Starts database and daemon. `settings` are those that the daemon reads only at its start, in
    /// the syntax of `ovs-vsctl set Open_vSwitch .`.
    ///
    /// # Errors
    /// A program is missing or fails.
    pub fn start(site: Site<'_>, clock: &Clock, settings: &[&str]) -> Result<Self, Failure> {
        Self::start_as(site, clock, settings, (DAEMON, &[]))
    }

    /// Returns the requirements of [`OpenVswitch::start_with_dpdk`].
    #[must_use]
    pub fn requirements_with_dpdk() -> Vec<Requirement> {
        let mut all = Self::requirements();
        all.push(Requirement::Program {
            program: DAEMON_WITH_DPDK,
            package: "openvswitch-switch-dpdk",
        });
        all
    }

    /// Like [`OpenVswitch::start`], with DPDK. Its memory is in huge pages if enough are free.
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
            // Open vSwitch adds `--in-memory`, which requires huge pages, unless legacy options are
            // given.
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

    /// Like [`OpenVswitch::start`], with a data path, ports and a clock that `ovs-appctl` controls:
    /// type `dummy`, `netdev-dummy/receive`, `time/warp`.
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
        // The socket file exists a moment before the server listens, so `ovs-vsctl` retries.
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

    /// Runs `ovs-vsctl` with these arguments, and waits until the daemon has applied them.
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

    /// Returns the resource usage of the daemon, including its data path.
    ///
    /// # Errors
    /// The daemon has ended.
    pub fn usage(&self) -> Result<Usage, Failure> {
        let usage = self.daemon.usage();
        usage.map_err(Failure::to("read the resource usage of ovs-vswitchd"))
    }

    /// Sets the receive buffer of each port's socket to `bytes`, including the kernel's overhead,
    /// so that a slow daemon drops no frames. The kernel's default of 212,992 bytes holds some
    /// ninety frames of 1,500 bytes, which arrive in 5 ms at 20,000 frames a second.
    ///
    /// # Errors
    /// The system refuses it, or there are no such ports.
    pub fn enlarge_receive_buffers(&self, bytes: usize) -> Result<(), Failure> {
        let failure = || Failure::to("enlarge the receive buffers of ovs-vswitchd");
        match sockets::enlarge_receive_buffers(self.daemon.pid(), bytes).map_err(failure())? {
            0 => Err(failure()(std::io::Error::other("it has none"))),
            _ => Ok(()),
        }
    }
}

impl<'a> Site<'a> {
    fn start_database(self, commands: &mut Vec<String>) -> Result<Process, Failure> {
        let file = self.directory.join("conf.db");
        // ovsdb-tool refuses to overwrite the file of an interrupted run.
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

    /// Starts the daemon with an existing database.
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

/// The setting that pins PMD threads to these cores.
pub(crate) fn polling_on(cores: &[usize]) -> String {
    format!("other_config:pmd-cpu-mask={:#x}", mask(cores))
}

fn mask(cores: &[usize]) -> u128 {
    cores.iter().fold(0, |mask, core| mask | 1 << core)
}

/// Returns true if enough huge pages are free for an Open vSwitch with DPDK.
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
