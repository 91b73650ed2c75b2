//! OVN over this switch and over Open vSwitch: its databases and `ovn-northd`, and chassis with a
//! database, a switch and `ovn-controller` each.

mod chassis;
mod flow_load;
mod start;
mod topology;

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use testbed::{Namespace, Process, Program};

use crate::Failure;
use crate::managed::{ManagedSwitch, SwitchKind, in_directory, wait_for_server};
use crate::switch::Site;

pub(crate) use chassis::{ChassisCount, measure as measure_chassis};
pub(crate) use start::{AddressCount, measure as measure_start};

/// The northbound and the southbound database: name and schema in Debian.
const DATABASES: [(&str, &str); 2] = [
    ("nb", "/usr/share/ovn/ovn-nb.ovsschema"),
    ("sb", "/usr/share/ovn/ovn-sb.ovsschema"),
];

/// Maximum time of a command: all chassis install a hundred thousand flows in less.
const PATIENCE: Duration = Duration::from_secs(300);

/// The number of words in a transaction, of which a command line holds several times as many.
const BATCH: usize = 10_000;

/// The format of a log with milliseconds.
const LOG_FORMAT: &str = "-vPATTERN:console:%D{%Y-%m-%dT%H:%M:%S.###Z}|%05N|%c|%p|%m";

/// A MiB.
const MIB: f64 = (1 << 20) as f64;

/// A command of `ovn-nbctl`, in words.
type NbCommand = Vec<String>;

/// The databases and `ovn-northd`.
struct OvnCentral<'a> {
    site: &'a Site,
    directory: PathBuf,
    /// Dropped first: it would report databases that are gone.
    northd: Process,
    /// The northbound and the southbound database.
    databases: [Process; 2],
}

impl<'a> OvnCentral<'a> {
    /// Starts empty databases in a directory of this name, and `ovn-northd`.
    fn start(site: &'a Site, name: &str) -> Result<Self, Failure> {
        let directory = site.directory.join(name);
        // An earlier run may have left its files.
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir_all(&directory)?;
        let start = |program: Program<'_>, name: &str| {
            let program = in_directory(program, &directory).env("OVN_RUNDIR", &directory);
            let log = directory.join(format!("{name}.log"));
            site.spawner.start(program.log(log))
        };
        let database = |(name, schema): (&str, &str)| -> Result<Process, Failure> {
            let file = format!("{name}.db");
            let create = Program::new("ovsdb-tool").args(["create", &file, schema]);
            let status = start(create, "ovsdb-tool")?.wait(PATIENCE)?;
            if !status.success() {
                return Err(format!("ovsdb-tool create {file}: {status}").into());
            }
            let socket = format!("{name}.sock");
            let server = Program::new("ovsdb-server").arg(file).args([
                format!("--remote=punix:{socket}"),
                format!("--unixctl={name}.ctl"),
            ]);
            let server = start(server, &format!("ovsdb-server-{name}"))?;
            wait_for_server(site, &directory.join(socket))?;
            Ok(server)
        };
        let [north, south] = DATABASES;
        let databases = [database(north)?, database(south)?];
        let northd = Program::new("ovn-northd").args([
            "--ovnnb-db=unix:nb.sock",
            "--ovnsb-db=unix:sb.sock",
            "--unixctl=northd.ctl",
        ]);
        let central = Self {
            site,
            northd: start(northd, "ovn-northd")?,
            databases,
            directory,
        };
        // ovn-controller 23.03 crashes on a southbound database without its global row.
        central.compile()?;
        Ok(central)
    }

    /// The remote of the northbound or the southbound database.
    fn remote(&self, database: &str) -> String {
        let socket = self.directory.join(format!("{database}.sock"));
        format!("unix:{}", socket.display())
    }

    /// Runs a client of a database; returns its output.
    fn client(&self, program: &str, database: &str, words: &[&str]) -> Result<String, Failure> {
        let program = Program::new(program)
            .arg(format!("--db={}", self.remote(database)))
            .arg(format!("--timeout={}", PATIENCE.as_secs()))
            .args(words.iter().copied());
        self.run(program)
    }

    /// Runs a tool in the directory; returns its output.
    fn run(&self, program: Program<'_>) -> Result<String, Failure> {
        let program = in_directory(program, &self.directory)
            .log(self.directory.join("tool.log"))
            .output(self.directory.join("tool.txt"));
        let mut process = self.site.spawner.start(program)?;
        let status = process.wait(PATIENCE)?;
        if !status.success() {
            return Err(process.failed(status).into());
        }
        Ok(process.written()?)
    }

    /// Runs `ovn-nbctl`.
    fn nbctl(&self, words: &str) -> Result<String, Failure> {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.client("ovn-nbctl", "nb", &words)
    }

    /// Runs `ovn-sbctl`.
    fn sbctl(&self, words: &str) -> Result<String, Failure> {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.client("ovn-sbctl", "sb", &words)
    }

    /// Executes commands of `ovn-nbctl`, several in a transaction.
    fn execute(&self, commands: &[NbCommand]) -> Result<(), Failure> {
        let mut words = Vec::new();
        for command in commands {
            if words.len() + command.len() > BATCH {
                self.client("ovn-nbctl", "nb", &words)?;
                words.clear();
            }
            words.push("--");
            words.extend(command.iter().map(String::as_str));
        }
        self.client("ovn-nbctl", "nb", &words).map(drop)
    }

    /// Waits until `ovn-northd` has compiled all changes.
    fn compile(&self) -> Result<(), Failure> {
        self.nbctl("--wait=sb sync").map(drop)
    }

    /// Waits until all chassis have installed all changes.
    fn sync(&self) -> Result<(), Failure> {
        self.nbctl("--wait=hv sync").map(drop)
    }
}

