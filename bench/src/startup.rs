//! How long a switch takes with a large configuration: a database of a thousand ports, and a
//! hundred thousand flows that are put back as `ovs-save` does; until a frame takes the last
//! of them. Open vSwitch beside it, with its userspace data path and the same database.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::{Namespace, Process, Program, RawSocket};

use crate::sample::Sample;
use crate::switch::Site;
use crate::{Failure, Programs, Rounds};

/// Ports of the one bridge. The last flow leads from the first to the last.
const PORTS: usize = 1_000;

/// Flows.
const FLOWS: usize = 100_000;

/// Bridges that are added to it.
const BRIDGES: usize = 100;

/// Where Debian keeps the schema of the database.
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// How long a step may take: much longer than it should.
const PATIENCE: Duration = Duration::from_secs(120);

/// The frame that only the last flow takes: UDP from 10.255.255.255.
const SOURCE: [u8; 4] = [10, 255, 255, 255];

/// A MiB.
const MIB: f64 = (1 << 20) as f64;

/// A switch that is told what to do by a database.
#[derive(Clone, Copy)]
enum Kind {
    Comporta,
    OpenVswitch,
}

impl Kind {
    const fn column(self) -> &'static str {
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

/// Takes `rounds` of samples, each of one switch and then of the other.
pub(crate) fn measure(programs: &Programs, rounds: Rounds) -> Result<(), Failure> {
    let site = Site::new(programs)?;
    let cables = Cables::lay()?;
    for _ in 0..rounds.runs {
        for kind in [Kind::Comporta, Kind::OpenVswitch] {
            Start::prepare(&site, &cables, kind)?.measure()?;
        }
    }
    Ok(())
}

/// A namespace with ports, and the one with their other ends.
struct Cables {
    near: Namespace,
    far: Namespace,
}

impl Cables {
    fn lay() -> Result<Self, Failure> {
        let (near, far) = (Namespace::new()?, Namespace::new()?);
        for end in [&near, &far] {
            end.set_sysctl("net/ipv6/conf/all/disable_ipv6", "1")?;
            end.set_sysctl("net/ipv6/conf/default/disable_ipv6", "1")?;
        }
        for number in 1..=PORTS {
            let name = port(number);
            near.join(&name, &far, &name)?;
            near.set_up(&name)?;
            far.set_up(&name)?;
        }
        Ok(Self { near, far })
    }
}

fn port(number: usize) -> String {
    format!("p{number}")
}

/// A database that is there, and a daemon that is to come.
struct Start<'a> {
    site: &'a Site,
    cables: &'a Cables,
    kind: Kind,
    directory: PathBuf,
    _database: Process,
}

