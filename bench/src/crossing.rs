//! Cost of a frame through bridges joined by patch ports: one bridge between two links, and a chain
//! of ten, each with one rule. Open vSwitch with its userspace data path is measured too.
//!
//! The result is the processor time of the whole daemon, divided by the frames received: it does
//! not depend on other load of the machine.

use std::time::Duration;

use testbed::{Process, Program, RawSocket};

use crate::managed::{ManagedSwitch, PATIENCE, PortLinks, SwitchKind, port};
use crate::sample::Sample;
use crate::switch::Site;
use crate::{Failure, Programs, Rounds};

/// Rows, and the number of bridges in each.
const CHAINS: [(&str, usize); 2] = [("one", 1), ("ten", 10)];

/// Frames of a burst, which is received completely before the next.
const TOGETHER: usize = 64;

/// Bursts before the measurement, during which MAC addresses are learned and caches fill.
const WARM_UP: usize = 200;

/// Frame length in bytes.
const FRAME_LEN: usize = 60;

/// Takes `rounds` of samples, alternating between the switches.
pub(crate) fn measure(programs: &Programs, rounds: Rounds) -> Result<(), Failure> {
    let site = Site::new(programs)?;
    for _ in 0..rounds.runs {
        for kind in SwitchKind::ALL {
            for (row, bridges) in CHAINS {
                let cables = PortLinks::create(2)?;
                let managed = ManagedSwitch::new(&site, "crossing", kind)?;
                let daemon = chain(&managed, &cables, bridges)?;
                let value = cost(&site, &cables, &daemon, rounds)?;
                let column = kind.column();
                Sample { row, column, value }.print();
            }
        }
    }
    Ok(())
}

/// Configures a chain of `bridges` bridges between `p1` and `p2`.
fn chain(
    managed: &ManagedSwitch<'_>,
    cables: &PortLinks,
    bridges: usize,
) -> Result<Process, Failure> {
    let daemon = managed.daemon(&cables.near)?;
    for place in 1..=bridges {
        let left = match place {
            1 => end("p1", None),
            _ => end(
                &format!("l{place}"),
                Some(format!("r{}", place.saturating_sub(1))),
            ),
        };
        let right = match place == bridges {
            true => end("p2", None),
            false => end(&format!("r{place}"), Some(format!("l{}", place + 1))),
        };
        managed.vsctl(&format!(
            "add-br c{place} -- set Bridge c{place} datapath_type=netdev fail_mode=secure \
             -- add-port c{place} {left} ofport_request=1 -- add-port c{place} {right} ofport_request=2"
        ))?;
        let bridge = format!("c{place}");
        let words = ["add-flow", &bridge, "in_port=1,actions=output:2"];
        managed.run(Program::new("ovs-ofctl").args(words))?;
    }
    Ok(daemon)
}

/// The `ovs-vsctl` arguments for a port and its interface, up to the port number.
fn end(name: &str, peer: Option<String>) -> String {
    let peer = peer.map_or(String::new(), |peer| {
        format!("type=patch options:peer={peer}")
    });
    format!("{name} -- set Interface {name} {peer}")
}

/// Measures the daemon's processor time per frame, in nanoseconds.
fn cost(site: &Site, cables: &PortLinks, daemon: &Process, rounds: Rounds) -> Result<f64, Failure> {
    let sender = cables.far.raw_sender(&port(1))?;
    let receiver = cables.far.raw_receiver(&port(2))?;
    for _ in 0..WARM_UP {
        burst(site, &sender, &receiver)?;
    }
    let before = daemon.usage()?;
    let until = site.clock.now() + Duration::from_millis(rounds.millis.into());
    let mut frames = 0_u32;
    while site.clock.now() < until {
        frames += burst(site, &sender, &receiver)?;
    }
    let after = daemon.usage()?;
    let busy = (after.user + after.system).saturating_sub(before.user + before.system);
    Ok(busy.as_secs_f64() * 1e9 / f64::from(frames.max(1)))
}

/// Sends a burst and waits for all of its frames; returns their number.
fn burst(site: &Site, sender: &RawSocket, receiver: &RawSocket) -> Result<u32, Failure> {
    let mut frame = [0; FRAME_LEN];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    let frames = [frame; TOGETHER];
    let (mut sent, mut received) = (0, 0);
    let mut room = [0; 256];
    let deadline = site.clock.now() + PATIENCE;
    while received < TOGETHER {
        if sent < TOGETHER {
            // Frames that do not fit into the send buffer are sent in a later round.
            sent += sender.send(&frames[sent..]).unwrap_or(0);
        }
        while let Some(length) = receiver.receive(&mut room)? {
            received += usize::from(room[..length] == frame);
        }
        if site.clock.now() > deadline {
            return Err(format!("received {received} of {sent} frames").into());
        }
    }
    Ok(u32::try_from(received)?)
}