/// The switch of a chassis, and its interfaces.
#[derive(Clone, Copy, PartialEq)]
enum InterfaceKind {
    /// Interfaces of the kernel.
    System,
    /// Dummies, which exist only in the switch.
    Dummy,
}

impl InterfaceKind {
    /// Arguments of the daemon.
    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::System => &[],
            Self::Dummy => &["--enable-dummy=system", "--disable-system"],
        }
    }
}

/// A database, a switch and `ovn-controller`.
struct OvnChassis<'a> {
    managed: ManagedSwitch<'a>,
    namespace: &'a Namespace,
    interfaces: InterfaceKind,
}

impl<'a> OvnChassis<'a> {
    /// Starts a database that describes the chassis, with a bridge without ports.
    fn new(
        central: &OvnCentral<'a>,
        name: &str,
        address: Ipv4Addr,
        (kind, interfaces): (SwitchKind, InterfaceKind),
        namespace: &'a Namespace,
    ) -> Result<Self, Failure> {
        let managed = ManagedSwitch::new(central.site, name, kind)?;
        let (south, datapath) = (central.remote("sb"), "netdev");
        managed.vsctl(&format!(
            "--no-wait set Open_vSwitch . external_ids:system-id={name} \
             external_ids:ovn-remote={south} external_ids:ovn-encap-type=geneve \
             external_ids:ovn-encap-ip={address} external_ids:ovn-monitor-all=true \
             external_ids:ovn-bridge-datapath-type={datapath} -- add-br br-int \
             -- set Bridge br-int fail_mode=secure datapath_type={datapath}"
        ))?;
        Ok(Self {
            managed,
            namespace,
            interfaces,
        })
    }

    /// Adds an interface with this number for a logical port. Does not wait for the switch.
    fn add_port(&self, interface: &str, number: usize, logical: &str) -> Result<(), Failure> {
        self.managed.vsctl(&format!(
            "--no-wait add-port br-int {interface} -- set Interface {interface} \
             ofport_request={number} external_ids:iface-id={logical}"
        ))
    }

    /// Starts the switch.
    fn start_switch(&self) -> Result<Process, Failure> {
        self.managed
            .daemon_with(self.namespace, self.interfaces.arguments())
    }

    /// Starts `ovn-controller`.
    fn start_controller(&self) -> Result<Process, Failure> {
        let directory = self.managed.path("");
        let program = Program::new("ovn-controller")
            .arg(format!("unix:{}", self.managed.path("db.sock").display()))
            .arg(LOG_FORMAT)
            .env("OVN_RUNDIR", &directory)
            .inside(self.namespace)
            .log(self.managed.path("ovn-controller.log"));
        let program = in_directory(program, &directory);
        Ok(self.managed.site.spawner.start(program)?)
    }
    /// The number of flows of the bridge.
    fn flow_count(&self) -> Result<f64, Failure> {
        let socket = self.managed.path("br-int.mgmt");
        let socket = format!("unix:{}", socket.display());
        let words = ["-O", "OpenFlow15", "dump-aggregate", &socket];
        let output = self.managed.path("aggregate.txt");
        let program = Program::new("ovs-ofctl").args(words).log(&output);
        let mut process = self.managed.site.spawner.start(program)?;
        let status = process.wait(PATIENCE)?;
        let text = process.written()?;
        let count = text.rsplit_once("flow_count=").filter(|_| status.success());
        let (_, count) = count.ok_or_else(|| format!("no number of flows: {text}"))?;
        Ok(count.trim().parse()?)
    }
}
