//! A switch that is told what to do by a database: this one, or Open vSwitch with its
//! userspace data path, with a real `ovsdb-server` and what belongs to it in one directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::{Namespace, Process, Program};

use crate::Failure;
use crate::switch::Site;

/// Where Debian keeps the schema of the database.
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// How long a step may take: much longer than it should.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Which switch.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Comporta,
    OpenVswitch,
}

impl Kind {
    /// Both, in the order of their turns.
    pub(crate) const ALL: [Self; 2] = [Self::Comporta, Self::OpenVswitch];

    /// The column of its figures.
    pub(crate) const fn column(self) -> &'static str {
        match self {
            Self::Comporta => "Comporta",
            Self::OpenVswitch => "Open vSwitch",
        }
    }

    /// Its program, without arguments of ours.
    fn program(self, site: &Site) -> Program<'static> {
        match self {
            Self::Comporta => Program::new(&site.comporta).arg("vswitchd"),
            Self::OpenVswitch => Program::new("ovs-vswitchd"),
        }
    }
}

/// A database that is there, and a daemon that may come.
pub(crate) struct Managed<'a> {
    site: &'a Site,
    pub(crate) kind: Kind,
    directory: PathBuf,
    _database: Process,
}

impl<'a> Managed<'a> {
    /// A database without rows, in a directory of this name.
    pub(crate) fn new(site: &'a Site, name: &str, kind: Kind) -> Result<Self, Failure> {
        let directory = site.directory.join(name);
        // A run before has left its own.
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir_all(&directory)?;
        let create = Program::new("ovsdb-tool").args(["create", "conf.db", SCHEMA]);
        let create = at_home(create, &directory).log(directory.join("tool.log"));
        site.spawner.run(create, PATIENCE)?;
        let serve = Program::new("ovsdb-server")
            .arg("conf.db")
            .args(["--remote=punix:db.sock", "--unixctl=db.ctl"]);
        let serve = at_home(serve, &directory).log(directory.join("ovsdb-server.log"));
        let database = site.spawner.start(serve)?;
        let socket = directory.join("db.sock");
        let there = || Ok(socket.exists().then_some(()));
        site.clock
            .wait_for("the socket of the database", PATIENCE, there)?;
        let this = Self {
            site,
            kind,
            directory,
            _database: database,
        };
        this.vsctl("--no-wait init")?;
        Ok(this)
    }

    /// Starts the daemon.
    pub(crate) fn daemon(&self, inside: &Namespace) -> Result<Process, Failure> {
        let program = self.kind.program(self.site);
        let program = program
            .arg(format!("unix:{}", self.path("db.sock").display()))
            .arg(format!("--unixctl={}", self.path("daemon.ctl").display()));
        let program = at_home(program, &self.directory).inside(inside);
        let program = program.log(self.path("daemon.log"));
        Ok(self.site.spawner.start(program)?)
    }

    /// Tells the database, and waits until the daemon has done what that says.
    pub(crate) fn vsctl(&self, words: &str) -> Result<(), Failure> {
        let words = words.split_whitespace();
        self.run(Program::new("ovs-vsctl").arg("--timeout=120").args(words))
    }

    /// Runs a tool.
    pub(crate) fn run(&self, program: Program<'_>) -> Result<(), Failure> {
        let program = at_home(program, &self.directory).log(self.path("tool.log"));
        Ok(self.site.spawner.run(program, PATIENCE)?)
    }

    /// A file of it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// A program that has its files in `directory`.
fn at_home<'p>(program: Program<'p>, directory: &Path) -> Program<'p> {
    let variables = ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"];
    let program = program.directory(directory);
    variables.into_iter().fold(program, |program, variable| {
        program.env(variable, directory)
    })
}

/// Two namespaces with cables between interfaces of the same names, all up.
pub(crate) struct Cables {
    /// Where the switch is.
    pub(crate) near: Namespace,
    /// The other ends.
    pub(crate) far: Namespace,
}

impl Cables {
    /// Lays so many.
    pub(crate) fn lay(count: usize) -> Result<Self, Failure> {
        let (near, far) = (Namespace::new()?, Namespace::new()?);
        // Of itself the kernel would look for routers.
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