impl<'a> Start<'a> {
    /// A database with the ports, and a file with the flows.
    fn prepare(site: &'a Site, cables: &'a Cables, kind: Kind) -> Result<Self, Failure> {
        let directory = site.directory.join("startup");
        // A run before has left its own.
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("flows.txt"), flows())?;
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
            cables,
            kind,
            directory,
            _database: database,
        };
        this.vsctl("--no-wait init")?;
        let ports = (1..=PORTS).map(|number| {
            let name = port(number);
            format!(" -- add-port br0 {name} -- set Interface {name} ofport_request={number}")
        });
        let ports: String = ports.collect();
        this.vsctl(&format!(
            "--no-wait add-br br0 -- set Bridge br0 datapath_type=netdev fail_mode=secure{ports}"
        ))?;
        Ok(this)
    }

    /// Takes one sample of everything.
    fn measure(&self) -> Result<(), Failure> {
        let clock = self.site.clock;
        let sample = |row, value| {
            let column = self.kind.column();
            Sample { row, column, value }.print();
        };
        let began = clock.now();
        let since = |then| clock.now().since(then).as_secs_f64();
        let mut daemon = self.daemon()?;
        // Waits until the daemon has done what the database says.
        self.vsctl("set Open_vSwitch . external_ids:asked=true")?;
        sample("ports", since(began));
        let flows = self.path("flows.txt");
        let flows = flows.to_string_lossy();
        self.run(Program::new("ovs-ofctl").args([
            "-O",
            "OpenFlow14",
            "--bundle",
            "add-flows",
            "br0",
            &flows,
        ]))?;
        self.cross()?;
        sample("ports-flows", since(began));
        let memory = daemon.usage()?.resident_bytes;
        sample("memory", memory as f64 / MIB);
        let bridges = (1..=BRIDGES).map(|number| {
            format!("-- add-br b{number} -- set Bridge b{number} datapath_type=netdev ")
        });
        let bridges: String = bridges.collect();
        let then = clock.now();
        self.vsctl(bridges.trim_start_matches("-- "))?;
        sample("bridges", since(then));
        let then = clock.now();
        daemon.stop_within(PATIENCE)?;
        sample("end", since(then));
        Ok(())
    }

    fn daemon(&self) -> Result<Process, Failure> {
        let program = self.kind.program(self.site);
        let program = program
            .arg(format!("unix:{}", self.path("db.sock").display()))
            .arg(format!("--unixctl={}", self.path("daemon.ctl").display()));
        let program = at_home(program, &self.directory).inside(&self.cables.near);
        Ok(self
            .site
            .spawner
            .start(program.log(self.path("daemon.log")))?)
    }

    /// Sends frames into the first port until one comes out of the last.
    fn cross(&self) -> Result<(), Failure> {
        let sender = self.cables.far.raw_sender(&port(1))?;
        let receiver = self.cables.far.raw_receiver(&port(PORTS))?;
        let frame = frame();
        let came = || {
            // One that finds no room is sent again.
            let _ = sender.send(&[frame]);
            Ok(receive(&receiver, &frame)?.then_some(()))
        };
        self.site.clock.wait_for("a frame", PATIENCE, came)?;
        Ok(())
    }

    fn vsctl(&self, words: &str) -> Result<(), Failure> {
        let words = words.split_whitespace();
        self.run(Program::new("ovs-vsctl").arg("--timeout=120").args(words))
    }

    fn run(&self, program: Program<'_>) -> Result<(), Failure> {
        let program = at_home(program, &self.directory).log(self.path("tool.log"));
        Ok(self.site.spawner.run(program, PATIENCE)?)
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.directory).join(name)
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

/// Flows of TCP by addresses, and last the one that the frame takes.
fn flows() -> String {
    let flow = |number: usize| {
        let [_, high, mid, low] = u32::try_from(number)
            .expect("a hundred thousand")
            .to_be_bytes();
        let (from, to) = (number % PORTS + 1, number * 7 % PORTS + 1);
        format!(
            "priority=100,tcp,in_port={from},nw_src=10.{high}.{mid}.{low},nw_dst=10.0.0.1,\
             tp_dst=80,actions=output:{to}\n"
        )
    };
    let many: String = (0..FLOWS - 1).map(flow).collect();
    let [a, b, c, d] = SOURCE;
    format!("{many}priority=1,udp,in_port=1,nw_src={a}.{b}.{c}.{d},actions=output:{PORTS}\n")
}

/// UDP without content.
fn frame() -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let ip: [u8; 20] = [
        0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0x65, 0xd2, 10, 255, 255, 255, 10, 0, 0, 1,
    ];
    frame[14..34].copy_from_slice(&ip);
    frame[34..42].copy_from_slice(&[0, 1, 0, 2, 0, 8, 0, 0]);
    frame
}

/// Whether the frame has come.
fn receive(receiver: &RawSocket, frame: &[u8]) -> Result<bool, testbed::Failure> {
    let mut room = [0; 256];
    let failure = || testbed::Failure::to("receive a frame");
    while let Some(length) = receiver.receive(&mut room).map_err(failure())? {
        if room[..length] == *frame {
            return Ok(true);
        }
    }
    Ok(false)
}
