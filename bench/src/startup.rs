//! Startup time of a switch with a large configuration: a database of a thousand ports, and a
//! hundred thousand flows that are restored as `ovs-save` does, until the last flow forwards a
//! frame. Open vSwitch with its userspace data path and the same database is measured too.

use std::fs;

use testbed::{Program, RawSocket};

use crate::managed::{ManagedSwitch, PATIENCE, PortLinks, SwitchKind, port};
use crate::sample::Sample;
use crate::switch::Site;
use crate::{Failure, Programs, Rounds};

/// Ports of the bridge. The last flow forwards from the first to the last.
const PORTS: usize = 1_000;

/// The number of flows.
const FLOWS: usize = 100_000;

/// Bridges that are added afterwards.
const BRIDGES: usize = 100;

/// The source address of the frame that only the last flow matches: UDP from 10.255.255.255.
const SOURCE: [u8; 4] = [10, 255, 255, 255];

/// A MiB.
const MIB: f64 = (1 << 20) as f64;

/// Takes `rounds` of samples, alternating between the switches.
pub(crate) fn measure(programs: &Programs, rounds: Rounds) -> Result<(), Failure> {
    let site = Site::new(programs)?;
    let cables = PortLinks::create(PORTS)?;
    for _ in 0..rounds.runs {
        for kind in SwitchKind::ALL {
            StartupSample::prepare(&site, &cables, kind)?.measure()?;
        }
    }
    Ok(())
}

/// A database with ports, a file with flows, and a daemon to start.
struct StartupSample<'a> {
    site: &'a Site,
    cables: &'a PortLinks,
    managed: ManagedSwitch<'a>,
}

impl<'a> StartupSample<'a> {
    fn prepare(site: &'a Site, cables: &'a PortLinks, kind: SwitchKind) -> Result<Self, Failure> {
        let managed = ManagedSwitch::new(site, "startup", kind)?;
        fs::write(managed.path("flows.txt"), flows())?;
        let ports = (1..=PORTS).map(|number| {
            let name = port(number);
            format!(" -- add-port br0 {name} -- set Interface {name} ofport_request={number}")
        });
        let ports: String = ports.collect();
        managed.vsctl(&format!(
            "--no-wait add-br br0 -- set Bridge br0 datapath_type=netdev fail_mode=secure{ports}"
        ))?;
        Ok(Self {
            site,
            cables,
            managed,
        })
    }

    /// Takes one sample of everything.
    fn measure(&self) -> Result<(), Failure> {
        let clock = self.site.clock;
        let sample = |row, value| {
            let column = self.managed.kind.column();
            Sample { row, column, value }.print();
        };
        let began = clock.now();
        let since = |then| clock.now().since(then).as_secs_f64();
        let mut daemon = self.managed.daemon(&self.cables.near)?;
        self.managed
            .vsctl("set Open_vSwitch . external_ids:asked=true")?;
        sample("ports", since(began));
        let flows = self.managed.path("flows.txt");
        let flows = flows.to_string_lossy();
        let words = ["-O", "OpenFlow14", "--bundle", "add-flows", "br0", &flows];
        self.managed.run(Program::new("ovs-ofctl").args(words))?;
        self.cross()?;
        sample("ports-flows", since(began));
        let memory = daemon.usage()?.resident_bytes;
        sample("memory", memory as f64 / MIB);
        let bridges = (1..=BRIDGES).map(|number| {
            format!("-- add-br b{number} -- set Bridge b{number} datapath_type=netdev ")
        });
        let bridges: String = bridges.collect();
        let then = clock.now();
        self.managed.vsctl(bridges.trim_start_matches("-- "))?;
        sample("bridges", since(then));
        let then = clock.now();
        daemon.stop_within(PATIENCE)?;
        sample("end", since(then));
        Ok(())
    }

    /// Sends frames into the first port until one leaves the last.
    fn cross(&self) -> Result<(), Failure> {
        let sender = self.cables.far.raw_sender(&port(1))?;
        let receiver = self.cables.far.raw_receiver(&port(PORTS))?;
        let frame = frame();
        let arrived = || {
            // A frame that does not fit into the send buffer is sent again.
            let _ = sender.send(&[frame]);
            Ok(receive(&receiver, &frame)?.then_some(()))
        };
        self.site.clock.wait_for("a frame", PATIENCE, arrived)?;
        Ok(())
    }
}

/// The flows: TCP by addresses, and last the one that matches the frame.
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

/// A UDP frame without payload.
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

/// Returns true if the frame has arrived.
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
