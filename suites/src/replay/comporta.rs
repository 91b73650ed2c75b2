//! Comporta as the subject of cases: the program that users start, with real links, controllers and
//! clock.
//!
//! ```text
//!   frames of a case                    OpenFlow messages of a case
//!     e1    e2    ..                       b0.mgmt (1.0, 1.1, 1.3, 1.5)
//!     |     |                                 |
//!     p1    p2    ..   b0 (LOCAL)             |
//!   +--------------------------------------------+
//!   |               comporta switch              |
//!   +--------------------------------------------+
//! ```

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs, io, process};

use base::PortNo;
use flow::text::parse_group_line;
use flow::{PortConfig, PortDesc, PortState};
use openflow::{Message, Version};
use packet::{Frame, Pool};
use pipeline::MissPolicy;
use ports::af_packet::AfPacket;
use ports::{Batch, Port, Queue};
use testbed::{Clock, DeviceOffload, Failure, Namespace, Process, Program, RawSocket, Spawner};
use testkit::case::{CaseEvent, CountQuery, Subject, notation};

use crate::Stage;
use crate::peers::{EffectLines, Peers};

/// Bridge, and the interface of its LOCAL port.
const BRIDGE: &str = "b0";

/// Time limit for the start of the switch, and for a change of its ports.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Longest time that a case may wait, since the clock is real.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Time limit for a frame to reach the switch, on a busy machine.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(5);

/// MTU of the links, sufficient for the frames of all cases.
const MTU: u32 = 9_216;

/// Group commands that publish a new program without observable effect: at the following barrier
/// reply the workers have finished their earlier frames.
const PASSING: [&str; 2] = [
    "add group_id=4294901504,type=indirect,bucket=actions=drop",
    "delete group_id=4294901504",
];

/// Switch of a case, its links, and its connections.
pub(crate) struct ComportaSubject<'a> {
    program: PathBuf,
    spawner: &'a Spawner,
    clock: &'a Clock,
    directory: PathBuf,
    /// Time to wait for the effects of an event.
    linger: Duration,
    bench: Option<Bench>,
}

/// State of one case. Fields are dropped in this order: the switch first.
struct Bench {
    switch: Process,
    peers: Peers,
    ports: BTreeMap<PortNo, Cable>,
    namespace: Namespace,
}

/// Far end of a port's link.
struct Cable {
    name: String,
    end: String,
    sender: RawSocket,
    queue: Box<dyn Queue>,
    pool: Pool,
    batch: Batch,
    /// Configured state of the port.
    configured: PortDesc,
}

