//! A switch that is configured by a database: this one, or Open vSwitch with its userspace data
//! path, with a real `ovsdb-server` and all files in one directory.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::{Namespace, Process, Program};

use crate::Failure;
use crate::switch::Site;

/// Debian's path of the database schema.
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// Maximum time of a step, much longer than expected.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The kind of switch.
#[derive(Clone, Copy)]
pub(crate) enum SwitchKind {
    Comporta,
    OpenVswitch,
}

impl SwitchKind {
    /// Both kinds, in the order of measurement.
    pub(crate) const ALL: [Self; 2] = [Self::Comporta, Self::OpenVswitch];

    /// The column of its results.
    pub(crate) const fn column(self) -> &'static str {
        match self {
            Self::Comporta => "Comporta",
            Self::OpenVswitch => "Open vSwitch",
        }
    }

    /// Its program, without arguments for the instance.
    fn program(self, site: &Site) -> Program<'static> {
        match self {
            Self::Comporta => Program::new(&site.comporta).arg("vswitchd"),
            Self::OpenVswitch => Program::new("ovs-vswitchd"),
        }
    }
}

/// A running database, with an optional daemon.
pub(crate) struct ManagedSwitch<'a> {
    pub(crate) site: &'a Site,
    pub(crate) kind: SwitchKind,
    directory: PathBuf,
    pub(crate) database: Process,
}

impl<'a> ManagedSwitch<'a> {
    /// Starts an empty database in a directory of this name.
    pub(crate) fn new(site: &'a Site, name: &str, kind: SwitchKind) -> Result<Self, Failure> {
        let directory = site.directory.join(name);
        // An earlier run may have left its files.
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir_all(&directory)?;
        let create = Program::new("ovsdb-tool").args(["create", "conf.db", SCHEMA]);
        let create = in_directory(create, &directory).log(directory.join("tool.log"));
        site.spawner.run(create, PATIENCE)?;
        let serve = Program::new("ovsdb-server")
            .arg("conf.db")
            .args(["--remote=punix:db.sock", "--unixctl=db.ctl"]);
        let serve = in_directory(serve, &directory).log(directory.join("ovsdb-server.log"));
        let database = site.spawner.start(serve)?;
        let socket = directory.join("db.sock");
        wait_for_server(site, &socket)?;
        let this = Self {
            site,
            kind,
            directory,
            database,
        };
        this.vsctl("--no-wait init")?;
        Ok(this)
    }

    /// Starts the daemon.
    pub(crate) fn daemon(&self, inside: &Namespace) -> Result<Process, Failure> {
        self.daemon_with(inside, &[])
    }

    /// Starts the daemon with additional arguments.
    pub(crate) fn daemon_with(
        &self,
        inside: &Namespace,
        arguments: &[&str],
    ) -> Result<Process, Failure> {
        let program = self.kind.program(self.site);
        let program = program
            .args(arguments.iter().copied())
            .arg(format!("unix:{}", self.path("db.sock").display()))
            .arg(format!("--unixctl={}", self.path("daemon.ctl").display()));
        let program = in_directory(program, &self.directory).inside(inside);
        let program = program.log(self.path("daemon.log"));
        Ok(self.site.spawner.start(program)?)
    }

    /// Runs `ovs-vsctl`, and waits until the daemon has applied the change.
    pub(crate) fn vsctl(&self, words: &str) -> Result<(), Failure> {
        let words = words.split_whitespace();
        self.run(Program::new("ovs-vsctl").arg("--timeout=120").args(words))
    }

    /// Runs a tool.
    pub(crate) fn run(&self, program: Program<'_>) -> Result<(), Failure> {
        let program = in_directory(program, &self.directory).log(self.path("tool.log"));
        Ok(self.site.spawner.run(program, PATIENCE)?)
    }

    /// The path of a file in its directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// Waits until a database accepts connections at its socket.
pub(crate) fn wait_for_server(site: &Site, socket: &Path) -> Result<(), Failure> {
    // The socket exists a moment before it accepts connections.
    let accepts = || Ok(UnixStream::connect(socket).ok().map(drop));
    let what = format!("a database at {}", socket.display());
    Ok(site.clock.wait_for(&what, PATIENCE, accepts)?)
}

/// Configures a program to keep its files in `directory`.
pub(crate) fn in_directory<'p>(program: Program<'p>, directory: &Path) -> Program<'p> {
    let variables = ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"];
    let program = program.directory(directory);
    variables.into_iter().fold(program, |program, variable| {
        program.env(variable, directory)
    })
}

/// Two namespaces joined by veth pairs with the same names at both ends, all up.
pub(crate) struct PortLinks {
    /// The namespace of the switch.
    pub(crate) near: Namespace,
    /// The namespace of the peers.
    pub(crate) far: Namespace,
}

impl PortLinks {
    /// Creates `count` links.
    pub(crate) fn create(count: usize) -> Result<Self, Failure> {
        let (near, far) = (Namespace::new()?, Namespace::new()?);
        // Otherwise the kernel would send IPv6 router solicitations.
        for end in [&near, &far] {
            end.set_sysctl("net/ipv6/conf/all/disable_ipv6", "1")?;
            end.set_sysctl("net/ipv6/conf/default/disable_ipv6", "1")?;
        }
        for number in 1..=count {
            let name = port(number);
            near.join(&name, &far, &name)?;
            near.set_up(&name)?;
            far.set_up(&name)?;
        }
        Ok(Self { near, far })
    }
}

/// The name of a port.
pub(crate) fn port(number: usize) -> String {
    format!("p{number}")
}