impl Drop for ComportaSubject<'_> {
    fn drop(&mut self) {
        self.bench = None;
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl<'a> ComportaSubject<'a> {
    /// Returns a subject that starts `program` for each case. `number` distinguishes parallel
    /// subjects.
    pub(crate) fn new(
        number: usize,
        program: PathBuf,
        spawner: &'a Spawner,
        clock: &'a Clock,
    ) -> Result<Self, Failure> {
        // Short, since the path of a Unix socket has 107 bytes at most.
        let directory = env::temp_dir().join(format!("comporta-wires-{}-{number}", process::id()));
        fs::create_dir_all(&directory).map_err(Failure::to("make a directory"))?;
        Ok(Self {
            program,
            spawner,
            clock,
            directory,
            linger: Duration::ZERO,
            bench: None,
        })
    }

    fn config(&self) -> PathBuf {
        self.directory.join("switch.toml")
    }

    /// Writes the configuration of the switch.
    fn write_config(&self, ports: &[String]) -> Result<(), Failure> {
        let ports: Vec<String> = ports.iter().map(|port| format!("\"{port}\"")).collect();
        let text = format!(
            "[[bridge]]\nname = \"{BRIDGE}\"\nfail-mode = \"secure\"\nports = [{}]\n",
            ports.join(", ")
        );
        fs::write(self.config(), text).map_err(Failure::to("write the switch's file"))
    }

    fn bench(&mut self) -> &mut Bench {
        self.bench.as_mut().expect("a case starts over first")
    }

    /// Writes the configuration, lets the switch reload it, and waits until its ports exist.
    fn reconcile(&mut self) -> Result<(), String> {
        let bench = self.bench.as_mut().expect("a case starts over first");
        let wanted = bench.ports.keys().filter(|port| **port != PortNo::LOCAL);
        let wanted: Vec<PortNo> = wanted.copied().collect();
        let configured: Vec<String> = wanted
            .iter()
            .map(|port| format!("p{port}={port}"))
            .collect();
        self.write_config(&configured).map_err(text_of)?;
        let bench = self.bench.as_mut().expect("a case starts over first");
        bench.switch.hang_up().map_err(text_of)?;
        let Bench { peers, .. } = bench;
        let done = self.clock.wait_for("the ports to be there", TIMEOUT, || {
            let there = peers.ports().map_err(failure)?;
            let there = there.iter().map(|port| port.number);
            let mut there: Vec<_> = there.filter(|port| *port != PortNo::LOCAL).collect();
            there.sort();
            Ok((there == wanted).then_some(()))
        });
        done.map_err(text_of)
    }

    fn set_ports(&mut self, wanted: &[PortDesc]) -> EffectLines {
        let bench = self.bench();
        let mut laid = false;
        for port in wanted {
            if !bench.ports.contains_key(&port.number) {
                let cable = Cable::lay(&bench.namespace, port).map_err(text_of)?;
                bench.ports.insert(port.number, cable);
                laid |= port.number != PortNo::LOCAL;
            }
        }
        self.bench().peers.listen()?;
        if laid {
            self.reconcile()?;
        }
        for port in wanted {
            self.set_port(port)?;
        }
        self.effects()
    }

    /// Sets the state of a port.
    fn set_port(&mut self, port: &PortDesc) -> Result<(), String> {
        let clock = self.clock;
        let bench = self.bench();
        let cable = bench.ports.get_mut(&port.number).ok_or("no such port")?;
        if port.state.0 & PortState::BLOCKED.0 != 0 {
            return Err("no spanning tree blocks a port".to_owned());
        }
        if port.config != cable.configured.config {
            bench.peers.configure(&cable.name, port)?;
        }
        let is_cut = |desc: &PortDesc| desc.state.0 & PortState::LINK_DOWN.0 != 0;
        if is_cut(port) != is_cut(&cable.configured) {
            match is_cut(port) {
                true => bench.namespace.set_down(&cable.end),
                false => bench.namespace.set_up(&cable.end),
            }
            .map_err(text_of)?;
        }
        cable.configured = port.clone();
        let (number, carries) = (port.number, cable.carries());
        let Bench { peers, .. } = bench;
        let done = clock.wait_for("a port's link", TIMEOUT, || {
            let ports = peers.ports().map_err(failure)?;
            let there = ports.iter().find(|there| there.number == number);
            let there = there.is_some_and(|there| is_cut(there) != carries);
            Ok(there.then_some(()))
        });
        done.map_err(text_of)
    }

    fn remove_port(&mut self, port: PortNo) -> EffectLines {
        self.bench().ports.remove(&port);
        self.reconcile()?;
        self.effects()
    }

    fn set_miss(&mut self, miss: MissPolicy) -> EffectLines {
        let word = match miss {
            MissPolicy::Controller => "controller",
            MissPolicy::Drop => "drop",
        };
        let peers = &mut self.bench().peers;
        let socket = peers.socket().display();
        peers.ofctl(&format!("-O OpenFlow11 mod-table {socket} all {word}"))?;
        Ok(Vec::new())
    }

    fn arrive(&mut self, port: PortNo, times: usize, frame: &Frame) -> EffectLines {
        if frame.offload != packet::Offload::default() {
            return Err("a link carries complete frames only".to_owned());
        }
        let clock = self.clock;
        let bench = self.bench();
        bench.peers.listen()?;
        let cable = bench.ports.get(&port).ok_or("no link at this port")?;
        // A link that is down carries no frame.
        if cable.carries() {
            let before = bench.peers.received(port)?;
            let frames = vec![frame.bytes(); times];
            let sent = cable.sender.send(&frames).map_err(text_of)?;
            let expected = before + u64::try_from(sent).map_err(text_of)?;
            if sent < times {
                return Err("no room for a frame".to_owned());
            }
            let deadline = clock.now() + ARRIVAL_LIMIT;
            while bench.peers.received(port)? < expected && clock.now() < deadline {}
        }
        self.passed()
    }

    /// Returns the effects of a frame that the switch has received.
    fn passed(&mut self) -> EffectLines {
        for line in PASSING {
            let group_mod = parse_group_line(line).map_err(text_of)?;
            let peers = &mut self.bench().peers;
            peers.request(Version::V15, &[Message::GroupMod(group_mod)])?;
        }
        self.effects()
    }

    /// Returns the effects of the last event.
    fn effects(&mut self) -> EffectLines {
        let linger = self.linger;
        let bench = self.bench();
        let mut lines = bench.peers.asynchronous(Some(linger))?;
        for (port, cable) in &mut bench.ports {
            for frame in cable.take().map_err(text_of)? {
                lines.push(notation::output_line(&port.to_string(), &frame));
            }
        }
        Ok(lines)
    }

    fn pass(&mut self, time: Duration) -> EffectLines {
        if time > TIME_MAX {
            return Err("the wait is too long for a real clock".to_owned());
        }
        let clock = self.clock;
        let peers = &mut self.bench().peers;
        peers.listen()?;
        peers.wait_until(clock.now() + time, clock)?;
        self.effects()
    }
}

impl Cable {
    /// Creates a link to a port that the switch will open; LOCAL has its interface already.
    fn lay(namespace: &Namespace, port: &PortDesc) -> Result<Self, Failure> {
        let number = port.number;
        let (name, end) = match number {
            PortNo::LOCAL => (BRIDGE.to_owned(), BRIDGE.to_owned()),
            number => (format!("p{number}"), format!("e{number}")),
        };
        if number != PortNo::LOCAL {
            namespace.join(&end, namespace, &name)?;
            for interface in [&end, &name] {
                // The switch under test receives complete frames only, as from a wire.
                namespace.set_offload(interface, DeviceOffload::TxChecksum, false)?;
                namespace.set_mtu(interface, MTU)?;
            }
            namespace.set_up(&name)?;
        }
        namespace.set_up(&end)?;
        let interface = end.parse().expect("the name is legal");
        let mut opened = namespace
            .run(|| AfPacket::open(&interface, NonZeroUsize::MIN))?
            .map_err(|error| Failure::to("open the end of a link")(io::Error::other(error)))?;
        Ok(Self {
            sender: namespace.raw_sender(&end)?,
            queue: opened.take_queues().remove(0),
            pool: Pool::new(2 * Batch::FRAMES_MAX),
            batch: Batch::new(),
            configured: PortDesc {
                config: PortConfig::default(),
                state: PortState::default(),
                ..port.clone()
            },
            name,
            end,
        })
    }

    /// Returns true if both ends are configured as up.
    const fn carries(&self) -> bool {
        self.configured.state.0 & PortState::LINK_DOWN.0 == 0
            && self.configured.config.0 & PortConfig::DOWN.0 == 0
    }

    /// Returns the frames that the port has sent.
    fn take(&mut self) -> io::Result<Vec<Frame>> {
        let mut frames = Vec::new();
        loop {
            self.queue.receive(&mut self.pool, &mut self.batch)?;
            if self.batch.is_empty() {
                return Ok(frames);
            }
            for frame in self.batch.drain() {
                frames.push(Frame::from_bytes(frame.bytes()));
                self.pool.put(frame);
            }
        }
    }
}

impl Stage for ComportaSubject<'_> {
    const LINGER: [Duration; 3] = [
        Duration::from_millis(2),
        Duration::from_millis(20),
        Duration::from_millis(200),
    ];
    const UNCERTAIN: &'static [&'static str] = &["duration="];

    /// Replaces the switch of the previous case by a new one without ports.
    fn start_over(&mut self, linger: Duration) -> Result<(), Failure> {
        self.linger = linger;
        self.bench = None;
        self.write_config(&[])?;
        let namespace = Namespace::new()?;
        let program = Program::new(&self.program)
            .args(["switch", "--config"])
            .arg(self.config())
            .arg("--rundir")
            .arg(self.directory.join("run"))
            .inside(&namespace)
            .log(self.directory.join("comporta.log"));
        let mut switch = self.spawner.start(program)?;
        self.clock.wait_for("the switch to be ready", TIMEOUT, || {
            if !switch.is_running() {
                let status = switch.wait(Duration::ZERO)?;
                return Err(switch.failed(status));
            }
            Ok(switch.written()?.contains("INFO ready").then_some(()))
        })?;
        let socket = self.directory.join("run").join(format!("{BRIDGE}.mgmt"));
        let log = self.directory.join("ovs-ofctl.log");
        self.bench = Some(Bench {
            switch,
            peers: Peers::to(socket, self.spawner, log),
            ports: BTreeMap::new(),
            namespace,
        });
        Ok(())
    }
}

impl Subject for ComportaSubject<'_> {
    fn play(&mut self, event: &CaseEvent) -> EffectLines {
        if let Some(lines) = self.bench().peers.send_event(event) {
            let mut lines = lines?;
            lines.extend(self.passed()?);
            return Ok(lines);
        }
        match event {
            CaseEvent::Ports(ports) => self.set_ports(ports),
            CaseEvent::PortRemoved(port) => self.remove_port(*port),
            CaseEvent::Miss(miss) => self.set_miss(*miss),
            CaseEvent::Standalone(_) => Err("its fail mode is secure".to_owned()),
            CaseEvent::Resume(_) => {
                Err("continuations are not supported on this connection".to_owned())
            }
            CaseEvent::Receive { port, times, frame } => self.arrive(*port, *times, frame),
            CaseEvent::Time(time) => self.pass(*time),
            CaseEvent::Dump(request) => self.bench().peers.dump(request.clone()),
            CaseEvent::Groups => self.bench().peers.groups(),
            CaseEvent::Meters => self.bench().peers.meters(),
            CaseEvent::Fragments(_)
            | CaseEvent::TableMiss(..)
            | CaseEvent::Flow(_)
            | CaseEvent::Group(_)
            | CaseEvent::Meter(_)
            | CaseEvent::TlvTable(_)
            | CaseEvent::PacketOut(_) => Err("handled as an OpenFlow message".to_owned()),
        }
    }

    fn count(&mut self, count: &CountQuery) -> Result<String, String> {
        self.bench().peers.count(count)
    }
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn failure(what: String) -> Failure {
    Failure::to("query the switch")(io::Error::other(what))
}
